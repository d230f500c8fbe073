"""Take in the answers of a campaign, raise alarms, and revise the table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.checking import check_call, check_share
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem
from crowdtree.core.result_methods import HtmlShown
from crowdtree.core.stats import Z95, wilson_interval
from crowdtree.core.text import plural
from crowdtree.policies.base import Answer, FloatArray, Policy, check_answer
from crowdtree.policies.monitor.past import PEOPLE, InMemoryHistory, Past, Said
from crowdtree.policies.monitor.records import Alarm, Finding, Occasion, Revision
from crowdtree.policies.monitor.table_tests import (
    ALIKE,
    CHANCES,
    SHARES,
    ItemEvidence,
    Key,
    TableTests,
)
from crowdtree.policies.revising import (
    ITEMS_PER_CLASS,
    Estimated,
    Gathered,
    Table,
    estimate,
    table_of,
)

__all__ = ["GROWTH", "Monitor"]

FIRST_SHARES = 10
"""Items after which class shares are estimated for the first time, to compare the prior with."""
GROWTH = 1.5
"""Growth of the number of answers after which a table is estimated again."""
MAX_HELD = 300_000
"""Numbers that are held about items; those of others are computed again when needed."""
ENTRY = 30
"""Memory that an item takes by itself, in numbers; what is computed is shared with others."""
_HIGHEST = 700.0  # logarithm of evidence beyond which more says nothing


class _Shares(NamedTuple):
    """Class shares that were estimated, and the first answer of the items that start with them."""

    position: int
    share: FloatArray


class Monitor(HtmlShown):
    """Watch the answers of a campaign, say when its table is wrong, and revise it.

    Its memory does not grow with the answers, if `past` finds them elsewhere.

    Parameters
    ----------
    policy
        The policy that the campaign started with. Its plain table is tested, whatever its
        calibration and the skills of workers.
    alpha
        Most probability of an alarm, at any time, if the table is right.
    adapt
        Whether the table is revised after an alarm.
    past
        Where the answers so far are found; in memory by default.

    Attributes
    ----------
    answers, items
        Answers that count, and items that had some.
    alarms
        Alarms so far: the first when the table as a whole is contradicted, then one for each
        question, class, kind of worker and so on that is so by itself.
    revisions, revised_after
        Tables that replaced the assumed one, and the answers after which the last one did.
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
    >>> monitor.alarms[0].subject, str(monitor.due)
    ('table', 'alarm')
    >>> monitor.revise().after
    80
    >>> bool(monitor.policy.problem.worker_error.mean() > 0.15)
    True
    """

    def __init__(
        self,
        policy: Policy[Any],
        alpha: float = 0.05,
        adapt: bool = True,
        past: Past | None = None,
    ) -> None:
        check_call(Monitor, locals())
        check_share("alpha", alpha)
        if not hasattr(policy, "model"):
            raise CrowdtreeError(f"monitor: {type(policy).__name__} has no table to compare with")
        self.original = self.policy = policy
        self.table = table_of(policy)
        self.alpha, self.adapt = float(alpha), bool(adapt)
        self.past: Past = InMemoryHistory() if past is None else past
        self.position = self.answers = self.items = self.revised_after = 0
        self.alarms: list[Alarm] = []
        self.revisions: list[Revision] = []
        self._class_of = np.asarray(getattr(policy, "label", np.arange(len(self.table.prior))))
        self._tests = TableTests(self.table, self._class_of)
        self._keys: dict[Key, int] = {}  # place of the first alternative of each
        self._totals = np.zeros(0)
        self._log_weight = np.zeros(0)
        for number in range(self._tests.classes):
            self._place(("class", str(number)), len(CHANCES))
        self._classes = len(self._totals)  # alternatives about errors in one class come first
        self._mass = np.zeros(len(self.table.prior))
        self._shares: list[_Shares] = []
        self._held: dict[str, ItemEvidence] = {}  # the one that was answered last at the end
        self._firsts: dict[int, ItemEvidence] = {}
        self._size = 0
        self._over: set[int] = set()  # places of keys whose alarms are known to have been raised

    # ---------------------------------------------------------------- answers in

    def __repr__(self) -> str:
        alarms, revisions = (
            plural(len(self.alarms), "alarm"),
            plural(len(self.revisions), "revision"),
        )
        return f"<Monitor: {plural(self.answers, 'answer')}, {alarms}, {revisions}>"

    def observe(
        self, item: str, answer: Answer, kind: str = PEOPLE, position: int | None = None
    ) -> tuple[Alarm, ...]:
        """Take in an answer that counted; return the alarms that it raises.

        Parameters
        ----------
        item
            Name of the item.
        answer
            The answer; the skill that it was weighed with is not used.
        kind
            Kind of worker, such as ``"people"`` or the name of a model.
        position
            Its place in the log, which increases; counted by itself where it is not given.
        """
        check_answer(self.original.problem, answer)
        self.position = self.position + 1 if position is None else position
        said = Said(Answer(answer.question, answer.value), kind)
        before = self._take(item)
        after = self._after(before, said)
        self._count(before, -1)
        self.past.add(item, self.position, said)
        self._count(after, 1)
        self._hold(item, after)
        self.answers += 1
        return self._new_alarms()

    def _take(self, item: str) -> ItemEvidence:
        """Take the likelihood ratios of an item out of those that are held, or compute them."""
        found = self._held.pop(item, None)
        if found is not None:
            self._size -= ENTRY
            return found
        began, said = self.past.of(item)
        if began is None:
            self._begin_shares()
            self.items += 1
            began = self.position
        found = self._first(sum(made.position <= began for made in self._shares))
        for one in said:
            found = self._after(found, one)
        return found

    def _first(self, shares: int) -> ItemEvidence:
        """Likelihood ratios before any answer, where shares were estimated so many times."""
        found = self._firsts.get(shares)
        if found is None:
            found = ItemEvidence(self.table.prior, self._tests.classes)
            if shares:
                key = ("prior", "")
                found.add([(key, self._place(key, 1), 1)], self._shares[shares - 1].share[None])
            self._tests.refresh(found)
            self._firsts[shares] = found
            self._size += found.size
        return found

    def _after(self, before: ItemEvidence, said: Said) -> ItemEvidence:
        """Likelihood ratios after one more answer."""
        after = before.after.get(said)
        if after is None:
            after = before.after[said] = before.copy()
            needed = self._tests.missing_alternatives(after, said)
            if needed:
                after.add_like_table(
                    [(key, self._place(key, count), count) for key, count in needed]
                )
            self._tests.observe(after, said)
            self._tests.refresh(after)
            self._size += after.size
        return after

    def _hold(self, item: str, held: ItemEvidence) -> None:
        self._held[item] = held
        self._size += ENTRY
        if self._size > MAX_HELD:
            self._forget()

    def _forget(self) -> None:
        """Hold only the items that were answered last, and nothing that would follow."""
        kept: dict[str, ItemEvidence] = {}
        self._size, seen = 0, set[int]()
        for item, held in reversed(self._held.items()):
            size = ENTRY + (0 if id(held) in seen else held.size)
            if kept and self._size + size > MAX_HELD // 2:
                break
            kept[item] = held
            held.after.clear()
            seen.add(id(held))
            self._size += size
        self._held = dict(reversed(kept.items()))
        self._firsts.clear()

    def _count(self, held: ItemEvidence, sign: int) -> None:
        """Add an item to the sums over all items, or take it out."""
        if not held.counts:  # nothing is known about it
            return
        change = np.add if sign > 0 else np.subtract
        classes, ratios = self._classes, held.log_ratios
        change(self._mass, held.posterior, out=self._mass)
        change(self._totals[:classes], ratios[:classes], out=self._totals[:classes])
        self._totals[held.rows] = change(self._totals[held.rows], ratios[classes:])

    def _place(self, key: Key, count: int) -> int:
        """Place of the first alternative of a key; one that is new gets its place and weight."""
        first = self._keys.get(key)
        if first is None:
            first = self._keys[key] = len(self._totals)
            chance = np.full(count, 1 / count) if key[0] in ALIKE else np.array(CHANCES)
            self._totals = np.append(self._totals, np.zeros(count))
            self._log_weight = np.append(self._log_weight, np.log(self._weight(key) * chance))
            self._find_places()
        return first

    def _find_places(self) -> None:
        """Find where the alternatives of each key begin, and the weight of those to come."""
        self._starts = np.array(list(self._keys.values()))
        self._rest = 1 - float(np.exp(self._log_weight).sum())

    def _begin_shares(self) -> None:
        """Estimate class shares from the items before a new one, when these have grown by half."""
        if self.items >= FIRST_SHARES * GROWTH ** len(self._shares):
            prior, strength = self.table.prior, ITEMS_PER_CLASS * len(self.table.prior)
            share = (strength * prior + self._mass) / (strength + self._mass.sum())
            self._shares.append(_Shares(self.position, share))

    # ---------------------------------------------------------------- what they say

    def _weight(self, key: Key) -> float:
        part = SHARES[key[0]]
        if key[0] == "question":
            return part / self.original.problem.n_questions
        if key[0] == "class":
            return part / self._tests.classes
        if key[0] == "kind":  # nobody knows how many there will be
            kinds = [name for subject, name in self._keys if subject == "kind"]
            return part * 0.5 ** (1 + kinds.index(key[1]))
        return part

    def _evidence(self) -> FloatArray:
        """Weight times likelihood ratio of each way to be wrong, in the order of the keys."""
        value = np.exp(np.minimum(self._totals + self._log_weight, _HIGHEST))
        return np.asarray(np.add.reduceat(value, self._starts))

    @property
    def evidence(self) -> float:
        """Likelihood ratio against the table: 1 at the start, an alarm from ``1 / alpha`` on."""
        return self._overall(self._evidence())

    def _overall(self, evidence: FloatArray) -> float:
        return float(evidence.sum()) + self._rest

    def _new_alarms(self) -> tuple[Alarm, ...]:
        """The first alarm by all evidence together, the others by that of each subject alone."""
        found = self._evidence()
        overall = self._overall(found)
        if overall < 1 / self.alpha:  # then no subject is contradicted by itself
            return ()
        over = np.flatnonzero(found >= 1 / self.alpha).tolist()
        if self.alarms and self._over.issuperset(over):
            return ()
        self._over.update(over)
        keys, raised = list(self._keys), dict[Key, float]()
        if not self.alarms:
            raised[keys[int(np.argmax(found))]] = overall
        known = {(alarm.subject, alarm.name) for alarm in self.alarms}
        for place in over:
            if (keys[place][0], self._named(keys[place])) not in known:
                raised.setdefault(keys[place], float(found[place]))
        made = tuple(self._alarm(key, evidence) for key, evidence in raised.items())
        self.alarms.extend(made)
        return made

    def _alarm(self, key: Key, evidence: float) -> Alarm:
        subject: Any = key[0]
        return Alarm(subject, self._named(key), self.answers, self.items, evidence)

    def _named(self, key: Key) -> str:
        problem = self.original.problem
        names = {"question": problem.questions, "class": problem.classes}.get(key[0])
        return key[1] if names is None else names[int(key[1])]

    def estimate(self) -> Estimated:
        """Estimate the table from the answers so far, with the assumed table as the prior."""
        return estimate(self.table, Gathered.of(self.past.items(), self.table.model.slots))

    def findings(self, estimated: Estimated | None = None) -> list[Finding]:
        """Say what the answers say about questions, classes and dependence; likeliest first."""
        found = self.estimate() if estimated is None else estimated
        evidence = dict(zip(self._keys, self._evidence().tolist(), strict=True))
        return _find(self.original.problem, self.table, found, self._class_of, evidence)

    # ---------------------------------------------------------------- revising

    @property
    def due(self) -> Occasion | None:
        """Why the table is to be revised now, or ``None`` if it is not."""
        if not self.adapt or not self.alarms:
            return None
        if not self.revised_after:
            return Occasion.ALARM
        return Occasion.ANSWERS if self.answers >= GROWTH * self.revised_after else None

    def revise(self, reason: Occasion | None = None) -> Revision:
        """Estimate the table again; from now on :attr:`policy` is the revised one."""
        table = self.estimate().table
        made = Revision(self.answers, reason or self.due or Occasion.REQUEST, table.to_dict())
        self.adopt(made)
        return made

    def adopt(self, revision: Revision) -> None:
        """Go on with a revision that was made before, as a replay does."""
        self.revisions.append(revision)
        self.revised_after = revision.after
        self.policy = revision.apply(self.original)

    # ---------------------------------------------------------------- in and out

    def to_dict(self) -> dict[str, Any]:
        """Write everything but the past as plain JSON."""
        return {
            "alpha": self.alpha,
            "adapt": self.adapt,
            "position": self.position,
            "answers": self.answers,
            "items": self.items,
            "revised_after": self.revised_after,
            "keys": [[*key, first] for key, first in self._keys.items()],
            "totals": self._totals.tolist(),
            "log_weight": self._log_weight.tolist(),
            "mass": self._mass.tolist(),
            "shares": [[made.position, made.share.tolist()] for made in self._shares],
            "alarms": [alarm._asdict() for alarm in self.alarms],
            "revisions": [revision.to_dict() for revision in self.revisions],
        }

    @classmethod
    def from_dict(
        cls, policy: Policy[Any], data: Mapping[str, Any], past: Past | None = None
    ) -> Monitor:
        """Read what :meth:`to_dict` wrote.

        `policy` is the one that the campaign started with, `past` has the answers so far.
        """
        made = cls(policy, data["alpha"], data["adapt"], past)
        for name in ("position", "answers", "items", "revised_after"):
            setattr(made, name, int(data[name]))
        made._keys = {(subject, name): first for subject, name, first in data["keys"]}
        made._totals = np.array(data["totals"])
        made._log_weight = np.array(data["log_weight"])
        made._find_places()
        made._mass = np.array(data["mass"])
        made._shares = [_Shares(int(at), np.array(share)) for at, share in data["shares"]]
        made.alarms = [Alarm(**alarm) for alarm in data["alarms"]]
        made.revisions = [Revision.from_dict(revision) for revision in data["revisions"]]
        if made.revisions:
            made.policy = made.revisions[-1].apply(policy)
        return made


def _find(
    problem: Problem,
    assumed: Table,
    found: Estimated,
    class_of: NDArray[np.int64],
    evidence: Mapping[Key, float],
) -> list[Finding]:
    """List what an estimate says, what differs from the table first, then the likeliest.

    `class_of` is the class of each hypothesis, `evidence` the weighted likelihood ratio of each way
    to be wrong.
    """

    def weight(subject: str, name: str = "") -> float:
        return evidence.get((subject, name), 0.0)

    made = []
    definite = found.answers * assumed.definite
    for q, name in enumerate(problem.questions):
        only = np.arange(len(definite))[:, None] == q
        facts = _errors(assumed, found, definite * only, float(found.sd[q]))
        if facts is not None:
            made.append(Finding("question", name, *facts, weight("question", str(q))))
    whole = weight("table")  # where it explains more than one class does, classes are not listed
    for c, name in enumerate(problem.classes):
        mine = class_of == c
        sd = float(found.class_sd[mine].min(initial=np.inf))
        facts = _errors(assumed, found, definite * mine, sd)
        if facts is not None and weight("class", str(c)) > whole:
            made.append(Finding("class", name, *facts, weight("class", str(c))))
    if len(problem.classes) == len(assumed.prior):
        for c, name in enumerate(problem.classes):
            share = float(found.table.prior[c])
            low, high = wilson_interval(share * found.items, found.items)
            facts = (float(assumed.prior[c]), share, low, high)
            made.append(Finding("prior", name, *facts, weight("prior")))
    rho = (assumed.model.shared_difficulty, found.table.model.shared_difficulty)
    if rho[0] != rho[1]:
        made.append(Finding("dependence", "", *rho, rho[1], rho[1], weight("dependence")))
    return sorted(made, key=lambda finding: (not finding.differs, -finding.evidence))


def _errors(
    assumed: Table, found: Estimated, weight: FloatArray, sd: float
) -> tuple[float, float, float, float] | None:
    """Mean error over some cells: assumed, estimated, and the ends of its interval."""
    total = float(weight.sum())
    if not total:
        return None
    value = float((weight * found.table.error).sum()) / total
    odds = math.log(value / (1 - value))
    ends = [1 / (1 + math.exp(-odds - z * sd)) for z in (-Z95, Z95)]
    return float((weight * assumed.error).sum()) / total, value, ends[0], ends[1]
