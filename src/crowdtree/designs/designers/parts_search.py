"""Optimal trees for questions with any number of answers, with a proof or a gap.

Least additive risk: ``V(S) = min_q [ sum_{i in S} p_i e_{q,i} w_{q,i}(S) + sum_a V(S_a) ]``
(docs/model.md, section 12). A class with k right answers follows each of their branches with a k-th
of its share, so a state is a set of classes and the divisor of each share; states whose divisors
have a common factor are one.

Least misclassification: a class loses at a question what goes down no branch of a right answer, and
less of it arrives below. So a state also has how much of each class arrives; states that differ in
a common factor are one.

A search with a limit either solves a state or proves that its value is above the limit; rounds with
rising limits close the gap from below. NumPy only.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray, IntArray
from crowdtree.core.evaluation import evaluate
from crowdtree.core.problem import Problem
from crowdtree.core.tree import NO_BRANCH, Tree
from crowdtree.core.votes import answer_rows

Key = tuple[bytes, bytes, bytes]
TOLERANCE = 1e-12
"""Relative: differences below it are rounding."""
REPORT_SECONDS = 1.0
ENTRY_BYTES = 700
"""Memory of a state, its key and its Python objects, beside the arrays of its questions."""
ARRIVAL_BITS = 48
"""Binary places in which two states differ if they are told apart: what is below is rounding."""
STEEPEST = 0.95
"""Largest exponent of the bound of the misclassification; a smaller one is a lower bound."""
RATES = (1.0, 0.7, 1.4, 0.5, 2.0)
"""Greedy trees are built with these multiples of the best tree's risk per bit."""


class Stopped(Exception):
    """A limit ends the search."""


class Shape(NamedTuple):
    """A tree in arrays, and its value."""

    question: NDArray[np.int32]
    children: NDArray[np.int32]
    value: float


class _Content(NamedTuple):
    """The classes of a state, up to a common factor of their shares.

    `divisor` and `share` are those of each class where nobody errs, `arrived` is what is not lost.
    """

    members: IntArray
    divisor: IntArray
    share: FloatArray
    arrived: FloatArray


class _Part(NamedTuple):
    """What follows an answer: a state, and the factor by which its value counts here."""

    answer: int
    key: Key
    scale: float


class _Questions(NamedTuple):
    """Questions that split a state: the cost of each and what is known of its parts.

    `rest` is the entropy of the parts, `bound` (a row per answer) their lower bounds at first,
    `estimate` the lower bound of the whole so far, `solved` whether it is the value.
    """

    question: IntArray
    cost: FloatArray
    rest: FloatArray
    bound: FloatArray
    estimate: FloatArray
    solved: BoolArray
    parts: dict[int, list[_Part]]


class _State:
    """What is known of the value of a set of classes with the divisors of their shares."""

    __slots__ = ("best", "exact", "lower", "questions")

    def __init__(self, lower: float, exact: bool) -> None:
        self.lower, self.exact = lower, exact
        self.best = -1  # question of the best tree, once it is exact
        self.questions: _Questions | None = None

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return ENTRY_BYTES + (0 if self.questions is None else 2 * self.questions.bound.nbytes)


class PartsSearch:
    """Branch and bound over states; each is expanded once and its bound only rises.

    For the least additive risk `error` is the chance that the vote of a question is wrong for a
    class; without it, the search is for the least misclassification with one vote per question.
    """

    def __init__(
        self,
        problem: Problem,
        error: FloatArray | None = None,
        *,
        began: float | None = None,
        time_limit: float | None = None,
        gap_limit: float = 0.0,
        node_limit: int | None = None,
        memory_limit_bytes: int = 1 << 30,
        progress: Callable[[float, float, int], None] | None = None,
    ) -> None:
        self.right, self.prior, self.loss = problem.right, problem.prior, problem.loss
        self.right_sets = problem.right_sets
        self.problem = problem
        count = self.right.sum(axis=0)
        self.count = count
        self.exact = error is None
        if error is None:
            error = one_vote_error(problem)
            question, cls = np.indices(count.shape)
            rows = answer_rows(problem, question, cls, range(len(self.right)))
            self.rows = np.ascontiguousarray(np.moveaxis(rows, -1, 0))
            self.spread = not problem.is_yes_no and bool((count > 1).any())
        self.error = np.where(count == problem.n_answers[:, None], 0.0, error)
        self.definite = bool((count <= 1).all())
        least = np.ones(problem.n_classes)
        if self.loss is not None:
            others = ~np.eye(problem.n_classes, dtype=bool)
            least = np.where(others, self.loss.matrix, np.inf).min(axis=1)
        self.step = self.error * least  # least cost of a question where it splits
        self.first = np.where(count > 1, 0.0, self.step) if self.loss is not None else self.step
        self.deadline = None
        if time_limit is not None:
            self.deadline = (time.monotonic() if began is None else began) + time_limit
        self.gap_limit, self.node_limit = gap_limit, node_limit
        self.memory_limit, self.progress = memory_limit_bytes, progress
        self.next_report = time.monotonic() + REPORT_SECONDS
        self.states: dict[Key, _State] = {}
        self.memory = self.nodes = 0
        self.value, self.lower = np.inf, 0.0
        self.status = "optimal"
        every = np.arange(problem.n_classes)
        arrived = np.ones(problem.n_classes) if self.exact else None
        self.root, _ = _key(every, np.ones_like(every), arrived)
        self.apart, self.sure = self._groups()

    # ---------------------------------------------------------------- groups and bounds

    def _groups(self) -> tuple[BoolArray, FloatArray]:
        """Classes no two of which ever share a leaf, and the cost that each has in every tree."""
        n = len(self.prior)
        apart, sure = np.zeros(n, dtype=bool), np.zeros(n)
        if self.definite:  # the groups are the same in every tree
            waiting = [np.arange(n)]
            while waiting:
                members = waiting.pop()
                right = self.right[:, :, members]
                splits = _splits(right)[1]
                if splits.any():
                    row = right[:, int(np.argmax(splits))]
                    waiting += [members[here] for here in row if here.any()]
                    continue
                first = members[int(np.argmax(self.prior[members]))]
                apart[first] = True
                if self.exact:
                    sure[members] = members != first  # the label of the group is another class
                else:
                    sure[first] = self._leaf(members, self.prior[members]) / self.prior[first]
            return apart, sure
        always = self.right[:, (self.count > 0).all(axis=1)]
        for c in np.argsort(-self.prior, kind="stable").tolist():
            shared = (always[:, :, [c]] & always[:, :, apart]).any(axis=0)
            apart[c] = not shared.all(axis=0).any()  # some question separates it from each
        return apart, sure

    def _leaf(
        self, members: IntArray, share: FloatArray, arrived: FloatArray | None = None
    ) -> float:
        """What the label of a leaf loses."""
        if len(members) == 1:
            return 0.0
        if arrived is not None:
            return float(np.delete(arrived, int(np.argmax(share))).sum())
        if self.loss is None:
            return float(share.sum() - share.max())
        return float((share @ self.loss.matrix[np.ix_(members, members)]).min())

    def _code_bound(self, members: IntArray, share: FloatArray) -> float:
        """Huffman's bound with the largest number of branches; every class has one right answer."""
        right = self.right[:, :, members]
        relevant, _ = _splits(right)
        least = self.first[np.ix_(relevant, members)]
        least = np.where(self.count[np.ix_(relevant, members)] > 0, least, np.inf).min(axis=0)
        weight = np.where(np.isfinite(least), share * least, 0.0)
        here = self.apart[members]
        arity = int(right[:, relevant].any(axis=2).sum(axis=0).max())
        heap = weight[here].tolist()
        heap += [0.0] * (-(len(heap) - 1) % (arity - 1))
        heapq.heapify(heap)
        total = 0.0
        while len(heap) > 1:
            merged = sum(heapq.heappop(heap) for _ in range(arity))
            total += merged
            heapq.heappush(heap, merged)
        return total + float(weight[~here].sum() + self.sure[members] @ share)

    # ---------------------------------------------------------------- states

    def _read(self, key: Key) -> _Content:
        members = np.frombuffer(key[0], dtype=np.int16).astype(np.int64)
        divisor = np.ones(len(members), dtype=np.int64)
        if key[1]:
            divisor = np.frombuffer(key[1], dtype=np.int64)
        share = self.prior[members] / divisor
        if not self.exact:
            return _Content(members, divisor, share, share)
        parts = np.frombuffer(key[2], dtype=np.int64) if key[2] else 1 << ARRIVAL_BITS
        return _Content(members, divisor, share, self.prior[members] * (parts / 2.0**ARRIVAL_BITS))

    def _state(self, key: Key, lower: float = 0.0) -> _State:
        state = self.states.get(key)
        if state is not None:
            if not state.exact and lower > state.lower:
                state.lower = lower
        else:
            content = self._read(key)
            members, share = content.members, content.share
            splits = _splits(self.right[:, :, members])[1]
            if not splits.any():
                state = _State(
                    self._leaf(members, share, content.arrived if self.exact else None), True
                )
            else:
                if not self.exact:
                    lower = max(lower, float((self.first[np.ix_(splits, members)] @ share).min()))
                    if self.definite and np.count_nonzero(self.apart[members]) > 1:
                        lower = max(lower, self._code_bound(members, share))
                state = _State(lower, False)
            if self.memory > self.memory_limit:
                self._forget()
            self.states[key] = state
            self.memory += state.size + sum(len(part) for part in key)
        return state

    def _forget(self) -> None:
        """Drop the half with the fewest classes, which are the quickest to solve again."""
        ranked = sorted(self.states.items(), key=lambda item: len(item[0][0]), reverse=True)
        kept = ranked[: len(ranked) // 2 + 1]
        self.states = dict(kept)
        self.memory = sum(state.size + sum(map(len, key)) for key, state in kept)

    def _questions(self, key: Key, state: _State) -> _Questions:
        """List the questions that split a state, with costs and bounds of what follows."""
        if state.questions is not None:
            return state.questions
        self._tick()
        content = self._read(key)
        members, share = content.members, content.share
        right = self.right[:, :, members]
        relevant, splits = _splits(right)
        asked = np.flatnonzero(splits)
        count = self.count[:, members]
        occurs = np.any(right, axis=2)
        spare = np.log2(np.maximum(occurs.sum(axis=0), 1))[:, None] - np.log2(np.maximum(count, 1))
        may = relevant[:, None] & (count > 0)
        bits = may & (spare > 0)
        if self.exact:
            step = first = self._least_lost(right, occurs, members)
            step = -np.log2(np.maximum(1 - step, 1e-300))
        else:
            step, first = self.step[:, members], self.first[:, members]
        rate = np.where(bits, step / np.where(bits, spare, 1.0), np.inf)
        first = np.where(may, first, np.inf)
        # No question is asked twice on a path, so what follows costs the least of the others.
        rate, first = _least_of_others(rate, asked), _least_of_others(first, asked)
        cost = self._cost(asked, content)
        right = right[:, asked]
        apart = self.apart[members]
        if self.exact:
            if self.spread:  # of a class at several leaves, the likelier ones may be nearer
                rate[:, (may & (count > 1)).any(axis=0)] = 0.0
            arriving = right * self._chances(asked, content) * content.arrived
            code = _misclassified(arriving * apart, rate)
        else:
            arriving = right * (share / count[asked])
            code = _entropy(right, share / count[asked] * rate * apart)
        several = (right & apart).sum(axis=2) > 1
        if self.exact and self.definite:
            first = first * (1 - self.sure[members])  # what is lost in any case is added below
        once = np.where(several, (arriving * first).sum(axis=2), 0.0)
        bound = np.maximum(np.maximum(code * (1 - 1e-12), once), 0.0)
        if self.definite:
            bound += arriving @ self.sure[members]
        found = state.questions = _Questions(
            question=asked,
            cost=cost,
            rest=_entropy(right, arriving).sum(axis=0),
            bound=bound,
            estimate=cost + bound.sum(axis=0),
            solved=np.zeros(len(asked), dtype=bool),
            parts={},
        )
        state.lower = max(state.lower, float(found.estimate.min()))
        self.memory += 2 * bound.nbytes
        return found

    def _cost(self, asked: IntArray, content: _Content) -> FloatArray:
        """Cost of asking each question at a state."""
        members = content.members
        cells = np.ix_(asked, members)
        if self.exact:
            kept = self._chances(asked, content) * self.right[:, asked][:, :, members]
            return np.asarray((1 - kept.sum(axis=0)) @ content.arrived)
        error = self.error[cells]
        if self.loss is not None:
            error = error * self.loss.stakes(self.right_sets[cells], members)
        return np.asarray(error @ content.share)

    def _chances(self, asked: IntArray, content: _Content) -> FloatArray:
        """Chance that one vote takes each branch (answer, question, class).

        Votes without a branch take that of the usual answer, as :func:`branch_chances` says.
        """
        members = content.members
        right = self.right[:, asked][:, :, members]
        rows = self.rows[:, asked][:, :, members]
        rows = np.where(np.any(right, axis=2)[..., None], rows, 0.0)
        rest = np.maximum(1 - rows.sum(axis=0), 0.0)
        rest[rest < 1e-12] = 0.0
        if rest.any():
            each = right * (content.share / self.count[np.ix_(asked, members)])
            usual = np.cumsum(each, axis=2)[..., -1].argmax(axis=0)  # summed in the order of a tree
            rows[usual, np.arange(len(asked))] += rest
        return rows

    def _least_lost(self, right: BoolArray, occurs: BoolArray, members: IntArray) -> FloatArray:
        """Least share of a class that a question loses where it splits a part of a state."""
        wrong = np.where(occurs[:, :, None] & ~right, self.rows[:, :, members], np.inf)
        least = wrong.min(axis=0)
        return np.where(np.isfinite(least), least, 0.0)

    def _parts(self, key: Key, question: int) -> list[_Part]:
        """Parts into which a question splits a state."""
        content = self._read(key)
        members = content.members
        wide = content.divisor * self.count[question, members].astype(np.float64)
        below = np.minimum(wide, 2.0**53).astype(np.int64)  # beyond, a share is nothing
        parts = []
        if self.exact:
            chances = self._chances(np.array([question]), content)[:, 0]
            kept = chances * content.arrived / self.prior[members]
        for answer, here in enumerate(self.right[:, question, members]):
            if here.any():
                arrived = kept[answer, here] if self.exact else None
                parts.append(_Part(answer, *_key(members[here], below[here], arrived)))
        return parts

    def _tick(self) -> None:
        """Count an expanded state; stop at a limit."""
        if self.node_limit is not None and self.nodes >= self.node_limit:
            self.status = "node limit"
            raise Stopped
        now = time.monotonic()
        if self.deadline is not None and now >= self.deadline:
            self.status = "time limit"
            raise Stopped
        self.nodes += 1
        if self.progress is not None and now >= self.next_report:
            self.next_report = now + REPORT_SECONDS
            self.progress(self.value, self.lower, self.nodes)

    # ---------------------------------------------------------------- search

    def _search(self, key: Key, limit: float) -> float:
        """Solve a state, or prove that its value is above a limit: its lower bound."""
        state = self._state(key)
        if state.exact or state.lower > limit:
            return state.lower
        questions = self._questions(key, state)
        slack = TOLERANCE * (self.value + (limit if np.isfinite(limit) else 0.0))
        while True:
            estimate = questions.estimate
            place = int(np.argmin(estimate))
            state.lower = max(state.lower, float(estimate[place]))
            if estimate[place] > limit:
                return state.lower
            if questions.solved[place]:
                state.exact, state.best = True, int(questions.question[place])
                state.questions = None
                self.memory -= 2 * questions.bound.nbytes
                return state.lower
            ceiling = min(limit, float(estimate[questions.solved].min(initial=np.inf)))
            try:
                self._follow(key, questions, place, ceiling + slack)
            finally:  # what is proven outlasts a limit
                state.lower = max(state.lower, float(estimate.min()))

    def _follow(self, key: Key, questions: _Questions, place: int, ceiling: float) -> None:
        """Raise the estimate of a question by searching its parts, up to a ceiling."""
        if place not in questions.parts:
            questions.parts[place] = self._parts(key, int(questions.question[place]))
        parts, bound = questions.parts[place], questions.bound[:, place]
        lower = [
            part.scale * self._state(part.key, bound[part.answer] / part.scale).lower
            for part in parts
        ]
        own = float(questions.cost[place])
        try:
            for index, part in enumerate(parts):
                total = own + sum(lower)
                if total > ceiling:
                    return
                left = (ceiling - total + lower[index]) / part.scale
                lower[index] = part.scale * self._search(part.key, left)
            questions.solved[place] = own + sum(lower) <= ceiling
        except Stopped:
            for index, part in enumerate(parts):
                known = self.states.get(part.key)
                if known is not None:
                    lower[index] = max(lower[index], part.scale * known.lower)
            raise
        finally:
            questions.estimate[place] = max(questions.estimate[place], own + sum(lower))

    # ---------------------------------------------------------------- trees

    def tree(self, rate: float | None = None, max_nodes: float = np.inf) -> Shape | None:
        """Read the solved tree; with a `rate` a greedy one, solved where a state is.

        Greedy: the question of least cost plus `rate` times the entropy of its parts. ``None``
        where that makes too many nodes.
        """
        width = len(self.right)
        question: list[int] = []
        children: list[list[int]] = []
        waiting: list[tuple[Key, float, int, int]] = [(self.root, 1.0, -1, 0)]
        value = 0.0
        for key, scale, parent, answer in waiting:
            state = self._state(key)
            if rate is None and not state.exact:
                self._search(key, np.inf)
            content = self._read(key)
            leaf = not _splits(self.right[:, :, content.members])[1].any()
            if parent >= 0:
                children[parent][answer] = -1 if leaf else len(question)
            if leaf:
                value += scale * state.lower
                continue
            if state.exact:
                chosen = state.best
            else:
                assert rate is not None
                questions = self._questions(key, state)
                score = np.maximum(questions.cost + rate * questions.rest, questions.estimate)
                chosen = int(questions.question[int(np.argmin(score))])
            waiting += [
                (part.key, scale * part.scale, len(question), part.answer)
                for part in self._parts(key, chosen)
            ]
            value += scale * float(self._cost(np.array([chosen]), content)[0])
            if len(question) >= max_nodes:
                return None
            question.append(chosen)
            children.append([NO_BRANCH] * width)
        shape = np.array(question, dtype=np.int32), np.array(children, dtype=np.int32)
        return Shape(*shape, value)

    def value_of(self, tree: Tree) -> float:
        """Additive risk or misclassification of a tree."""
        if self.exact:
            return evaluate(tree).misclassification
        total = 0.0
        for step, stakes, rows in zip(tree.steps, tree.stakes, tree.leaf_rows, strict=True):
            error = self.error[tree.question[step.node], step.cls]
            total += float((step.share * stakes) @ error)
            label = tree.leaf_label[rows.node]
            lost = label != rows.cls if self.loss is None else self.loss.matrix[rows.cls, label]
            total += float(rows.share @ lost)
        return total

    def solve(self, value: float, max_nodes: float = np.inf) -> Shape | None:
        """Search until the best tree is proven or a limit is reached; return a better tree, if any.

        `value` is that of the best tree so far, `max_nodes` the limit of greedy trees that are
        tried. Afterwards `value`, `lower`, `status` and `nodes` say what is proven.
        """
        self.value = value
        best: Shape | None = None
        entropy = float(-self.prior @ np.log2(self.prior))

        def offer(shape: Shape | None) -> None:
            nonlocal best
            if shape is not None and shape.value < self.value * (1 - TOLERANCE):
                best, self.value = shape, shape.value

        with _deep_recursion(4 * len(self.prior) + 2000):
            try:
                root = self._state(self.root)
                self._questions(self.root, root)
                self.lower = root.lower
                rates = [self.value / entropy * factor for factor in RATES]
                for rate in rates:
                    offer(self.tree(rate, max_nodes))
                while self.value - self.lower > max(self.gap_limit, TOLERANCE) * self.value:
                    gap = self.value - self.lower
                    last = gap < 0.02 * self.value
                    limit = self.value * (1 - TOLERANCE) if last else self.lower + 0.4 * gap
                    found = self._search(self.root, limit)
                    self.lower = min(max(self.lower, found), self.value)
                    if self._state(self.root).exact:
                        offer(self.tree())
                        self.lower = self.value
                    elif last and found > limit:
                        self.lower = self.value
                    else:
                        offer(self.tree(rates[0], max_nodes))
                if self.value - self.lower > TOLERANCE * self.value:
                    self.status = "gap limit"
            except Stopped:
                pass
            except KeyboardInterrupt:
                self.status = "interrupted"
        if self.status != "optimal":
            known = self.states.get(self.root)
            self.lower = min(max(self.lower, known.lower if known else 0.0), self.value)
            if self.value - self.lower <= TOLERANCE * self.value:
                self.status = "optimal"
        if self.status == "optimal":
            self.lower = self.value
        return best


def one_vote_error(problem: Problem) -> FloatArray:
    """Chance that one worker's vote does not settle on a right answer, by question and class.

    "Can't tell" settles on any of the answers.
    """
    if problem.unsure is None:
        return problem.worker_error
    guess = 1 - problem.right.sum(axis=0) / problem.n_answers[:, None]
    return np.asarray(problem.worker_error * (1 - problem.unsure) + problem.unsure * guess)


def _splits(right: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Questions on which no answer is right for all classes, and those that also apply to all."""
    relevant: BoolArray = ~np.any(right.all(axis=2), axis=0)
    return relevant, relevant & np.all(right.any(axis=0), axis=1)


def _entropy(right: BoolArray, weight: FloatArray) -> FloatArray:
    """``W log2 W - sum w log2 w`` of the part of each answer (row) to each question."""
    total = (right * weight).sum(axis=2)
    return np.asarray(_xlog2(total) - (right * _xlog2(weight)).sum(axis=2))


def _xlog2(values: FloatArray) -> FloatArray:
    return np.asarray(values * np.log2(np.where(values > 0, values, 1.0)))


def _least_of_others(values: FloatArray, asked: IntArray) -> FloatArray:
    """Least of each column without the row of each question asked; 0 where there is none."""
    if len(values) == 1:
        return np.zeros((len(asked), values.shape[1]))
    least, second = np.partition(values, 1, axis=0)[:2]
    found = np.where(values[asked] > least, least, second)
    return np.where(np.isfinite(found), found, 0.0)


def _misclassified(arriving: FloatArray, rate: FloatArray) -> FloatArray:
    """Least misclassification of parts (first axis) by Kraft's inequality.

    A class whose leaf is B bits deep loses at least ``1 - u^r``, where ``u = 2^-B`` and r is its
    least loss per bit; the u of all classes add up to 1 at most. That is convex in u, so every
    multiplier of the constraint gives a bound.
    """
    power = np.minimum(rate, STEEPEST)
    slope = arriving * power
    price = slope.sum(axis=2, keepdims=True)
    best = np.zeros(arriving.shape[:2])
    for _ in range(3):
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.where(slope > 0, np.minimum((slope / price) ** (1 / (1 - power)), 1.0), 0.0)
        lost = np.where(power > 0, arriving * (1 - u**power), 0.0)
        total = u.sum(axis=2, keepdims=True)
        best = np.maximum(best, lost.sum(axis=2) + (price * (total - 1))[..., 0])
        price = price * total
    return np.asarray(best)


def _key(members: IntArray, divisor: IntArray, arrived: FloatArray | None) -> tuple[Key, float]:
    """Name a state, and the factor by which its value is to be multiplied."""
    scale, text, parts = 1.0, b"", b""
    if divisor.max() > 1:
        common = np.gcd.reduce(divisor)
        small = divisor // common
        text = b"" if small.max() == 1 else small.tobytes()
        scale = 1.0 / float(common)
    if arrived is not None:
        scale = float(arrived.max())
        whole = np.rint(arrived / (scale or 1.0) * 2.0**ARRIVAL_BITS).astype(np.int64)
        parts = b"" if whole.min() == 1 << ARRIVAL_BITS else whole.tobytes()
    return (members.astype(np.int16).tobytes(), text, parts), scale


@contextmanager
def _deep_recursion(depth: int) -> Iterator[None]:
    """Allow recursion to the depth of the deepest tree."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, depth))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
