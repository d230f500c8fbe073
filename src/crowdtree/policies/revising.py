"""Estimate a table again from the answers of a campaign, with the assumed table as the prior.

Docs/model.md, section 13.5, has the priors: cells with few answers follow their question, and
questions with few answers the table. Wrong answers keep their proportions, and "can't tell" its
probability. Classes of the items are unknown: all of it is found by EM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.likelihood import UNSURE, AnswerModel, skilled, urn
from crowdtree.core.outcomes import DASH
from crowdtree.policies import AdaptivePolicy, Policy, SubtypePolicy, policy_from_dict
from crowdtree.policies.base import Answer, FloatArray, normalised

__all__ = ["Estimated", "Gathered", "Table", "estimate", "revised", "table_of"]

TABLE_SD, CELL_SD = 1.0, 0.2
"""Standard deviations of the shifts of the log odds of an error, before any answer."""
QUESTION_SDS = (0.1, 0.2, 0.3, 0.5, 0.8)
"""The same for questions around the whole table: values that are weighed by the answers."""
ITEMS_PER_CLASS = 5
"""Items, per class, that the assumed class shares are worth."""
DEPENDENCE_MEAN = 0.1
"""Mean distance of the dependence from the assumed one, before any answer."""
DEPENDENCES = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8])
LEAST_ERROR = 0.002
"""Error from which an estimate starts where the table says that nobody errs."""
MAX_OF_GUESSING = 0.98
"""Error that an estimate does not exceed, in parts of that of people who guess."""
MAX_STEPS = 60
_SETTLED = 1e-3
_LONGEST_STEP = 1.0


@dataclass(frozen=True, eq=False)
class Table:
    """How often each hypothesis (class or sub-type) occurs, and how answers depend on it."""

    prior: FloatArray
    model: AnswerModel

    @cached_property
    def definite(self) -> NDArray[np.bool_]:
        """Whether some answers are right and others wrong, one row per question."""
        right = self.model.right[:-1]
        return np.asarray(right.any(axis=0) & (~right & (self.model.telling > 0)).any(axis=0))

    @cached_property
    def error(self) -> FloatArray:
        """Probability of a wrong answer, one row per question; one half where none is definite."""
        return np.where(self.definite, wrong_share(self.model.telling, self.model.right[:-1]), 0.5)

    def to_dict(self) -> dict[str, Any]:
        """Write what may change as plain JSON."""
        return {
            "prior": self.prior.tolist(),
            "answers": self.model.telling.tolist(),
            "dependence": self.model.shared_difficulty,
        }

    def changed(self, data: Mapping[str, Any]) -> Table:
        """Make a table of the same shape from what :meth:`to_dict` wrote."""
        telling = np.array(data["answers"], dtype=np.float64)
        model = self.model.replaced(telling, float(data["dependence"]))
        return Table(np.array(data["prior"], dtype=np.float64), model)


def wrong_share(telling: FloatArray, right: NDArray[np.bool_]) -> FloatArray:
    """Share of wrong answers among those that tell; answers along the first axis."""
    return np.asarray((telling * ~right).sum(axis=0) / telling.sum(axis=0))


def guessing_error(telling: FloatArray, right: NDArray[np.bool_]) -> FloatArray:
    """Share of wrong answers of people who guess."""
    exists = telling > 0
    return np.asarray((exists & ~right).sum(axis=0) / exists.sum(axis=0))


def with_error(telling: FloatArray, right: NDArray[np.bool_], error: FloatArray) -> FloatArray:
    """Give answers another error; the right ones keep their proportions, and so do the wrong ones.

    Cells in which no answer, or every answer, is right stay.

    >>> answers, right = np.array([[0.8], [0.15], [0.05]]), np.array([[True], [False], [False]])
    >>> with_error(answers, right, np.array([0.4])).ravel().round(3).tolist()
    [0.6, 0.3, 0.1]
    """
    before = wrong_share(telling, right)
    mixed = (before > 0) & (before < 1)
    part = np.where(right, (1 - error) / np.where(mixed, 1 - before, 1.0), 1.0)
    part = np.where(right, part, error / np.where(mixed, before, 1.0))
    return np.where(mixed, telling * part, telling)


def table_of(policy: Any) -> Table:
    """Table by which a policy updates its beliefs."""
    return Table(np.exp(policy.start().log_posterior), policy.model)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Answers of a campaign, those of equal probability counted together.

    Each kind of answer has its `question` and `value` (no skill: the table is about people in
    general), and what came `before`: earlier answers to the question about the item, [answer,
    kind]. `count` is a sparse matrix (items x kinds of answers).
    """

    question: NDArray[np.int64]
    value: NDArray[np.int64]
    before: NDArray[np.int64]
    count: Any

    @classmethod
    def of(cls, items: Iterable[Sequence[Answer]], slots: int = 3) -> Gathered:
        """Gather the answers of each item, in their order; `slots` are those of the model."""
        from scipy.sparse import csr_array

        rows: list[tuple[int, ...]] = []
        place: list[int] = []
        total = 0
        for item, answers in enumerate(items):
            total += 1
            seen: dict[int, list[int]] = {}
            for question, value, *_ in answers:
                before = seen.setdefault(question, [0] * slots)
                rows.append((question, value, *before))
                place.append(item)
                before[slots - 1 if value == UNSURE else value] += 1
        given = np.array(rows, dtype=np.int64).reshape(-1, 2 + slots)
        kinds, kind = np.unique(given, axis=0, return_inverse=True)
        shape = (total, len(kinds))
        count = csr_array((np.ones(len(rows)), (place, np.ravel(kind))), shape=shape)
        question, value, *earlier = kinds.T
        return cls(question, value, np.stack(earlier), count)

    def log_likelihood(self, model: AnswerModel) -> FloatArray:
        """Logarithm of the probability of all answers about each item, per hypothesis."""
        evidence = model.evidence(self.question, self.value, None, self.before)
        return np.asarray(self.count @ evidence)


@dataclass(frozen=True, eq=False)
class Estimated:
    """A table that was estimated from so many `items`.

    `answers` (by posterior weight) and how many of them were `wrong` are per question and
    hypothesis; `sd` and `class_sd` are standard deviations of the log odds of the errors of each
    question, and of each hypothesis.
    """

    table: Table
    answers: FloatArray
    wrong: FloatArray
    sd: FloatArray
    class_sd: FloatArray
    items: int

    def error(self, table: Table, question: int) -> float:
        """Mean error of a question in a table, over the answers that it was given."""
        weight = self.answers[question] * table.definite[question]
        if not weight.sum():
            return 0.5
        return float(weight @ table.error[question] / weight.sum())


def estimate(assumed: Table, gathered: Gathered) -> Estimated:
    """Estimate a table from answers, with the assumed one as the prior.

    Examples
    --------
    >>> import crowdtree as ct
    >>> problem = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
    >>> wrong = np.random.default_rng(0).random((100, 4)) < 0.2
    >>> said = [[Answer(0, int(w)) for w in row] for row in wrong]  # all items are of class a
    >>> found = estimate(table_of(ct.AdaptivePolicy(problem)), Gathered.of(said))
    >>> bool(0.16 < found.table.error.mean() < 0.24), bool(found.table.prior[0] > 0.85)
    (True, True)
    """
    rho = assumed.model.shared_difficulty
    start = _with_errors(assumed, assumed.error.clip(LEAST_ERROR, 1 - LEAST_ERROR), rho)
    strength = ITEMS_PER_CLASS * len(assumed.prior)
    table, shift = start, np.zeros(start.error.shape)
    items = gathered.count.shape[0]
    for step in range(MAX_STEPS):
        log_like = gathered.log_likelihood(table.model)
        posterior = np.exp(normalised(np.log(table.prior) + log_like))
        prior = (strength * assumed.prior + posterior.sum(axis=0)) / (strength + items)
        score, bend = _slopes(gathered, table, posterior)
        moved = _shrunk(shift, score, bend) - shift
        shift = shift + np.clip(moved, -_LONGEST_STEP, _LONGEST_STEP)
        changed = replace(_shifted(start, shift, table.model.shared_difficulty), prior=prior)
        if step % 5 == 4:
            changed = _with_dependence(gathered, changed, rho)
        rho_moved = changed.model.shared_difficulty != table.model.shared_difficulty
        still = np.abs(moved).max() < _SETTLED and np.abs(prior - table.prior).max() < _SETTLED
        table = changed
        if still and not rho_moved and step % 5 == 4:
            break
    return _finished(gathered, table, posterior, items)


def _slopes(
    gathered: Gathered, table: Table, posterior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Score and expected curvature of the shift of each cell."""
    each_score, each_bend = _per_answer(gathered, table)
    weight = np.asarray(gathered.count.T @ posterior)
    score, bend = np.zeros(table.error.shape), np.zeros(table.error.shape)
    np.add.at(score, gathered.question, weight * each_score)
    np.add.at(bend, gathered.question, weight * each_bend)
    return score, bend


def _per_answer(gathered: Gathered, table: Table) -> tuple[FloatArray, FloatArray]:
    """Score and curvature of one answer of each kind, by the shift of its cell."""
    model, question = table.model, gathered.question
    share, right = model.telling[:, question], model.right[:-1, question]
    rho, asked = model.shared_difficulty, gathered.before[:-1].sum(axis=0)
    if model.knows_unsure:
        asked = asked + gathered.before[-1]
    now = urn(share, rho, gathered.before[:-1, :, None], asked[:, None])
    slope = share * (~right - wrong_share(share, right)) * table.definite[question]
    slope *= ((1 - rho) / ((1 - rho) + rho * asked))[:, None]
    relative = np.divide(slope, now, out=np.zeros_like(slope), where=now > 0)
    tells = gathered.value != UNSURE
    score = relative[np.where(tells, gathered.value, 0), np.arange(len(question))]
    return score * tells[:, None], (slope * relative).sum(axis=0)


def _shrunk(shift: FloatArray, score: FloatArray, bend: FloatArray) -> FloatArray:
    """Shifts of the cells given their scores: the mean of the normal posterior, in closed form."""
    held = np.maximum(bend, 1e-12)
    alone = shift + score / held  # what the answers of each cell say by themselves
    weight = 1 / (1 / held + CELL_SD**2)
    size = weight.sum(axis=1)
    question = (weight * alone).sum(axis=1) / size
    whole, variance = _between_questions(question, size)
    centre = whole + (question - whole) * variance / (variance + 1 / size)
    return np.asarray(
        centre[:, None] + (alone - centre[:, None]) * CELL_SD**2 / (CELL_SD**2 + 1 / held)
    )


def _between_questions(shift: FloatArray, size: FloatArray) -> tuple[float, float]:
    """Shift of the whole table, and the variance of the questions around it.

    Each variance on the grid is weighed by how likely it makes the shifts of the questions, which
    are known to a variance of ``1 / size``: where all errors are wrong alike a question follows the
    others, and where only one is wrong it does not.
    """
    value, centre = [], []
    for sd in QUESTION_SDS:
        spread = sd**2 + 1 / size
        held = (1 / spread).sum() + TABLE_SD**-2
        middle = (shift / spread).sum() / held
        off = ((shift - middle) ** 2 / spread).sum() + (middle / TABLE_SD) ** 2
        value.append(-0.5 * (np.log(spread).sum() + np.log(held) + off))
        centre.append(middle)
    variance = np.array(QUESTION_SDS) ** 2
    chance = np.exp(np.array(value) - max(value)) / variance  # questions mostly differ little
    chance /= chance.sum()
    return float(chance @ np.array(centre)), float(chance @ variance)


def _shifted(start: Table, shift: FloatArray, rho: float) -> Table:
    """Move the errors; no question becomes worse than useless that was not so before."""
    error, model = skilled(start.error, 1, shift), start.model
    most = MAX_OF_GUESSING * guessing_error(model.telling, model.right[:-1])
    return _with_errors(start, np.minimum(error, np.maximum(start.error, most)), rho)


def _with_errors(table: Table, error: FloatArray, rho: float) -> Table:
    model = table.model
    telling = with_error(model.telling, model.right[:-1], error)
    return Table(table.prior, model.replaced(telling, rho))


def _with_dependence(gathered: Gathered, table: Table, assumed: float) -> Table:
    """Give a table the likeliest dependence."""
    model = table.model
    if not gathered.before.any():  # no question was answered twice about an item
        return table
    tried = np.unique(np.append(DEPENDENCES, assumed))
    value, models = [], [model.replaced(model.telling, rho) for rho in tried.tolist()]
    for other in models:
        joint = np.log(table.prior) + gathered.log_likelihood(other)
        log_like = float(np.logaddexp.reduce(joint, axis=1).sum())
        value.append(log_like - abs(other.shared_difficulty - assumed) / DEPENDENCE_MEAN)
    return Table(table.prior, models[int(np.argmax(value))])


def _finished(gathered: Gathered, table: Table, posterior: FloatArray, items: int) -> Estimated:
    shape, tells = table.error.shape, gathered.value != UNSURE
    weight = np.asarray(gathered.count.T @ posterior) * tells[:, None]
    right = table.model.right[np.where(tells, gathered.value, 0), gathered.question]
    against = table.definite[gathered.question] & ~right
    answers, wrong = np.zeros(shape), np.zeros(shape)
    np.add.at(answers, gathered.question, weight)
    np.add.at(wrong, gathered.question, weight * against)
    # Observed information: squared scores of the items, classes unknown.
    each, _ = _per_answer(gathered, table)
    entry = gathered.count.tocoo()
    row, kind = entry.coords
    score = entry.data * (posterior[row] * each[kind]).sum(axis=1)
    of_item = np.bincount(
        row * shape[0] + gathered.question[kind], score, minlength=items * shape[0]
    )
    of_class = np.asarray(gathered.count @ each) * posterior
    least = 1 / (TABLE_SD**2 + max(QUESTION_SDS) ** 2)
    seen = (of_item.reshape(items, shape[0]) ** 2).sum(axis=0)
    sds = [(one + least) ** -0.5 for one in (seen, (of_class**2).sum(axis=0))]
    return Estimated(table, answers, wrong, sds[0], sds[1], items)


def revised(policy: Policy[Any], table: Table) -> Policy[Any]:
    """Make the same policy with another table.

    A policy that stops at a target keeps it, even if it is now out of reach; a plan keeps its tree
    and its votes and states its errors by the new table. A calibration stays as it is.

    Examples
    --------
    >>> import crowdtree as ct
    >>> policy = ct.AdaptivePolicy(ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1))
    >>> table = table_of(policy).changed(
    ...     {"prior": [0.7, 0.3], "answers": [[[0.8, 0.25]], [[0.2, 0.75]]], "dependence": 0.1})
    >>> revised(policy, table).problem.worker_error.tolist()
    [[0.2, 0.25]]
    """
    data = policy.with_loose_calibration().to_dict()
    answers, rho = table.model.telling, table.model.shared_difficulty
    if isinstance(policy, SubtypePolicy):
        changes = {"share": table.prior.tolist(), "table": answers.tolist()}
        return policy_from_dict(policy.problem, data | changes)
    problem = policy.problem.replace(prior=table.prior, dependence=rho)
    if problem.is_yes_no:
        error = (answers * ~problem.right).sum(axis=0).clip(0, 1)
        problem = problem.replace(worker_error=np.where(problem.outcome == DASH, 0.5, error))
    else:
        answers = answers / answers.sum(axis=0)
        problem = problem.replace(table=answers)
    if isinstance(policy, AdaptivePolicy):
        data |= {"strict": False, "shared_difficulty": rho}
        if data["table"] is not None:
            data["table"] = answers.tolist()
    return policy_from_dict(problem, data)
