"""Adaptive policy: keep the posterior and ask the most informative question (docs/model.md, 8)."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.bounds import checked_price, price_by_question
from crowdtree.core.calibration import INDEPENDENT, Calibration
from crowdtree.core.checking import check_call, check_share
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.core.likelihood import AnswerModel, read_table
from crowdtree.core.problem import Problem
from crowdtree.policies.adaptive_items import AdaptiveItems, ReplayedItems, TargetItems
from crowdtree.policies.base import (
    Answer,
    Ask,
    Asked,
    FloatArray,
    Label,
    Policy,
    Stated,
    as_ask,
    check_answer,
    decide,
    normalised,
    to_option,
)
from crowdtree.policies.calibrating import Guaranteed, check_calibration
from crowdtree.policies.criteria import CRITERIA, Dense, Pairs, first_best
from crowdtree.policies.item_prior import dump_prior, load_prior
from crowdtree.policies.prospects import Contrasts, Prospects, cannot_reach_target
from crowdtree.policies.reachable import (
    after_all_repeats,
    refuse_unreachable,
    short_of_target,
)
from crowdtree.policies.replay import RecordedAnswers, Replayed, checkpoints
from crowdtree.policies.walk import Source

__all__ = ["AdaptivePolicy", "AdaptiveState", "Criterion"]

Criterion = Literal["information", "accuracy", "ec2", "gbs", "loss"]
IntArray = NDArray[np.int16]
BEAM = 16
"""Joint answers of the outstanding questions that are considered, the likeliest first."""
NO_LIMIT = 32_000
_FIRST = np.zeros(1, dtype=np.intp)
NOTHING = 1e-12
"""Information in bits below which an answer is worthless."""


@dataclass(frozen=True, eq=False)
class AdaptiveState:
    """What is known about an item: the posterior, and how often each question was answered.

    ``counts[answer, question]``; the last answer is "can't tell". With several sources the columns
    are options, ``source * questions + question``.
    """

    log_posterior: FloatArray
    counts: IntArray
    prior: FloatArray | None = None
    """Prior of the item over the classes, where it has its own."""

    @cached_property
    def answers(self) -> int:
        """Answers so far."""
        return int(self.counts.sum())


class AdaptivePolicy(Guaranteed):
    """Ask the question with the most expected information per cost until the error is low enough.

    Where the problem has several sources, choose the question and the source: see :class:`Ask`.

    Parameters
    ----------
    problem
        The problem.
    target_error
        Stop when the probability that the label is wrong is at most this; 0 spends the budget.
    max_answers
        Stop after this many answers to an item.
    criterion
        ``"information"`` (mutual information in bits), ``"accuracy"`` (expected probability of
        the likeliest class; where mistakes have different costs, expected loss of the best
        decision), ``"ec2"`` (Golovin, Krause and Ray 2010), ``"gbs"`` (generalised binary search)
        or ``"loss"`` (information, and the fall of the loss at stake); each divided by the price
        of the question. ``None``: ``"loss"`` for a problem with a loss, else ``"information"``.
    price
        Price of an answer: one number, or one per question. That of the source multiplies it.
    repeats
        Most answers to the same question on the same item; ``None`` for no limit.
    shared_difficulty
        Correlation of different people's answers to one question on one item, from 0
        (independent) to below 1; ``None`` for the problem's `dependence`. See
        :mod:`crowdtree.core.likelihood`.
    table
        ``P(answer | class)`` as ``table[answer, question, class]``, in place of outcome and error
        wherever it is not NaN. Where all questions have two answers, ``table[1]`` will do.
    width
        Most questions that are out for one item at the same time.
    endgame
        With this many answers left or fewer, choose for accuracy, not for information. ``None``:
        1, where that is the best choice there is.
    strict
        Refuse a target that the questions cannot reach on average. Otherwise items that cannot
        get there are labelled when no question is informative any more.
    calibration
        How far the evidence is discounted before an error is stated and compared with the target
        (see :meth:`calibrate`). Questions are chosen by the plain posterior.
    undecided
        Whether an item that is unlikely to reach the target with all answers that may still come
        is labelled with the reason ``"undecided"`` as soon as more answers hardly make its label
        better. Only a calibration limits what answers can show, so without one there are no such
        items.
    target_loss
        In place of `target_error`: stop when the expected loss of the best decision is at most
        this. An item that does not get there is referred where the problem has an expert and that
        is cheaper than any label.
    sources
        Names of the sources that may be asked; ``None`` for all of the problem.

    Examples
    --------
    >>> import crowdtree as ct
    >>> policy = AdaptivePolicy(ct.example("table1"), target_error=0.01)
    >>> state = policy.start()
    >>> policy.ask(state)
    Ask(questions=(0,))
    >>> for question in (0, 0):
    ...     state = policy.update(state, Answer(question, 1))
    >>> policy.ask(state).label, policy.ask(state).reason
    (3, 'target')
    """

    max_answers: int
    width: int

    def __init__(
        self,
        problem: Problem,
        target_error: float = 0.01,
        max_answers: int = 100,
        *,
        criterion: Criterion | None = None,
        price: ArrayLike | None = None,
        repeats: int | None = None,
        shared_difficulty: float | None = None,
        table: ArrayLike | None = None,
        width: int = 1,
        endgame: int | None = None,
        strict: bool = True,
        calibration: Calibration = INDEPENDENT,
        undecided: bool = True,
        target_loss: float | None = None,
        sources: Sequence[str] | None = None,
    ) -> None:
        check_call(AdaptivePolicy, locals())
        self.problem = problem
        self.target_error = check_share("target_error", target_error, zero=True)
        self.target_loss = _checked_loss(target_loss, problem)
        self.max_answers = _checked_count(max_answers, "max_answers")
        criterion = criterion or ("information" if problem.loss is None else "loss")
        if criterion not in CRITERIA:
            raise CrowdtreeError(
                f"criterion: {criterion!r} is unknown; choose from {', '.join(CRITERIA)}"
            )
        if criterion == "loss" and problem.loss is None:
            raise CrowdtreeError(
                'criterion: "loss" is for a problem with a loss; use "information", or give the '
                "problem a loss"
            )
        self.criterion: Criterion = criterion
        self.question_price = price_by_question(price, problem)
        self.price = checked_price(self.question_price, problem)
        self.repeats = None if repeats is None else _checked_count(repeats, "repeats")
        self.sources = _checked_sources(sources, problem)
        self.limits = _limits(problem, self.repeats, self.sources)
        self.model = AnswerModel.of(problem, table, shared_difficulty)
        self.table = None if table is None else read_table(problem, table)
        self.shared_difficulty = (
            problem.dependence if shared_difficulty is None else float(shared_difficulty)
        )
        self.width = _checked_count(width, "width")
        if self.width > self.max_answers:
            raise CrowdtreeError(
                f"width: {width} questions at once are more than max_answers={max_answers}"
            )
        if endgame is not None and endgame < 0:
            raise CrowdtreeError(f"endgame: expected 0 answers or more, got {endgame}")
        self.endgame = 1 if endgame is None else int(endgame)
        self.strict = bool(strict)
        check_calibration(problem, calibration)
        self.calibration = calibration
        self.undecided = bool(undecided)
        self._warned = False
        if self.strict and (self.target_error if target_loss is None else target_loss) > 0:
            refuse_unreachable(self)

    # ---------------------------------------------------------------- the protocol

    def start(self, prior: ArrayLike | None = None) -> AdaptiveState:
        """State of an item without answers; `prior` in place of the problem's prior."""
        none = np.zeros((self.model.slots, self.problem.n_options), dtype=np.int16)
        own = self.own_prior(prior)
        return AdaptiveState(self.log_start(own), none, own)

    def log_start(self, prior: FloatArray | None) -> FloatArray:
        """Log posterior before any answer, given a prior over the classes (or rows of them)."""
        chance = self.state_prior if prior is None else self.prior_of_states(prior)
        return normalised(np.log(chance))

    def wants(self, state: AdaptiveState, question: Asked) -> bool:
        """Whether one more answer to the question may be taken into account."""
        return self._wants_option(state, to_option(self.problem, question))

    def _wants_option(self, state: AdaptiveState, option: int) -> bool:
        if self.limits is None:
            return True
        if self._most_per_source is None:
            return bool(state.counts[:, option].sum() < self.limits[option])
        return not bool(self._spent(state.counts[:, None])[0, option])

    def update(self, state: AdaptiveState, answer: Answer) -> AdaptiveState:
        """Posterior after one more answer, by Bayes' rule with the worker's own reliability."""
        check_answer(self.problem, answer)
        option = to_option(self.problem, (answer.question, answer.source))
        if not self._wants_option(state, option):
            return state
        before = None
        if self.model.depends and len(self.problem.sources) > 1:
            before = self.model.before(state.counts[:, None], _FIRST, np.array([option]))[:, 0]
        elif self.model.depends:
            before = state.counts[:, option]
        evidence = answer.weight * self.model.log_likelihood(
            option, answer.value, answer.skill, before
        )
        counts = state.counts.copy()
        counts[self.model.slot(answer.value), option] += 1
        return AdaptiveState(normalised(state.log_posterior + evidence), counts, state.prior)

    def ask(
        self,
        state: AdaptiveState,
        outstanding: Sequence[Asked] = (),
        exclude: Collection[Asked] = (),
    ) -> Ask | Label:
        """Next questions, up to `width` out at once, or the label."""
        out = [to_option(self.problem, asked) for asked in outstanding]
        closed = [to_option(self.problem, asked) for asked in exclude]
        stated = self.stated_of(state)
        found = decide(stated[None], self.problem.loss)
        enough = state.answers >= self.least_answers
        if enough and self.sure(found)[0]:
            return found.as_label("target")
        left = self.max_answers - state.answers - len(out)
        if left <= 0:  # beyond the limit only what `least_answers` asks for, one at a time
            left = min(1, self.least_answers - state.answers - len(out))
        if left <= 0 and not out:
            return found.as_label("budget")
        if (
            enough
            and self.may_give_up
            and self.cannot_reach_target(
                stated[None],
                self.by_class(state.log_posterior)[None],
                state.counts.sum(axis=0)[None],
                np.array([state.answers]),
                log_prior=self.log_prior_of(state.prior),
            )[0, 0]
        ):
            return found.as_label("undecided")
        chosen: list[int] = []
        while len(out) + len(chosen) < self.width and left > 0:
            question = self._next_or_first(state, [*out, *chosen], closed, left)
            if question < 0:
                break
            chosen.append(question)
            left -= 1
        nothing = not chosen and not out
        if nothing and (not closed or self._next_or_first(state, [], (), left) < 0):
            return found.as_label("questions")
        return as_ask(self.problem, chosen)

    def sure(self, found: Stated, target_error: float | None = None) -> NDArray[np.bool_]:
        """Whether each decision reaches the target (by default the policy's), up to rounding."""
        if self.target_loss is not None:
            return found.risk <= self.target_loss * (1 + 1e-9)
        target = self.target_error if target_error is None else target_error
        return found.error <= target * (1 + 1e-9)

    def conclude(self, state: AdaptiveState, reason: str) -> Label:
        """Give the best label on present evidence."""
        return decide(self.stated_of(state)[None], self.problem.loss).as_label(reason)

    @property
    def most_answers(self) -> int:
        """Answers that an item takes at most."""
        return self.max_answers

    @property
    def may_give_up(self) -> bool:
        """Whether some items may be labelled as undecided."""
        return self.undecided and bool(self.calibration) and 0 < self._error_to_reach < 1

    @property
    def _error_to_reach(self) -> float:
        """Error without which the target is not reached: even the cheapest mistakes cost more."""
        if self.target_loss is None:
            return self.target_error
        least = 1.0 if self.problem.loss is None else self.problem.loss.least
        return 1.0 if self.target_loss >= least else self.target_loss / least

    def cannot_reach_target(
        self,
        stated: FloatArray,
        log_posterior: FloatArray,
        asked: NDArray[Any],
        answers: NDArray[Any],
        targets: Sequence[float] | None = None,
        log_prior: FloatArray | None = None,
    ) -> NDArray[np.bool_]:
        """Whether each item is unlikely to reach the target, and more answers hardly help.

        Looked at after every answer up to 20, then after every tenth part more. `stated` and
        `log_posterior` have one row per item; `asked` are the answers to each question so far,
        `targets` the errors to reach, one column of the result each (by default that of the
        policy).
        """
        errors = (self._error_to_reach,) if targets is None else targets
        due = np.flatnonzero(np.isin(answers, self._checkpoints))
        found = np.zeros((len(answers), len(errors)), dtype=bool)
        if not len(due):
            return found
        stated, log_posterior, answers = stated[due], log_posterior[due], answers[due]
        asked = asked[due].astype(np.int64)
        left = np.maximum(self.max_answers - answers, 0)
        most = asked + left[:, None]
        if self.limits is not None:
            most = np.minimum(most, self.limits)
        remaining = np.maximum(most - asked, 0)
        start = self.log_prior if log_prior is None else log_prior
        start = start if start.ndim == 1 else start[due]
        evidence = log_posterior - start
        items = Prospects(stated, evidence, answers, left, asked, remaining)
        found[due] = cannot_reach_target(
            items,
            start,
            self._contrasts,
            self.calibration,
            errors,
            self.model.shared_difficulty,
        )
        return found

    @cached_property
    def _contrasts(self) -> Contrasts:
        return Contrasts(self._class_answers, self.max_answers)

    @cached_property
    def _checkpoints(self) -> list[int]:
        return [0, *checkpoints(self.max_answers)]

    @property
    def _class_answers(self) -> Sequence[FloatArray]:
        """P(answer | class), a table per answer."""
        return self.model.answers

    @cached_property
    def log_prior(self) -> FloatArray:
        """Logarithm of the probability of each class before any answer."""
        return self.by_class(self.log_start(None))

    def log_prior_of(self, prior: FloatArray | None) -> FloatArray:
        """Logarithm of a prior over the classes, or of rows of them; of the problem's for None."""
        return self.log_prior if prior is None else self.by_class(self.log_start(prior))

    def many(self, source: Source, items: int) -> AdaptiveItems | None:
        """Many items at once, where one question is out at a time."""
        return AdaptiveItems(self, source, items) if self.width == 1 else None

    def replay(self, values: NDArray[np.int8], prior: FloatArray | None = None) -> Replayed:
        """States of recorded items after each answer until the budget ends, whatever the target."""
        return self._replayed(values, prior, to_label=False)

    def end(self, values: NDArray[np.int8], prior: FloatArray | None = None) -> Replayed:
        """State of each recorded item when it is labelled."""
        return self._replayed(values, prior, to_label=True).last()

    def _replayed(
        self, values: NDArray[np.int8], prior: FloatArray | None, to_label: bool
    ) -> Replayed:
        source = RecordedAnswers(values, prior)
        items = ReplayedItems(self, source, len(values), to_label=to_label)
        items.walk()
        return items.states

    def labelled(
        self, values: NDArray[np.int8], targets: Sequence[float], prior: FloatArray | None = None
    ) -> TargetItems:
        """Label of each recorded item at each target, and whether it was reached."""
        items = TargetItems(self, RecordedAnswers(values, prior), len(values), targets)
        items.walk()
        return items

    @property
    def state_prior(self) -> FloatArray:
        """Prior of the classes, or of finer hypotheses."""
        return self.problem.prior

    def prior_of_states(self, prior: FloatArray) -> FloatArray:
        """Prior of the hypotheses of an item, given its own prior over the classes."""
        return prior

    # ---------------------------------------------------------------- choosing

    def choose(
        self,
        posterior: FloatArray,
        counts: IntArray | None,
        left: int,
        banned: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.intp]:
        """Best question for each row of posteriors, -1 where none is informative.

        `counts` are the answers so far, ``[answer, item, question]`` (None where they do not
        matter: no limit of repeats, no shared difficulty), `left` the answers left, this one
        included, and `banned` says where a question must not be asked.
        """
        worth = self._score("information", posterior, counts)
        blocked = self._blocked(counts, banned)
        if blocked is not None:
            worth = np.where(blocked, -np.inf, worth)
        name = "accuracy" if left <= self.endgame else self.criterion
        if name == "information":
            found = first_best(worth / self.price)
        else:
            scores = self._score(name, posterior, counts)
            scores = np.where(worth > NOTHING, scores, -np.inf)
            found = first_best(scores / self.price, worth / self.price)
        told = worth[np.arange(len(worth)), found]
        return np.where(told > NOTHING, found, -1)

    @property
    def counts_matter(self) -> bool:
        """Whether the choice depends on how often each question was asked, too."""
        return self.limits is not None or self._most_per_source is not None or self.model.depends

    @cached_property
    def _tables(self) -> Dense:
        answers, right = self.model.answers, self.problem.right
        count, shape = right.sum(axis=0), (len(self.problem.sources), 1)
        share = np.tile(right / np.maximum(count, 1), shape)
        settled = np.tile((count > 0) & (count < self.problem.n_answers[:, None]), shape)
        sides = [
            np.where(settled, mine, table.round(9))
            for mine, table in zip(share, answers, strict=False)
        ]
        return Dense(answers, sides, self.problem.loss)

    def _score(self, name: str, posterior: FloatArray, counts: IntArray | None) -> FloatArray:
        criterion = CRITERIA[name]
        scores = criterion(posterior, self._tables)
        if self.model.depends and counts is not None:
            row, option = np.nonzero(self.model.leaning(counts))
            if len(row):  # asked before: the next answer leans towards those
                tables = self.model.after(option, self.model.before(counts, row, option))
                sides = [side[option] for side in self._tables.sides] if name == "gbs" else None
                scores[row, option] = criterion(
                    posterior[row], Pairs(tables, sides, self.problem.loss)
                )
        return scores

    def _blocked(
        self, counts: IntArray | None, banned: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_] | None:
        if self.limits is None or counts is None:
            return banned
        spent = self._spent(counts)
        return spent if banned is None else spent | banned

    def _spent(self, counts: IntArray, out: NDArray[Any] | int = 0) -> NDArray[np.bool_]:
        """Options that may not be asked again, one row per item, with some more answers `out`."""
        asked = counts.sum(axis=0, dtype=counts.dtype) + out
        spent = np.asarray(asked >= self.limits)
        if self._most_per_source is not None:
            by_source = asked.reshape(len(asked), len(self._most_per_source), -1).sum(axis=2)
            over = by_source >= self._most_per_source
            spent = spent | np.repeat(over, self.problem.n_questions, axis=1)
        return spent

    @property
    def most_repeats(self) -> int | None:
        """Most answers to any option about an item; None where there is no such limit."""
        if self.limits is None or self.limits.max() >= NO_LIMIT:
            return None
        return int(self.limits.max())

    @cached_property
    def _most_per_source(self) -> NDArray[np.int64] | None:
        most = [source.most_per_item for source in self.problem.sources]
        if not any(most):
            return None
        return np.array([NO_LIMIT if limit is None else limit for limit in most])

    def _next(
        self,
        state: AdaptiveState,
        outstanding: list[int],
        exclude: Collection[int],
        left: int,
    ) -> int:
        """Choose the best question, averaged over the answers that may still come in."""
        banned = np.zeros((1, self.problem.n_options), dtype=bool)
        if exclude:
            banned[0, list(exclude)] = True
        if not outstanding:
            posterior = np.exp(state.log_posterior)[None, :]
            closed = banned if exclude else None
            return int(self.choose(posterior, state.counts[:, None], left, closed)[0])
        if self.limits is not None:
            out = np.bincount(outstanding, minlength=banned.shape[1])
            banned |= self._spent(state.counts[:, None], out)
        weight, posterior, counts = self._futures(state, outstanding)
        name = "accuracy" if left <= self.endgame else self.criterion
        worth = weight @ self._score("information", posterior, counts)
        score = weight @ self._score(name, posterior, counts) if name != "information" else worth
        worth = np.where(banned, -np.inf, worth)
        score = np.where(worth > NOTHING, score, -np.inf)
        best = int(first_best(score / self.price, worth / self.price)[0])
        return best if worth[0, best] > NOTHING else -1

    def _next_or_first(
        self,
        state: AdaptiveState,
        outstanding: list[int],
        exclude: Collection[int],
        left: int,
    ) -> int:
        """Choose the best question; as at the start where answers lack, but nothing is in doubt."""
        question = self._next(state, outstanding, exclude, left)
        if question < 0 and state.answers < self.least_answers:
            blank = replace(state, log_posterior=self.log_start(state.prior))
            question = self._next(blank, outstanding, exclude, left)
        return question

    def _futures(
        self, state: AdaptiveState, outstanding: list[int]
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Joint answers that the outstanding questions may get: chance, posterior, counts."""
        log_joint = state.log_posterior[None, :]
        counts = state.counts[:, None]
        for question in outstanding:
            rows = np.full(counts.shape[1], question)
            tables = self.model.after(rows, self.model.before(counts, np.arange(len(rows)), rows))
            logs = [np.log(np.maximum(table, 1e-300)) for table in tables]
            log_joint = np.concatenate([log_joint + log for log in logs])
            said = np.repeat(np.arange(len(logs)), counts.shape[1])
            counts = np.concatenate([counts] * len(logs), axis=1)
            counts[said, np.arange(len(said)), question] += 1
            chance = np.exp(log_joint).sum(axis=1)
            if len(chance) > BEAM:
                keep = np.argsort(-chance, kind="stable")[:BEAM]
                log_joint, counts = log_joint[keep], counts[:, keep]
        chance = np.exp(log_joint).sum(axis=1)
        posterior = np.exp(log_joint) / chance[:, None]
        return (chance / chance.sum())[None, :], posterior, counts

    def warn_if_unreachable(self, stacklevel: int = 3) -> None:
        """Warn, once per policy, that items will stay undecided because the target is too low."""
        problem = short_of_target(self) if self.may_give_up else None
        if problem is None or self._warned:
            return
        self._warned = True
        warnings.warn(
            f"{problem}, so most items may end as undecided; raise target_error to what can be "
            "reached",
            CrowdtreeWarning,
            stacklevel=stacklevel,
        )

    def reachable_error(self, items: int = 1000) -> tuple[float, float]:
        """Estimate the error after every question was answered as often as it may be.

        With a calibration: the error of its items after all their answers, counted (the middle of
        its 95 % interval, and half the width). Otherwise no policy with this limit of repeats has a
        smaller error if answers are independent given the class; an estimate from simulated items
        (the same ones each time).
        """
        check_call(AdaptivePolicy.reachable_error, {"items": items})
        if self.calibration.reached is not None:
            return self.calibration.reached
        if self.most_repeats is None:
            raise CrowdtreeError("reachable_error: expected a policy with a limit of repeats")
        return after_all_repeats(self, items=items)

    # ---------------------------------------------------------------- in and out

    def dump(self, state: AdaptiveState) -> dict[str, Any]:
        """Write a state as plain JSON: the posterior, and the questions that were answered."""
        asked = np.flatnonzero(state.counts.sum(axis=0)).tolist()
        return {
            "log_posterior": state.log_posterior.tolist(),
            "asked": [[q, *state.counts[:, q].tolist()] for q in asked],
            **dump_prior(state.prior),
        }

    def load(self, data: dict[str, Any]) -> AdaptiveState:
        """Read a state back."""
        counts = np.zeros((self.model.slots, self.problem.n_options), dtype=np.int16)
        for question, *said in data["asked"]:
            counts[:, question] = said
        return AdaptiveState(np.array(data["log_posterior"]), counts, load_prior(data))

    def to_dict(self) -> dict[str, Any]:
        """Write the policy as plain JSON; a table only where one was given."""
        shared = self.shared_difficulty
        price = self.question_price
        return {
            "policy": "adaptive",
            "target_error": self.target_error,
            "max_answers": self.max_answers,
            "criterion": self.criterion,
            "price": None if np.all(price == 1) else price.tolist(),
            "repeats": self.repeats,
            "shared_difficulty": None if shared == self.problem.dependence != 0 else shared,
            "table": self._whole_table(),
            "width": self.width,
            "endgame": self.endgame,
            "strict": self.strict,
            **({} if self.undecided else {"undecided": False}),
            **({} if self.target_loss is None else {"target_loss": self.target_loss}),
            **({} if self.sources is None else {"sources": list(self.sources)}),
            **self.discounting,
        }

    def _whole_table(self) -> list[Any] | None:
        """P(answer | class) where a table was given, the problem's own where that is NaN."""
        if self.table is None:
            return None
        whole = np.where(np.isnan(self.table), self.problem.channel[0], self.table)
        return list(whole.tolist())

    @classmethod
    def from_dict(cls, problem: Problem, data: dict[str, Any]) -> AdaptivePolicy:
        """Read what :meth:`to_dict` wrote."""
        options = {key: value for key, value in data.items() if key != "policy"}
        options["calibration"] = Calibration.from_dict(data.get("calibration"))
        return cls(problem, **options)

    def __repr__(self) -> str:
        return f"AdaptivePolicy({self.criterion}, {self.target}, max_answers={self.max_answers})"

    @property
    def target(self) -> str:
        """When an item is labelled, in words."""
        if self.target_loss is not None:
            return f"target_loss={self.target_loss:g}"
        return f"target_error={self.target_error:g}"


def _checked_loss(target_loss: float | None, problem: Problem) -> float | None:
    if target_loss is None:
        return None
    if not 0 <= target_loss < np.inf:
        raise CrowdtreeError(
            f"target_loss: expected an expected loss per item, 0 or more, got {target_loss!r}"
        )
    refer = None if problem.loss is None else problem.loss.refer
    if refer is not None and target_loss >= refer:
        raise CrowdtreeError(
            f"target_loss: {target_loss:g} is not below the price of an expert ({refer:g}), so "
            "every item would be referred without a question; lower target_loss"
        )
    return float(target_loss)


def _checked_sources(sources: Sequence[str] | None, problem: Problem) -> tuple[str, ...] | None:
    if sources is None:
        return None
    if isinstance(sources, str) or not len(sources):
        raise CrowdtreeError(f"sources: expected a list of names of sources, got {sources!r}")
    return tuple(problem.sources[problem.source_index(name)].name for name in sources)


def _limits(
    problem: Problem, repeats: int | None, sources: Collection[str] | None
) -> NDArray[np.int64] | None:
    """Most answers to each option about an item; None where there is no limit at all."""
    free = all(s.may_repeat and s.most_per_item is None for s in problem.sources)
    if repeats is None and sources is None and free:
        return None
    most = NO_LIMIT if repeats is None else repeats
    each = [
        0 if sources is not None and source.name not in sources
        else most if source.may_repeat
        else 1
        for source in problem.sources
    ]  # fmt: skip
    return np.repeat(each, problem.n_questions)


def _checked_count(value: int, name: str) -> int:
    if not 1 <= value <= 32_000:
        raise CrowdtreeError(f"{name}: expected a whole number from 1 to 32,000, got {value}")
    return int(value)


def asking_until(policy: Policy[Any], target_error: float) -> AdaptivePolicy:
    """Return a policy that asks on until the target: the same one, or an adaptive one."""
    if isinstance(policy, AdaptivePolicy):
        return policy.changed(target_error=target_error)
    return AdaptivePolicy(policy.problem, target_error, strict=False)
