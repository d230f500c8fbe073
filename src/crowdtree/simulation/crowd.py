"""Synthetic crowds, and recorded ones.

Every answer is a function of (seed, item, question, how often that question was asked about that
item before). So results do not depend on blocks, processes or the order of work, and two policies
that are simulated with the same seed get answers from the same people: their difference is not
noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.checking import check_call, check_share, describe_type
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.likelihood import AnswerModel, Respondent
from crowdtree.core.problem import Problem, check_dependence
from crowdtree.core.text import plural
from crowdtree.policies.item_prior import check_priors
from crowdtree.policies.replay import RecordedAnswers, as_answers, by_option, class_codes
from crowdtree.policies.walk import Answers, Round, Source

__all__ = ["Block", "Crowd", "CrowdBlock", "Recorded", "Respondents"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
UintArray = NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ITEM, _CLASS, _ANSWER, _WORKER, _HARD, _CLASSIFIER = (np.uint64(n) for n in range(1, 7))


def mixed(values: UintArray) -> UintArray:
    """Scramble 64-bit numbers (the finaliser of SplitMix64, Steele, Lea and Flood 2014)."""
    z = values + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def uniform(values: UintArray) -> FloatArray:
    """Turn 64-bit numbers into uniform ones from 0 to below 1."""
    return np.asarray((values >> np.uint64(11)) * 2.0**-53)


class Block(Source, Protocol):
    """Some consecutive items and the people who answer about them."""

    truth: IntArray


class Respondents(Protocol):
    """Where items and answers come from."""

    def block(self, problem: Problem, key: int, start: int, stop: int) -> Block:
        """Make the items `start` to `stop` of the run with this key."""
        ...

    def describe(self) -> dict[str, Any]:
        """Plain JSON that identifies them."""
        ...


describe_type(
    Respondents,
    "a Crowd or a Recorded",
    "make one with Crowd(...) or Recorded(...)",
    needs=("block",),
)


@dataclass(frozen=True, eq=False)
class Crowd:
    """A synthetic crowd.

    Parameters
    ----------
    problem
        The truth about prior, outcomes and errors, where it differs from what the policy assumes;
        same classes and questions.
    table
        The truth about ``P(answer | class)``, in place of outcome and error where not NaN: see
        :class:`crowdtree.AdaptivePolicy`.
    workers
        Size of the crowd; matters with `skill_sd` or `spammers`.
    skill_sd
        Standard deviation of the workers' skill, in logits of the error.
    spammers
        Share of workers who do not look at the question.
    spam
        What spammers answer: a ``"coin"``, always ``"yes"`` or always ``"no"``.
    item_difficulty
        Standard deviation of the items' difficulty, in logits of the error: all answers about
        a hard item are worse.
    shared_difficulty
        Correlation of different people's answers to one question on one item; ``None`` for the
        `dependence` of the problem.
    known_skill
        Whether the policy knows the skill of each worker.
    classifier_accuracy
        Every item starts from what a classifier says about it, which names the right class this
        often (else any other, all alike) and knows how often it errs. ``None``: without one.

    Examples
    --------
    >>> Crowd(spammers=0.1, skill_sd=0.5)
    Crowd(skill_sd=0.5, spammers=0.1)
    """

    problem: Problem | None = None
    table: ArrayLike | None = None
    workers: int = 1000
    skill_sd: float = 0.0
    spammers: float = 0.0
    spam: Literal["coin", "yes", "no"] = "coin"
    item_difficulty: float = 0.0
    shared_difficulty: float | None = None
    known_skill: bool = False
    classifier_accuracy: float | None = None

    def __post_init__(self) -> None:
        check_call(Crowd, vars(self))
        if self.workers < 1:
            raise CrowdtreeError(f"workers: expected at least 1, got {self.workers}")
        for name in ("skill_sd", "item_difficulty"):
            if not 0 <= getattr(self, name) < np.inf:
                raise CrowdtreeError(f"{name}: expected 0 or more, got {getattr(self, name)}")
        if not 0 <= self.spammers <= 1:
            raise CrowdtreeError(f"spammers: expected a share from 0 to 1, got {self.spammers}")
        if self.shared_difficulty is not None:
            check_dependence(self.shared_difficulty, "shared_difficulty")
        if self.classifier_accuracy is not None:
            check_share("classifier_accuracy", self.classifier_accuracy)

    def block(self, problem: Problem, key: int, start: int, stop: int) -> Block:
        """Make some items of a run."""
        truth = self.problem if self.problem is not None else problem
        if problem.whole is not None:
            truth = truth.as_options()
        if len(truth.sources) != len(problem.sources):
            raise CrowdtreeError(
                f"crowd: its problem has {plural(len(truth.sources), 'source')}, the policy's has "
                f"{len(problem.sources)}"
            )
        if truth.outcome.shape != problem.outcome.shape:
            raise CrowdtreeError(
                f"crowd: its problem has {truth.n_classes} classes and {truth.n_questions} "
                f"questions, the policy's has {problem.n_classes} and {problem.n_questions}"
            )
        return CrowdBlock(self, truth, key, start, stop)

    def describe(self) -> dict[str, Any]:
        """Plain JSON of everything that matters."""
        found: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.classifier_accuracy is None:
            del found["classifier_accuracy"]
        found["problem"] = None if self.problem is None else describe_problem(self.problem)
        if self.table is not None:
            found["table"] = np.asarray(self.table).tolist()
        return found

    def __repr__(self) -> str:
        shown = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if getattr(self, f.name) is not f.default and getattr(self, f.name) != f.default
        ]
        return f"Crowd({', '.join(shown)})"


class CrowdBlock:
    """Items of a synthetic crowd; all arrays are functions of the key and the item's number."""

    def __init__(self, crowd: Crowd, problem: Problem, key: int, start: int, stop: int) -> None:
        self.crowd = crowd
        self.problem = problem
        self.model = AnswerModel.of(problem, crowd.table, crowd.shared_difficulty)
        self._counts = self.model.depends or len(problem.sources) > 1
        self._none = np.zeros((self.model.slots, 1), dtype=np.int64)
        self.key = np.uint64(key)
        self.item = mixed(mixed(np.arange(start, stop, dtype=np.uint64) ^ self.key) ^ _ITEM)
        cumulative = np.cumsum(problem.prior)
        drawn = uniform(mixed(self.item ^ _CLASS)) * cumulative[-1]
        self.truth: IntArray = np.minimum(
            np.searchsorted(cumulative, drawn, side="right"), problem.n_classes - 1
        ).astype(np.int64)
        self.plain = not (crowd.skill_sd or crowd.spammers or crowd.item_difficulty)
        """Whether all people and items are alike, so that only the cell of the table matters."""

    @cached_property
    def stream(self) -> UintArray:
        """Number of each item from which its answers are drawn."""
        return self.item ^ _ANSWER

    def answer(self, asked: Round) -> Answers:
        """Draw answers from the model, by the worker whose turn it is."""
        row, option, repeat, before = asked
        turn = (option.astype(np.uint64) << np.uint64(20)) + repeat.astype(np.uint64)
        drawn = uniform(mixed(self.stream[row] + turn * _GOLDEN))
        people, known = (None, None) if self.plain else self._who(row, option, repeat)
        counts = before() if self._counts else self._none
        return Answers(self.model.sample(option, self.truth[row], counts, drawn, people), known)

    def worker(self, rows: NDArray[Any], question: NDArray[Any], repeat: NDArray[Any]) -> UintArray:
        """Choose the workers: people take turns from a random start per item and question."""
        first = mixed((self.item[rows] ^ _WORKER) + question.astype(np.uint64))
        turn = first % np.uint64(self.crowd.workers) + repeat.astype(np.uint64)
        return np.asarray(turn % np.uint64(self.crowd.workers))

    def _who(
        self, rows: NDArray[Any], option: NDArray[Any], repeat: NDArray[Any]
    ) -> tuple[Respondent, FloatArray | None]:
        """Find out who answers: their skill on the item, spammers, and the skill that is known.

        Differences between workers, and spammers, are for people; hard items are hard for all.
        """
        worker = self.worker(rows, option, repeat)
        skill, spammer, told = self._people
        ability, spams = skill[worker], spammer[worker]
        known = told[worker] if self.crowd.known_skill else None
        if self._asks_people is not None:
            people = self._asks_people[option]
            ability, spams = ability * people, spams & people
            known = None if known is None else known * people
        if self.crowd.item_difficulty:
            ability = ability - self._hardness[rows]
        return Respondent(ability, spams, self._spam), known

    @cached_property
    def _asks_people(self) -> NDArray[np.bool_] | None:
        """Whether an option is a question to people; None where all are."""
        kinds = [source.kind == "people" for source in self.problem.sources]
        return None if all(kinds) else np.repeat(kinds, self.problem.n_questions)

    @cached_property
    def _spam(self) -> FloatArray:
        """P(answer) of spammers to each option: any, or always the first or the last one."""
        last = np.tile(self.problem.n_answers - 1, len(self.problem.sources))
        slot = np.arange(self.model.slots)[:, None]
        if self.crowd.spam == "coin":
            return np.asarray((slot <= last) / (last + 1))
        return np.asarray(slot == last * (self.crowd.spam != "no"), dtype=np.float64)

    @cached_property
    def _people(self) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
        """Skill of each worker, who is a spammer, and skills with spammers at chance level."""
        crowd = self.crowd
        rng = np.random.default_rng((int(self.key), 7))
        skill = rng.normal(0.0, 1.0, crowd.workers) * crowd.skill_sd
        spammer = np.zeros(crowd.workers, dtype=bool)
        spammer[rng.permutation(crowd.workers)[: round(crowd.spammers * crowd.workers)]] = True
        error = np.clip(self.problem.worker_error, 1e-6, 0.5)
        useless = float(np.log(error / (1 - error)).mean())  # makes the average error one half
        return skill, spammer, np.where(spammer, useless, skill)

    @cached_property
    def _hardness(self) -> FloatArray:
        from scipy.special import ndtri

        drawn = uniform(mixed(self.item ^ _HARD))
        return np.asarray(ndtri(np.clip(drawn, 1e-16, 1 - 1e-16)) * self.crowd.item_difficulty)

    @cached_property
    def prior(self) -> FloatArray | None:
        """Posterior of each item given what the classifier says; None without a classifier.

        Prior and channel are the true ones, so that it states its errors exactly.
        """
        right = self.crowd.classifier_accuracy
        if right is None:
            return None
        classes = self.problem.n_classes
        drawn = uniform(mixed(self.item ^ _CLASSIFIER))
        # an error is as likely to be any of the other classes
        step = 1 + np.floor((drawn - right) / (1 - right) * (classes - 1)).astype(np.int64)
        said = (self.truth + np.where(drawn < right, 0, step.clip(1, classes - 1))) % classes
        channel = np.full((classes, classes), (1 - right) / (classes - 1))
        np.fill_diagonal(channel, right)
        joint = self.problem.prior * channel[said]
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Recorded:
    """Answers that were really given: items x questions (x repeats) of 0, 1, and -1 for none.

    Of a problem with several sources: items x sources x questions x repeats.

    A missing answer (-1 or NaN, "not visible") costs nothing, and its question is not asked about
    that item again. The policy must not ask more often than there are repeats. `truth` is the class
    of each item, by name or number. `prior` has one row per item, the probability of each class
    from which the item starts (:class:`crowdtree.Opinions`); by default that of the problem.

    >>> Recorded([[0, 1], [1, 1]], truth=["cat", "dog"])
    Recorded(2 items x 2 questions, 1 answer each)
    """

    values: NDArray[np.int8]
    truth: NDArray[Any]
    prior: FloatArray | None = None

    def __init__(
        self, values: ArrayLike, truth: Sequence[str | int], prior: ArrayLike | None = None
    ) -> None:
        check_call(Recorded, locals())
        table = as_answers(values)
        classes = np.asarray(truth)
        if classes.dtype.kind not in "iuUO":
            raise CrowdtreeError("truth: expected classes, by name or number")
        if table.ndim not in (2, 3, 4) or classes.shape != (len(table),):
            raise CrowdtreeError(
                "recorded: expected items x questions (x repeats) answers and one class per item, "
                f"got shapes {table.shape} and {classes.shape}"
            )
        rows = None if prior is None else np.asarray(prior, dtype=np.float64)
        if rows is not None and (rows.ndim != 2 or len(rows) != len(table)):
            raise CrowdtreeError(
                f"recorded: prior: expected one row per item ({len(table)}), got shape {rows.shape}"
            )
        object.__setattr__(self, "values", table[:, :, None] if table.ndim == 2 else table)
        object.__setattr__(self, "truth", classes)
        object.__setattr__(self, "prior", rows)

    def block(self, problem: Problem, key: int, start: int, stop: int) -> Block:  # noqa: ARG002
        """Take some of the items; the key does not matter."""
        if stop > len(self.values):
            raise CrowdtreeError(
                f"items: expected at most the {len(self.values)} recorded, got {stop}"
            )
        values = by_option(self.values, problem, "recorded")
        truth = class_codes(problem, self.truth[start:stop])
        prior = None
        if self.prior is not None:
            prior = check_priors(problem, self.prior[start:stop], "recorded: prior")
        return _RecordedBlock(values[start:stop], truth, prior)

    def describe(self) -> dict[str, Any]:
        """Plain JSON that identifies these answers."""
        import hashlib

        content = self.values.tobytes() + self.truth.tobytes()
        if self.prior is not None:
            content += self.prior.tobytes()
        digest = hashlib.sha256(content).hexdigest()
        return {"recorded": digest, "shape": list(self.values.shape)}

    def __repr__(self) -> str:
        items, *sources, questions, repeats = self.values.shape
        many = "answer" if repeats == 1 else "answers"
        among = f"{sources[0]} sources x " if sources else ""
        own = "" if self.prior is None else ", own priors"
        size = f"{items} items x {among}{questions} questions"
        return f"Recorded({size}, {repeats} {many} each{own})"


class _RecordedBlock(RecordedAnswers):
    """Recorded answers with the class of each item; a policy must not ask more often."""

    def __init__(self, values: NDArray[np.int8], truth: IntArray, prior: FloatArray | None) -> None:
        super().__init__(values, prior)
        self.truth = truth

    def answer(self, asked: Round) -> Answers:
        """Look the answers up."""
        depth = self.values.shape[2]
        if np.any(asked.repeat >= depth):
            raise CrowdtreeError(
                f"recorded: the policy asks a question more than {depth} times per item; "
                f"give it repeats={depth}"
            )
        return super().answer(asked)


def describe_problem(problem: Problem) -> dict[str, Any]:
    """Plain JSON of what matters in a problem, short enough to be hashed."""
    return {
        "prior": problem.prior.tolist(),
        "outcome": problem.outcome.tolist(),
        **({} if problem.is_yes_no else {"channel": problem.channel.tolist()}),
        "worker_error": problem.worker_error.tolist(),
        "dash": problem.dash,
        "dependence": problem.dependence,
        **(
            {
                "source_dependence": problem.source_dependence,
                "sources": [source.to_dict() for source in problem.sources],
            }
            if len(problem.sources) > 1
            else {}
        ),
    }
