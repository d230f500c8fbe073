"""Monitors and revised tables where questions have several answers, and people may not know."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.core.likelihood import UNSURE
from crowdtree.policies import AdaptivePolicy, Answer, PlanPolicy, SubtypePolicy
from crowdtree.policies.monitor import Monitor, Revision
from crowdtree.policies.revising import Gathered, estimate, revised, table_of, with_error
from crowdtree.simulation import Crowd, simulate

CAP = ["red", "brown", "white"]
GILLS = ["free", "grown", "none", "pores"]


def mushrooms(error: float | list[float] = 0.1, **options) -> ct.Problem:
    return ct.Problem(
        ["fly", "bay", "field", "honey"],
        [0.4, 0.2, 0.2, 0.2],
        ["cap", "gills", "ring"],
        [["red", "brown", "white", "brown|red"], ["free", "pores", "free", "grown"], [1, 0, 1, 1]],
        error,
        answers=[CAP, GILLS, ["no", "yes"]],
        **options,
    )


def answers_about(problem: ct.Problem, items: int, per_question: int, seed: int = 0):
    """Classes of items, and answers to every question about them, drawn from the table alone."""
    rng = np.random.default_rng(seed)
    model = table_of(AdaptivePolicy(problem, strict=False)).model
    truths = rng.choice(problem.n_classes, items, p=problem.prior)
    items_said = []
    for truth in truths.tolist():
        said: list[Answer] = []
        for question in np.tile(np.arange(problem.n_questions), per_question).tolist():
            value = rng.choice(model.slots, p=model.table[0, :, question, truth])
            said.append(Answer(question, UNSURE if value == model.slots - 1 else int(value)))
        items_said.append(said)
    return truths, items_said


@pytest.mark.parametrize("unsure", [None, 0.2])
@pytest.mark.parametrize("dependence", [0.0, 0.3])
def test_evidence_has_expectation_one_under_the_table(dependence, unsure):
    problem = ct.Problem(
        ["a", "b", "c"], [0.5, 0.3, 0.2], ["cap", "q"],
        [["red", "brown|white", "white"], [0, 1, "-"]], [0.1, 0.25],
        answers=[CAP, ["no", "yes"]], dependence=dependence, unsure=unsure,
    )  # fmt: skip
    policy = AdaptivePolicy(problem, strict=False)
    plan = [("x", 0), ("y", 1), ("x", 0), ("y", 0), ("x", 1)]
    known = [UNSURE] if unsure else []
    total = mean = 0.0
    choices = [[*range(problem.n_answers[question]), *known] for _, question in plan]
    for values in itertools.product(*choices):
        monitor, said = Monitor(policy), dict[str, list[Answer]]()
        for (item, question), value in zip(plan, values, strict=True):
            monitor.observe(item, Answer(question, value))
            said.setdefault(item, []).append(Answer(question, value))
        logs = Gathered.of(said.values(), 4).log_likelihood(monitor.table.model)
        joint = np.logaddexp.reduce(np.log(monitor.table.prior) + logs, axis=1)
        chance = float(np.exp(joint.sum()))
        total += chance
        mean += chance * monitor.evidence
    assert total == pytest.approx(1, abs=1e-7)  # what nobody says has a chance of 1e-9
    assert mean == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("unsure", [None, 0.15])
@pytest.mark.parametrize("factor", [1.0, 2.5])
def test_errors_are_estimated_from_answers(factor, unsure):
    assumed, true = mushrooms(0.1, unsure=unsure), mushrooms(0.1 * factor, unsure=unsure)
    table = table_of(AdaptivePolicy(assumed, strict=False))
    truths, said = answers_about(true, 300, 3)
    found = estimate(table, Gathered.of(said, table.model.slots))
    for question in range(3):
        assert found.error(found.table, question) == pytest.approx(0.1 * factor, abs=0.04)
    assert found.table.prior == pytest.approx(np.bincount(truths) / 300, abs=0.04)
    telling = found.table.model.telling
    assert telling.sum(axis=0) == pytest.approx(np.full((3, 4), 1 - (unsure or 0)), abs=1e-9)


def test_a_campaign_with_a_wrong_question_names_it_and_revises():
    assumed, true = mushrooms(0.05), mushrooms([0.05, 0.45, 0.05])
    policy = AdaptivePolicy(assumed, 0.05)
    as_assumed = simulate(assumed, policy, 150, crowd=Crowd(problem=true), adapt=False)
    run = simulate(assumed, policy, 150, crowd=Crowd(problem=true), adapt=True)
    assert run.adaptation.revisions
    assert run.adaptation.findings[0].name == "gills"
    assert abs(run.misclassification - run.stated_error) < 0.6 * abs(
        as_assumed.misclassification - as_assumed.stated_error
    )


@pytest.mark.parametrize("kind", ["adaptive", "plan", "subtypes", "unsure"])
def test_every_policy_is_revised_to_the_table(kind):
    problem = mushrooms(0.1, unsure=0.1 if kind == "unsure" else None)
    policy = {
        "adaptive": lambda: AdaptivePolicy(problem, 0.05),
        "unsure": lambda: AdaptivePolicy(problem, 0.05),
        "plan": lambda: PlanPolicy(ct.staff(ct.design(problem), 12)),
        "subtypes": lambda: SubtypePolicy(
            problem, label=[0, 0, 1, 2, 3], share=[0.2] * 5,
            table=_random_table(problem.n_answers, 5),
        ),
    }[kind]()  # fmt: skip
    table = table_of(policy)
    found = estimate(
        table, Gathered.of(answers_about(mushrooms(0.3), 100, 2)[1], table.model.slots)
    )
    revision = Revision(600, "alarm", json.loads(json.dumps(found.table.to_dict())))
    made = table_of(revision.apply(policy))
    np.testing.assert_allclose(made.model.telling, found.table.model.telling, atol=1e-8)
    np.testing.assert_allclose(made.prior, found.table.prior, atol=1e-12)
    if kind != "subtypes":  # which have no dependence
        assert made.model.shared_difficulty == found.table.model.shared_difficulty
    assert type(revised(policy, found.table)) is type(policy)


def _random_table(counts, subtypes: int):
    rng, table = np.random.default_rng(0), np.zeros((max(counts), len(counts), subtypes))
    for question, count in enumerate(counts):
        table[:count, question] = rng.dirichlet(np.ones(count), subtypes).T
    return table


def test_another_error_keeps_proportions_and_cells_without_an_error():
    telling = np.array([[0.6, 0.5], [0.3, 0.3], [0.1, 0.2]])
    right = np.array([[True, True], [False, True], [False, True]])
    made = with_error(telling, right, np.array([0.2, 0.2]))
    np.testing.assert_allclose(made, [[0.8, 0.5], [0.15, 0.3], [0.05, 0.2]])


def test_answers_without_a_probability_change_nothing():
    monitor = Monitor(AdaptivePolicy(mushrooms()))
    for value in (0, UNSURE, 0):
        monitor.observe("x", Answer(0, value))
    plain = Monitor(AdaptivePolicy(mushrooms()))
    for value in (0, 0):
        plain.observe("x", Answer(0, value))
    assert monitor.evidence == plain.evidence
