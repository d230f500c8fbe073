"""The pure engine of a campaign: answers in, next questions and labels out.

No clock, database or HTTP. The log of events is append-only, and the state is its replay. Each
item stands alone, so a server keeps one :class:`ItemState` per row and calls two pure functions:

- :func:`open_questions` (policy, item, what is leased out, who asks) -> questions to hand out;
- :func:`advance` (policy, item, event) -> the item after the event, with the event's *fate*.

Fates, in the order in which they are decided:

=============== ==================================================================================
``duplicate``   the event's key, or the worker's same answer to the question, is there already
``contradictory`` the worker answered this question otherwise before; the first answer stands
``skipped``     the worker passed; will not be asked this question on this item again
``excluded``    taken out of the item by its owner; see :func:`replay_item`
``late``        the item has its label already; kept in the log, does not change the label
``surplus``     there is no use for the answer: its vote is over, a limit is reached, or the label
                still lacks other people than this one
``counted``     the policy's state moved on
=============== ==================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.likelihood import UNSURE
from crowdtree.policies import Answer, Ask, Label, Policy
from crowdtree.policies.item_prior import start_of

Kind = Literal["answer", "skip"]
KINDS = get_args(Kind)
Fate = Literal["counted", "duplicate", "contradictory", "skipped", "late", "surplus", "excluded"]
WITHOUT_EFFECT = ("duplicate", "contradictory", "excluded")
"""Fates of events that do not stand: they changed nothing, or were excluded."""


@dataclass(frozen=True)
class Event:
    """One line of the log. Never changed, never removed.

    Parameters
    ----------
    value
        0 (no) or 1 (yes); ``None`` for a skip.
    kind
        ``"answer"`` or ``"skip"``.
    key
        Given by the sender, unique: the same key again is the same event sent twice. Optional.
    skill
        The worker's reliability as estimated when the answer came, 0 if unknown. Logged, so that a
        replay gives the same state whatever is learnt later.
    weight
        How much a skip counts, from 0 to 1, by the worker's record when it came. Logged like
        `skill`.
    """

    item: str
    question: int
    worker: str
    value: int | None = None
    kind: Kind = "answer"
    key: str = ""
    skill: float = 0.0
    weight: float = 1.0


@dataclass(frozen=True)
class Rules:
    """Rules for skips, repeated answers, and how many people a label takes.

    Parameters
    ----------
    most_skips
        When the weights of its skips add up to this, a question is no longer asked about the
        item. No skip weighs more than 1, and nobody skips a question twice, so it takes at least
        this many people.
    same_worker
        Whether a worker may answer the same question on the same item again (only sensible for
        machines that answer independently each time).
    people
        Different workers whose answers count before an item gets its label.
    person_dependence
        Correlation of one worker's answers to different questions about one item, from 0
        (independent) to below 1: n of them count as ``n / (1 + (n - 1) person_dependence)``
        answers (docs/model.md, section 13).
    """

    most_skips: int = 3
    same_worker: bool = False
    people: int = 1
    person_dependence: float = 0.0

    def __post_init__(self) -> None:
        for name in ("most_skips", "people"):
            if getattr(self, name) < 1:
                raise CrowdtreeError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if not 0 <= self.person_dependence < 1:
            raise CrowdtreeError(
                f"person_dependence: expected 0 or more and below 1, got {self.person_dependence}"
            )


RULES = Rules()


def check_people(policy: Policy[Any], people: int) -> None:
    """Raise unless a policy takes the answers of so many people about an item.

    >>> import crowdtree as ct
    >>> check_people(ct.AdaptivePolicy(ct.example("table1"), max_answers=20), 2)
    """
    if people < 1:
        raise CrowdtreeError(f"people_per_item: expected at least 1, got {people}")
    most = policy.max_answers
    if most is not None and most < people:
        raise CrowdtreeError(
            f"people_per_item: {people} people cannot answer about an item: the policy takes at "
            f"most {most} (max_answers)"
        )


ROUNDING = 1e-9
"""Tolerance for a sum of weights."""


@dataclass(frozen=True, eq=False)
class ItemState:
    """Everything about one item: its events, their fates, and the policy's state.

    `least` is the number of answers that it takes before its label, beside what the rules ask for.
    `asked` is what the policy asks with nothing outstanding, where that has been computed.
    `prior` is the item's own, where it has one.
    """

    item: str
    state: Any
    label: Label | None = None
    events: tuple[Event, ...] = ()
    fates: tuple[Fate, ...] = ()
    least: int = 0
    asked: Ask | None = None
    prior: tuple[float, ...] | None = None

    @property
    def answers(self) -> int:
        """Answers that counted."""
        return self.fates.count("counted")


class Step(NamedTuple):
    """One answer that counted, and the posterior after it."""

    question: int
    value: int
    worker: str
    posterior: tuple[float, ...]


def start_item(policy: Policy[Any], item: str, prior: Sequence[float] | None = None) -> ItemState:
    """Make the state of an item without answers; `prior` in place of the problem's prior."""
    state = start_of(policy, prior)
    found = policy.ask(state)
    label = found if isinstance(found, Label) else None
    return ItemState(item, state, label, prior=None if prior is None else tuple(prior))


def advance(policy: Policy[Any], item: ItemState, event: Event, rules: Rules = RULES) -> ItemState:
    """Take one event into account; its fate is the last of ``item.fates``.

    Parameters
    ----------
    event
        What happened; must be about this item and a question of the problem.

    Examples
    --------
    >>> import crowdtree as ct
    >>> from crowdtree.policies import PlanPolicy
    >>> policy = PlanPolicy(ct.design(ct.example("table1")))
    >>> item = start_item(policy, "photo 1")
    >>> item = advance(policy, item, Event("photo 1", 0, "ann", 1))
    >>> item.fates, policy.problem.classes[item.label.label]
    (('counted',), 'c4')
    """
    check_event(policy, event)
    policy = _ruled(policy, item, rules)
    if event.item != item.item:
        raise CrowdtreeError(f"event: expected item {item.item!r}, got {event.item!r}")
    events = (*item.events, event)
    if event.key and any(earlier.key == event.key for earlier in item.events):
        return replace(item, events=events, fates=(*item.fates, "duplicate"))
    fate, state = _fate(policy, item, event, rules)
    fates, found = (*item.fates, fate), item.label
    if found is not None:
        return replace(item, state=state, events=events, fates=fates, asked=None)
    decided = _settled(policy, state, _closed(events, fates, rules))
    label, asked = (decided, None) if isinstance(decided, Label) else (None, decided)
    return replace(item, state=state, label=label, events=events, fates=fates, asked=asked)


def _ruled(policy: Policy[Any], item: ItemState, rules: Rules) -> Policy[Any]:
    """Policy with the least number of answers that the rules and the item ask for."""
    least = max(rules.people, item.least)
    return policy.at_least(least) if least > 1 else policy


def _fate(policy: Policy[Any], item: ItemState, event: Event, rules: Rules) -> tuple[Fate, Any]:
    """Decide what becomes of an answer or a skip, and the policy's state after it."""
    standing = _standing(item)
    mine = [e for e, _ in standing if e.worker == event.worker and e.question == event.question]
    if event.kind == "skip":
        return ("duplicate" if any(e.kind == "skip" for e in mine) else "skipped"), item.state
    given = [e.value for e in mine if e.kind == "answer"]
    if given and not rules.same_worker:
        return ("duplicate" if event.value in given else "contradictory"), item.state
    if item.label is not None:
        return "late", item.state
    counted = [e.worker for e, fate in standing if fate == "counted"]
    again = counted.count(event.worker)
    lacking = again and len(set(counted)) < rules.people  # the next answer is for somebody else
    if lacking or not policy.wants(item.state, event.question):
        return "surplus", item.state
    return "counted", policy.update(item.state, _weighed(event, again, rules))


def _weighed(event: Event, earlier: int, rules: Rules) -> Answer:
    """Answer of a worker who has answered about the item some times before."""
    assert event.value is not None
    weight = answer_weight(earlier, rules.person_dependence)
    return Answer(event.question, event.value, event.skill, weight)


N = TypeVar("N", int, NDArray[np.int64])


def answer_weight(earlier: N, dependence: float) -> Any:
    """Weight of an answer of somebody who has given `earlier` ones about the item.

    >>> answer_weight(0, 0.3), round(answer_weight(1, 0.3), 3), answer_weight(3, 0.0)
    (1.0, 0.538, 1.0)
    """
    return (earlier + 1) / (1 + earlier * dependence) - earlier / (1 + (earlier - 1) * dependence)


def counted_answers(item: ItemState, rules: Rules = RULES) -> Iterator[tuple[Event, Answer]]:
    """Answers that counted, in order, each as an event and as the policy was shown it."""
    earlier: Counter[str] = Counter()
    for event, fate in zip(item.events, item.fates, strict=True):
        if fate == "counted":
            yield event, _weighed(event, earlier[event.worker], rules)
            earlier[event.worker] += 1


def _settled(policy: Policy[Any], state: Any, closed: frozenset[int]) -> Label | Ask:
    """Label of a state: the policy's, or its best guess when only closed questions are left.

    Else what the policy asks where nothing is closed.
    """
    found = policy.ask(state)
    if isinstance(found, Ask) and closed and closed.issuperset(found.questions):
        open_ones = policy.ask(state, exclude=closed)
        if isinstance(open_ones, Label):
            return open_ones
        if not open_ones.questions:
            return policy.conclude(state, "skipped")
    return found


def stands(fate: str) -> bool:
    """Whether an event with this fate is an answer or skip that is neither repeated nor excluded.

    >>> stands("counted"), stands("late"), stands("excluded"), stands("duplicate")
    (True, True, False, False)
    """
    return fate not in WITHOUT_EFFECT


def _standing(item: ItemState) -> list[tuple[Event, Fate]]:
    """Answers and skips of the item that stand, with their fates."""
    return [
        (event, fate) for event, fate in zip(item.events, item.fates, strict=True) if stands(fate)
    ]


def _closed(events: tuple[Event, ...], fates: tuple[Fate, ...], rules: Rules) -> frozenset[int]:
    """Questions that too many workers have skipped, each counted by the weight of the skip."""
    skips: dict[int, float] = {}
    for event, fate in zip(events, fates, strict=True):
        if fate == "skipped":
            skips[event.question] = skips.get(event.question, 0.0) + event.weight
    return frozenset(q for q, weight in skips.items() if weight >= rules.most_skips - ROUNDING)


def replay_item(policy: Policy[Any], item: ItemState, rules: Rules = RULES) -> ItemState:
    """Replay an item from the start, with every standing event's fate decided anew.

    Parameters
    ----------
    policy
        The policy, which may be another than before: this is how an item is revised.
    item
        The item; its state and its label are not used.

    Examples
    --------
    >>> import crowdtree as ct
    >>> problem = ct.example("table1")
    >>> one, three = (ct.policies.PlanPolicy(ct.staff(ct.design(problem), n)) for n in (0, 8))
    >>> item = advance(one, start_item(one, "photo 1"), Event("photo 1", 0, "ann", 1))
    >>> item = advance(one, item, Event("photo 1", 0, "bob", 1))
    >>> item.fates, replay_item(three, item).fates, replay_item(three, item).label
    (('counted', 'late'), ('counted', 'counted'), None)
    """
    again = replace(start_item(policy, item.item, item.prior), least=item.least)
    fates: list[Fate] = []
    for event, fate in zip(item.events, item.fates, strict=True):
        if stands(fate):  # duplicates stay duplicates, and what is excluded stays excluded
            again = advance(policy, again, event, rules)
            fate = again.fates[-1]
        fates.append(fate)
    return replace(again, events=item.events, fates=tuple(fates))


def open_questions(
    policy: Policy[Any],
    item: ItemState,
    outstanding: Sequence[int] = (),
    worker: str | None = None,
    rules: Rules = RULES,
) -> tuple[int, ...]:
    """Questions of an item to hand out now.

    Parameters
    ----------
    outstanding
        Questions of this item that are leased to workers and may still be answered, with
        repeats: the policy counts them against its width and its budget.
    worker
        The worker: questions that this worker has answered or skipped on this item are left out.

    Examples
    --------
    >>> import crowdtree as ct
    >>> from crowdtree.policies import AdaptivePolicy
    >>> policy = AdaptivePolicy(ct.example("table1"))
    >>> item = start_item(policy, "photo 1")
    >>> open_questions(policy, item), open_questions(policy, item, outstanding=[0])
    ((0,), ())
    """
    if item.label is not None:
        return ()
    policy = _ruled(policy, item, rules)
    exclude = set(_closed(item.events, item.fates, rules))
    if worker is not None:
        standing = _standing(item)
        people = {event.worker for event, fate in standing if fate == "counted"}
        if worker in people and len(people) < rules.people:
            return ()
        exclude |= {
            event.question
            for event, fate in zip(item.events, item.fates, strict=True)
            if event.worker == worker
            and (stands(fate) or fate == "excluded")
            and (fate == "skipped" or not rules.same_worker)
        }
    found: Ask | Label | None = None if outstanding or exclude else item.asked
    if found is None:
        found = policy.ask(item.state, outstanding, frozenset(exclude))
    return found.questions if isinstance(found, Ask) else ()


def path(policy: Policy[Any], item: ItemState, rules: Rules = RULES) -> list[Step]:
    """List each answer that counted, with the posterior after it."""
    policy = _ruled(policy, item, rules)
    state, steps = start_of(policy, item.prior), []
    for event, answer in counted_answers(item, rules):
        state = policy.update(state, answer)
        posterior = tuple(policy.posterior(state).tolist())
        steps.append(Step(event.question, answer.value, event.worker, posterior))
    return steps


def check_event(policy: Policy[Any], event: Event) -> None:
    """Raise unless an event is well formed and about a question of the problem."""
    if event.kind not in KINDS:
        raise CrowdtreeError(f"event: kind must be answer or skip, got {event.kind!r}")
    if not 0 <= event.question < policy.problem.n_questions:
        raise CrowdtreeError(
            f"event: question {event.question} does not exist; the problem has "
            f"{policy.problem.n_questions}, counted from 0"
        )
    if event.kind == "answer" and event.value not in (0, 1, UNSURE):
        names = policy.problem.answers[event.question]
        if event.value not in range(len(names)):
            known = ", ".join(f"{place} ({name})" for place, name in enumerate(names[:8]))
            raise CrowdtreeError(f"event: expected an answer of {known}, got {event.value!r}")
    if not event.worker:
        raise CrowdtreeError("event: expected the worker's name, got an empty one")
