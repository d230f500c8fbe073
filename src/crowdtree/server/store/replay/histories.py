"""Items with the same history are folded once, so that a million of them take about a minute.

The key of an item is everything that its check depends on, with workers in the place in which they
first appear. Where the item of a key agrees with its fold, so do all others with the same key; any
other item is folded by itself. The way of an item through a plan does not depend on skills, only
the error that is stated: there, skills are no part of the key, and the evidence of the answers that
counted is summed up for all items of a page together.
"""

from __future__ import annotations

import json
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from crowdtree.campaign.view import ItemView, counted_answers
from crowdtree.policies.base import label_errors, normalised
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import Query, fetch
from crowdtree.server.store.db.statements import ItemRow
from crowdtree.server.store.replay.items import ABSOLUTE, RELATIVE, StoredItem, by_item
from crowdtree.server.store.serving.campaign import ServedCampaign, moves_of
from crowdtree.server.store.types import ItemStatus

MAX_KEPT = 100_000
AT_ONCE = 500
POSTERIOR = '"log_posterior":'
"""Begins the end of the stored state of a plan."""
_MINE = "item_id BETWEEN :first AND :last AND +{table}.campaign_id = :campaign"
"""The sign keeps SQLite from going through all rows of the campaign for every page."""


class Line(NamedTuple):
    """A lease with its line of the log; without one, `line` is 0."""

    item_id: int
    line: int
    skill: float | None
    worker: int
    overdue: int
    price: int
    question: int
    kind: str | None
    value: int | None
    fate: str | None
    revised_fate: str | None
    state: int
    weight: float
    revision: int


R = TypeVar("R", sql.LabelOfItem, sql.ItemEventRow, sql.OpenQuestion)
COUNTED, CHECKED = itemgetter(slice(3, 11)), itemgetter(slice(6, 14))
"""Columns of a line that sums over the log count, and on which the check of an item depends."""
LINE, SKILL, KIND = itemgetter(1), itemgetter(2), itemgetter(7)


LINES = Query(
    Line,
    f"""SELECT leases.item_id, COALESCE(answers.id, 0) AS line, answers.skill,
    leases.worker_id AS worker, answers.overdue, answers.price, leases.question, answers.kind,
    answers.value, answers.fate, answers.revised_fate, leases.state, answers.weight,
    answers.revision FROM leases LEFT JOIN answers ON answers.lease_id = leases.id
    WHERE leases.{_MINE.format(table="leases")}""",
)


def _rows_of(row: type[R], table: str, order: str = "") -> Query[R]:
    """Select the rows of some items in a table."""
    columns = ", ".join(row._fields)
    return Query(row, f"SELECT {columns} FROM {table} WHERE {_MINE.format(table=table)} {order}")


LABELS = _rows_of(sql.LabelOfItem, "labels")
EVENTS = _rows_of(sql.ItemEventRow, "item_events", "ORDER BY item_id, id")
OPEN = _rows_of(sql.OpenQuestion, "open_questions", "ORDER BY item_id, question")


LEASES = Query(
    sql.Lease,
    """SELECT id, nonce, item_id, worker_id, question, state, given_at, expires_at
    FROM leases WHERE item_id IN :ids ORDER BY id""",
)


class Key(NamedTuple):
    """Everything on which the check of an item depends."""

    unskilled: bool
    """Whether the item has gone its way through a plan by its answers alone, so that skills and
    what is stated by them are left out."""
    snapshot: tuple[Any, ...]
    lines: tuple[Any, ...]
    label: tuple[Any, ...]
    events: tuple[Any, ...]
    questions: tuple[Any, ...]
    stated: tuple[Any, ...]


@dataclass(eq=False, slots=True)
class Course:
    """What items with the same history have in common."""

    held: bool
    moves: Counter[str]
    """Steps through the tree, as tallies count them."""
    counted: list[int] = field(default_factory=list)
    """Places of the answers that counted among the item's lines."""
    question: list[int] = field(default_factory=list)
    value: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    before: list[tuple[int, ...]] = field(default_factory=list)
    """Votes on the question when each of them came."""


@dataclass
class Page:
    """Items one after the other, with their rows in other tables by item."""

    rows: Sequence[ItemRow]
    lines: dict[int, list[Line]]
    labels: dict[int, list[sql.LabelOfItem]]
    events: dict[int, list[sql.ItemEventRow]]
    questions: dict[int, list[sql.OpenQuestion]]

    @classmethod
    def read(cls, connection: Connection, campaign_id: int, rows: Sequence[ItemRow]) -> Page:
        """Read all about some items."""
        span = {"first": rows[0].id, "last": rows[-1].id, "campaign": campaign_id}
        page = cls(
            rows,
            by_item(fetch(connection, LINES, **span)),
            by_item(fetch(connection, LABELS, **span)),
            by_item(fetch(connection, EVENTS, **span)),
            by_item(fetch(connection, OPEN, **span)),
        )
        for lines in page.lines.values():
            lines.sort(key=LINE)
        return page

    def stored(
        self, connection: Connection, rows: Sequence[ItemRow], truths: Mapping[int, int]
    ) -> Iterator[StoredItem]:
        """Read the logs and leases of some items; `truths` are classes that checks have found."""
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            ids = [row.id for row in some]
            log = by_item(fetch(connection, sql.LOG, ids=ids))
            leases = by_item(fetch(connection, LEASES, ids=ids))
            for row in some:
                yield StoredItem(
                    row,
                    log.get(row.id, []),
                    self.events.get(row.id, []),
                    next(iter(self.labels.get(row.id, [])), None),
                    self.questions.get(row.id, []),
                    leases.get(row.id, []),
                    truths.get(row.id),
                )


class Histories:
    """The histories of a campaign that agree with their fold."""

    def __init__(self, campaign: ServedCampaign, truths: dict[int, int]) -> None:
        self.campaign, self.truths = campaign, truths
        self.known: dict[Key | int, Course] = {}
        bounds = {level.after + 1 for level in campaign.levels}
        for gone in campaign.exclusions:
            bounds |= {gone.first_answer_id, gone.last_answer_id + 1}
        self.bounds = sorted(bounds)
        """Lines of the log at which something begins or ends that depends on their number."""
        self.excluded = {gone.worker_id for gone in campaign.exclusions}
        policy = campaign.policy
        plain = policy.plan is not None and not campaign.revision
        self.plan: Any = policy if plain and not policy.problem.has_sources else None
        """The plan, where the way of an item through it does not depend on skills."""

    def key(self, page: Page, row: ItemRow) -> Key:
        """Everything on which the check of an item depends."""
        lines = page.lines.get(row.id, ())
        labels = page.labels.get(row.id, ())
        events = page.events.get(row.id, ())
        place: dict[int, int] = {}
        given = [(*CHECKED(line), place.setdefault(line.worker, len(place))) for line in lines]
        unskilled = self.plan is not None and not events and "skip" not in map(KIND, lines)
        stated: list[Any]
        if unskilled:
            stated = [row.state and row.state.partition(POSTERIOR)[0]]
        else:
            stated = [row.state, *map(SKILL, lines), *(one.posterior_error for one in labels)]
        if self.bounds:
            stated += [bisect(self.bounds, line.line) for line in lines]
            stated += [worker if worker in self.excluded else 0 for worker in place]
        return Key(
            unskilled,
            (row.status, row.gold, *row[6:], self.truths.get(row.id)),
            tuple(given),
            tuple([(one.label, *one[4:]) for one in labels]),
            tuple([event[2:] for event in events]),
            tuple([question[2:] for question in page.questions.get(row.id, ())]),
            tuple(stated),
        )

    def add(self, key: Key | int, course: Course) -> None:
        """Remember a history whose item agrees with its fold."""
        if len(self.known) >= MAX_KEPT:
            self.known.clear()
        self.known[key] = course

    def course(self, stored: StoredItem, view: ItemView, lines: Sequence[Line]) -> Course:
        """Sum up the fold of an item with some lines."""
        row, campaign = stored.row, self.campaign
        begun = row.state is not None or row.status == ItemStatus.OPEN
        begun &= row.gold is None and view.judged_by == campaign.revision
        moves = Counter(moves_of(campaign, view) if begun else ())
        held = row.status == ItemStatus.OPEN and view.held_back
        course = Course(held, moves)
        if self.plan is not None:
            places = {line.line: place for place, line in enumerate(lines)}
            state = self.plan.start()
            for response, answer in counted_answers(self.campaign.present, view):
                course.counted.append(places.get(response.seq, -1))
                course.question.append(answer.question)
                course.value.append(answer.value)
                course.weight.append(answer.weight)
                course.before.append(state.counts)
                state = self.plan.update(state, answer)
        return course

    def same_errors(
        self, page: Page, rows: Sequence[ItemRow], courses: Sequence[Course]
    ) -> NDArray[np.bool_]:
        """Whether the stored posteriors and errors of items are those of their answers."""
        good = np.ones(len(rows), dtype=bool)
        if not rows:
            return good
        total = self._posteriors(page, rows, courses)
        kept = [place for place, row in enumerate(rows) if row.state is not None]
        if kept:
            states = ((rows[place].state or "").partition(POSTERIOR)[2] for place in kept)
            try:
                stored = np.array([json.loads(text[:-1]) for text in states], dtype=np.float64)
                good[kept] = _close(stored, total[kept]).all(axis=1)
            except (ValueError, TypeError):  # one of them is damaged: look at each
                good[:] = False
        labels = [label for row in rows for label in page.labels.get(row.id, ())]
        done = [place for place, row in enumerate(rows) if row.id in page.labels]
        if done:
            answers = np.array([len(courses[place].counted) for place in done])
            label = np.array([label.label for label in labels])
            errors = np.array([label.posterior_error for label in labels], dtype=np.float64)
            stated = np.exp(self.plan.stated(total[done], answers))
            good[done] &= _close(errors, label_errors(stated, label))
        return good

    def _posteriors(
        self, page: Page, rows: Sequence[ItemRow], courses: Sequence[Course]
    ) -> NDArray[np.float64]:
        """Logarithms of the posteriors that the answers of items give, one row per item."""
        total = np.tile(self.plan.start().log_posterior, (len(rows), 1))
        skill = [
            page.lines[row.id][place].skill
            for row, course in zip(rows, courses, strict=True)
            for place in course.counted
        ]
        if skill:
            columns = zip(
                *((c.question, c.value, c.weight, c.before) for c in courses), strict=True
            )
            question, value, weight, before = (
                np.array(list(chain.from_iterable(column))) for column in columns
            )
            item = np.repeat(np.arange(len(rows)), [len(course.counted) for course in courses])
            told = self.plan.model.evidence(question, value, np.array(skill), before.T)
            np.add.at(total, item, told * weight[:, None])
        return normalised(total)


def _close(stored: NDArray[np.float64], replayed: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(np.isclose(stored, replayed, rtol=RELATIVE, atol=ABSOLUTE))
