"""What an item's events come to, what is asked next, and how the item came to its label."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdtree.campaign.events import Answered, Outcome, Reason, Response, Skipped, asked_of
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import Answer, Ask, Label, Policy
from crowdtree.policies.base import Asked
from crowdtree.policies.item_prior import start_of


@dataclass(frozen=True)
class ItemRules:
    """Rules for skips, and for how many people a label takes.

    Parameters
    ----------
    max_skips
        When the weights of its skips add up to this, a question is no longer asked about the item.
        No skip weighs more than 1, and nobody skips a question twice, so it takes at least this
        many people.
    people
        Different workers whose answers count before an item gets its label.
    person_dependence
        Correlation of one worker's answers to different questions about one item, from 0
        (independent) to below 1: n of them count as ``n / (1 + (n - 1) person_dependence)``
        answers (docs/model.md, section 13).
    """

    max_skips: int = 3
    people: int = 1
    person_dependence: float = 0.0

    def __post_init__(self) -> None:
        for name in ("max_skips", "people"):
            if getattr(self, name) < 1:
                raise CrowdtreeError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if not 0 <= self.person_dependence < 1:
            raise CrowdtreeError(
                f"person_dependence: expected 0 or more and below 1, got {self.person_dependence}"
            )


RULES = ItemRules()


class Exclusion(NamedTuple):
    """Answers and skips of a worker that do not count, by their numbers in the log."""

    worker: Hashable
    first: int
    last: int

    def covers(self, worker: Hashable, seq: int) -> bool:
        """Whether it is about an answer or a skip, by its worker and its number in the log."""
        return worker == self.worker and self.first <= seq <= self.last


class Level(NamedTuple):
    """From which event on a table was in force, and how reliable it takes people to be."""

    after: int
    level: float


@dataclass(frozen=True, eq=False)
class Revision:
    """What the answers about an item are judged by.

    Parameters
    ----------
    policy
        The policy that chooses questions and labels.
    exclusions
        Answers that do not count.
    levels
        Levels of the tables so far, this one's last; skills are relative to a table.
    """

    policy: Policy[Any]
    rules: ItemRules = RULES
    exclusions: Sequence[Exclusion] = ()
    levels: Sequence[Level] = field(default=(), repr=False)

    def excludes(self, response: Response) -> bool:
        """Whether an answer or a skip does not count."""
        return any(exclusion.covers(response.worker, response.seq) for exclusion in self.exclusions)

    def with_min_answers(self, min_answers: int) -> Policy[Any]:
        """Policy with the number of answers that the rules and an item ask for at least."""
        least = max(self.rules.people, min_answers)
        return self.policy.at_least(least) if least > 1 else self.policy

    def answer_of(self, answered: Answered, earlier: int) -> Answer:
        """Answer as the policy is shown it, of somebody with some earlier ones about the item."""
        weight = answer_weight(earlier, self.rules.person_dependence)
        skill = carried_skill(answered.skill, answered.seq, self.levels)
        return Answer(answered.question, answered.value, skill, weight, answered.source)


Revisions = Mapping[int, Revision] | Sequence[Revision]
"""Revisions of a campaign, by their numbers."""


class Status(Enum):
    """Where an item is."""

    OPEN = "open"
    LABELLED = "labelled"
    SET_ASIDE = "set aside"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, eq=False, slots=True)
class ItemView:
    """What an item's events come to.

    Attributes
    ----------
    state
        State of the policy.
    label
        The label by the answers, with its reason; `None` while the item is open or withdrawn.
    responses, outcomes
        Answers and skips in order, and what became of each.
    seq
        Number of the last event.
    revision
        Revision that is in force.
    judged_by
        Revision by which the outcomes and the label were decided: another one where the item was
        closed before, and nothing about its answers has changed.
    min_answers
        Answers that the item takes before its label, beside what the rules ask for.
    reopened_after
        How many answers and skips there were when it was last reopened.
    corrected
        Class that the owner gave it by hand.
    withdrawn
        Whether the owner has withdrawn it.
    prior
        The item's own prior, where it has one.
    asked
        What the policy asks with nothing outstanding, where that has been computed.
    """

    state: Any
    label: Label | None = None
    responses: tuple[Response, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    seq: int = 0
    revision: int = 0
    judged_by: int = 0
    min_answers: int = 0
    reopened_after: int = 0
    corrected: int | None = None
    withdrawn: bool = False
    prior: tuple[float, ...] | None = None
    asked: Ask | None = None

    @property
    def closed(self) -> bool:
        """Whether nobody is asked about it any more."""
        return self.withdrawn or self.label is not None

    @property
    def reason(self) -> Reason | None:
        """Why it has its label."""
        return None if self.label is None else Reason(self.label.reason)

    @property
    def status(self) -> Status:
        """Where the item is."""
        if self.withdrawn:
            return Status.WITHDRAWN
        if self.label is None:
            return Status.OPEN
        return Status.SET_ASIDE if Reason(self.label.reason).sets_aside else Status.LABELLED

    @property
    def answers(self) -> int:
        """Answers that counted."""
        return self.outcomes.count(Outcome.COUNTED)

    @property
    def held_back(self) -> bool:
        """Whether it waits for more answers than its policy needs."""
        return not self.closed and self.min_answers > self.answers

    def with_outcomes(self) -> Iterator[tuple[Response, Outcome]]:
        """Answers and skips in order, each with what became of it."""
        return zip(self.responses, self.outcomes, strict=True)


N = TypeVar("N", int, NDArray[np.int64])


def answer_weight(earlier: N, dependence: float) -> Any:
    """Weight of an answer of somebody who has given `earlier` ones about the item.

    >>> answer_weight(0, 0.3), round(answer_weight(1, 0.3), 3), answer_weight(3, 0.0)
    (1.0, 0.538, 1.0)
    """
    return (earlier + 1) / (1 + earlier * dependence) - earlier / (1 + (earlier - 1) * dependence)


def carried_skill(skill: float, seq: int, levels: Sequence[Level]) -> float:
    """Skill of an answer under the last of some tables, if it was given under an earlier one.

    A skill is relative to a table. Where the table has moved towards the person, so much of the
    skill is no longer their own: it is what the table now says about everybody.

    Parameters
    ----------
    skill
        The skill by which the answer was weighed when it came.

    Examples
    --------
    >>> levels = [Level(0, 2.0), Level(10, 1.5), Level(20, 2.0)]
    >>> [round(carried_skill(skill, 15, levels), 2) for skill in (0.8, 0.3, -0.3)]
    [0.3, 0.0, -0.3]
    >>> carried_skill(0.8, 5, levels)
    0.8
    """
    if not skill or not levels:
        return skill
    then = next((found.level for found in reversed(levels) if found.after < seq), None)
    change = 0.0 if then is None else levels[-1].level - then
    if skill * change <= 0:
        return skill
    return float(np.copysign(max(0.0, abs(skill) - abs(change)), skill))


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


class Step(NamedTuple):
    """One answer that counted, and the posterior after it."""

    question: int
    value: int
    worker: Hashable
    posterior: tuple[float, ...]
    source: int = 0


def closed_questions(skips: Mapping[Asked, float], rules: ItemRules) -> frozenset[Asked]:
    """Questions that too many workers have skipped, by the weights of the skips of each."""
    return frozenset(q for q, weight in skips.items() if weight >= rules.max_skips - ROUNDING)


def open_questions(
    revision: Revision,
    view: ItemView,
    outstanding: Sequence[Asked] = (),
    worker: Hashable | None = None,
) -> tuple[Asked, ...]:
    """Questions of an item to hand out now, with their sources where the problem has several.

    Parameters
    ----------
    outstanding
        Questions that are leased to workers and may still be answered, with repeats: the policy
        counts them against its width and its budget.
    worker
        The worker: questions that this worker has answered or skipped on this item are left out.

    Examples
    --------
    >>> import crowdtree as ct
    >>> from crowdtree.campaign.fold import begin
    >>> revision = Revision(ct.AdaptivePolicy(ct.example("table1")))
    >>> view = begin(revision)
    >>> open_questions(revision, view), open_questions(revision, view, outstanding=[0])
    ((0,), ())
    """
    if view.closed:
        return ()
    exclude = set[Asked]()
    skips: dict[Asked, float] = defaultdict(float)
    people = set()
    for response, outcome in view.with_outcomes():
        asked = asked_of(revision.policy, response)
        if outcome is Outcome.SKIPPED and isinstance(response, Skipped):
            skips[asked] += response.weight
        elif outcome is Outcome.COUNTED:
            people.add(response.worker)
        if response.worker == worker and (outcome.stands or outcome is Outcome.EXCLUDED):
            exclude.add(asked)
    if worker is not None and worker in people and len(people) < revision.rules.people:
        return ()
    exclude |= closed_questions(skips, revision.rules)
    if view.asked is not None and not outstanding and not exclude:
        return view.asked.asked
    policy = revision.with_min_answers(view.min_answers)
    found = policy.ask(view.state, outstanding, frozenset(exclude))
    return found.asked if isinstance(found, Ask) else ()


def counted_answers(revision: Revision, view: ItemView) -> Iterator[tuple[Answered, Answer]]:
    """Answers that counted, in order, each as it came and as the policy was shown it."""
    earlier: Counter[Hashable] = Counter()
    for response, outcome in view.with_outcomes():
        if outcome is Outcome.COUNTED and isinstance(response, Answered):
            yield response, revision.answer_of(response, earlier[response.worker])
            earlier[response.worker] += 1


def path(revision: Revision, view: ItemView) -> list[Step]:
    """List each answer that counted, with the posterior after it."""
    policy = revision.with_min_answers(view.min_answers)
    state, steps = start_of(policy, view.prior), []
    for response, answer in counted_answers(revision, view):
        state = policy.update(state, answer)
        posterior = tuple(policy.posterior(state).tolist())
        worker, source = response.worker, response.source
        steps.append(Step(response.question, answer.value, worker, posterior, source))
    return steps
