"""What a view tells: the questions to hand out, and how the item came to its label."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from crowdtree.campaign.events import Answered, Skipped, asked_of
from crowdtree.campaign.reasons import Outcome
from crowdtree.campaign.view import ItemRules, ItemView, Revision
from crowdtree.policies import Answer, Ask
from crowdtree.policies.base import Asked
from crowdtree.policies.item_prior import start_of

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
