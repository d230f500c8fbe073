"""Staffing against enumeration of all ways to staff, and Algorithm 1 against the paper's text."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree import CrowdtreeError, CrowdtreeWarning, Plan, Problem, Tree, evaluate, staff
from crowdtree.core import scores, voting
from crowdtree.designs.staffing import MAX_WORKERS, STAFFERS, random_means, single_mean
from tests.contracts.oracle import spread
from tests.strategies import problems


@st.composite
def trees(draw: st.DrawFn, most_nodes: int = 5, **options: object) -> Tree:
    problem = draw(problems(classes=(2, 6), questions=(2, 5), separable=True, **options))
    tree = ct.design(problem, "random", rng=draw(st.integers(0, 99)))
    assume(tree.n_nodes <= most_nodes)
    return tree


def fig_4() -> Tree:
    return ct.design(ct.example("table1").replace(worker_error=0.2))


def teams_of(tree: Tree, pool: str) -> np.ndarray:
    """Team of each node, numbered by the team's first node."""
    if pool == "node":
        return np.arange(tree.n_nodes)
    first: dict[int, int] = {}
    return np.array([first.setdefault(q, len(first)) for q in tree.question.tolist()])


def additive(plan: Plan) -> float:
    """The additive error from its definition, over the nodes' classes."""
    tree, problem = plan.tree, plan.tree.problem
    total = 0.0
    for step in tree.steps:
        for node, cls, share, answer in zip(
            step.node, step.cls, step.share, step.answer, strict=True
        ):
            if answer >= 0:
                e = problem.worker_error[tree.question[node], cls]
                total += share * float(voting.majority_error(e, plan.votes[node]))
    return total


# ------------------------------------------------------------------ marginal is optimal


@pytest.mark.parametrize("pool", ["node", "question"])
@given(tree=trees(), pairs=st.integers(0, 5))
@settings(max_examples=60)
def test_marginal_is_the_additive_optimum(pool: str, tree: Tree, pairs: int) -> None:
    team = teams_of(tree, pool)
    plan = staff(tree, workers=2 * pairs, pool=pool)
    assert np.all(plan.votes % 2 == 1)
    assert plan.workers <= team.max() + 1 + 2 * pairs
    best = min(
        additive(Plan(tree, 1 + 2 * np.array(given_pairs)[team], pool=pool))
        for given_pairs in spread(pairs, int(team.max()) + 1)
    )
    assert additive(plan) <= best + 1e-12


@pytest.mark.parametrize("pool", ["node", "question"])
@given(tree=trees(most_nodes=4), steps=st.integers(0, 5))
@settings(max_examples=60)
def test_marginal_spends_answers_best(pool: str, tree: Tree, steps: int) -> None:
    """At every budget that the greedy order spends exactly, nothing does better for as much."""
    team = teams_of(tree, pool)
    count = int(team.max()) + 1
    load = np.bincount(team, weights=[node.share for node in tree.nodes])
    pairs = np.zeros(count, dtype=int)
    for _ in range(steps):
        gains = []
        for t in range(count):
            more = pairs.copy()
            more[t] += 1
            saved = additive(Plan(tree, 1 + 2 * pairs[team])) - additive(
                Plan(tree, 1 + 2 * more[team])
            )
            gains.append(saved / load[t])
        if max(gains) <= 1e-13:
            break
        pairs[next(t for t in range(count) if gains[t] >= max(gains) * (1 - 1e-8))] += 1
    spent = Plan(tree, 1 + 2 * pairs[team], pool=pool)
    plan = staff(tree, answers=spent.planned_answers, pool=pool)
    assert plan.planned_answers <= spent.planned_answers * (1 + 1e-9)
    assert additive(plan) <= additive(spent) + 1e-12
    others = (
        Plan(tree, 1 + 2 * np.array(p)[team]) for p in spread(min(int(pairs.sum()) + 2, 6), count)
    )
    best = min(
        additive(o) for o in others if o.planned_answers <= spent.planned_answers * (1 + 1e-9)
    )
    assert additive(plan) <= best + 1e-12


def test_marginal_skips_pairs_that_do_not_fit() -> None:
    """The root has the best gain but is too expensive; the rest goes to a cheap node."""
    problem = Problem(["a", "b", "c"], [0.9, 0.05, 0.05], ["q", "r"], [[0, 1, 1], [0, 0, 1]], 0.3)
    tree = Tree(problem, [0, 1], [[-1, 1], [-1, -1]])
    plan = staff(tree, answers=1.1 + 0.25)
    assert plan.votes.tolist() == [1, 3]


# ------------------------------------------------------------------ Algorithm 1


def algorithm_1(tree: Tree, pairs: int, score: str, pool: str) -> list[int]:
    """The paper's text, naively: evaluate every level and every candidate from scratch."""
    team = teams_of(tree, pool)
    votes = np.ones(int(team.max()) + 1, dtype=int)

    def levels(given: np.ndarray) -> list[float]:
        found = Plan(tree, given[team]).levels[1:]
        return [float(getattr(level, score)) for level in found]

    for _ in range(pairs):
        now = levels(votes)
        order = sorted(range(len(now)), key=lambda d: (float(f"{now[d]:.9e}"), d))
        for d in order:
            candidates = []
            for t in dict.fromkeys(team[tree.level == d].tolist()):
                more = votes.copy()
                more[t] += 2
                candidates.append((levels(more)[d], t))
            best = max((value for value, _ in candidates), default=-math.inf)
            if now[d] < math.inf and best > now[d] * (1 + 1e-12):
                winner = next(t for value, t in candidates if value >= best * (1 - 1e-10))
                votes[winner] += 2
                break
        else:
            break
    return votes[team].tolist()


@pytest.mark.parametrize("pool", ["node", "question"])
@pytest.mark.parametrize("score", ["fm", "fc"])
@given(tree=trees(), pairs=st.integers(0, 6))
@settings(max_examples=60)
def test_algorithm_1_is_the_papers_text(score: str, pool: str, tree: Tree, pairs: int) -> None:
    plan = staff(tree, workers=2 * pairs, method=f"paper-{score}", pool=pool)
    assert plan.votes.tolist() == algorithm_1(tree, pairs, score, pool)


def test_a_pooled_team_is_judged_by_the_worst_level_alone() -> None:
    """Team r gains much over the whole tree but little in the worst level, where s gains more."""
    problem = Problem(
        ["a", "b", "c", "d", "e", "f"],
        [0.3, 0.3, 0.1, 0.1, 0.1, 0.1],
        ["q", "r", "s", "t"],
        [
            [0, 0, 1, 1, 1, 1],
            [0, 1, 0, 0, 1, 1],
            [0, 0, 0, 1, 0, 1],
            [0, 0, 0, 1, 1, 0],
        ],
        [0.01, 0.2, 0.3, 0.3],
    )
    tree = ct.design(problem, "random", order=[0, 1, 2, 3])
    for pairs in range(1, 8):
        plan = staff(tree, workers=2 * pairs, method="paper-fm", pool="question")
        assert plan.votes.tolist() == algorithm_1(tree, pairs, "fm", "question")


def test_algorithm_1_ties_go_to_the_earliest_level_and_the_leftmost_node() -> None:
    problem = Problem(["a", "b", "c", "d"], None, ["q", "r"], [[0, 0, 1, 1], [0, 1, 0, 1]], 0.2)
    tree = Tree(problem, [0, 1, 1], [[1, 2], [-1, -1], [-1, -1]])
    seen = [staff(tree, workers=2 * k, method="paper-fm").votes.tolist() for k in range(1, 4)]
    assert seen == [[3, 1, 1], [3, 3, 1], [3, 3, 3]]
    # worse by rounding alone is no worse: still the earliest level, and the leftmost node
    for error in ([0.3, 0.1 + 0.2], [0.1 + 0.2, 0.3]):
        near = Tree(problem.replace(worker_error=error), tree.question, tree.children)
        for method in ("paper-fm", "paper-fc"):
            assert staff(near, workers=2, method=method).votes.tolist() == [3, 1, 1]
    cells = np.array([[0.2, 0.2, 0.2, 0.2], [0.3, 0.3, 0.1 + 0.2, 0.1 + 0.2]])
    near = Tree(problem.replace(worker_error=cells), tree.question, tree.children)
    assert staff(near, workers=2, method="paper-fm").votes.tolist() == [1, 3, 1]
    sure_root = near.problem.replace(worker_error=cells * [[0], [1]])
    near = Tree(sure_root, tree.question, tree.children)
    for method in ("marginal", "paper-fm", "paper-fc"):
        assert staff(near, workers=2, method=method).votes.tolist() == [1, 3, 1]
        assert staff(near, workers=4, method=method).votes.tolist() == [1, 3, 3]


# ------------------------------------------------------------------ figure 4


def test_figure_4() -> None:
    tree = fig_4()
    expected = {
        (0, "paper-fm"): 0.299840,
        (0, "marginal"): 0.299840,
        (10, "paper-fm"): 0.062160,
        (10, "marginal"): 0.052922,
        (25, "paper-fm"): 0.009102,
        (25, "marginal"): 0.007514,
    }
    for (k, method), value in expected.items():
        found = evaluate(staff(tree, workers=2 * k, method=method)).misclassification
        assert round(found, 6) == value, (k, method)


def test_marginal_is_the_true_optimum_of_figure_4() -> None:
    tree = fig_4()
    best = min(
        evaluate(Plan(tree, [1 + 2 * k for k in pairs])).misclassification
        for pairs in spread(10, tree.n_nodes)
    )
    assert math.isclose(best, evaluate(staff(tree, workers=20)).misclassification)


# ------------------------------------------------------------------ the other methods


@given(trees(), st.integers(0, 4))
@settings(max_examples=40)
def test_random_means_are_means_over_all_assignments(tree: Tree, workers: int) -> None:
    nodes = range(tree.n_nodes)
    values = [
        evaluate(Plan(tree, 1 + np.bincount(where, minlength=tree.n_nodes))).misclassification
        for where in map(list, itertools.product(nodes, repeat=workers))
        if workers
    ] or [evaluate(tree).misclassification]
    assert math.isclose(
        random_means(tree, workers)[-1], np.mean(values), rel_tol=1e-9, abs_tol=1e-12
    )


@given(trees(), st.integers(0, 4))
@settings(max_examples=40)
def test_single_mean_is_the_mean_over_all_nodes(tree: Tree, pairs: int) -> None:
    values = [
        evaluate(Plan(tree, 1 + 2 * pairs * (np.arange(tree.n_nodes) == node))).misclassification
        for node in range(tree.n_nodes)
    ]
    assert math.isclose(single_mean(tree, 2 * pairs), np.mean(values), rel_tol=1e-12)


def test_single_gives_all_to_one_node() -> None:
    tree = fig_4()
    seen = set()
    for seed in range(40):
        votes = staff(tree, workers=6, method="single", rng=seed).votes
        assert sorted(votes.tolist()) == [1, 1, 1, 7]
        seen.add(int(np.argmax(votes)))
    assert seen == set(range(tree.n_nodes))


def test_single_spends_answers_on_one_node() -> None:
    tree = fig_4()
    base = Plan(tree, [1] * 4).planned_answers
    np.testing.assert_allclose(tree.share, [1.0, 0.4, 0.2, 0.1])
    seen = {
        tuple(staff(tree, answers=base + 1.0, method="single", rng=seed).votes.tolist())
        for seed in range(40)
    }
    # a pair costs 2, 0.8, 0.4 and 0.2 answers; the last fits five times, up to rounding
    assert seen == {(1, 1, 1, 1), (1, 3, 1, 1), (1, 1, 5, 1), (1, 1, 1, 11)}


def test_random_spends_everything_evenly_on_average() -> None:
    tree = fig_4()
    generator = np.random.default_rng(7)
    draws = np.array(
        [staff(tree, workers=5, method="random", rng=generator).votes for _ in range(2_000)]
    )
    assert np.all(draws.sum(axis=1) == 4 + 5)
    assert set(np.unique(draws % 2)) == {0, 1}  # even votes occur
    # mean 1.25 extra per node; its standard error is sqrt(5 x 1/4 x 3/4 / 2000) = 0.022
    np.testing.assert_allclose(draws.mean(axis=0) - 1, 1.25, atol=5 * 0.022)


def test_random_spends_answers_until_nothing_fits() -> None:
    tree = fig_4()
    base = Plan(tree, [1] * 4).planned_answers
    for seed in range(10):
        plan = staff(tree, answers=base + 1.0, method="random", rng=seed)
        assert plan.planned_answers <= base + 1.0 + 1e-9
        assert plan.planned_answers + tree.share.min() > base + 1.0
    twice = [staff(tree, answers=base + 1.0, method="random", rng=3).votes for _ in range(2)]
    assert np.array_equal(*twice)


def test_random_spends_answers_on_a_rare_node_too() -> None:
    rare = 1e-9  # whose votes cost almost nothing: one draw at a time would take forever
    prior, outcome = [rare, rare, 1 - 2 * rare], [[0, 0, 1], [0, 1, 1]]
    problem = Problem(["a", "b", "c"], prior, ["q", "r"], outcome, 0.1)
    tree = Tree(problem, [0, 1], [[1, -1], [-1, -1]])
    plan = staff(tree, answers=3.5, method="random", rng=0)
    assert plan.votes[0] in (2, 3)
    assert 3.5 - 1e-8 <= plan.planned_answers <= 3.5 * (1 + 1e-9)


def test_everyone_answers_everything() -> None:
    tree = fig_4()
    assert staff(tree, workers=6, method="everyone").votes.tolist() == [7] * 4
    assert staff(tree, workers=3, method="everyone").votes.tolist() == [4] * 4
    base = Plan(tree, [1] * 4).planned_answers
    for extra, votes in ((0.0, 1), (1.99, 1), (2.0, 3), (3.5, 3), (4.0, 5)):
        plan = staff(tree, answers=base * (1 + extra), method="everyone")
        assert plan.votes.tolist() == [votes] * 4


@pytest.mark.parametrize("pool", ["node", "question"])
@pytest.mark.parametrize("method", sorted(STAFFERS))
@given(tree=trees(), budget=st.integers(0, 4))
@settings(max_examples=20)
def test_every_method_keeps_both_budgets(pool: str, method: str, tree: Tree, budget: int) -> None:
    teams = int(teams_of(tree, pool).max()) + 1
    plan = staff(tree, workers=2 * budget, method=method, pool=pool, rng=1)
    assert (plan.method, plan.pool) == (method, pool)
    if method == "everyone":
        assert plan.workers == teams * (2 * budget + 1)
    elif method in ("random", "single"):
        assert plan.workers == teams + 2 * budget
    else:
        assert plan.workers <= teams + 2 * budget
    answers = float(tree.share.sum()) * (1 + budget / 3)
    paid = staff(tree, answers=answers, method=method, pool=pool, rng=1)
    assert paid.planned_answers <= answers * (1 + 1e-9)
    if method != "random":
        assert np.all(paid.votes % 2 == 1)
    for team in range(teams):
        assert len(set(plan.votes[teams_of(tree, pool) == team])) == 1


@pytest.mark.parametrize("method", ["marginal", "paper-fm", "paper-fc"])
def test_votes_without_gain_are_not_bought(method: str) -> None:
    problem = Problem(["a", "b", "c"], None, ["q", "r"], [[0, 0, 1], [0, 1, 1]], [0.0, 0.3])
    plan = staff(Tree(problem, [0, 1], [[1, -1], [-1, -1]]), workers=10, method=method)
    assert plan.votes.tolist() == [1, 11]
    sure = ct.design(problem.replace(worker_error=0))
    assert staff(sure, workers=10, method=method).votes.tolist() == [1, 1]
    # 0.51 ** k is no number above 0 from k = 1,106 on
    poor = ct.design(problem.replace(worker_error=0.15))
    assert staff(poor, workers=10_000, method=method).votes.max() < 2_500


@pytest.mark.filterwarnings("ignore:worker_error")
@pytest.mark.parametrize("worst", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("method", ["marginal", "paper-fm", "paper-fc"])
def test_nodes_with_errors_above_one_half_get_no_extra_workers(method: str, worst: float) -> None:
    problem = Problem(["a", "b", "c"], None, ["q", "r"], [[0, 0, 1], [0, 1, 1]], [worst, 0.3])
    plan = staff(Tree(problem, [0, 1], [[1, -1], [-1, -1]]), workers=10, method=method)
    assert plan.votes.tolist() == [1, 11]


def test_either_pays_for_dashes_but_gains_nothing_there() -> None:
    problem = Problem(
        ["a", "b", "c"],
        [0.25, 0.25, 0.5],
        ["q", "r", "s"],
        [[0, 1, "-"], [0, 1, 1], [1, 1, 0]],
        0.2,
        dash="either",
    )
    tree = ct.design(problem, "random", order=[0, 1, 2])
    np.testing.assert_allclose(tree.share, [1.0, 0.5, 0.5])
    gain = float(voting.majority_gain(0.2, 0))
    before, after = (additive(Plan(tree, votes)) for votes in ([1, 1, 1], [3, 1, 1]))
    assert math.isclose(before - after, 0.5 * gain)  # c, half of all items, cannot err
    # per answer the root gains half as much as the two nodes below
    plan = staff(tree, answers=2.0 + 2.0)
    assert plan.votes.tolist() == [1, 3, 3]
    assert math.isclose(plan.planned_answers, 4.0)


def test_many_workers_and_tiny_errors() -> None:
    tree = fig_4()
    plan = staff(tree, workers=2_000)
    assert plan.votes.sum() == 2_004
    spread_of = plan.node_error
    assert 0 < spread_of.max() < 1e-50
    gains = voting.majority_gain(0.2, (plan.votes - 1) // 2) * tree.share
    last = voting.majority_gain(0.2, (plan.votes - 3) // 2) * tree.share
    assert gains.max() <= last.min() * (1 + 1e-9)  # no move improves it


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 4, "method": "best"}, "method: 'best' is unknown; choose from paper-fm"),
        ({"workers": 4, "pool": "level"}, 'pool: expected "node" or "question", got the text'),
        ({}, "staff: expected either workers (extra ones) or answers"),
        ({"workers": 4, "answers": 9.0}, "staff: expected either workers (extra ones) or answers"),
        ({"workers": -2}, "workers: expected a whole number from 0 to 10,000,000, got -2"),
        ({"workers": 2.5}, "workers: expected a whole number, got 2.5"),
        ({"workers": 10_000_002}, "workers: expected a whole number from 0 to 10,000,000"),
        ({"workers": float("nan")},
         "workers: expected a whole number, got nan"),
        ({"workers": float("inf")},
         "workers: expected a whole number, got inf"),
        ({"workers": "6"}, "workers: expected a whole number, got the text '6'"),
        ({"answers": 1.0}, "answers: expected at least 1.7 (one worker per node), got 1"),
        ({"answers": float("nan")}, "answers: expected a number of at most 10,000,000, got nan"),
        ({"answers": float("inf")}, "answers: expected a number of at most 10,000,000, got inf"),
        ({"answers": "few"}, "answers: expected a number, got the text 'few'"),
    ],
)  # fmt: skip
def test_refusals(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(CrowdtreeError) as caught:
        staff(fig_4(), **arguments)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("method", ["marginal", "paper-fm", "paper-fc", "single"])
def test_an_odd_worker_is_left_out_with_a_warning(method: str) -> None:
    with pytest.warns(CrowdtreeWarning, match=r"adds workers in pairs.*: uses 4 of 5"):
        plan = staff(fig_4(), 5, method, rng=1)
    assert plan.votes.tolist() == staff(fig_4(), 4, method, rng=1).votes.tolist()


def test_the_smallest_budgets_are_accepted() -> None:
    tree = fig_4()
    base = Plan(tree, [1] * 4).planned_answers
    for method in STAFFERS:
        assert staff(tree, workers=0, method=method).votes.tolist() == [1] * 4
        assert staff(tree, answers=base, method=method).votes.tolist() == [1] * 4
    assert staff(tree, workers=np.int64(2)).votes.sum() == 6
    assert staff(tree, workers=5, method="random").votes.sum() == 9


def test_scores_of_the_plan_are_those_of_the_fused_errors() -> None:
    plan = staff(fig_4(), workers=8, method="paper-fc")
    for before, after in itertools.pairwise(plan.levels):
        drop = before.entropy - after.entropy
        assert after.fm == pytest.approx(float(scores.additive_score(drop, after.g)))


def test_unknown_methods_are_answered_with_the_known_ones():
    with pytest.raises(ct.CrowdtreeError, match=f"choose from {', '.join(STAFFERS)}$"):
        ct.staff(ct.design(ct.example("table1")), 2, "nobody")


def test_the_largest_budgets_are_accepted_and_no_larger_ones():
    tree = ct.design(ct.example("table1"))
    assert ct.staff(tree, MAX_WORKERS, "everyone").votes.max() == MAX_WORKERS + 1
    assert ct.staff(tree, answers=MAX_WORKERS, method="everyone").votes.max() > 1000
    for wrong in ({"workers": MAX_WORKERS + 2}, {"answers": MAX_WORKERS + 2},
                  {"answers": -math.inf}):  # fmt: skip
        with pytest.raises(ct.CrowdtreeError, match="10,000,000"):
            ct.staff(tree, **wrong)


def test_an_odd_worker_is_of_no_use_to_a_single_node():
    tree = ct.design(ct.example("table1").replace(worker_error=0.2))
    assert single_mean(tree, 3) == single_mean(tree, 2) < single_mean(tree, 0)


@pytest.mark.parametrize("dependence", [0.0, 0.3])
def test_the_mean_over_random_staffing_agrees_with_all_draws(dependence):
    tree = ct.design(ct.example("table1").replace(worker_error=0.2, dependence=dependence))
    draws = itertools.product(range(tree.n_nodes), repeat=3)
    plans = [ct.Plan(tree, 1 + np.bincount(draw, minlength=tree.n_nodes)) for draw in draws]
    mean = np.mean([ct.evaluate(plan).misclassification for plan in plans])
    assert random_means(tree, 3)[-1] == pytest.approx(mean, rel=1e-12)


def test_questions_that_either_answer_suits_are_no_error_of_random_staffing():
    outcome = [[0, 0, 1, 1], [0, 1, -1, -1], [-1, -1, 0, 1]]
    problem = ct.Problem(list("abcd"), None, list("pqr"), outcome, 0.2, dash="either")
    tree = Tree.from_dict(problem, {
        "question": "q",
        "no": {"question": "p", "no": {"label": "a"},
               "yes": {"question": "r", "no": {"label": "c"}, "yes": {"label": "d"}}},
        "yes": {"question": "p", "no": {"label": "b"},
                "yes": {"question": "r", "no": {"label": "c"}, "yes": {"label": "d"}}},
    })  # fmt: skip
    assert random_means(tree, 0)[-1] == pytest.approx(
        ct.evaluate(tree).misclassification, rel=1e-12
    )


def test_a_source_that_answers_once_gets_no_votes() -> None:
    model = ct.Source("m", "model", price=0.1, worker_error=0.05)
    alone = ct.example("table1").replace(sources=[model])
    tree = ct.design(alone)
    assert staff(tree, 0).votes.tolist() == [1] * tree.n_nodes
    with pytest.raises(CrowdtreeError, match="'m' gives no new answer when asked again, so 3 vot"):
        staff(tree, 2)
    mixed = ct.design(alone.replace(sources=[ct.Source("people", worker_error=0.3), model]))
    with pytest.raises(CrowdtreeError, match=r"votes at 'T\d \(m\)' say no more than one"):
        staff(mixed, 20)
    again = ct.Source("m", "model", worker_error=0.05, repeatable=True)
    assert staff(ct.design(alone.replace(sources=[again])), 20).votes.max() > 1
