"""The pure engine: every kind of answer has its fate, and the state is the replay of the log."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree.campaign.engine import Event, Rules, advance, open_questions, path, start_item
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.problem import Problem
from crowdtree.designs.designers import design
from crowdtree.policies import AdaptivePolicy, BatchPolicy, PlanPolicy
from tests.campaignlab import Campaign, replay

PROBLEM = Problem(
    list("abcd"),
    [0.4, 0.3, 0.2, 0.1],
    ["q", "r", "s"],
    [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]],
    [0.1, 0.2, 0.3],
)
TREE = design(PROBLEM)
ROOT = int(TREE.question[0])
POLICIES = {
    "plan": PlanPolicy(Plan(TREE, np.full(TREE.n_nodes, 3)), "curtailed"),
    "adaptive": AdaptivePolicy(PROBLEM, 0.05, 20, width=2),
    "capped": AdaptivePolicy(PROBLEM, 0.05, 20, repeats=2, shared_difficulty=0.2, strict=False),
    "batch": BatchPolicy(PROBLEM, 2),
}
PLAN = POLICIES["plan"]


def said(worker, value, question=ROOT, **more):
    return Event("x", question, worker, value, **more)


def fates(policy, *events, rules=Rules()):  # noqa: B008 - rules never change
    item = start_item(policy, "x")
    for event in events:
        item = advance(policy, item, event, rules)
    return item


def same(policy, one, other):
    states = [replace(item, state=policy.dump(item.state)) for item in (one, other)]
    assert vars(states[0]) == vars(states[1])


# ------------------------------------------------------------------ fates


def test_counted_duplicate_contradictory():
    item = fates(PLAN, said("ann", 1), said("ann", 1), said("ann", 0), said("bob", 1))
    assert item.fates == ("counted", "duplicate", "contradictory", "counted")
    assert item.answers == 2


def test_the_same_key_is_the_same_event_even_from_another_name():
    item = fates(PLAN, said("ann", 1, key="k"), said("bob", 0, key="k"))
    assert item.fates == ("counted", "duplicate")


def test_a_machine_may_answer_again_where_the_rules_say_so():
    rules = Rules(same_worker=True)
    item = fates(PLAN, said("bot", 1), said("bot", 0), rules=rules)
    assert item.fates == ("counted", "counted")
    assert open_questions(PLAN, item, (), "bot", rules)
    assert not open_questions(PLAN, item, (), "bot")


def test_late_answers_are_kept_but_change_nothing():
    one = Plan(TREE, np.ones(TREE.n_nodes, dtype=int))
    policy = PlanPolicy(one)
    item = start_item(policy, "x")
    while item.label is None:
        (q,) = open_questions(policy, item)
        item = advance(policy, item, said("ann", 1, q))
    after = advance(policy, item, said("bob", 0))
    assert after.fates[-1] == "late"
    assert after.label == item.label
    assert policy.dump(after.state) == policy.dump(item.state)


def test_surplus_votes_for_a_node_that_is_decided():
    item = fates(PLAN, said("ann", 0), said("bob", 0), said("cid", 1))
    assert item.fates == ("counted", "counted", "surplus")
    assert item.state.node != 0


def test_skips_keep_the_worker_away_and_close_the_question():
    rules = Rules(most_skips=2)
    skip = said("ann", None, kind="skip")
    item = fates(PLAN, skip, skip, rules=rules)
    assert item.fates == ("skipped", "duplicate")
    assert open_questions(PLAN, item, (), "ann", rules) == ()
    assert ROOT in open_questions(PLAN, item, (), "bob", rules)
    closed = advance(PLAN, item, said("bob", None, kind="skip"), rules)
    assert closed.label is not None
    assert closed.label.reason == "skipped"
    assert closed.label.label == int(np.argmax(PROBLEM.prior))
    # an adaptive policy goes on with its other questions
    policy = POLICIES["adaptive"]
    item = fates(policy, skip, said("bob", None, kind="skip"), rules=rules)
    assert item.label is None
    assert ROOT not in open_questions(policy, item, (), "cid", rules)
    assert open_questions(policy, item, (), "cid", rules)


def test_a_skip_then_an_answer_counts():
    item = fates(PLAN, said("ann", None, kind="skip"), said("ann", 1))
    assert item.fates == ("skipped", "counted")


# ------------------------------------------------------------------ replay

events = st.builds(
    lambda item, question, worker, value, kind, key: Event(
        item,
        question,
        worker,
        value if kind == "answer" else None,
        kind,
        key,
        0.25 * (worker == "w0"),
    ),
    st.sampled_from(["x", "y"]),
    st.integers(0, 2),
    st.sampled_from(["w0", "w1", "w2", "w3"]),
    st.integers(0, 1),
    st.sampled_from(["answer", "answer", "answer", "answer", "skip"]),
    st.sampled_from(["", "", "", "k1", "k2"]),
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(POLICIES)), st.lists(events, max_size=40))
def test_state_is_the_replay_of_the_log(name, log):
    policy = POLICIES[name]
    campaign = Campaign(policy, ["x", "y"])
    for event in log:
        campaign.record(event)
        assert len(campaign.states[event.item].fates) == len(campaign.states[event.item].events)
    again = replay(policy, ["x", "y"], campaign.log)
    for item in ("x", "y"):
        same(policy, campaign.states[item], again.states[item])
        stored = json.loads(json.dumps(policy.dump(campaign.states[item].state)))
        same(policy, campaign.states[item], replace(again.states[item], state=policy.load(stored)))
        # one item alone: the other's events do not matter
        alone = start_item(policy, item)
        for event in log:
            if event.item == item:
                alone = advance(policy, alone, event)
        same(policy, campaign.states[item], alone)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(POLICIES)), st.lists(events, max_size=25))
def test_state_is_that_of_the_answers_that_count(name, log):
    """The state is the same as with the counted answers only."""
    policy = POLICIES[name]
    item = start_item(policy, "x")
    for event in log:
        item = advance(policy, item, replace(event, item="x"))
    clean = start_item(policy, "x")
    for event, fate in zip(item.events, item.fates, strict=True):
        if fate == "counted":
            clean = advance(policy, clean, replace(event, key=""))
    assert set(clean.fates) <= {"counted"}
    assert policy.dump(clean.state) == policy.dump(item.state)
    steps = path(policy, item)
    assert len(steps) == item.answers
    if steps:
        np.testing.assert_allclose(steps[-1].posterior, policy.posterior(item.state))


# ------------------------------------------------------------------ handing out


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_crowd_finishes_and_nobody_is_asked_twice(name):
    policy = POLICIES[name]
    campaign = Campaign(policy, [f"item {i}" for i in range(6)])
    rng = np.random.default_rng(1)
    seen, held = set(), []
    workers = [f"w{i}" for i in range(12)]
    for turn in range(2000):
        if campaign.done:
            break
        lease = campaign.next_for(workers[turn % 12])
        if lease is not None:
            assert lease not in seen
            seen.add(lease)
            held.append(lease)
        if len(held) > 4 or lease is None:
            if not held:
                continue
            lease = held.pop(int(rng.integers(len(held))))
            campaign.record(Event(lease.item, lease.question, lease.worker, int(rng.integers(2))))
    assert campaign.done
    assert campaign.next_for("new") is None
    results = campaign.results()
    assert all(r.label in PROBLEM.classes and 0 <= r.posterior_error <= 1 for r in results)
    assert sum(r.answers for r in results) <= len(campaign.log)


def test_leases_count_against_the_width_and_come_back():
    campaign = Campaign(AdaptivePolicy(PROBLEM, 0.05, width=1), ["x"])
    lease = campaign.next_for("ann")
    assert campaign.next_for("bob") is None
    campaign.release(lease)
    assert campaign.next_for("bob")._replace(worker="ann") == lease


def test_open_items_have_a_best_guess_but_no_label():
    campaign = Campaign(PLAN, ["x"])
    (result,) = campaign.results()
    assert (result.label, result.reason) == (None, "open")
    assert result.posterior_error == pytest.approx(0.6)


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Event("nowhere", 0, "ann", 1), "item 'nowhere' is not in the campaign"),
        (Event("x", 9, "ann", 1), "question 9 does not exist"),
        (Event("x", 0, "ann", 2), "expected an answer of 0"),
        (Event("x", 0, "ann", None), "expected an answer of 0"),
        (Event("x", 0, "", 1), "expected the worker's name"),
        (Event("x", 0, "ann", 1, kind="guess"), "kind must be"),
    ],
)
def test_bad_events_are_refused_and_not_logged(event, text):
    campaign = Campaign(PLAN, ["x"])
    with pytest.raises(CrowdtreeError, match=text):
        campaign.record(event)
    assert campaign.log == []


def test_further_invalid_events():
    with pytest.raises(CrowdtreeError, match="items: x occurs more than once"):
        Campaign(PLAN, ["x", "y", "x"])
    with pytest.raises(CrowdtreeError, match="most_skips"):
        Rules(most_skips=0)
    with pytest.raises(CrowdtreeError, match="got 'y'"):
        advance(PLAN, start_item(PLAN, "x"), Event("y", 0, "ann", 1))


def test_a_label_rests_on_several_people() -> None:
    """On 4113173 the first answer of one person was enough."""
    policy = PlanPolicy(ct.design(ct.example("table1")))
    rules = Rules(people=2)
    item = advance(policy, start_item(policy, "x"), Event("x", 0, "ann", 1), rules)
    assert item.label is None
    assert open_questions(policy, item, (), "ann", rules) == ()
    assert open_questions(policy, item, (), "bob", rules) == (0,)
    again = advance(policy, item, Event("x", 1, "ann", 1), rules)
    assert again.fates[-1] == "surplus"
    agreed = advance(policy, item, Event("x", 0, "bob", 1), rules)
    assert agreed.label is not None
    differs = advance(policy, item, Event("x", 0, "bob", 0), rules)
    assert differs.label is None  # a third vote decides
    assert open_questions(policy, differs, (), "eve", rules) == (0,)


def test_an_adaptive_policy_asks_a_second_person_what_tells_most() -> None:
    problem = ct.Problem(["a", "b"], None, ["q", "r"], [[0, 1], [0, 1]], [0.01, 0.2])
    policy = AdaptivePolicy(problem, target_error=0.05, max_answers=5)
    alone = advance(policy, start_item(policy, "x"), Event("x", 0, "ann", 1))
    assert alone.label is not None
    rules = Rules(people=2)
    item = advance(policy, start_item(policy, "x"), Event("x", 0, "ann", 1), rules)
    assert item.label is None
    assert open_questions(policy, item, (), "bob", rules) == (0,)
    assert advance(policy, item, Event("x", 0, "bob", 1), rules).label is not None


def test_answers_of_one_person_about_one_item_are_dependent() -> None:
    problem = ct.Problem(["a", "b"], None, ["q", "r"], [[0, 1], [0, 1]], 0.1)
    policy = AdaptivePolicy(problem, target_error=0.0, max_answers=5)

    def error(rules: Rules, *people: str) -> float:
        item = start_item(policy, "x")
        for question, worker in enumerate(people):
            item = advance(policy, item, Event("x", question, worker, 1), rules)
        return policy.conclude(item.state, "").posterior_error

    dependent = Rules(person_dependence=0.5)
    assert error(dependent, "ann", "bob") == error(Rules(), "ann", "ann")
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
