"""The result of learning: a problem, workers and labels, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.loss import Decision, make_loss
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.result_methods import Framed, Plotted, Saved
from crowdtree.core.stats import normal_quantile
from crowdtree.learning.answers import Answers
from crowdtree.learning.compare import against_assumed, confused_pairs
from crowdtree.learning.judging import Accuracy, Judge
from crowdtree.learning.learned_problem import (
    crowd_confusion,
    label_numbers,
    one_against_rest,
    quietly_replaced,
    stated,
)
from crowdtree.learning.skills import ClassFit, SkillFit
from crowdtree.learning.stating import CrowdMap

if TYPE_CHECKING:
    from crowdtree.core.columns import Columns
    from crowdtree.core.fixed_plan import Plan
    from crowdtree.core.tree import Tree
    from crowdtree.learning.flags import Flags
    from crowdtree.learning.label_models import LabelFit
    from crowdtree.learning.pilot import Credible
    from crowdtree.learning.subtypes import Subtypes
    from crowdtree.learning.table_discount import Discount
    from crowdtree.policies import AdaptivePolicy

Kind = Literal["labels", "classes"]
_MAX_PAIRS = 100  # pairs of confused classes in the JSON form


class Range(NamedTuple):
    """Lower and upper ends, of one number or of a table of them."""

    low: Any
    high: Any


class Intervals(NamedTuple):
    """Credible intervals of what :attr:`Learned.problem` holds: estimates, not bounds."""

    level: float
    prior: Range
    worker_error: Range
    table: Range | None = None
    """Of ``problem.table``, where questions have several answers."""


class LearnedSource(NamedTuple):
    """One source of answers: who they are, and how often they err."""

    name: str
    kind: str
    price: float
    workers: int
    answers: int
    error: float
    low: float
    high: float


class Worker(NamedTuple):
    """One worker: skill 0 is the typical worker, +1 errs with odds 2.7 times lower."""

    name: str
    answers: int
    skill: float
    low: float
    high: float
    error: float
    error_low: float
    error_high: float
    agreement: float


@dataclass(eq=False)
class Learned(Framed, Saved, Plotted):
    """The result of :func:`crowdtree.learning.learn`.

    Attributes
    ----------
    problem
        Classes, prior, outcome and worker error, ready for design.
    kind
        ``"labels"``: one question whose answers are the classes; ``"classes"``: questions about
        them, with yes and no or other answers.
    answers
        The answers, encoded.
    posterior
        Probability of each class (column) for each item (row), in the order of ``answers.tasks``.
        Of one question it is what is stated (:mod:`crowdtree.learning.stating`). Of questions about
        the classes it is what the fit believes; :meth:`item`, :meth:`label_columns` and
        :attr:`accuracy` state it discounted, by the :attr:`discount`.
    fit
        Cells and skills.
    counts
        Expected answers (worker, label, class) of a one-question set by the stated probabilities;
        empty otherwise.
    labelling
        The fit of a one-question set: models, and posteriors before they are stated.
    fitted_discount
        What probabilities are stated by; None where they are stated as fitted, and of questions
        about the classes before :meth:`calibrate`, whose :attr:`discount` is made on first use.
    checked
        Class of each item that :meth:`calibrate` has counted, -1 for the others.
    converged
        Whether the fit converged. A model of one question that did not is not used; of questions
        about the classes, skills that did not are withheld (NaN), and workers count as alike. A
        flag names it.
    trace
        What the fit maximises, after every step: it never falls. Of one question it is the sum of
        the bounds of the models (empty for ``method="majority"``), of questions about the classes
        the log posterior, up to a constant, once the priors are estimated.
    refit
        Learn from other answers, as ``refit(answers, gold)`` with the options of this result.
    gold
        Known class of each item, -1 where unknown.
    gold_weight
        Weight of each known item in the :attr:`discount` of questions about the classes, where an
        audit has drawn them with unequal chances.
    level
        Level of the intervals.
    keep_repeats
        Whether all answers of a worker to one question on one item count, not the last alone.
    updated
        Whether :meth:`update` has taken in answers.
    """

    problem: Problem
    kind: Kind
    answers: Answers
    posterior: FloatArray
    fit: SkillFit
    trace: tuple[float, ...]
    gold: NDArray[np.int32]
    refit: partial[Learned]
    level: float = 0.95
    keep_repeats: bool = False
    counts: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    labelling: LabelFit | None = None
    fitted_discount: Discount | None = None
    checked: NDArray[np.int32] | None = None
    gold_weight: FloatArray | None = None
    converged: bool = True
    assumed: Problem | None = None
    updated: bool = False
    refits: dict[tuple[int, int], Any] = field(init=False, repr=False, default_factory=dict)
    """Tables without each part of the items, learned once for policies of several budgets."""

    # ---------------------------------------------------------------- items

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.problem.classes

    @property
    def labels(self) -> Mapping[str, str]:
        """Label of each item: its likeliest class, the first of equals.

        Where mistakes have different costs (see :meth:`with_loss`), the label of least expected
        loss by the stated probabilities.
        """
        names = np.array(self.classes, dtype=object)[self._decision.label]
        return dict(zip(self.task_index, names.tolist(), strict=True))

    @cached_property
    def _decision(self) -> Decision:
        """The label of each item and, where mistakes have costs, its expected loss."""
        judge, plain = Judge(self.problem.loss), self.fit.posterior
        return judge.decide(plain, plain if judge.loss is None else self.stated_posterior)

    def with_loss(self, loss: Any) -> Learned:
        """Say what mistakes cost: a new result, whose labels minimise the expected loss.

        Parameters
        ----------
        loss
            In any spelling of :func:`crowdtree.core.loss.make_loss`; None for 0/1 loss.

        Examples
        --------
        >>> import crowdtree as ct
        >>> said = ["safe", "safe", "toxic", "safe", "safe", "safe", "toxic", "toxic", "toxic"]
        >>> who = {"task": list("xxxyyyzzz"), "worker": list("abcabcabc")}
        >>> learned = ct.learn({**who, "label": said})
        >>> careful = learned.with_loss({"pairs": {"toxic": {"safe": 20}}})
        >>> learned.labels["x"], careful.labels["x"]
        ('safe', 'toxic')
        >>> list(careful.label_columns())
        ['task', 'label', 'probability', 'expected_loss']
        """
        made = make_loss(loss, self.classes)
        return replace(self, problem=quietly_replaced(self.problem, loss=made))

    def label_columns(self) -> dict[str, list[Any]]:
        """Columns ``task, label, probability``, the first under the name that the answers give it.

        With known items also ``known``: whether the class of the item was given.
        Where mistakes have different costs, also ``expected_loss`` and, where there is an expert,
        ``referred``: whether the expert costs less than any label.
        """
        decision, loss = self._decision, self.problem.loss
        sure = self.stated_posterior[np.arange(len(decision.label)), decision.label]
        columns: dict[str, list[Any]] = {
            self._task_column: list(self.task_index),
            "label": list(self.labels.values()),
            "probability": sure.tolist(),
        }
        if loss is not None:
            columns["expected_loss"] = decision.risk.tolist()
            if loss.refer is not None:
                columns["referred"] = decision.referred.tolist()
        if (self.gold >= 0).any():
            columns["known"] = (self.gold >= 0).tolist()
        return columns

    @property
    def _task_column(self) -> str:
        """What the answers call the items, unless a column of the labels is called so."""
        name = self.answers.task_column
        taken = ("label", "probability", "expected_loss", "referred", "known")
        return name if name.strip() and name.casefold() not in taken else "task"

    def item(self, task: Any) -> FloatArray:
        """Stated probability of each class for an item."""
        place = self.task_index.get(str(task))
        if place is None:
            raise CrowdtreeError(f"task {task!s} is unknown; it was never answered")
        return np.asarray(self.stated_posterior[place])

    @cached_property
    def discount(self) -> Discount | None:
        """How far evidence is discounted before a probability is stated, None for not at all.

        Of questions about the classes it is fitted to the known items, each left out of the table
        that it is tried on: the first use takes the time of learning five times.
        """
        if self.fitted_discount is not None or self.kind == "labels":
            return self.fitted_discount
        from crowdtree.learning.table_discount import TableDiscount

        return TableDiscount.of(self)

    @cached_property
    def stated_posterior(self) -> FloatArray:
        """Probability to state of each class for each item."""
        if self.kind == "labels" or self.fitted_discount is not None:
            return self.posterior
        count = np.diff(self.answers.start)
        return stated(self.fit.posterior, self.gold, count, self.discount)

    @cached_property
    def task_index(self) -> dict[str, int]:
        """Place of each item by name."""
        return {str(name): i for i, name in enumerate(self.answers.tasks.tolist())}

    @cached_property
    def accuracy(self) -> Accuracy:
        """Share of the labels that are right, items of known class left out: an estimate.

        Without known items it rests on how people agree and on how crowds differ; its interval
        says so. :meth:`calibrate` narrows it.
        """
        ends, known = self._judged(Judge(self.problem.loss))
        return Accuracy(*(ends or (1.0, 1.0, 1.0)), known, self.level)

    @cached_property
    def expected_loss(self) -> Accuracy:
        """Expected loss per item of the labels, items of known class left out: an estimate.

        The price of the expert counts where an item is referred. For 0/1 loss it is the share of
        wrong labels.
        """
        if self.problem.loss is None:
            right = self.accuracy
            return Accuracy(1 - right.value, 1 - right.high, 1 - right.low, right.known, self.level)
        ends, known = self._judged(Judge(self.problem.loss, costs=True))
        return Accuracy(*(ends or (0.0, 0.0, 0.0)), known, self.level)

    def _judged(self, judge: Judge) -> tuple[tuple[float, float, float] | None, int]:
        """Judge the labels of items of unknown class; also the known items behind that."""
        open_ = np.flatnonzero(self.gold < 0)
        count, plain = np.diff(self.answers.start)[open_], self.fit.posterior[open_]
        discount = self.discount or self._unchecked()
        if not len(open_):
            return None, discount.known
        # what labels are chosen by: undiscounted where the result states it so
        shown = plain if self.discount is None else self.discount.stated(plain, count)
        made = judge.decide(plain, shown)
        return discount.judged(plain, count, self.level, judge, made), discount.known

    def _unchecked(self) -> Discount:
        """What is known about one question before any item has been checked."""
        return CrowdMap.of_crowd(len(self.classes), np.diff(self.answers.start))

    def calibrate(self, gold: Any) -> Learned:
        """State probabilities by items of known class: a new result, with the same labels.

        Below 20 known items, which a warning says, the result rests mostly on other crowds; from 50
        on mostly on these items. Every item counts once: those whose gold was learned from, and
        those of an earlier call, have been counted already.

        Parameters
        ----------
        gold
            As in :func:`learn`; tasks that were never answered are left out.

        Examples
        --------
        >>> from crowdtree.learning import learn
        >>> answers = {"task": np.repeat(np.arange(30), 2), "worker": ["ann", "ben"] * 30,
        ...            "label": ["cat", "cat", "dog", "dog", "cat", "dog"] * 10}
        >>> learned = learn(answers)
        >>> learned.calibrate({str(i): "cat" for i in range(0, 30, 3)} |
        ...                   {str(i): "dog" for i in range(1, 30, 3)}).accuracy.known
        20
        """
        from crowdtree.learning.answers import gold_codes, gold_weights, read_gold
        from crowdtree.policies.calibrating import warn_few

        if self.updated:
            raise CrowdtreeError("calibrate: expected a result without updates; calibrate first")
        codes = gold_codes(self.answers, read_gold(gold), self.classes)
        new = (codes >= 0) & (self.gold < 0)
        before_now = np.full_like(self.gold, -1) if self.checked is None else self.checked
        fresh = np.flatnonzero(new & (before_now < 0))
        count = np.diff(self.answers.start)
        blind = self.fit.posterior if self.labelling is None else self.labelling.blind
        before = self.discount or self._unchecked()
        weight = gold_weights(self.answers, gold)
        much = None if weight is None else weight[fresh]
        discount = before.updated(blind[fresh], count[fresh], codes[fresh], much)
        warn_few(discount.known, "calibrate")
        checked = np.where(new & (before_now < 0), codes, before_now)
        changes: dict[str, Any]
        if self.labelling is not None and isinstance(discount, CrowdMap):
            labelling = replace(self.labelling, crowd_map=discount)
            numbers = label_numbers(self.answers, labelling, self.gold)
            problem = quietly_replaced(numbers.problem, loss=self.problem.loss)
            changes = {**numbers._asdict(), "labelling": labelling, "problem": problem}
        else:
            changes = {"posterior": stated(self.fit.posterior, self.gold, count, discount)}
        return replace(self, fitted_discount=discount, checked=checked, **changes)

    # ---------------------------------------------------------------- workers

    @cached_property
    def worker_index(self) -> dict[str, int]:
        """Place of each worker by name."""
        return {str(name): i for i, name in enumerate(self.answers.workers.tolist())}

    def _worker_counts(self) -> tuple[FloatArray, FloatArray]:
        """Answers of each worker, and the share that agrees with the labels."""
        a = self.answers
        if self.kind == "labels":
            agreed = np.einsum("wll->w", self.counts)
            count = known = self.counts.sum(axis=(1, 2))
        else:
            best = np.argmax(self.fit.posterior, axis=1)[a.task]
            cell, fit = (a.question_column(), best), self.fit
            sums = None, fit.definite[cell], fit.right_answer[a.label, *cell]
            count, known, agreed = (np.bincount(a.worker, part, a.n_workers) for part in sums)
        return count, agreed / np.maximum(known, 1)

    @property
    def class_fit(self) -> ClassFit:
        """The fit of questions about the classes, for the type checker."""
        assert isinstance(self.fit, ClassFit)
        return self.fit

    @property
    def typical_error(self) -> float:
        """Error of the crowd over the cells, weighted by the answers they hold."""
        return self._mean_over_cells(self.fit.error)

    def _mean_over_cells(self, error: FloatArray) -> float:
        weight = self.fit.answers
        if self.kind == "classes":
            weight = np.where(self.problem.outcome == DASH, 0.0, weight)
        total = float(weight.sum())
        return float((weight * error).sum() / total) if total else 0.5

    def _typical_range(self) -> Range:
        """Interval of the typical error: a Beta of the moments that the cells have together."""
        from scipy.stats import beta

        wrong, right = self.fit.wrong, self.fit.right
        weight = np.where(self.problem.outcome == DASH, 0.0, self.fit.answers)
        share = weight / max(float(weight.sum()), 1e-12)
        mean = float(np.clip(self.typical_error, 1e-6, 1 - 1e-6))
        variance = float((share**2 * beta.var(wrong, right)).sum())
        size = max(mean * (1 - mean) / max(variance, 1e-12) - 1, 1e-2)
        tail = (1 - self.level) / 2
        low, high = (float(beta.ppf(q, mean * size, (1 - mean) * size)) for q in (tail, 1 - tail))
        return Range(low, high)

    @cached_property
    def workers(self) -> Mapping[str, Worker]:
        """Every worker by name, with intervals (estimates)."""
        from scipy.special import expit, logit

        count, agreement = self._worker_counts()
        half = normal_quantile(self.level) * self.fit.skill_sd
        skill, fit = self.fit.skill, self.fit
        # the error of the crowd includes how its workers differ, that at skill 0 does not
        centre = fit.worker_error(0.0) if isinstance(fit, ClassFit) else fit.error
        base = logit(np.clip(self._mean_over_cells(centre), 1e-4, 1 - 1e-4))
        low, high = skill - half, skill + half
        error_low, error_high = expit(base - high), expit(base - low)
        if not self.fit.spread:  # nobody differs: the error of everybody is that of the table
            error_low, error_high = (np.full(len(skill), end) for end in self._typical_range())
        error = expit(base - skill)
        if fit.worker_rates is not None:
            error = fit.worker_rates.mean
            error_low, error_high = fit.worker_rates.range(self.level)
            ends = np.clip([error, error_high, error_low], 1e-9, 1 - 1e-9)
            skill, low, high = base - logit(ends)
        if self.kind == "classes" and not self.converged:  # nothing is known of single workers
            skill = low = high = error = error_low = error_high = np.full(len(skill), np.nan)
        columns = zip(
            map(str, self.answers.workers.tolist()),
            np.rint(count).astype(int).tolist(),
            skill.tolist(),
            low.tolist(),
            high.tolist(),
            error.tolist(),
            error_low.tolist(),
            error_high.tolist(),
            agreement.tolist(),
            strict=True,
        )
        return {row[0]: Worker(*row) for row in columns}

    @cached_property
    def sources(self) -> Mapping[str, LearnedSource]:
        """Every source by name with its error (an estimate); empty where there is one source."""
        sources, rates = self.answers.sources, self.fit.source_rates
        if sources is None or rates is None:
            return {}
        code = sources.codes(self.answers.workers)
        size, low_high = len(sources.names), rates.range(self.level)
        columns = zip(
            sources.names,
            sources.kinds,
            sources.prices,
            np.bincount(code, minlength=size).tolist(),
            np.bincount(code[self.answers.worker], minlength=size).tolist(),
            rates.mean.tolist(),
            *(end.tolist() for end in low_high),
            strict=True,
        )
        return {row[0]: LearnedSource(*row) for row in columns}

    def worker_error(self, worker: Any) -> FloatArray:
        """Error of one worker per cell: ``sigmoid(logit e - skill)``; a typical one if unknown."""
        place = self.worker_index.get(str(worker))
        skill = 0.0 if place is None else float(self.fit.skill[place])
        if isinstance(self.fit, ClassFit):
            return self.fit.worker_error(skill) if place is not None else self.fit.error
        return np.asarray(1 / (1 + np.exp(self.fit.cell + skill)))

    # ---------------------------------------------------------------- uncertainty

    @cached_property
    def intervals(self) -> Intervals:
        """Credible intervals of the prior and of the worker errors (estimates)."""
        from scipy.stats import beta

        tail = (1 - self.level) / 2
        a, b = self.error_posterior
        low, high = (np.asarray(beta.ppf(q, a, b)) for q in (tail, 1 - tail))
        share, size = self.problem.prior, self.fit.prior_size
        ends = [np.asarray(beta.ppf(q, share * size, (1 - share) * size)) for q in (tail, 1 - tail)]
        table = None
        if self.problem.table is not None:
            table = Range(*self.class_fit.table_range(self.level))
        return Intervals(self.level, Range(*ends), Range(low, high), table)

    @property
    def error_posterior(self) -> tuple[FloatArray, FloatArray]:
        """Beta posterior of ``problem.worker_error``: wrong and right, one per cell."""
        if self.kind == "labels" and self.problem.n_questions > 1:
            return one_against_rest(self.fit, crowd_confusion(self.counts))
        return self.fit.wrong, self.fit.right

    @property
    def table(self) -> FloatArray:
        """P(answer | class) of the crowd (answer, question, class): posterior means.

        Also where the outcome is left open, so that the problem of two answers holds one half.
        """
        if isinstance(self.fit, ClassFit):
            return self.fit.table
        given = [max(source.answers, 1) for source in self.sources.values()] or [1]
        return np.asarray(np.average(self.problem.channel[: len(given)], axis=0, weights=given))

    @cached_property
    def flags(self) -> Flags:
        """Findings to check: workers, questions, class pairs and uncertain cells."""
        from crowdtree.learning.flags import find_flags

        return find_flags(self)

    # ---------------------------------------------------------------- going on

    def update(self, answers: Any) -> Learned:
        """Take in new answers without fitting again.

        Changes this object. Workers and items may be new; questions and classes may not. An answer
        that a worker gives again replaces the earlier one, unless ``duplicates="all"`` was learned.
        """
        from crowdtree.learning import online

        online.update(self, answers)
        self.updated, self.refits = True, {}
        for name, member in vars(type(self)).items():
            if isinstance(member, cached_property) and name != "discount":
                self.__dict__.pop(name, None)
        return self

    def classify(self, answers: Any) -> tuple[list[str], FloatArray]:
        """Items of other answers and their posteriors, with each worker's own error."""
        from crowdtree.learning.online import classify

        return classify(self, answers)

    def policy(
        self, target_error: float = 0.05, max_answers: int = 100, **options: Any
    ) -> AdaptivePolicy:
        """Make an adaptive policy with this table; its errors are calibrated on left-out items."""
        from crowdtree.learning.identification import identification_policy

        return identification_policy(self, target_error, max_answers, **options)

    def subtypes(self, most: int = 16, seed: int = 0) -> Subtypes:
        """Find kinds of items within the classes, where answers are not independent given them.

        ``learned.subtypes().policy(max_answers=20, repeats=1)`` asks by them.
        """
        from crowdtree.learning.subtypes import find_subtypes

        return find_subtypes(self, most, seed)

    def upper_problem(self, level: float | None = None) -> Problem:
        """Make the problem with every error at the upper end of its credible interval."""
        from crowdtree.learning.pilot import upper_problem

        check_call(Learned.upper_problem, {"level": level})
        return upper_problem(self, self.level if level is None else level)

    def credible_interval(
        self, plan: Tree | Plan, people: int | None = None, items: int | None = None
    ) -> Credible:
        """Estimate the credible interval of a plan's misclassification.

        It is about answers of `people` other people of the same kind; with `items`, about the share
        that will be counted wrong among so many items
        (:func:`crowdtree.learning.pilot.credible_interval`).
        """
        from crowdtree.learning.pilot import credible_interval

        return credible_interval(plan, self, level=self.level, people=people, items=items)

    def to_columns(self) -> Columns:
        """The answers as columns ``task, worker, label``, as crowd-kit names them."""
        return self.answers.to_columns()

    def to_dict(self) -> dict[str, Any]:
        """Everything that was learned as plain JSON; of confused classes the worst pairs."""
        problem, intervals = self.problem, self.intervals
        share, (low, high) = intervals.prior, intervals.worker_error
        return {
            "classes": list(problem.classes),
            "questions": list(problem.questions),
            "prior": problem.prior.tolist(),
            "outcome": problem.outcome.tolist(),
            "worker_error": problem.worker_error.tolist(),
            **self._tables(),
            "intervals": {
                "level": intervals.level,
                "prior": {"low": share.low.tolist(), "high": share.high.tolist()},
                "worker_error": {"low": low.tolist(), "high": high.tolist()},
            },
            "accuracy": self.accuracy._asdict(),
            **self._costs(),
            "converged": self.converged,
            "workers": [_without_nan(worker._asdict()) for worker in self.workers.values()],
            **({"sources": [s._asdict() for s in self.sources.values()]} if self.sources else {}),
            "confused": [pair._asdict() for pair in confused_pairs(self)[:_MAX_PAIRS]],
            "against_assumed": [
                {**cell._asdict(), "outside": cell.outside} for cell in against_assumed(self)
            ],
            "flags": [flag._asdict() for flag in self.flags],
            "labels": dict(self.labels),
        }

    def _tables(self) -> dict[str, Any]:
        """P(answer | class) of questions with several answers and its ends, for the JSON form."""
        made, problem = self.intervals.table, self.problem
        if made is None or problem.table is None:
            return {}
        parts = {"table": problem.table, "low": made.low, "high": made.high}
        found: dict[str, Any] = {"answers": [list(names) for names in problem.answers]}
        for key, part in parts.items():
            rows = [part[: len(names), q].tolist() for q, names in enumerate(problem.answers)]
            found[key if key == "table" else f"table_{key}"] = rows
        return found | ({} if problem.unsure is None else {"unsure": problem.unsure.tolist()})

    def _costs(self) -> dict[str, Any]:
        """What mistakes cost and what labels are expected to, for the JSON form."""
        loss, decision, tasks = self.problem.loss, self._decision, list(self.task_index)
        if loss is None:
            return {}
        referred = [task for task, r in zip(tasks, decision.referred, strict=True) if r]
        return {
            "loss": loss.to_dict(),
            "expected_loss": self.expected_loss._asdict(),
            "label_losses": dict(zip(tasks, decision.risk.tolist(), strict=True)),
            **({} if loss.refer is None else {"referred": referred}),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Learned):
            return NotImplemented
        return (
            self.problem == other.problem
            and self.labels == other.labels
            and np.array_equal(self.stated_posterior, other.stated_posterior)
            and np.array_equal(self.gold, other.gold)
            and self.workers == other.workers
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        a = self.answers
        return (
            f"Learned({a.n_answers} answers, {a.n_workers} workers, {a.n_tasks} items, "
            f"{self.problem.n_classes} classes; typical error {self.typical_error:.3g})"
        )


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers that are withheld as null, which JSON knows."""
    return {name: None if value != value else value for name, value in row.items()}
