"""Owner pages over HTTP, without a browser: webhooks, tokens, questions, settings, faults."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="needs the server's packages")

from crowdtree.store.background import outbox
from crowdtree.store.background.outbox import Message
from crowdtree.web.pages import routers
from weblab import Lab, lab

EVIL = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def app():
    with lab(private_webhooks=True) as made:
        yield made


def message(number: int, hook: int, last: int, failures: int = 0) -> Message:
    sent = {"id": f"{hook}-{last}", "event": "items.labelled", "campaign": number}
    return Message(hook, "", "", failures, {**sent, "labels": [{}] * 3}, last)  # type: ignore[typeddict-item]


def hooked(app: Lab, number: int) -> int:
    url = {"url": "http://127.0.0.1:9/x"}
    return int(app.post(f"/api/campaigns/{number}/webhooks", url).json()["id"])


def settle(app: Lab, found: Message, error: str = "") -> None:
    app.store.write(lambda c: outbox.settle_hook(c, found, error, app.clock()))


def test_deliveries_are_remembered_the_last_ones_only(app: Lab) -> None:
    number = app.campaign(start=False)
    hook, other = hooked(app, number), hooked(app, number)
    for last in range(outbox.KEPT + 5):
        settle(app, message(number, hook, last), "status 500" if last % 2 else "")
    settle(app, message(number, other, 1))
    path = f"/api/campaigns/{number}/webhooks/{hook}/deliveries"
    found = app.get(path).json()
    assert [line["message"] for line in found] == [
        f"{hook}-{last}" for last in reversed(range(5, outbox.KEPT + 5))
    ]
    assert found[0]["labels"] == 3
    assert {line["error"] for line in found} == {"", "status 500"}
    assert len(app.get(f"/api/campaigns/{number}/webhooks/{other}/deliveries").json()) == 1
    elsewhere = app.campaign(start=False)
    assert app.get(f"/api/campaigns/{elsewhere}/webhooks/{hook}/deliveries").status_code == 404
    assert app.post(f"/api/campaigns/{elsewhere}/webhooks/{hook}/retry").status_code == 404
    gone = app.client.delete(f"/api/campaigns/{number}/webhooks/{hook}", headers=app.owner)
    assert gone.status_code == 200
    settle(app, message(number, hook, 99))  # was on its way when it was removed
    assert app.get(path).status_code == 404


def test_a_webhook_that_was_given_up_can_be_tried_again(app: Lab) -> None:
    number = app.campaign(start=False)
    hook = hooked(app, number)
    settle(app, message(number, hook, 1, failures=outbox.MOST_FAILURES - 1), "connection refused")
    page = app.get(f"/c/{number}/webhooks").text
    assert "given up" in page
    assert "connection refused" in page
    app.post(f"/api/campaigns/{number}/webhooks/{hook}/retry")
    row = app.get(f"/api/campaigns/{number}/webhooks").json()[0]
    assert (row["status"], row["failures"], row["next_try_at"]) == ("active", 0, 0.0)


def test_a_draft_with_webhooks_can_be_discarded(app: Lab) -> None:
    number = app.campaign(start=False)
    settle(app, message(number, hooked(app, number), 1))
    assert app.client.post(f"/c/{number}/discard", headers=app.owner).status_code == 200
    assert app.get(f"/api/campaigns/{number}").status_code == 404


def test_tokens_are_listed_without_their_secrets_and_end_by_their_id(app: Lab) -> None:
    made = app.post("/api/tokens", {"name": "export"}).json()
    rows = app.get("/api/tokens").json()
    assert {row["name"]: (row["kind"], row["this"]) for row in rows} == {
        "export": ("token", False),
        "lab": ("token", True),
    }
    assert made["token"] not in str(rows)
    page = app.get("/access").text
    assert "export" in page
    assert made["token"] not in page
    app.client.delete(f"/api/tokens/{made['id']}", headers=app.owner)
    assert [row["name"] for row in app.get("/api/tokens").json()] == ["lab"]


def test_a_login_link_works_once_and_not_for_long(app: Lab) -> None:
    link = app.post("/api/login-link").json()["link"]
    app.client.cookies.clear()
    first = app.client.get(link, follow_redirects=False)
    assert first.status_code == 303
    app.client.cookies.clear()
    assert app.client.get(link, follow_redirects=False).status_code == 401
    late = app.post("/api/login-link").json()["link"]
    app.clock.now += 1000
    assert app.client.get(late, follow_redirects=False).status_code == 401
    kinds = [row["kind"] for row in app.get("/api/tokens").json()]
    assert sorted(kinds) == ["session", "token"]


def test_examples_are_saved_for_each_question_and_reach_the_worker(app: Lab) -> None:
    number = app.campaign()
    page = app.get(f"/c/{number}/questions").text
    places = re.findall(r'name="(example-\d+)"', page)
    assert len(places) == 4  # the plan asks four of the five
    form = {places[0]: "**Yes:** one", places[1]: f"evil {EVIL}", "instructions": "Read."}
    sent = app.client.post(f"/c/{number}/questions", data=form, headers=app.owner)
    assert sent.status_code == 200
    settings = app.get(f"/api/campaigns/{number}/definition").json()["settings"]
    assert set(settings["examples"].values()) == {"**Yes:** one", f"evil {EVIL}"}
    assert settings["instructions"] == "Read."
    page = app.get(f"/c/{number}/questions").text
    assert "<strong>Yes:</strong>" in page
    assert "<img" not in page
    token = app.worker(number).token
    work = app.client.get("/work", headers={"authorization": f"Bearer {token}"}).text
    assert 'data-question="T1"' in work
    assert "<img" not in work
    # what is emptied is gone, what is not in the form stays
    app.client.post(f"/c/{number}/questions", data={places[0]: " "}, headers=app.owner)
    settings = app.get(f"/api/campaigns/{number}/definition").json()["settings"]
    assert list(settings["examples"].values()) == [f"evil {EVIL}"]


def test_markdown_is_seen_before_it_is_saved_and_made_safe(app: Lab) -> None:
    found = app.post("/preview", {"text": f"**b** {EVIL}"}).json()["html"]
    assert "<strong>b</strong>" in found
    assert "<img" not in found
    assert app.client.post("/preview", json={"text": "x"}).status_code == 401


def test_long_instructions_fit_through_the_door(app: Lab) -> None:
    number = app.campaign(start=False)
    form = {"instructions": "ä" * 50_000}
    assert app.client.post(f"/c/{number}/share", data=form, headers=app.owner).status_code == 200
    settings = app.get(f"/api/campaigns/{number}/definition").json()["settings"]
    assert len(settings["instructions"]) == 50_000
    assert settings["finish_by_itself"] is True  # the form did not speak of it


def test_every_setting_can_be_changed_on_the_page(app: Lab) -> None:
    number = app.campaign(start=False)
    form = {
        "flags": "1",
        "dedicated": "on",
        "lease_seconds": "15",
        "most_skips": "5",
        "gold_rate": "10 %",
        "pause_below": "60",
        "pause_after": "20",
        "gold_first": "3",
        "give_up_seconds": "2",
        "participant_parameter": "pid",
        "budget": "",
        "name": "New",
    }
    app.client.post(f"/c/{number}/share", data=form, headers=app.owner)
    found = app.get(f"/api/campaigns/{number}/definition").json()
    settings = found["settings"]
    assert found["name"] == "New"
    for name, value in {
        "dedicated": True,
        "finish_by_itself": False,
        "one_question_per_item": False,
        "lease_seconds": 900.0,
        "most_skips": 5,
        "gold_rate": 0.1,
        "pause_below": 0.6,
        "pause_after": 20,
        "gold_first": 3,
        "give_up_seconds": 172_800.0,
        "budget": None,
        "participant_parameter": "pid",
    }.items():
        assert settings[name] == value, name


def test_names_with_markup_are_harmless_on_every_page(app: Lab) -> None:
    number = app.campaign(f"task,text\n'{EVIL[2:]},x\n", settings={"instructions": EVIL})
    app.client.post(f"/c/{number}/share", data={"name": EVIL}, headers=app.owner)
    app.worker(number, EVIL).work()
    app.post("/api/tokens", {"name": EVIL})
    hook = {"url": "http://127.0.0.1:9/<img>"}
    app.post(f"/api/campaigns/{number}/webhooks", hook)
    names = ("", "/items", "/workers", "/questions", "/plan", "/share", "/webhooks")
    for path in ("/", "/access", *(f"/c/{number}{name}" for name in names)):
        page = app.get(path)
        assert page.status_code == 200, path
        assert "<img" not in page.text, path


def test_a_fault_is_a_page_and_not_a_trace(app: Lab, monkeypatch, caplog) -> None:
    def broken(*_):
        raise RuntimeError("secret detail")

    monkeypatch.setattr("crowdtree.web.pages.campaigns.progress", broken)
    app.campaign()
    page = app.get("/")
    assert page.status_code == 500
    assert "Something went wrong on the server" in page.text
    assert "secret detail" not in page.text
    assert "secret detail" in caplog.text


def test_links_carry_the_address_that_people_use() -> None:
    with lab(url="https://label.example") as app:
        number = app.campaign(start=False)
        for path in (f"/c/{number}/share", "/access"):
            assert '<meta name="base" content="https://label.example">' in app.get(path).text


DOORS = {"/login", "/w/{token}", "/join/{token}", "/tokens.css"}
WORK = {"/work", "/work/next", "/work/undo"}


def test_every_page_is_closed_to_strangers_and_to_workers(app: Lab) -> None:
    number = app.campaign()
    worker = app.worker(number)
    pages = [
        (method, route.path)
        for router in routers()
        for route in router.routes
        if route.path not in DOORS | WORK
        for method in route.methods
    ]
    assert len(pages) > 20
    for method, path in pages:
        where = re.sub(r"\{\w+\}", "1", path)
        for headers in ({}, worker.headers):
            found = app.client.request(method, where, headers=headers)
            assert found.status_code == 401, (method, where, found.text[:200])
    for path in WORK - {"/work"}:
        assert app.client.post(path, json={}).status_code == 401
