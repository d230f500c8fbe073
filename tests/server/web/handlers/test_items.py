"""Items of a running campaign, changed through the API and on the pages."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import openpyxl

from tests.weblab import Lab, lab

ROWS = "task,text,source\n" + "".join(f"i{k},text {k},book\n" for k in range(4))


@pytest.fixture
def labelled(app: Lab) -> tuple[Lab, int]:
    """A campaign whose items are all labelled."""
    settings = {"pause_suspects": False, "automatically": False}
    number = app.campaign(items=ROWS, settings=settings)
    people = [app.worker(number) for _ in range(3)]
    while sum(who.work() is not None for who in people):
        pass
    assert app.get(f"/api/campaigns/{number}").json()["items"]["labelled"] == 4
    return app, number


def rows_of(app: Lab, number: int) -> dict[str, Any]:
    text = app.get(f"/api/campaigns/{number}/labels?format=jsonl").text
    return {row["task"]: row for row in map(json.loads, text.splitlines())}


def item(app: Lab, number: int, task: str) -> int:
    page = app.get(f"/c/{number}/items?find={task}").text
    found = re.search(rf'/c/{number}/items/(\d+)">{task}<', page)
    assert found is not None
    return int(found[1])


def test_labels_by_hand_are_exported_beside_those_of_the_answers(labelled: Any) -> None:
    app, number = labelled
    base = f"/api/campaigns/{number}"
    before = rows_of(app, number)["i0"]
    mine = next(name for name in ("c1", "c2") if name != before["label"])
    made = app.post(f"{base}/correct", {"labels": {"i0": mine}, "reason": " seen "})
    assert made.json() == {"campaign": number, "corrected": 1, "undone": 0, "opened": 0}
    row = rows_of(app, number)["i0"]
    assert (row["label"], row["computed"], row["corrected"]) == (mine, before["label"], True)
    assert (row["corrected_why"], bool(row["corrected_by"])) == ("seen", True)
    assert app.get(f"{base}/labels?format=parquet").status_code == 200
    head = app.get(f"{base}/labels").text.splitlines()[0]
    assert "computed,computed_error,corrected,corrected_by,corrected_at,corrected_why" in head
    assert app.get(base).json()["corrected"] == 1
    trace = app.get(f"{base}/items/{item(app, number, 'i0')}").json()
    assert trace["corrections"][0]["reason"] == "seen"
    entry = app.get(f"{base}/activity").json()[0]
    assert (entry["action"], entry["detail"]["label"]) == ("correct", mine)
    assert app.post(f"{base}/correct", {"labels": {"i0": None}}).json()["undone"] == 1
    assert rows_of(app, number)["i0"] == before


def test_one_bad_label_changes_none(labelled: Any) -> None:
    app, number = labelled
    labels = {"i0": "c1", "i1": "dragon"}
    made = app.post(f"/api/campaigns/{number}/correct", {"labels": labels})
    assert (made.status_code, "'dragon' is not a class" in made.text) == (422, True)
    assert not any(row["corrected"] for row in rows_of(app, number).values())
    assert app.post(f"/api/campaigns/{number}/correct", {"labels": {}}).status_code == 422


def test_items_are_withdrawn_and_reopened(labelled: Any) -> None:
    app, number = labelled
    base = f"/api/campaigns/{number}"
    before = rows_of(app, number)
    body = {"tasks": ["i0", "i1"], "reason": "blurred"}
    assert app.post(f"{base}/withdraw", body).json() == {"campaign": number, "withdrawn": 2}
    row = rows_of(app, number)["i0"]
    assert (row["label"], row["status"], row["reason"]) == (None, "withdrawn", "withdrawn")
    assert app.post(f"{base}/withdraw", {"tasks": ["nowhere"]}).status_code == 422
    assert app.post(f"{base}/withdraw", {"tasks": []}).status_code == 422
    assert app.post(f"{base}/reopen", {"tasks": ["i0", "i1"]}).json()["reopened"] == 2
    assert {k: row["label"] for k, row in rows_of(app, number).items()} == {
        k: row["label"] for k, row in before.items()
    }


def test_columns_are_edited(labelled: Any) -> None:
    app, number = labelled
    where = f"/api/campaigns/{number}/items/{item(app, number, 'i2')}"
    body = {"columns": {"text": "better", "source": None, "image": "new.png"}}
    made = app.client.patch(where, json=body, headers=app.owner).json()
    assert made["before"] == {"text": "text 2", "source": "book", "image": None}
    assert made["warnings"] == ["1 file that items show was never uploaded: new.png"]
    assert app.get(where).json()["payload"] == {"text": "better", "image": "new.png"}
    assert "was never uploaded: new.png" in app.get(where.replace("/api/campaigns", "/c")).text
    refused = app.client.patch(where, json={"columns": {"task": "x"}}, headers=app.owner)
    assert (refused.status_code, "cannot change" in refused.text) == (422, True)


def test_workers_read_a_question_that_was_reworded(app: Lab) -> None:
    number = app.campaign(items=ROWS)
    who = app.worker(number)
    name = who.next()["task"]["question"]["name"]
    body = {"questions": {name: "Is it really so?"}, "reason": "clearer"}
    made = app.post(f"/api/campaigns/{number}/reword", body).json()
    assert made["after"]["questions"] == {name: "Is it really so?"}
    assert who.next()["task"]["question"] == {"name": name, "text": "Is it really so?"}
    refused = app.post(f"/api/campaigns/{number}/reword", {"questions": {"x": "y"}})
    assert (refused.status_code, "are fixed" in refused.text) == (422, True)


# ------------------------------------------------------------------------------ pages


def send(app: Lab, where: str, **form: Any) -> Any:
    return app.client.post(where, data=form, headers={**app.owner, "accept": "application/json"})


def test_the_page_of_an_item_labels_edits_and_withdraws(labelled: Any) -> None:
    app, number = labelled
    here = f"/c/{number}/items/{item(app, number, 'i3')}"
    assert send(app, f"{here}/label", label="c1", reason="why not").json() == {"go": here}
    page = app.get(here).text
    assert "Labelled by hand" in page
    assert "why not" in page
    assert "by hand" in app.get(f"/c/{number}/items").text
    assert ">i3</a>" in app.get(f"/c/{number}/items?label=c1").text
    assert "1 item labelled by hand" in app.get(f"/c/{number}").text
    nothing = send(app, f"{here}/label", label="")
    assert (nothing.status_code, "Choose a class" in nothing.text) == (422, True)
    assert send(app, f"{here}/label", undo="1").status_code == 200
    assert "Labelled by hand" not in app.get(here).text
    columns = {"column.text": "other words", "column.source": "book"}
    assert send(app, f"{here}/edit", **columns).json() == {"go": f"{here}?edited=1"}
    assert "other words" in app.get(here).text
    assert send(app, f"{here}/edit", **columns).json() == {"go": f"{here}?edited=0"}
    gone = send(app, f"/c/{number}/withdraw", task="i3", reason="x")
    assert gone.json() == {"go": f"/c/{number}/items?withdrawn=1"}
    assert "Withdrawn" in app.get(here).text
    assert "i3" in app.get(f"/c/{number}/items?status=withdrawn").text
    assert "1 item withdrawn" in app.get(f"/c/{number}").text
    assert send(app, f"/c/{number}/withdraw").status_code == 422
    assert send(app, f"/c/{number}/reopen", task="i3").status_code == 200
    assert "Withdrawn" not in app.get(here).text


def test_the_page_of_questions_rewords_them(app: Lab) -> None:
    number = app.campaign(items=ROWS)
    here = f"/c/{number}/questions"
    assert send(app, here, **{"text-0": "Is it so?", "class-0": "the first"}).status_code == 200
    page = app.get(here).text
    assert 'value="Is it so?"' in page
    assert 'value="the first"' in page
    entry = app.get(f"/api/campaigns/{number}/activity").json()[0]
    assert entry["action"] == "edit texts"
    assert set(entry["detail"]["after"]) == {"questions", "classes"}
    send(app, here, **{"text-0": "Is it so?"})
    assert app.get(f"/api/campaigns/{number}/activity").json()[0] == entry  # nothing has changed


# ------------------------------------------------------------------------------ files


def test_other_content_and_missing_files_are_reported(tmp_path: Path) -> None:
    with lab(media=tmp_path / "media") as app:
        number = app.campaign(items=ROWS, start=False)
        rows = "task,text,image\ni0,text 0,\ni0,other,\nn,a,a.png\nn,b,b.png\n"
        headers = {**app.owner, "content-type": "text/csv"}
        where = f"/api/campaigns/{number}/items"
        found = app.client.post(where, content=rows, headers=headers).json()
        assert (found["added"], found["conflicts"]) == (1, [2, 3, 5])
        assert found["missing"] == ["a.png", "b.png"]
        assert found["warnings"] == [
            "lines 2 and 3 have the same `task` but different content: line 2 is kept",
            "lines 4 and 5 have the same `task` but different content: line 4 is kept",
            "line 2: the item exists with other content and stays as it is; edit it in the "
            "campaign",
            "2 files that items show were never uploaded: a.png, b.png",
        ]
        words = "1 file that items show was never uploaded: a.png"
        for page in ("items", "share"):
            assert words in app.get(f"/c/{number}/{page}").text
        upload = f"/api/campaigns/{number}/media?name=a.png"
        app.client.post(upload, content=b"png", headers=app.owner)
        for page in ("items", "share"):
            assert words not in app.get(f"/c/{number}/{page}").text
        file = {"items": ("again.csv", io.BytesIO(b"task,text\ni1,new\ni2,text 2\n"), "text/csv")}
        sent = app.client.post(
            f"/c/{number}/items", files=file, headers={**app.owner, "accept": "application/json"}
        ).json()["go"]
        assert sent.endswith("added=0&same=0&aside=0&other=2&unit=line&lines=2.3")
        assert "exist with other content and stay as they are: lines 2, 3." in app.get(sent).text


def test_a_workbook_of_items_is_read(app: Lab) -> None:
    book = openpyxl.Workbook()
    for row in (["My items"], ["text", "task"], ["hello", 1], ["you", 2]):
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    number = app.campaign(items=ROWS, start=False)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    where = f"/api/campaigns/{number}/items"
    headers = {**app.owner, "content-type": kind}
    found = app.client.post(where, content=out.getvalue(), headers=headers).json()
    assert (found["read"], found["added"]) == (2, 2)
    file = {"items": ("items.xlsx", io.BytesIO(out.getvalue()), kind)}
    sent = app.client.post(
        f"/c/{number}/items", files=file, headers={**app.owner, "accept": "application/json"}
    )
    assert sent.json()["go"].endswith("added=0&same=2&aside=0")
