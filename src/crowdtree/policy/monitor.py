"""Notice that a table is wrong while the answers come in, and revise it.

Before an answer comes, its probability under the table is known. The monitor bets against the
table: for each way in which the table may be wrong it keeps the likelihood ratio of all answers so
far, each item's answers taken together because its class is unknown. If the table is right, the
weighted mean of these ratios exceeds ``1 / alpha`` at any time in the campaign with a probability
of at most ``alpha`` (Ville's inequality). It is an e-process (docs/model.md, section 13.5).

Everything is a function of the ordered answers, so that a replay of a campaign gives the same
alarms and the same tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from crowdtree.errors import CrowdtreeError
from crowdtree.likelihood import skilled, urn
from crowdtree.policy.base import Answer, FloatArray, Policy, check_answer
from crowdtree.policy.revising import (
    ITEMS_PER_CLASS,
    Estimated,
    Gathered,
    estimate,
    revised,
    table_of,
)
from crowdtree.stats import Z95, wilson_interval
from crowdtree.text import number, percent, plural

__all__ = ["PEOPLE", "Alarm", "Finding", "Monitor", "Revision", "Score", "Subject"]

PEOPLE = "people"
MULTIPLES = (1 / 2, 2 / 3, 3 / 2, 2.0, 3.0)
"""Errors, in multiples of those of the table, that it is compared with."""
GUESSES = 0.2
"""Share of answers that are guessed in one more alternative, also where nobody should err."""
DEPENDENCES = (0.0, 0.1, 0.3, 0.6)
CHANCES = (0.15, 0.1, 0.2, 0.25, 0.15, 0.15)
"""Weights of these alternatives: the multiples, and the guesses."""
SHARES = {"table": 0.5, "question": 0.2, "kind": 0.1, "dependence": 0.1, "prior": 0.1}
"""Weights of the ways to be wrong; those of questions and of kinds are shared among them."""
FIRST_SHARES = 10
"""Items after which class shares are estimated for the first time, to compare the prior with."""
GROWTH = 1.5
"""Growth of the number of answers after which a table is estimated again."""
CACHED = 1000
"""Items whose likelihood ratios are held; those of others are computed again when needed."""
_NEAR_HALF = 0.49
_HIGHEST = 700.0  # logarithm of evidence beyond which more says nothing

ALIKE = ("dependence", "prior")
"""Subjects whose alternatives weigh alike."""

Subject = Literal["table", "question", "kind", "dependence", "prior"]
Key = tuple[str, str]


class Alarm(NamedTuple):
    """The answers contradict the table.

    Attributes
    ----------
    subject
        What explains them best: ``"table"`` (all errors), ``"question"``, ``"kind"`` (of workers),
        ``"dependence"`` or ``"prior"``.
    name
        Name of the question or kind; empty for the others.
    after, items
        Answers and items so far.
    evidence
        Weighted likelihood ratio against the table, at least ``1 / alpha``.

    Examples
    --------
    >>> print(Alarm("question", "wings", 79, 8, 31.5))
    after 8 items (79 answers) the answers contradict the table: the errors of question "wings"
    """

    subject: Subject
    name: str
    after: int
    items: int
    evidence: float

    def __str__(self) -> str:
        what = {
            "table": "how often people are wrong",
            "question": f'the errors of question "{self.name}"',
            "kind": f'how often "{self.name}" are wrong',
            "dependence": "people err together more or less than it says",
            "prior": "how often the classes occur",
        }[self.subject]
        seen = f"{plural(self.items, 'item')} ({plural(self.after, 'answer')})"
        return f"after {seen} the answers contradict the table: {what}"


class Score(NamedTuple):
    """How well answers were predicted, in bits per answer; `expected` if the table is right."""

    answers: int
    observed: float
    expected: float


class Finding(NamedTuple):
    """What the answers say beside what the table says, with a 95 % interval."""

    subject: Subject
    name: str
    assumed: float
    estimate: float
    low: float
    high: float
    evidence: float

    @property
    def differs(self) -> bool:
        """Whether the assumed number lies outside the interval."""
        return not self.low <= self.assumed <= self.high

    def __str__(self) -> str:
        said = f"about {percent(round(self.estimate, 3))}"
        between = f"({percent(round(self.low, 3))} to {percent(round(self.high, 3))})"
        if self.subject == "prior":
            return (
                f'class "{self.name}": {said} {between} of the items, '
                f"the table says {percent(round(self.assumed, 3))}"
            )
        if self.subject == "dependence":
            return (
                f"people err together: answers to one question about an item have a correlation "
                f"of about {number(self.estimate, 2)}, the table says {number(self.assumed, 2)}"
            )
        return (
            f'question "{self.name}": people are wrong {said} {between} of the time, '
            f"the table says {percent(round(self.assumed, 3))}"
        )


@dataclass(frozen=True, eq=False)
class Revision:
    """A table that replaces the assumed one from some answer on: an event of the campaign.

    Attributes
    ----------
    after
        Answers after which it holds.
    reason
        ``"alarm"``, or ``"answers"`` when many more have come since the last one.
    table
        The table, as :meth:`crowdtree.policy.revising.Table.to_dict` writes it.
    """

    after: int
    reason: str
    table: Mapping[str, Any]

    def apply(self, policy: Policy[Any]) -> Policy[Any]:
        """Make the revised policy from the one that the campaign started with."""
        return revised(policy, table_of(policy).changed(self.table))

    def to_dict(self) -> dict[str, Any]:
        """Write as plain JSON."""
        return {"after": self.after, "reason": self.reason, "table": dict(self.table)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Revision:
        """Read what :meth:`to_dict` wrote."""
        return cls(int(data["after"]), str(data["reason"]), data["table"])


@dataclass
class _Item:
    """One item: its answers, each with the kind of worker, and the class shares it started with."""

    shares: int
    answers: list[tuple[Answer, str]] = field(default_factory=list)


class _Ratios:
    """Log likelihood of the answers about an item: under the table, and of each alternative."""

    def __init__(self, joint: FloatArray) -> None:
        self.joint = joint
        self.place: dict[Key, slice] = {}
        self.rows = np.zeros(0, dtype=np.int64)
        self.extra = np.zeros((0, len(joint)))
        self.counts: dict[int, list[int]] = {}
        self.refresh()

    def add(self, key: Key, first: int, log_ratio: FloatArray) -> None:
        """Multiply the alternatives of a key by the ratios (alternative, hypothesis).

        `first` is the place of the key's first alternative among those of the campaign.
        """
        if key not in self.place:
            here, count = len(self.extra), len(log_ratio)
            self.place[key] = slice(here, here + count)
            self.rows = np.concatenate([self.rows, np.arange(first, first + count)])
            self.extra = np.concatenate([self.extra, np.zeros_like(log_ratio)])
        self.extra[self.place[key]] += log_ratio

    def refresh(self) -> None:
        """Compute the posterior under the table, and the ratio of each alternative to it."""
        top = self.joint.max()
        chance = np.exp(self.joint - top)
        total = chance.sum()
        self.posterior = chance / total
        others = self.joint + self.extra
        highest = others.max(axis=1)
        summed = np.log(np.exp(others - highest[:, None]).sum(axis=1))
        self.log_ratios = summed + (highest - top) - np.log(total)


class Monitor:
    """Watch the answers of a campaign, say when its table is wrong, and revise it.

    Parameters
    ----------
    policy
        The policy that the campaign started with. Its plain table is tested, whatever its
        calibration.
    alpha
        Most probability of an alarm, at any time, if the table is right.
    adapt
        Whether the table is revised after an alarm.

    Attributes
    ----------
    alarms
        Alarms so far: the first when the table as a whole is contradicted, then one for each
        question, kind of worker and so on that is so by itself.
    revisions
        Tables that replaced the assumed one.
    policy
        The policy to go on with: with the last revised table.

    Examples
    --------
    >>> import crowdtree as ct
    >>> policy = ct.AdaptivePolicy(ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.05))
    >>> monitor = Monitor(policy)
    >>> for item in range(20):
    ...     for value in (1, 1, 0, 1):
    ...         _ = monitor.observe(f"item {item}", Answer(0, value))
    >>> monitor.alarms[0].subject, monitor.due
    ('table', 'alarm')
    >>> monitor.revise().after
    80
    >>> bool(monitor.policy.problem.worker_error.mean() > 0.15)
    True
    """

    def __init__(self, policy: Policy[Any], alpha: float = 0.05, adapt: bool = True) -> None:
        if not 0 < alpha < 1:
            raise CrowdtreeError(f"alpha: expected a probability between 0 and 1, got {alpha}")
        if not hasattr(policy, "model"):
            raise CrowdtreeError(f"monitor: {type(policy).__name__} has no table to compare with")
        self.original = self.policy = policy
        self.table = table_of(policy)
        self.alpha, self.adapt = float(alpha), bool(adapt)
        self.answers = 0
        self.alarms: list[Alarm] = []
        self.revisions: list[Revision] = []
        self._items: dict[str, _Item] = {}
        self._keys: dict[Key, int] = {}  # place of the first alternative of each
        self._totals = np.zeros(0)
        self._log_weight = np.zeros(0)
        self._scores: dict[Key, list[float]] = {}
        self._mass = np.zeros(len(self.table.prior))
        self._shares: list[FloatArray] = []  # class shares that items started with, over time
        self._cache: dict[str, _Ratios] = {}
        self._others: dict[int, FloatArray] = {}

    # ---------------------------------------------------------------- answers in

    def observe(self, item: str, answer: Answer, kind: str = PEOPLE) -> tuple[Alarm, ...]:
        """Take in an answer that counted; return the alarms that it raises.

        Parameters
        ----------
        item
            Name of the item.
        answer
            The answer, with the skill that it was weighed with.
        kind
            Kind of worker, such as ``"people"`` or the name of a model.
        """
        check_answer(self.original.problem, answer)
        if item not in self._items:
            self._items[item] = _Item(self._current_shares())
        held = self._ratios(item)
        self._count(held, -1)
        self._score(held, answer, kind)
        self._items[item].answers.append((answer, kind))
        self._tell(held, answer, kind)
        held.refresh()
        self._count(held, 1)
        self.answers += 1
        return self._new_alarms()

    def withdraw(self, item: str, answer: Answer, kind: str = PEOPLE) -> None:
        """Take back the last such answer, as if it had not been given.

        Alarms and scores stay: they are about what was known when it came.
        """
        known = self._items.get(item)
        if known is None or (answer, kind) not in known.answers:
            raise CrowdtreeError(f"monitor: item {item!r} has no such answer to withdraw")
        self._count(self._ratios(item), -1)
        place = len(known.answers) - 1 - known.answers[::-1].index((answer, kind))
        del known.answers[place]
        self._cache.pop(item)
        self._count(self._ratios(item), 1)
        self.answers -= 1

    def _ratios(self, item: str) -> _Ratios:
        found = self._cache.get(item)
        if found is None:
            known = self._items[item]
            found = _Ratios(np.log(self.table.prior))
            if known.shares:
                shares = self._shares[known.shares - 1]
                self._add(found, ("prior", ""), (np.log(shares) - found.joint)[None])
            for answer, kind in known.answers:
                self._tell(found, answer, kind)
            found.refresh()
            if len(self._cache) >= CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[item] = found
        return found

    def _tell(self, held: _Ratios, answer: Answer, kind: str) -> None:
        """Multiply the likelihoods of an item by those of one more answer."""
        question, value = answer.question, answer.value
        before = held.counts.setdefault(question, [0, 0])
        model, rho = self.table.model, self.table.model.shared_difficulty
        plain = model.log_likelihood(question, value, answer.skill, *before)
        share, sign = self._alternatives(question), model.sign[question]
        if answer.skill:
            share = skilled(share, sign, answer.skill)
        other = _log_of(urn(share, rho, *before), value) - plain
        for key in (("table", ""), ("question", str(question)), ("kind", kind)):
            self._add(held, key, other)
        if before[1]:
            share = model.yes_given(question, answer.skill)
            other = np.stack([_log_of(urn(share, r, *before), value) for r in DEPENDENCES])
            self._add(held, ("dependence", ""), other - plain)
        held.joint = held.joint + plain
        before[0] += value
        before[1] += 1

    def _alternatives(self, question: int) -> FloatArray:
        """P(yes | hypothesis) with other errors, one row per alternative."""
        found = self._others.get(question)
        if found is None:
            yes, sign = self.table.model.yes[question], self.table.model.sign[question]
            error = np.where(sign > 0, 1 - yes, yes)
            most = np.maximum(error, _NEAR_HALF)
            others = [np.minimum(error * times, most) for times in MULTIPLES]
            others.append(error + GUESSES * (0.5 - error))
            made = np.stack(others)
            found = np.where(sign > 0, 1 - made, np.where(sign < 0, made, yes))
            self._others[question] = found
        return found

    def _count(self, held: _Ratios, sign: int) -> None:
        """Add an item to the sums over all items, or take it out."""
        if not held.counts:  # nothing is known about it
            return
        self._mass += sign * held.posterior
        self._totals[held.rows] += sign * held.log_ratios

    def _add(self, held: _Ratios, key: Key, log_ratio: FloatArray) -> None:
        """Multiply alternatives of an item; a key that is new gets its place and weight."""
        first = self._keys.get(key)
        if first is None:
            first = self._keys[key] = len(self._totals)
            count = len(log_ratio)
            chance = np.full(count, 1 / count) if key[0] in ALIKE else np.array(CHANCES)
            self._totals = np.append(self._totals, np.zeros(count))
            self._log_weight = np.append(self._log_weight, np.log(self._weight(key) * chance))
        held.add(key, first, log_ratio)

    def _current_shares(self) -> int:
        """Number of the class shares that a new item starts with; 0 for those of the table.

        They are estimated from the items before it, again whenever these have grown by half.
        """
        items, prior = len(self._items), self.table.prior
        if items >= FIRST_SHARES * GROWTH ** len(self._shares):
            strength = ITEMS_PER_CLASS * len(prior)
            self._shares.append((strength * prior + self._mass) / (strength + self._mass.sum()))
        return len(self._shares)

    def _score(self, held: _Ratios, answer: Answer, kind: str) -> None:
        before = held.counts.get(answer.question, (0, 0))
        share = self.table.model.yes_given(answer.question, answer.skill, *before)
        yes = min(max(float(held.posterior @ share), 1e-12), 1 - 1e-12)
        bits = -math.log2(yes), -math.log2(1 - yes)
        for key in (("question", str(answer.question)), ("kind", kind)):
            score = self._scores.setdefault(key, [0, 0.0, 0.0])
            score[0] += 1
            score[1] += bits[0] if answer.value else bits[1]
            score[2] += yes * bits[0] + (1 - yes) * bits[1]

    # ---------------------------------------------------------------- what they say

    def _weight(self, key: Key) -> float:
        part = SHARES[key[0]]
        if key[0] == "question":
            return part / self.original.problem.n_questions
        if key[0] == "kind":  # nobody knows how many there will be
            kinds = [name for subject, name in self._keys if subject == "kind"]
            return part * 0.5 ** (1 + kinds.index(key[1]))
        return part

    def _log_evidence(self) -> dict[Key, float]:
        """Logarithm of weight times likelihood ratio of each way to be wrong."""
        if not self._keys:
            return {}
        starts = list(self._keys.values())
        value = np.logaddexp.reduceat(self._totals + self._log_weight, starts)
        return dict(zip(self._keys, np.minimum(value, _HIGHEST).tolist(), strict=True))

    @property
    def evidence(self) -> float:
        """Likelihood ratio against the table: 1 at the start, an alarm from ``1 / alpha`` on."""
        return self._overall(self._log_evidence())

    def _overall(self, log_evidence: Mapping[Key, float]) -> float:
        rest = 1 - float(np.exp(self._log_weight).sum())
        return rest + math.fsum(map(math.exp, log_evidence.values()))

    def _new_alarms(self) -> tuple[Alarm, ...]:
        """The first alarm by all evidence together, the others by that of each subject alone."""
        found = self._log_evidence()
        raised: dict[Key, float] = {}
        if not self.alarms:
            overall = self._overall(found)
            if overall < 1 / self.alpha:
                return ()
            raised[max(found, key=lambda key: found[key])] = overall
        known = {(alarm.subject, alarm.name) for alarm in self.alarms}
        for key, value in found.items():
            if value >= -math.log(self.alpha) and (key[0], self._named(key)) not in known:
                raised.setdefault(key, math.exp(value))
        made = tuple(self._alarm(key, evidence) for key, evidence in raised.items())
        self.alarms.extend(made)
        return made

    def _alarm(self, key: Key, evidence: float) -> Alarm:
        subject: Any = key[0]
        return Alarm(subject, self._named(key), self.answers, len(self._items), evidence)

    def _named(self, key: Key) -> str:
        return self.original.problem.questions[int(key[1])] if key[0] == "question" else key[1]

    def scores(self) -> dict[tuple[str, str], Score]:
        """How well the answers to each question and of each kind of worker were predicted."""
        return {
            (key[0], self._named(key)): Score(int(n), seen / n, expected / n)
            for key, (n, seen, expected) in self._scores.items()
        }

    def estimate(self) -> Estimated:
        """Estimate the table from the answers so far, with the assumed table as the prior."""
        items = (
            [answer for answer, _ in item.answers] for item in self._items.values() if item.answers
        )
        return estimate(self.table, Gathered.of(items))

    def findings(self, estimated: Estimated | None = None) -> list[Finding]:
        """Say what the answers say about questions, classes and dependence; likeliest first."""
        found = self.estimate() if estimated is None else estimated
        log_evidence = self._log_evidence()

        def weight(subject: str, name: str = "") -> float:
            return math.exp(log_evidence.get((subject, name), -math.inf))

        problem, made = self.original.problem, []
        for q, name in enumerate(problem.questions):
            if found.answers[q].sum() and (self.table.model.sign[q] != 0).any():
                assumed, value = found.error(self.table, q), found.error(found.table, q)
                odds = math.log(value / (1 - value))
                ends = [1 / (1 + math.exp(-odds - z * found.sd[q])) for z in (-Z95, Z95)]
                row = (assumed, value, ends[0], ends[1], weight("question", str(q)))
                made.append(Finding("question", name, *row))
        classes = problem.classes
        if len(classes) == len(self.table.prior):
            for c, name in enumerate(classes):
                share = float(found.table.prior[c])
                low, high = wilson_interval(share * found.items, found.items)
                row = (float(self.table.prior[c]), share, low, high, weight("prior"))
                made.append(Finding("prior", name, *row))
        rho = (self.table.model.shared_difficulty, found.table.model.shared_difficulty)
        if rho[0] != rho[1]:
            made.append(Finding("dependence", "", *rho, rho[1], rho[1], weight("dependence")))
        return sorted(made, key=lambda finding: (not finding.differs, -finding.evidence))

    # ---------------------------------------------------------------- revising

    @property
    def due(self) -> str:
        """Why the table is to be revised now: ``"alarm"``, ``"answers"``, or empty if it is not."""
        if not self.adapt or not self.alarms:
            return ""
        if not self.revisions:
            return "alarm"
        return "answers" if self.answers >= GROWTH * self.revisions[-1].after else ""

    def revise(self, reason: str | None = None) -> Revision:
        """Estimate the table again; from now on :attr:`policy` is the revised one."""
        table = self.estimate().table
        made = Revision(self.answers, reason or self.due or "asked for", table.to_dict())
        self.adopt(made)
        return made

    def adopt(self, revision: Revision) -> None:
        """Go on with a revision that was made before, as a replay does."""
        self.revisions.append(revision)
        self.policy = revision.apply(self.original)

    # ---------------------------------------------------------------- in and out

    def to_dict(self) -> dict[str, Any]:
        """Write everything as plain JSON."""
        return {
            "alpha": self.alpha,
            "adapt": self.adapt,
            "items": [
                [name, item.shares, [[*answer, kind] for answer, kind in item.answers]]
                for name, item in self._items.items()
            ],
            "keys": [[*key, first] for key, first in self._keys.items()],
            "totals": self._totals.tolist(),
            "log_weight": self._log_weight.tolist(),
            "scores": [[*key, score] for key, score in self._scores.items()],
            "mass": self._mass.tolist(),
            "shares": [shares.tolist() for shares in self._shares],
            "alarms": [alarm._asdict() for alarm in self.alarms],
            "revisions": [revision.to_dict() for revision in self.revisions],
        }

    @classmethod
    def from_dict(cls, policy: Policy[Any], data: Mapping[str, Any]) -> Monitor:
        """Read what :meth:`to_dict` wrote; `policy` is the one that the campaign started with."""
        made = cls(policy, data["alpha"], data["adapt"])
        for name, shares, answers in data["items"]:
            said = [(Answer(int(q), int(v), float(s)), str(kind)) for q, v, s, kind in answers]
            made._items[name] = _Item(int(shares), said)
            made.answers += len(said)
        made._keys = {(subject, name): first for subject, name, first in data["keys"]}
        made._totals = np.array(data["totals"])
        made._log_weight = np.array(data["log_weight"])
        made._scores = {(s, name): list(score) for s, name, score in data["scores"]}
        made._mass = np.array(data["mass"])
        made._shares = [np.array(shares) for shares in data["shares"]]
        made.alarms = [Alarm(**alarm) for alarm in data["alarms"]]
        for revision in data["revisions"]:
            made.revisions.append(Revision.from_dict(revision))
        if made.revisions:
            made.policy = made.revisions[-1].apply(policy)
        return made


def _log_of(yes: FloatArray, value: int) -> FloatArray:
    return np.log(yes) if value else np.log1p(-yes)
