"""`crowdtree owner`: links that log in, and what may be revoked."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="needs the server's packages")

from cli.helpers import complaint, result, run
from crowdtree.store import Store
from crowdtree.store.owner import tokens


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
    assert "until revoked  script" in shown
    assert result(capsys, "owner", "revoke", "--all", *options) == {"revoked": 2}
    run("owner", "list", *options)
    assert "no token, session or unused link" in capsys.readouterr().out


def test_mistakes_change_nothing(capsys: Any, database: str) -> None:
    options = ("--database", database)
    result(capsys, "owner", "link", *options)
    (row,) = access(capsys, database)
    for words, said in (
        ((), "give ids from crowdtree owner list, or --all"),
        ((row["id"], "--all"), "give ids from crowdtree owner list, or --all"),
        ((row["id"], "0" * 16), "0000000000000000: there is no such token"),
        ((row["id"][:4],), "there is no such token"),
    ):
        assert said in complaint(capsys, "owner", "revoke", *words, *options)
    assert "expected https://NAME" in complaint(capsys, "owner", "link", "--url", "x", *options)
    assert "--hours" in complaint(capsys, "owner", "link", "--hours", "nan", *options)
    assert access(capsys, database) == [row]
