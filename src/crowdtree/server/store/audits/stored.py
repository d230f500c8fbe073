"""Audits as the database stores them, and the audits that they make."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.audit import Audit, Forecast
from crowdtree.audit.run import UNSURE
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.loss import Loss
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import audits, checks, items
from crowdtree.server.store.types import JsonObject

__all__ = [
    "UNSURE",
    "AuditCache",
    "AuditRow",
    "CheckRow",
    "audited_labels",
    "certified",
    "frozen_text",
    "latest_audit",
    "make_audit",
    "read_audits",
    "read_checks",
    "read_frozen",
]

MAX_CACHED = 20


@dataclass(frozen=True)
class AuditRow:
    """An audit without the labels that it covers."""

    id: int
    campaign_id: int
    bound: float
    confidence: float
    seed: int
    claims: JsonObject
    at: float
    corrects: int
    """Whether labels that are found wrong are corrected, so that the bound is for those."""
    last_label: int
    """Greatest id of the labels that it covers. A later label may have an earlier time."""


class CheckRow(NamedTuple):
    """An item that was drawn, and what was found."""

    id: int
    item_id: int
    item: str
    draw: int
    after: int
    label: int
    holder: str
    held_until: float
    right: bool | None
    truth_class: int | None
    truth: str | None
    by: list[str]
    at: float | None

    @property
    def unsure(self) -> bool:
        """Whether the person who checked it could not tell."""
        return self.right is not None and self.truth_class is None


_ROW = [audits.c[name] for name in AuditRow.__dataclass_fields__]


def certified(row: AuditRow) -> float:
    """Share of wrong labels that an audit certifies, after corrections where it corrects."""
    return float(row.claims["corrected" if row.corrects else "upper"])


def read_audits(connection: Connection, campaign_id: int) -> list[AuditRow]:
    """Read all audits of a campaign, the current one last."""
    query = sa.select(*_ROW).where(audits.c.campaign_id == campaign_id).order_by(audits.c.id)
    return [_row(row) for row in connection.execute(query)]


def latest_audit(connection: Connection, campaign_id: int, lock: bool = False) -> AuditRow | None:
    """Read the current audit; with `lock`, nobody else changes it until the commit."""
    mine = sa.select(sa.func.max(audits.c.id)).where(audits.c.campaign_id == campaign_id)
    query = sa.select(*_ROW).where(audits.c.id == mine.scalar_subquery())
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    return None if row is None else _row(row)


def _row(row: sa.Row[Any]) -> AuditRow:
    return AuditRow(**{**row._mapping, "claims": json.loads(row.claims)})


def read_checks(connection: Connection, audit: int, classes: Sequence[str]) -> list[CheckRow]:
    """Read what an audit has drawn, in order."""
    rows = connection.execute(
        sa.select(checks, items.c.task)
        .join(items, items.c.id == checks.c.item_id)
        .where(checks.c.audit_id == audit)
        .order_by(checks.c.draw)
    )
    return [
        CheckRow(
            row.id,
            row.item_id,
            row.task,
            row.draw,
            row.after,
            row.label,
            row.holder,
            row.held_until,
            None if row.correct is None else bool(row.correct),
            row.truth,
            None if row.truth is None else classes[row.truth],
            [row.person] if row.correct is not None and row.person else [],
            row.at,
        )
        for row in rows
    ]


def audited_labels(connection: Connection, audit: int) -> dict[str, str]:
    """Read the labels that an audit covers, by item."""
    return {entry[0]: entry[1] for entry in read_frozen(connection, audit)[0]}


def frozen_text(rows: list[list[Any]], loss: Loss | None) -> str:
    """Write the labels that an audit covers, and what their mistakes cost, as JSON."""
    costs = None if loss is None else loss.matrix.tolist()
    return json.dumps(rows if costs is None else {"labels": rows, "loss": costs})


def read_frozen(
    connection: Connection, audit: int
) -> tuple[list[list[Any]], list[list[float]] | None]:
    """Read the item, label and stated error of each label, and the loss, if there is one."""
    text = connection.execute(sa.select(audits.c.labels).where(audits.c.id == audit)).scalar_one()
    found = json.loads(text)
    return (found["labels"], found["loss"]) if isinstance(found, dict) else (found, None)


def make_audit(connection: Connection, row: AuditRow) -> Audit:
    """Make an audit of the labels that it covers, without its checks."""
    known = sa.select(audits.c.known).where(audits.c.id == row.id)
    labels, loss = read_frozen(connection, row.id)
    return Audit(
        [entry[0] for entry in labels],
        [entry[1] for entry in labels],
        [float(entry[2]) for entry in labels],
        bound=row.bound,
        confidence=row.confidence,
        seed=row.seed,
        known=json.loads(connection.execute(known).scalar_one()),
        correct=bool(row.corrects),
        loss=loss,
        classes=None if loss is None else get_campaign(connection, row.campaign_id).classes,
    )


class AuditCache:
    """Audits that were computed already; only what is new in the database is computed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[int, Audit] = {}
        self._forecasts: dict[tuple[int, int], Forecast | None] = {}

    @contextmanager
    def current(
        self, connection: Connection, row: AuditRow, drawn: Sequence[CheckRow], exact: bool = True
    ) -> Iterator[Audit]:
        """Give an audit with the draws and results of the database.

        A transaction that failed, or one of another process, may have gone another way: then it is
        computed anew. Readers (not `exact`) accept an audit that is ahead of what they read.
        """
        with self._lock:
            audit = self._made.get(row.id)
            results = sum(entry.right is not None for entry in drawn)
            ahead = audit is not None and (
                len(audit.checks) >= len(drawn)
                and len(audit.checks) - len(audit.pending) >= results
            )
            if audit is None or exact or not ahead:
                audit = self._followed(connection, row, drawn, audit)
            yield audit

    def forecast(self, number: int, audit: Audit, replays: int) -> Forecast | None:
        """How many more checks an audit takes; computed once per result."""
        key = (number, audit.standing.checks)
        if key not in self._forecasts:
            if len(self._forecasts) >= MAX_CACHED:
                self._forecasts.clear()
            self._forecasts[key] = audit.forecast(replays)
        return self._forecasts[key]

    def _followed(
        self, connection: Connection, row: AuditRow, drawn: Sequence[CheckRow], audit: Audit | None
    ) -> Audit:
        if audit is not None:
            try:
                audit.follow(drawn)
            except CrowdtreeError:
                audit = None
        if audit is None:
            audit = make_audit(connection, row)
            audit.follow(drawn)
        if len(self._made) >= MAX_CACHED:
            self._made.clear()
        self._made[row.id] = audit
        return audit
