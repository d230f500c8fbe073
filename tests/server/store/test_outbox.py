"""Webhook messages that are due."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip(
    "sqlalchemy", reason="the server is not installed: pip install crowdtree[serve]"
)

import sqlalchemy as sa

from crowdtree.server.store import (
    Store,
)
from crowdtree.server.store.background import outbox
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.labels import write_labels
from crowdtree.server.store.owner import webhooks
from tests.serving import Postgres
from tests.storelab import filled


def test_webhooks_miss_no_label_that_commits_late(postgres: Postgres) -> None:
    waits = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with Store(postgres.migrated()).opened() as store:
        number, _ = filled(store, 2)
        first, second = (
            sql.LabelLine(number, k, 0, 0.1, "leaf", answers=1, path="[]", at=0.0) for k in (1, 2)
        )
        store.write(lambda c: webhooks.add_hook(c, number, "https://label.example/", 0.0))
        with store.engine.connect() as slow, slow.begin():
            write_labels(slow, [first])  # has its number, and is not there yet
            store.write(lambda c: write_labels(c, [second]))
            found: list[Any] = []
            due = threading.Thread(
                target=lambda: found.extend(store.write(lambda c: outbox.claim(c, 1.0)))
            )
            due.start()
            while due.is_alive() and not store.read(lambda c: c.execute(waits).scalar_one()):
                pass
        due.join(30)
        assert [row["task"] for row in found[0].body["labels"]] == ["i0", "i1"]
