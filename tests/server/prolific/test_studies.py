"""Studies: created once, moved, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.prolific.client import ADDRESS, Client, ProlificError
from crowdtree.server.prolific.studies import WAIT_SECONDS, StudyRequest, create_study, move_study
from crowdtree.server.store import Store
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.owner import people as owner_people
from tests.server.prolific.conftest import PAID, WISH, ledger_calls
from tests.storelab import change, filled


def test_reward_time_and_code_follow_from_the_settings(app: Any, stub: Any) -> None:
    number = app.campaign(settings=PAID, start=False)
    found = create_study(app.store, stub.client, number, WISH, dry_run=True)
    assert (found["reward"], found["minutes"], found["places"]) == (20, 2, 10)
    assert stub.studies == {}
    assert ledger_calls(app, number) == []
    made = create_study(app.store, stub.client, number, WISH)
    assert made["changed"]
    assert made["study"] == "study1"
    study = stub.studies["study1"]
    assert study["reward"] == 20
    assert study["estimated_completion_time"] == 2
    settings = app.store.read(lambda c: get_campaign(c, number)).settings
    assert settings.money.completion_code == study["completion_codes"][0]["code"]
    assert settings.money.return_url.endswith(settings.money.completion_code)
    again = create_study(app.store, stub.client, number, WISH)
    assert not again["changed"]
    assert again["study"] == "study1"
    assert stub.posts("/studies/$") == 1
    assert ledger_calls(app, number) == [("create", "sent"), ("create", "done")]


def test_a_lost_reply_creates_no_second_study(app: Any, stub: Any) -> None:
    stub.studies["other"] = {"id": "other", "status": "ACTIVE", "internal_name": "x"}
    stub.studies["third"] = {"id": "third", "status": "ACTIVE", "internal_name": None}
    number = app.campaign(settings=PAID)
    stub.losing = "/studies/$"
    with pytest.raises(ProlificError, match="the study may exist"):
        create_study(app.store, stub.client, number, WISH)
    found = create_study(app.store, stub.client, number, WISH)
    assert found["study"] == "study3"  # on the second page of the list
    assert stub.posts("/studies/$") == 1


def test_a_fault_before_the_effect_is_repeated_after_a_while(app: Any, stub: Any) -> None:
    number = app.campaign(settings=PAID)
    stub.failing = ("/studies/$", 502)
    with pytest.raises(ProlificError, match="the study may exist"):
        create_study(app.store, stub.client, number, WISH)
    with pytest.raises(CrowdtreeError, match="try again in a minute"):
        create_study(app.store, stub.client, number, WISH)
    app.clock.now += WAIT_SECONDS
    assert create_study(app.store, stub.client, number, WISH)["study"] == "study1"
    assert len(stub.studies) == 1


def test_a_refusal_leaves_nothing_behind(app: Any, stub: Any) -> None:
    number = app.campaign(settings=PAID)
    with pytest.raises(ProlificError, match=r"reward: .*below the minimum\. \(400\)$"):
        create_study(app.store, stub.client, number, replace(WISH, seconds=600))
    assert app.store.read(lambda c: owner_people.join_links(c, number, app.clock())) == 0
    assert app.store.read(lambda c: get_campaign(c, number)).settings.money.completion_code == ""
    assert create_study(app.store, stub.client, number, WISH)["changed"]


def test_a_study_deleted_on_prolific_is_replaced(app: Any, stub: Any) -> None:
    number = app.campaign(settings=PAID)
    create_study(app.store, stub.client, number, WISH)
    first = stub.studies.pop("study1")
    assert create_study(app.store, stub.client, number, WISH, dry_run=True)["changed"] is False
    assert create_study(app.store, stub.client, number, WISH)["changed"]
    (second,) = stub.studies.values()
    assert second["internal_name"] != first["internal_name"]


UNFIT: list[tuple[dict[str, Any], StudyRequest, str]] = [
    ({"price": 0.0}, WISH, "settings: money.price"),
    ({"currency": "EUR"}, WISH, "GBP or USD, got 'EUR'"),
    ({"personal_codes": True}, WISH, "switch money.personal_codes off"),
    ({"may_join": "signed"}, WISH, "does not sign ids"),
    ({"max_workers": 5}, WISH, "places: expected 1 to people.max_workers"),
    ({"min_answers_for_code": 20_000}, WISH, "less than a day"),
    ({}, replace(WISH, url="http://label.example"), "url: Prolific sends"),
    ({}, replace(WISH, seconds=0.0), "seconds: expected"),
]


def test_settings_that_do_not_fit(app: Any, stub: Any) -> None:
    number = app.campaign(settings=PAID)
    usual = {"max_workers": 10_000, "personal_codes": False}
    for settings, wish, words in UNFIT:
        assert change(app, number, **PAID | usual | settings).status_code == 200
        with pytest.raises(CrowdtreeError, match=words):
            create_study(app.store, stub.client, number, wish)
    assert stub.calls == []
    assert ledger_calls(app, number) == []


def test_a_study_is_published_paused_resumed_and_stopped(app: Any, stub: Any) -> None:
    number = app.campaign(settings=PAID, start=False)
    with pytest.raises(CrowdtreeError, match="create it first"):
        move_study(app.store, stub.client, number, "publish")
    create_study(app.store, stub.client, number, WISH)
    with pytest.raises(CrowdtreeError, match="is draft: start it"):
        move_study(app.store, stub.client, number, "publish")
    app.post(f"/api/campaigns/{number}/start")
    found = move_study(app.store, stub.client, number, "publish", dry_run=True)
    assert "10 participants, 0.20 GBP each" in found["text"]
    assert stub.studies["study1"]["status"] == "UNPUBLISHED"
    for move, status in [
        ("publish", "ACTIVE"),
        ("pause", "PAUSED"),
        ("resume", "ACTIVE"),
        ("stop", "AWAITING REVIEW"),
    ]:
        stub.losing = "/transition/$"
        with pytest.raises(ProlificError, match="no reply"):
            move_study(app.store, stub.client, number, move)
        before = stub.posts("/transition/$")
        again = move_study(app.store, stub.client, number, move)
        assert (again["status"], again["changed"]) == (status, False)
        assert stub.posts("/transition/$") == before
    with pytest.raises(CrowdtreeError, match="cannot pause the study: it is awaiting review"):
        move_study(app.store, stub.client, number, "pause")


def test_two_processes_create_one_study(stub: Any, url: str) -> None:
    with Store(url).opened() as store, Store(url).opened() as other:
        number, _ = filled(store, 2, **PAID)
        stub.losing = "/studies/$"
        with pytest.raises(ProlificError):
            create_study(store, stub.client, number, WISH)
        assert create_study(other, stub.client, number, WISH)["study"] == "study1"
        assert not create_study(store, stub.client, number, WISH)["changed"]
    assert len(stub.studies) == 1


def test_tokens_and_addresses(monkeypatch: pytest.MonkeyPatch, stub: Any) -> None:
    with pytest.raises(ProlificError, match=r"Invalid token\. \(401\); check the token in CROWD"):
        Client("wrong", stub.address).list_studies()
    with pytest.raises(CrowdtreeError, match="expected an https address"):
        Client("t", "http://api.example")
    with pytest.raises(CrowdtreeError, match="expected an API token"):
        Client("two words")
    with pytest.raises(CrowdtreeError, match="expected an id of Prolific"):
        stub.client.get_study("../users/me")
    with pytest.raises(ProlificError, match="cannot reach Prolific") as found:
        Client("t", "http://127.0.0.1:9").create_study({})
    assert not found.value.uncertain
    monkeypatch.delenv("CROWDTREE_PROLIFIC_URL")
    assert Client.from_environment().address == ADDRESS
    monkeypatch.delenv("CROWDTREE_PROLIFIC_TOKEN")
    with pytest.raises(CrowdtreeError, match="set the environment variable"):
        Client.from_environment()


@pytest.mark.parametrize(
    ("failure", "words", "uncertain"),
    [
        (httpx.ConnectError("refused"), "cannot reach Prolific: refused", False),
        (httpx.ConnectTimeout(""), "cannot reach Prolific", False),
        (httpx.ReadTimeout(""), "no reply: ReadTimeout", True),
        (httpx.RemoteProtocolError("hung up"), "no reply: hung up", True),
        (httpx.Response(502, text="<html>"), r"status 502 \(502\)", True),
        (httpx.Response(302, headers={"location": "https://x.example"}), "status 302", True),
        (httpx.Response(400, json={"error": {"detail": {"reward": ["Low."]}}}), "Low.", False),
        (httpx.Response(200, text="OK"), "expected a JSON object", True),
    ],
)
def test_a_call_is_uncertain_unless_it_cannot_have_had_its_effect(
    monkeypatch: pytest.MonkeyPatch, failure: Any, words: str, uncertain: bool
) -> None:
    sent: list[httpx.Request] = []

    def respond(_: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        sent.append(request)
        if isinstance(failure, Exception):
            raise failure
        return failure

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", respond)
    with pytest.raises(ProlificError, match=words) as found:
        Client("secret").create_study({})
    assert found.value.uncertain is uncertain
    (request,) = sent
    assert str(request.url) == f"{ADDRESS}/studies/"
    assert request.headers["authorization"] == "Token secret"
