"""Fold the plain items of a plan many at a time, for campaigns of a million items.

An item is plain if it is not gold, was never revised, held back or checked, and has no skips:
then its replay is a walk down the tree, which NumPy does for thousands of items together. An
item that agrees with its replay here in everything that :mod:`crowdtree.server.store.replay.verify`
compares is counted; every other item is left to that module, which says what differs. So whatever
changes the replay of a plan (:func:`crowdtree.campaign.fold.extend`) must be handled here, or
make items not plain.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from crowdtree.campaign.view import answer_weight
from crowdtree.core.problem import DASH
from crowdtree.core.tally import Tally, cast, orders, vote_counts
from crowdtree.policies import Ask, PlanPolicy
from crowdtree.policies.base import HANDED_OVER, label_errors, normalised
from crowdtree.policies.plan import PlanState
from crowdtree.server.store.db.campaign_row import flow
from crowdtree.server.store.db.sql import Sql, fetch_ids, fetch_pieces
from crowdtree.server.store.db.statements import ItemRow
from crowdtree.server.store.replay.items import ABSOLUTE, RELATIVE
from crowdtree.server.store.replay.sums import Sums
from crowdtree.server.store.serving.campaign import ServedCampaign
from crowdtree.server.store.types import LIVE_LEASES, ItemStatus, LeaseState, counted_votes

FATES = ("counted", "surplus", "late")
COUNTED, SURPLUS, LATE, NO_LINE = range(4)
"""Fates of answers as numbers, in the order of `FATES`; anything else is not plain."""
PLAIN = (ItemStatus.NEW, ItemStatus.OPEN, ItemStatus.LABELLED)
POSTERIOR = itemgetter("log_posterior")
STATE = frozenset({"node", "counts", "order", "answers", "log_posterior"})
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_MINE = "item_id BETWEEN :first AND :last AND +{table}.campaign_id = :campaign"
"""The sign keeps SQLite from going through all rows of the campaign for every page."""
LINES = Sql(
    f"""SELECT leases.item_id, leases.id, leases.worker_id, leases.question, leases.state,
    COALESCE(answers.id, 0), COALESCE(answers.value, -1),
    CASE WHEN answers.id IS NULL THEN {NO_LINE}
        WHEN answers.kind <> 'answer' OR answers.revised_fate IS NOT NULL THEN -1
        WHEN answers.fate = 'counted' THEN {COUNTED} WHEN answers.fate = 'surplus' THEN {SURPLUS}
        WHEN answers.fate = 'late' THEN {LATE} ELSE -1 END,
    COALESCE(answers.skill, 0), COALESCE(answers.overdue, 0), COALESCE(answers.price, 0)
    FROM leases LEFT JOIN answers ON answers.lease_id = leases.id
    WHERE leases.{_MINE.format(table="leases")}"""
)
LABELS = Sql(
    f"""SELECT item_id, label, posterior_error, answers, reason, path FROM labels
    WHERE {_MINE.format(table="labels")}"""
)
EVENTFUL = Sql(
    f"SELECT DISTINCT item_id FROM item_events WHERE {_MINE.format(table='item_events')}"
)
OPEN = Sql(
    f"""SELECT item_id, question, CASE WHEN known_only <> 0 THEN -1 ELSE needed END
    FROM open_questions WHERE {_MINE.format(table="open_questions")}"""
)


@dataclass
class _Lines:
    """Leases with their answers, by item and then in the order of the log."""

    item: Ints
    """Place of the item on the page."""
    lease: Ints
    worker: Ints
    question: Ints
    state: Ints
    line: Ints
    value: Ints
    fate: Ints
    skill: NDArray[np.float64]
    overdue: Ints
    price: Ints

    @classmethod
    def read(cls, connection: Connection, ids: Ints, span: dict[str, int]) -> _Lines:
        pieces = fetch_pieces(connection, LINES, **span)
        tables = [np.array(rows, dtype=np.float64) for rows in pieces]
        table = np.concatenate([np.zeros((0, 11)), *tables])
        table = table[np.lexsort((table[:, 5], table[:, 0]))].T
        columns = [column.astype(np.int64) for column in table]
        columns[0] = np.searchsorted(ids, columns[0])
        made: list[Any] = [*columns[:8], table[8], *columns[9:]]
        return cls(*made)

    def chosen(self, rows: Bools | Ints) -> _Lines:
        return _Lines(*(column[rows] for column in vars(self).values()))


@dataclass
class _Labels:
    """The labels of a page that have a class and an error."""

    item: Ints
    label: Ints
    error: NDArray[np.float64]
    answers: Ints
    reason: list[str]
    path: list[str]
    other: Ints
    """Items with a label that has none."""

    @classmethod
    def read(cls, connection: Connection, ids: Ints, span: dict[str, int]) -> _Labels:
        rows: list[Any] = [row for rows in fetch_pieces(connection, LABELS, **span) for row in rows]
        whole = [row for row in rows if row[1] is not None and row[2] is not None]
        other = [row[0] for row in rows if row[1] is None or row[2] is None]
        numbers = np.array([row[:4] for row in whole], dtype=np.float64).reshape(len(whole), 4).T
        item, label, answers = (numbers[k].astype(np.int64) for k in (0, 1, 3))
        return cls(
            np.searchsorted(ids, item),
            label,
            numbers[2],
            answers,
            [row[4] for row in whole],
            [row[5] for row in whole],
            np.searchsorted(ids, np.array(other, dtype=np.int64)),
        )


@dataclass
class _Walked:
    """Where the answers lead each item of a page."""

    node: Ints
    tally: Tally
    answers: Ints
    log_posterior: NDArray[np.float64]
    came_by: Bools
    """Which questions (columns) an item has come to."""
    said: NDArray[np.uint16]
    """The answers that counted, in order: 1 plus the question's first number plus the value."""
    wrong: Bools
    """Whether an answer has another fate than is stored."""
    moves: list[tuple[Ints, Ints, Ints]] = field(default_factory=list)
    """Items that moved on, the nodes that they left and those to which they came."""


class PlanFold:
    """Replays plain items of a campaign and adds those that agree to its sums."""

    def __init__(self, campaign: ServedCampaign, sums: Sums) -> None:
        if not self.serves(campaign):
            raise TypeError("only plans that were never revised have plain items")
        self.campaign, self.sums = campaign, sums
        self.policy: PlanPolicy = campaign.policy  # type: ignore[assignment]
        self.question = self.policy.plan.tree.question.astype(np.int64)
        self.children = self.policy.plan.tree.children.astype(np.int64)
        self.width = self.children.shape[1]
        self.paths: dict[tuple[bytes, str], bool] = {}

    @staticmethod
    def serves(campaign: ServedCampaign) -> bool:
        """Whether a campaign can have plain items."""
        plan = campaign.policy.plan
        return plan is not None and not campaign.revision

    def take(
        self, connection: Connection, rows: Sequence[ItemRow], checked: dict[int, int]
    ) -> set[int]:
        """Replay a page of items; count those that agree, and return their ids."""
        ids = np.array([row.id for row in rows], dtype=np.int64)
        span = {"first": rows[0].id, "last": rows[-1].id, "campaign": self.campaign.id}
        lines = _Lines.read(connection, ids, span)
        usual = np.array([row.status in PLAIN and _plain(row, checked) for row in rows])
        usual &= ~np.isin(ids, fetch_ids(connection, EVENTFUL, **span))
        usual &= ~_any(lines.item, ~_leases_agree(lines, self.policy), len(ids))
        walked = self._walk(lines.chosen((lines.fate < NO_LINE) & usual[lines.item]), len(ids))
        good = usual & ~walked.wrong
        asked = walked.came_by[lines.item, np.clip(lines.question, 0, walked.came_by.shape[1] - 1)]
        good &= ~_any(lines.item, ~asked, len(ids))
        status = np.array([row.status for row in rows], dtype=np.int64)
        good &= self._states(rows, walked, good)
        labels = _Labels.read(connection, ids, span)
        good &= self._labels(status, labels, walked)
        open_rows = [row for rows in fetch_pieces(connection, OPEN, **span) for row in rows]
        good &= self._open(ids, status, open_rows, lines, walked)
        self._add(status, labels, lines, good)
        self._add_moves(walked, good & (status != ItemStatus.NEW))
        return set(ids[good].tolist())

    def _walk(self, lines: _Lines, n: int) -> _Walked:
        """Take the answers in their order, the first of every item, then the second, and so on."""
        policy, rules = self.policy, self.campaign.rules
        earlier, people = _before(lines)
        weight = answer_weight(earlier, rules.person_dependence)
        lacking = (earlier > 0) & (people < rules.people)
        count = np.bincount(lines.item, minlength=n)
        begin = np.cumsum(count) - count
        found = _Walked(
            node=np.zeros(n, dtype=np.int64),
            tally=np.zeros((policy.model.slots, n), dtype=np.int64),
            answers=np.zeros(n, dtype=np.int64),
            log_posterior=np.tile(policy.start().log_posterior, (n, 1)),
            came_by=np.zeros((n, policy.problem.n_questions), dtype=bool),
            said=np.zeros((n, int(count.max(initial=0))), dtype=np.uint16),
            wrong=np.zeros(n, dtype=bool),
        )
        found.came_by[:, self.question[0]] = True
        for turn in range(found.said.shape[1]):
            item = np.nonzero(count > turn)[0]
            place = begin[item] + turn
            now = lines.chosen(place)
            node = found.node[item]
            wanted = (node >= 0) & (self.question[node] == now.question) & ~lacking[place]
            fate = np.where(wanted, COUNTED, np.where(node >= 0, SURPLUS, LATE))
            found.wrong[item] |= fate != now.fate
            item, now, node = item[wanted], now.chosen(wanted), node[wanted]
            before = vote_counts(found.tally.take(item, axis=1))
            told = policy.model.evidence(now.question, now.value, now.skill, before)
            told = told * weight[place[wanted], None]
            found.log_posterior[item] = normalised(found.log_posterior[item] + told)
            found.said[item, found.answers[item]] = self.width * now.question + now.value + 1
            found.answers[item] += 1
            given = before.sum(axis=0)
            cast(found.tally, now.value, given, item)
            tally = found.tally.take(item, axis=1)
            verdict = policy.verdicts(node, found.answers[item], given + 1, tally)
            over = verdict >= 0
            left = node
            node = np.where(over, self.children[node, np.maximum(verdict, 0)], node)
            found.moves.append((item[over], left[over], node[over]))
            found.node[item], found.tally[:, item] = node, tally * ~over
            there = node >= 0
            found.came_by[item[there], self.question[node[there]]] = True
        return found

    def _states(self, rows: Sequence[ItemRow], walked: _Walked, asked: Bools) -> Bools:
        """Compare the stored states; without one, nothing may have counted."""
        stateless = np.array([row.state is None for row in rows])
        good: Bools = stateless & (walked.answers == 0)
        place = np.nonzero(~stateless & asked)[0]
        try:
            states = json.loads(f"[{','.join(rows[k].state or '' for k in place.tolist())}]")
            if len(states) != len(place) or not set(map(frozenset, states)) <= {STATE}:
                return good
            numbers = np.array([self._numbers(state) for state in states], dtype=np.float64)
            stored = np.array(list(map(POSTERIOR, states)), dtype=np.float64)
        except (TypeError, ValueError):
            return good
        replayed = walked.log_posterior[place]
        tally = walked.tally[:, place]
        walk = [walked.node[place], walked.answers[place], *vote_counts(tally), *orders(tally)]
        expected = np.stack(walk, axis=1)
        if stored.shape != replayed.shape or numbers.shape != expected.shape:
            return good
        good[place] = (numbers == expected).all(axis=1) & _close(stored, replayed).all(axis=1)
        return good

    def _labels(self, status: Ints, labels: _Labels, walked: _Walked) -> Bools:
        """Compare the stored labels, errors, reasons and paths."""
        policy, plan = self.policy, self.policy.voted
        place = labels.item
        count = np.bincount(np.concatenate([place, labels.other]), minlength=len(status))
        labelled = status == ItemStatus.LABELLED
        good = np.asarray(~labelled & (walked.node >= 0) & (count == 0))
        leaf = ~walked.node[place]
        agrees = labelled[place] & (leaf >= 0) & (count[place] == 1)
        leaf = np.maximum(leaf, 0)
        label = plan.leaf_label[leaf].astype(np.int64)
        stated = policy.stated(walked.log_posterior[place], walked.answers[place])
        agrees &= labels.label == label
        agrees &= _close(labels.error, label_errors(np.exp(stated), label))
        agrees &= labels.answers == walked.answers[place]
        reasons = np.where(np.isin(leaf, list(plan.handed_over)), policy.handing_over, "leaf")
        agrees &= reasons == np.array(labels.reason, dtype=np.str_)
        each = np.nonzero(agrees)[0]
        said = [row.tobytes() for row in walked.said[place[each]]]
        paths = map(labels.path.__getitem__, each.tolist())
        agrees[each] = list(map(self._same_path, said, paths))
        good[place] = agrees
        return good

    def _same_path(self, said: bytes, stored: str) -> bool:
        """Whether a stored path is that of the answers; few paths differ in a large campaign."""
        key = (said, stored)
        if key not in self.paths:
            if len(self.paths) > 100_000:
                self.paths.clear()
            codes = np.frombuffer(said, dtype=np.uint16)
            votes = [(*divmod(c - 1, self.width), "counted") for c in codes.tolist() if c]
            try:
                found = json.loads(stored)
            except ValueError:
                found = None
            self.paths[key] = found == counted_votes(self.campaign.problem.questions, votes)
        return self.paths[key]

    def _open(
        self, ids: Ints, status: Ints, rows: list[Any], lines: _Lines, walked: _Walked
    ) -> Bools:
        """Compare the open questions; only open items have some, and only they are held."""
        held = lines.state == LeaseState.ACTIVE
        there: dict[int, Counter[int]] = {}
        for item, question, needed in rows:
            there.setdefault(int(np.searchsorted(ids, item)), Counter())[question] += needed
        quiet = ~_any(lines.item, held, len(ids))
        quiet[list(there)] = False
        good = quiet & (status != ItemStatus.OPEN)
        good &= (status != ItemStatus.NEW) | (
            np.bincount(lines.item[lines.line > 0], minlength=len(ids)) == 0
        )
        holds: dict[int, list[int]] = {}
        for item, question in zip(
            lines.item[held].tolist(), lines.question[held].tolist(), strict=True
        ):
            holds.setdefault(item, []).append(question)
        for item in np.nonzero(status == ItemStatus.OPEN)[0].tolist():
            state = self._state(walked, item)
            mine = holds.get(item, [])
            total, left = self.policy.ask(state), self.policy.ask(state, mine)
            good[item] = (
                isinstance(total, Ask)
                and isinstance(left, Ask)
                and there.get(item, Counter()) == Counter(left.questions)
                and not Counter(mine) - Counter(total.questions)
            )
        return np.asarray(good)

    def _state(self, walked: _Walked, item: int) -> PlanState:
        order = orders(walked.tally[:, [item]])[:, 0].tolist()
        return PlanState(
            node=int(walked.node[item]),
            counts=tuple(vote_counts(walked.tally[:, item]).tolist()),
            order=tuple(answer for answer in order if answer >= 0),
            answers=int(walked.answers[item]),
            log_posterior=walked.log_posterior[item],
        )

    def _numbers(self, state: dict[str, Any]) -> list[int]:
        """Node, answers, votes and their order in a stored state."""
        order = state["order"]
        unused = [-1] * (self.policy.model.slots - len(order))
        return [state["node"], state["answers"], *state["counts"], *order, *unused]

    def _add(self, status: Ints, labels: _Labels, lines: _Lines, good: Bools) -> None:
        """Add the items that agree to the sums of the campaign."""
        sums, tallies = self.sums, self.sums.tallies
        sums.items += int(good.sum())
        for value in PLAIN:
            tallies[value.label] += int((good & (status == value)).sum())
        cls = np.full(len(status), -1)
        cls[labels.item] = labels.label
        self._add_labels(labels, good[labels.item])
        lines = lines.chosen(good[lines.item])
        sums.live_leases += int(np.isin(lines.state, LIVE_LEASES).sum())
        lines = lines.chosen(lines.fate < NO_LINE)
        sums.lines += len(lines.item)
        tallies["spent"] += int(lines.price.sum())
        for number, count in enumerate(np.bincount(lines.question).tolist()):
            tallies[f"asked:{number}"] += count
        for name, count in zip(FATES, np.bincount(lines.fate, minlength=3).tolist(), strict=True):
            tallies[f"fate:{name}"] += count
        self._add_workers(lines, cls[lines.item])

    def _add_moves(self, walked: _Walked, begun: Bools) -> None:
        """Add the ways of items through the tree."""
        tallies = self.sums.tallies
        tallies[flow("in", 0, 0)] += int(begun.sum())
        if not walked.moves:
            return
        item, left, came = map(np.concatenate, zip(*walked.moves, strict=True))
        leaves = len(self.question) + 1
        for way, nodes in (("out", left), ("in", came)):
            count = np.bincount(nodes[begun[item]] + leaves)
            for place in np.nonzero(count)[0].tolist():
                tallies[flow(way, place - leaves, 0)] += int(count[place])

    def _add_labels(self, labels: _Labels, good: Bools) -> None:
        tallies, nanos = self.sums.tallies, np.rint(labels.error * 1e9).astype(np.int64)
        self.sums.labelled += int(good.sum())
        tallies["estimated"] += int(good.sum())
        tallies["taken"] += int(labels.answers[good].sum())
        tallies["error_nanos"] += int(nanos[good].sum())
        handed = np.isin(np.array(labels.reason, dtype=np.str_), HANDED_OVER)
        tallies["undecided"] += int((handed & good).sum())
        for label in np.unique(labels.label[good]).tolist():
            mine = good & (labels.label == label)
            tallies[f"label:{label}"] += int(mine.sum())
            tallies[f"label_nanos:{label}"] += int(nanos[mine].sum())

    def _add_workers(self, lines: _Lines, cls: Ints) -> None:
        who, place = np.unique(lines.worker, return_inverse=True)
        problem, cell = self.campaign.problem, (lines.question, np.maximum(cls, 0))
        judged = (cls >= 0) & (lines.fate == COUNTED) & (problem.outcome[cell] != DASH)
        accepted = (lines.fate == COUNTED) | (lines.overdue == 0)  # as record.is_accepted
        counts = {
            "answers": np.ones(len(place)),
            "accepted": accepted,
            "overdue": lines.overdue,
            "earned": lines.price,
            "judged": judged,
            "agreed": judged & problem.right[lines.value, *cell],
        }
        for name, added in counts.items():
            summed = np.bincount(place, added.astype(np.float64), minlength=len(who))
            for worker, value in zip(who.tolist(), summed.tolist(), strict=True):
                self.sums.workers[worker][name] += round(value)


def _plain(row: ItemRow, checked: dict[int, int]) -> bool:
    changed = row.revision or row.reopened_after or row.min_answers or row.corrected is not None
    return row.gold is None and not changed and row.id not in checked


def _before(lines: _Lines) -> tuple[Ints, Ints]:
    """Count what counted of an item before each line: answers of its worker, different workers."""
    counted = lines.fate == COUNTED
    order = np.lexsort((np.arange(len(counted)), lines.worker, lines.item))
    both = np.stack([lines.item[order], lines.worker[order]])
    earlier = np.empty(len(counted), dtype=np.int64)
    earlier[order] = _within(counted[order], (np.diff(both, axis=1) != 0).any(axis=0))
    return earlier, _within(counted & (earlier == 0), np.diff(lines.item) != 0)


def _within(which: Bools, begins: Bools) -> Ints:
    """Count those before each place, anew where a group begins."""
    before: Ints = np.cumsum(which) - which
    start = np.concatenate([[True], begins])[: len(which)]
    return np.asarray(before - np.maximum.accumulate(np.where(start, before, 0)))


def _leases_agree(lines: _Lines, policy: PlanPolicy) -> Bools:
    """Whether each lease has one answer and says so, or has none."""
    answered = (lines.fate >= 0) & (lines.fate < NO_LINE)
    answered &= lines.state == LeaseState.ANSWERED
    waiting = lines.fate == NO_LINE
    waiting &= np.isin(lines.state, (LeaseState.ACTIVE, LeaseState.EXPIRED, LeaseState.WITHDRAWN))
    known = (lines.question >= 0) & (lines.question < policy.problem.n_questions)
    count = policy.problem.n_answers[np.where(known, lines.question, 0)]
    answered &= (lines.value >= 0) & (lines.value < count)
    order = np.argsort(lines.lease, kind="stable")
    twice = np.zeros(len(order), dtype=bool)
    same = np.diff(lines.lease[order]) == 0
    twice[order[1:][same]] = True
    return np.asarray((answered | waiting) & known & ~twice)


def _any(item: Ints, which: Bools, n: int) -> Bools:
    """Whether any line of each item is one of these."""
    return np.asarray(np.bincount(item[which], minlength=n) > 0)


def _close(stored: NDArray[np.float64], replayed: NDArray[np.float64]) -> Bools:
    return np.asarray(np.isclose(stored, replayed, rtol=RELATIVE, atol=ABSOLUTE))
