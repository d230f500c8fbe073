"""Designers on questions with any number of answers, against slow direct solvers."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import crowdtree as ct
from crowdtree.designs.designers import DESIGNERS
from crowdtree.designs.designers.optimal import LESS_MISCLASSIFIED
from tests.several import additive_value, greedy_tree, random_problem, splitting
from tests.several_problems import all_trees
from tests.strategies import problems

pytestmark = pytest.mark.filterwarnings("ignore::crowdtree.CrowdtreeWarning")
KINDS = {
    "one answer": {},
    "several answers": {"several": 0.3},
    "either": {"several": 0.1, "dashes": 0.2, "dash": "either"},
    "yes/no either": {"dashes": 0.3, "dash": "either", "answers": 2},
    "inapplicable": {"several": 0.2, "dashes": 0.1, "error_free": 0.3},
    "error-free": {"several": 0.2, "error_free": 0.5},
    "loss": {"several": 0.2, "dashes": 0.1, "dash": "either", "loss": True},
    "can't tell": {"several": 0.2, "unsure": True},
}


def drawn(kind, seed, classes=(2, 6), questions=(1, 6)):
    """Random problem of a kind that some question splits, or None."""
    rng = np.random.default_rng([seed, *kind.encode()])
    sizes = int(rng.integers(*classes, endpoint=True)), int(rng.integers(*questions, endpoint=True))
    problem = random_problem(rng, *sizes, **KINDS[kind])
    return problem if splitting(problem, tuple(range(problem.n_classes))) else None


def close(one, two):
    return one == pytest.approx(two, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_optimal_is_the_best_of_all_trees(kind):
    tried = 0
    for seed in range(40):
        problem = drawn(kind, seed)
        if problem is None:
            with pytest.raises(ct.CrowdtreeError, match="no question splits"):
                ct.design(drawn_anyway(kind, seed), "optimal", allow_groups=True)
            continue
        tried += 1
        tree = ct.design(problem, "optimal", objective="additive", allow_groups=True)
        proof = ct.verify(tree)
        least = additive_value(problem)
        assert (proof.status, proof.gap) == ("optimal", 0.0)
        assert close(proof.value, least), (kind, seed)
        assert close(ct.evaluate(tree).additive_risk, least)
    assert tried >= 25


def drawn_anyway(kind, seed):
    rng = np.random.default_rng([seed, *kind.encode()])
    sizes = int(rng.integers(2, 6, endpoint=True)), int(rng.integers(1, 6, endpoint=True))
    return random_problem(rng, *sizes, **KINDS[kind])


@pytest.mark.parametrize("kind", ["one answer", "either", "loss"])
def test_a_stopped_search_brackets_the_optimum(kind):
    gaps = []
    for seed in range(12):
        problem = drawn(kind, seed, classes=(6, 6), questions=(6, 8))
        if problem is None:
            continue
        least = additive_value(problem)
        for limit in ({"node_limit": 1}, {"node_limit": 6}, {"gap_limit": 0.3}, {"time_limit": 0}):
            tree = ct.design(problem, "optimal", objective="additive", allow_groups=True, **limit)
            proof = ct.verify(tree)
            assert proof.lower_bound <= least * (1 + 1e-10)
            assert proof.value >= least * (1 - 1e-10)
            assert proof.status in ("optimal", next(iter(limit)).replace("_", " "))
            gaps.append(proof.gap)
            for method in ("fm", "fc"):
                greedy = ct.evaluate(ct.design(problem, method, allow_groups=True))
                assert proof.value <= greedy.additive_risk * (1 + 1e-12)
    assert max(gaps) > 0


def test_without_an_objective_nothing_greedy_misclassifies_less():
    better = 0
    for seed in range(40):
        problem = drawn("several answers", seed, classes=(5, 8), questions=(5, 8))
        if problem is None:
            continue
        tree = ct.design(problem, "optimal", allow_groups=True)
        ct.verify(tree)
        better += tree.certificate.status == LESS_MISCLASSIFIED
        for method in ("fm", "fc"):
            greedy = ct.design(problem, method, allow_groups=True)
            wrong = ct.evaluate(greedy).misclassification
            assert ct.evaluate(tree).misclassification <= wrong * (1 + 1e-9)
    assert better


def test_states_that_were_evicted_are_solved_again(monkeypatch):
    from crowdtree.designs.designers import parts_search

    forgotten = []
    forget = parts_search.PartsSearch._forget
    monkeypatch.setattr(parts_search, "ENTRY_BYTES", 25_000)
    monkeypatch.setattr(
        parts_search.PartsSearch, "_forget", lambda search: (forgotten.append(1), forget(search))
    )
    for seed in range(4):
        problem = random_problem(np.random.default_rng(seed), 7, 7, (2, 4), several=0.2)
        tree = ct.design(
            problem, "optimal", objective="additive", allow_groups=True, memory_limit=1e6
        )
        assert close(tree.certificate.value, additive_value(problem))
    assert forgotten


def test_progress_is_reported(monkeypatch):
    from crowdtree.designs.designers import parts_search

    monkeypatch.setattr(parts_search, "REPORT_SECONDS", 0.0)
    reports = []
    problem = random_problem(np.random.default_rng(3), 8, 8, (2, 4), several=0.2)
    tree = ct.design(
        problem,
        "optimal",
        objective="additive",
        allow_groups=True,
        progress=lambda *report: reports.append(report),
    )
    value, lower, nodes = reports[-1]
    assert value >= tree.certificate.value * (1 - 1e-12) >= lower * (1 - 1e-9)
    assert 0 < nodes <= tree.certificate.nodes


def misclassifications(problem, most=3000):
    """Misclassification of every tree, or None where there are too many to try."""
    trees = list(itertools.islice(all_trees(problem), most))
    return [ct.evaluate(tree).misclassification for tree in trees] if len(trees) < most else None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "loss"])
def test_the_exact_objective_is_the_best_of_all_trees(kind):
    tried = 0
    for seed in range(40):
        problem = drawn(kind, seed, classes=(3, 5), questions=(2, 3))
        every = misclassifications(problem) if problem is not None else None
        if not every:
            continue
        tried += 1
        tree = ct.design(problem, "optimal", objective="exact", allow_groups=True)
        proof = ct.verify(tree)
        assert (proof.objective, proof.status, proof.gap) == ("exact", "optimal", 0.0)
        assert close(proof.value, min(every)), (kind, seed)
        assert close(ct.evaluate(tree).misclassification, min(every))
    assert tried >= 15


def test_votes_for_answers_that_no_class_has_count_in_the_exact_objective():
    """Three answers of which two are left: the third vote goes to the likelier branch."""
    cells = [["a", "b", "a", "b"], ["a", "a", "b", "b"], ["a", "b", "c", "c"]]
    names = [["a", "b", "c"]] * 3
    error = [[0.3, 0.3, 0.3, 0.3], [0.3, 0.2, 0.3, 0.2], [0.35, 0.35, 0.25, 0.25]]
    problem = ct.Problem(
        list("wxyz"), [0.4, 0.3, 0.2, 0.1], list("pqr"), cells, error, answers=names
    )
    tree = ct.design(problem, "optimal", objective="exact")
    assert close(tree.certificate.value, min(misclassifications(problem)))
    assert tree.certificate.value < ct.design(problem, "optimal").certificate.value


@pytest.mark.parametrize("kind", ["one answer", "several answers", "can't tell"])
def test_a_stopped_search_brackets_the_least_misclassification(kind):
    gaps = []
    for seed in range(8):
        problem = drawn(kind, seed, classes=(5, 6), questions=(5, 6))
        if problem is None:
            continue
        least = ct.design(problem, "optimal", objective="exact", allow_groups=True).certificate
        assert least.status == "optimal"
        for limit in ({"node_limit": 2}, {"node_limit": 12}, {"gap_limit": 0.3}, {"time_limit": 0}):
            tree = ct.design(problem, "optimal", objective="exact", allow_groups=True, **limit)
            proof = ct.verify(tree)
            assert proof.lower_bound <= least.value * (1 + 1e-10)
            assert proof.value >= least.value * (1 - 1e-10)
            assert proof.status in ("optimal", next(iter(limit)).replace("_", " "))
            gaps.append(proof.gap)
    assert max(gaps) > 0


def test_an_error_of_one_is_legal_in_the_exact_objective():
    cells = [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]]
    problem = ct.Problem(list("wxyz"), None, list("pqr"), cells, [1.0, 0.2, 0.5])
    tree = ct.design(problem, "optimal", objective="exact")
    assert close(tree.certificate.value, min(misclassifications(problem)))


def test_equal_errors_make_few_states():
    """Where all classes of a set arrive in equal shares, the set alone is the state."""
    from crowdtree.designs.designers.parts_search import PartsSearch

    rng = np.random.default_rng(1)
    outcome = rng.integers(0, 2, (8, 8)).astype(np.int8)
    named = [[f"c{i}" for i in range(8)], None, [f"q{i}" for i in range(8)], outcome]
    nodes = []
    for error in (np.full(8, 0.1), rng.uniform(0.09, 0.11, (8, 8))):
        search = PartsSearch(ct.Problem(*named, error))
        search.solve(1.0)
        assert search.status == "optimal"
        nodes.append(len({key[0] for key in search.states}) / len(search.states))
    assert nodes[0] == 1.0 > nodes[1]


@pytest.mark.parametrize("method", ["fm", "fc", "gain", "gini"])
@pytest.mark.parametrize("kind", ["one answer", "several answers", "either", "inapplicable"])
def test_greedy_designers_choose_each_level_jointly(kind, method):
    tried = 0
    for seed in range(15):
        problem = drawn(kind, seed, classes=(3, 6), questions=(3, 5))
        if problem is None or (problem.worker_error == 0).any():
            continue
        tried += 1
        tree = ct.design(problem, method, allow_groups=True)
        levels = [tuple(tree.question[nodes].tolist()) for nodes in tree.by_level]
        assert levels == greedy_tree(problem, method), (kind, seed)
    assert tried >= 4


def test_a_given_order_is_followed():
    for seed in range(20):
        problem = drawn("several answers", seed)
        if problem is None:
            continue
        order = np.random.default_rng(seed).permutation(problem.n_questions)
        tree = ct.design(problem, "random", order=order, allow_groups=True)
        for node in tree.nodes:
            members = tuple(problem.classes.index(name) for name in node.classes)
            can = [q for q, _ in splitting(problem, members)]
            first = next(q for q in order.tolist() if q in can)
            assert problem.questions[first] == node.question


@settings(max_examples=25, deadline=None)
@given(problems(classes=(2, 5), questions=(1, 5)))
def test_names_of_two_answers_change_nothing(problem):
    named = problem.replace(answers=[("left", "right")] * problem.n_questions)
    for method in DESIGNERS:
        plain, other = (outcome(method, p) for p in (problem, named))
        assert type(plain) is type(other)
        if isinstance(plain, str):
            assert plain == other
            continue
        assert plain.question.tolist() == other.question.tolist()
        assert plain.children.tolist() == other.children.tolist()
        assert plain.certificate == other.certificate
        assert ct.evaluate(plain).misclassification == ct.evaluate(other).misclassification


def outcome(method, problem):
    """Tree of a designer, or its refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ct.design(problem, method, allow_groups=True)
        except ct.CrowdtreeError as error:
            return str(error)


def test_yes_no_by_parts_is_as_good_as_the_compiled_search():
    from crowdtree.designs.designers.parts_search import PartsSearch, one_vote_error

    for seed in range(15):
        problem = random_problem(np.random.default_rng(seed), 9, 9, 2, loss=seed % 3 == 0)
        tree = ct.design(problem, "optimal", objective="additive", allow_groups=True)
        search = PartsSearch(problem, one_vote_error(problem))
        shape = search.solve(2 * tree.certificate.value)
        assert search.status == "optimal"
        assert close(shape.value, tree.certificate.value)


def test_stakes_count_labels_of_every_wrong_branch():
    loss = [[0, 1, 9, 4], [1, 0, 2, 3], [5, 6, 0, 7], [1, 1, 1, 0]]
    cells = [["a|b", "b|c", "c", "a"]]
    problem = ct.Problem(list("wxyz"), None, ["q"], cells, 0.1, answers=[list("abc")], loss=loss)
    # w errs to c (x or y); x to a (w or z); y to a or b (w, x, z); z to b or c (w, x, y)
    stakes = problem.loss.stakes(problem.right_sets, np.arange(4))
    assert stakes.tolist() == [[9, 3, 7, 1]]


def test_classes_with_equal_right_answers_are_refused():
    cells = [["a|b", "b|a", "c", "-"], ["a", "a", "b", "c"]]
    names = [list("abc")] * 2
    problem = ct.Problem(list("wxyz"), None, ["p", "q"], cells, 0.1, answers=names, dash="either")
    with pytest.raises(ct.CrowdtreeError, match=r"no question separates \{w, x\}"):
        ct.design(problem, "optimal")
