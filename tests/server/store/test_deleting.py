"""Deletion: a worker's personal data, and whole campaigns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.media import open_media
from crowdtree.server.reasons import WorkerReason
from crowdtree.server.store import Next, NotFound, Refused, Store, Submit, tokens
from crowdtree.server.store.audits import checking
from crowdtree.server.store.corrections.exclusions import exclude
from crowdtree.server.store.db.activity import list_activity, note
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import judgements, metadata, workers
from crowdtree.server.store.owner import campaigns, deleting, people
from crowdtree.server.store.owner.people import Visitor
from crowdtree.server.store.replay.verify import verify
from crowdtree.server.web.services.campaigns import delete_campaign, erase_worker
from crowdtree.server.webhooks import hooks
from tests.storelab import filled, work

SECRETS = ("5f3c-platform", "network", "session-77", "study-8", "Nicky", "Oslo")


def differences(store: Store, number: int) -> Any:
    return store.read(lambda c: verify(c, number))["differences"]


def everything(store: Store) -> str:
    """All texts of the database."""
    return store.read(
        lambda c: "\n".join(
            repr(row) for table in metadata.tables.values() for row in c.execute(sa.select(table))
        )
    )


def joined(store: Store, number: int) -> tuple[int, str]:
    """Somebody from a platform, with a nickname, who answers some questions."""
    details = {"study": "study-8", "session": "session-77"}
    visitor = Visitor("5f3c-platform", network="network", details=details)

    def join(connection: sa.Connection) -> str:
        campaign = get_campaign(connection, number)
        now = store.clock()
        return people.join(connection, campaign, campaign.make_policy(), visitor, now, 1e9)

    token = tokens.hashed(store.write(join))
    _, worker = store.read(lambda c: tokens.worker_of(c, token, store.clock()))
    store.write(
        lambda c: c.execute(workers.update().where(workers.c.id == worker).values(name="Nicky"))
    )
    for k in range(3):
        task = store.ask(Next(token))["task"]
        assert task is not None
        store.ask(Submit(token, task["lease"], "answer", k % 2, f"n{k}"))
    task = store.ask(Next(token))["task"]
    assert task is not None
    report = "other: I am Nicky from Oslo"
    store.ask(Submit(token, task["lease"], "skip", None, "r", report=report))
    store.ask(Next(token))  # holds one
    return worker, token


def test_personal_data_goes_and_answers_stay(url: str) -> None:
    with Store(url, rng=0).opened() as store:
        number, hashes = filled(store, 6)
        worker, token = joined(store, number)
        said = {"text": "5f3c-platform", "more": [{"Nicky": 1}], "near": "Nicky Jr"}
        store.write(lambda c: note(c, 1.0, "prolific", number, {"call": "x", "state": "", **said}))
        why = "5f3c-platform guessed"
        store.write(lambda c: exclude(c, number, [worker], store.clock(), reason=why))
        assert all(secret in everything(store) for secret in ("5f3c-platform", "Nicky"))
        store.write(lambda c: deleting.erase_worker(c, number, worker, store.clock()))
        left = everything(store).replace("Nicky Jr", "")
        assert [secret for secret in SECRETS if secret in left] == []
        with pytest.raises(Refused):
            store.ask(Next(token))
        work(store, hashes)
        assert differences(store, number) == []
        row = store.read(
            lambda c: c.execute(sa.select(workers).where(workers.c.id == worker)).one()
        )
        assert (row.status, row.reason, row.answers) == (
            "blocked",
            WorkerReason.ERASED,
            3,
        )
        last = store.read(lambda c: list_activity(c, number))[0]
        assert (last["action"], last["detail"]) == ("erase worker", {"worker": worker})
        with pytest.raises(NotFound):
            store.write(lambda c: deleting.erase_worker(c, number, 10**6, 1.0))


def test_the_files_of_the_database_hold_nothing_of_it(tmp_path: Path) -> None:
    with Store(str(tmp_path / "c.db"), rng=0).opened() as store:
        number, _ = filled(store, 6)
        worker, _ = joined(store, number)
        assert b"5f3c-platform" in b"".join(path.read_bytes() for path in tmp_path.iterdir())
        erase_worker(store, number, worker)
        left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert [
            secret for secret in SECRETS if secret != "network" and secret.encode() in left
        ] == []


def rows_of(store: Store, number: int) -> dict[str, int]:
    """How many rows of each table belong to a campaign."""

    def count(connection: sa.Connection) -> dict[str, int]:
        found = {}
        for name, table in metadata.tables.items():
            if "campaign_id" in table.c and name != "activity":
                mine = sa.select(sa.func.count()).where(table.c.campaign_id == number)
                found[name] = connection.execute(mine.select_from(table)).scalar_one()
        return found

    return store.read(count)


def orphans(store: Store) -> int:
    """Judgements about workers whom there are not."""
    there = sa.select(workers.c.id)
    lost = sa.select(sa.func.count()).where(judgements.c.worker_id.not_in(there))
    return int(store.read(lambda c: c.execute(lost).scalar_one()))


def test_a_deleted_campaign_leaves_nothing_and_others_alone(url: str, tmp_path: Path) -> None:
    media = tmp_path / "media"
    with Store(url, rng=0).opened() as store:
        number, hashes = filled(store, 6, price=0.01, budget=50.0)
        other, others = filled(store, 4)
        worker, _ = joined(store, number)
        work(store, hashes)
        work(store, others)
        now = store.clock()
        store.write(lambda c: checking.start(c, number, 0.2, now))
        store.write(lambda c: exclude(c, number, [worker], now))
        store.write(lambda c: hooks.add_hook(c, number, "https://x.example", now, str))
        store.write(lambda c: people.join_link(c, number, now))
        before, kept = rows_of(store, number), rows_of(store, other)
        used = ("answers", "leases", "labels", "audits", "exclusions", "webhooks", "budgets")
        assert all(before[name] for name in used)
        for folder in (number, other):
            (media / str(folder)).mkdir(parents=True)
            (media / str(folder) / "a.png").write_bytes(b"x")
        with pytest.raises(CrowdtreeError, match="is running; pause it before"):
            delete_campaign(store, open_media(media), number, "x")
        store.write(lambda c: campaigns.set_status(c, number, "paused", now))
        with pytest.raises(CrowdtreeError, match="is called 'x', not 'y'"):
            delete_campaign(store, open_media(media), number, "y")
        assert rows_of(store, number) == before
        gone = delete_campaign(store, open_media(media), number, "x")
        assert (gone["items"], gone["answers"]) == (6, before["answers"])
        assert set(rows_of(store, number).values()) == {0}
        assert orphans(store) == 0
        assert rows_of(store, other) == kept
        assert differences(store, other) == []
        assert [path.name for path in media.iterdir()] == [str(other)]
        log = store.read(list_activity)
        said = (log[0]["action"], log[0]["campaign_id"], log[0]["detail"])
        assert said == ("delete campaign", None, dict(gone))
        mine = [entry["detail"] for entry in log if entry["campaign_id"] == number]
        assert mine
        assert not any(mine)
        assert "5f3c-platform" not in everything(store)
        with pytest.raises(NotFound):
            delete_campaign(store, open_media(media), number, "x")


def test_every_table_belongs_to_a_campaign_or_to_the_server() -> None:
    """A new table without a campaign would be left behind."""
    whole = {"owners", "campaigns", "schema_version"}
    for name, table in metadata.tables.items():
        known = {"campaign_id", *deleting.PARENTS} & set(table.c.keys())
        assert known or name in whole, f"{name}: to which campaign do its rows belong?"
