"""Several sources of answers: their tables, errors in common, limits and prices."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.core.common_causes import Causes
from crowdtree.core.likelihood import UNSURE, AnswerModel
from crowdtree.policies import Answer, policy_from_dict
from crowdtree.simulation import Crowd

COLOURS = ("red", "brown", "white")


def random_problem(seed: int, **options: Any) -> ct.Problem:
    """Three classes, two questions of two and three answers, people and two models."""
    rng = np.random.default_rng(seed)
    sources = [
        ct.Source("people", dependence=float(rng.choice([0.0, 0.2]))),
        ct.Source("one", "model", price=0.1, worker_error=rng.uniform(0.05, 0.4, 2)),
        ct.Source("two", "model", price=0.05, error_factor=1.5),
    ]
    cells = [rng.integers(0, 2, 3), ["red|brown", *rng.choice(COLOURS, 2)]]
    given = {
        "classes": ["a", "b", "c"],
        "prior": rng.dirichlet([3, 3, 3]),
        "questions": ["big", "colour"],
        "outcome": cells,
        "worker_error": rng.uniform(0.05, 0.3, (2, 3)),
        "answers": [None, COLOURS],
        "sources": sources,
        "source_dependence": 0.5,
    }
    return ct.Problem(**(given | options))


def by_hand(problem: ct.Problem, said: list[tuple[int, int, int]]) -> np.ndarray:
    """Posterior by summing over causes in plain loops; `said`: source, question, answer."""
    share = problem.source_dependence
    joint = problem.prior.copy()
    for c, q in product(range(problem.n_classes), range(problem.n_questions)):
        mine = [(s, a) for s, asked, a in said if asked == q]
        k = problem.n_answers[q]
        channel = problem.channel[:, :k, q, c]
        wrong = [a for a in range(k) if not problem.right[a, q, c]]
        if len(wrong) == k:
            wrong = []
        top = {d: channel[:, d].max() for d in wrong}
        total = 0.0
        for cause in [None, *wrong]:
            chance = 1 - sum(top.values()) if cause is None else top[cause]
            counts: dict[int, list[int]] = {}
            for s, a in mine:
                rest = channel[s].copy()
                rest[wrong] *= 1 - share
                rest /= rest.sum()
                table = rest
                if cause is not None:
                    follow = share * channel[s, cause] / top[cause]
                    table = (1 - follow) * rest
                    table[cause] += follow
                before = counts.setdefault(s, [])
                rho = problem.sources[s].dependence
                rho = problem.dependence if rho is None else rho
                chance *= ((1 - rho) * table[a] + rho * before.count(a)) / (
                    (1 - rho) + rho * len(before)
                )
                before.append(a)
            total += chance
        joint[c] *= total
    return joint / joint.sum()


@pytest.mark.parametrize("seed", range(20))
def test_posteriors_equal_a_sum_over_causes_in_any_order(seed):
    problem = random_problem(seed)
    policy = ct.AdaptivePolicy(problem, 0.01, strict=False)
    rng = np.random.default_rng(seed)
    said = [(1, 1, int(rng.integers(3))), (2, 1, int(rng.integers(3))), (2, 0, 1)]
    said += [(0, q, int(rng.integers(2 + q))) for q in (0, 1, 1, 0, 1)]
    for _ in range(2):
        state = policy.start()
        for source, question, value in said:
            state = policy.update(state, Answer(question, value, source=source))
        np.testing.assert_allclose(policy.posterior(state), by_hand(problem, said), rtol=1e-6)
        rng.shuffle(said)


@pytest.mark.parametrize("seed", range(10))
def test_causes_keep_the_table_of_each_source(seed):
    rng = np.random.default_rng(seed)
    channel = rng.dirichlet([4, 1, 1, 1], (3, 2)).transpose(0, 2, 1)
    wrong = np.arange(4)[:, None] != rng.integers(0, 4, 2)
    causes = Causes.of(channel, wrong, 0.7)
    weight = np.exp(causes.log_weight)
    np.testing.assert_allclose(weight.sum(axis=0), 1)
    table = (weight[:, None, None] * causes.given).sum(axis=0)
    np.testing.assert_allclose(table, channel, atol=1e-12)
    assert (causes.given >= -1e-12).all()


def test_two_models_that_err_together_say_what_a_joint_table_says():
    """Errors of 9.7 and 7.1 %: with a share of causes the chance that both err follows."""
    models = [ct.Source("one", worker_error=0.097), ct.Source("two", worker_error=0.071)]
    problem = ct.Problem(
        ["a", "b"], None, ["q"], [[0, 1]], 0.1, sources=models, source_dependence=0.8
    )
    model = AnswerModel.of(problem)
    heard = np.zeros((3, 1, 2), dtype=np.int64)
    heard[1, 0, 0] = 1  # the first said yes
    next_yes = model.after(np.array([1]), heard)[1][0]
    rest = 0.2 * np.array([0.097, 0.071]) / (1 - 0.8 * np.array([0.097, 0.071]))
    follow = 0.8 * np.array([1.0, 0.071 / 0.097])
    in_trap = follow + (1 - follow) * rest
    both = 0.097 * in_trap.prod() + 0.903 * rest.prod()
    assert next_yes[0] == pytest.approx(both / 0.097, rel=1e-6)


def test_one_source_is_as_before():
    problem = ct.example("leaves")
    named = problem.replace(sources=[ct.Source("the crowd", price=1.0)])
    plain, other = ct.AdaptivePolicy(problem, 0.05), ct.AdaptivePolicy(named, 0.05)
    one, two = ct.simulate(problem, plain, 400), ct.simulate(named, other, 400)
    assert np.array_equal(one.posterior_error, two.posterior_error)
    assert np.array_equal(one.asked, two.asked)


def test_independent_sources_with_the_same_table_are_like_one():
    problem = ct.example("leaves")
    twice = problem.replace(sources=[ct.Source("here"), ct.Source("there")])
    one = ct.simulate(problem, ct.AdaptivePolicy(problem, 0.05), 400)
    two = ct.simulate(twice, ct.AdaptivePolicy(twice, 0.05), 400)
    np.testing.assert_allclose(one.posterior_error, two.posterior_error, rtol=1e-9)
    assert one.answers_per_question == two.answers_per_question


@pytest.mark.parametrize(
    ("share", "crowd"),
    [
        (0.0, Crowd()),
        (0.6, Crowd()),
        (0.6, Crowd(workers=40, skill_sd=0.8, known_skill=True)),
    ],
)
def test_stated_errors_are_right_and_steps_equal_bulk(share, crowd):
    problem = random_problem(3, source_dependence=share)
    for sources in (None, ["people"], ["one", "two"]):
        policy = ct.AdaptivePolicy(problem, 0.1, sources=sources, strict=False)
        run = ct.simulate(problem, policy, 2000, crowd=crowd)
        stated, wrong = run.posterior_error, run.label_index != run.truth_index
        noise = np.sqrt((stated * (1 - stated)).sum())
        assert abs(wrong.sum() - stated.sum()) < 3.5 * noise
        few = ct.simulate(problem, policy, 40, crowd=crowd)
        steps = ct.simulate(problem, policy, 40, crowd=crowd, stepwise=True)
        assert np.array_equal(few.label_index, steps.label_index)
        assert np.array_equal(few.asked, steps.asked)
        np.testing.assert_allclose(few.posterior_error, steps.posterior_error, atol=1e-9)


def test_taking_correlated_sources_as_independent_states_too_little():
    problem = random_problem(3, source_dependence=0.8)
    naive = ct.AdaptivePolicy(problem.replace(source_dependence=0.0), 0.05, strict=False)
    run = ct.simulate(problem, naive, 3000)
    assert run.stated_error.high < run.misclassification.low


def test_limits_and_prices_of_sources():
    sources = [
        ct.Source("people", price=2.0, most_per_item=3),
        ct.Source("model", "model", price=0.1),
    ]
    problem = ct.example("table1").replace(sources=sources, worker_error=0.3)
    policy = ct.AdaptivePolicy(problem, 0.0, price=[1, 1, 1, 2, 5])
    run = ct.simulate(problem, policy, 50, stepwise=True)
    assert run.answers_per_source["people"] <= 3
    by_question = run.asked.reshape(2, -1)
    assert (by_question[1] <= run.items).all(), "a model was asked twice"
    assert run.reasons == {"questions": 50}
    expected = 0.1 * (by_question[1] @ [1, 1, 1, 2, 5]) / run.items
    assert run.cost_per_source([1, 1, 1, 2, 5])["model"] == pytest.approx(expected)


def test_an_expert_among_the_sources_is_the_expert_of_the_losses():
    expert = ct.Source("Dr Who", "expert", price=0.2, refers=True)
    problem = ct.example("table1").replace(sources=[ct.Source("people"), expert], worker_error=0.3)
    same = ct.example("table1").replace(loss={"refer": 0.2}, worker_error=0.3)
    one = ct.simulate(problem, ct.AdaptivePolicy(problem, target_loss=0.01, max_answers=3), 300)
    two = ct.simulate(same, ct.AdaptivePolicy(same, target_loss=0.01, max_answers=3), 300)
    assert one.reasons == two.reasons
    assert one.reasons["referred"] > 0
    cost = 0.2 * one.reasons["referred"] / 300
    assert one.cost_per_source()["Dr Who"] == pytest.approx(cost)


def test_recorded_answers_of_sources():
    problem = random_problem(1)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    values = np.full((40, 3, 2, 2), -1)
    for s, q in product(range(3), range(2)):
        for repeat in range(2 if s == 0 else 1):
            chances = problem.channel[s, :, q][:, truth]
            values[:, s, q, repeat] = (rng.random(40) > np.cumsum(chances, axis=0)).sum(axis=0)
    values[0, 0, 0, 0] = UNSURE
    recorded = ct.Recorded(values, truth)
    policy = ct.AdaptivePolicy(problem, 0.02, repeats=2, strict=False)
    run = ct.simulate(problem, policy, 40, crowd=recorded)
    steps = ct.simulate(problem, policy, 40, crowd=recorded, stepwise=True)
    assert np.array_equal(run.label_index, steps.label_index)
    assert run.answers_per_source["one"] <= 2
    assert policy.calibrate(values, truth).calibration


def test_policies_with_sources_are_written_and_read():
    problem = random_problem(2)
    policy = ct.AdaptivePolicy(problem, 0.05, price=[1, 3], sources=["people", "two"], strict=False)
    assert policy_from_dict(problem, policy.to_dict()) == policy
    state = policy.update(policy.start(), Answer(1, 2, source=2))
    back = policy.load(policy.dump(state))
    assert np.array_equal(back.counts, state.counts)
    assert policy.ask(state).sources
    assert not policy.wants(state, (1, 2))
    assert policy.wants(state, (1, 0))
    assert not policy.wants(state, (0, 1))


def small_mix(**options: Any) -> ct.Problem:
    """Four classes, people, a cheap model and one that is useless."""
    sources = [
        ct.Source("people"),
        ct.Source("model", "model", price=0.05, error_factor=1.5),
        ct.Source("coin", "model", price=0.05, worker_error=0.5),
    ]
    problem = ct.example("table1").replace(worker_error=0.15, sources=sources)
    return problem.replace(**options)


def test_plan_chooses_a_mix_and_shows_people_and_models_alone():
    problem = small_mix()
    choices = ct.plan(problem, error=0.03)
    by_name = {mix.name: mix for mix in choices.mixes}
    chosen = choices.mixes[0]
    assert chosen.name == "people + model"
    assert choices.adaptive.policy.sources == chosen.sources
    assert {"people", "model + coin"} <= set(by_name)
    assert chosen.performance.cost < by_name["people"].performance.cost
    assert by_name["model + coin"].performance is None
    assert sum(chosen.cost.values()) == pytest.approx(float(chosen.performance.cost), rel=0.05)
    assert type(choices).from_dict(problem, choices.to_dict()) == choices
    run = ct.simulate(problem, choices.policy, 2000, rng=3)
    assert run.misclassification.low < 0.03
    with pytest.raises(ct.CrowdtreeError, match="answers: those of several sources differ"):
        ct.plan(problem, answers=5)


def test_trees_ask_a_source_at_each_node():
    model = ct.Source("model", "model", price=0.05, worker_error=[0.05, 0.4, 0.4, 0.3, 0.3])
    problem = small_mix(sources=[ct.Source("people"), model])
    front = ct.frontier(problem, price=2.0)
    mixed = [p for p in front if len({q // problem.n_questions for q in p.plan.tree.question}) > 1]
    assert front.proven
    assert mixed, "no tree asks both people and the model"
    cheapest = front[0]
    assert {int(q) // problem.n_questions for q in cheapest.plan.tree.question} == {1}
    for point in front:
        once = point.plan.tree.question >= problem.n_questions
        assert (point.plan.votes[once] == 1).all(), "a model was asked twice"
        prices = np.repeat([2.0, 0.1], problem.n_questions)
        value = ct.evaluate(point.plan)
        assert point.expected_cost == pytest.approx(
            value.answers_by_node @ prices[point.plan.tree.question]
        )
    for vote in ("majority", "margin"):
        chosen = ct.frontier(problem, vote).select(error=0.05).plan
        assert (chosen.votes[chosen.tree.question >= problem.n_questions] == 1).all()
    run = ct.simulate(problem, ct.PlanPolicy(mixed[0].plan), 4000)
    assert run.misclassification.low <= mixed[0].misclassification <= run.misclassification.high
    assert run.answers_per_source["model"] > 0


def test_saved_trees_keep_their_sources(tmp_path):
    problem = small_mix()
    plan = ct.frontier(problem, max_points=3)[0].plan
    again = ct.load(ct.save(plan, tmp_path / "plan.json"))
    assert again == plan
    assert again.tree.problem.whole == problem
    crowd = ct.Crowd(problem=problem.replace(worker_error=0.3))
    run = ct.simulate(problem, ct.PlanPolicy(again), 500, crowd=crowd)
    assert run.misclassification > ct.evaluate(again).misclassification


def test_policies_of_one_source_refuse_several():
    problem = small_mix()
    for make in (ct.BatchPolicy, lambda p: p.require_yes_no("campaign")):
        with pytest.raises(ct.CrowdtreeError, match="expected one source of answers, got 3"):
            make(problem)


def test_no_policy_is_below_the_floor_of_its_sources():
    from crowdtree.core.bounds import fano_floor

    problem = small_mix()
    alone = problem.of_source("people")
    assert fano_floor(problem, 0.03) <= fano_floor(alone, 0.03)
    policy = ct.AdaptivePolicy(problem, 0.03, sources=["people", "model"])
    run = ct.simulate(problem, policy, 2000)
    assert sum(run.cost_per_source().values()) > fano_floor(problem, float(run.stated_error))


@pytest.mark.parametrize("of", ["people", None])
def test_plans_weigh_losses_where_questions_have_several_answers(of):
    triage = ct.example("triage")
    problem = triage if of is None else triage.of_source(of)
    choices = ct.plan(problem, max_loss=0.3, time_limit=1)
    assert choices.recommended.performance.risk.high <= 0.3
    run = ct.simulate(problem, choices.adaptive.policy, 2000, rng=5)
    assert run.risk.low <= 0.3
