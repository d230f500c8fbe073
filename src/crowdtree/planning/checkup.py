"""What is wrong with a table, which classes are hard to tell apart, and what errors would cost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.checking import check_call, named_options
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.loss import Loss
from crowdtree.core.outcomes import SEVERAL
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.result_methods import HtmlShown
from crowdtree.core.source_checks import source_facts, source_lines
from crowdtree.core.text import amount, number, percent, plural, span
from crowdtree.core.tree import Tree
from crowdtree.core.voting import margin_error, margin_votes
from crowdtree.designs.designers import design
from crowdtree.designs.frontiers import Goal
from crowdtree.planning.adaptive_curve import AdaptiveCurve, quick_items
from crowdtree.planning.trees import no_first_question

PAIR_ERROR = 0.01
"""Error at which the cost of separating two classes is stated."""
MAX_PAIRS = 10
MAX_MARGIN = 25
MAX_PAIR_WORK = 2e9
"""Cells of all pairs of classes that are compared; a few seconds."""
TARGETS = (0.05, 0.01, 0.001)


@dataclass(frozen=True)
class Pair:
    """Two classes, how many questions separate them, and the best of these.

    `answers` are the expected answers to that question alone until the two are told apart with an
    error of 1 %; ``None`` where it cannot do that.
    """

    classes: tuple[str, str]
    questions: int
    best: str
    error: float
    answers: float | None


@dataclass(frozen=True)
class Cost:
    """Expected answers per item for a target error, and the error; else the reason. Simulated."""

    target: float
    answers: float | None = None
    error: float | None = None
    reason: str = ""


@dataclass(frozen=True, repr=False)
class Checkup(HtmlShown):
    """The result of :func:`check`; ``to_text()`` is a report of some lines."""

    problem: Problem
    groups: tuple[tuple[str, ...], ...]
    useless: dict[str, str]
    same_questions: tuple[tuple[str, ...], ...]
    same_classes: tuple[tuple[str, ...], ...]
    pairs: tuple[Pair, ...]
    costs: tuple[Cost, ...]
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data.

        >>> import crowdtree as ct
        >>> sorted(check(ct.example("table1")).to_dict())[:4]
        ['classes', 'costs', 'dash', 'dashes']
        """
        problem = self.problem
        return {
            "classes": problem.n_classes,
            "questions": problem.n_questions,
            "notes": list(problem.notes),
            "prior": dict(zip(problem.classes, problem.prior.tolist(), strict=True)),
            "dash": problem.dash,
            "loss": None if problem.loss is None else problem.loss.to_dict(),
            **(
                {"sources": [row._asdict() for row in source_facts(problem)]}
                if problem.has_sources
                else {}
            ),
            "dashes": int((problem.outcome == DASH).sum()),
            "first_questions": self._first_questions(),
            "useless": self.useless,
            "same_questions": [list(group) for group in self.same_questions],
            "same_classes": [list(group) for group in self.same_classes],
            "groups": [list(group) for group in self.groups],
            "pairs": [asdict(pair) | {"classes": list(pair.classes)} for pair in self.pairs],
            "costs": [asdict(cost) for cost in self.costs],
            "remarks": list(self.remarks),
        }

    def _first_questions(self) -> int:
        """Questions that may be asked before anything is known."""
        problem = self.problem
        exists = np.arange(len(problem.right))[:, None] < problem.n_answers
        splits = (~problem.right.all(axis=2) | ~exists).all(axis=0)  # each answer rules some out
        if problem.dash == "inapplicable":
            splits &= (problem.outcome != DASH).all(axis=1)
        return int(splits.sum())

    def __repr__(self) -> str:
        size = f"{self.problem.n_classes} classes x {self.problem.n_questions} questions"
        groups, useless = len(self.groups), len(self.useless)
        return (
            f"<Checkup: {size}; {plural(groups, 'group')} of classes that no question separates, "
            f"{plural(useless, 'useless question')}>"
        )

    def to_text(self) -> str:
        """Report everything, for a terminal."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        problem = self.problem
        yield (
            f"{plural(problem.n_classes, 'class', 'classes')}, "
            f"{plural(problem.n_questions, 'question')}{_answers_words(problem)}."
        )
        if problem.notes:
            yield f"Note: {'; '.join(problem.notes)}"
        yield f"Prior: {self._prior_words()}"
        yield f"Dashes: {self._dash_words()}"
        if problem.loss is not None:
            yield f"Losses: {_loss_words(problem.loss, problem.classes)}"
        yield from source_lines(problem)
        useless = (f"{name} ({why})" for name, why in self.useless.items())
        yield f"Useless questions: {listing(useless, 10) or 'none'}"
        same = ("{" + listing(group, 10) + "}" for group in self.same_questions)
        yield f"Duplicate questions: {listing(same, 10) or 'none'}"
        yield from self._group_lines()
        yield from self.remarks
        yield from self._pair_lines()
        yield from self._cost_lines()

    def _prior_words(self) -> str:
        problem = self.problem
        most, least = int(problem.prior.argmax()), int(problem.prior.argmin())
        if problem.prior[most] == problem.prior[least]:
            return f"equal shares, {percent(float(problem.prior[0]))} each"
        return (
            f"from {percent(float(problem.prior[least]))} ({problem.classes[least]}) to "
            f"{percent(float(problem.prior[most]))} ({problem.classes[most]})"
        )

    def _dash_words(self) -> str:
        problem = self.problem
        count = int((problem.outcome == DASH).sum())
        if not count:
            return "none"
        meaning = "both answers are right, each half the time"
        if problem.n_answers.max() > 2:
            meaning = "every answer is right, each equally often"
        if problem.dash == "inapplicable":
            meaning = (
                "a tree does not ask a question while a class with - is possible, so "
                f"{self._first_questions()} of {plural(problem.n_questions, 'question')} can be "
                "asked first"
            )
        share = percent(count / problem.outcome.size)
        return f"{share} of the cells; {problem.dash}: {meaning}"

    def _group_lines(self) -> Iterator[str]:
        """Classes that no tree separates: their answers are the same, or some are ``-``."""
        alike = {frozenset(group) for group in self.same_classes}
        blocked = [group for group in self.groups if frozenset(group) not in alike]
        shared = " or shared" if (self.problem.outcome == SEVERAL).any() else ""
        if not self.groups and not alike:
            yield "Duplicate classes: none"
        for words, groups in (
            ("No question separates", list(self.same_classes)),
            (f"Not separable, because answers are -{shared}", blocked),
        ):
            yield from (f"{words}: {listing(group, 10)}" for group in groups[:10])
            if len(groups) > 10:
                yield f"{words}: {len(groups) - 10:,} more groups"
        if blocked and self.problem.dash == "inapplicable" and DASH in self.problem.outcome:
            which = "both answers are" if self.problem.n_answers.max() == 2 else "every answer is"
            yield f"If {which} right where - is, pass dash='either' (--dash either)."

    def _pair_lines(self) -> Iterator[str]:
        if not self.pairs:
            return
        yield ""
        yield (
            "Hardest pairs of classes: the best question between them, and the expected answers to "
            f"it until {percent(1 - PAIR_ERROR)} are right"
        )
        yield from _aligned([_pair_row(pair) for pair in self.pairs])

    def _cost_lines(self) -> Iterator[str]:
        if not self.costs:
            return
        yield ""
        yield (
            "What errors cost, with an adaptive policy (a quick simulation; crowdtree plan gives "
            "more)"
        )
        rows = [
            (
                f"error {percent(cost.target)}",
                cost.reason or f"{amount(cost.answers or 0, 'answer')} per item",
                "" if cost.error is None else f"({percent(cost.error)} wrong)",
            )
            for cost in self.costs
        ]
        yield from _aligned(rows)


def _answers_words(problem: Problem) -> str:
    """How many answers questions have, where not all are yes/no, and cells with several right."""
    words = ""
    if problem.n_answers.max() > 2:
        words = f" of {span(problem.n_answers.min(), problem.n_answers.max())} answers"
    several = int((problem.outcome == SEVERAL).sum())
    share = percent(several / problem.outcome.size)
    return f"{words}; several answers are right in {share} of the cells" if several else words


def _loss_words(loss: Loss, classes: tuple[str, ...]) -> str:
    """What mistakes cost, and whether an expert is worth the price for any item."""
    mistakes = np.where(np.eye(len(classes), dtype=bool), -np.inf, loss.matrix)
    truth, label = np.unravel_index(int(mistakes.argmax()), mistakes.shape)
    words = f"{number(loss.largest)} per mistake"
    if loss.least < loss.largest:
        words = (
            f"{number(loss.least)} to {words} (most: {classes[truth]} labelled {classes[label]})"
        )
    if loss.refer is None:
        return words
    worst = loss.matrix.max(axis=0)
    safe = int(worst.argmin())
    words += f"; an expert costs {number(loss.refer)}"
    if worst[safe] > loss.refer:
        return words
    return (
        f"{words} and is never asked, because the label {classes[safe]} costs at most "
        f"{number(float(worst[safe]))}, whatever the item is"
    )


def _pair_row(pair: Pair) -> tuple[str, str, str]:
    others = f"one of {pair.questions}" if pair.questions > 1 else "the only one"
    return (
        " / ".join(pair.classes),
        "out of reach" if pair.answers is None else amount(pair.answers, "answer"),
        f"{pair.best} (error {percent(pair.error)}; {others})",
    )


def _aligned(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    for first, second, third in rows:
        yield f"  {first:<{widths[0]}}  {second:<{widths[1]}}  {third}".rstrip()


@named_options
def check(problem: Problem, *, time_limit: float = 20.0) -> Checkup:
    """Examine a table: prior, dashes, useless and duplicate questions, hard pairs, costs.

    Parameters
    ----------
    problem
        The problem.
    time_limit
        Seconds after which no more costs are simulated.

    Examples
    --------
    >>> import crowdtree as ct
    >>> found = check(ct.example("table1"))
    >>> found.groups, found.pairs[0].classes, round(found.costs[1].answers, 1)
    ((), ('c2', 'c5'), 3.5)
    """
    check_call(check, locals())
    if time_limit < 0:
        raise CrowdtreeError(f"time_limit: expected 0 seconds or more, got {time_limit}")
    start = time.monotonic()
    remarks: list[str] = []
    with warnings.catch_warnings(action="ignore"):
        try:
            tree = design(problem, "gain", allow_groups=True)
            leaves = tree.leaf_classes
            remarks += _partly_labelled(tree)
        except CrowdtreeError:
            leaves = ()
            remarks.append(f"No fixed tree: {no_first_question(problem)}.")
        groups = tuple(dict.fromkeys(members for members in leaves if len(members) > 1))
        costs = tuple(_costs(problem, bool(groups), start + time_limit))
    if problem.n_classes**2 * problem.n_questions > MAX_PAIR_WORK:
        pairs: tuple[Pair, ...] = ()
        remarks.append("Hard pairs are skipped: the table is too large to compare all pairs.")
    else:
        pairs = tuple(_pairs(problem))
    useless = _useless(problem)
    return Checkup(
        problem,
        tuple(tuple(problem.classes[c] for c in members) for members in groups),
        useless,
        _same_questions(problem, useless),
        _same_classes(problem),
        pairs,
        costs,
        tuple(remarks),
    )


def _partly_labelled(tree: Tree) -> Iterator[str]:
    """Say why a tree cannot label all items of a class that has several right answers."""
    problem = tree.problem
    lost = np.zeros(problem.n_classes)
    for rows in tree.leaf_rows:
        other = tree.leaf_label[rows.node] != rows.cls
        np.add.at(lost, rows.cls[other], rows.share[other])
    left = 1 - lost / problem.prior
    some = np.flatnonzero((left > 1e-9) & (left < 1 - 1e-9)).tolist()
    if some:
        names = (f"{problem.classes[c]} ({percent(float(left[c]))})" for c in some)
        yield (
            f"Without any mistake a fixed tree labels only a part of {listing(names)}: "
            "several answers are right for them, and after some of these other classes are just "
            "as possible. "
            "An adaptive policy weighs all answers to a question, and may do better."
        )


def _useless(problem: Problem) -> dict[str, str]:
    """Questions that cannot tell any classes apart, with the reason."""
    found = {}
    for q, name in enumerate(problem.questions):
        definite = problem.outcome[q] != DASH
        right = problem.right[: problem.n_answers[q], q][:, definite]
        guessing = 1 - right.sum(axis=0) / len(right)
        if not definite.any():
            found[name] = "- for every class"
        elif (right == right[:, :1]).all():
            found[name] = f"the same answer{_several(right)} for every class"
        elif (problem.worker_error[q][definite] >= guessing).all():
            found[name] = "people err half the time or more"
            if len(right) > 2:
                found[name] = "people answer no better than by guessing"
    return found


def _several(right: NDArray[np.bool_]) -> str:
    return "s" if right[:, 0].sum() > 1 else ""


def _definite(problem: Problem) -> NDArray[np.bool_]:
    """Table of right answers in which ``-`` has none."""
    return np.asarray(problem.right & (problem.outcome != DASH))


def _same_questions(problem: Problem, useless: dict[str, str]) -> tuple[tuple[str, ...], ...]:
    """Questions that divide the classes in the same way, whatever their answers are called."""
    found: dict[tuple[bytes, ...], list[str]] = {}
    right = _definite(problem)
    for q, name in enumerate(problem.questions):
        if name not in useless:
            parts = sorted(row.tobytes() for row in right[:, q] if row.any())
            found.setdefault(tuple(parts), []).append(name)
    return tuple(tuple(names) for names in found.values() if len(names) > 1)


def _same_classes(problem: Problem) -> tuple[tuple[str, ...], ...]:
    """Classes with the same right answers to every question."""
    found: dict[bytes, list[str]] = {}
    for c, name in enumerate(problem.classes):
        column = problem.outcome[:, c].tobytes()
        if (problem.outcome[:, c] == SEVERAL).any():
            column += problem.right[:, :, c].tobytes()
        found.setdefault(column, []).append(name)
    return tuple(tuple(names) for names in found.values() if len(names) > 1)


def _pairs(problem: Problem) -> Iterator[Pair]:
    """The pairs whose best question is worst; of equals the ones that fewest questions separate.

    A question separates two classes if no answer is right for both, and its error for the pair is
    the larger of the two.
    """
    best, which, count = _separations(problem)
    first, second = np.nonzero(np.triu(count, 1))
    weight = problem.prior[first] + problem.prior[second]
    order = np.lexsort((-weight, count[first, second], -best[first, second]))[:MAX_PAIRS]
    for i, j in zip(first[order].tolist(), second[order].tolist(), strict=True):
        question, error = int(which[i, j]), float(best[i, j])
        answers = _answers_between(problem, question, i, j)
        yield Pair(
            (problem.classes[i], problem.classes[j]),
            int(count[i, j]),
            problem.questions[question],
            error,
            answers,
        )


def _separations(
    problem: Problem,
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
    """For every two classes the least error of a question between them, which, and how many."""
    n = problem.n_classes
    best, which = np.full((n, n), np.inf), np.zeros((n, n), np.int32)
    count = np.zeros((n, n), np.int32)
    for q, error in enumerate(problem.worker_error):
        right = problem.right[:, q].astype(np.float32)
        definite = problem.outcome[q] != DASH
        apart = (right.T @ right == 0) & definite & definite[:, None]
        count += apart
        worse = np.maximum.outer(error, error)
        better = apart & (worse < best)
        best[better], which[better] = worse[better], q
    return best, which, count


def _answers_between(problem: Problem, question: int, one: int, two: int) -> float | None:
    """Expected answers until two classes are told apart, from answers that are right for either.

    Other answers, and "can't tell", only cost. An upper bound where the two differ in reliability.
    """
    right, chances = problem.right[:, question], problem.channel[0, :, question]
    told = np.ones(problem.n_classes) if problem.unsure is None else 1 - problem.unsure[question]
    errors, shares = [], []
    for this, other in ((one, two), (two, one)):
        correct, wrong = (float(chances[right[:, c], this].sum()) for c in (this, other))
        errors.append(wrong / (correct + wrong) if correct + wrong > 0 else 0.5)
        shares.append((correct + wrong) * told[this])
    votes = _answers(max(errors), problem.dependence)
    return None if votes is None else votes / float(min(shares))


def _answers(error: float, dependence: float) -> float | None:
    """Expected answers of a vote that stops at the least lead which errs rarely enough."""
    if error >= 0.5:
        return None
    for margin in range(1, MAX_MARGIN + 1):
        if float(margin_error(error, margin, dependence)) <= PAIR_ERROR:
            return float(margin_votes(error, margin, dependence))
    return None


def _costs(problem: Problem, groups: bool, deadline: float) -> Iterator[Cost]:
    """What the targets cost with an adaptive policy, from few simulated items."""
    curve = AdaptiveCurve(problem, Goal(error=TARGETS[0]), items=quick_items(problem))
    groups = groups or bool(_same_classes(problem))
    for target in TARGETS:
        if time.monotonic() >= deadline:
            yield Cost(target, reason="not computed: the time limit is over")
            continue
        curve.goal = Goal(error=target)
        choice, _ = curve.best()
        if choice is None:
            why = "inseparable classes" if groups else "questions that people answer badly"
            least = percent(float(curve.least_error))
            yield Cost(target, reason=f"out of reach: {least} remain because of {why}")
            continue
        found = choice.performance
        yield Cost(target, float(found.answers), float(found.error))
