"""Thousands of random histories: what a view says follows from the events and revisions alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crowdtree.campaign import events as ev
from crowdtree.campaign.events import Outcome, Reason
from crowdtree.campaign.fold import extend, fold
from crowdtree.campaign.view import Exclusion, ItemRules, ItemView, Level, Revision, open_questions
from tests.campaign.test_fold import POLICIES, same

PEOPLE = [f"w{k}" for k in range(6)]
MAX_EVENTS = 14


def revisions_of(policy: Any, rng: np.random.Generator) -> list[Revision]:
    """A campaign that goes on without some answers, and then with a table of another level."""
    rules = ItemRules(
        max_skips=int(rng.integers(1, 4)), people=int(rng.integers(1, 3)), person_dependence=0.3
    )
    gone = [Exclusion(str(rng.choice(PEOPLE)), 1, int(rng.integers(1, MAX_EVENTS - 3)))]
    levels = [Level(0, 2.0), Level(int(rng.integers(1, MAX_EVENTS)), 1.5)]
    return [
        Revision(policy, rules),
        Revision(policy, rules, gone),
        Revision(policy, rules, gone, levels),
    ]


def history(revisions: list[Revision], rng: np.random.Generator) -> Iterator[ev.Event]:
    """Let anything happen that can, in any order."""
    view = fold(revisions, [])
    for seq in range(1, 1 + int(rng.integers(2, MAX_EVENTS))):
        event = replace(anything(revisions, view, rng), seq=seq)
        view = extend(revisions, view, event)
        yield event


def anything(revisions: list[Revision], view: ItemView, rng: np.random.Generator) -> ev.Event:
    """Draw an event that the server could append: mostly an answer or a skip."""
    if rng.random() < 0.75:
        return response(revisions[view.revision], view, rng)
    choices: list[ev.Event] = [ev.Corrected(0), ev.Corrected(None)]
    if view.revision + 1 < len(revisions) and view.seq >= revisions[1].exclusions[0].last:
        choices.append(ev.PolicyChanged(view.revision + 1))
    if view.closed:
        reopens = view.withdrawn or (view.reason is not None and view.reason.sets_aside)
        choices += [ev.Reopened()] if reopens else [ev.Checked(1), ev.HeldBack(view.answers + 1)]
    else:
        reason = rng.choice([Reason.FINISHED, Reason.NO_WORKERS, Reason.UNCONFIRMED])  # type: ignore[arg-type]
        choices += [ev.Concluded(Reason(reason)), ev.Withdrawn()]
        choices += [ev.Released()] if view.held_back else []
    return choices[int(rng.integers(len(choices)))]


def response(revision: Revision, view: ItemView, rng: np.random.Generator) -> ev.Response:
    """An answer or a skip, mostly to a question that is asked."""
    problem = revision.policy.problem
    asked = open_questions(revision, view)
    chosen: Any = int(rng.integers(problem.n_questions))
    if asked and rng.random() < 0.8:
        chosen = asked[int(rng.integers(len(asked)))]
    question, source = chosen if isinstance(chosen, tuple) else (chosen, 0)
    worker = str(rng.choice(PEOPLE))
    if rng.random() < 0.15:
        return ev.Skipped(worker, question, source, weight=float(rng.choice([0.3, 1.0])))
    value = int(rng.integers(len(problem.answers[question])))
    return ev.Answered(worker, question, value, source, skill=float(rng.choice([0.0, 0.5])))


def as_stored(policy: Any, view: ItemView) -> ItemView:
    """The view as a server reads it back: a state as JSON, none where nothing goes on from it."""
    if view.closed:
        return replace(view, state=None, asked=None)
    state = policy.load(json.loads(json.dumps(policy.dump(view.state))))
    return replace(view, state=state, asked=None)


@pytest.mark.parametrize("count", [100, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_view_may_be_stored_after_any_event(name: str, count: int) -> None:
    """Stored and extended by one event at a time, it is what the fold from the start gives."""
    policy, rng = POLICIES[name], np.random.default_rng([sorted(POLICIES).index(name), count])
    for _ in range(count):
        revisions = revisions_of(policy, rng)
        events, stored = [], fold(revisions, [])
        for event in history(revisions, rng):
            events.append(event)
            stored = extend(revisions, as_stored(policy, stored), event)
        folded = fold(revisions, events)
        if stored.state is None:  # closed before, and nothing has opened it again
            stored = replace(stored, state=folded.state)
        same(policy, stored, folded)
        check(revisions, folded)


def check(revisions: list[Revision], view: ItemView) -> None:
    """Nobody counts twice about a question, and what is excluded does not count."""
    revision = revisions[view.judged_by]
    counted = [given for given, outcome in view.with_outcomes() if outcome is Outcome.COUNTED]
    asked = [(given.worker, ev.asked_of(revision.policy, given)) for given in counted]
    assert len(set(asked)) == len(asked)
    if view.judged_by == view.revision:
        assert not any(map(revision.excludes, counted))
    assert (view.label is None) == (not view.closed or view.withdrawn)
