"""Estimate a table again from the answers of a campaign, with the assumed table as the prior.

Errors move on the scale of their logarithmic odds (docs/model.md, section 13.5). The shift of a
cell is that of the whole table, plus that of its question, plus its own, each with a normal prior
around 0, so that cells with few answers follow their question, and questions with few answers
follow the table. Class shares have a Dirichlet prior around the assumed ones, and the dependence a
prior that falls from the assumed one. Classes of the items are unknown: all of it is found by EM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.likelihood import TwoAnswers, skilled, urn
from crowdtree.policy import AdaptivePolicy, Policy, SubtypePolicy, policy_from_dict
from crowdtree.policy.base import Answer, FloatArray, normalised
from crowdtree.problem import DASH

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
MOST_ERROR = 0.49
MOST_STEPS = 60
_SETTLED = 1e-3
_LONGEST_STEP = 1.0


@dataclass(frozen=True, eq=False)
class Table:
    """How often each hypothesis (class or sub-type) occurs, and how answers depend on it."""

    prior: FloatArray
    model: TwoAnswers

    @property
    def error(self) -> FloatArray:
        """Probability of a wrong answer, one row per question; one half where none is right."""
        yes, sign = self.model.yes, self.model.sign
        return np.where(sign > 0, 1 - yes, np.where(sign < 0, yes, 0.5))

    def to_dict(self) -> dict[str, Any]:
        """Write what may change as plain JSON."""
        return {
            "prior": self.prior.tolist(),
            "yes": self.model.yes.tolist(),
            "dependence": self.model.shared_difficulty,
        }

    def changed(self, data: Mapping[str, Any]) -> Table:
        """Make a table of the same shape from what :meth:`to_dict` wrote."""
        yes = np.array(data["yes"], dtype=np.float64)
        yes.flags.writeable = False
        model = TwoAnswers(yes, self.model.sign, float(data["dependence"]))
        return Table(np.array(data["prior"], dtype=np.float64), model)


def table_of(policy: Any) -> Table:
    """Table by which a policy updates its beliefs."""
    return Table(np.exp(policy.start().log_posterior), policy.model)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Answers of a campaign, those of equal probability counted together.

    Attributes
    ----------
    question, value, yes, asked
        Of each kind of answer; `yes` and `asked` are the earlier answers to the same question
        about the same item. Skills of workers are left out: the table is about people in general.
    count
        Sparse matrix (items x kinds of answers).
    """

    question: NDArray[np.int64]
    value: NDArray[np.int64]
    yes: FloatArray
    asked: FloatArray
    count: Any

    @classmethod
    def of(cls, items: Iterable[Sequence[Answer]]) -> Gathered:
        """Gather the answers of each item, in their order."""
        from scipy.sparse import csr_array

        rows: list[tuple[int, ...]] = []
        place: list[int] = []
        total = 0
        for item, answers in enumerate(items):
            total += 1
            seen: dict[int, list[int]] = {}
            for question, value, *_ in answers:
                before = seen.setdefault(question, [0, 0])
                rows.append((question, value, before[0], before[1]))
                place.append(item)
                before[0] += value
                before[1] += 1
        told = np.array(rows, dtype=np.int64).reshape(-1, 4)
        kinds, kind = np.unique(told, axis=0, return_inverse=True)
        shape = (total, len(kinds))
        count = csr_array((np.ones(len(rows)), (place, np.ravel(kind))), shape=shape)
        question, value, yes, asked = kinds.T
        return cls(question, value, yes.astype(np.float64), asked.astype(np.float64), count)

    def log_likelihood(self, model: TwoAnswers) -> FloatArray:
        """Logarithm of the probability of all answers about each item, per hypothesis."""
        counts = np.stack([self.asked - self.yes, self.yes])
        evidence = model.evidence(self.question, self.value, None, counts)
        return np.asarray(self.count @ evidence)


@dataclass(frozen=True, eq=False)
class Estimated:
    """A table that was estimated from answers.

    Attributes
    ----------
    table
        The estimate.
    answers
        Answers per question and hypothesis, by posterior weight.
    wrong
        How many of them were wrong.
    sd, class_sd
        Standard deviation of the log odds of the errors of each question, and of each hypothesis.
    items
        Number of items.
    """

    table: Table
    answers: FloatArray
    wrong: FloatArray
    sd: FloatArray
    class_sd: FloatArray
    items: int

    def error(self, table: Table, question: int) -> float:
        """Mean error of a question in a table, over the answers that it was given."""
        weight = self.answers[question] * (table.model.sign[question] != 0)
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
    model = assumed.model
    believed = np.clip(model.yes, LEAST_ERROR, 1 - LEAST_ERROR)
    start = TwoAnswers(believed, model.sign, model.shared_difficulty)
    strength = ITEMS_PER_CLASS * len(assumed.prior)
    table, shift = Table(assumed.prior, start), np.zeros(model.yes.shape)
    items = gathered.count.shape[0]
    for step in range(MOST_STEPS):
        log_like = gathered.log_likelihood(table.model)
        posterior = np.exp(normalised(np.log(table.prior) + log_like))
        prior = (strength * assumed.prior + posterior.sum(axis=0)) / (strength + items)
        score, bend = _slopes(gathered, table.model, posterior)
        moved = _shrunk(shift, score, bend) - shift
        shift = shift + np.clip(moved, -_LONGEST_STEP, _LONGEST_STEP)
        changed = _shifted(start, shift, table.model.shared_difficulty)
        if step % 5 == 4:
            changed = _with_dependence(gathered, Table(prior, changed), model.shared_difficulty)
        rho_moved = changed.shared_difficulty != table.model.shared_difficulty
        still = np.abs(moved).max() < _SETTLED and np.abs(prior - table.prior).max() < _SETTLED
        table = Table(prior, changed)
        if still and not rho_moved and step % 5 == 4:
            break
    return _finished(gathered, table, posterior, items)


def _slopes(
    gathered: Gathered, model: TwoAnswers, posterior: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Score and expected curvature of the shift of each cell."""
    each_score, each_bend = _per_answer(gathered, model)
    weight = np.asarray(gathered.count.T @ posterior)
    score, bend = np.zeros(model.yes.shape), np.zeros(model.yes.shape)
    np.add.at(score, gathered.question, weight * each_score)
    np.add.at(bend, gathered.question, weight * each_bend)
    return score, bend


def _per_answer(gathered: Gathered, model: TwoAnswers) -> tuple[FloatArray, FloatArray]:
    """Score and curvature of one answer of each kind, by the shift of its cell."""
    rho, sign = model.shared_difficulty, model.sign[gathered.question]
    share = model.yes[gathered.question]
    asked = gathered.asked[:, None]
    now = urn(share, rho, gathered.yes[:, None], asked)
    slope = -sign * share * (1 - share) * (1 - rho) / ((1 - rho) + rho * asked)
    value = gathered.value[:, None]
    return slope * (value - now) / (now * (1 - now)), slope**2 / (now * (1 - now))


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


def _shifted(start: TwoAnswers, shift: FloatArray, rho: float) -> TwoAnswers:
    """Move the errors; no question becomes worse than useless that was not so before."""
    moved = skilled(start.yes, start.sign, -shift)
    error = np.where(start.sign > 0, 1 - moved, moved)
    before = np.where(start.sign > 0, 1 - start.yes, start.yes)
    error = np.minimum(error, np.maximum(before, MOST_ERROR))
    yes = np.where(start.sign > 0, 1 - error, np.where(start.sign < 0, error, start.yes))
    yes.flags.writeable = False
    return TwoAnswers(yes, start.sign, rho)


def _with_dependence(gathered: Gathered, table: Table, assumed: float) -> TwoAnswers:
    """Model with the likeliest dependence."""
    model = table.model
    if not gathered.asked.any():  # no question was answered twice about an item
        return model
    tried = np.unique(np.append(DEPENDENCES, assumed))
    value = []
    for rho in tried.tolist():
        other = TwoAnswers(model.yes, model.sign, rho)
        joint = np.log(table.prior) + gathered.log_likelihood(other)
        log_like = float(np.logaddexp.reduce(joint, axis=1).sum())
        value.append(log_like - abs(rho - assumed) / DEPENDENCE_MEAN)
    return TwoAnswers(model.yes, model.sign, float(tried[int(np.argmax(value))]))


def _finished(gathered: Gathered, table: Table, posterior: FloatArray, items: int) -> Estimated:
    model, shape = table.model, table.model.yes.shape
    weight = np.asarray(gathered.count.T @ posterior)
    sign = model.sign[gathered.question]
    against = np.where(gathered.value[:, None] == 1, sign < 0, sign > 0)
    answers, wrong = np.zeros(shape), np.zeros(shape)
    np.add.at(answers, gathered.question, weight)
    np.add.at(wrong, gathered.question, weight * against)
    # Observed information: squared scores of the items, classes unknown.
    each, _ = _per_answer(gathered, model)
    entry = gathered.count.tocoo()
    row, kind = entry.coords
    score = entry.data * (posterior[row] * each[kind]).sum(axis=1)
    of_item = np.bincount(
        row * shape[0] + gathered.question[kind], score, minlength=items * shape[0]
    )
    of_class = np.asarray(gathered.count @ each) * posterior
    least = 1 / (TABLE_SD**2 + max(QUESTION_SDS) ** 2)
    told = (of_item.reshape(items, shape[0]) ** 2).sum(axis=0)
    sds = [(one + least) ** -0.5 for one in (told, (of_class**2).sum(axis=0))]
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
    ...     {"prior": [0.7, 0.3], "yes": [[0.2, 0.75]], "dependence": 0.1})
    >>> revised(policy, table).problem.worker_error.tolist()
    [[0.2, 0.25]]
    """
    data = policy.with_loose_calibration().to_dict()
    yes, rho = table.model.yes, table.model.shared_difficulty
    if isinstance(policy, SubtypePolicy):
        changes = {"share": table.prior.tolist(), "yes_probability": yes.tolist()}
        return policy_from_dict(policy.problem, data | changes)
    outcome = policy.problem.outcome
    error = np.where(outcome == 1, 1 - yes, np.where(outcome == DASH, 0.5, yes)).clip(0, 1)
    problem = policy.problem.replace(prior=table.prior, worker_error=error, dependence=rho)
    if isinstance(policy, AdaptivePolicy):
        data |= {"strict": False, "shared_difficulty": rho}
        if data["yes_probability"] is not None:
            data["yes_probability"] = yes.tolist()
    return policy_from_dict(problem, data)
