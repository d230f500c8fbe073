"""How likely each answer is under each class: the model behind every posterior.

An answer is ``a`` with probability ``table[source, a, q, c]`` (closed forms for yes/no questions
speak of ``yes[q, c]``). A worker of skill ``s`` errs with ``logit error = logit worker_error - s``.
With ``shared_difficulty`` ``rho`` different people's answers to a question about an item follow
Polya's urn (docs/model.md, section 13.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.channel import read_floats
from crowdtree.core.common_causes import Causes
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem, check_dependence

UNSURE = -2
"""The answer "can't tell", which belongs to every question."""
LEAST = 1e-9
"""Least error of any worker: keeps posteriors finite when error-free answers contradict."""
MAX_KEY = 2**62
"""Different numbers that an integer of 64 bits may stand for."""


def read_table(problem: Problem, given: ArrayLike, subtypes: int | None = None) -> FloatArray:
    """Read ``P(answer)`` of each class or sub-type as an array ``[answer, question, class]``.

    Of plain questions with two answers one row per question will do: the chance of the second. A
    class may be NaN where the problem says it.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
    >>> read_table(problem, [[0.2, 0.9]]).round(3).tolist()
    [[[0.8, 0.1]], [[0.2, 0.9]]]
    """
    problem.require_one_source("table")
    table, columns = read_floats(given, "table"), subtypes or problem.n_classes
    shape = (int(problem.n_answers.max()), problem.n_questions, columns)
    if problem.is_yes_no and table.shape == shape[1:]:
        table = np.stack([1 - table, table])
    if table.shape != shape:
        raise CrowdtreeError(
            f"table: expected {shape[0]} answers x {shape[1]} questions x {columns} "
            f"{'sub-types' if subtypes else 'classes'}, got shape {table.shape}"
        )
    exists = np.arange(shape[0])[:, None, None] < problem.n_answers[:, None]
    given_whole = np.abs(table.sum(axis=0) - 1) <= 1e-6
    left_out = np.isnan(table).any(axis=0) & (subtypes is None)
    if np.any((table < 0) | ((table > 0) & ~exists)) or not np.all(given_whole | left_out):
        raise CrowdtreeError(
            "table: expected shares from 0 to 1 that add up to 1 over the answers of each question"
        )
    return table


def binary_entropy(probability: ArrayLike) -> FloatArray:
    """Entropy of a coin, in bits.

    >>> binary_entropy([0.0, 0.11, 0.5]).round(4).tolist()
    [0.0, 0.4999, 1.0]
    """
    p = np.asarray(probability, dtype=np.float64)
    tiny = np.finfo(np.float64).tiny
    yes, no = np.log2(np.maximum(p, tiny)), np.log2(np.maximum(1 - p, tiny))
    return np.asarray(np.abs(p * yes + (1 - p) * no))


class Respondent(NamedTuple):
    """Who answers about each of some items: skill, and spammers with their chances."""

    skill: FloatArray
    spams: NDArray[np.bool_]
    spam: FloatArray
    """``P(answer)`` of a spammer, ``[answer, option]``."""


@dataclass(frozen=True, eq=False)
class AnswerModel:
    """Probabilities of answers given the class, for any number of answers.

    `table` is ``P(answer | class)`` as ``[source, answer, question, class]``, kept 1e-9 away from
    0. "Can't tell" (``UNSURE``) comes last: it has a table of its own where its probabilities are
    known (`knows_unsure`), and is neutral elsewhere. `right` says whether an answer is right,
    ``[answer, question, class]``; skill acts on these. `shared_difficulty` is the correlation of
    two people's answers to one question on one item, from 0 to below 1.

    >>> cap = ["red", "brown", "white"]
    >>> problem = Problem(["a", "b"], None, ["cap"], [["red", "brown|white"]], 0.1, answers=[cap])
    >>> AnswerModel.of(problem).chances(0, skill=1.0).round(3).tolist()
    [[0.961, 0.039], [0.02, 0.48], [0.02, 0.48], [0.0, 0.0]]
    """

    table: FloatArray
    right: NDArray[np.bool_]
    shared_difficulty: float = 0.0
    knows_unsure: bool = False

    @staticmethod
    def of(
        problem: Problem, given: ArrayLike | None = None, shared_difficulty: float | None = None
    ) -> AnswerModel:
        """Make the model of a problem; a `given` table replaces its own where not NaN.

        Without `shared_difficulty` it is the problem's `dependence`.
        """
        if shared_difficulty is None:
            shared_difficulty = problem.dependence
        rho = check_dependence(shared_difficulty, "shared_difficulty")
        if given is None and len(problem.sources) > 1:
            return SourceAnswers.of_sources(problem, rho)
        share, right = problem.channel[0], problem.right
        if given is not None:
            table = read_table(problem, given)
            kept = np.isnan(table).any(axis=0)
            right = np.where(kept, right, likeliest(table))
            share = np.where(kept, share, table)
        return AnswerModel.of_table(problem, share, right, rho, problem.unsure)

    @staticmethod
    def of_table(
        problem: Problem,
        share: FloatArray,
        right: NDArray[np.bool_],
        rho: float = 0.0,
        unsure: FloatArray | None = None,
    ) -> AnswerModel:
        """Make the model of a table ``[answer, question, class]``, or of finer hypotheses."""
        if problem.is_yes_no:
            return TwoAnswers(np.clip(share[1], LEAST, 1 - LEAST), right, rho)
        table = np.zeros((1, len(share) + 1, *share.shape[1:]))
        exists = np.arange(len(share))[:, None, None] < problem.n_answers[:, None]
        table[0, :-1] = np.where(exists, np.maximum(share, LEAST), 0.0)
        if unsure is not None:
            chance = np.clip(unsure, LEAST, 1 - LEAST)
            table[:, :-1] *= 1 - chance
            table[:, -1] = chance
        table /= table.sum(axis=1, keepdims=True)
        right = np.concatenate([right, np.zeros((1, *share.shape[1:]), dtype=bool)])
        table.flags.writeable = False
        return AnswerModel(table, right, rho, unsure is not None)

    @property
    def slots(self) -> int:
        """Answers that are counted, "can't tell" included."""
        return int(self.table.shape[1])

    @property
    def depends(self) -> bool:
        """Whether the next answer depends on earlier ones, given the class."""
        return self.shared_difficulty > 0

    @property
    def telling(self) -> FloatArray:
        """``P(answer | class)`` as ``[answer, question, class]``, without "can't tell"."""
        return self.table[0, :-1]

    def replaced(self, telling: FloatArray, shared_difficulty: float) -> AnswerModel:
        """Make the same model with other probabilities of the answers, as in :attr:`telling`."""
        table = np.concatenate([telling, self.table[0, -1:]])[None]
        table.flags.writeable = False
        return AnswerModel(table, self.right, shared_difficulty, self.knows_unsure)

    @property
    def answers(self) -> list[FloatArray]:
        """``P(answer | class)`` of every answer that is evidence, a table per answer."""
        return list(self.table[0] if self.knows_unsure else self.table[0, :-1])

    @cached_property
    def logs(self) -> FloatArray:
        """Logarithms of the answers of an average worker: ``logs[answer, question, class]``."""
        with np.errstate(divide="ignore"):
            found: FloatArray = np.log(self.table[0])
        if not self.knows_unsure:
            found[-1] = 0.0
        return found

    def _asked(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Answers so far that are evidence."""
        return np.asarray((counts if self.knows_unsure else counts[:-1]).sum(axis=0))

    def slot(self, value: int) -> int:
        """Place of an answer in tables and counts."""
        return self.slots - 1 if value == UNSURE else value

    def chances(
        self, question: int, skill: float = 0.0, counts: NDArray[Any] | None = None
    ) -> FloatArray:
        """``P(answer | class)`` of the next answer, one row per answer.

        `counts` are the answers so far to the question on this item.
        """
        share: FloatArray = self.table[0, :, question]
        if skill:
            share = skilled_answers(share, self.right[:, question], np.asarray(skill))
        if counts is not None and self.shared_difficulty:
            share = urn(share, self.shared_difficulty, counts[:, None], self._asked(counts))
        return share

    def sample(
        self,
        option: NDArray[Any],
        cls: NDArray[Any],
        before: NDArray[Any],
        number: FloatArray,
        by: Respondent | None = None,
    ) -> NDArray[np.int8]:
        """Draw the next answers about items of known class, by their uniform numbers.

        `before` are the answers so far (:meth:`before`); `by` says who answers, if not an average
        worker.
        """
        return self.draw(self._of_items(option, cls, before, by), number)

    def _of_items(
        self,
        option: NDArray[Any],
        cls: NDArray[Any],
        before: NDArray[Any],
        by: Respondent | None,
    ) -> FloatArray:
        """P(answer) of the next answers about items of known class, as ``[answer, item]``."""
        share: FloatArray = self.table[0][:, option, cls]
        if by is not None:
            share = skilled_answers(share, self.right[:, option, cls], by.skill)
            share = np.where(by.spams, by.spam[:, option], share)
        return urn(share, self.shared_difficulty, before, self._asked(before))

    def draw(self, share: FloatArray, number: FloatArray) -> NDArray[np.int8]:
        """Draw an answer from each column of chances, by its uniform number.

        >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
        >>> AnswerModel.of(problem).draw(np.array([[0.2, 0.2], [0.8, 0.8]]), np.array([0.7, 0.9]))
        array([1, 0], dtype=int8)
        """
        edges = np.cumsum(share, axis=0)
        value = np.minimum((number * edges[-1] >= edges).sum(axis=0), len(edges) - 1)
        return np.where(value == self.slots - 1, UNSURE, value).astype(np.int8)

    def before(self, counts: NDArray[Any], row: NDArray[Any], option: NDArray[Any]) -> NDArray[Any]:
        """Take the answers so far that the next one may depend on, from those of many items.

        `counts` are ``[answer, item, option]``; `row` and `option` say which item is asked what.
        """
        return counts[:, row, option]

    def leaning(self, counts: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether earlier answers change the next one, one row per item, one column per option."""
        return np.asarray(counts.any(axis=0))

    def after(self, option: NDArray[Any], before: NDArray[Any]) -> list[FloatArray]:
        """P(answer | class) of the next answers, a table per answer, one row per option."""
        rho, answers = self.shared_difficulty, self.answers
        heard = before[: len(answers)]
        n = heard.sum(axis=0, dtype=heard.dtype)[:, None]
        return [
            urn(table[option], rho, count[:, None], n)
            for table, count in zip(answers, heard, strict=True)
        ]

    def log_likelihood(
        self, question: int, value: int, skill: float = 0.0, counts: NDArray[Any] | None = None
    ) -> FloatArray:
        """Logarithm of the probability of an answer under each class."""
        if value == UNSURE and not self.knows_unsure:
            return np.zeros(self.table.shape[-1])
        before = counts is not None and self.shared_difficulty and counts.any()
        if not skill and not before:
            return np.asarray(self.logs[self.slot(value), question])
        return np.asarray(np.log(self.chances(question, skill, counts)[self.slot(value)]))

    def evidence(
        self,
        question: NDArray[Any],
        value: NDArray[Any],
        skill: FloatArray | None,
        counts: NDArray[Any],
    ) -> FloatArray:
        """Logarithm of the probability of many answers under each class, one row per answer.

        `counts` has a row per answer that may be given, and a column per answer that was.
        """
        slot = np.where(value == UNSURE, self.slots - 1, value)
        if skill is None and not self.shared_difficulty:
            return np.asarray(self.logs[slot, question])
        share = self.table[0][:, question]  # [answer, row, class]
        if skill is not None:
            share = skilled_answers(share, self.right[:, question], skill[:, None])
        asked = self._asked(counts)[:, None]
        share = urn(share, self.shared_difficulty, counts[:, :, None], asked)
        with np.errstate(divide="ignore"):
            found = np.log(share[slot, np.arange(len(slot))])
        return np.where((slot == self.slots - 1)[:, None] & (not self.knows_unsure), 0.0, found)


class TwoAnswers(AnswerModel):
    """Probabilities of yes and no: closed forms of :class:`AnswerModel` for two answers.

    `yes`: ``P(yes | class)``, one row per question; kept 1e-9 away from 0 and 1. `sign`: 1 where
    yes is the right answer, -1 where no is, 0 where neither is; skill acts in that direction.
    `shared_difficulty`: correlation of two people's answers to one question on one item, from 0 to
    below 1.

    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    >>> AnswerModel.of(problem).yes_given(0, skill=1.0).round(3).tolist()
    [0.084, 0.916]
    >>> AnswerModel.of(problem, shared_difficulty=0.5).yes_given(0, yes=1, asked=1).tolist()
    [0.6, 0.9]
    """

    yes: FloatArray
    sign: NDArray[np.int8]

    def __init__(
        self, yes: FloatArray, right: NDArray[np.bool_], shared_difficulty: float = 0.0
    ) -> None:
        put = object.__setattr__
        yes.flags.writeable = False
        put(self, "yes", yes)
        put(self, "sign", right[1].astype(np.int8) - right[0])
        put(self, "shared_difficulty", shared_difficulty)
        put(self, "knows_unsure", False)

    @property
    def slots(self) -> int:
        """No, yes, and "can't tell"."""
        return 3

    @property
    def answers(self) -> list[FloatArray]:
        """P(no | class) and P(yes | class)."""
        return [1 - self.yes, self.yes]

    @property
    def telling(self) -> FloatArray:
        """The same in one array."""
        return np.stack(self.answers)

    def replaced(self, telling: FloatArray, shared_difficulty: float) -> TwoAnswers:
        """Make the same model with other probabilities of the answers."""
        return TwoAnswers(np.array(telling[1]), self.right, shared_difficulty)

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Whether an answer is right."""
        return np.stack([self.sign < 0, self.sign > 0, np.zeros(self.sign.shape, dtype=bool)])

    @cached_property
    def logs(self) -> FloatArray:
        """Logarithms of P(no) and P(yes) of an average worker, and 0 for "can't tell"."""
        return np.stack([np.log1p(-self.yes), np.log(self.yes), np.zeros(self.yes.shape)])

    def yes_given(
        self, question: int, skill: float = 0.0, yes: int = 0, asked: int = 0
    ) -> FloatArray:
        """P(yes | class) of the next answer to a question that was asked before on this item."""
        share = self.yes[question]
        if skill:
            share = skilled(share, self.sign[question], skill)
        return urn(share, self.shared_difficulty, yes, asked)

    def chances(
        self, question: int, skill: float = 0.0, counts: NDArray[Any] | None = None
    ) -> FloatArray:
        """P(no | class) and P(yes | class) of the next answer."""
        before = (0, 0) if counts is None else (int(counts[1]), int(counts[0] + counts[1]))
        yes = self.yes_given(question, skill, *before)
        return np.stack([1 - yes, yes, np.zeros(yes.shape)])

    def sample(
        self,
        option: NDArray[Any],
        cls: NDArray[Any],
        before: NDArray[Any],
        number: FloatArray,
        by: Respondent | None = None,
    ) -> NDArray[np.int8]:
        """Draw yes where the number is below its chance."""
        yes: FloatArray = self.yes[option, cls]
        if by is not None:
            yes = skilled(yes, self.sign[option, cls], by.skill)
            yes = np.where(by.spams, by.spam[1, option], yes)
        if self.shared_difficulty:
            yes = urn(yes, self.shared_difficulty, before[1], before[0] + before[1])
        return (number < yes).astype(np.int8)

    def draw(self, share: FloatArray, number: FloatArray) -> NDArray[np.int8]:
        """Draw yes where the number is below its chance."""
        return np.asarray(number < share[1]).astype(np.int8)

    def after(self, option: NDArray[Any], before: NDArray[Any]) -> list[FloatArray]:
        """P(no | class) and P(yes | class) of the next answers, one row per option."""
        asked = (before[0] + before[1])[:, None]
        yes = urn(self.yes[option], self.shared_difficulty, before[1][:, None], asked)
        return [1 - yes, yes]

    def log_likelihood(
        self, question: int, value: int, skill: float = 0.0, counts: NDArray[Any] | None = None
    ) -> FloatArray:
        """Logarithm of the probability of an answer under each class."""
        if value == UNSURE:
            return np.zeros(self.yes.shape[1])
        yes, asked = (0, 0) if counts is None else (int(counts[1]), int(counts[0] + counts[1]))
        if not skill and not (self.shared_difficulty and asked):
            return np.asarray(self.logs[value, question])
        share = self.yes_given(question, skill, yes, asked)
        return np.log(share) if value else np.log1p(-share)

    def evidence(
        self,
        question: NDArray[Any],
        value: NDArray[Any],
        skill: FloatArray | None,
        counts: NDArray[Any],
    ) -> FloatArray:
        """Logarithm of the probability of many answers under each class, one row per answer."""
        unsure = value == UNSURE
        if skill is None and not self.shared_difficulty:
            return np.asarray(self.logs[np.where(unsure, 2, value), question])
        share = self.yes[question]
        if skill is not None:
            share = skilled(share, self.sign[question], skill[:, None])
        asked = counts[0] + counts[1]
        share = urn(share, self.shared_difficulty, counts[1][:, None], asked[:, None])
        found = np.where(value[:, None] == 1, np.log(share), np.log1p(-share))
        found[unsure] = 0.0
        return found


class SourceAnswers(AnswerModel):
    """Probabilities of answers of several sources, which may err together.

    Options take the place of questions: ``source * questions + question``. Answers depend on
    earlier ones of the same source by the urn of its `dependence`, and on those of all sources by
    common causes (:mod:`crowdtree.core.common_causes`) where `shared` is above 0.

    >>> from crowdtree.core.sources import Source
    >>> models = [Source(name, "model", worker_error=0.1) for name in ("one", "two")]
    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1, sources=models,
    ...                   source_dependence=0.8)
    >>> heard = np.array([[[0, 0]], [[1, 0]], [[0, 0]]])  # the first model said yes
    >>> AnswerModel.of(problem).after(np.array([1]), heard)[1].round(3).tolist()
    [[0.651, 0.961]]
    """

    dependence: FloatArray
    shared: float
    neutral: NDArray[np.bool_]
    """Options for which "can't tell" is no evidence."""

    def __init__(
        self,
        table: FloatArray,
        right: NDArray[np.bool_],
        dependence: FloatArray,
        shared: float,
        neutral: NDArray[np.bool_],
    ) -> None:
        put = object.__setattr__
        put(self, "table", table)
        put(self, "right", right)
        put(self, "dependence", dependence)
        put(self, "shared", shared)
        put(self, "neutral", np.repeat(neutral, right.shape[1]))
        put(self, "shared_difficulty", float(dependence.max()))
        put(self, "knows_unsure", not neutral.all())
        put(self, "_causes", {})

    @classmethod
    def of_sources(cls, problem: Problem, rho: float) -> SourceAnswers:
        """Make the model of a problem with several sources; `rho` where a source has none."""
        alone = [AnswerModel.of(problem.of_source(s)) for s in range(len(problem.sources))]
        slots = max(model.slots for model in alone)
        table = np.zeros((len(alone), slots, *problem.outcome.shape))
        for place, model in enumerate(alone):
            answers = model.answers
            table[place, : len(answers) - model.knows_unsure] = answers[: slots - 1]
            if model.knows_unsure:
                table[place, -1] = answers[-1]
        table.flags.writeable = False
        right = np.zeros(table.shape[1:], dtype=bool)
        right[: len(problem.right)] = problem.right
        own = [rho if s.dependence is None else s.dependence for s in problem.sources]
        neutral = np.array([not model.knows_unsure for model in alone])
        return cls(table, right, np.array(own), problem.source_dependence, neutral)

    @cached_property
    def by_option(self) -> FloatArray:
        """``P(answer | class)`` as ``[answer, option, class]``."""
        slots, classes = self.table.shape[1], self.table.shape[3]
        return np.moveaxis(self.table, 1, 0).reshape(slots, -1, classes)

    @cached_property
    def answers(self) -> list[FloatArray]:
        """``P(answer | class)`` of every answer that is evidence, a table per answer."""
        return list(self.by_option if self.knows_unsure else self.by_option[:-1])

    @cached_property
    def logs(self) -> FloatArray:
        """Logarithms of the answers of an average worker: ``logs[answer, option, class]``."""
        with np.errstate(divide="ignore"):
            found: FloatArray = np.log(self.by_option)
        found[-1, self.neutral] = 0.0
        return found

    @property
    def depends(self) -> bool:
        """Whether the next answer depends on earlier ones, given the class."""
        return bool(self.shared or self.dependence.any())

    def before(self, counts: NDArray[Any], row: NDArray[Any], option: NDArray[Any]) -> NDArray[Any]:
        """Take the answers of all sources to the questions, as ``[answer, row, source]``."""
        return answers_before(counts, row, option, len(self.table))

    def leaning(self, counts: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether earlier answers of any source change the next one."""
        if not self.shared:
            return np.asarray(counts.any(axis=0))
        sources = len(self.table)
        asked = counts.reshape(*counts.shape[:2], sources, -1).any(axis=(0, 2))
        return np.tile(asked, (1, sources))

    def after(self, option: NDArray[Any], before: NDArray[Any]) -> list[FloatArray]:
        """P(answer | class) of the next answers, a table per answer, one row per option."""
        share = self._shares(option, before, None)
        return list(share if self.knows_unsure else share[:-1])

    def _of_items(
        self,
        option: NDArray[Any],
        cls: NDArray[Any],
        before: NDArray[Any],
        by: Respondent | None,
    ) -> FloatArray:
        """P(answer) of the next answers about items of known class, as ``[answer, item]``."""
        share = self._shares(option, before, None if by is None else by.skill, cls)
        return share if by is None else np.where(by.spams, by.spam[:, option], share)

    def chances(
        self, question: int, skill: float = 0.0, counts: NDArray[Any] | None = None
    ) -> FloatArray:
        """``P(answer | class)`` of the next answer to an option, one row per answer."""
        none = np.zeros((self.slots, len(self.table)), dtype=np.int64)
        before = (none if counts is None else counts)[:, None]
        return self._shares(np.array([question]), before, np.array([skill]))[:, 0]

    def log_likelihood(
        self, question: int, value: int, skill: float = 0.0, counts: NDArray[Any] | None = None
    ) -> FloatArray:
        """Logarithm of the probability of an answer under each class."""
        if value == UNSURE and self.neutral[question]:
            return np.zeros(self.table.shape[-1])
        slot = self.slot(value)
        if not skill and (counts is None or not self.depends or not counts.any()):
            return np.asarray(self.logs[slot, question])
        return np.asarray(np.log(np.maximum(self.chances(question, skill, counts)[slot], LEAST)))

    def evidence(
        self,
        question: NDArray[Any],
        value: NDArray[Any],
        skill: FloatArray | None,
        counts: NDArray[Any],
    ) -> FloatArray:
        """Logarithm of the probability of many answers under each class, one row per answer."""
        slot = np.where(value == UNSURE, self.slots - 1, value)
        if skill is None and not self.depends:
            return np.asarray(self.logs[slot, question])
        share = self._shares(question, counts, skill)[slot, np.arange(len(slot))]
        neutral = (slot == self.slots - 1) & self.neutral[question]
        return np.where(neutral[:, None], 0.0, np.log(np.maximum(share, LEAST)))

    def _shares(
        self,
        option: NDArray[Any],
        before: NDArray[Any],
        skill: FloatArray | None,
        cls: NDArray[Any] | None = None,
    ) -> FloatArray:
        """P(answer) of the next answers, ``[answer, item, class]`` (without the class if given).

        `option` is who is asked what, `before` the answers so far to the question, ``[answer, item,
        source]``, and `skill` that of whoever answers, one per item.
        """
        heard = np.array(before.transpose(2, 0, 1), dtype=np.int64)  # [source, answer, item]
        heard[self.neutral[:: self.table.shape[2]], -1] = 0
        found = np.empty((self.slots, len(option), *(self.table.shape[-1:] if cls is None else ())))
        asked, question = np.divmod(option, self.table.shape[2])
        for one in np.unique(question).tolist():
            here = np.flatnonzero(question == one)
            weight, state = self._weights(one, heard[:, :, here])
            for source in np.unique(asked[here]).tolist():
                part = np.flatnonzero(asked[here] == source)
                rows = here[part]
                mine, of = (None if each is None else each[rows] for each in (skill, cls))
                given = self._given(source, one, heard[source][:, rows], mine, of)
                at = state[part]
                share = weight[:, at] if of is None else weight[:, at, of]
                found[:, rows] = np.einsum("k...,ka...->a...", share, given)
        return found

    def _weights(self, question: int, heard: NDArray[Any]) -> tuple[FloatArray, NDArray[np.intp]]:
        """Posteriors of the causes after different answers, and which of them each item has."""
        first, place = distinct_columns(heard.reshape(-1, heard.shape[2]))
        return self._causes_of(question).after(heard[:, :, first], self.dependence), place

    def _given(
        self,
        source: int,
        question: int,
        heard: NDArray[Any],
        skill: FloatArray | None,
        cls: NDArray[Any] | None,
    ) -> FloatArray:
        """P(answer) of the next answers of a source under each cause.

        As ``[cause, answer, item, class]``, for known classes ``[cause, answer, item]``.
        """
        given = self._causes_of(question).given[:, source][:, :, None]  # [cause, answer, 1, class]
        if cls is not None:
            given = given[:, :, 0, cls]
        if skill is not None:
            right = self.right[:, question]
            right, level = (
                (right[:, None], skill[:, None]) if cls is None else (right[:, cls], skill)
            )
            given = np.stack([skilled_answers(table, right, level) for table in given])
        rho = float(self.dependence[source])
        if not rho:
            return given
        said = heard if cls is not None else heard[:, :, None]
        return urn(given, rho, said, said.sum(axis=0))

    def _causes_of(self, question: int) -> Causes:
        known: dict[int, Causes] = getattr(self, "_causes")  # noqa: B009
        if question not in known:
            channel, right = self.table[:, :, question], self.right[:, question]
            some = right.any(axis=0)
            wrong = ~right & some
            wrong[-1] = False  # "can't tell" is not wrong
            known[question] = Causes.of(channel, wrong, self.shared)
        return known[question]


def distinct_columns(counts: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find the distinct columns of counts: the place of one of each, and which one each column is.

    Sorts one number per column, which is much faster than `numpy.unique` along an axis.

    >>> distinct_columns(np.array([[1, 0, 1], [2, 2, 2]]))
    (array([1, 0]), array([1, 0, 1]))
    """
    key, keys = np.zeros(counts.shape[1], dtype=np.int64), 1
    for row in counts:
        size = int(row.max(initial=0)) + 1
        if keys * size > MAX_KEY:
            key = np.unique(key, return_inverse=True)[1]
            keys = len(key)
        key, keys = key * size + row, keys * size
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return first, place


def likeliest(share: FloatArray) -> NDArray[np.bool_]:
    """Answers that no other is more likely than, ``[answer, question, class]``."""
    return np.asarray(share == share.max(axis=0))


def answers_before(
    counts: NDArray[Any], row: NDArray[Any], option: NDArray[Any], sources: int
) -> NDArray[Any]:
    """Take the answers to some questions from counts ``[answer, item, option]``.

    As ``[answer, row]``; of several sources all answers to the question, ``[answer, row, source]``.
    """
    if sources == 1:
        return counts[:, row, option]
    wide = counts.reshape(*counts.shape[:2], sources, -1)
    return wide[:, row, :, option % wide.shape[3]].transpose(1, 0, 2)


def skilled_answers(share: FloatArray, right: NDArray[np.bool_], skill: ArrayLike) -> FloatArray:
    """P(answer) of a worker of some skill, along the first axis: right answers gain ``exp(skill)``.

    Where no answer or every answer is right, skill has no effect.

    >>> skilled_answers(np.array([[0.8], [0.1], [0.1]]), np.array([[True], [False], [False]]), 1.0
    ...     ).round(3).ravel().tolist()
    [0.916, 0.042, 0.042]
    """
    some = right.any(axis=0) & (~right & (share > 0)).any(axis=0)
    moved = np.where(right & some, share * np.exp(np.asarray(skill, dtype=np.float64)), share)
    return np.asarray(moved / moved.sum(axis=0))


def skilled(yes: FloatArray, sign: ArrayLike, skill: ArrayLike) -> FloatArray:
    """P(yes) of a worker of some skill: the logit moves by `skill` towards the right answer.

    >>> skilled(np.array([0.2, 0.8, 0.5]), [-1, 1, 0], 1.0).round(3).tolist()
    [0.084, 0.916, 0.5]
    """
    shift = np.exp(-np.asarray(sign) * np.asarray(skill, dtype=np.float64))
    moved = yes / (yes + (1 - yes) * shift)
    return np.asarray(np.clip(moved, LEAST, 1 - LEAST))


def urn(share: FloatArray, rho: float, yes: ArrayLike, asked: ArrayLike) -> FloatArray:
    """P(yes) of the next answer after `yes` yeses among `asked` answers of correlation `rho`."""
    if not rho:
        return share
    return np.asarray(
        ((1 - rho) * share + rho * np.asarray(yes)) / ((1 - rho) + rho * np.asarray(asked))
    )
