"""A policy is never asked what it is: what callers need is part of the protocol."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import crowdtree as ct
from crowdtree.policies import POLICIES, Ask, BatchPolicy, Label, PlanPolicy, Policy, SubtypePolicy
from crowdtree.policies.calibrating import Calibrated

SOURCE = Path(ct.__file__).parent
CLASSES = {kind.__name__ for kind in POLICIES.values()} | {"Policy", "Guaranteed"}


def names(node: ast.AST) -> set[str]:
    """Last part of every name in an expression."""
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return found | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def asks_what_a_policy_is(text: str) -> list[int]:
    """Lines that test the class of a policy, or whether it has an attribute."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            kind = node.func.id
            classes = kind in ("isinstance", "issubclass") and names(node.args[1]) & CLASSES
            target = node.args[0]
            last = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if classes or (kind in ("getattr", "hasattr") and "policy" in last.lower()):
                lines.append(node.lineno)
        if isinstance(node, ast.Compare | ast.Match):
            typed = any(
                isinstance(part, ast.Call)
                and isinstance(part.func, ast.Name)
                and part.func.id == "type"
                for part in ast.iter_child_nodes(node)
            )
            if typed and names(node) & CLASSES:
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(x, PlanPolicy)",
        "isinstance(x, policy.AdaptivePolicy | Plan)",
        "type(x) is BatchPolicy",
        "getattr(policy, 'max_answers', None)",
        "hasattr(self.policy, 'pass_over')",
    ],
)
def test_the_search_finds_what_it_should(text):
    assert asks_what_a_policy_is(text) == [1]


def test_nobody_outside_asks_what_a_policy_is():
    found = {
        str(file.relative_to(SOURCE)): lines
        for file in SOURCE.rglob("*.py")
        if "policies" not in file.relative_to(SOURCE).parts[:-1]
        and (lines := asks_what_a_policy_is(file.read_text()))
    }
    assert found == {}, "add what is needed to crowdtree.policies.base.Policy instead"


def policies():
    problem = ct.example("table1")
    label = range(problem.n_classes)
    yield PlanPolicy(ct.design(problem))
    yield ct.AdaptivePolicy(problem)
    yield BatchPolicy(problem)
    yield SubtypePolicy(
        problem,
        label=list(label),
        share=problem.prior,
        table=[[0.5 + 0.4 * (-1) ** (c + q) for c in label] for q in range(5)],
    )


@pytest.mark.parametrize("policy", list(policies()), ids=lambda policy: type(policy).__name__)
def test_every_policy_has_all_of_the_protocol(policy):
    for name in vars(Policy):
        if not name.startswith("_"):
            getattr(policy, name)
    assert (policy.kind == "tree") == (policy.plan is not None) == (policy.evaluated() is not None)
    assert (policy.node(policy.start()) is None) == (policy.plan is None)
    assert set(policy.ask(policy.start()).questions) <= set(policy.questions_used())


class OneQuestion(Calibrated):
    """Ask the first question once."""

    def __init__(self, problem):
        self.problem = problem

    def start(self):
        return None

    def wants(self, state, question):
        return state is None and question == 0

    def update(self, state, answer):  # noqa: ARG002
        return answer.value

    def ask(self, state, outstanding=(), exclude=()):  # noqa: ARG002
        return Ask((0,)) if state is None else self.conclude(state, "questions")

    def conclude(self, state, reason):  # noqa: ARG002
        return Label(0, 0.5, reason)

    def posterior(self, state):  # noqa: ARG002
        return self.problem.prior


def test_a_policy_of_ones_own_needs_six_methods():
    problem = ct.example("table1")
    assert ct.simulate(problem, OneQuestion(problem), items=10).answers_per_item == 1
    assert ct.explain(OneQuestion(problem), {"T1": "no"}).label == problem.classes[0]
    with pytest.raises(ct.CrowdtreeError, match="expected a policy"):
        ct.simulate(problem, object())


def test_a_policy_of_the_tree_names_its_questions_in_order():
    tree = ct.design(ct.example("table1"))
    assert PlanPolicy(tree).questions_used() == tuple(dict.fromkeys(tree.question.tolist()))
