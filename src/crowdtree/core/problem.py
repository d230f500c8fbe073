"""The problem: classes, prior, questions, answers, outcomes and errors (docs/model.md, 1 and 12).

A :class:`Problem` is validated once, when it is made. All other code relies on that.
"""

from __future__ import annotations

import dataclasses
import os
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.channel import (
    check_table,
    check_unsure,
    frozen,
    probabilities,
    read_floats,
    spread_confusion,
)
from crowdtree.core.checking import check_call, check_options, describe_type, got, is_number
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning, did_you_mean, listing
from crowdtree.core.loss import Loss, make_loss, referring
from crowdtree.core.outcomes import (
    CELLS,
    DASH,
    SEVERAL,
    YES_NO,
    check_answers,
    quoted,
    read_outcome,
    shape_text,
    single_answers,
)
from crowdtree.core.result_methods import Framed, HtmlShown, Saved
from crowdtree.core.sources import PEOPLE, Source, SourceError, check_sources, scaled_error
from crowdtree.core.text import span

__all__ = [
    "CELLS",
    "DASH",
    "LINE_BREAKS",
    "PRIOR_TOLERANCE",
    "Dash",
    "Problem",
    "check_dependence",
    "check_names",
]

Dash = Literal["inapplicable", "either"]
LINE_BREAKS = "\\s*[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]\\s*"
"""What becomes one blank in a name."""
PRIOR_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Problem(Framed, Saved, HtmlShown):
    """Classes, and the questions that distinguish them.

    Parameters
    ----------
    classes
        Names of the classes.
    prior
        How often each class occurs; positive, sums to 1. ``None`` means equally often.
    questions
        Names of the questions.
    outcome
        One row per question, one column per class: the error-free answer 0, 1 or ``-`` (also -1;
        yes and no, true and false, ``n/a``). Where a question has named answers: one of these,
        several that are all right (``"red|brown"`` or a list), or ``-``.
    worker_error
        Probability that one worker does not give a right answer: one number, one per question, or
        one per cell. Wrong answers are equally likely, unless `confusion` or `table` says more.
    answers
        Names of each question's answers, 2 to 32; ``None`` for no and yes. A list with an entry
        per question, or a mapping from the names of questions.
    confusion
        Mapping from questions to ``P(answer | right answer)``, one row per right answer.
    table
        Mapping from questions to ``P(answer | class)``, one row per answer, one column per class;
        replaces the worker error of the question.
    unsure
        Probability that a worker can't tell: one number, one per question, or one per cell.
    texts
        What workers are asked, one per question; the question's name where empty.
    descriptions
        What a class is, one per class; may be empty.
    dash
        What ``-`` means: ``"inapplicable"`` (the question is never asked where the class is still
        possible) or ``"either"`` (every answer is right, each equally often).
    normalise
        Scale a prior that does not sum to 1.
    dependence
        Correlation of two people's answers to one question on one item, given its class, from 0
        (independent) to below 1: how strongly people's errors coincide
        (:mod:`crowdtree.core.voting`).
    loss
        What mistakes cost, in any spelling of :func:`crowdtree.core.loss.make_loss`: a matrix
        ``loss[truth][label]``, or groups, pairs, confusions that must never happen, and the price
        of an expert. ``None``: every mistake costs 1 (0/1 loss).
    sources
        Who answers, as a list of :class:`Source` (or mappings with its arguments); ``None`` for
        people alone. The worker error, `confusion`, `table` and `unsure` of the problem are those
        of every source that has none of its own.
    source_dependence
        Share of the wrong answers that come from causes which mislead all sources, and two people
        alike, from 0 (independent) to below 1 (:mod:`crowdtree.core.common_causes`).

    Attributes
    ----------
    notes
        How the file that the problem was loaded from was understood, where it was not plain
        (:func:`crowdtree.load_problem`); not part of the problem, so equality ignores it.

    Examples
    --------
    >>> problem = Problem(
    ...     classes=["robin", "eagle", "trout"],
    ...     prior=[0.5, 0.2, 0.3],
    ...     questions=["flies", "hunts"],
    ...     outcome=[[1, 1, 0], [0, 1, "-"]],
    ...     worker_error=0.1,
    ... )
    >>> problem
    Problem(3 classes x 2 questions, worker error 0.1)
    """

    classes: tuple[str, ...]
    prior: NDArray[np.float64]
    questions: tuple[str, ...]
    outcome: NDArray[np.int8]
    worker_error: NDArray[np.float64]
    texts: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    dash: Dash = "inapplicable"
    normalise: bool = field(default=False, repr=False)
    dependence: float = 0.0
    loss: Loss | None = None
    answers: tuple[tuple[str, ...], ...] = ()
    table: NDArray[np.float64] | None = field(default=None, repr=False)
    unsure: NDArray[np.float64] | None = field(default=None, repr=False)
    sources: tuple[Source, ...] = (PEOPLE,)
    source_dependence: float = 0.0
    expert: Source | None = field(default=None, init=False, repr=False)
    notes: tuple[str, ...] = field(default=(), init=False, repr=False)

    def __init__(
        self,
        classes: Sequence[str],
        prior: ArrayLike | None,
        questions: Sequence[str],
        outcome: ArrayLike | Sequence[Sequence[Any]],
        worker_error: ArrayLike,
        *,
        texts: Sequence[str] | None = None,
        descriptions: Sequence[str] | None = None,
        dash: Dash = "inapplicable",
        normalise: bool = False,
        dependence: float = 0.0,
        loss: Any = None,
        answers: Any = None,
        confusion: Any = None,
        table: Any = None,
        unsure: ArrayLike | None = None,
        sources: Sequence[Source | Mapping[str, Any]] | None = None,
        source_dependence: float = 0.0,
    ) -> None:
        check_call(Problem, {"dash": dash, "normalise": normalise})
        put = object.__setattr__
        put(self, "classes", check_names(classes, "classes", at_least=2))
        put(self, "questions", check_names(questions, "questions", at_least=1))
        put(self, "prior", _prior(prior, self.classes, normalise))
        put(self, "dash", dash)
        put(self, "answers", check_answers(answers, self.questions))
        read = read_outcome(outcome, self.answers, self.questions, self.classes)
        put(self, "outcome", frozen(read.outcome))
        put(self, "_right", read.right)
        costs = make_loss(loss, self.classes)
        asked, expert = check_sources(sources, None if costs is None else costs.refer)
        put(
            self,
            "loss",
            costs if expert is None else referring(costs, expert.price, self.n_classes),
        )
        put(self, "expert", expert)
        if len(asked) == 1:  # its errors are those of the problem
            own = {"worker_error": worker_error, "confusion": confusion, "table": table}
            own = (own | dict.fromkeys(("confusion", "table"))) if asked[0].has_errors else own
            own |= {"unsure": unsure, "dependence": dependence} | asked[0].own
            worker_error, confusion, table = own["worker_error"], own["confusion"], own["table"]
            unsure, dependence = own["unsure"], own["dependence"]
            asked = (asked[0].without_own(),)
        put(self, "sources", asked)
        put(self, "table", spread_confusion(confusion, self, check_table(table, self)))
        put(self, "worker_error", _worker_error(worker_error, self))
        put(self, "unsure", check_unsure(unsure, self))
        put(self, "texts", _texts(texts, self.questions, "texts", "question"))
        put(self, "descriptions", _texts(descriptions, self.classes, "descriptions", "class"))
        put(self, "normalise", False)
        put(self, "dependence", check_dependence(dependence, "dependence"))
        put(self, "source_dependence", check_dependence(source_dependence, "source_dependence"))
        if len(asked) > 1:
            self._views  # noqa: B018 - raises where the errors of a source are wrong

    @classmethod
    def from_strength(
        cls,
        classes: Sequence[str],
        prior: ArrayLike | None,
        questions: Sequence[str],
        strength: ArrayLike,
        *,
        unclear: tuple[float, float] = (0.5, 0.5),
        least_error: float = 0.01,
        missing_error: float = 0.25,
        outcome: ArrayLike | None = None,
        **options: Any,
    ) -> Problem:
        """Make a problem from the share of people who say yes, one row per question.

        The outcome is the likelier answer (``-`` strictly between the two `unclear` shares) and
        the error is the share that says otherwise, at least `least_error`. A missing share (NaN)
        needs a given `outcome`, and gets `missing_error`.

        >>> made = Problem.from_strength(["cat", "cow"], None, ["big"], [[0.05, 0.98]])
        >>> made.outcome.tolist(), made.worker_error.round(2).tolist()
        ([[0, 1]], [[0.05, 0.02]])
        """
        check_call(Problem.from_strength, {"unclear": unclear})
        names = (check_names(questions, "questions", 1), check_names(classes, "classes", 2))
        share = read_floats(strength, "strength")
        if share.shape != (len(names[0]), len(names[1])):
            raise CrowdtreeError(
                f"strength: expected {len(names[0])} questions x {len(names[1])} classes, "
                f"got {shape_text(share)}"
            )
        _check_unclear(unclear)
        missing = np.isnan(share)
        bad = np.argwhere((share < 0) | (share > 1) | (missing & (outcome is None)))
        if len(bad):
            q, c = bad[0]
            value = (
                "no share; pass the outcome table as well"
                if missing[q, c]
                else (f"{share[q, c]:g}; a share lies in [0, 1]")
            )
            raise CrowdtreeError(
                f"strength: question {quoted(names[0][q])}, class {quoted(names[1][c])} has {value}"
            )
        if outcome is None:
            answers = (share >= unclear[1]).astype(np.int8)
            answers[(share > unclear[0]) & (share < unclear[1])] = DASH
        else:
            answers = read_outcome(outcome, (YES_NO,) * len(names[0]), *names).outcome
        error = np.where(missing, missing_error, np.abs(answers - share))
        error = np.clip(np.where(answers == DASH, 0.5, error), least_error, 0.5)
        error = np.where((answers != DASH) & (error >= 0.5), 0.499, error)
        return cls(classes, prior, questions, answers, error, **options)

    @classmethod
    def from_table(
        cls,
        classes: Sequence[str],
        prior: ArrayLike | None,
        questions: Sequence[str],
        table: Mapping[str, Any],
        answers: Any = None,
        **options: Any,
    ) -> Problem:
        """Make a problem from ``P(answer | class)`` of every question.

        The outcome is the likeliest answer (several where they are equally likely), and the error
        the rest. `table` is as in :class:`Problem`.

        >>> cap = {"cap": [[0.7, 0.1], [0.2, 0.1], [0.1, 0.8]]}
        >>> made = Problem.from_table(["a", "b"], None, ["cap"], cap, [["red", "brown", "white"]])
        >>> made.outcome.tolist(), made.worker_error.round(2).tolist()
        ([[0, 2]], [[0.3, 0.2]])
        """
        check_call(Problem.from_table, {"table": table})
        names = check_names(questions, "questions", 1)
        absent = [name for name in names if name not in table]
        if absent:
            raise CrowdtreeError(
                f"table: question {quoted(absent[0])} is missing; expected P(answer | class) of "
                "every question"
            )
        blank = np.full((len(names), len(list(classes))), DASH, dtype=np.int8)
        bare = cls(classes, prior, names, blank, 0.0, answers=answers, dash="either")
        given = check_table(table, bare)
        assert given is not None
        right = given >= given.max(axis=0) * (1 - 1e-9)
        return cls(classes, prior, names, right, 0.0, table=given, answers=answers, **options)

    @property
    def n_classes(self) -> int:
        """Number of classes, N."""
        return len(self.classes)

    @property
    def n_questions(self) -> int:
        """Number of questions, M."""
        return len(self.questions)

    @property
    def error_per_question(self) -> bool:
        """Whether the worker error is the same for all classes of a question."""
        return self.worker_error.strides[1] == 0

    @property
    def n_options(self) -> int:
        """Number of pairs of a source and a question: the answers that can be asked for.

        Option ``source * n_questions + question``; with one source, options are questions.
        """
        return len(self.sources) * self.n_questions

    @property
    def has_sources(self) -> bool:
        """Whether there is more than one source of answers."""
        return len(self.sources) > 1

    @property
    def has_prices(self) -> bool:
        """Whether sources differ from one that costs 1 per answer."""
        return self.has_sources or self.whole is not None or self.sources[0].price != 1

    def source_index(self, name: str) -> int:
        """Index of a source by its name."""
        for place, source in enumerate(self.sources):
            if source.name == name:
                return place
        raise CrowdtreeError(
            f"source {quoted(name)} is not in the problem, which has "
            f"{listing(quoted(source.name) for source in self.sources)}"
        )

    def of_source(self, source: int | str) -> Problem:
        """Make the problem of one source alone, with its errors, dependence and price.

        >>> sources = [Source("people"), Source("model", "model", price=0.1, worker_error=0.2)]
        >>> twins = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1, sources=sources)
        >>> twins.of_source("model").worker_error.tolist()
        [[0.2, 0.2]]
        """
        place = self.source_index(source) if isinstance(source, str) else source
        if not is_number(place, whole=True) or not 0 <= place < len(self.sources):
            raise CrowdtreeError(
                f"source: expected a name, or a number from 0 to {len(self.sources) - 1}, got "
                f"{got(source)}"
            )
        return self._views[int(place)] if self.has_sources else self

    @cached_property
    def _views(self) -> tuple[Problem, ...]:
        """The problem of each source alone."""
        return tuple(self._view(source) for source in self.sources)

    def _view(self, source: Source) -> Problem:
        alone = dataclasses.replace(source, error_factor=1.0)
        try:
            with warnings.catch_warnings():  # a useless source among others is no mistake
                warnings.simplefilter("ignore", CrowdtreeWarning)
                view = self.replace(
                    sources=[alone, *self.all_sources[len(self.sources) :]], source_dependence=0.0
                )
                factor = source.error_factor
                return view if factor == 1 else view._with_errors_times(factor)
        except CrowdtreeError as error:
            raise SourceError(source.name, str(error)) from None

    @property
    def all_sources(self) -> tuple[Source, ...]:
        """Sources that answer questions, and the expert to whom items are referred, if any."""
        return self.sources if self.expert is None else (*self.sources, self.expert)

    def as_options(self) -> Problem:
        """Make a question of each pair of a source and a question, for trees.

        Within a tree no question is asked twice, so errors in common do not matter. With one
        source the problem stays as it is.

        >>> sources = [Source("people"), Source("model", "model", price=0.1, worker_error=0.2)]
        >>> twins = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1, sources=sources)
        >>> twins.as_options().questions
        ('q (people)', 'q (model)')
        """
        if not self.has_sources:
            return self
        return self._as_options

    @property
    def whole(self) -> Problem | None:
        """The problem whose :meth:`as_options` this is; None for others."""
        found: Problem | None = self.__dict__.get("_whole")
        return found

    @cached_property
    def _as_options(self) -> Problem:
        views, count = self._views, len(self.sources)
        names, texts = (
            [f"{words} ({source.name})" for source in self.sources for words in each]
            for each in (self.questions, [self.text(q) for q in range(self.n_questions)])
        )
        table = None
        if any(view.table is not None for view in views):
            blank = np.full(self.channel.shape[1:], np.nan)
            parts = [blank if view.table is None else view.table for view in views]
            table = np.concatenate(parts, axis=1)
        unsure = None
        if any(view.unsure is not None for view in views):
            none = np.zeros(self.outcome.shape)
            unsure = np.concatenate([none if v.unsure is None else v.unsure for v in views])
        own: NDArray[np.bool_] | None = getattr(self, "_right")  # noqa: B009
        axis = 0 if own is None else 1
        again = [v.dependence for v, s in zip(views, self.sources, strict=True) if s.may_repeat]
        changes: dict[str, Any] = {
            "questions": names,
            "texts": texts if self.texts else None,
            "answers": None if set(self.answers) == {YES_NO} else self.answers * count,
            "outcome": np.concatenate([self.outcome if own is None else own] * count, axis=axis),
            "worker_error": np.concatenate([view.worker_error for view in views]),
            "table": table,
            "unsure": unsure,
            "dependence": max(again, default=0.0),
            "sources": [PEOPLE, *self.all_sources[len(self.sources) :]],
            "source_dependence": 0.0,
        }
        with warnings.catch_warnings():  # a useless source among others is no mistake
            warnings.simplefilter("ignore", CrowdtreeWarning)
            made = self.replace(**changes)
        object.__setattr__(made, "_whole", self)
        return made

    def _with_errors_times(self, factor: float) -> Problem:
        """Make the problem with all errors times a factor, at most 1."""
        if self.table is None:
            error = self.worker_error[:, 0] if self.error_per_question else self.worker_error
            return self.replace(worker_error=np.minimum(error * factor, 1.0))
        return self.replace(table=scaled_error(self.channel[0], self.right, factor))

    @cached_property
    def n_answers(self) -> NDArray[np.int64]:
        """Number of answers of each question."""
        return frozen(np.array([len(names) for names in self.answers]))

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Whether an answer is right: ``right[answer, question, class]``.

        Where ``-`` means either, every answer is right; where it means inapplicable, none is.
        """
        found: NDArray[np.bool_] | None = getattr(self, "_right")  # noqa: B009
        right = single_answers(self.outcome, self.n_answers.max()) if found is None else found
        if self.dash == "either":
            exists = np.arange(len(right))[:, None] < self.n_answers
            right = right | (exists[:, :, None] & (self.outcome == DASH))
        return frozen(right)

    @cached_property
    def right_sets(self) -> NDArray[np.uint32]:
        """Right answers of each cell as bits, ``right_sets[question, class]``."""
        bit = np.uint32(1) << np.arange(len(self.right), dtype=np.uint32)
        return frozen((self.right * bit[:, None, None]).sum(axis=0, dtype=np.uint32))

    @cached_property
    def is_yes_no(self) -> bool:
        """Whether two answers, an outcome and an error per cell say everything."""
        return bool(
            self.n_answers.max() == 2
            and self.table is None
            and self.unsure is None
            and not (self.outcome == SEVERAL).any()
            and len(self.sources) == 1
        )

    def require_one_source(self, what: str) -> None:
        """Raise if there is more than one source of answers."""
        sources = (self.whole or self).sources
        if len(sources) > 1:
            raise CrowdtreeError(
                f"{what}: expected one source of answers, got {len(sources)} "
                f"({listing(quoted(source.name) for source in sources)}); "
                "problem.of_source(name) has one"
            )

    def require_yes_no(self, what: str) -> None:
        """Raise unless every question is a plain yes/no question that one source answers."""
        self.require_one_source(what)
        if self.is_yes_no:
            return
        question = int(np.argmax(self.n_answers))
        raise CrowdtreeError(
            f"{what}: expected yes/no questions only, but question "
            f"{quoted(self.questions[question])} has {self.n_answers[question]} answers"
            if self.n_answers[question] > 2
            else f"{what}: expected yes/no questions with one right answer per cell and an error"
        )

    @cached_property
    def channel(self) -> NDArray[np.float64]:
        """``P(answer | source, question, class)``, as ``channel[source, answer, question, class]``.

        Of an answer that is not "can't tell". 0 beyond a question's last answer.

        >>> cap = ["red", "brown", "white"]
        >>> table = Problem(["a", "b"], None, ["cap"], [["red", "brown|white"]], 0.1, answers=[cap])
        >>> table.channel[0, :, 0].round(3).tolist()
        [[0.9, 0.1], [0.05, 0.45], [0.05, 0.45]]
        """
        if len(self.sources) == 1:
            return frozen(probabilities(self)[None])
        return frozen(np.concatenate([view.channel for view in self._views]))

    def text(self, question: int) -> str:
        """What workers are asked: the question's text, or its name where it has none."""
        if not is_number(question, whole=True) or not 0 <= question < self.n_questions:
            raise CrowdtreeError(
                f"question: expected a number from 0 to {self.n_questions - 1}, got {got(question)}"
            )
        return (self.texts[question] if self.texts else "") or self.questions[question]

    def question_index(self, name: str) -> int:
        """Index of a question by its name."""
        place = self._question_places.get(name)
        if place is None:
            raise CrowdtreeError(
                f"question {quoted(name)} is not in the problem, which has "
                f"{listing(map(quoted, self.questions))}{did_you_mean(str(name), self.questions)}"
            )
        return place

    @cached_property
    def _question_places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.questions)}

    def replace(self, **changes: Any) -> Problem:
        """Make a copy with some arguments changed.

        >>> twins = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
        >>> twins.replace(worker_error=0.2).worker_error.tolist()
        [[0.2, 0.2]]
        """
        check_options("replace", Problem, changes, types=False)
        values: dict[str, Any] = {
            f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init
        }
        if self.error_per_question:
            values["worker_error"] = self.worker_error[:, 0]
        if set(self.answers) == {YES_NO}:
            values["answers"] = None  # whatever the number of questions
        if (self.outcome == SEVERAL).any():
            values["outcome"] = getattr(self, "_right")  # noqa: B009
        if "loss" not in changes:
            values["sources"] = list(self.all_sources)
        return Problem(**(values | changes))

    def right_names(self, question: int, cls: int) -> tuple[str, ...]:
        """Names of the right answers of a cell; none for ``-``.

        >>> Problem(["a", "b"], None, ["q"], [[1, "-"]], 0.1).right_names(0, 0)
        ('yes',)
        """
        if self.outcome[question, cls] == DASH:
            return ()
        return tuple(compress(self.answers[question], self.right[:, question, cls]))

    def as_yes_no(self) -> Problem:
        """Ask about each answer by itself: "cap: red?", "cap: brown?" in place of "cap?".

        The same people answer: whoever would say brown says no to red and yes to brown. A cell in
        which the answer is one of several right ones becomes ``-``.

        >>> cap = ["red", "brown", "white"]
        >>> table = Problem(["a", "b"], None, ["cap"], [["red", "brown"]], 0.1, answers=[cap])
        >>> table.as_yes_no().questions, table.as_yes_no().worker_error.round(2).tolist()
        (('cap: red', 'cap: brown'), [[0.1, 0.05], [0.05, 0.1]])
        """
        if set(self.answers) == {YES_NO}:
            return self
        names, outcome, error, unsure = [], [], [], []
        for q, answers in enumerate(self.answers):
            for a in range(len(answers)) if len(answers) > 2 else [1]:
                alone = self.outcome[q] == a
                row = np.where(alone, 1, np.where(self.right[a, q], DASH, 0))
                row[self.outcome[q] == DASH] = DASH
                if (row == row[0]).all():
                    continue  # the answer says nothing
                says = self.channel[0, a, q]
                names.append(
                    self.questions[q] if answers == YES_NO else f"{self.questions[q]}: {answers[a]}"
                )
                outcome.append(row)
                wrong = np.where(alone, 1 - says, says)
                error.append(np.where(row == DASH, 0.0, wrong))
                unsure.append(None if self.unsure is None else self.unsure[q])
        varies = (self.outcome == SEVERAL).any() and not (self.outcome == DASH).any()
        return Problem(
            self.classes,
            self.prior,
            names,
            np.array(outcome),
            np.array(error),
            descriptions=self.descriptions,
            dash="either" if varies else self.dash,
            dependence=self.dependence,
            loss=self.loss,
            unsure=None if self.unsure is None else np.array(unsure),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return (
            self.classes == other.classes
            and self.questions == other.questions
            and self.dash == other.dash
            and self.dependence == other.dependence
            and self.loss == other.loss
            and self.texts == other.texts
            and self.descriptions == other.descriptions
            and np.array_equal(self.prior, other.prior)
            and self.answers == other.answers
            and np.array_equal(self.right, other.right)
            and np.array_equal(self.outcome, other.outcome)
            and _same(self.table, other.table)
            and _same(self.unsure, other.unsure)
            and self.sources == other.sources
            and self.expert == other.expert
            and self.source_dependence == other.source_dependence
            and np.array_equal(self.worker_error, other.worker_error)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        answered = self.outcome != DASH
        errors = self.worker_error[answered] if answered.any() else self.worker_error
        dash = ', dash="either"' if self.dash == "either" else ""
        size = f"{self.n_classes} classes x {self.n_questions} questions"
        if self.n_answers.max() > 2:
            size += f" of {span(self.n_answers.min(), self.n_answers.max())} answers"
        together = f", dependence={self.dependence:g}" if self.dependence else ""
        costs = "" if self.loss is None else f", {self.loss!r}"
        error = span(errors.min(), errors.max())
        who = f", {len(self.sources)} sources" if len(self.sources) > 1 else ""
        return f"Problem({size}, worker error {error}{dash}{together}{costs}{who})"


def _instead(value: Any, call: str) -> str:
    """Say how to get a problem from what was passed in place of one."""
    if isinstance(value, str | os.PathLike):
        return f"load it first: {call}(load_problem({os.fspath(value)!r:.60}))"
    if isinstance(getattr(value, "problem", None), Problem):
        return f"pass its problem: {call}(x.problem) for a {type(value).__name__} x"
    return "make one with Problem(...) or load_problem(...)"


describe_type(Problem, "a Problem", _instead)


def check_dependence(value: float, name: str) -> float:
    """Correlation of two people's answers: a number from 0 to below 1."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number < 1:
        raise CrowdtreeError(f"{name}: expected a number from 0 to below 1, got {value!r}")
    return number


def check_names(names: Sequence[str], what: str, at_least: int) -> tuple[str, ...]:
    r"""Names on one line, without blanks around them; raise where one is empty or occurs twice.

    >>> check_names(["a ", "broken\nline"], "classes", at_least=2)
    ('a', 'broken line')
    """
    thing, count = ("class", "two classes") if what == "classes" else ("question", "one question")
    given = _listed(names, what, f"{thing} names")
    if len(given) < at_least:
        raise CrowdtreeError(f"{what}: expected at least {count}, got {len(given)}")
    found = tuple("" if name is None or name != name else _on_one_line(name) for name in given)
    for place, name in enumerate(found, start=1):
        if not name:
            raise CrowdtreeError(f"{what}: {thing} {place} has no name; give it one")
    if len(set(found)) < len(found):
        twice = [name for name, times in Counter(found).items() if times > 1]
        raise CrowdtreeError(
            f"{what}: {listing(quoted(name) for name in twice)} occurs more than once; "
            "names must differ"
        )
    return found


def _on_one_line(name: object) -> str:
    return re.sub(LINE_BREAKS, " ", str(name).strip())


def _listed(values: Any, what: str, things: str) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise CrowdtreeError(f"{what}: expected a list of {things}, got {quoted(values)}")
    return list(values)


def _check_unclear(unclear: tuple[float, float]) -> None:
    low, high = unclear
    if not 0 <= low <= high <= 1:
        raise CrowdtreeError(
            f"unclear: expected two shares in [0, 1], the smaller first, got {low:g} and {high:g}"
        )


def _prior(
    prior: ArrayLike | None, classes: tuple[str, ...], normalise: bool
) -> NDArray[np.float64]:
    if prior is None:
        return frozen(np.full(len(classes), 1 / len(classes)))
    values = read_floats(prior, "prior")
    if values.shape != (len(classes),):
        raise CrowdtreeError(
            f"prior: expected one number per class ({len(classes)}), got {shape_text(values)}"
        )
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if len(bad):
        raise CrowdtreeError(
            f"prior: class {quoted(classes[bad[0]])} has {values[bad[0]]:g}; every class needs a "
            "positive, finite share (leave out a class that never occurs)"
        )
    with np.errstate(over="ignore"):
        total = float(values.sum())
    if normalise:
        values = values / values.max()  # so that the sum of large numbers stays finite
        values = values / values.sum()
        if not values.all():
            raise CrowdtreeError(
                f"prior: class {quoted(classes[int(np.argmin(values))])} vanishes next to the "
                "others; leave it out"
            )
    elif abs(total - 1) > PRIOR_TOLERANCE:
        raise CrowdtreeError(
            f"prior: sums to {total:.6g}, not 1; correct it, or pass normalise=True "
            "(--normalise) to scale it"
        )
    return frozen(values)


def _same(one: NDArray[np.float64] | None, two: NDArray[np.float64] | None) -> bool:
    if one is None or two is None:
        return one is two
    return np.array_equal(one, two, equal_nan=True)


def _worker_error(worker_error: ArrayLike, problem: Problem) -> NDArray[np.float64]:
    shape = problem.outcome.shape
    given = read_floats(worker_error, "worker_error")
    if given.ndim == 0 and not 0 <= given <= 1:
        raise CrowdtreeError(f"worker_error: expected a probability from 0 to 1, got {given:g}")
    if given.ndim == 2 and given.shape == shape and given.strides[1] == 0:
        given = given[:, 0]  # the broadcast rows of another problem
    if given.ndim == 0:
        given = np.full(shape[0], float(given))
    if given.shape not in ((shape[0],), shape):
        raise CrowdtreeError(
            f"worker_error: expected one number, one per question ({shape[0]}) or one per cell "
            f"({shape[0]} x {shape[1]}), got {shape_text(given)}"
        )
    if problem.table is not None:
        known = ~np.isnan(problem.table[0])
        right = np.where(problem.right, problem.table, 0.0).sum(axis=0)
        wide = given[:, None] if given.ndim == 1 else given
        given = np.where(known, np.clip(1 - right, 0.0, 1.0), wide)
    if given.ndim == 2:
        unneeded = np.isnan(given) & (problem.outcome == DASH)
        if unneeded.any():
            given = np.where(unneeded, 0.5, given)
    bad = np.argwhere(~((given >= 0) & (given <= 1)))
    if len(bad):
        value = given[tuple(bad[0])]
        needed = "is missing; expected" if np.isnan(value) else f"has {value:g}; expected"
        raise CrowdtreeError(
            f"worker_error: {_place(tuple(bad[0]), problem)} {needed} a probability from 0 to 1"
        )
    _warn_useless(given, problem)
    if given.ndim == 1:
        return np.broadcast_to(frozen(given)[:, None], shape)
    return frozen(given)


def _warn_useless(given: NDArray[np.float64], problem: Problem) -> None:
    useless = given >= _error_of_guessing(problem, given.ndim)
    if given.ndim == 2:
        useless = useless & (problem.outcome != DASH)
    bad = np.argwhere(useless)
    if len(bad):
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        warnings.warn(
            f"worker_error: {_place(tuple(bad[0]), problem)} has {given[tuple(bad[0])]:g}{more}; "
            f"at an error of {_limit_text(problem, bad[0])} or more, additional votes do not help",
            CrowdtreeWarning,
            stacklevel=5,
        )


def _error_of_guessing(problem: Problem, ndim: int) -> Any:
    """Error at which a right answer is no likelier than a wrong one; 2 where none is wrong."""
    if problem.n_answers.max() == 2 and not (problem.outcome == SEVERAL).any():
        return 0.5
    count = problem.n_answers.astype(np.float64)
    if ndim == 1:
        return 1 - 1 / count
    limit = 1 - problem.right.sum(axis=0) / count[:, None]
    return np.where(limit > 0, limit, 2.0)


def _limit_text(problem: Problem, place: NDArray[np.intp]) -> str:
    limit = np.asarray(_error_of_guessing(problem, len(place)))
    return f"{float(limit[tuple(place)] if limit.ndim else limit):.3g}"


def _place(index: tuple[int, ...], problem: Problem) -> str:
    where = f"question {quoted(problem.questions[index[0]])}"
    return where if len(index) == 1 else f"{where}, class {quoted(problem.classes[index[1]])}"


def _texts(
    texts: Sequence[str] | None, names: tuple[str, ...], what: str, thing: str
) -> tuple[str, ...]:
    given = [] if texts is None else _listed(texts, what, what)
    if given and len(given) != len(names):
        raise CrowdtreeError(f"{what}: expected one per {thing} ({len(names)}), got {len(given)}")
    found = tuple("" if text is None else str(text).strip() for text in given)
    return found if any(found) else ()
