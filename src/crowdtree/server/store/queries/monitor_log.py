"""The log of a campaign as its monitor reads it: line by line, and the past of one item.

Only answers that counted when they came are compared with the table. Items that were asked about
before the table was chosen are left out: their later answers depend on earlier ones, by which the
table may have been estimated. So are answers to an item after one that is excluded: what was asked
then depends on it. For an estimate, which needs no guarantee, they count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Cause
from crowdtree.policies import Answer
from crowdtree.policies.monitor import Monitor, PastItem, Said
from crowdtree.server.store.db.campaign_row import get_campaign, read_policy
from crowdtree.server.store.db.sql import (
    Query,
    Sql,
    exists,
    fetch,
    fetch_ids,
)
from crowdtree.server.store.db.statements import EXCLUSIONS
from crowdtree.server.store.db.tables import revisions
from crowdtree.server.store.types import AnyPolicy

AT_ONCE = 1000
ITEMS_AT_ONCE = 500
ESTIMATE_AT = "estimate_at"


class Line(NamedTuple):
    """A line of the log, as far as it concerns the table."""

    id: int
    item_id: int
    worker_id: int
    question: int
    value: int | None
    kind: str
    fate: str
    first: int
    """Whether it is known to be the first about its item."""

    @property
    def counted(self) -> bool:
        """Whether it is an answer that counted when it came."""
        return self.kind == "answer" and self.fate == "counted"

    @property
    def answer(self) -> Answer:
        """The answer."""
        return Answer(self.question, int(self.value or 0))


_COLUMNS = ", ".join(Line._fields[:-1])
_LINE = f"SELECT {_COLUMNS}, 0 AS first FROM answers"
LINES = Query(
    Line,
    f"""SELECT {_COLUMNS}, CASE WHEN EXISTS (SELECT 1 FROM answers AS earlier
        WHERE earlier.item_id = answers.item_id AND earlier.id < answers.id)
    THEN 0 ELSE 1 END AS first
    FROM answers WHERE campaign_id = :campaign AND id > :after AND id <= :last
    ORDER BY id LIMIT :most""",
)
LINES_OF_ITEMS = Query(Line, f"{_LINE} WHERE item_id IN :ids AND id < :before ORDER BY item_id, id")
ITEMS = Sql(
    """SELECT id FROM items WHERE +campaign_id = :campaign AND id > :after
    ORDER BY id LIMIT :most"""
)
"""The sign keeps SQLite from sorting all items of the campaign for every page."""
ASKED_BEFORE = Sql("SELECT 1 FROM answers WHERE item_id = :item AND id <= :after LIMIT 1")


class Tested(NamedTuple):
    """The revision whose table is tested, and the last line before it."""

    revision: int
    after: int
    estimate_at: int = 0
    """Line at which the table is estimated again, because answers were excluded or included after
    the server had estimated it."""


def tested(connection: Connection, campaign_id: int) -> Tested:
    """Find whose table is tested: the last that an owner or an audit made, else the first."""
    columns = (revisions.c[name] for name in ("number", "after_answer_id", "cause", "reason"))
    found = sa.select(*columns).where(revisions.c.campaign_id == campaign_id)
    for row in connection.execute(found.order_by(revisions.c.number.desc())):
        if row.cause != Cause.TABLE:
            estimate_at = json.loads(row.reason).get(ESTIMATE_AT, 0)
            return Tested(row.number, row.after_answer_id, estimate_at)
    return Tested(0, 0)


def tested_policy(connection: Connection, campaign_id: int, revision: int) -> AnyPolicy:
    """Read the policy of a revision; that of the campaign where none was ever made."""
    mine = (revisions.c.campaign_id == campaign_id, revisions.c.number == revision)
    found = sa.select(revisions.c.problem, revisions.c.policy).where(*mine)
    row = connection.execute(found).one_or_none()
    if row is None:
        return get_campaign(connection, campaign_id).make_policy()
    return read_policy(row.problem, row.policy)


def lines_after(
    connection: Connection, campaign_id: int, after: int, last: int, most: int = AT_ONCE
) -> list[Line]:
    """Read the next lines of a log, up to one."""
    return fetch(connection, LINES, campaign=campaign_id, after=after, last=last, most=most)


class LoggedPast:
    """The answers of a campaign before a line of its log."""

    def __init__(self, connection: Connection, campaign: int, tested: Tested) -> None:
        self.connection, self.campaign, self.after = connection, campaign, tested.after
        self.before = tested.after + 1
        """Id of the first line that is not there yet."""
        self.empty = False
        """Whether the item that is being looked at has no lines so far."""
        made = fetch(connection, EXCLUSIONS, campaign=campaign) if tested.revision else []
        self.exclusions = [found.lines for found in made if found.holds(tested.revision)]

    def left_out(self, line: Line) -> bool:
        """Whether a line is about an item from before the table, or follows an excluded answer."""
        item = line.item_id
        if self.after > 0 and exists(self.connection, ASKED_BEFORE, item=item, after=self.after):
            return True
        if not self.exclusions:
            return False
        lines = fetch(self.connection, LINES_OF_ITEMS, ids=[item], before=line.id + 1)
        return any(map(self._excluded, lines))

    def _excluded(self, line: Line) -> bool:
        return any(found.covers(line.worker_id, line.id) for found in self.exclusions)

    def of(self, item: str) -> PastItem:
        """Find the answers about an item."""
        if self.empty:
            return PastItem(None, [])
        return self._past(self._lines([int(item)]))

    def items(self) -> Iterator[Sequence[Answer]]:
        """Go through the answers of every item that has some."""
        last = 0
        page = {"campaign": self.campaign, "most": ITEMS_AT_ONCE}
        while ids := fetch_ids(self.connection, ITEMS, after=last, **page):
            last = ids[-1]
            for _, lines in groupby(self._lines(ids), key=lambda line: line.item_id):
                said = self._past([line for line in lines if not self._excluded(line)]).said
                if said:
                    yield [one.answer for one in said]

    def add(self, _item: str, position: int, _said: Said, /) -> None:
        """Go on to the next line."""
        self.before = position + 1

    def _lines(self, ids: list[int]) -> list[Line]:
        return fetch(self.connection, LINES_OF_ITEMS, ids=ids, before=self.before)

    def _past(self, lines: Sequence[Line]) -> PastItem:
        lines = list(takewhile(lambda line: not self._excluded(line), lines))
        if not lines or lines[0].id <= self.after:
            return PastItem(None, [])
        counted = [line for line in lines if line.counted]
        return PastItem(counted[0].id if counted else None, [Said(x.answer) for x in counted])


def take(monitor: Monitor, past: LoggedPast, line: Line) -> None:
    """Show a line of the log to a monitor, if it changes what has counted."""
    past.before, past.empty = line.id, bool(line.first)
    if line.counted and not past.left_out(line):
        monitor.observe(str(line.item_id), line.answer, position=line.id)
    past.before, past.empty = line.id + 1, False
