"""Policies: same answers, same questions; early stopping changes nothing but the cost."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdtree.core import voting
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.problem import Problem
from crowdtree.designs.designers import design
from crowdtree.designs.staffing import staff
from crowdtree.policies import (
    AdaptivePolicy,
    Answer,
    Ask,
    BatchPolicy,
    Label,
    PlanPolicy,
    expected_answers,
    policy_from_dict,
    with_votes_by,
)
from crowdtree.policies.criteria import CRITERIA, Dense, Pairs


def random_problem(seed: int, classes: int = 5, questions: int = 8) -> Problem:
    rng = np.random.default_rng(seed)
    while True:
        outcome = rng.integers(0, 2, (questions, classes))
        if len(np.unique(outcome, axis=1).T) == classes:
            break
    prior = rng.dirichlet(np.full(classes, 3.0))
    names = [f"c{i}" for i in range(classes)]
    error = rng.uniform(0.05, 0.35, (questions, classes))
    return Problem(names, prior, [f"q{i}" for i in range(questions)], outcome, error)


def run(policy, answers, state=None):
    """Feed a stream of answers (functions of the question) until a label comes."""
    state = policy.start() if state is None else state
    heard = []
    while True:
        found = policy.ask(state)
        if isinstance(found, Label):
            return found, heard
        question = found.questions[0]
        value = answers(question, sum(q == question for q, _ in heard))
        heard.append((question, value))
        state = policy.update(state, Answer(question, value))


def stream(seed):
    """Answers that depend on question and count alone: every policy hears the same ones."""
    return lambda question, count: int(
        np.random.default_rng((seed, question, count)).random() < 0.5
    )


# ------------------------------------------------------------------ plans


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(1, 7), min_size=4, max_size=4))
def test_curtailed_gives_the_same_verdicts_with_fewer_answers(seed, votes):
    tree = design(random_problem(seed))
    plan = Plan(tree, np.array(votes)[np.arange(tree.n_nodes) % 4])
    full, heard_full = run(PlanPolicy(plan, "none"), stream(seed))
    short, heard_short = run(PlanPolicy(plan, "curtailed"), stream(seed))
    assert short.label == full.label
    assert len(heard_short) <= len(heard_full)
    # answer by answer: what the short vote heard is a part of what the full vote heard, in order
    for question in {q for q, _ in heard_full}:
        long = [v for q, v in heard_full if q == question]
        brief = [v for q, v in heard_short if q == question]
        assert long[: len(brief)] == brief


def verdict_of(votes, values, stopping):
    problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    policy = PlanPolicy(Plan(design(problem), [votes]), stopping)
    state = policy.start()
    for count, value in enumerate(values, start=1):
        state = policy.update(state, Answer(0, value))
        if state.node < 0:
            return policy.ask(state).label, count
    return None, len(values)


@pytest.mark.parametrize("votes", [1, 2, 3, 4, 5, 6, 7])
def test_every_pattern_of_votes_has_one_verdict(votes):
    for values in itertools.product((0, 1), repeat=votes):
        full, count = verdict_of(votes, values, "none")
        short, early = verdict_of(votes, values, "curtailed")
        assert (full, count) == (short, votes)
        if 2 * sum(values) != votes:
            assert full == int(2 * sum(values) > votes)
        else:
            assert full == values[0]
        # it stops exactly when no further answer could change the verdict
        endings = itertools.product((0, 1), repeat=votes - early)
        assert {verdict_of(votes, values[:early] + rest, "none")[0] for rest in endings} == {full}
        if early > 1:
            endings = itertools.product((0, 1), repeat=votes - early + 1)
            ends = {verdict_of(votes, values[: early - 1] + r, "none")[0] for r in endings}
            assert ends == {0, 1}


@pytest.mark.parametrize("votes", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("error", [0.0, 0.05, 0.2, 0.45, 0.5])
def test_expected_curtailed_votes_by_enumeration(votes, error):
    total = 0.0
    for wrong in itertools.product((0, 1), repeat=votes):
        chance = np.prod([error if w else 1 - error for w in wrong])
        total += chance * verdict_of(votes, wrong, "curtailed")[1]
    assert voting.curtailed_votes(error, votes) == pytest.approx(total)


def test_curtailed_votes_stay_exact_for_large_votes():
    n = np.array([1001, 1000])
    # all agree: half the votes and one
    np.testing.assert_allclose(voting.curtailed_votes(0.0, n), [501, 500])
    assert np.all(voting.curtailed_votes([0.1, 0.4], 1001) < 1001)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 30))
def test_margin_votes_err_no_more_and_cost_less_than_curtailed(seed, pairs):
    plan = staff(design(random_problem(seed)), workers=2 * pairs)
    margin = with_votes_by(plan, "margin")
    assert evaluate(margin).misclassification <= evaluate(plan).misclassification + 1e-12
    fewer = margin.votes - 1
    if np.any(fewer >= 1):  # the smallest such margins: one less somewhere is worse for some class
        for node in np.flatnonzero(fewer >= 1):
            classes = [plan.tree.problem.classes.index(c) for c in plan.tree.nodes[node].classes]
            less = Plan(
                plan.tree, np.where(np.arange(len(fewer)) == node, fewer, margin.votes), "margin"
            )
            worse = less.error_at(node, classes) > plan.error_at(node, classes)
            assert worse.any()


def test_expected_answers_of_all_stoppings_by_walking_every_answer():
    """Exact expectations against a sum over all answer sequences of the step-by-step engine."""
    problem = Problem(list("abc"), [0.5, 0.3, 0.2], ["q", "r"], [[0, 0, 1], [0, 1, 1]], [0.1, 0.3])
    tree = design(problem)
    plan = Plan(tree, [3, 5][: tree.n_nodes])

    def walk(policy, cls):
        """Expected answers and errors, step by step; equal states are counted together."""
        alive = {None: (policy.start(), problem.prior[cls])}
        answers = wrong = 0.0
        while sum(chance for _, chance in alive.values()) > 1e-10:
            after = {}
            for state, chance in alive.values():
                found = policy.ask(state)
                if isinstance(found, Label):
                    wrong += chance * (found.label != cls)
                    continue
                answers += chance
                q = found.questions[0]
                yes = policy.model.yes[q, cls]
                for value, part in ((0, 1 - yes), (1, yes)):
                    then = policy.update(state, Answer(q, value))
                    key = (then.node, then.counts, then.order)
                    after[key] = (then, after.get(key, (then, 0.0))[1] + chance * part)
            alive = after
        return answers, wrong

    for stopping in ("none", "curtailed", "margin"):
        policy = PlanPolicy(plan, stopping)
        sums = [walk(policy, c) for c in range(3)]
        assert expected_answers(plan, stopping) == pytest.approx(sum(s[0] for s in sums), abs=1e-6)
        wrong = evaluate(policy.voted).misclassification
        assert wrong == pytest.approx(sum(s[1] for s in sums), abs=1e-6)


def test_plan_hands_out_only_votes_that_are_surely_needed():
    problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    plan = Plan(design(problem), [5])
    policy = PlanPolicy(plan, "curtailed")
    state = policy.start()
    assert policy.ask(state) == Ask((0, 0, 0))
    assert policy.ask(state, outstanding=[0, 0, 0]) == Ask(())
    state = policy.update(policy.update(state, Answer(0, 1)), Answer(0, 1))
    assert policy.ask(state) == Ask((0,))
    assert PlanPolicy(plan).ask(PlanPolicy(plan).start()) == Ask((0,) * 5)
    assert policy.ask(state, exclude={0}) == Ask(())


def test_margin_plan_votes_by_its_own_margins():
    problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    plan = Plan(design(problem), [2], "margin")
    for stopping in ("none", "margin"):
        policy = PlanPolicy(plan, stopping)
        state = policy.start()
        for value in (1, 0, 1):
            state = policy.update(state, Answer(0, value))
        assert isinstance(policy.ask(state), Ask)
        state = policy.update(state, Answer(0, 1))
        assert policy.ask(state).label == 1
        assert expected_answers(plan, stopping) == pytest.approx(float(voting.margin_votes(0.2, 2)))
    with pytest.raises(CrowdtreeError, match='cannot be "curtailed"'):
        PlanPolicy(plan, "curtailed")


def test_plan_posterior_is_bayes_of_all_answers():
    problem = random_problem(3)
    policy = PlanPolicy(staff(design(problem), workers=10), "curtailed")
    label, heard = run(policy, stream(5))
    joint = problem.prior.copy()
    for q, v in heard:
        joint *= policy.model.yes[q] if v else 1 - policy.model.yes[q]
    assert label.posterior_error == pytest.approx(1 - joint[label.label] / joint.sum())


# ------------------------------------------------------------------ adaptive


def brute_force_scores(problem, posterior):
    """Each criterion by its definition: Bayes' rule for both answers."""
    model = AdaptivePolicy(problem).model

    def entropy(p):
        return float(-(p * np.log2(p)).sum())

    found = {name: [] for name in ("information", "accuracy", "ec2")}
    for q in range(problem.n_questions):
        after = dict.fromkeys(found, 0.0)
        for like in (model.yes[q], 1 - model.yes[q]):
            chance = float(posterior @ like)
            then = posterior * like / chance
            after["information"] += chance * entropy(then)
            after["accuracy"] += chance * then.max()
            after["ec2"] += chance * (1 - (then**2).sum())
        found["information"].append(entropy(posterior) - after["information"])
        found["accuracy"].append(after["accuracy"] - posterior.max())
        found["ec2"].append(1 - (posterior**2).sum() - after["ec2"])
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_criteria_are_what_they_say(seed):
    problem = random_problem(seed)
    posterior = np.random.default_rng(seed).dirichlet(np.ones(problem.n_classes))
    model = AdaptivePolicy(problem).model
    for name, scores in brute_force_scores(problem, posterior).items():
        dense = CRITERIA[name](posterior[None, :], Dense(model.answers))[0]
        np.testing.assert_allclose(dense, scores, atol=1e-9)
        rows = np.tile(posterior, (problem.n_questions, 1))
        np.testing.assert_allclose(CRITERIA[name](rows, Pairs(model.answers)), scores, atol=1e-9)


def test_gbs_takes_the_most_even_split():
    problem = Problem(
        list("abcd"),
        None,
        ["one", "two", "three"],
        [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]],
        [0.01, 0.3, 0.01],
    )
    assert AdaptivePolicy(problem, criterion="gbs").ask(AdaptivePolicy(problem).start()) == Ask(
        (1,)
    )
    assert AdaptivePolicy(problem).ask(AdaptivePolicy(problem).start()) == Ask((0,))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.randoms(), st.sampled_from([0.0, 0.3]))
def test_answers_may_come_in_any_order(seed, random, rho):
    problem = random_problem(seed)
    policy = AdaptivePolicy(problem, shared_difficulty=rho)
    rng = np.random.default_rng(seed)
    answers = [Answer(int(rng.integers(8)), int(rng.integers(2))) for _ in range(8)]
    mixed = list(answers)
    random.shuffle(mixed)
    states = []
    for order in (answers, mixed):
        state = policy.start()
        for answer in order:
            state = policy.update(state, answer)
        states.append(state)
    np.testing.assert_allclose(states[0].log_posterior, states[1].log_posterior, atol=1e-9)
    assert policy.ask(states[0]) == policy.ask(states[1]) or isinstance(
        policy.ask(states[0]), Label
    )


def test_posterior_uses_the_workers_own_reliability():
    problem = Problem(["a", "b"], [0.3, 0.7], ["q"], [[0, 1]], 0.2)
    policy = AdaptivePolicy(problem)
    good = policy.update(policy.start(), Answer(0, 0, skill=2.0))
    error = 1 / (1 + np.exp(-(np.log(0.2 / 0.8) - 2.0)))
    expected = 0.3 * (1 - error) / (0.3 * (1 - error) + 0.7 * error)
    assert policy.posterior(good)[0] == pytest.approx(expected)
    spam = policy.update(policy.start(), Answer(0, 0, skill=float(np.log(0.2 / 0.8))))
    assert policy.posterior(spam)[0] == pytest.approx(0.3)


def test_price_turns_the_choice():
    problem = Problem(["a", "b"], None, ["dear", "cheap"], [[0, 1], [0, 1]], [0.1, 0.2])
    start = AdaptivePolicy(problem).start()
    assert AdaptivePolicy(problem).ask(start) == Ask((0,))
    assert AdaptivePolicy(problem, price=[3, 1]).ask(start) == Ask((1,))


def test_last_answer_is_asked_for_accuracy():
    """One answer left: the question that can change the label, not the most informative one."""
    problem = Problem(
        list("abc"), [0.41, 0.42, 0.17], ["tail", "head"], [[0, 0, 1], [0, 1, 1]], [0.24, 0.38]
    )
    scores = brute_force_scores(problem, problem.prior)
    best = {name: int(np.argmax(values)) for name, values in scores.items()}
    assert best["information"] != best["accuracy"], "the example must tell the criteria apart"
    start = AdaptivePolicy(problem).start()
    last = AdaptivePolicy(problem, 0.0, max_answers=1).ask(start)
    assert last == Ask((best["accuracy"],))
    assert AdaptivePolicy(problem, 0.0, max_answers=2).ask(start) == Ask((best["information"],))
    assert AdaptivePolicy(problem, 0.0, 1, endgame=0).ask(start) == Ask((best["information"],))


def test_repeats_are_capped_and_the_end_is_told():
    problem = random_problem(1)
    policy = AdaptivePolicy(problem, 1e-6, repeats=1, strict=False)
    label, heard = run(policy, stream(1))
    assert label.reason == "questions"
    assert len(heard) == len({q for q, _ in heard}) <= problem.n_questions
    state = policy.update(policy.start(), Answer(0, 1))
    assert not policy.wants(state, 0)
    assert policy.update(state, Answer(0, 1)) is state


def test_shared_difficulty_asks_other_questions_rather_than_repeat():
    problem = Problem(["a", "b"], None, ["good", "poor"], [[0, 1], [0, 1]], [0.1, 0.2])
    alone = AdaptivePolicy(problem, 1e-3)
    shared = AdaptivePolicy(problem, 1e-3, shared_difficulty=0.6)
    answer = Answer(0, 1)
    assert alone.ask(alone.update(alone.start(), answer)) == Ask((0,))
    assert shared.ask(shared.update(shared.start(), answer)) == Ask((1,))


def test_reasons():
    problem = random_problem(2)
    assert run(AdaptivePolicy(problem, 0.9), stream(1))[0].reason == "target"
    label, heard = run(AdaptivePolicy(problem, 0.0, max_answers=7), stream(1))
    assert (label.reason, len(heard)) == ("budget", 7)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.randoms())
def test_width_hands_out_no_more_than_it_may_and_any_order_works(seed, width, random):
    problem = random_problem(seed)
    policy = AdaptivePolicy(problem, 0.02, max_answers=30, width=width, repeats=4, strict=False)
    state, out, answers = policy.start(), [], 0
    values = stream(seed)
    while True:
        found = policy.ask(state, out)
        if isinstance(found, Label):
            break
        out += found.questions
        assert 0 < len(out) <= width
        counts = np.bincount(out, minlength=8) + state.counts.sum(axis=0)
        assert counts.max() <= 4
        question = out.pop(random.randrange(len(out)))
        state = policy.update(state, Answer(question, values(question, answers)))
        answers += 1
        assert answers + len(out) <= 30
    assert found.reason in ("target", "budget", "questions")


def test_outstanding_questions_are_thought_through():
    """With the best question out, the next one is the best given its answer, by enumeration."""
    problem = random_problem(11)
    policy = AdaptivePolicy(problem, width=2)
    state = policy.start()
    first, second = policy.ask(state).questions
    model, prior = policy.model, problem.prior
    worth = np.zeros(problem.n_questions)
    for like in (model.yes[first], 1 - model.yes[first]):
        chance = float(prior @ like)
        worth += chance * np.array(
            brute_force_scores(problem, prior * like / chance)["information"]
        )
    assert second == int(np.argmax(worth))


def test_dash_is_an_even_answer_or_what_is_given():
    problem = Problem(list("abc"), None, ["q"], [[0, 1, "-"]], 0.1)
    policy = AdaptivePolicy(problem, 0.5)
    posterior = policy.posterior(policy.update(policy.start(), Answer(0, 1)))
    np.testing.assert_allclose(posterior, np.array([0.1, 0.9, 0.5]) / 1.5)
    given = AdaptivePolicy(problem, 0.5, table=[[np.nan, np.nan, 0.8]])
    posterior = given.posterior(given.update(given.start(), Answer(0, 1)))
    np.testing.assert_allclose(posterior, np.array([0.1, 0.9, 0.8]) / 1.8)


def test_a_table_replaces_cells_of_questions_with_several_answers():
    cap = ["red", "brown", "white"]
    problem = Problem(["a", "b"], None, ["cap"], [["red", "white"]], 0.2, answers=[cap])
    own, told = problem.channel[0, :, 0, 0], np.array([0.2, 0.5, 0.3])
    table = np.stack([np.full(3, np.nan), told], axis=1)[:, None]
    policy = AdaptivePolicy(problem, 0.3, table=table, strict=False)
    again = policy_from_dict(problem, json.loads(json.dumps(policy.to_dict())))
    for answer in range(3):
        joint = np.array([own[answer], told[answer]])
        for one in (policy, again):
            posterior = one.posterior(one.update(one.start(), Answer(0, answer)))
            np.testing.assert_allclose(posterior, joint / joint.sum())
    skilled = policy.posterior(policy.update(policy.start(), Answer(0, 1, skill=1.0)))
    strong = np.array([0.1 / (0.8 * np.e + 0.2), 0.5 * np.e / (0.5 * np.e + 0.5)])
    np.testing.assert_allclose(skilled, strong / strong.sum())


def test_faultless_workers_may_contradict_each_other():
    problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.0)
    policy = AdaptivePolicy(problem, 0.01)
    state = policy.update(policy.update(policy.start(), Answer(0, 1)), Answer(0, 0))
    np.testing.assert_allclose(policy.posterior(state), [0.5, 0.5])


# ------------------------------------------------------------------ batch


def test_batch_asks_all_and_decodes_the_nearest():
    problem = random_problem(4)
    policy = BatchPolicy(problem, votes=2)
    assert policy.ask(policy.start()).questions == (*range(8), *range(8))
    assert policy.ask(policy.start(), outstanding=[0, 3]).questions.count(3) == 1
    truth = 2
    state = policy.start()
    for _ in range(2):
        for q in range(8):
            state = policy.update(state, Answer(q, int(problem.outcome[q, truth])))
    assert policy.ask(state).label == truth
    assert not policy.wants(state, 0)


def test_batch_posterior_is_at_least_as_good_as_nearest_on_average():
    problem = random_problem(9, classes=4, questions=5)
    near, full = BatchPolicy(problem), BatchPolicy(problem, decoder="posterior")
    error = {"nearest": 0.0, "posterior": 0.0}
    for values in itertools.product((0, 1), repeat=5):
        for policy in (near, full):
            state = policy.start()
            for q, v in enumerate(values):
                state = policy.update(state, Answer(q, v))
            label = policy.ask(state).label
            yes = policy.model.yes
            like = np.prod([yes[q] if v else 1 - yes[q] for q, v in enumerate(values)], axis=0)
            error[policy.decoder] += float(
                problem.prior @ like - problem.prior[label] * like[label]
            )
    assert error["posterior"] <= error["nearest"]
    assert 0 < error["posterior"] < 0.5


# ------------------------------------------------------------------ all of them


def policies(problem):
    plan = staff(design(problem), workers=6)
    return [
        PlanPolicy(plan),
        PlanPolicy(plan, "curtailed"),
        PlanPolicy(plan, "margin"),
        AdaptivePolicy(problem, 0.05),
        AdaptivePolicy(
            problem,
            0.05,
            20,
            criterion="ec2",
            price=np.arange(1, 9),
            repeats=3,
            shared_difficulty=0.1,
            width=2,
            endgame=2,
            table=np.full((8, 5), 0.3) + 0.1 * problem.outcome,
            strict=False,
        ),
        BatchPolicy(problem, 3),
    ]


@pytest.mark.parametrize("which", range(6))
def test_policies_and_states_survive_json(which):
    problem = random_problem(7)
    policy = policies(problem)[which]
    again = policy_from_dict(problem, json.loads(json.dumps(policy.to_dict())))
    assert again.to_dict() == policy.to_dict()
    state, values = policy.start(), stream(3)
    for count in range(60):
        found = policy.ask(state)
        assert again.ask(again.load(json.loads(json.dumps(policy.dump(state))))) == found
        if isinstance(found, Label):
            break
        q = found.questions[0]
        state = policy.update(state, Answer(q, values(q, count), skill=0.3))
    else:
        pytest.fail("no label in 60 answers")
    assert policy.conclude(state, "closed").reason == "closed"
    assert policy.posterior(state).sum() == pytest.approx(1)


@pytest.mark.parametrize("which", range(6))
def test_bad_answers_are_told(which):
    policy = policies(random_problem(7))[which]
    for answer, text in [
        (Answer(99, 1), "question 99 does not exist"),
        (Answer(0, 2), "expected 0"),
        (Answer(0, 1, float("nan")), "expected a finite skill"),
    ]:
        with pytest.raises(CrowdtreeError, match=text):
            policy.update(policy.start(), answer)


TWINS = Problem(list("abc"), [0.5, 0.2, 0.3], ["q"], [[0, 0, 1]], 0.1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: AdaptivePolicy(TWINS, 0.01),
            r"0.01 is out of reach: no question tells \{a, b\} "
            r"apart, which leaves them an error of 0.2857 \(over all items 0.2 at best\); add a "
            "question, raise target_error to 0.2857",
        ),
        (
            lambda: AdaptivePolicy(
                Problem(list("abcde"), None, ["q", "r"], [[0, 0, 1, 1, 1], [0, 0, 0, 0, 1]], 0.1),
                0.01,
            ),
            r"no question tells \{a, b\}, \{c, d\} apart, which leaves them an error of up to 0.5",
        ),
        (lambda: AdaptivePolicy(random_problem(0), 0.001, repeats=1), "all of them together leave"),
        (lambda: AdaptivePolicy(TWINS, -0.1), "target_error: expected a number between 0 and 1"),
        (lambda: AdaptivePolicy(TWINS, 1.0), "target_error: expected a number between 0 and 1"),
        (lambda: AdaptivePolicy(TWINS, 0.5, 0), "max_answers: expected a whole number"),
        (lambda: AdaptivePolicy(TWINS, 0.5, 2.5), "max_answers: expected a whole number"),
        (lambda: AdaptivePolicy(TWINS, 0.5, 3, width=4), "width: 4 questions at once"),
        (lambda: AdaptivePolicy(TWINS, 0.5, repeats=0), "repeats: expected a whole number"),
        (lambda: AdaptivePolicy(TWINS, 0.5, criterion="luck"), "criterion: expected"),
        (lambda: AdaptivePolicy(TWINS, 0.5, endgame=-1), "endgame: expected 0 answers"),
        (lambda: AdaptivePolicy(TWINS, 0.5, price=-1), "price: question 'q' costs -1"),
        (lambda: BatchPolicy(TWINS, 0), "votes: expected a whole number"),
        (lambda: BatchPolicy(TWINS, 1, "oracle"), "decoder: expected"),
        (lambda: PlanPolicy(design(TWINS, allow_groups=True), "soon"), "stopping: expected"),
        (lambda: policy_from_dict(TWINS, {"policy": "x"}), "policy: 'x' is unknown"),
        (lambda: policy_from_dict(TWINS, {"policy": "plan"}), "policy: 'plan' cannot be read"),
        (lambda: voting.curtailed_votes(0.1, 0), "votes: expected at least 1"),
    ],
)
def test_bad_input_is_told_in_one_line(call, text):
    with pytest.raises(CrowdtreeError, match=text) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_reachable_targets_are_not_refused():
    assert AdaptivePolicy(TWINS, 0.29).target_error == 0.29
    assert AdaptivePolicy(TWINS, 0.01, strict=False).ask(AdaptivePolicy(TWINS, 0.5).start())
    assert AdaptivePolicy(TWINS, 0.0).target_error == 0
