"""One history per item: what becomes of an item is a fold over its events.

No clock, database or HTTP. :func:`fold` gives the view of an item from all of its events;
:func:`extend` adds one event to a view. Both give the same view, so a server may store a view,
extend it while answers come in, and fold the events again to check it.

An answer or a skip is decided by the revision that is in force when it comes. When another revision
comes into force, all of them are decided anew, in their order. So the view follows from the events
and the revisions alone, whenever somebody looks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import singledispatch

from crowdtree.campaign.events import (
    Answered,
    Checked,
    Concluded,
    Corrected,
    Event,
    HeldBack,
    Outcome,
    PolicyChanged,
    Reason,
    Released,
    Reopened,
    Response,
    Skipped,
    Withdrawn,
    asked_of,
)
from crowdtree.campaign.view import ItemView, Revision, Revisions, closed_questions
from crowdtree.policies import Ask, Label
from crowdtree.policies.base import Asked
from crowdtree.policies.item_prior import start_of

NO_CLASS = -1
"""Label of an item that was closed without one."""


def begin(revision: Revision, prior: Sequence[float] | None = None) -> ItemView:
    """Make the view of an item without events; `prior` in place of the problem's prior."""
    policy = revision.with_min_answers(0)
    state = start_of(policy, prior)
    asked = policy.ask(state)
    label = asked if isinstance(asked, Label) else None
    return ItemView(state, label, prior=None if prior is None else tuple(prior))


def fold(
    revisions: Revisions, events: Iterable[Event], prior: Sequence[float] | None = None
) -> ItemView:
    """View of an item after its events, in the order of their numbers.

    Parameters
    ----------
    revisions
        Revisions of the campaign; 0 is the one with which it started.
    prior
        The item's own prior.

    Examples
    --------
    >>> import crowdtree as ct
    >>> revision = Revision(ct.PlanPolicy(ct.design(ct.example("table1"))))
    >>> view = fold([revision], [Answered("ann", 0, 1), Answered("bob", 0, 1)])
    >>> [str(outcome) for outcome in view.outcomes], view.label.reason
    (['counted', 'late'], 'leaf')
    """
    view = begin(revisions[0], prior)
    for event in events:
        view = extend(revisions, view, event)
    return view


def extend(revisions: Revisions, view: ItemView, event: Event) -> ItemView:
    """View of an item after one more event."""
    after = _extend(event, revisions, view)
    return replace(after, seq=event.seq) if event.seq else after


@singledispatch
def _extend(event: Event, _revisions: Revisions, _view: ItemView) -> ItemView:
    raise TypeError(type(event))


@_extend.register
def _(event: Answered, revisions: Revisions, view: ItemView) -> ItemView:
    return _respond(event, revisions, view)


@_extend.register
def _(event: Skipped, revisions: Revisions, view: ItemView) -> ItemView:
    return _respond(event, revisions, view)


def _respond(event: Response, revisions: Revisions, view: ItemView) -> ItemView:
    if view.closed:
        return replace(
            view,
            responses=(*view.responses, event),
            outcomes=(*view.outcomes, Outcome.LATE),
        )
    walk = _Walk(revisions[view.judged_by], view)
    walk.take(event)
    return walk.view(view)


@_extend.register
def _(event: PolicyChanged, revisions: Revisions, view: ItemView) -> ItemView:
    """Decide anew, unless the item was closed for good and the same answers count."""
    moved = replace(view, revision=event.revision)
    reason = view.reason
    stays = view.withdrawn or (reason is not None and (reason.sets_aside or reason.is_final))
    if stays and (view.withdrawn or not _other_answers_count(revisions, moved)):
        return moved
    return _replayed(revisions, replace(moved, min_answers=0), kept=view.label)


def _other_answers_count(revisions: Revisions, view: ItemView) -> bool:
    before, now = revisions[view.judged_by], revisions[view.revision]
    return any(before.excludes(given) != now.excludes(given) for given in view.responses)


@_extend.register
def _(event: HeldBack, revisions: Revisions, view: ItemView) -> ItemView:
    return _replayed(revisions, replace(view, min_answers=event.min_answers))


@_extend.register
def _(event: Released, revisions: Revisions, view: ItemView) -> ItemView:
    del event
    return _replayed(revisions, replace(view, min_answers=view.answers))


@_extend.register
def _(event: Concluded, revisions: Revisions, view: ItemView) -> ItemView:
    return replace(view, label=_conclude(revisions, view, event.reason), asked=None)


@_extend.register
def _(event: Checked, revisions: Revisions, view: ItemView) -> ItemView:
    del revisions
    return replace(view, label=Label(event.truth, 0.0, Reason.CHECKED), asked=None)


@_extend.register
def _(event: Corrected, revisions: Revisions, view: ItemView) -> ItemView:
    """Close an open item; ask again about one that was closed only because it was known."""
    moved = replace(view, corrected=event.label)
    if event.label is None and view.reason is Reason.CORRECTED:
        return _reopened(revisions, moved)
    if event.label is not None and not view.closed:
        label = _conclude(revisions, view, Reason.CORRECTED)
        return replace(moved, label=label, asked=None)
    return moved


@_extend.register
def _(event: Withdrawn, revisions: Revisions, view: ItemView) -> ItemView:
    del event, revisions
    return replace(view, label=None, withdrawn=True, asked=None)


@_extend.register
def _(event: Reopened, revisions: Revisions, view: ItemView) -> ItemView:
    del event
    return _reopened(revisions, view)


def _reopened(revisions: Revisions, view: ItemView) -> ItemView:
    """Decide anew without the skips so far; a label from outside is dropped."""
    count = len(view.responses)
    fresh = replace(view, withdrawn=False, label=None, min_answers=0, reopened_after=count)
    return _replayed(revisions, fresh)


def _conclude(revisions: Revisions, view: ItemView, reason: Reason) -> Label:
    if not reason.has_label:
        return Label(NO_CLASS, 1.0, reason)
    return revisions[view.judged_by].policy.conclude(view.state, reason)


def _replayed(revisions: Revisions, view: ItemView, kept: Label | None = None) -> ItemView:
    """Decide everything anew under the revision in force; `kept` is the label before.

    The truth stays. A label that was given on the evidence so far is given again on the evidence
    that is left, if the policy gives none.
    """
    revision = revisions[view.revision]
    walk = _Walk(revision, view, anew=True)
    for index, response in enumerate(view.responses):
        gone = isinstance(response, Skipped) and index < view.reopened_after
        walk.take(response, excluded=gone or revision.excludes(response))
    again = replace(walk.view(view), judged_by=view.revision)
    if kept is not None and kept.reason == Reason.CHECKED:
        return replace(again, label=kept, asked=None)
    reason = Reason.CORRECTED if view.corrected is not None else None
    if kept is not None and Reason(kept.reason).is_kept:
        reason = Reason(kept.reason)
    if reason is not None and again.label is None:
        return replace(again, label=_conclude(revisions, again, reason), asked=None)
    return again


class _Walk:
    """The answers and skips of an item, one after the other, under one revision."""

    def __init__(self, revision: Revision, view: ItemView, anew: bool = False) -> None:
        self.revision, self.rules = revision, revision.rules
        self.policy = revision.with_min_answers(view.min_answers)
        self.responses: list[Response] = []
        self.outcomes: list[Outcome] = []
        self.answered: dict[tuple[Hashable, Asked], int] = {}
        """Values given, by worker and question."""
        self.skipped: set[tuple[Hashable, Asked]] = set()
        self.skips: dict[Asked, float] = defaultdict(float)
        """Weights of the skips of each question."""
        self.counted: Counter[Hashable] = Counter()
        """Answers that counted, by worker."""
        self.state, self.label, self.asked = view.state, view.label, view.asked
        if anew:
            self.state = start_of(self.policy, view.prior)
            self._settle()
        else:
            for response, outcome in view.with_outcomes():
                self._note(response, outcome)

    def take(self, response: Response, excluded: bool = False) -> None:
        """Take one answer or skip."""
        outcome = Outcome.EXCLUDED if excluded else self._outcome(response)
        if outcome is Outcome.COUNTED:
            assert isinstance(response, Answered)
            answer = self.revision.answer_of(response, self.counted[response.worker])
            self.state = self.policy.update(self.state, answer)
        self._note(response, outcome)
        if outcome in (Outcome.COUNTED, Outcome.SKIPPED):
            self._settle()

    def view(self, before: ItemView) -> ItemView:
        """View after all that was taken."""
        return replace(
            before,
            state=self.state,
            label=self.label,
            asked=self.asked,
            responses=tuple(self.responses),
            outcomes=tuple(self.outcomes),
        )

    def _outcome(self, response: Response) -> Outcome:
        asked = asked_of(self.policy, response)
        key = response.worker, asked
        if self.label is not None:
            return Outcome.LATE
        if isinstance(response, Skipped):
            return Outcome.DUPLICATE if key in self.skipped else Outcome.SKIPPED
        if key in self.answered:
            same = self.answered[key] == response.value
            return Outcome.DUPLICATE if same else Outcome.CONTRADICTORY
        lacking = self.counted[response.worker] and len(+self.counted) < self.rules.people
        if lacking or not self.policy.wants(self.state, asked):
            return Outcome.SURPLUS
        return Outcome.COUNTED

    def _note(self, response: Response, outcome: Outcome) -> None:
        """Keep what the outcomes of later ones depend on."""
        self.responses.append(response)
        self.outcomes.append(outcome)
        if not outcome.stands:
            return
        asked = asked_of(self.policy, response)
        if isinstance(response, Answered):
            self.answered[response.worker, asked] = response.value
            self.counted[response.worker] += outcome is Outcome.COUNTED
        else:
            self.skipped.add((response.worker, asked))
            if outcome is Outcome.SKIPPED:
                self.skips[asked] += response.weight

    def _settle(self) -> None:
        """Find the label, or what is asked; with only closed questions left, the best guess."""
        found = self.policy.ask(self.state)
        if isinstance(found, Ask):
            closed = closed_questions(self.skips, self.rules)
            if closed and closed.issuperset(found.asked):
                open_ones = self.policy.ask(self.state, exclude=closed)
                if isinstance(open_ones, Label):
                    found = open_ones
                elif not open_ones.asked:
                    found = self.policy.conclude(self.state, Reason.SKIPPED)
        self.label, self.asked = (found, None) if isinstance(found, Label) else (None, found)
