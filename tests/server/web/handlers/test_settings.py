"""The page of links and settings."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from sqlalchemy.engine import Connection

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree import design, example
from crowdtree import io as files
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import expected_answers
from crowdtree.server.settings.model import flat, kind_of, read_value, write_value
from crowdtree.server.store.db.tables import campaigns
from crowdtree.server.web.handlers.settings import FORM
from tests.short import full, settings_of
from tests.weblab import Lab, lab

WEB = Path(files.__file__).parents[1] / "server" / "web"


def test_numbers_are_read_as_people_write_them():
    assert read_value("money.price", "0,05") == 0.05
    assert read_value("checks.pause_below", "60%") == 0.6
    assert read_value("tasks.max_answers_per_worker", "") is None
    with pytest.raises(CrowdtreeError, match="budget: 'much' is not a number"):
        read_value("money.budget", "much")


def test_every_setting_is_on_the_page_and_is_written_as_it_is_read(app: Lab) -> None:
    page = app.get(f"/c/{app.campaign(start=False)}/share").text
    for name in FORM:
        assert f'name="{name}"' in page
    settings = settings_of(
        price=0.05, budget=20, gold_rate=0.07, pause_below=0.55, max_seconds_per_question=90
    )
    for name, value in settings.values().items():
        if name in FORM and kind_of(name) != "flag":
            assert read_value(name, write_value(name, value)) == value


def test_the_page_says_what_people_per_label_cost(app: Lab) -> None:
    settings = {"people_per_item": 4, "price": 0.1, "currency": "EUR"}
    number = app.campaign(start=False, settings=settings, example="table1")
    page = app.get(f"/c/{number}/share").text
    table = page[page.index('id="people"') : page.index("</table>", page.index('id="people"'))]
    rows = [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in table.split("<tr>")[2:]]
    assert [row[0] for row in rows] == ["1", "2", "3", "4 (chosen)"]
    answers = [float(row[1]) for row in rows]
    assert answers == sorted(set(answers)), "every further person costs something with this tree"
    assert answers[0] == pytest.approx(expected_answers(design(example("table1"))), abs=0.01)
    costs = [float(row[3].removesuffix(" EUR")) for row in rows]
    assert costs == pytest.approx([20 * 0.1 * each for each in answers], abs=0.1)


def test_every_setting_can_be_changed_on_the_page(app: Lab) -> None:
    number = app.campaign(start=False)
    form = {
        "flags": "1",
        "tasks.one_question_per_worker": "on",
        "tasks.max_seconds_per_question": "15",
        "labels.max_skips": "5",
        "checks.gold_rate": "10 %",
        "checks.pause_below": "60",
        "checks.pause_after_checks": "20",
        "checks.gold_first": "3",
        "labels.close_stalled_after_seconds": "48",
        "people.participant_parameter": "pid",
        "money.budget": "",
        "name": "New",
    }
    app.client.post(f"/c/{number}/share", data=form, headers=app.owner)
    found = app.get(f"/api/campaigns/{number}/definition").json()
    settings = found["settings"]
    assert found["name"] == "New"
    expected = {
        "one_question_per_worker": True,
        "automatically": False,
        "one_question_per_item": False,
        "max_seconds_per_question": 900.0,
        "max_skips": 5,
        "gold_rate": 0.1,
        "pause_below": 0.6,
        "pause_after_checks": 20,
        "gold_first": 3,
        "close_stalled_after_seconds": 172_800.0,
        "budget": None,
        "participant_parameter": "pid",
    }
    for name, value in full(expected).items():
        assert flat(settings)[name] == value, name


def test_the_page_says_who_answers_and_what_each_setting_costs(app: Lab) -> None:
    number = app.campaign(start=False, settings={"require_trusted_answer": True})
    path = f"/c/{number}/share"
    assert '<input type="radio" name="who" value="open" checked' in app.get(path).text
    sent = {"who": "colleagues"}
    changed = app.client.patch(
        f"/api/campaigns/{number}/settings", json=sent, headers=app.owner
    ).json()
    assert (changed["people"]["max_workers"], changed["checks"]["pause_suspects"]) == (50, False)
    page = app.get(path).text
    assert "<b>Colleagues I know.</b>" in page
    assert "Each item takes at least 1 answer." in page
    app.client.post(path, data={"people.max_workers": "51"}, headers=app.owner)
    assert "Settings of your own" in app.get(path).text
    refused = app.client.patch(
        f"/api/campaigns/{number}/settings", json={"who": "friends"}, headers=app.owner
    )
    assert "who: expected colleagues, open, platform or models" in refused.json()["message"]


def test_links_carry_the_address_that_people_use() -> None:
    with lab(url="https://label.example") as app:
        number = app.campaign(start=False)
        for path in (f"/c/{number}/share", "/access"):
            assert '<meta name="base" content="https://label.example">' in app.get(path).text


# ------------------------------------------------------------------------------ concurrent edits


def seen_in(app: Lab, path: str) -> str:
    found = re.search(r'name="seen" value="([^"]*)"', app.get(path).text)
    assert found is not None
    return html.unescape(found[1])


def test_edits_of_two_people_are_merged_by_field(app: Lab) -> None:
    number = app.campaign(start=False)
    path = f"/c/{number}/share"
    seen = seen_in(app, path)
    script = {**app.owner, "accept": "application/json"}
    app.client.patch(
        f"/api/campaigns/{number}/settings", json={"money": {"price": 0.25}}, headers=app.owner
    )
    form = {"seen": seen, "money.price": "", "money.completion_code": "C1", "name": "lab"}
    found = app.client.post(path, data=form, headers=script)
    assert found.status_code == 200
    settings = app.get(f"/api/campaigns/{number}/definition").json()["settings"]["money"]
    assert (settings["price"], settings["completion_code"]) == (0.25, "C1")
    # The page stays open: the next save starts from what was saved.
    again = {
        **form,
        "seen": found.json()["seen"],
        "money.price": "0.25",
        "money.completion_code": "C2",
    }
    assert app.client.post(path, data=again, headers=script).status_code == 200


def test_edits_of_the_same_field_are_refused_with_what_changed(app: Lab) -> None:
    number = app.campaign(start=False)
    path = f"/c/{number}/share"
    seen = seen_in(app, path)
    app.client.patch(
        f"/api/campaigns/{number}/settings", json={"money": {"price": 0.25}}, headers=app.owner
    )
    form = {"seen": seen, "money.price": "0.5", "tasks.thanks": "Bye", "name": "other"}
    found = app.client.post(path, data=form, headers={**app.owner, "accept": "application/json"})
    assert (found.status_code, found.json()["error"]) == (409, "changed")
    assert "money.price was changed to 0.25 since" in found.json()["message"]
    settings = app.get(f"/api/campaigns/{number}/definition").json()
    assert (settings["settings"]["tasks"]["thanks"], settings["name"]) == ("", "lab")


def test_examples_are_merged_by_question(app: Lab) -> None:
    number = app.campaign(start=False)
    path = f"/c/{number}/questions"
    seen = seen_in(app, path)
    first, second = ({"seen": seen, f"example-{k}": f"yes {k}"} for k in (0, 1))
    both = {f"example-{k}": "" for k in range(4)} | {"instructions": ""}
    for form in (first, second):
        sent = app.client.post(path, data=both | form, headers=app.owner, follow_redirects=False)
        assert sent.status_code == 303
    tasks = app.get(f"/api/campaigns/{number}/definition").json()["settings"]["tasks"]
    assert sorted(tasks["examples"].values()) == ["yes 0", "yes 1"]
    clash = both | {"seen": seen, "example-0": "another"}
    assert app.client.post(path, data=clash, headers=app.owner).status_code == 409


# ------------------------------------------------------------------------------ limits

HUGE = "99999999999999999999"


@pytest.mark.parametrize("text", [HUGE, "1e999", "nan", "-inf", "1" * 400])
def test_numbers_out_of_range_are_refused(app: Lab, text: str) -> None:
    number = app.campaign(start=False)
    headers = {**app.owner, "accept": "application/json"}
    sent = {**app.owner, "content-type": "application/json"}
    written = text.replace("nan", "NaN").replace("inf", "Infinity")
    for name in (name for name in FORM if kind_of(name) == "number"):
        group, short = name.split(".")
        found = app.client.post(f"/c/{number}/share", data={name: text}, headers=headers)
        assert found.status_code == 422, found.text
        raw = f'{{"{group}": {{"{short}": {written}}}}}'
        changed = app.client.patch(f"/api/campaigns/{number}/settings", content=raw, headers=sent)
        assert changed.status_code == 422, changed.text


def test_a_stored_number_out_of_range_breaks_nothing(app: Lab) -> None:
    number, other = app.campaign(), app.campaign(example="table1", workers=0)

    wrong = {"tasks": {"max_answers_per_worker": int(HUGE)}}

    def spoil(connection: Connection) -> None:
        mine = campaigns.update().where(campaigns.c.id == number)
        connection.execute(mine.values(settings=json.dumps(wrong)))

    app.store.write(spoil)
    definition = app.get(f"/api/campaigns/{number}/definition").json()
    assert definition["settings"]["tasks"]["max_answers_per_worker"] is None
    assert app.worker(number).next()["task"] is not None
    worker = app.worker(other)
    while worker.work():
        pass
    status = f"/api/campaigns/{other}"
    app.settle()
    assert app.get(status).json()["status"] == "finished"
