"""`crowdtree owner`: people, links that log in, and what may be revoked or deleted."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="needs the server's packages")

from crowdtree.server.store import Store, tokens
from crowdtree.server.store.db.activity import list_activity
from tests.cli.helpers import complaint, result, run
from tests.storelab import filled, work


@pytest.fixture
def database(tmp_path: Any) -> str:
    path = str(tmp_path / "c.db")
    with Store(path).opened():
        pass
    return path


def access(capsys: Any, database: str) -> Any:
    return result(capsys, "owner", "list", "--database", database)["access"]


def test_links_are_made_listed_and_revoked(capsys: Any, database: str) -> None:
    options = ("--database", database)
    made = result(capsys, "owner", "link", *options, "--url", "https://label.example/")
    base, _, token = str(made["link"]).partition("/login?token=")
    assert base == "https://label.example"
    run("owner", "link", *options)
    assert capsys.readouterr().out.startswith("http://127.0.0.1:8321/login?token=")
    with Store(database).opened() as store:
        now = store.clock()
        assert store.read(lambda c: tokens.find(c, token, now)) is not None
        store.write(lambda c: tokens.issue(c, "owner", now, name="script"))
    rows = access(capsys, database)
    assert sorted(row["kind"] for row in rows) == ["link", "link", "token"]
    assert token not in str(rows)
    mine = tokens.hashed(token)[: tokens.ID_LENGTH]
    assert result(capsys, "owner", "revoke", mine, *options) == {"revoked": 1}
    with Store(database).opened() as store:
        assert not store.write(lambda c: tokens.take_once(c, token, store.clock()))
    run("owner", "list", *options)
    shown = capsys.readouterr().out
    assert mine not in shown
    assert "until revoked  owner: script" in shown
    assert result(capsys, "owner", "revoke", "--all", *options) == {"revoked": 2}
    run("owner", "list", *options)
    assert "no token, session or unused link" in capsys.readouterr().out


def test_mistakes_change_nothing(capsys: Any, database: str) -> None:
    options = ("--database", database)
    result(capsys, "owner", "link", *options)
    (row,) = access(capsys, database)
    for words, said in (
        ((), "give names or ids from crowdtree owner list, or --all"),
        ((row["id"], "--all"), "give names or ids from crowdtree owner list, or --all"),
        ((row["id"], "0" * 16), "0000000000000000: there is no such token"),
        ((row["id"][:4],), "there is nobody called"),
    ):
        assert said in complaint(capsys, "owner", "revoke", *words, *options)
    assert "expected https://NAME" in complaint(capsys, "owner", "link", "--url", "x", *options)
    assert "--hours" in complaint(capsys, "owner", "link", "--hours", "nan", *options)
    assert access(capsys, database) == [row]


def test_people_get_roles_links_and_tokens(capsys: Any, database: str) -> None:
    options = ("--database", database)
    made = result(capsys, "owner", "add", "Ann", "--role", "editor", *options)
    assert made["link"].startswith("http://127.0.0.1:8321/login?token=")
    assert result(capsys, "owner", "role", "ann", "admin", *options)["role"] == "admin"
    token = result(capsys, "owner", "token", "export", "--owner", "Ann", "--read-only", *options)
    link = result(capsys, "owner", "link", "Ann", *options)["link"].partition("token=")[2]
    with Store(database).opened() as store:
        for each, read_only in ((token["token"], True), (link, False)):
            found = store.read(lambda c, each=each: tokens.find(c, each, store.clock()))
            assert found is not None
            assert (found.owner, found.owner_role) == ("Ann", "admin")
            assert bool(found.read_only) == read_only
    people = result(capsys, "owner", "list", *options)["people"]
    assert [(row["name"], row["role"]) for row in people] == [("owner", "admin"), ("Ann", "admin")]
    run("owner", "list", *options)
    shown = capsys.readouterr().out
    assert "admin    Ann" in shown
    assert "Ann: export (read-only)" in shown
    assert result(capsys, "owner", "revoke", "Ann", *options) == {"revoked": 3}
    assert access(capsys, database) == []
    log = activity_of(database)
    assert log[0] == ("revoke owner", "", "command line")


def activity_of(database: str) -> list[tuple[str, str, str]]:
    with Store(database).opened() as store:
        rows = store.read(list_activity)
    return [(row["action"], row["person"], row["address"]) for row in rows]


def test_mistakes_about_people_change_nothing(capsys: Any, database: str) -> None:
    options = ("--database", database)
    for words, said in (
        (("add", "Ann", "--role", "king"), "expected viewer, editor or admin, got 'king'"),
        (("add", "owner"), "'owner' is taken"),
        (("add", "\uff2fwner"), "is taken"),
        (("add", "Worker"), "'Worker' is taken"),
        (("role", "Eve", "admin"), "nobody called 'Eve'"),
        (("role", "owner", "viewer"), "always an admin"),
        (("link", "Eve"), "nobody called 'Eve'"),
        (("token", " "), "expected a purpose"),
        (("token", "x", "--owner", "Eve"), "nobody called 'Eve'"),
        (("add", "Ann", "--url", "x"), "expected https://NAME"),
    ):
        assert said in complaint(capsys, "owner", *words, *options)
    assert activity_of(database) == []


def test_campaigns_and_personal_data_are_deleted(capsys: Any, tmp_path: Any) -> None:
    path = tmp_path / "c.db"
    options = ("--database", str(path))
    with Store(str(path)).opened() as store:
        number, hashes = filled(store, 3)
        work(store, hashes)
    mine = ("campaign", "erase-worker", str(number))
    assert result(capsys, *mine, "--worker", "w2", *options) == {"campaign": number, "worker": 2}
    assert "worker 99 is not in campaign" in complaint(capsys, *mine, "--worker", "99", *options)
    assert result(capsys, "campaign", "verify", str(number), *options)["differences"] == []
    (tmp_path / "c-media" / str(number)).mkdir(parents=True)
    delete = ("campaign", "delete", str(number), *options, "--name")
    assert "pause it before" in complaint(capsys, *delete, "x")
    result(capsys, "campaign", "pause", str(number), *options)
    assert "is called 'x', not 'y'" in complaint(capsys, *delete, "y")
    run(*delete, "x")
    assert capsys.readouterr().out.startswith("Deleted x: 3 items, ")
    assert list((tmp_path / "c-media").iterdir()) == []
    assert activity_of(str(path))[0] == ("delete campaign", "", "command line")
