"""Items that start from their own prior: Bayes' rule, and nothing changes where it is the usual."""

from __future__ import annotations

import json

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.campaign.events import Answered, PolicyChanged, Skipped
from crowdtree.campaign.fold import extend, fold
from crowdtree.campaign.view import Revision, path
from crowdtree.core.calibration import Calibration
from crowdtree.core.likelihood import UNSURE
from crowdtree.policies import Answer
from tests.cli.helpers import run

RNG = np.random.default_rng(5)
PROBLEM = ct.Problem(
    ["a", "b", "c", "d"],
    [0.4, 0.3, 0.2, 0.1],
    list("pqrst"),
    [[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 0, 0]],
    0.2,
)
COLOURS = ct.Problem(
    ["a", "b", "c"],
    [0.5, 0.3, 0.2],
    ["cap", "size"],
    [["red", "brown", "white"], ["big", "small", "small"]],
    0.25,
    answers=[["red", "brown", "white"], ["big", "small"]],
)
DISCOUNT = Calibration(scale=0.8, dependence=0.2, floor=0.02, tail=((0.01, 0.03), (1.0, 1.0)))


def policies():
    """Every kind of policy, plain and with a calibration."""
    plan = ct.staff(ct.design(PROBLEM), workers=8)
    half = np.array([0, 0, 1, 2, 3])
    yes = np.random.default_rng(1).uniform(0.1, 0.9, (5, 5))
    found = {}
    for name, calibration in (("plain", Calibration()), ("discounted", DISCOUNT)):
        options = {"strict": False, "calibration": calibration, "max_answers": 12}
        found |= {
            f"adaptive {name}": ct.AdaptivePolicy(PROBLEM, 0.05, **options),
            f"accuracy {name}": ct.AdaptivePolicy(
                PROBLEM, 0.05, criterion="accuracy", repeats=2, **options
            ),
            f"subtypes {name}": ct.SubtypePolicy(
                PROBLEM, label=half, share=[0.1, 0.3, 0.3, 0.2, 0.1], table=yes,
                target_error=0.1, max_answers=12, calibration=calibration,
            ),
            f"plan {name}": ct.PlanPolicy(plan, "curtailed", calibration),
            f"margin {name}": ct.PlanPolicy(plan, "margin", calibration),
            f"batch {name}": ct.BatchPolicy(PROBLEM, 2, calibration=calibration),
            f"decoded {name}": ct.BatchPolicy(PROBLEM, 2, "posterior", calibration),
            f"several {name}": ct.AdaptivePolicy(COLOURS, 0.05, **options),
        }  # fmt: skip
    return found


POLICIES = policies()


def recorded(problem, items=120, repeats=16, prior=None, gaps=0.05):
    """Answers that people gave, a few of them missing."""
    rng = np.random.default_rng(0)
    truth = rng.choice(problem.n_classes, items, p=problem.prior)
    shape = (items, problem.n_questions, repeats)
    values = np.empty(shape, dtype=np.int8)
    for q in range(problem.n_questions):
        channel = problem.channel[0][: problem.n_answers[q], q]
        edges = np.cumsum(channel[:, truth], axis=0)
        drawn = rng.random((items, repeats))
        values[:, q] = (drawn[None] >= edges[:, :, None]).sum(axis=0)
    values = np.minimum(values, problem.n_answers[:, None] - 1)
    values[rng.random(shape) < gaps] = -1
    return ct.Recorded(values, truth.tolist(), prior)


def rows(problem, items=120, seed=3):
    return np.random.default_rng(seed).dirichlet(np.full(problem.n_classes, 0.7), items)


def same(one, other):
    for name in ("label_index", "answers", "posterior_error", "reason", "asked"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("stepwise", [False, True])
def test_the_prior_of_the_problem_changes_nothing_to_the_bit(name, stepwise):
    policy = POLICIES[name]
    problem = policy.problem
    usual = np.tile(problem.prior, (120, 1))
    runs = [
        ct.simulate(problem, policy, 120, crowd=recorded(problem, prior=p), stepwise=stepwise)
        for p in (None, usual)
    ]
    same(*runs)
    states = policy.start(), policy.start(problem.prior)
    for question, value in ((0, 1), (1, 0), (0, UNSURE), (1, 1)):
        states = tuple(policy.update(state, Answer(question, value)) for state in states)
    assert states[0].log_posterior.tolist() == states[1].log_posterior.tolist()
    assert policy.conclude(states[0], "x") == policy.conclude(states[1], "x")
    assert policy.posterior(states[0]).tolist() == policy.posterior(states[1]).tolist()


@pytest.mark.parametrize("name", POLICIES)
def test_own_priors_give_the_same_labels_in_bulk_and_step_by_step(name):
    policy = POLICIES[name]
    crowd = recorded(policy.problem, prior=rows(policy.problem))
    runs = [
        ct.simulate(policy.problem, policy, 120, crowd=crowd, stepwise=stepwise)
        for stepwise in (False, True)
    ]
    for column in ("label_index", "answers", "reason"):
        assert getattr(runs[0], column).tolist() == getattr(runs[1], column).tolist()
    assert runs[0].posterior_error == pytest.approx(runs[1].posterior_error, abs=1e-9)
    usual = ct.simulate(policy.problem, policy, 120, crowd=recorded(policy.problem))
    assert not np.allclose(usual.posterior_error, runs[0].posterior_error)


@pytest.mark.parametrize("name", [name for name in POLICIES if name.endswith("plain")])
def test_the_posterior_is_bayes_rule_from_the_own_prior(name):
    policy = POLICIES[name]
    problem = policy.problem
    prior = np.array([0.05, 0.15, 0.1, 0.7][: problem.n_classes])
    prior /= prior.sum()
    state, usual = policy.start(prior), policy.start()
    assert policy.posterior(state) == pytest.approx(prior)
    question = policy.ask(state)
    question = 0 if not hasattr(question, "questions") else question.questions[0]
    state, usual = (policy.update(s, Answer(question, 1)) for s in (state, usual))
    # the likelihood does not depend on the prior: posterior over prior, up to a constant
    likelihood = policy.posterior(usual) / problem.prior
    expected = prior * likelihood / (prior @ likelihood)
    assert policy.posterior(state) == pytest.approx(expected)
    if not name.startswith(("subtypes", "several")):
        table = np.where(problem.outcome[question] == 1, 0.8, 0.2)
        assert likelihood / likelihood.sum() == pytest.approx(table / table.sum())


def test_a_discount_leaves_the_own_prior_alone():
    policy = POLICIES["adaptive discounted"]
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    assert policy.posterior(policy.start(prior)).argmax() == 3
    half = policy.changed(calibration=Calibration(scale=0.5).to_dict())
    state = half.update(half.start(prior), Answer(0, 1))
    table = np.where(PROBLEM.outcome[0] == 1, 0.8, 0.2) ** 0.5
    assert half.posterior(state) == pytest.approx(prior * table / (prior @ table))


@pytest.mark.parametrize("name", POLICIES)
def test_states_with_their_own_prior_are_read_back(name):
    policy = POLICIES[name]
    prior = rows(policy.problem, 1)[0]
    state = policy.update(policy.start(prior), Answer(0, 1))
    again = policy.load(json.loads(json.dumps(policy.dump(state))))
    assert policy.posterior(again).tolist() == policy.posterior(state).tolist()
    assert "prior" not in policy.dump(policy.start())


def test_a_plan_follows_its_tree_whatever_the_prior():
    policy = POLICIES["plan plain"]
    runs = [
        ct.simulate(PROBLEM, policy, 120, crowd=recorded(PROBLEM, prior=prior, gaps=0))
        for prior in (None, rows(PROBLEM))
    ]
    assert runs[0].label_index.tolist() == runs[1].label_index.tolist()
    assert runs[0].asked.tolist() == runs[1].asked.tolist()


@pytest.mark.parametrize("name", ["adaptive plain", "plan plain", "subtypes plain"])
def test_calibration_replays_items_from_their_own_prior(name):
    policy = POLICIES[name]
    usual = np.tile(PROBLEM.prior, (120, 1))
    crowds = [recorded(PROBLEM, prior=prior) for prior in (None, usual, rows(PROBLEM))]
    found = [policy.calibrate(crowd).calibration for crowd in crowds]
    assert found[0] == found[1] != found[2]
    # what it saw: the evidence of the answers alone, so priors that are off change little
    assert found[2].items == 120


def test_answers_that_were_given_calibrate_from_their_own_prior():
    policy = ct.AdaptivePolicy(PROBLEM, 0.05)
    items = [[Answer(0, int(x)), Answer(1, int(y))] for x, y in RNG.integers(0, 2, (40, 2))]
    truth = RNG.integers(0, 4, 40)
    usual = np.tile(PROBLEM.prior, (40, 1))
    found = [policy.calibrate_on(items, truth, prior=p) for p in (None, usual, rows(PROBLEM, 40))]
    assert found[0] == found[1] != found[2]


def test_labels_at_targets_are_those_of_the_simulation():
    policy = ct.AdaptivePolicy(PROBLEM, 0.1, 12, calibration=DISCOUNT, strict=False)
    crowd = recorded(PROBLEM, prior=rows(PROBLEM))
    run_ = ct.simulate(PROBLEM, policy, 120, crowd=crowd)
    stops = policy.labelled(crowd.values, [0.1], crowd.prior)
    reached = run_.reason == ct.simulation.REASONS.index("target")
    assert stops.reached[:, 0].tolist() == reached.tolist()
    assert stops.label[reached, 0].tolist() == run_.label_index[reached].tolist()
    assert (run_.reason == ct.simulation.REASONS.index("undecided")).any()


def test_an_item_of_a_campaign_keeps_its_prior():
    policy = ct.AdaptivePolicy(PROBLEM, 0.01, 30)
    prior = (0.05, 0.05, 0.1, 0.8)
    revisions = [Revision(policy), Revision(policy)]
    view = fold(revisions, [Answered("ann", 0, 1), Skipped("bob", 1)], prior)
    expected = policy.posterior(policy.update(policy.start(prior), Answer(0, 1)))
    assert view.answers == 1
    assert policy.posterior(view.state) == pytest.approx(expected)
    assert path(revisions[0], view)[-1].posterior == pytest.approx(expected)
    replayed = extend(revisions, view, PolicyChanged(1))
    assert policy.posterior(replayed.state) == pytest.approx(expected)


def test_a_simulated_classifier_states_its_errors_and_saves_answers():
    crowd = ct.Crowd(classifier_accuracy=0.8)
    block = crowd.block(PROBLEM, 1, 0, 20_000)
    best = block.prior / PROBLEM.prior
    assert (best.argmax(axis=1) == block.truth).mean() == pytest.approx(0.8, abs=0.01)
    mean = block.prior[np.arange(20_000), block.truth].mean()
    assert mean == pytest.approx((block.prior**2).sum(axis=1).mean(), abs=0.01)
    policy = ct.AdaptivePolicy(PROBLEM, 0.05)
    plain, helped = (ct.simulate(PROBLEM, policy, 4000, crowd=c) for c in (ct.Crowd(), crowd))
    assert plain.truth_index.tolist() == helped.truth_index.tolist()
    assert helped.answers_per_item < 0.8 * plain.answers_per_item
    assert helped.misclassification.low <= helped.stated_error <= helped.misclassification.high
    with pytest.raises(ct.CrowdtreeError, match="adapt: the test of the table needs items that"):
        ct.simulate(PROBLEM, policy, 10, crowd=crowd, adapt=True)


def test_the_command_simulates_a_classifier(capsys):
    words = ("simulate", "example:table1", "--items", 300, "--policy", "adaptive", "--json")
    found = []
    for more in ((), ("--classifier-accuracy", 0.9)):
        assert run(*words, *more) == 0
        found.append(json.loads(capsys.readouterr().out)["answers_per_item"])
    assert found[1] < found[0]
    assert run(*words, "--classifier-accuracy", 2) == 2


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ([0.5, 0.5], "prior: expected 4 probabilities, one per class, got shape (2,)"),
        ([0.5, 0.5, -0.1, 0.1], "prior: row 0, class 'c': expected a probability, got -0.1"),
        ([0.5, 0.5, np.nan, 0], "prior: row 0, class 'c': expected a probability, got nan"),
        ([0.5, 0.2, 0, 0], "prior: row 0 sums to 0.7, not 1; divide it by its sum"),
        ("high", "prior: expected one probability per class"),
    ],
)
def test_wrong_priors_are_refused(prior, message):
    for policy in (POLICIES["adaptive plain"], POLICIES["plan plain"], POLICIES["batch plain"]):
        with pytest.raises(ct.CrowdtreeError) as caught:
            policy.start(prior)
        assert str(caught.value) == message


def test_recorded_priors_are_checked():
    with pytest.raises(ct.CrowdtreeError, match=r"recorded: prior: expected one row per item \(2"):
        ct.Recorded([[0] * 5, [1] * 5], [0, 1], prior=[[0.25] * 4])
    crowd = ct.Recorded([[0] * 5, [1] * 5], [0, 1], prior=[[0.25] * 4, [0.2] * 4])
    with pytest.raises(ct.CrowdtreeError, match=r"recorded: prior: row 1 sums to 0\.8"):
        ct.simulate(PROBLEM, ct.AdaptivePolicy(PROBLEM, repeats=1, strict=False), 2, crowd=crowd)
