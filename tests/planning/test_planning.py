"""Plans for a goal, and the menu of plans of a new campaign."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import crowdtree as ct
from crowdtree import io as files
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.server.web.plan_menu import make_menu
from crowdtree.server.web.plans import read_menu
from crowdtree.server.web.worker_process import silent


@pytest.fixture(scope="module")
def animals():
    return make_menu(silent, files.example("animals"))


def test_every_choice_reaches_its_target(animals):
    for choice in animals.choices:
        assert choice.performance.error <= choice.target
    for kind in ("tree", "adaptive"):
        mine = [c for c in animals.choices if c.kind == kind]
        assert len(mine) > 3
        assert [c.target for c in mine] == sorted(c.target for c in mine)
        assert [c.performance.answers for c in mine] == sorted(
            (c.performance.answers for c in mine), reverse=True
        )


def test_every_choice_has_one_mark_on_the_chart(animals):
    keys = re.findall(r'data-choice="([^"]+)"', animals.chart)
    assert keys == [choice.key for choice in animals.choices]
    assert " style=" not in animals.chart
    assert "<style" not in animals.chart


def test_a_choice_is_found_again(animals):
    for choice in animals.choices:
        assert animals.nearest(choice.policy, choice.performance) is choice
        assert animals.get(choice.key) is choice
    with pytest.raises(CrowdtreeError, match="choose one"):
        animals.get("tree-7")
    assert isinstance(animals.get("adaptive-0.01").policy, AdaptivePolicy)
    assert isinstance(animals.get("tree-0.01").policy, PlanPolicy)


def test_plans_for_a_problem_with_a_loss_are_in_the_menu_by_expected_loss():
    problem = files.example("mushrooms")
    menu = make_menu(silent, problem)
    trees = [choice for choice in menu.choices if choice.kind == "tree"]
    assert len(trees) > 3
    for choice in trees:
        assert choice.performance.risk <= choice.target
    adaptive = [choice for choice in menu.choices if choice.kind == "adaptive"]
    assert all(choice.performance.risk <= choice.target for choice in adaptive)
    assert menu.first() in adaptive
    assert "expected loss per item" in menu.chart
    assert "Fano" not in menu.chart


class TestPlan:
    """``ct.plan``: the best policy for a goal."""

    def test_the_error_that_was_asked_for_is_kept_with_fewer_answers_than_any_tree(self):
        problem = files.example("animals")
        choices = ct.plan(problem, error=0.02)
        assert [c.kind for c in choices.choices] == ["adaptive", "tree"]
        assert choices.recommended.performance.error.high <= 0.02
        run = ct.simulate(problem, choices.policy, items=20_000, rng=3)
        assert run.misclassification.low <= 0.02
        assert choices.tree.performance.error <= 0.02
        assert choices.adaptive.performance.answers.high < choices.tree.performance.answers
        assert ct.evaluate(choices.fixed_plan).misclassification == pytest.approx(
            choices.tree.performance.error
        )

    def test_budgets_are_kept_and_answers_are_answers_also_with_prices(self):
        problem = files.example("table1")
        price = dict(zip(problem.questions, (5.0, 10.0, 20.0, 30.0, 40.0), strict=True))
        plain, priced = ct.plan(problem, answers=4), ct.plan(problem, answers=4, price=price)
        assert priced.recommended.performance.answers == plain.recommended.performance.answers <= 4
        assert priced.recommended.performance.cost > 10
        bought = ct.plan(problem, cost=40, price=price)
        for choice in bought.choices:
            assert choice.performance.cost <= 40
        assert bought.recommended.performance.error < 0.2

    def test_price_and_loss_are_weighed_against_each_other(self):
        problem = files.example("table1").replace(loss={"never": [["c1", "c4"]], "refer": 20.0})
        cheap, dear = (ct.plan(problem, cost=50, price=p) for p in (0.001, 0.1))
        for choices in (cheap, dear):
            both = [float(c.performance.cost + c.performance.risk) for c in choices.choices]
            assert both[0] == min(both)
        assert cheap.recommended.performance.risk < dear.recommended.performance.risk
        assert cheap.recommended.performance.answers > dear.recommended.performance.answers

    @pytest.mark.parametrize(
        ("goal", "says"),
        [
            ({}, "exactly one of error, answers, cost and max_loss, got 0"),
            ({"error": 0.1, "answers": 3}, "got 2"),
            ({"error": 1.5}, "expected a number between 0 and 1, got 1.5; 1.5 % is 0.015"),
            ({"error": 0}, "out of reach"),
            ({"answers": 0}, "above 0"),
            ({"answers": 0.5}, "too low"),
            ({"cost": 5}, "give the price"),
            ({"max_loss": 0.1}, "every mistake costs 1"),
            ({"cost": 5, "price": {"q1": 2.0}}, "missing; give every question a price"),
            ({"error": 0.1, "price": -1}, "positive"),
        ],
    )
    def test_bad_goals_are_refused_in_one_line(self, goal, says):
        problem = files.example("table1").replace(worker_error=0.2)
        problem = ct.Problem(
            problem.classes, problem.prior, [f"q{i}" for i in range(5)], problem.outcome, 0.2
        )
        with pytest.raises(CrowdtreeError, match=says) as error:
            ct.plan(problem, **goal)
        assert "\n" not in str(error.value)

    def test_a_tree_is_recommended_where_it_is_as_good(self):
        problem = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
        choices = ct.plan(problem, error=0.02)
        assert choices.recommended.kind == "tree"
        assert "as good" in choices.reason

    def test_classes_that_no_question_separates_are_refused_unless_allowed(self):
        problem = ct.Problem(["a", "b", "c"], [0.6, 0.39, 0.01], ["q"], [[0, 1, 1]], 0.1)
        with pytest.raises(CrowdtreeError, match="b"):
            ct.plan(problem, error=0.05)
        assert ct.plan(problem, error=0.05, allow_groups=True).policy.problem == problem

    def test_choices_are_saved_loaded_and_shown(self, tmp_path):
        choices = ct.plan(files.example("table1"), error=0.02, price=0.5)
        path = choices.save(tmp_path / "plan.json")
        again = ct.load(path)
        assert again == choices
        assert again.policy.to_dict() == choices.policy.to_dict()
        assert "\n" not in repr(choices)
        assert "<table>" in choices._repr_html_()
        assert choices.to_frame()["exact"].to_list() == [False, True]


def test_an_uploaded_plan_is_the_default_choice(tmp_path):
    choices = ct.plan(files.example("table1"), error=0.03)
    path = choices.save(tmp_path / "plan.json")
    menu = read_menu(silent, path.read_bytes(), "plan.json", {})
    assert menu.first().policy.to_dict() == choices.policy.to_dict()
    assert menu.nearest(choices.policy, choices.recommended.performance) is menu.first()
    tree = ct.design(files.example("table1"))
    ct.save(tree, tmp_path / "tree.json")
    menu = read_menu(silent, (tmp_path / "tree.json").read_bytes(), "tree.json", {})
    assert isinstance(menu.first().policy, PlanPolicy)


def test_a_budget_is_not_spent_where_it_gains_nothing() -> None:
    """With a cap of answers the tightest threshold asks about items that are decided."""
    problem = ct.example("table1").replace(worker_error=0.25)
    chosen = ct.plan(problem, answers=9, max_answers=9).recommended
    spends = ct.AdaptivePolicy(problem, 0.0, 9)
    run = ct.simulate(problem, spends, items=20_000, rng=0)
    assert chosen.performance.answers < 0.97 * run.answers_per_item
    assert chosen.performance.error <= 1.002 * run.stated_error


def test_votes_among_several_answers_are_no_majority() -> None:
    choices = ct.plan(ct.example("leaves"), error=0.05, max_answers=25)
    names = [choice.name for choice in choices.choices]
    assert "fixed tree, plurality votes" in names


def test_a_part_of_the_models_is_not_called_models_only() -> None:
    names = ["red", "brown", "white"]
    models = [ct.Source(name, "model", price=0.01, worker_error=0.1) for name in "mk"]
    problem = ct.Problem(list("abc"), None, ["cap"], [names], 0.1, answers=[names], sources=models)
    choices = ct.plan(problem, error=0.2)
    assert len(set(choices.mix_names)) == len(choices.mix_names) > 1
    assert "models only" not in choices.mix_names[1:] or ("m", "k") in [
        mix.sources for mix in choices.mixes[1:]
    ]
