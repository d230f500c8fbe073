"""Every kind of answer has its outcome, and the view of an item is the fold of its events."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree.campaign import events as ev
from crowdtree.campaign.events import Answered, Outcome, Reason, Skipped
from crowdtree.campaign.fold import begin, extend, fold
from crowdtree.campaign.view import (
    Exclusion,
    ItemRules,
    ItemView,
    Level,
    Revision,
    Status,
    check_people,
    counted_answers,
    open_questions,
    path,
)
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.fixed_plan import Plan
from crowdtree.policies import AdaptivePolicy, BatchPolicy, PlanPolicy
from tests.campaignlab import Campaign, replay

PROBLEM = ct.Problem(
    list("abcd"),
    [0.4, 0.3, 0.2, 0.1],
    ["q", "r", "s"],
    [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]],
    [0.1, 0.2, 0.3],
)
TREE = ct.design(PROBLEM)
ROOT = int(TREE.question[0])
COLOURS = ct.Problem(
    ["fly agaric", "cep", "destroying angel"],
    None,
    ["cap", "ring"],
    [["red", "brown", "white"], ["yes", "no", "yes"]],
    0.2,
    answers=[("red", "brown", "white"), ("no", "yes")],
)
MIXED = PROBLEM.replace(
    sources=[ct.Source("people"), ct.Source("model", price=0.1, worker_error=0.3)]
)
POLICIES: dict[str, Any] = {
    "plan": PlanPolicy(Plan(TREE, np.full(TREE.n_nodes, 3)), "curtailed"),
    "adaptive": AdaptivePolicy(PROBLEM, 0.05, 20, width=2),
    "capped": AdaptivePolicy(PROBLEM, 0.05, 20, repeats=2, shared_difficulty=0.2, strict=False),
    "batch": BatchPolicy(PROBLEM, 2),
    "several answers": AdaptivePolicy(COLOURS, 0.05, 12),
    "sources": AdaptivePolicy(MIXED, 0.05, 12),
}
PLAN = POLICIES["plan"]


def answer(worker: str, value: int, question: int = ROOT, **more: Any) -> Answered:
    return Answered(worker, question, value, **more)


def folded(policy: Any, *events: ev.Event, rules: ItemRules = ItemRules()) -> ItemView:  # noqa: B008
    return fold([Revision(policy, rules)], events)


def same(policy: Any, one: ItemView, other: ItemView) -> None:
    """Views are equal, their states as the policy writes them."""
    assert policy.dump(one.state) == policy.dump(other.state)
    for name in ItemView.__slots__:
        if name not in ("state", "asked"):
            assert getattr(one, name) == getattr(other, name), name


# ------------------------------------------------------------------ outcomes


def test_the_first_answer_of_a_worker_stands() -> None:
    view = folded(PLAN, *(answer(*one) for one in [("ann", 1), ("ann", 1), ("ann", 0), ("bob", 1)]))
    assert view.outcomes == ("counted", "duplicate", "contradictory", "counted")
    assert view.answers == 2


def test_late_answers_are_kept_but_change_nothing() -> None:
    policy = PlanPolicy(Plan(TREE, np.ones(TREE.n_nodes, dtype=int)))
    revision = Revision(policy)
    view = begin(revision)
    while view.label is None:
        (question,) = open_questions(revision, view)
        view = extend([revision], view, Answered("ann", int(question), 1))
    for late in (answer("bob", 0), Skipped("eve", ROOT)):
        after = extend([revision], view, late)
        assert after.outcomes[-1] is Outcome.LATE
        assert after.label == view.label
        assert policy.dump(after.state) == policy.dump(view.state)


def test_surplus_votes_for_a_node_that_is_decided() -> None:
    view = folded(PLAN, answer("ann", 0), answer("bob", 0), answer("cid", 1))
    assert view.outcomes == ("counted", "counted", "surplus")
    assert view.state.node != 0


def test_skips_keep_the_worker_away_and_close_the_question() -> None:
    rules = ItemRules(max_skips=2)
    revision = Revision(PLAN, rules)
    view = fold([revision], [Skipped("ann", ROOT), Skipped("ann", ROOT)])
    assert view.outcomes == ("skipped", "duplicate")
    assert open_questions(revision, view, (), "ann") == ()
    assert ROOT in open_questions(revision, view, (), "bob")
    closed = extend([revision], view, Skipped("bob", ROOT))
    assert closed.reason is Reason.SKIPPED
    assert closed.status is Status.SET_ASIDE
    assert closed.label is not None
    assert closed.label.label == int(np.argmax(PROBLEM.prior))
    adaptive = Revision(POLICIES["adaptive"], rules)  # goes on with its other questions
    view = fold([adaptive], [Skipped("ann", ROOT), Skipped("bob", ROOT)])
    assert not view.closed
    assert ROOT not in open_questions(adaptive, view, (), "cid")
    assert open_questions(adaptive, view, (), "cid")


def test_skips_weigh_as_much_as_is_known_about_their_worker() -> None:
    rules = ItemRules(max_skips=1)
    light = [Skipped(name, ROOT, weight=0.3) for name in ("ann", "bob", "cid")]
    assert not folded(PLAN, *light, rules=rules).closed
    assert folded(PLAN, *light, Skipped("eve", ROOT, weight=0.1), rules=rules).closed


def test_a_skip_then_an_answer_counts() -> None:
    assert folded(PLAN, Skipped("ann", ROOT), answer("ann", 1)).outcomes == ("skipped", "counted")


# ------------------------------------------------------------------ fold and extend


WORKERS = ["w0", "w1", "w2", "w3"]
responses = st.builds(
    lambda question, source, worker, value, skip: (
        Skipped(worker, question, source)
        if skip
        else Answered(worker, question, value, source, skill=0.25 * (worker == "w0"))
    ),
    st.integers(0, 1),
    st.integers(0, 1),
    st.sampled_from(WORKERS),
    st.integers(0, 1),
    st.sampled_from([False] * 4 + [True]),
)


def of_one_source(policy: Any, response: ev.Response) -> ev.Response:
    """The same response, of the only source where there is one."""
    if policy.problem.has_sources or not response.source:
        return response
    if isinstance(response, Skipped):
        return Skipped(response.worker, response.question, weight=response.weight)
    return Answered(response.worker, response.question, response.value, skill=response.skill)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(POLICIES)), st.lists(responses, max_size=40))
def test_a_view_is_the_replay_of_the_log(name: str, log: list[ev.Response]) -> None:
    policy = POLICIES[name]
    campaign = Campaign(policy, ["x", "y"])
    for index, response in enumerate(log):
        campaign.record("xy"[index % 2], of_one_source(policy, response))
    again = replay(policy, ["x", "y"], campaign.log)
    for item in ("x", "y"):
        view = campaign.views[item]
        same(policy, view, again.views[item])
        written = json.loads(json.dumps(policy.dump(view.state)))
        assert policy.dump(policy.load(written)) == policy.dump(view.state)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(POLICIES)), st.lists(responses, max_size=25))
def test_the_state_is_that_of_the_answers_that_count(name: str, log: list[ev.Response]) -> None:
    policy = POLICIES[name]
    revision = Revision(policy)
    view = fold([revision], [of_one_source(policy, response) for response in log])
    counted = [given for given, _ in counted_answers(revision, view)]
    clean = fold([revision], counted)
    assert set(clean.outcomes) <= {Outcome.COUNTED}
    assert policy.dump(clean.state) == policy.dump(view.state)
    steps = path(revision, view)
    assert len(steps) == view.answers
    if steps:
        np.testing.assert_allclose(steps[-1].posterior, policy.posterior(view.state))


# ------------------------------------------------------------------ what else happens


ONE = PlanPolicy(Plan(TREE, np.ones(TREE.n_nodes, dtype=int)))
OTHER = AdaptivePolicy(PROBLEM, 0.2, 6)


def labelled() -> list[ev.Event]:
    """Answers of one person that label an item under the plan with one vote."""
    revision, events = Revision(ONE), list[ev.Event]()
    while True:
        view = fold([revision], events)
        if view.closed:
            return events
        (question,) = open_questions(revision, view)
        events.append(Answered("ann", int(question), 1, seq=len(events) + 1))


def test_another_policy_decides_anew() -> None:
    revisions, events = [Revision(ONE), Revision(PLAN)], labelled()
    view = fold(revisions, [*events, ev.PolicyChanged(1)])
    assert view.status is Status.OPEN
    assert (view.revision, view.judged_by) == (1, 1)
    expected = fold([revisions[1]], events)
    assert PLAN.dump(view.state) == PLAN.dump(expected.state)
    assert view.outcomes == expected.outcomes


def test_what_was_closed_for_good_stays_until_other_answers_count() -> None:
    events = labelled()
    gone = [Exclusion("ann", 1, len(events))]
    revisions = [Revision(PLAN), Revision(OTHER), Revision(OTHER, exclusions=gone)]
    for event in (ev.Concluded(Reason.FINISHED), ev.Checked(2)):
        view = fold(revisions, [*events, event, ev.PolicyChanged(1)])
        assert (view.revision, view.judged_by) == (1, 0)
        assert view.reason is not None
        assert view.reason.is_final
        after = extend(revisions, view, ev.PolicyChanged(2))
        assert after.judged_by == 2
        assert set(after.outcomes) == {Outcome.EXCLUDED}
        assert after.reason is view.reason
    set_aside = fold(revisions, [*events, ev.Concluded(Reason.UNCONFIRMED), ev.PolicyChanged(1)])
    assert set_aside.status is Status.SET_ASIDE
    assert extend(revisions, set_aside, ev.PolicyChanged(2)).status is Status.OPEN


def test_a_label_is_held_back_until_it_is_released() -> None:
    revision, events = Revision(ONE), labelled()
    view = fold([revision], [*events, ev.HeldBack(len(events) + 1)])
    assert view.held_back
    assert open_questions(revision, view, (), "bob")
    assert open_questions(revision, view, (), "ann") == ()
    released = extend([revision], view, ev.Released())
    assert released.label == fold([revision], events).label
    assert not released.held_back


def test_the_owner_corrects_withdraws_and_reopens() -> None:
    revisions = [Revision(PLAN), Revision(OTHER)]
    view = fold(revisions, [answer("ann", 1), ev.Corrected(3)])
    assert (view.corrected, view.reason) == (3, Reason.CORRECTED)
    for event in (ev.PolicyChanged(1), ev.HeldBack(9)):  # it is known: nobody is asked about it
        assert extend(revisions, view, event).reason is Reason.CORRECTED
    again = extend(revisions, view, ev.Corrected(None))
    assert (again.corrected, again.status, again.answers) == (None, Status.OPEN, 1)
    gone = extend(revisions, again, ev.Withdrawn())
    assert (gone.status, gone.label) == (Status.WITHDRAWN, None)
    assert extend(revisions, gone, answer("bob", 1)).outcomes[-1] is Outcome.LATE
    assert extend(revisions, gone, ev.Reopened()).status is Status.OPEN


def test_a_reopened_item_forgets_its_skips_but_asks_nobody_twice() -> None:
    revision = Revision(PLAN, ItemRules(max_skips=1))
    view = fold([revision], [Skipped("ann", ROOT), ev.Reopened()])
    assert view.outcomes == (Outcome.EXCLUDED,)
    assert view.status is Status.OPEN
    assert open_questions(revision, view, (), "ann") == ()
    assert open_questions(revision, view, (), "bob") == (ROOT, ROOT)


def test_a_skill_is_carried_over_to_another_table() -> None:
    levels = [Level(0, 2.0), Level(5, 1.5)]
    revisions = [Revision(PLAN), Revision(PLAN, levels=levels)]
    view = fold(revisions, [answer("ann", 1, skill=-0.8, seq=1), ev.PolicyChanged(1)])
    ((_, shown),) = counted_answers(revisions[1], view)
    assert shown.skill == pytest.approx(-0.3)


def test_reasons_say_what_follows_from_them() -> None:
    for reason in Reason:
        assert not (reason.is_final and reason.sets_aside)
        assert reason.has_label != (reason in (Reason.NEVER_ASKED, Reason.WITHDRAWN))
    assert {reason for reason in Reason if reason.sets_aside} == {
        Reason.SKIPPED,
        Reason.NO_WORKERS,
        Reason.NEVER_ASKED,
        Reason.UNCONFIRMED,
    }


# ------------------------------------------------------------------ handing out


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_crowd_finishes_and_nobody_is_asked_twice(name: str) -> None:
    policy = POLICIES[name]
    campaign = Campaign(policy, [f"item {i}" for i in range(6)])
    rng = np.random.default_rng(1)
    seen, held = set(), []
    workers = [f"w{i}" for i in range(20)]
    for turn in range(3000):
        if campaign.done:
            break
        lease = campaign.next_for(workers[turn % 20])
        if lease is not None:
            assert lease not in seen
            seen.add(lease)
            held.append(lease)
        if len(held) > 4 or lease is None:
            if not held:
                continue
            lease = held.pop(int(rng.integers(len(held))))
            question, source = (
                lease.question if isinstance(lease.question, tuple) else (lease.question, 0)
            )
            value = int(rng.integers(len(policy.problem.answers[question])))
            campaign.record(lease.item, Answered(lease.worker, question, value, source))
            campaign.release(lease)
    assert campaign.done
    assert campaign.next_for("new") is None
    results = campaign.results()
    classes = policy.problem.classes
    assert all(r.label in classes and 0 <= r.posterior_error <= 1 for r in results)
    assert sum(r.answers for r in results) <= len(campaign.log)


def test_leases_count_against_the_width_and_come_back() -> None:
    campaign = Campaign(AdaptivePolicy(PROBLEM, 0.05, width=1), ["x"])
    lease = campaign.next_for("ann")
    assert lease is not None
    assert campaign.next_for("bob") is None
    campaign.release(lease)
    assert campaign.next_for("bob") == lease._replace(worker="bob")


def test_bad_rules_are_refused() -> None:
    with pytest.raises(CrowdtreeError, match="max_skips: expected at least 1, got 0"):
        ItemRules(max_skips=0)
    with pytest.raises(CrowdtreeError, match="person_dependence: expected 0 or more"):
        ItemRules(person_dependence=1.0)
    with pytest.raises(CrowdtreeError, match="people_per_item: expected at least 1"):
        check_people(PLAN, 0)


# ------------------------------------------------------------------ people


def test_a_label_rests_on_several_people() -> None:
    revision = Revision(PlanPolicy(ct.design(ct.example("table1"))), ItemRules(people=2))

    def view(*events: ev.Event) -> ItemView:
        return fold([revision], events)

    first = answer("ann", 1, 0)
    assert view(first).label is None
    assert open_questions(revision, view(first), (), "ann") == ()
    assert open_questions(revision, view(first), (), "bob") == (0,)
    assert view(first, answer("ann", 1, 1)).outcomes[-1] is Outcome.SURPLUS
    assert view(first, answer("bob", 1, 0)).label is not None
    differs = view(first, answer("bob", 0, 0))
    assert differs.label is None  # a third vote decides
    assert open_questions(revision, differs, (), "eve") == (0,)


def test_an_adaptive_policy_asks_a_second_person_what_tells_most() -> None:
    problem = ct.Problem(["a", "b"], None, ["q", "r"], [[0, 1], [0, 1]], [0.01, 0.2])
    policy = AdaptivePolicy(problem, target_error=0.05, max_answers=5)
    assert folded(policy, answer("ann", 1, 0)).label is not None
    revision = Revision(policy, ItemRules(people=2))
    view = fold([revision], [answer("ann", 1, 0)])
    assert view.label is None
    assert open_questions(revision, view, (), "bob") == (0,)
    assert extend([revision], view, answer("bob", 1, 0)).label is not None


def test_answers_of_one_person_about_one_item_are_dependent() -> None:
    problem = ct.Problem(["a", "b"], None, ["q", "r"], [[0, 1], [0, 1]], 0.1)
    policy = AdaptivePolicy(problem, target_error=0.0, max_answers=5)

    def error(rules: ItemRules, *people: str) -> float:
        events = [answer(worker, 1, question) for question, worker in enumerate(people)]
        return policy.conclude(folded(policy, *events, rules=rules).state, "").posterior_error

    dependent = ItemRules(person_dependence=0.5)
    assert error(dependent, "ann", "bob") == error(ItemRules(), "ann", "ann")
    assert error(dependent, "ann") > error(dependent, "ann", "ann")
    # two answers of one person count as 2 / 1.5 = 4/3 answers
    odds = (1 / 9) ** (4 / 3)
    assert error(dependent, "ann", "ann") == pytest.approx(odds / (1 + odds))


def test_a_number_of_answers_per_label_is_the_same_in_simulation() -> None:
    problem = ct.example("table1").replace(worker_error=0.05)
    plan = ct.staff(ct.design(problem), workers=2)
    policies = [PlanPolicy(ct.design(problem)), PlanPolicy(plan, "curtailed")]
    policies += [AdaptivePolicy(problem, target_error=0.2, max_answers=9)]
    for policy in policies:
        least = policy.at_least(3)
        runs = [ct.simulate(problem, least, 300, 1, stepwise=way) for way in (False, True)]
        assert runs[0].answers_per_item == runs[1].answers_per_item
        assert runs[0].misclassification == runs[1].misclassification
        assert runs[0].answers_per_item >= 3
        assert runs[0].answers_per_item > ct.simulate(problem, policy, 300, 1).answers_per_item
