"""What mistakes cost: decisions, trees, votes and policies against enumeration (docs/losses.md)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree import CrowdtreeError, Plan, Problem, Tree, evaluate
from crowdtree.core.loss import Loss, make_loss
from crowdtree.designs.designers.parts_search import PartsSearch
from crowdtree.designs.frontiers.class_sets import ClassSets
from crowdtree.designs.frontiers.set_search import max_sets, set_solver
from crowdtree.designs.frontiers.vote_options import Options
from crowdtree.designs.staffing import _Budget, _Teams, marginal
from crowdtree.policies import AdaptivePolicy, BatchPolicy, PlanPolicy, policy_from_dict
from crowdtree.policies.base import decide
from crowdtree.policies.spec import revised_policy
from crowdtree.policies.walk import label_items, walk_items
from crowdtree.simulation import simulate
from crowdtree.simulation.crowd import Crowd

MUSHROOMS = ct.example("mushrooms")
DEADLY = ("death cap", "destroying angel", "deadly webcap")
EDIBLE = ("champignon", "chanterelle", "porcini", "bay bolete", "parasol", "oyster mushroom")


def small(seed: int, n: int = 4, m: int = 5, refer: float | None = None) -> Problem:
    """A random problem that its questions separate, with a random loss."""
    rng = np.random.default_rng(seed)
    while True:
        outcome = rng.integers(0, 2, (m, n))
        if len(np.unique(outcome.T, axis=0)) == n:
            break
    loss = np.exp(rng.normal(0, 1.5, (n, n))) * (1 - np.eye(n))
    return Problem(
        [f"c{k}" for k in range(n)],
        rng.dirichlet(np.ones(n)),
        [f"q{k}" for k in range(m)],
        outcome,
        rng.uniform(0.02, 0.3, (m, n)),
        normalise=True,
        loss={"matrix": loss, "refer": refer},
    )


def all_trees(problem: Problem, members: tuple[int, ...]) -> Iterator[Any]:
    """Every tree as nested tuples ``(question, no, yes)``, a leaf as its class."""
    if len(members) == 1:
        yield members[0]
        return
    for q, row in enumerate(problem.outcome.tolist()):
        parts = [tuple(c for c in members if row[c] == side) for side in (0, 1)]
        if all(parts):
            for no, yes in itertools.product(*(all_trees(problem, part) for part in parts)):
                yield (q, no, yes)


def nested(problem: Problem, tree: Any) -> dict[str, Any]:
    if not isinstance(tree, tuple):
        return {"label": problem.classes[tree]}
    q, no, yes = tree
    return {
        "question": problem.questions[q],
        "no": nested(problem, no),
        "yes": nested(problem, yes),
    }


def leaves_of(tree: Any) -> list[int]:
    return [tree] if not isinstance(tree, tuple) else leaves_of(tree[1]) + leaves_of(tree[2])


def additive_risk(problem: Problem, tree: Any) -> float:
    """From the definition: error x largest loss of a label in the wrong branch, over all nodes."""
    if not isinstance(tree, tuple):
        return 0.0
    q, no, yes = tree
    total = additive_risk(problem, no) + additive_risk(problem, yes)
    for mine, other in ((no, yes), (yes, no)):
        for c in leaves_of(mine):
            worst = max(problem.loss.matrix[c, label] for label in leaves_of(other))
            total += problem.prior[c] * problem.worker_error[q, c] * worst
    return total


def arrivals(plan: Plan) -> np.ndarray:
    """P(an item of class c ends at each leaf), one path at a time."""
    tree, problem = plan.tree, plan.tree.problem
    found = np.zeros((problem.n_classes, tree.n_leaves))

    def walk(c: int, node: int, chance: float) -> None:
        if node < 0:
            found[c, ~node] += chance
            return
        q = tree.question[node]
        wrong = float(plan.error_at(node, c))
        right = int(problem.outcome[q, c])
        walk(c, int(tree.children[node, right]), chance * (1 - wrong))
        walk(c, int(tree.children[node, 1 - right]), chance * wrong)

    for c in range(problem.n_classes):
        walk(c, 0, 1.0)
    return found


# ------------------------------------------------------------------ decisions


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([None, 0.0, 0.1, 1.0]))
def test_a_decision_is_the_best_of_all(seed: int, refer: float | None) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    matrix = rng.choice([0, 0.1, 1, 50], (n, n)) * (1 - np.eye(n))
    posterior = rng.dirichlet(np.ones(n), 5)
    found = Loss(matrix, refer).decide(posterior)
    for row, post in enumerate(posterior):
        risks = [sum(post[c] * matrix[c, label] for c in range(n)) for label in range(n)]
        best = min([*risks, *([] if refer is None else [refer])])
        assert found.risk[row] == pytest.approx(best, rel=1e-12, abs=1e-15)
        assert risks[found.label[row]] == pytest.approx(min(risks), abs=1e-15)
        if refer is not None and abs(min(risks) - refer) > 1e-9:
            assert found.referred[row] == (refer < min(risks))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000))
def test_the_loss_of_zero_and_one_decides_as_no_loss_does(seed: int) -> None:
    """Through the general code, which a problem with 0/1 loss does not use."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    weight = rng.integers(1, 4, (4, n)).astype(float)  # ties
    log_posterior = np.log(weight / weight.sum(axis=1, keepdims=True))
    plain, general = decide(log_posterior, None), decide(log_posterior, Loss(1 - np.eye(n)))
    assert plain.label.tolist() == general.label.tolist()
    assert np.allclose(plain.risk, general.risk, rtol=1e-12)
    assert plain.error.tolist() == general.error.tolist()


def test_a_problem_with_the_loss_of_zero_and_one_is_the_problem_without() -> None:
    problem = ct.example("animals")
    same = problem.replace(loss=1 - np.eye(problem.n_classes))
    assert same.loss is None
    assert same == problem
    assert problem.replace(loss={"between": 1}) == problem
    assert problem.replace(loss={"refer": 3}) != problem


def test_a_small_change_of_the_loss_changes_little() -> None:
    """Labels of a posterior do not jump near 0/1 loss: the general code is continuous there."""
    problem = ct.example("table1")
    near = problem.replace(loss=(1 - np.eye(5)) * (1 + 1e-7))
    runs = [simulate(p, AdaptivePolicy(p, 0.02, criterion="information"), 500)
            for p in (problem, near)]  # fmt: skip
    assert runs[0].label.tolist() == runs[1].label.tolist()
    assert runs[0].answers.tolist() == runs[1].answers.tolist()


# ------------------------------------------------------------------ trees


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("refer", [None, 0.05])
def test_labels_of_leaves_are_the_best_of_all_labellings(seed: int, refer: float | None) -> None:
    problem = small(seed, n=3, m=3, refer=refer)
    plan = Plan(ct.design(problem), np.array([1, 3])[: ct.design(problem).n_nodes])
    arrived = arrivals(plan) * problem.prior[:, None]
    choices = [*range(3), *([] if refer is None else [-1])]

    def risk(labels: tuple[int, ...]) -> float:
        return sum(
            refer * arrived[:, leaf].sum()
            if label < 0
            else float(arrived[:, leaf] @ problem.loss.matrix[:, label])
            for leaf, label in enumerate(labels)
        )

    best = min(map(risk, itertools.product(choices, repeat=plan.tree.n_leaves)))
    value = evaluate(plan)
    assert value.risk == pytest.approx(best, rel=1e-12)
    mine = [
        -1 if leaf in plan.handed_over else int(label) for leaf, label in enumerate(plan.leaf_label)
    ]
    assert risk(tuple(mine)) == pytest.approx(best, rel=1e-12)
    assert value.risk <= value.additive_risk * (1 + 1e-12)
    joint = problem.prior[:, None] * value.confusion
    if refer is None:
        assert value.risk == pytest.approx(float((joint * problem.loss.matrix).sum()))
    assert value.misclassification == pytest.approx(1 - np.trace(joint))


@pytest.mark.parametrize("seed", range(5))
def test_the_optimal_tree_has_the_least_additive_risk_of_all_trees(seed: int) -> None:
    problem = small(seed, n=5, m=5)
    trees = list(all_trees(problem, tuple(range(5))))
    values = [additive_risk(problem, tree) for tree in trees]
    tree = ct.design(problem, "optimal")
    assert tree.certificate.status == "optimal"
    assert tree.certificate.value == pytest.approx(min(values), rel=1e-12)
    assert ct.verify(tree).gap == 0.0
    some = trees[len(trees) // 2]
    made = evaluate(Tree.from_dict(problem, nested(problem, some)))
    assert made.additive_risk == pytest.approx(additive_risk(problem, some), rel=1e-12)
    assert made.risk <= made.additive_risk


def test_weights_of_classes_are_searched_by_the_compiled_search() -> None:
    """A mistake costs a class the same whatever the label: both searches must agree."""
    problem = small(3, n=5, m=5)
    rows = np.array([1.0, 30.0, 2.0, 0.5, 7.0])
    problem = problem.replace(loss=np.tile(rows[:, None], 5) * (1 - np.eye(5)))
    tree = ct.design(problem, "optimal")
    assert tree.certificate.status == "optimal"
    search = PartsSearch(problem, problem.worker_error)
    assert search.solve(9 * tree.certificate.value) is not None
    assert tree.certificate.value == pytest.approx(search.value, rel=1e-12)


def test_a_search_that_is_stopped_brackets_the_additive_risk() -> None:
    problem = small(1, n=5, m=6)
    tree = ct.design(problem, "optimal", node_limit=3)
    best = ct.design(problem, "optimal").certificate.value
    assert tree.certificate.status == "node limit"
    assert tree.certificate.lower_bound <= best <= tree.certificate.value * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_plan_at_a_price_is_the_best_of_all_trees_and_votes(seed: int) -> None:
    problem = small(seed, n=3, m=3)
    front = ct.frontier(problem, max_votes=5)
    assert front.proven
    for cheap, good in itertools.pairwise(front):
        assert good.risk < cheap.risk
        assert good.expected_cost > cheap.expected_cost
    price = 10.0 ** (-1 - seed)
    best = np.inf
    for tree in all_trees(problem, (0, 1, 2)):
        made = Tree.from_dict(problem, nested(problem, tree))
        for votes in itertools.product((1, 3, 5), repeat=made.n_nodes):
            value = evaluate(Plan(made, np.array(votes)))
            best = min(best, value.additive_risk + price * value.planned_answers)
    options = Options.of(problem, "majority", 5, np.ones(problem.n_questions))
    found = set_solver(options, ClassSets(problem, max_sets(options)))(price, 1_000_000, None)
    assert found.status == "optimal"
    assert found.lower_bound == pytest.approx(found.at(price), rel=1e-9)
    assert found.error + price * found.cost == pytest.approx(best, rel=1e-9)


def test_a_plan_for_a_loss_keeps_it_and_costs_least() -> None:
    front = ct.frontier(MUSHROOMS, max_votes=9, max_points=20)
    plan = front.plan_for(loss=0.4)
    assert evaluate(plan).risk <= 0.4
    cheaper = [point for point in front if point.risk <= 0.4]
    assert evaluate(plan).expected_answers <= min(p.expected_answers for p in cheaper)
    best = front.plan_for(answers=15)
    assert evaluate(best).risk <= min(p.risk for p in front if p.expected_answers <= 15)
    for wrong in ({"loss": 0.1, "error": 0.1}, {}):
        with pytest.raises(CrowdtreeError, match="expected exactly one of error, answers, cost"):
            front.plan_for(**wrong)
    with pytest.raises(CrowdtreeError, match="out of reach with at most 9 votes"):
        front.plan_for(loss=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_marginal_staffing_is_optimal_for_the_additive_risk(seed: int) -> None:
    """Fox's theorem with errors weighed by what is at stake; then the exact risk decides."""
    problem = small(seed, n=4, m=4)
    tree = ct.design(problem)
    teams = _Teams(tree, "node")
    votes = marginal(teams, _Budget.of(8, None, teams), np.random.default_rng(0))
    pairs = itertools.product(range(5), repeat=tree.n_nodes)
    best = min(
        evaluate(Plan(tree, 1 + 2 * np.array(extra))).additive_risk
        for extra in pairs
        if sum(extra) == 4
    )
    weighed = evaluate(Plan(tree, votes))
    assert weighed.additive_risk == pytest.approx(best, rel=1e-12)
    assert evaluate(ct.staff(tree, 8)).risk <= weighed.risk


def test_groups_that_no_question_splits_get_the_label_of_least_loss() -> None:
    problem = Problem(
        ["common", "deadly", "other"], [0.6, 0.1, 0.3], ["q"], [[0, 0, 1]], 0.0,
        loss={"never": [["deadly", "common"]]},
    )  # fmt: skip
    tree = ct.design(problem, allow_groups=True)
    assert [problem.classes[c] for c in tree.leaf_label] == ["deadly", "other"]
    assert evaluate(tree).risk == pytest.approx(0.6)


def test_exact_is_refused_and_other_plans_know_their_own_labels() -> None:
    with pytest.raises(CrowdtreeError, match='"exact" is for 0/1 loss'):
        ct.design(MUSHROOMS, "optimal", objective="exact")
    plan = ct.staff(ct.design(MUSHROOMS), answers=20)
    again = Plan.from_dict(MUSHROOMS, plan.to_dict())
    assert again.leaf_label.tolist() == plan.leaf_label.tolist()
    referring = MUSHROOMS.replace(loss={**MUSHROOMS.loss.to_dict(), "refer": 0.3})
    plan = ct.staff(ct.design(referring), answers=12)
    assert plan.handed_over
    assert plan.undecided == ()
    assert '"refer": True' in str(plan.to_dict()).replace("'", '"')
    assert Plan.from_dict(referring, plan.to_dict()).handed_over == plan.handed_over
    assert evaluate(plan).risk <= 0.3


# ------------------------------------------------------------------ policies


@pytest.mark.parametrize("refer", [None, 0.3])
def test_adaptive_labels_and_stops_by_expected_loss(refer: float | None) -> None:
    problem = MUSHROOMS.replace(loss={**MUSHROOMS.loss.to_dict(), "refer": refer})
    policy = AdaptivePolicy(problem, target_loss=0.1, max_answers=9)
    block = Crowd().block(problem, 5, 0, 120)
    quick, steps = walk_items(policy, block, 120), label_items(policy, block, 120)
    for fast, slow in zip(quick, steps, strict=True):
        assert np.allclose(fast, slow)
    rng = np.random.default_rng(2)
    for _ in range(20):
        state, truth = policy.start(), int(rng.integers(problem.n_classes))
        while True:
            posterior = policy.posterior(state)
            risks = [float(posterior @ problem.loss.matrix[:, k]) for k in range(len(posterior))]
            best = min([*risks, *([] if refer is None else [refer])])
            step = policy.ask(state)
            if isinstance(step, ct.policies.Label):
                break
            assert best > 0.1
            yes = policy.model.yes[step.questions[0], truth]
            answer = ct.policies.Answer(step.questions[0], int(rng.random() < yes))
            state = policy.update(state, answer)
        assert risks[step.label] == pytest.approx(min(risks))
        if step.reason == "target":
            assert best <= 0.1 * (1 + 1e-9)
        assert (step.reason == "referred") == (refer is not None and refer < min(risks))


def test_units_of_the_loss_do_not_matter() -> None:
    times = MUSHROOMS.replace(loss=64 * MUSHROOMS.loss.matrix)
    runs = [
        simulate(problem, AdaptivePolicy(problem, target_loss=target), 300)
        for problem, target in ((MUSHROOMS, 0.1), (times, 6.4))
    ]
    assert runs[0].label.tolist() == runs[1].label.tolist()
    assert float(runs[1].risk) == pytest.approx(64 * float(runs[0].risk))


def test_without_a_loss_a_target_loss_is_a_target_error() -> None:
    problem = ct.example("table1")
    runs = [
        simulate(problem, AdaptivePolicy(problem, **target), 300)
        for target in ({"target_loss": 0.02}, {"target_error": 0.02})
    ]
    assert runs[0].label.tolist() == runs[1].label.tolist()
    assert float(runs[0].risk) == float(runs[0].misclassification)


@pytest.mark.parametrize("stopping", ["none", "curtailed", "margin"])
def test_a_simulated_plan_has_the_risk_that_was_computed(stopping: Any) -> None:
    problem = small(4, n=4, m=5, refer=0.1)
    policy = PlanPolicy(ct.staff(ct.design(problem), 4), stopping)
    assert policy.voted.handed_over
    run = simulate(problem, policy, 4000, rng=1)
    exact = evaluate(policy.voted)
    assert run.risk.low - 0.02 <= exact.risk <= run.risk.high + 0.02
    assert run.undecided.low - 0.02 <= exact.undecided <= run.undecided.high + 0.02
    assert run.reasons["referred"] == round(run.undecided * 4000)
    block = Crowd().block(problem, 5, 0, 60)
    quick, steps = walk_items(policy, block, 60), label_items(policy, block, 60)
    for fast, slow in zip(quick, steps, strict=True):
        assert np.allclose(fast, slow)


def test_the_posterior_decoder_minimises_expected_loss() -> None:
    block = Crowd().block(MUSHROOMS, 5, 0, 50)
    policy = BatchPolicy(MUSHROOMS, 1, "posterior")
    quick, steps = walk_items(policy, block, 50), label_items(policy, block, 50)
    assert quick.label.tolist() == steps.label.tolist()
    plain = walk_items(BatchPolicy(MUSHROOMS.replace(loss=None), 1, "posterior"), block, 50)
    assert quick.label.tolist() != plain.label.tolist()


def test_a_policy_with_a_target_loss_is_written_and_read() -> None:
    policy = AdaptivePolicy(MUSHROOMS, target_loss=0.1)
    data = policy.to_dict()
    assert (data["target_loss"], data["criterion"]) == (0.1, "loss")
    assert policy_from_dict(MUSHROOMS, data).to_dict() == data
    assert "target_loss=0.1" in repr(policy)
    assert "target_loss" not in AdaptivePolicy(ct.example("table1")).to_dict()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target_loss": -1}, "target_loss: expected"),
        ({"target_loss": float("nan")}, "target_loss: expected"),
        ({"target_loss": 5}, "not below the price of an expert"),
        ({"target_loss": 0.1, "criterion": "nope"}, "criterion: expected"),
    ],
)
def test_bad_targets_are_refused(options: dict[str, Any], words: str) -> None:
    problem = MUSHROOMS.replace(loss={"refer": 5})
    with pytest.raises(CrowdtreeError, match=words):
        AdaptivePolicy(problem, **options)


def test_losses_out_of_reach_are_refused() -> None:
    twins = Problem(["a", "b", "c"], None, ["q"], [[0, 0, 1]], 0.1, loss={"between": 8})
    with pytest.raises(CrowdtreeError, match=r"no question tells \{a, b\} apart.* loss of 4 "):
        AdaptivePolicy(twins, target_loss=1)
    with pytest.raises(CrowdtreeError, match="out of reach with 1 answers per question"):
        AdaptivePolicy(MUSHROOMS, target_loss=1e-3, repeats=1)
    AdaptivePolicy(twins.replace(loss={"between": 8, "refer": 2}), target_loss=1)  # referred
    with pytest.raises(CrowdtreeError, match='"loss" is for a problem with a loss'):
        AdaptivePolicy(ct.example("table1"), criterion="loss")
    with pytest.raises(CrowdtreeError, match="guarantee: is for a target_error"):
        AdaptivePolicy(MUSHROOMS, target_loss=0.1).guarantee(np.zeros((1, 15)), [0])


# ------------------------------------------------------------------ the mushrooms


def deadly(confusion: np.ndarray) -> float:
    """Share of all items that are deadly and called edible."""
    rows, columns = ([MUSHROOMS.classes.index(n) for n in names] for names in (DEADLY, EDIBLE))
    return float(confusion[np.ix_(rows, columns)].sum())


def test_deadly_confusions_fall_tenfold_at_equal_answers() -> None:
    """Adaptive: 60,000 simulated items. Without the loss more than 200 are deadly confusions."""
    plain = MUSHROOMS.replace(loss=None)
    before = simulate(plain, AdaptivePolicy(plain, 0.05), 60_000, rng=3)
    after = simulate(MUSHROOMS, AdaptivePolicy(MUSHROOMS, target_loss=0.35), 60_000, rng=3)
    assert after.answers_per_item <= before.answers_per_item
    assert deadly(before.confusion) * 60_000 > 200
    assert 10 * deadly(after.confusion) <= deadly(before.confusion)


def test_deadly_confusions_of_plans_fall_tenfold_at_equal_answers() -> None:
    """Trees with votes: exact. The same budget, questions and votes chosen for the loss."""
    plain = MUSHROOMS.replace(loss=None)
    before = evaluate(ct.staff(ct.design(plain), answers=20))
    after = evaluate(ct.staff(ct.design(MUSHROOMS), answers=20))
    assert after.expected_answers <= before.expected_answers * 1.001
    falls = [deadly(MUSHROOMS.prior[:, None] * value.confusion) for value in (before, after)]
    assert 10 * falls[1] <= falls[0]
    costs = float((MUSHROOMS.prior[:, None] * before.confusion * MUSHROOMS.loss.matrix).sum())
    assert 3 * after.risk < costs


# ------------------------------------------------------------------ spellings


def test_the_spellings_say_the_same() -> None:
    names = ["a", "b", "c"]
    matrix = [[0, 0.1, 1000], [0.1, 0, 1000], [1, 2, 0]]
    spelled: dict[str, Any] = {
        "groups": {"bad": ["a", "b"], "good": ["c"]},
        "pairs": {"c": {"b": 2}},
        "never": [["bad", "good"]],
    }
    assert make_loss(spelled, names) == make_loss(matrix, names)
    spelled |= {"groups": [["a", "b"]], "never": [[["a", "b"], "c"]]}
    assert make_loss(spelled, names) == make_loss(np.array(matrix), names)
    made = make_loss(matrix, names)
    assert make_loss(made, names) == made == make_loss(made.to_dict(), names)
    assert made != make_loss({**made.to_dict(), "refer": 1}, names)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ([[0, -1], [1, 0]], "truth 'a', label 'b' has -1; expected a number from 0"),
        ([[0, float("nan")], [1, 0]], "truth 'a', label 'b' has nan"),
        ([[0, float("inf")], [1, 0]], "truth 'a', label 'b' has inf"),
        ([[1, 1], [1, 0]], "class 'a' costs 1 where it is labelled rightly; write 0"),
        ([[0, 0], [0, 0]], "every mistake costs 0"),
        ([[0, 1]], "expected a table of 2 x 2 numbers.*got 1 x 2"),
        ([[0, 1], [1]], "expected a table of 2 x 2 numbers"),
        ([[0, "x"], [1, 0]], "expected a table of 2 x 2 numbers"),
        ("dear", "expected a table of 2 x 2 numbers"),
        (7, "expected a table of 2 x 2 numbers.*got one number"),
        ({"refer": -1}, "refer: expected a number from 0 to 1e.09, got '-1'"),
        ({"refer": "dear"}, "refer: expected a number"),
        ({"refer": True}, "refer: expected a number"),
        ({"reffer": 1}, "no field 'reffer'; use any of matrix, groups"),
        ({"groups": [["a", "z"]]}, "groups: 'z' is not a class; the classes are a, b"),
        ({"groups": [["a"], ["a"]]}, "groups: class 'a' is in two groups"),
        ({"groups": {"a": ["a", "b"]}}, "groups: 'a' is the name of a class; rename the group"),
        ({"groups": ["ab"]}, "groups: expected a list of classes, got 'ab'"),
        ({"groups": "ab"}, "groups: expected a list of lists of classes"),
        ({"never": [["a", "z"]]}, "never: 'z' is not a class or a group"),
        ({"never": [["a"]]}, "never: expected pairs of truth and label"),
        ({"never": "ab"}, "never: expected a list of pairs"),
        ({"never": [["a", ["a", "b"]]]}, "never: truth 'a' .* share a class"),
        ({"pairs": {"a": 3}}, "pairs: expected"),
        ({"pairs": {"a": {"b": -3}}}, "pairs: truth 'a', label 'b': expected a number"),
        ({"within": 0.1}, "within is given without groups"),
        ({"never_loss": 5}, "never_loss is given without never"),
        ({"matrix": [[0, 2], [1, 0]], "groups": [["a"]]}, "give a matrix or groups, not both"),
    ],
)
def test_bad_losses_are_refused_in_one_line(loss: Any, words: str) -> None:
    with pytest.raises(CrowdtreeError, match=f"^loss: {words}") as caught:
        Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1, loss=loss)
    assert "\n" not in str(caught.value)


def test_a_revised_table_keeps_what_mistakes_cost() -> None:
    policy = AdaptivePolicy(MUSHROOMS, target_loss=0.1)
    table = MUSHROOMS.replace(worker_error=0.2, loss=None)
    again = revised_policy(policy, table)
    assert again.problem.loss == MUSHROOMS.loss
    assert again.target_loss == 0.1
    with pytest.raises(CrowdtreeError, match="what mistakes cost is not that of the campaign"):
        revised_policy(policy, MUSHROOMS.replace(loss={"refer": 1}))
    with pytest.raises(CrowdtreeError, match="what mistakes cost is not that of the campaign"):
        revised_policy(policy, Plan(ct.design(table), np.ones(11, dtype=int)))
