"""Monitors: evidence of expectation 1 under the table, alarms, revised tables, replays."""

import itertools
import json

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.campaign.events import Answered
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.likelihood import AnswerModel
from crowdtree.policies import AdaptivePolicy, Answer, BatchPolicy, PlanPolicy, SubtypePolicy
from crowdtree.policies.monitor import Monitor, Revision
from crowdtree.policies.monitor import watch as module
from crowdtree.policies.revising import Gathered, estimate, revised, table_of
from crowdtree.policies.walk import Round
from crowdtree.simulation import Crowd, simulate
from tests.campaignlab import Campaign, replay

TINY = ct.Problem(
    ["a", "b", "c"], [0.5, 0.3, 0.2], ["p", "q"], [[0, 1, 1], [1, 0, "-"]], [0.1, 0.25]
)
ANIMALS = ct.example("animals")


def times(problem: ct.Problem, factor: float) -> ct.Problem:
    return problem.replace(worker_error=np.clip(problem.worker_error * factor, 0, 0.49))


def evidence_and_chance(monitor: Monitor, plan, values) -> tuple[float, float]:
    """Evidence after answers in a given order, and how likely the table makes them."""
    said: dict[str, list[Answer]] = {}
    for (item, question, skill, kind), value in zip(plan, values, strict=True):
        answer = Answer(question, value, skill)
        monitor.observe(item, answer, kind)
        said.setdefault(item, []).append(answer)
    logs = Gathered.of(said.values()).log_likelihood(monitor.table.model)
    log_chance = np.logaddexp.reduce(np.log(monitor.table.prior) + logs, axis=1).sum()
    return monitor.evidence, float(np.exp(log_chance))


@pytest.mark.parametrize("dependence", [0.0, 0.2])
def test_evidence_has_expectation_one_under_the_table(dependence, monkeypatch):
    monkeypatch.setattr(module, "FIRST_SHARES", 1)  # so that class shares are estimated, too
    policy = AdaptivePolicy(TINY.replace(dependence=dependence), strict=False)
    plan = [  # items take turns, questions come twice, a second kind of worker joins in
        ("x", 0, 0.0, "people"),
        ("y", 1, 0.0, "people"),
        ("x", 0, 0.0, "model"),
        ("z", 0, 0.0, "people"),
        ("x", 1, 0.0, "people"),
        ("y", 1, 0.0, "model"),
        ("z", 0, 0.0, "people"),
    ]
    total = mean = 0.0
    for values in itertools.product((0, 1), repeat=len(plan)):
        evidence, chance = evidence_and_chance(Monitor(policy), plan, values)
        total += chance
        mean += chance * evidence
    assert total == pytest.approx(1, abs=1e-12)
    assert mean == pytest.approx(1, abs=1e-12)


def test_evidence_has_expectation_one_when_answers_decide_what_is_asked_and_when_to_stop():
    policy = AdaptivePolicy(TINY, target_error=0.1, strict=False)

    def walk(steps: int, said: list[tuple[str, Answer]], chance: float) -> float:
        monitor, states = Monitor(policy), {}
        for item, answer in said:
            monitor.observe(item, answer)
            states[item] = policy.update(states.get(item, policy.start()), answer)
        open_items = [
            (name, policy.ask(states.get(name, policy.start())))
            for name in ("x", "y")
            if isinstance(policy.ask(states.get(name, policy.start())), ct.policies.Ask)
        ]
        # stop at a time that looks favourable, else at the end
        if not steps or monitor.evidence > 1.3 or not open_items:
            return chance * monitor.evidence
        name, asked = open_items[len(said) % len(open_items)]
        state = states.get(name, policy.start())
        question = asked.questions[0]
        yes = policy.model.yes_given(question)
        p = float(np.exp(state.log_posterior) @ yes)
        return sum(
            walk(steps - 1, [*said, (name, Answer(question, value))], chance * share)
            for value, share in ((0, 1 - p), (1, p))
        )

    assert walk(7, [], 1.0) == pytest.approx(1, abs=1e-12)


def campaign_answers(problem, truth, items=40, seed=0):
    """Answers of a campaign, in order, and the policy."""
    policy = AdaptivePolicy(problem, 0.01, strict=False)
    block = Crowd(problem=truth).block(
        problem, int(np.random.default_rng(seed).integers(2**63)), 0, items
    )
    from crowdtree.policies.walk import Walk

    said = []
    for row in range(items):
        walk = Walk(policy, block, row)
        while walk.label is None:
            answer = walk.step()
            if answer is not None:
                said.append((f"item {row}", answer))
    return policy, said


def test_twice_the_errors_raise_an_alarm_and_are_estimated():
    policy, said = campaign_answers(ANIMALS, times(ANIMALS, 2), items=60)
    monitor = Monitor(policy)
    raised = [alarm for item, answer in said for alarm in monitor.observe(item, answer)]
    assert raised == monitor.alarms
    assert monitor.alarms[0].items <= 30
    assert monitor.alarms[0].evidence >= 20
    assert monitor.due == "alarm"
    found = monitor.estimate()
    asked = found.answers.sum(axis=1) > 100
    assert asked.any()
    for q in np.flatnonzero(asked):
        ratio = found.error(found.table, q) / found.error(monitor.table, q)
        assert 1.4 < ratio < 2.6
    worst = next(row for row in monitor.findings() if row.subject == "question")
    assert worst.differs
    assert worst.low < worst.estimate < worst.high
    assert f'question "{worst.name}": people are wrong about' in str(worst)


def test_one_wrong_question_is_named():
    error = ANIMALS.worker_error.copy()
    worst = ANIMALS.question_index("climbs")
    error[worst] = 0.45
    policy, said = campaign_answers(ANIMALS, ANIMALS.replace(worker_error=error), items=60)
    monitor = Monitor(policy)
    for item, answer in said:
        monitor.observe(item, answer)
    assert ("question", "climbs") in [(alarm.subject, alarm.name) for alarm in monitor.alarms]
    assert monitor.findings()[0].name == "climbs"


def test_a_kind_of_worker_that_errs_more_is_named():
    problem = ct.Problem(["a", "b"], None, ["p", "q"], [[0, 1], [1, 0]], 0.1)
    rng = np.random.default_rng(0)
    monitor = Monitor(AdaptivePolicy(problem))
    for item in range(60):
        truth = int(rng.integers(2))
        for turn in range(8):
            kind, question = ("people", "model x")[turn % 4 == 3], turn % 2
            wrong = rng.random() < (0.1 if kind == "people" else 0.45)
            right = int(problem.outcome[question, truth])
            monitor.observe(str(item), Answer(question, right ^ int(wrong)), kind)
    assert ("kind", "model x") in [(alarm.subject, alarm.name) for alarm in monitor.alarms]
    assert ("kind", "people") not in [(alarm.subject, alarm.name) for alarm in monitor.alarms]


def test_other_class_shares_raise_an_alarm():
    problem = ct.Problem(["a", "b", "c"], None, ["p", "q"], [[0, 1, 1], [0, 0, 1]], 0.05)
    policy, said = campaign_answers(problem, problem.replace(prior=[0.05, 0.15, 0.8]), items=80)
    monitor = Monitor(policy)
    for item, answer in said:
        monitor.observe(item, answer)
    assert monitor.alarms[0].subject == "prior"
    share = {row.name: row for row in monitor.findings() if row.subject == "prior"}["c"]
    assert share.differs
    assert 0.6 < share.estimate < 0.9
    assert str(share).startswith('class "c": about')


def test_a_right_table_is_hardly_moved():
    policy, said = campaign_answers(ANIMALS, ANIMALS, items=150)
    items: dict[str, list[Answer]] = {}
    for item, answer in said:
        items.setdefault(item, []).append(answer)
    table = table_of(policy)
    found = estimate(table, Gathered.of(items.values()))
    odds = np.log(found.table.error / (1 - found.table.error))
    odds -= np.log(table.error / (1 - table.error))
    definite = table.model.sign != 0
    assert np.abs(odds[definite]).max() < 0.5
    assert abs(odds[definite].mean()) < 0.15
    assert found.table.model.shared_difficulty <= 0.05


def test_dependence_is_estimated():
    problem = ct.Problem(["a", "b"], None, ["p", "q"], [[0, 1], [1, 0]], 0.2)
    block = Crowd(shared_difficulty=0.3).block(problem, 1, 0, 200)
    items = []
    for row in range(200):
        yes, said = [0, 0], []
        for turn in range(10):
            q = turn % 2
            asked = (np.array([n]) for n in (row, q, turn // 2))
            before = np.array([[turn // 2 - yes[q]], [yes[q]]])
            value = int(block.answer(Round(*asked, before.copy)).value[0])
            yes[q] += value
            said.append(Answer(q, value))
        items.append(said)
    policy = AdaptivePolicy(problem)
    monitor = Monitor(policy)
    for row, said in enumerate(items):
        for answer in said:
            monitor.observe(str(row), answer)
    found = [row for row in monitor.findings() if row.subject == "dependence"]
    assert 0.2 <= found[0].estimate <= 0.4
    assert "people err together" in str(found[0])
    assert "dependence" in {alarm.subject for alarm in monitor.alarms}
    assert monitor.revise().apply(policy).problem.dependence == found[0].estimate


def test_a_monitor_is_a_function_of_the_ordered_answers_and_survives_json():
    policy, said = campaign_answers(ANIMALS, times(ANIMALS, 2), items=25)
    whole, parts = Monitor(policy), Monitor(policy)
    for place, (item, answer) in enumerate(said):
        whole.observe(item, answer)
        parts.observe(item, answer)
        if whole.due:
            whole.revise()
        if parts.due:
            parts.revise()
        if place % 50 == 25:
            parts = Monitor.from_dict(policy, json.loads(json.dumps(parts.to_dict())), parts.past)
    assert json.dumps(parts.to_dict()) == json.dumps(whole.to_dict())
    assert len(whole.revisions) >= 3
    assert parts.policy.problem == whole.policy.problem
    assert parts.policy.to_dict() == whole.policy.to_dict()


def test_items_that_left_the_cache_are_computed_again_alike(monkeypatch):
    policy, said = campaign_answers(TINY, times(TINY, 1.5), items=30)
    order = sorted(range(len(said)), key=lambda i: (i * 7919) % len(said))
    monitors = []
    for most in (100_000, 1):
        monkeypatch.setattr(module, "MAX_HELD", most)
        monitors.append(Monitor(policy))
        for place in order:
            monitors[-1].observe(*said[place])
    assert monitors[0].to_dict() == monitors[1].to_dict()


def test_errors_where_the_table_says_that_nobody_errs_are_noticed():
    problem = ct.Problem(["a", "b"], None, ["p", "q"], [[0, 1], [1, 0]], [0.0, 0.2])
    monitor = Monitor(AdaptivePolicy(problem))
    for item in range(20):
        for value in (1, 1, 1, 0):
            monitor.observe(str(item), Answer(0, value))
    assert monitor.alarms
    assert np.isfinite(monitor.evidence)
    assert monitor.revise().apply(monitor.original).problem.worker_error[0, 0] > 0.02


@pytest.mark.parametrize(
    "kind",
    ["plan", "batch", "subtypes", "given", pytest.param("calibrated", marks=pytest.mark.slow)],
)
def test_every_policy_can_be_watched_and_revised(kind):
    problem = ct.example("table1")
    policies = {
        "plan": lambda: PlanPolicy(ct.staff(ct.design(problem), workers=8), "curtailed"),
        "batch": lambda: BatchPolicy(problem, 3),
        "subtypes": lambda: SubtypePolicy(
            problem,
            label=[0, 0, 1, 2, 3, 4],
            share=np.full(6, 1 / 6),
            table=np.random.default_rng(0).uniform(0.05, 0.95, (5, 6)),
        ),
        "given": lambda: AdaptivePolicy(
            problem, 0.01, table=np.clip(AnswerModel.of(problem).yes, 0.1, 0.9)
        ),
        "calibrated": lambda: AdaptivePolicy(
            problem, 0.05, calibration=ct.Calibration(0.8, 0.1), strict=False
        ),
    }
    policy = policies[kind]()
    worse = simulate(problem, policy, 60, crowd=Crowd(problem=times(problem, 6)), adapt=True)
    assert worse.adaptation.alarms
    last = worse.adaptation.revisions[-1]
    made = Revision.from_dict(json.loads(json.dumps(last.to_dict()))).apply(policy)
    assert type(made) is type(policy)
    assert made.to_dict() == last.apply(policy).to_dict()
    table = table_of(made)
    assert np.array_equal(table.model.telling, np.array(last.table["answers"]))
    np.testing.assert_allclose(table.prior, last.table["prior"], rtol=1e-12)
    if kind == "calibrated":
        assert made.calibration == policy.calibration


def test_a_campaign_with_revisions_replays():
    problem = ct.example("table1").replace(worker_error=0.03)
    policy = AdaptivePolicy(problem, 0.05, strict=False)
    names = [f"photo {i}" for i in range(30)]
    campaign, monitor = Campaign(policy, names), Monitor(policy)
    rng = np.random.default_rng(5)
    truth = dict(zip(names, rng.integers(0, 5, len(names)), strict=True))
    reopened, number = 0, 0
    while not campaign.done:
        number += 1
        lease = campaign.next_for(f"worker {number}")
        outcome = int(problem.outcome[lease.question, truth[lease.item]])
        right = outcome if outcome >= 0 else int(rng.integers(2))
        value = right ^ int(rng.random() < 0.25)
        campaign.record(lease.item, Answered(lease.worker, lease.question, value))
        monitor.observe(lease.item, Answer(lease.question, value))
        if monitor.due:
            labelled = {name for name, view in campaign.views.items() if view.label}
            campaign.revise(monitor.revise())
            reopened += sum(campaign.views[name].label is None for name in labelled)
    assert reopened > 0
    again = replay(policy, names, campaign.log)
    assert again.results() == campaign.results()
    wrong = [result.label != problem.classes[truth[result.item]] for result in campaign.results()]
    assert np.mean(wrong) < 0.15


def test_bad_arguments():
    with pytest.raises(CrowdtreeError, match="alpha: expected a number between 0 and 1"):
        Monitor(AdaptivePolicy(TINY, strict=False), alpha=0)
    with pytest.raises(CrowdtreeError, match="question 7 does not exist"):
        Monitor(AdaptivePolicy(TINY, strict=False)).observe("x", Answer(7, 1))
    with pytest.raises(CrowdtreeError, match="policy: expected a policy, got an object"):
        Monitor(object())  # type: ignore[arg-type]
    assert not Monitor(AdaptivePolicy(TINY, strict=False), adapt=False).due


def test_revised_keeps_what_is_not_in_the_table():
    policy = AdaptivePolicy(TINY, 0.02, repeats=4, width=2, price=[1, 2], strict=False)
    made = revised(policy, table_of(policy))
    kept = {k: v for k, v in policy.to_dict().items() if k != "strict"}
    assert {k: v for k, v in made.to_dict().items() if k != "strict"} == kept


def test_errors_about_one_class_are_named():
    problem = ct.Problem(["a", "b", "c"], None, ["p", "q"], [[0, 1, 1], [0, 0, 1]], 0.08)
    error = problem.worker_error.copy()
    error[:, 2] = 0.35
    policy, said = campaign_answers(problem, problem.replace(worker_error=error), items=150)
    monitor = Monitor(policy)
    for item, answer in said:
        monitor.observe(item, answer)
    assert ("class", "c") in [(alarm.subject, alarm.name) for alarm in monitor.alarms]
    found = next(row for row in monitor.findings() if row.subject == "class")
    assert (found.name, found.differs) == ("c", True)
    assert 'class "c": people are wrong about' in str(found)


def test_skills_are_left_out():
    """A server learns them from the same answers; live and simulated alarms must agree."""
    policy, said = campaign_answers(TINY, times(TINY, 2), items=20)
    plain, skilful = Monitor(policy), Monitor(policy)
    for item, answer in said:
        plain.observe(item, answer)
        skilful.observe(item, answer._replace(skill=-0.7))
    assert plain.to_dict() == skilful.to_dict()
    assert plain.revise().to_dict() == skilful.revise().to_dict()


def held_numbers(monitor):
    """Numbers that can be reached, each counted once."""
    found, left = {}, [*monitor._held.values(), *monitor._firsts.values()]
    while left:
        bets = left.pop()
        found[id(bets)] = bets.size
        left += bets.after.values()
    return sum(found.values()) + module.ENTRY * len(monitor._held)


def test_what_is_held_does_not_grow_with_the_answers(monkeypatch):
    monkeypatch.setattr(module, "MAX_HELD", 500)
    policy, said = campaign_answers(TINY, TINY, items=200)
    monitor, sizes = Monitor(policy), []
    for place, (item, answer) in enumerate(said, start=1):
        monitor.observe(item, answer)
        if place % 200 == 0:
            assert held_numbers(monitor) <= monitor._size <= 500
            sizes.append(len(json.dumps(monitor.to_dict())))
    assert len(sizes) > 3
    assert sizes[-1] < 1.2 * sizes[0] + 500  # class shares are kept whenever items grow by half
