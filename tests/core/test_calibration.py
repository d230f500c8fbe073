"""Stated errors that hold: calibration, missing answers, undecided items, guarantees."""

import json

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.campaign.events import Answered
from crowdtree.campaign.fold import begin, extend
from crowdtree.campaign.view import Revision, open_questions
from crowdtree.core.calibration import INDEPENDENT, Calibration, fit_tail
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.core.problem import Problem
from crowdtree.policies import (
    AdaptivePolicy,
    Answer,
    BatchPolicy,
    Label,
    PlanPolicy,
    SubtypePolicy,
    policy_from_dict,
)
from crowdtree.policies.replay import Sample
from crowdtree.simulation import Crowd, Recorded, simulate

pytestmark = pytest.mark.filterwarnings("ignore:target_error. .* is out of reach on average")
DISCOUNT = Calibration(0.8, 0.1, 50, 0.01, (0.2, 0.05))


def make_problem(classes: int = 6, questions: int = 12, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    while True:
        outcome = rng.integers(0, 2, (questions, classes))
        if len(np.unique(outcome, axis=1).T) == classes:
            break
    return Problem(
        [f"c{i}" for i in range(classes)],
        rng.dirichlet(np.full(classes, 3.0)),
        [f"q{i}" for i in range(questions)],
        outcome,
        rng.uniform(0.1, 0.25, outcome.shape),
    )


PROBLEM = make_problem()


def together(problem: Problem, items: int, seed: int, hard: float = 0.35, repeats: int = 1):
    """Answers of people who err together: some items mislead everybody."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(problem.n_classes, items, p=problem.prior)
    looks = np.where(
        rng.random(items) < hard, rng.choice(problem.n_classes, items, p=problem.prior), truth
    )
    right = problem.outcome[:, looks].T[:, :, None]
    error = problem.worker_error[:, looks].T[:, :, None]
    wrong = rng.random((items, problem.n_questions, repeats)) < error
    return np.where(wrong, 1 - right, right).astype(np.int8), truth


def with_gaps(values, share: float, seed: int = 5):
    holes = np.random.default_rng(seed).random(values.shape) < share
    return np.where(holes, -1, values).astype(np.int8)


# ---------------------------------------------------------------- the two numbers


def test_fit_recovers_the_power():
    """Evidence multiplied by 2.5 is found out: the fitted power is its inverse."""
    rng = np.random.default_rng(0)
    log_prior = np.log(np.full(4, 0.25))
    evidence = rng.normal(0, 1.5, (4000, 4))
    posterior = np.exp(evidence) / np.exp(evidence).sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(4, p=row) for row in posterior])
    loud = 2.5 * np.log(posterior)
    loud -= np.logaddexp.reduce(loud, axis=1, keepdims=True)
    found = Calibration.fit(log_prior, loud, np.ones(4000), truth)
    assert found.scale == pytest.approx(0.4, rel=0.12)
    assert found.items == 4000
    assert found.floor < 0.05
    stated = np.exp(found.discounted(log_prior, loud, np.ones(4000)))
    assert abs(stated - posterior).mean() < 0.02


def test_fit_separates_scale_from_dependence():
    rng = np.random.default_rng(1)
    log_prior = np.log(np.full(3, 1 / 3))
    answers = rng.integers(1, 40, 6000)
    evidence = rng.normal(0, 2, (6000, 3))
    posterior = np.exp(evidence) / np.exp(evidence).sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(3, p=row) for row in posterior])
    loud = np.log(posterior) * (1 + (answers - 1) * 0.2)[:, None]
    loud -= np.logaddexp.reduce(loud, axis=1, keepdims=True)
    found = Calibration.fit(log_prior, loud, answers, truth)
    assert found.scale == pytest.approx(1.0, abs=0.15)
    assert found.dependence == pytest.approx(0.2, abs=0.05)


def test_weights_make_rows_of_one_item_count_once():
    rng = np.random.default_rng(2)
    log_prior = np.log(np.full(3, 1 / 3))
    loud = np.log(rng.dirichlet(np.full(3, 0.3), 40))
    truth = rng.integers(0, 3, 40)
    once = Calibration.fit(log_prior, loud, np.full(40, 5), truth)
    rows = np.repeat(np.arange(40), 4)
    four = Calibration.fit(log_prior, loud[rows], np.full(160, 5), truth[rows], np.full(160, 0.25))
    assert four.items == once.items == 40
    assert four.scale == pytest.approx(once.scale, rel=1e-6)


def test_few_items_change_little():
    log_prior = np.log(np.full(3, 1 / 3))
    row = np.log([[0.98, 0.01, 0.01]])
    one = Calibration.fit(log_prior, row, [5], np.array([1]))
    many = Calibration.fit(log_prior, np.repeat(row, 60, axis=0), np.full(60, 5), np.arange(60) % 3)
    assert one.power(5) > 2 * many.power(5)


# ---------------------------------------------------------------- stating and stopping


def test_it_asks_by_the_plain_posterior_and_states_the_discounted_one():
    plain = AdaptivePolicy(PROBLEM, 0.02, 30, strict=False)
    policy = AdaptivePolicy(PROBLEM, 0.02, 30, strict=False, calibration=DISCOUNT)
    state = policy.start()
    rng = np.random.default_rng(3)
    for _ in range(8):
        ask = policy.ask(state)
        if isinstance(ask, Label):
            break
        told = plain.ask(state)
        if not isinstance(told, Label):
            assert ask == told
        state = policy.update(state, Answer(ask.questions[0], int(rng.integers(2))))
        expected = DISCOUNT.discounted(np.log(PROBLEM.prior), state.log_posterior, state.answers)
        np.testing.assert_allclose(policy.posterior(state), np.exp(expected))
        label = policy.conclude(state, "now")
        assert label.posterior_error == pytest.approx(1 - np.exp(expected).max())
    assert policy.load(policy.dump(state)).answers == state.answers


@pytest.mark.parametrize(
    "policy",
    [
        AdaptivePolicy(PROBLEM, 0.1, 30, repeats=2, strict=False, calibration=DISCOUNT),
        AdaptivePolicy(
            PROBLEM, 0.1, 30, strict=False, calibration=DISCOUNT, undecided=False, width=2
        ),
        PlanPolicy(ct.staff(ct.design(PROBLEM), 8), "curtailed", DISCOUNT),
        BatchPolicy(PROBLEM, 3, "posterior", DISCOUNT),
        SubtypePolicy(
            PROBLEM,
            label=np.arange(6),
            share=PROBLEM.prior,
            table=np.full((12, 6), 0.3),
            calibration=DISCOUNT,
            undecided=False,
        ),
    ],
    ids=lambda p: type(p).__name__,
)
def test_policies_are_written_and_read_with_their_calibration(policy):
    data = json.loads(json.dumps(policy.to_dict()))
    again = policy_from_dict(PROBLEM, data)
    assert again.to_dict() == policy.to_dict()
    assert again.calibration == DISCOUNT
    data.pop("calibration")
    data.pop("undecided", None)
    assert policy_from_dict(PROBLEM, data).calibration == INDEPENDENT  # as stored before


def everything():
    plan = ct.staff(ct.design(PROBLEM), 10)
    return {
        "adaptive": AdaptivePolicy(PROBLEM, 0.1, 9, repeats=1, strict=False),
        "calibrated": AdaptivePolicy(
            PROBLEM, 0.1, 10, repeats=1, strict=False, calibration=DISCOUNT
        ),
        "never gives up": AdaptivePolicy(
            PROBLEM, 0.02, 10, repeats=1, strict=False, calibration=DISCOUNT, undecided=False
        ),
        "repeats": AdaptivePolicy(PROBLEM, 0.05, 20, repeats=3, strict=False, calibration=DISCOUNT),
        "shared": AdaptivePolicy(
            PROBLEM, 0.05, 20, repeats=3, shared_difficulty=0.3, strict=False, calibration=DISCOUNT
        ),
        "endgame": AdaptivePolicy(PROBLEM, 0.0, 8, repeats=1, endgame=3, strict=False),
        "plan": PlanPolicy(ct.design(PROBLEM), calibration=DISCOUNT),
        "votes": PlanPolicy(plan, "none", DISCOUNT),
        "curtailed": PlanPolicy(plan, "curtailed"),
        "batch": BatchPolicy(PROBLEM, 3, "posterior", DISCOUNT),
        "nearest": BatchPolicy(PROBLEM, 2, "nearest", DISCOUNT),
    }


@pytest.mark.parametrize("name", everything())
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_vectorised_and_step_by_step_agree(name, gaps):
    policy = everything()[name]
    values, truth = together(PROBLEM, 120, seed=11, repeats=9)
    crowd = Recorded(with_gaps(values, gaps), truth)
    fast = simulate(PROBLEM, policy, 120, crowd=crowd)
    slow = simulate(PROBLEM, policy, 120, crowd=crowd, stepwise=True)
    np.testing.assert_array_equal(fast.label, slow.label)
    np.testing.assert_array_equal(fast.answers, slow.answers)
    np.testing.assert_array_equal(fast.reason, slow.reason)
    np.testing.assert_array_equal(fast.asked, slow.asked)
    np.testing.assert_allclose(fast.posterior_error, slow.posterior_error, rtol=1e-9, atol=1e-12)


def test_missing_answers_cost_nothing_and_are_not_asked_again():
    values, truth = together(PROBLEM, 60, seed=2)
    values = with_gaps(values, 0.5)
    policy = AdaptivePolicy(PROBLEM, 0.0, 12, repeats=1)
    run = simulate(PROBLEM, policy, 60, crowd=Recorded(values, truth))
    np.testing.assert_array_equal(run.answers, (values[:, :, 0] >= 0).sum(axis=1))
    nan = np.where(values < 0, np.nan, values)
    again = simulate(PROBLEM, policy, 60, crowd=Recorded(nan, truth))
    np.testing.assert_array_equal(run.label, again.label)


def test_a_plan_follows_the_likelier_side_of_a_missing_answer():
    problem = Problem(["a", "b"], [0.8, 0.2], ["q"], [[0, 1]], 0.1)
    policy = PlanPolicy(ct.design(problem))
    state = policy.pass_over(policy.start())
    assert policy.ask(state).label == 0
    run = simulate(problem, policy, 2, crowd=Recorded([[-1], [1]], [0, 1]))
    assert run.label_index.tolist() == [0, 1]
    assert run.answers.tolist() == [0, 1]


# ---------------------------------------------------------------- calibrating a policy


def test_calibrated_errors_hold_with_correlated_answers():
    policy = AdaptivePolicy(PROBLEM, 0.1, 12, repeats=1, strict=False)
    told, known = together(PROBLEM, 150, seed=1, hard=0.3)
    better = policy.calibrate(told, known)
    assert policy.calibration == INDEPENDENT  # a new policy
    fresh, truth = together(PROBLEM, 3000, seed=2, hard=0.3)
    crowd = Recorded(fresh, truth)
    end = better.changed(target_error=0.0)
    run = simulate(PROBLEM, end, 3000, crowd=crowd)
    before = simulate(PROBLEM, policy.changed(target_error=0.0), 3000, crowd=crowd)
    assert abs(float(run.stated_error) - float(run.misclassification)) < 0.06
    assert float(before.misclassification) - float(before.stated_error) > 0.12
    mean, half = better.reachable_error()
    assert mean - half < float(run.misclassification) < mean + half + 0.02


def test_strict_refuses_an_unreachable_target():
    policy = AdaptivePolicy(PROBLEM, 0.25, 12, repeats=1)
    told, known = together(PROBLEM, 150, seed=1, hard=0.4)
    with pytest.raises(CrowdtreeError, match=r"out of reach on average: the 150 items") as error:
        policy.calibrate(told, known)
    assert "\n" not in str(error.value)
    assert policy.changed(strict=False).calibrate(told, known).strict is False


def test_accepted_forms_of_items():
    policy = AdaptivePolicy(PROBLEM, 0.1, 12, repeats=1, strict=False)
    told, known = together(PROBLEM, 40, seed=4)
    names = [PROBLEM.classes[c] for c in known]
    expected = policy.calibrate(told, known).calibration
    assert policy.calibrate(told[:, :, 0].astype(float), names).calibration == expected
    assert policy.calibrate(Recorded(told, known)).calibration == expected
    row, question = np.nonzero(told[:, :, 0] >= 0)
    long = {
        "task": row.tolist(),
        "question": np.array(PROBLEM.questions)[question].tolist(),
        "label": told[row, question, 0].tolist(),
    }
    truth = dict(enumerate(names))
    assert policy.calibrate(long, truth).calibration == expected
    assert policy.calibrate(with_gaps(told, 0.3), known).calibration.items == 40


@pytest.mark.parametrize(
    ("answers", "truth", "message"),
    [
        ([[0, 1]], [0], "expected items x 12 questions"),
        (np.zeros((2, 12)), [0], "one class per item"),
        (np.zeros((1, 12)), ["bird"], "'bird' is not a class"),
        (np.zeros((1, 12)), [6], "class 6 does not exist"),
        (np.full((1, 12), 2), [0], "got 2"),
        (np.zeros((1, 12)), None, "class of each item"),
        ({"task": [1], "question": ["q0"], "label": [1]}, [0], "mapping from task"),
        ({"task": [1], "question": ["q0"], "label": [1]}, {}, "task '1' has no class"),
        ([["yes"]], [0], "table of answers by number"),
    ],
)
def test_invalid_input_gets_one_line(answers, truth, message):
    with pytest.raises(CrowdtreeError, match=message) as error:
        Sample.of(PROBLEM, answers, truth)
    assert "\n" not in str(error.value)


def test_fewer_than_twenty_items_give_a_warning():
    policy = AdaptivePolicy(PROBLEM, 0.1, 12, repeats=1, strict=False)
    told, known = together(PROBLEM, 19, seed=4)
    with pytest.warns(CrowdtreeWarning, match="19 items"):
        policy.calibrate(told, known)
    with pytest.raises(CrowdtreeError, match="got none"):
        policy.calibrate(np.zeros((0, 12)), np.zeros(0, dtype=int))


@pytest.mark.parametrize("name", ["plan", "curtailed", "batch", "nearest"])
def test_plans_and_batches_are_calibrated_too(name):
    policy = everything()[name]
    told, known = together(PROBLEM, 80, seed=6, repeats=9, hard=0.4)
    made = policy.calibrate(told, known)
    assert made.calibration.items == 80
    assert made.calibration.power(10) < 0.9
    fresh, truth = together(PROBLEM, 800, seed=7, repeats=9, hard=0.4)
    run = simulate(PROBLEM, made, 800, crowd=Recorded(fresh, truth))
    plain = simulate(PROBLEM, policy.changed(calibration=None), 800, crowd=Recorded(fresh, truth))
    np.testing.assert_array_equal(run.answers, plain.answers)
    wrong = float(run.misclassification)
    assert abs(float(run.stated_error) - wrong) < abs(float(plain.stated_error) - wrong)


def test_the_replay_asks_what_the_simulation_asks():
    policy = AdaptivePolicy(
        PROBLEM, 0.15, 10, repeats=2, endgame=2, strict=False, calibration=DISCOUNT
    )
    values, truth = together(PROBLEM, 80, seed=9, repeats=2)
    values = with_gaps(values, 0.2)
    run = simulate(PROBLEM, policy, 80, crowd=Recorded(values, truth))
    end = policy.end(values)
    np.testing.assert_array_equal(end.answers, run.answers)
    targets = [0.3, policy.target_error, 0.02]
    stops = policy.labelled(values, targets)
    for column, target in enumerate(targets):  # one replay, as many replays
        run = simulate(
            PROBLEM, policy.changed(target_error=target), 80, crowd=Recorded(values, truth)
        )
        np.testing.assert_array_equal(stops.label[:, column], run.label_index)
        np.testing.assert_array_equal(stops.reached[:, column], run.reason == 0)


# ---------------------------------------------------------------- undecided


def test_hopeless_items_are_labelled_as_undecided_and_cost_less():
    discount = Calibration(0.8, 0.25)
    options = {"repeats": 1, "strict": False, "calibration": discount}
    policy = AdaptivePolicy(PROBLEM, 0.1, 12, **options)
    values, truth = together(PROBLEM, 400, seed=3, hard=0.4)
    crowd = Recorded(values, truth)
    run = simulate(PROBLEM, policy, 400, crowd=crowd)
    to_the_end = simulate(
        PROBLEM, AdaptivePolicy(PROBLEM, 0.1, 12, undecided=False, **options), 400, crowd=crowd
    )
    assert run.undecided > 0.05
    assert to_the_end.undecided == 0
    assert run.reasons["undecided"] == round(run.undecided * 400)
    assert run.to_dict()["undecided"] == run.undecided
    assert run.answers.sum() < 0.9 * to_the_end.answers.sum()
    # of those that were given up, hardly any would have reached the target
    given_up = run.reason == 5
    assert np.mean(to_the_end.reason[given_up] == 0) < 0.1


def test_without_a_calibration_no_item_is_undecided():
    policy = AdaptivePolicy(PROBLEM, 1e-6, 10, strict=False)
    assert not policy.may_give_up
    run = simulate(PROBLEM, policy, 300)
    assert set(run.reasons) <= {"target", "budget"}


def test_a_live_campaign_ends_an_item_as_undecided():
    discount = Calibration(1.0, 0.9)
    policy = AdaptivePolicy(PROBLEM, 0.001, 12, repeats=1, strict=False, calibration=discount)
    revision = Revision(policy)
    view = begin(revision)
    rng = np.random.default_rng(0)
    while view.label is None:
        (question, *_) = open_questions(revision, view)
        view = extend([revision], view, Answered("ann", question, int(rng.integers(2))))
    assert view.label.reason == "undecided"


def test_more_answers_never_make_an_undecided_item_look_worse():
    """The chance to reach the target grows with the answers that may still come."""
    discount = Calibration(0.9, 0.1)
    policy = AdaptivePolicy(PROBLEM, 0.05, 40, strict=False, calibration=discount)
    state = policy.start()
    for question in range(4):
        state = policy.update(state, Answer(question, question % 2))
    plain = state.log_posterior[None]
    stated = policy.stated(plain, np.array([4]))
    found = []
    for most in (5, 10, 40):
        wider = policy.changed(max_answers=most)
        counts = state.counts.sum(axis=0)[None], np.array([4])
        found.append(bool(wider.cannot_reach_target(stated, plain, *counts)[0]))
    assert found == sorted(found, reverse=True)


# ---------------------------------------------------------------- Learn then Test


@pytest.mark.slow
def test_a_guarantee_is_kept_in_most_draws():
    """Over many calibration sets the error among new items exceeds the target in at most 10 %."""
    policy = AdaptivePolicy(PROBLEM, 0.2, 12, repeats=1, strict=False)
    fresh, truth = together(PROBLEM, 6000, seed=100, hard=0.1)
    broken = given = 0
    for seed in range(40):
        told, known = together(PROBLEM, 300, seed=seed, hard=0.1)
        try:
            kept = policy.guarantee(told, known, confidence=0.9)
        except CrowdtreeError:
            continue
        given += 1
        stops = kept.labelled(fresh, [kept.target_error])
        broken += (stops.label[:, 0] != truth)[stops.reached[:, 0]].mean() > 0.2
    assert given > 20
    assert broken <= 8  # 4 expected at most; P(more than 8 of 40 at 10 %) is below 2 %


def test_what_cannot_be_guaranteed_is_refused_with_the_items_that_would_do():
    policy = AdaptivePolicy(PROBLEM, 0.1, 12, repeats=1, strict=False)
    told, known = together(PROBLEM, 15, seed=0, hard=0.0)
    with pytest.raises(CrowdtreeError, match=r"give about [\d,]+ items") as error:
        policy.guarantee(told, known)
    assert "\n" not in str(error.value)
    told, known = together(PROBLEM, 300, seed=0, hard=0.9)
    with pytest.raises(CrowdtreeError, match="raise target_error or add questions"):
        policy.guarantee(told, known, target_error=0.02)
    for wrong in ({"target_error": 0.0}, {"confidence": 0.3}):
        with pytest.raises(CrowdtreeError, match=r"expected a (number|probability)"):
            policy.guarantee(told, known, **wrong)


# ---------------------------------------------------------------- from answers to a policy


def long_answers(problem, values, truth, workers):
    row, question = np.nonzero(values[:, :, 0] >= 0)
    answers = {
        "task": row,
        "question": np.array(problem.questions)[question],
        "worker": workers[row],
        "label": values[row, question, 0],
    }
    return answers, {int(i): problem.classes[c] for i, c in enumerate(truth)}


def test_a_learned_policy_keeps_its_target_on_new_items():
    values, truth = together(PROBLEM, 240, seed=1, hard=0.15)
    learned = ct.learn(*long_answers(PROBLEM, values, truth, np.full(240, "crowd")))
    policy = learned.policy(0.2, 12)
    assert (policy.repeats, policy.calibration.items, policy.strict) == (1, 240, False)
    order = [PROBLEM.question_index(name) for name in policy.problem.questions]
    fresh, known = together(PROBLEM, 2000, seed=2, hard=0.15)
    run = simulate(policy.problem, policy, 2000, crowd=Recorded(fresh[:, order], known))
    stopped = run.reason == 0
    assert stopped.sum() > 300
    assert (run.label != run.truth)[stopped].mean() < 1.3 * 0.2
    assert run.undecided > 0
    with pytest.raises(CrowdtreeError, match="out of reach on average"):
        learned.policy(0.05, 12, strict=True)


def test_people_are_left_out_where_each_item_has_one_person():
    from crowdtree.learning.refits import _parts

    rng = np.random.default_rng(0)
    gold = np.tile(np.arange(10), 3)
    worker = np.repeat(np.arange(3), 10)
    parts, by_person = _parts(gold, worker, 5, rng)
    assert by_person
    assert sorted(tuple(set(worker[part].tolist())) for part in parts) == [(0,), (1,), (2,)]
    assert sum(map(len, parts)) == 30
    # several persons per item, or a class that only one person knows: items are left out
    by_item, by_person = _parts(gold, np.full(30, -1), 5, rng)
    assert not by_person
    for part in by_item:
        assert set(np.delete(gold, part)) == set(range(10))
    alone, by_person = _parts(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1]), 5, rng)
    assert not by_person
    assert 4 not in np.concatenate(alone)  # the only item of its class stays


def test_few_known_classes_give_a_warning():
    values, truth = together(PROBLEM, 30, seed=1)
    answers, gold = long_answers(PROBLEM, values, truth, np.full(30, "crowd"))
    few = {i: gold[i] for i in range(12)}
    learned = ct.learn(answers, few, problem=PROBLEM)
    with pytest.warns(CrowdtreeWarning, match="items of known class; below 20"):
        policy = learned.policy(0.1, 12)
    assert policy.calibration.items <= 12
    with pytest.warns(CrowdtreeWarning, match="0 items of known class"):
        assert ct.learn(answers, problem=PROBLEM).policy(0.1, 12).calibration.dependence == 0.1


def test_one_question_has_no_policy():
    answers = {"task": [1, 1, 2, 2], "worker": list("abab"), "label": list("xxyy")}
    with pytest.raises(CrowdtreeError, match="expected questions about the classes"):
        ct.learn(answers).policy()
    values, truth = together(PROBLEM, 60, seed=1)
    learned = ct.learn(*long_answers(PROBLEM, values, truth, np.full(60, "crowd")))
    with pytest.raises(CrowdtreeError, match="folds"):
        learned.policy(folds=1)


def test_the_error_of_a_plan_is_that_of_left_out_items():
    from crowdtree.core.stats import wilson_interval
    from crowdtree.learning.optimism import _tried

    values, truth = together(PROBLEM, 200, seed=1, hard=0.1)
    answers = long_answers(PROBLEM, with_gaps(values, 0.05), truth, np.full(200, "crowd"))
    learned = ct.learn(*answers)

    def make(problem):
        return ct.design(problem, "fm", allow_groups=True)

    wrong = _tried(learned, make).wrong
    assert len(wrong) == 200
    low, high = wilson_interval(int(wrong.sum()), len(wrong))
    tree = make(learned.problem)
    order = [PROBLEM.question_index(name) for name in learned.problem.questions]
    fresh, known = together(PROBLEM, 2000, seed=2, hard=0.1)
    run = simulate(learned.problem, PlanPolicy(tree), 2000, crowd=Recorded(fresh[:, order], known))
    assert low < float(run.misclassification) < high + 0.03


# ---------------------------------------------------------------- people who were not asked before


def test_what_is_stated_is_the_average_over_the_people_who_may_answer():
    even = np.log(np.full(2, 0.5))
    lead = np.array([0.5, 2.0, 4.0, 8.0])
    plain = np.stack([-np.log1p(np.exp(-lead)), -np.log1p(np.exp(lead))], axis=1)
    one, many = Calibration(0.7, 0.1, floor=0.01), Calibration(0.7, 0.1, floor=0.01, spread=0.6)
    sure = np.exp(one.discounted(even, plain, 3))[:, 0]
    wary = np.exp(many.discounted(even, plain, 3))[:, 0]
    assert np.all(wary[2:] < sure[2:])
    rng = np.random.default_rng(0)
    drawn = [Calibration(float(0.7 * scale), 0.1, floor=0.01)
             for scale in np.exp(0.6 * rng.standard_normal(4000))]  # fmt: skip
    mean = np.mean([np.exp(c.discounted(even, plain, 3))[:, 0] for c in drawn], axis=0)
    np.testing.assert_allclose(wary, mean, atol=0.004)
    np.testing.assert_allclose(np.exp(many.discounted(even, plain, 3)).sum(axis=1), 1)
    reached = (wary - 0.005) / 0.99  # without the floor
    np.testing.assert_allclose(many.lead_for(reached), many.power(3) * lead, atol=0.01)
    assert Calibration.from_dict(many.to_dict()) == many
    with pytest.raises(CrowdtreeError, match="spread: expected 0 or more, got -1"):
        Calibration(spread=-1)


def test_the_scale_of_each_person_is_found():
    rng = np.random.default_rng(0)
    log_prior = np.log(np.full(3, 1 / 3))
    evidence = rng.normal(0, 2, (6000, 3))
    person = np.arange(6000) % 2
    true = evidence * np.array([1.0, 0.3])[person][:, None]
    chance = np.exp(true) / np.exp(true).sum(axis=1, keepdims=True)
    truth = np.array([rng.choice(3, p=row) for row in chance])
    loud = evidence - np.logaddexp.reduce(evidence, axis=1, keepdims=True)
    mean, variance = Calibration().scale_of(
        log_prior, loud, np.ones(6000), truth, np.ones(6000), person
    )
    np.testing.assert_allclose(mean, np.log([1.0, 0.3]), atol=0.2)
    assert np.all(variance < 0.05)


def persons(problem: Problem, count: int, items: int, seed: int):
    """Items of one person each; people err more or less often than the table says."""
    rng = np.random.default_rng(seed)
    truth = np.tile(np.arange(problem.n_classes), count * items)
    worker = np.repeat(np.arange(count), problem.n_classes * items)
    error = problem.worker_error[:, truth].T
    odds = error / (1 - error) * np.exp(0.9 * rng.standard_normal(count))[worker][:, None]
    wrong = rng.random(odds.shape) < odds / (1 + odds)
    right = problem.outcome[:, truth].T
    return np.where(wrong, 1 - right, right).astype(np.int8)[:, :, None], truth, worker


@pytest.mark.slow
def test_another_person_keeps_the_target_and_the_interval():
    """Three people teach and a fourth answers: over several such crowds both are kept."""
    problem = make_problem(6, 24, seed=1)
    stopped, wrong, inside = [], [], 0
    for seed in range(5):
        values, truth, worker = persons(problem, 4, 8, seed)
        old = worker < 3
        learned = ct.learn(*long_answers(problem, values[old], truth[old], worker[old].astype(str)))
        policy = learned.policy(0.1, 24)
        assert policy.calibration.spread > 0.3
        order = [problem.question_index(name) for name in policy.problem.questions]
        crowd = Recorded(values[~old][:, order], truth[~old])
        run = simulate(policy.problem, policy, len(crowd.truth), crowd=crowd)
        stopped.append(run.reason == 0)
        wrong.append(run.label != run.truth)
        tree = ct.design(learned.problem, allow_groups=True)
        told = ct.evaluate(tree, learned).credible
        run = simulate(policy.problem, PlanPolicy(tree), len(crowd.truth), crowd=crowd)
        inside += told.low <= float(run.misclassification) <= told.high
    at = np.concatenate(stopped)
    assert at.mean() > 0.3
    assert np.concatenate(wrong)[at].mean() <= 0.1
    assert inside == 5
    everybody = learned.credible_interval(tree, people=1000)
    assert everybody.high - everybody.low < told.high - told.low


@pytest.mark.slow
def test_a_plan_that_was_made_from_the_table_is_as_bad_as_left_out_items_show():
    from crowdtree.core.fixed_plan import as_plan
    from crowdtree.learning.optimism import optimism

    problem = make_problem(8, 40, seed=3)
    values, truth = together(problem, 60, seed=1, hard=0.0)
    answers = long_answers(problem, values, truth, np.full(60, "crowd"))
    learned = ct.learn(*answers)
    order = [problem.question_index(name) for name in learned.problem.questions]
    codes = [learned.problem.classes.index(name) for name in problem.classes]
    fresh, known = together(problem, 3000, seed=2, hard=0.0)
    crowd = Recorded(fresh[:, order], np.array(codes)[known])
    tree = ct.design(learned.problem, allow_groups=True)
    front = ct.frontier(learned.problem, method="greedy", max_votes=1, allow_groups=True)
    for plan in (as_plan(tree), front.points[-1].plan):
        run = simulate(learned.problem, PlanPolicy(plan), 3000, crowd=crowd)
        told = ct.evaluate(plan, learned).credible
        assert told.low < float(run.misclassification) < told.high
        assert optimism(learned, plan).between is None
    given = ct.Tree(learned.problem, tree.question, tree.children)
    assert optimism(learned, as_plan(given)) is None
    sparse, gold = long_answers(problem, with_gaps(values, 0.5), truth, np.full(60, "crowd"))
    few = ct.learn(sparse, gold)
    assert optimism(few, as_plan(ct.design(few.problem, allow_groups=True))) is None


# ---------------------------------------------------------------- dependence of votes


def test_a_crowd_errs_together_as_its_problem_says():
    problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2, dependence=0.4)
    plan = ct.Plan(ct.design(problem), [9])
    exact = ct.evaluate(plan).misclassification
    for policy in (PlanPolicy(plan), PlanPolicy(plan, "curtailed")):
        run = simulate(problem, policy, 20_000)
        assert run.misclassification.low < exact < run.misclassification.high
        assert run.stated_error.low - 0.002 < exact < run.stated_error.high + 0.002
    alone = simulate(problem, PlanPolicy(plan), 20_000, crowd=Crowd(shared_difficulty=0.0))
    assert float(alone.misclassification) < 0.05 < exact


def test_an_option_overrules_the_problem():
    problem = PROBLEM.replace(dependence=0.3)
    assert AdaptivePolicy(problem, strict=False).model.shared_difficulty == 0.3
    assert AdaptivePolicy(problem, shared_difficulty=0.0).model.shared_difficulty == 0.0
    for policy in (
        AdaptivePolicy(problem, strict=False),
        AdaptivePolicy(problem, shared_difficulty=0.0),
    ):
        again = policy_from_dict(problem, policy.to_dict())
        assert again.model.shared_difficulty == policy.model.shared_difficulty


# ---------------------------------------------------------------- where items stop


def walks(stated, wrong):
    """States of items, one row of stated errors each, and whether each label is wrong."""
    rows, steps = np.shape(stated)
    item = np.repeat(np.arange(rows), steps)
    return np.ravel(stated).astype(float), np.repeat(wrong, steps), item


def test_a_tail_that_is_too_sure_is_corrected_where_items_stop():
    """Unsure states are as stated; of those stated at 2 %, 15 % are wrong."""
    wrong = np.arange(400) % 20 < 3
    tail = fit_tail(*walks(np.tile([0.4, 0.02], (400, 1)), wrong))
    calibration = Calibration(tail=tail)
    assert calibration.before_tail(0.1) < 0.02 <= calibration.before_tail(0.2)
    stated = np.exp(calibration.discounted(np.log([0.5, 0.5]), np.log([[0.98, 0.02]]), [3]))
    assert stated[0, 1] == pytest.approx(0.15, abs=0.03)


def test_a_tail_that_is_too_careful_is_corrected_unless_the_next_person_is_another():
    rows = walks(np.tile([0.4, 0.1], (600, 1)), np.zeros(600, bool))
    assert Calibration(tail=fit_tail(*rows)).before_tail(0.05) > 0.1
    assert Calibration(tail=fit_tail(*rows, never_below=True)).before_tail(0.05) <= 0.05


def test_few_items_that_stop_do_not_show_a_small_error():
    """Eight right labels do not show an error of 5 %; forty do."""
    for items, enough in ((8, False), (40, True)):
        tail = fit_tail(*walks(np.full((items, 1), 0.001), np.zeros(items, bool)))
        assert (Calibration(tail=tail).before_tail(0.05) > 0) is enough


def test_weights_of_items_count_in_the_tail():
    error, wrong, item = walks(np.full((100, 1), 0.02), np.arange(100) < 50)
    light = fit_tail(error, wrong, item, np.where(wrong, 0.01, 1.0))
    heavy = fit_tail(error, wrong, item, np.where(wrong, 1.0, 0.01))
    assert Calibration(tail=light).before_tail(0.05) > Calibration(tail=heavy).before_tail(0.05)


@pytest.mark.parametrize("seed", range(5))
def test_a_tail_keeps_the_label_and_adds_up_to_one(seed):
    rng = np.random.default_rng(seed)
    rows = np.log(rng.dirichlet(np.full(4, 0.3), 200))
    rows[:5] = np.log([0.5, 0.5, 1e-12, 1e-12])
    log_prior = np.log(np.full(4, 0.25))
    for high in (0.01, 0.3, 0.9):
        tail = ((0.002, high / 2), (0.5, high), (1.0, 1.0))
        stated = Calibration(tail=tail).discounted(log_prior, rows, np.ones(200))
        np.testing.assert_allclose(np.exp(stated).sum(axis=1), 1, atol=1e-9)
        np.testing.assert_array_equal(stated.argmax(axis=1), rows.argmax(axis=1))
        order = np.argsort(rows, axis=1, kind="stable")
        assert np.all(np.diff(np.take_along_axis(stated, order, axis=1), axis=1) >= -1e-9)


def test_a_tail_is_written_and_read_back():
    made = Calibration(0.8, tail=((0.01, 0.05), (1.0, 1.0)), table="abc:0.5")
    assert Calibration.from_dict(json.loads(json.dumps(made.to_dict()))) == made


@pytest.mark.parametrize("repeats", [1, 3])
def test_items_that_stop_keep_the_target(repeats):
    """A tenth of the items look like another class to everybody: sure states that are wrong."""
    told, known = together(PROBLEM, 400, seed=21, hard=0.1, repeats=repeats)
    policy = AdaptivePolicy(PROBLEM, 0.05, 24, repeats=repeats, strict=False).calibrate(told, known)
    fresh, truth = together(PROBLEM, 6000, seed=22, hard=0.1, repeats=repeats)
    for target in (0.2, 0.1, 0.05):
        run = simulate(
            PROBLEM, policy.changed(target_error=target), 6000, crowd=Recorded(fresh, truth)
        )
        stopped = run.reason == 0
        assert (run.label != run.truth)[stopped].sum() <= 1.2 * target * stopped.sum()
        assert target < 0.2 or stopped.mean() > 0.5
    assert float((run.label != run.truth).mean()) > 0.05  # the target is out of reach for all


# ---------------------------------------------------------------- calibrations of other crowds


def test_a_calibration_of_another_crowd_is_refused():
    told, known = together(PROBLEM, 60, seed=4)
    made = AdaptivePolicy(PROBLEM, 0.1, 12, repeats=1, strict=False).calibrate(told, known)
    same = AdaptivePolicy(PROBLEM, 0.2, 12, strict=False, calibration=made.calibration)
    assert same.calibration == made.calibration
    assert policy_from_dict(PROBLEM, made.to_dict()) == made
    others = {
        "people who err more": PROBLEM.replace(worker_error=PROBLEM.worker_error + 0.02),
        "other questions": make_problem(seed=3),
    }
    for other in others.values():
        makers = (
            lambda p: AdaptivePolicy(p, 0.2, 12, strict=False, calibration=made.calibration),
            lambda p: PlanPolicy(ct.design(p), calibration=made.calibration),
            lambda p: BatchPolicy(p, 1, "posterior", made.calibration),
        )
        for make in makers:
            with pytest.raises(CrowdtreeError, match=r"another table.* call calibrate") as error:
                make(other)
            assert "\n" not in str(error.value)


def test_a_later_table_of_the_same_crowd_keeps_its_calibration():
    from crowdtree.policies.spec import revised_policy

    told, known = together(PROBLEM, 60, seed=4)
    made = AdaptivePolicy(PROBLEM, 0.1, 12, strict=False).calibrate(told, known)
    later = revised_policy(made, PROBLEM.replace(worker_error=PROBLEM.worker_error + 0.02))
    assert later.calibration.tail == made.calibration.tail
    assert later.calibration.table is None
