"""Owners: names, roles, tokens, and what the activity log says about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")


from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import NotFound, Store, tokens
from crowdtree.server.store.db.activity import ORIGIN, Origin, list_activity, list_people
from crowdtree.server.store.owner import owners
from tests.weblab import Clock


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url, clock=Clock()).opened() as made:
        yield made


def add(store: Store, name: str, role: Any = "editor") -> int:
    return store.write(lambda c: owners.add(c, name, role, store.clock()))


def found(store: Store, token: str) -> tokens.Credential | None:
    return store.read(lambda c: tokens.find(c, token, store.clock()))


def test_tokens_have_the_role_of_their_owner_at_the_moment(store: Store) -> None:
    ann = add(store, "Ann", "viewer")
    token = store.write(lambda c: owners.make_token(c, ann, "x", 0.0, read_only=True))
    credential = found(store, token)
    assert credential is not None
    assert (credential.owner, credential.owner_role, credential.read_only) == ("Ann", "viewer", 1)
    store.write(lambda c: owners.set_role(c, ann, "admin", 1.0))
    assert found(store, token).owner_role == "admin"  # type: ignore[union-attr]
    assert store.write(lambda c: owners.revoke(c, ann, 2.0)) == 1
    assert found(store, token) is None


def test_a_session_that_begins_while_its_owner_is_removed_does_not_work(store: Store) -> None:
    ann = add(store, "Ann")
    store.write(lambda c: owners.revoke(c, ann, 2.0))
    late = store.write(lambda c: tokens.issue(c, "owner", 3.0, owner_id=ann))
    assert found(store, late) is None


def test_names_are_told_apart_by_more_than_their_case(store: Store) -> None:
    änne = add(store, "  Änne   Muster ")
    for bad in ("änne muster", "Owner", "SERVER", "", "a\x00b", "x" * 201, "0" * 16):
        with pytest.raises(CrowdtreeError) as error:
            add(store, bad)
        assert "\n" not in str(error.value)
    assert store.read(lambda c: owners.find(c, "ÄNNE MUSTER")) == änne
    assert store.read(lambda c: owners.find(c, "OWNER")) is None
    with pytest.raises(NotFound, match="nobody called 'Eve'"):
        store.read(lambda c: owners.find(c, "Eve"))


def test_somebody_who_was_removed_can_come_back(store: Store) -> None:
    ann = add(store, "Ann", "admin")
    old = store.write(lambda c: owners.make_token(c, ann, "x", 0.0))
    store.write(lambda c: owners.revoke(c, ann, 1.0))
    with pytest.raises(NotFound):
        store.write(lambda c: owners.set_role(c, ann, "admin", 1.0))
    assert add(store, "ann", "viewer") == ann
    assert found(store, old) is None
    rows = store.read(lambda c: owners.list_owners(c, 2.0))
    assert [(row["name"], row["role"]) for row in rows] == [("owner", "admin"), ("Ann", "viewer")]


def test_the_list_counts_what_each_owner_can_use(store: Store) -> None:
    ann = add(store, "Ann")
    now = store.clock()
    store.write(lambda c: owners.make_token(c, ann, "x", now))
    store.write(lambda c: owners.make_link(c, ann, now, 10.0))
    store.write(lambda c: tokens.issue(c, "owner", now, seconds=10.0))
    rows = store.read(lambda c: owners.list_owners(c, now))
    counts = [(row["name"], row["sessions"], row["tokens"], row["links"]) for row in rows]
    assert counts == [("owner", 1, 0, 0), ("Ann", 0, 1, 1)]
    store.write(lambda c: owners.make_link(c, ann, now, 10.0, replace=True))
    assert store.read(lambda c: owners.list_owners(c, now))[1]["links"] == 1


def test_the_log_says_who_and_from_where(store: Store) -> None:
    before = ORIGIN.set(Origin("Ann", "192.0.2.7"))
    try:
        add(store, "Ben")
    finally:
        ORIGIN.reset(before)
    add(store, "Cem")
    entries = store.read(lambda c: list_activity(c))
    said = [(row["person"], row["address"], row["detail"]["name"]) for row in entries]
    assert said == [("", "", "Cem"), ("Ann", "192.0.2.7", "Ben")]
    assert store.read(lambda c: list_people(c)) == ["Ann"]
    assert [
        row["detail"]["name"] for row in store.read(lambda c: list_activity(c, person="Ann"))
    ] == ["Ben"]
    older = store.read(lambda c: list_activity(c, before=entries[0]["id"], most=5))
    assert older == entries[1:]
