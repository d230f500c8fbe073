"""Sub-types of classes: found where there are any, asked by what they tell about the class."""

from __future__ import annotations

import json

import numpy as np
import pytest

import crowdtree as ct
from benchmarks import learn_end_to_end
from crowdtree import CrowdtreeError
from crowdtree.campaign.trace import explain
from crowdtree.learning import learn
from crowdtree.learning.subtypes import _em, _Sheet
from crowdtree.policies import AdaptivePolicy, Answer, Ask, SubtypePolicy, policy_from_dict


def kinds_of_things(rng, items, kinds):
    """Three classes of 12 questions; the kinds of a class answer quite differently."""
    rates = np.where(rng.random((3, kinds, 12)) < 0.5, 0.1, 0.9)
    if kinds > 1:  # two kinds that cancel out in the class's own rates
        rates[:, 1] = 1 - rates[:, 0]
    truth, kind = rng.integers(0, 3, items), rng.integers(0, kinds, items)
    values = (rng.random((items, 12)) < rates[truth, kind]).astype(np.int8)
    return truth, values


def learned_from(truth, values):
    items, questions = np.indices(values.shape).reshape(2, -1)
    answers = {"task": items, "question": np.array([f"q{q:02d}" for q in range(12)])[questions],
               "worker": ["crowd"] * values.size, "label": values.ravel()}  # fmt: skip
    return learn(answers, {str(i): "abc"[c] for i, c in enumerate(truth)})


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(1)
    truth, values = kinds_of_things(rng, 1200, 3)
    return learned_from(truth[:600], values[:600]), truth[600:], values[600:]


@pytest.fixture(scope="module")
def subtypes(mixed):
    return mixed[0].subtypes()


def test_kinds_are_found_where_there_are_any_and_only_there(subtypes):
    assert (subtypes.counts >= 2).all()
    truth, values = kinds_of_things(np.random.default_rng(2), 300, 1)
    alone = learned_from(truth, values)
    found = alone.subtypes()
    assert found.counts.tolist() == [1, 1, 1]
    assert found.share == pytest.approx(alone.problem.prior)
    assert found.table == pytest.approx(alone.table, abs=1e-4)


def test_shares_add_up_to_the_prior_and_the_seed_decides(mixed, subtypes):
    shares = np.bincount(subtypes.label, weights=subtypes.share)
    assert shares == pytest.approx(mixed[0].problem.prior)
    again = mixed[0].subtypes()
    assert np.array_equal(again.table, subtypes.table)


def test_labels_of_new_items_are_better_and_the_belief_is_honest(mixed, subtypes):
    learned, truth, values = mixed
    options = {"target_error": 0.0, "max_answers": 12, "repeats": 1}
    plain = AdaptivePolicy(learned.problem, table=learned.table[1], strict=False,
                           **options)  # fmt: skip
    right, surprise = {}, {}
    for name, policy in (("plain", plain), ("kinds", subtypes.policy(**options))):
        belief = np.array([_asked(policy, row, 6) for row in values[:250]])
        right[name] = np.mean(belief.argmax(axis=1) == truth[:250])
        surprise[name] = -np.mean(np.log(belief[np.arange(250), truth[:250]]))
    assert right["kinds"] > right["plain"] + 0.05
    assert surprise["kinds"] < surprise["plain"]


def _asked(policy, row, answers):
    state = policy.start()
    for _ in range(answers):
        ask = policy.ask(state)
        assert isinstance(ask, Ask)
        state = policy.update(state, Answer(ask.questions[0], int(row[ask.questions[0]])))
    return policy.posterior(state)


def test_em_never_lowers_its_objective():
    rng = np.random.default_rng(3)
    truth, values = kinds_of_things(rng, 200, 3)
    mine = values[truth == 0].astype(float)
    sheet = _Sheet(np.stack([1 - mine, mine]), rng.uniform(0.2, 1, len(mine)))
    trace = _em(sheet, sheet.given.mean(axis=1), 4, rng).trace
    assert len(trace) > 3
    assert (np.diff(trace) >= -1e-9 * abs(trace[-1])).all()


def test_items_without_gold_count_by_their_posterior():
    truth, values = kinds_of_things(np.random.default_rng(1), 400, 3)
    items, questions = np.indices(values.shape).reshape(2, -1)
    names = np.array([f"q{q:02d}" for q in range(12)])[questions]
    answers = {"task": items, "question": names, "worker": ["w"] * len(items),
               "label": values.ravel()}  # fmt: skip
    gold = {str(i): "abc"[c] for i, c in enumerate(truth[:200])}
    found = learn(answers, gold).subtypes(most=2)
    assert found.counts.max() == 2
    assert np.isfinite(found.table).all()


# ---------------------------------------------------------------- the policy


COSTS = {"matrix": [[0, 9, 1], [2, 0, 1], [40, 1, 0]]}
"""What mistakes among three classes cost."""


@pytest.mark.parametrize("loss", [None, 30.0 * np.tri(5, k=-1) + np.tri(5, k=-1).T])
def test_one_sub_type_a_class_is_the_plain_policy(loss):
    problem = ct.example("table1").replace(loss=loss)
    plain = AdaptivePolicy(problem, 0.02, 15)
    same = SubtypePolicy(problem, label=range(problem.n_classes), share=problem.prior,
                         table=plain.model.yes, target_error=0.02,
                         max_answers=15)  # fmt: skip
    rng = np.random.default_rng(4)
    for _ in range(20):
        one, two = plain.start(), same.start()
        while isinstance(asked := plain.ask(one), Ask):
            assert same.ask(two) == asked
            answer = Answer(asked.questions[0], int(rng.random() < 0.5), float(rng.normal()))
            one, two = plain.update(one, answer), same.update(two, answer)
            assert same.posterior(two) == pytest.approx(plain.posterior(one))
        assert same.ask(two).label == asked.label
        assert same.ask(two).reason == asked.reason


@pytest.mark.parametrize("name", ["information", "accuracy", "loss", "least risk"])
def test_scores_are_about_the_class(subtypes, name):
    costly = name in ("loss", "least risk")
    policy = subtypes.policy()
    if costly:
        policy = _with_loss(subtypes)
        assert policy.criterion == "loss"
    costs = np.array(COSTS["matrix"])
    rng = np.random.default_rng(5)
    posterior = rng.dirichlet(np.ones(len(subtypes.label)), 3)
    scores = policy._score("accuracy" if name == "least risk" else name, posterior, None)
    for i, q in np.ndindex(3, 12):
        joint = np.zeros((2, 3))  # answer x class, by hand
        for s, cls in enumerate(subtypes.label):
            yes = policy.model.yes[q, s]
            joint[:, cls] += posterior[i, s] * np.array([1 - yes, yes])
        if name == "accuracy":
            expected = joint.max(axis=1).sum() - joint.sum(axis=0).max()
        elif name == "least risk":
            expected = (joint.sum(axis=0) @ costs).min() - (joint @ costs).min(axis=1).sum()
        else:
            apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
            expected = (joint * np.log2(joint / apart)).sum()
        if name == "loss":
            now = joint.sum(axis=0)
            stake = [(w / w.sum()) @ costs @ (w / w.sum()) for w in (now, *joint)]
            expected += 0.25 * (np.log2(stake[0]) - joint.sum(axis=1) @ np.log2(stake[1:]))
        assert scores[i, q] == pytest.approx(expected)


def _with_loss(subtypes, **options):
    problem = subtypes.problem.replace(loss=COSTS)
    return SubtypePolicy(problem, label=subtypes.label, share=subtypes.share,
                         table=subtypes.table, **options)  # fmt: skip


def test_sub_types_stop_at_the_target_loss_with_the_label_of_least_loss(subtypes):
    policy = _with_loss(subtypes, target_loss=0.05, max_answers=40)
    rng = np.random.default_rng(7)
    costs = np.array(COSTS["matrix"])
    for _ in range(20):
        state, kind = policy.start(), rng.integers(len(subtypes.label))
        while isinstance(asked := policy.ask(state), Ask):
            risk = policy.posterior(state) @ costs
            assert risk.min() > 0.05
            question = asked.questions[0]
            state = policy.update(
                state, Answer(question, int(rng.random() < subtypes.table[1, question, kind]))
            )
        risk = policy.posterior(state) @ costs
        assert asked.label == risk.argmin()
        assert (asked.reason == "target") == (risk.min() <= 0.05)


def test_asking_by_the_loss_saves_answers(subtypes):
    """Against the same policy that asks by information, on the same simulated people."""
    made = [_with_loss(subtypes, target_loss=0.05, max_answers=60) for _ in range(2)]
    made[1].criterion = "information"
    runs = [ct.simulate(policy.problem, policy, 4000, rng=3) for policy in made]
    assert runs[0].answers_per_item < 1.02 * runs[1].answers_per_item


def test_a_question_about_sub_types_alone_tells_nothing():
    problem = ct.Problem(["a", "b"], None, ["kind", "class"], [["-", 1], [0, 1]], 0.3)
    yes = [[0.0, 1.0, 0.0, 1.0], [0.3, 0.3, 0.7, 0.7]]
    policy = SubtypePolicy(problem, label=[0, 0, 1, 1], share=[0.25] * 4, table=yes)
    assert policy.ask(policy.start()) == Ask((1,))
    assert policy.ask(policy.start(), exclude=[1]) == Ask(())


def test_policy_is_written_and_read_and_followed(subtypes):
    policy = subtypes.policy(target_error=0.05, max_answers=9, repeats=1, width=2)
    again = policy_from_dict(policy.problem, json.loads(json.dumps(policy.to_dict())))
    assert again.to_dict() == policy.to_dict()
    state = policy.update(policy.start(), Answer(3, 1))
    assert policy.load(policy.dump(state)).log_posterior == pytest.approx(state.log_posterior)
    assert again.ask(again.load(policy.dump(state))) == policy.ask(state)
    assert explain(subtypes.policy(target_error=0.1), rng=1).label is not None


def test_reachable_error_is_that_of_the_classes(subtypes):
    policy = subtypes.policy(repeats=1)
    error, doubt = policy.reachable_error()
    rng = np.random.default_rng(6)
    kind = rng.choice(len(subtypes.label), 4000, p=policy.share)
    values = (rng.random((4000, 12)) < policy.model.yes.T[kind]).astype(int)
    log = np.log(policy.share) + np.stack(
        [policy.model.logs[row, np.arange(12)].sum(axis=0) for row in values]
    )
    wrong = np.mean(policy.by_class(log).argmax(axis=1) != subtypes.label[kind])
    assert wrong == pytest.approx(error, abs=doubt + 2 * np.sqrt(wrong / 4000))


def test_a_problem_of_sub_types_is_designed_with(subtypes):
    fine = subtypes.as_problem()
    assert fine.n_classes == len(subtypes.label)
    tree = ct.design(fine, allow_groups=True)
    assert {fine.classes[c].split(" ")[0] for c in tree.leaf_label} <= set("abc")
    assert (fine.worker_error[fine.outcome != -1] <= 0.25).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": [0, 0, 0]}, "every class from 0 to 1"),
        ({"share": [0.5, 0.5, 0.5]}, "add up to 1"),
        ({"table": [[0.1, 0.2]]}, "1 questions x 3 sub-types"),
    ],
)
def test_policy_refuses_a_mixture_that_does_not_fit(change, said):
    problem = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
    good = {"label": [0, 1, 1], "share": [0.5, 0.25, 0.25], "table": [[0.1, 0.8, 0.9]]}
    assert SubtypePolicy(problem, **good).share.sum() == 1
    with pytest.raises(CrowdtreeError, match=said):
        SubtypePolicy(problem, **{**good, **change})


def test_sub_types_need_yes_no_questions(mixed):
    one = learn({"task": [1, 1, 2, 2], "worker": ["x", "y"] * 2, "label": ["p", "p", "r", "r"]})
    with pytest.raises(CrowdtreeError, match="expected questions about the classes"):
        one.subtypes()
    with pytest.raises(CrowdtreeError, match="most: expected 1 sub-type"):
        mixed[0].subtypes(most=0)


def test_the_benchmark_asks_as_the_policy_does(mixed, subtypes):
    values = mixed[2][:20].copy()
    values[::3, 4] = -1
    most = max(learn_end_to_end.BUDGETS)
    policy = subtypes.policy(target_error=0.0, max_answers=most, repeats=1, endgame=0)
    labels, answers = learn_end_to_end.adaptive(policy, values)
    for i, row in enumerate(values):
        missing = set(np.flatnonzero(row < 0).tolist())
        state = policy.start()
        for count in range(1, 11):
            asked = policy.ask(state, exclude=missing).questions[0]
            state = policy.update(state, Answer(asked, int(row[asked])))
            if count in learn_end_to_end.BUDGETS:
                place = learn_end_to_end.BUDGETS.index(count)
                assert labels[place, i] == policy.posterior(state).argmax()
                assert answers[place, i] == count


@pytest.mark.parametrize("recorded", [False, True])
def test_items_are_simulated_together_as_one_by_one(mixed, subtypes, recorded):
    learned, truth, values = mixed
    policy = subtypes.policy(target_error=0.05, max_answers=12, repeats=1 if recorded else None)
    crowd = None
    if recorded:
        holes = values[:80].copy()
        holes[::3, 4] = -1
        crowd = ct.Recorded(holes, truth[:80])
    together, alone = (
        ct.simulate(learned.problem, policy, 80, rng=2, crowd=crowd, stepwise=stepwise)
        for stepwise in (False, True)
    )
    assert together.label.tolist() == alone.label.tolist()
    assert together.answers.tolist() == alone.answers.tolist()
    assert together.reason.tolist() == alone.reason.tolist()
    assert together.posterior_error == pytest.approx(alone.posterior_error)


def test_sub_types_of_questions_with_several_answers():
    """How strong a pain is repeats whether there is one: the exact posterior counts it once."""
    strength = ["none", "weak", "strong"]
    table = {
        "pain": [[0.5, 0.1], [0.5, 0.9]],
        "strength": [[0.5, 0.1], [0.3, 0.3], [0.2, 0.6]],
    }
    answers = {"strength": strength}
    problem = ct.Problem.from_table(["a", "b"], None, ["pain", "strength"], table, answers)
    no, yes = [[1.0, 0.0], [0.0, 1.0]]
    exact = np.zeros((3, 2, 4))
    exact[:2, 0] = np.array([no, yes, no, yes]).T
    exact[:, 1] = np.array([[1, 0, 0], [0, 0.6, 0.4], [1, 0, 0], [0, 1 / 3, 2 / 3]]).T
    given = {"label": [0, 0, 1, 1], "share": [0.25, 0.25, 0.05, 0.45], "table": exact}
    policy = SubtypePolicy(problem, **given, target_error=0.01, repeats=1)
    state = policy.update(policy.start(), Answer(0, 0))
    once = policy.posterior(state)
    np.testing.assert_allclose(once, [5 / 6, 1 / 6], atol=1e-6)
    again = policy.update(state, Answer(1, 0))
    np.testing.assert_allclose(policy.posterior(again), once, atol=1e-6)
    known = policy._score("information", np.exp(state.log_posterior)[None], None)
    assert abs(known).max() < 1e-6  # the second answer follows from the first
    told = policy._score("information", np.exp(policy.start().log_posterior)[None], None)
    plain = ct.AdaptivePolicy(problem, 0.01, strict=False)
    same = plain._score("information", problem.prior[None], None)
    np.testing.assert_allclose(told, same, atol=1e-6)
    saved = policy.to_dict()
    assert saved.pop("policy") == "subtypes"
    np.testing.assert_allclose(saved["table"], exact, atol=1e-8)
    with pytest.raises(ct.CrowdtreeError, match="expected 3 answers x 2 questions x 4 sub-types"):
        SubtypePolicy(problem, **{**given, "table": exact[:2]})
    unequal = np.where(exact > 0, 0.4, 0.0)
    with pytest.raises(ct.CrowdtreeError, match="table: expected shares from 0 to 1 that add up"):
        SubtypePolicy(problem, **{**given, "table": unequal})
    with pytest.raises(ct.CrowdtreeError, match="table: expected shares from 0 to 1 that add up"):
        SubtypePolicy(problem, **{**given, "table": np.where(exact > 0, np.nan, 0.0)})
