"""`crowdtree prolific`, against a stub of the API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="needs the server's packages")

from crowdtree.server.prolific.client import TOKEN_VARIABLE, URL_VARIABLE
from crowdtree.server.store import Store, Submit
from crowdtree.server.store.owner import people
from crowdtree.server.store.serving.commands import Next
from crowdtree.server.store.tokens import hashed, issue
from tests.cli.helpers import complaint, result, run
from tests.prolific_stub import TOKEN, Prolific, prolific_stub
from tests.storelab import filled, plan_policy

PAID = {"price": 0.05, "min_answers_for_code": 2, "currency": "USD"}
STUDY = ("--places", 5, "--url", "https://label.example")


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Prolific]:
    with prolific_stub() as made:
        monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
        monkeypatch.setenv(URL_VARIABLE, made.address)
        yield made


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A campaign in which participant p1 has answered three times."""
    path = str(tmp_path / "c.db")
    with Store(path).opened() as store:
        number, _ = filled(store, 5, **PAID)
        now = store.clock()

        def join(connection: Any) -> str:
            options = {"external_id": "p1"}
            made = people.add_worker(connection, number, "p1", plan_policy(), False, now, **options)
            return issue(connection, "worker", now, campaign_id=number, worker_id=made)

        token = hashed(store.write(join))
        for count in range(3):
            lease = store.ask(Next(token))["task"]["lease"]
            store.ask(Submit(token, lease, "answer", 1, f"k{count}"))
    return path


def test_a_study_from_draft_to_bonus(capsys: Any, database: str, stub: Prolific) -> None:
    def call(verb: str, *words: object) -> Any:
        return result(capsys, "prolific", verb, 1, *words, "--database", database)

    dry = call("create", *STUDY, "--dry-run")
    assert dry["study"]["reward"] == 10
    assert not stub.studies
    assert call("create", *STUDY)["study"] == "study1"
    assert call("publish", "--dry-run")["status"] == "UNPUBLISHED"
    for verb, status in (("publish", "ACTIVE"), ("pause", "PAUSED"), ("resume", "ACTIVE")):
        assert call(verb)["status"] == status
    stub.submit("study1", "p1")
    (row,) = call("submissions")["submissions"]
    assert (row["submission"], row["accepted"], row["complete"]) == ("sub1", 3, True)
    assert call("approve", "--complete", "--dry-run")["due"] == ["sub1"]
    assert call("approve", "--complete")["approved"] == ["sub1"]
    assert call("bonus", "--dry-run")["bonuses"] == {"sub1": 5}
    assert call("bonus")["paid"]
    assert not call("bonus", "--submission", "sub1")["paid"]
    assert call("stop")["status"] == "AWAITING REVIEW"
    rejected = stub.submit("study1", "p2")
    words = ("--category", "NO_DATA", "--message", "x" * 100)
    assert call("reject", "--submission", rejected, *words)["rejected"] == [rejected]
    assert run("prolific", "submissions", 1, "--database", database) == 0
    shown = capsys.readouterr().out
    assert "sub1  approved         w11 p1, 3 accepted, complete" in shown
    assert f"{rejected}  rejected         no worker" in shown
    assert TOKEN not in json.dumps(stub.studies)
    assert TOKEN.encode() not in Path(database).read_bytes()


def test_mistakes_take_one_line(
    capsys: Any, database: str, stub: Prolific, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(verb: str, *words: object) -> str:
        return complaint(capsys, "prolific", verb, *words, "--database", database)

    assert "create it first" in fail("publish", 1)
    assert "campaign 9 does not exist" in fail("submissions", 9)
    assert "expected --submission ID, or --complete" in fail("approve", 1)
    assert "--outcome without other options" in fail("bonus", 1, "--outcome", "paid", "--dry-run")
    assert "expected https://NAME" in fail("create", 1, "--places", 5, "--url", "x")
    stub.failing = ("/studies/$", 429)
    assert "wait a minute and try again" in fail("create", 1, *STUDY)
    monkeypatch.setenv(TOKEN_VARIABLE, "wrong")
    assert "Invalid token. (401); check the token in CROWDTREE_PROLIFIC_TOKEN" in fail(
        "create", 1, *STUDY
    )
    monkeypatch.delenv(TOKEN_VARIABLE)
    assert "set the environment variable CROWDTREE_PROLIFIC_TOKEN" in fail("create", 1, *STUDY)
    assert not stub.studies
