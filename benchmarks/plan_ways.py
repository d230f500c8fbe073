"""All ways through the tool to a plan, at equal error and at equal answers.

``python benchmarks/plan_ways.py`` prints the two tables of docs/measured/policies.md in about a
minute, and exits with 1 if a way is better than ``plan`` beyond the interval of the simulation.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import crowdtree as ct
from crowdtree.simulation import Estimate

ERROR = 0.01
WASTE = {
    "shiny": (0.1, [1, 1, 0, 0]),
    "clear": (0.05, [1, 0, 0, 0]),
    "rots": (0.1, [0, 0, 0, 1]),
}


def waste() -> ct.Problem:
    """The table of the first five minutes."""
    return ct.Problem(
        ["glass", "metal", "paper", "food"],
        [0.2, 0.15, 0.35, 0.3],
        list(WASTE),
        [cells for _, cells in WASTE.values()],
        [error for error, _ in WASTE.values()],
    )


def generated(classes: int, questions: int, low: float, high: float, seed: int) -> ct.Problem:
    """A separable table with classes of unequal share."""
    rng = np.random.default_rng(seed)
    while True:
        problem = ct.Problem(
            [f"c{i}" for i in range(classes)],
            rng.dirichlet(np.full(classes, 2.0)),
            [f"q{i}" for i in range(questions)],
            rng.integers(0, 2, (questions, classes)),
            rng.uniform(low, high, questions),
        )
        if len({tuple(column) for column in problem.outcome.T}) == classes:
            return problem


def problems() -> Iterator[tuple[str, ct.Problem]]:
    """Yield the five examples."""
    yield "waste (4 classes, 3 questions)", waste()
    yield "table1 (5, 5)", ct.example("table1")
    yield "animals (20, 29)", ct.example("animals")
    yield "like tickets (12, 14)", generated(12, 14, 0.05, 0.2, 3)
    yield "like mushrooms (30, 24)", generated(30, 24, 0.08, 0.25, 4)


def exact(value: float) -> Estimate:
    """A number without an interval."""
    return Estimate(value, value, value)


def of_plan(plan: ct.Plan) -> tuple[Estimate, Estimate]:
    """Exact error and answers of a plan."""
    value = ct.evaluate(plan)
    return exact(value.misclassification), exact(value.expected_answers)


def staffed(problem: ct.Problem, keeps: Callable[[ct.Evaluation], bool], last: bool) -> ct.Plan:
    """Staff the paper's tree by margins: the first plan that keeps a limit, or the last."""
    tree, best = ct.design(problem), None
    for workers in range(0, 100 * tree.n_nodes, 2):
        plan = ct.staff(tree, workers=workers)
        if keeps(ct.evaluate(plan)):
            best = plan
            if not last:
                break
        elif last:
            break
    if best is None:
        raise ct.CrowdtreeError("staff: out of reach")
    return best


def performance(choices: ct.PlanChoices) -> tuple[Estimate, Estimate]:
    """Error and answers of the recommended choice."""
    found = choices.recommended.performance
    return found.error, found.answers


def tuned(problem: ct.Problem) -> tuple[Estimate, Estimate]:
    """The adaptive policy as `simulate` has it: it stops at the error that was asked for."""
    run = ct.simulate(problem, ct.AdaptivePolicy(problem, ERROR, max_answers=200), items=20_000)
    return run.stated_error, run.answers_per_item


def ways(problem: ct.Problem, **goal: float) -> Iterator[tuple[str, Callable[[], tuple]]]:
    """Yield every way with what it makes for an error or for a number of answers."""
    if "error" in goal:
        staff = lambda: staffed(problem, lambda v: v.misclassification <= ERROR, False)  # noqa: E731
    else:
        budget = goal["answers"]
        staff = lambda: staffed(problem, lambda v: v.expected_answers <= budget, True)  # noqa: E731
    yield "staff", lambda: of_plan(staff())
    for vote in ("majority", "margin"):
        yield (
            f"frontier, {vote}",
            lambda vote=vote: of_plan(
                ct.frontier(problem, vote, max_votes=25 if vote == "margin" else 51, time_limit=3)
                .select(**goal, time_limit=3)
                .plan
            ),
        )
    if "error" in goal:
        yield "adaptive, untuned", lambda: tuned(problem)
    yield "plan", lambda: performance(ct.plan(problem, **goal))


def main() -> int:
    """Print both tables; return 1 if `plan` loses anywhere."""
    lost = 0
    budgets: dict[str, float] = {}
    for by in ("error", "answers"):
        names: list[str] = []
        for name, problem in problems():
            goal = {"error": ERROR} if by == "error" else {"answers": budgets[name]}
            row: dict[str, tuple[Estimate, Estimate] | None] = {}
            for way, make in ways(problem, **goal):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        row[way] = make()
                    except ct.CrowdtreeError:
                        row[way] = None
            if not names:
                names = list(row)
                head = "answers at 1 % wrong" if by == "error" else "wrong at equal answers"
                print(f"\n| {head} | " + " | ".join(names) + " |")
                print("|---" * (len(names) + 1) + "|")
            cells = []
            for found in row.values():
                if found is None:
                    cells.append("out of reach")
                elif by == "error":
                    cells.append(f"{float(found[1]):.3g}")
                else:
                    cells.append(f"{100 * float(found[0]):.3g} %")
            budget = "" if by == "error" else f", {budgets[name]:.3g} answers"
            print(f"| {name}{budget} | " + " | ".join(cells) + " |", flush=True)
            mine = row["plan"]
            assert mine is not None
            if by == "error":
                budgets[name] = math.ceil(float(mine[1]) * 10) / 10
            place = 1 if by == "error" else 0
            for way, found in row.items():
                if found is not None and found[place].high < mine[place].low * (1 - 1e-9):
                    print(f"{name}: {way} is better than plan", file=sys.stderr)
                    lost = 1
    return lost


if __name__ == "__main__":
    raise SystemExit(main())
