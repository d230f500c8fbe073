"""Who may join: limits on people, and participant ids that nobody can choose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

from crowdtree.client import Client
from crowdtree.core.errors import CrowdtreeError
from crowdtree.participants import sign_link, signature_of
from crowdtree.server.store.db.tables import workers
from tests.weblab import Lab, lab


@pytest.fixture
def app() -> Iterator[Lab]:
    with lab() as made:
        yield made


def opened(app: Lab, number: int) -> tuple[str, str]:
    """The path of a join link, and its token."""
    made = app.post(f"/api/campaigns/{number}/join-link").json()
    return made["link"], made["token"]


def join(app: Lab, path: str, **headers: str) -> Any:
    """Open a join link in a fresh browser."""
    app.client.cookies.clear()
    return app.client.get(path, follow_redirects=False, headers=headers)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("max_workers", 403, "As many people take part as are needed"),
        ("max_workers_per_address", 403, "As many people have joined from your network"),
        ("max_joins_per_hour", 429, "within the last hour"),
    ],
)
def test_limits_on_people(app: Lab, name: str, code: int, words: str) -> None:
    number = app.campaign(settings={name: 2})
    link, token = opened(app, number)
    for participant in ("p1", "p2", "p1"):  # the same person again does not count
        assert join(app, f"{link}?participant={participant}").status_code == 303
    refused = join(app, link)
    assert (refused.status_code, words in refused.text) == (code, True)
    assert words in app.client.post("/api/join", json={"token": token}).json()["message"]
    assert join(app, f"{link}?participant=p2").status_code == 303
    assert app.worker(number).next()["task"]  # the owner invites whom they like
    app.clock.now += 3601
    assert (join(app, link).status_code == 303) == (name == "max_joins_per_hour")


def test_blocked_workers_leave_room_for_others(app: Lab) -> None:
    """Who fills a campaign with joins cannot keep others out once the owner has blocked them."""
    number = app.campaign(settings={"max_workers": 2})
    link, _ = opened(app, number)
    assert [join(app, link).status_code for _ in range(3)] == [303, 303, 403]
    page = app.client.get(f"/c/{number}", headers=app.owner).text
    assert "Nobody else can join by the open link: 2 workers may take part." in page
    first, *_ = app.get(f"/api/campaigns/{number}/workers").json()
    app.post(f"/api/campaigns/{number}/workers/{first['id']}/block")
    assert [join(app, link).status_code for _ in range(2)] == [303, 403]


@pytest.mark.parametrize(
    "variant",
    ["ann ", " ann", "ann\n", "ann\u200b", "ann\u00a0", "an\u00adn", " ", "\u200b", "\x00"],
)
def test_ids_that_look_like_another_are_refused(app: Lab, variant: str) -> None:
    number = app.campaign()
    link, token = opened(app, number)
    assert join(app, f"{link}?participant=ann").status_code == 303
    app.client.cookies.clear()
    refused = app.client.post("/api/join", json={"token": token, "participant": variant})
    assert (refused.status_code, refused.json()["error"]) == (422, "input")
    assert "visible characters" in refused.json()["message"]
    with pytest.raises(CrowdtreeError, match="visible characters"):
        sign_link(f"http://testserver{link}", "key", variant)


def test_a_link_that_the_platform_has_not_filled_in_is_refused(app: Lab) -> None:
    """Otherwise all who open it would be one worker."""
    link, _ = opened(app, app.campaign())
    refused = join(app, link + "?PROLIFIC_PID={{%25PROLIFIC_PID%25}}")
    assert (refused.status_code, "carries no participant id" in refused.text) == (403, True)


def test_addresses_are_told_apart_and_not_stored(app: Lab) -> None:
    number = app.campaign(settings={"max_workers_per_address": 1})
    marks = app.store.read(lambda c: c.execute(sa.select(workers.c.network)).scalars().all())
    assert marks == []
    link, _ = opened(app, number)
    assert join(app, link).status_code == 303
    assert join(app, link).status_code == 403
    marks = app.store.read(lambda c: c.execute(sa.select(workers.c.network)).scalars().all())
    assert [len(mark) for mark in marks] == [32]
    assert "testclient" not in marks[0]


def test_a_campaign_can_require_a_participant_id(app: Lab) -> None:
    number = app.campaign(settings={"may_join": "named"})
    link, token = opened(app, number)
    refused = join(app, link)
    assert (refused.status_code, "carries no participant id" in refused.text) == (403, True)
    assert app.client.post("/api/join", json={"token": token}).status_code == 403
    assert join(app, f"{link}?PROLIFIC_PID=p1").status_code == 303


def signed(app: Lab, number: int, participant: str, **options: Any) -> str:
    """A signed link, without the address of the server."""
    link, _ = opened(app, number)
    key = app.get(f"/api/campaigns/{number}/signing-key").json()["key"]
    made = sign_link(f"http://testserver{link}", key, participant, now=app.clock(), **options)
    return made.removeprefix("http://testserver")


def test_only_signed_ids_join_where_they_are_required(app: Lab) -> None:
    number = app.campaign(settings={"may_join": "signed"})
    link = signed(app, number, "p1", seconds=60)
    assert join(app, link).status_code == 303
    assert join(app, link).status_code == 303  # the same worker again
    bare = link.partition("?")[0]
    other = app.campaign(settings={"may_join": "signed"})
    forged = [
        bare,
        f"{bare}?participant=p2",
        link.replace("participant=p1", "participant=p2"),
        link.replace("expires=", "expires=9"),
        link[:-1] + ("0" if link[-1] != "0" else "1"),
        f"{link}&nonce=x",
        bare + "?" + urlsplit(signed(app, other, "p1")).query,
        bare + "?participant=p2&expires=x&signature=%00%ff",
    ]
    for path in forged:
        assert join(app, path).status_code == 403, path
    app.clock.now += 61
    expired = join(app, link)
    assert (expired.status_code, "has expired" in expired.text) == (403, True)
    rows = app.get(f"/api/campaigns/{number}/workers").json()
    assert [row["external_id"] for row in rows] == ["p1"]


def test_a_signing_key_is_replaced_and_revoked(app: Lab) -> None:
    number = app.campaign(settings={"may_join": "signed"})
    path = f"/api/campaigns/{number}/settings"

    def change(**settings: int) -> int:
        return int(app.client.patch(path, json={"people": settings}, headers=app.owner).status_code)

    old = urlsplit(signed(app, number, "p1")).query
    assert change(signing_key=1) == 200
    new = signed(app, number, "p2")
    old = f"{new.partition('?')[0]}?{old}"  # a new join link replaces the one before
    assert [join(app, link).status_code for link in (old, new)] == [303, 303]
    assert "Revoke older keys" in app.get(f"/c/{number}/share").text
    assert change(oldest_signing_key=1) == 200
    assert "Revoke older keys" not in app.get(f"/c/{number}/share").text
    assert [join(app, link).status_code for link in (old, new)] == [403, 303]
    for wrong in ({"oldest_signing_key": 0}, {"signing_key": 0}, {"oldest_signing_key": 2}):
        assert change(**wrong) == 422, wrong
    assert change(signing_key=11) == 422  # too many keys at once
    assert change(signing_key=11, oldest_signing_key=11) == 200
    assert [join(app, link).status_code for link in (old, new)] == [403, 403]


def test_a_wrong_signature_is_refused_also_where_none_is_required(app: Lab) -> None:
    link, _ = opened(app, app.campaign())
    path = f"{link}?participant=p1&expires=9999999999&signature={'0' * 64}"
    assert join(app, path).status_code == 403


def test_a_link_for_one_use_is_not_replayed(app: Lab) -> None:
    number = app.campaign(settings={"may_join": "signed"})
    link = signed(app, number, "p1", once=True)
    assert join(app, link).status_code == 303
    again = app.client.get(link, follow_redirects=False)  # the same browser
    assert again.status_code == 303
    stolen = join(app, link)
    assert (stolen.status_code, "was used already" in stolen.text) == (403, True)


def test_a_blocked_participant_does_not_come_back(app: Lab) -> None:
    number = app.campaign(settings={"may_join": "signed"})
    link = signed(app, number, "p1")
    assert join(app, link).status_code == 303
    [row] = app.get(f"/api/campaigns/{number}/workers").json()
    app.post(f"/api/campaigns/{number}/workers/{row['id']}/block")
    for path in (link, signed(app, number, "p1"), opened(app, number)[0]):
        assert join(app, path).status_code in (401, 403)
    assert len(app.get(f"/api/campaigns/{number}/workers").json()) == 1


def test_the_signing_key_is_the_campaigns_own(app: Lab) -> None:
    numbers = (app.campaign(), app.campaign())
    keys = [app.get(f"/api/campaigns/{n}/signing-key").json()["key"] for n in numbers]
    assert len(set(keys)) == 2
    definition = app.get(f"/api/campaigns/{numbers[0]}/definition").text
    assert keys[0] not in definition


def test_the_client_opens_signed_links(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    def post(_self: Client, path: str, body: Any) -> Any:
        sent.append((path, body))
        return {"token": "t"}

    monkeypatch.setattr(Client, "post", post)
    link = sign_link("https://label.example/join/abc", "key", "ann", now=0.0)
    made = Client.of_link(link)
    assert made.headers == {"authorization": "Bearer t"}
    query = dict(parse_qsl(urlsplit(link).query))
    assert sent == [("/api/join", {"token": "abc", **query})]
    assert query["signature"] == signature_of("key", "ann", 86400)
