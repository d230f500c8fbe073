"""Compare the mix of sources that `plan` chooses with every mix, each tuned to the goal.

    python -m benchmarks.mix_choice [--problems 20]

Random problems with people, two or three models (of different quality and price, one useless or
hostile in every other problem) and an expert, whose errors are independent or partly in common. In
every eighth problem there are only people and a useless model, in another people and a hostile one.
Every mix gets its own stopping threshold for the goal; the policies are simulated with the same
items. Then the chosen mix and people only are simulated again with other items.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import combinations
from typing import Any

import numpy as np

import crowdtree as ct
from crowdtree.core.bounds import checked_price
from crowdtree.designs.frontiers import Goal
from crowdtree.planning.adaptive_curve import AdaptiveCurve

ITEMS = 10_000
GOAL = 0.03


def random_problem(seed: int) -> ct.Problem:
    """A problem with a mixed crowd."""
    rng = np.random.default_rng(seed)
    classes, questions = int(rng.integers(3, 9)), int(rng.integers(4, 8))
    answers = [[f"answer {a}" for a in range(rng.integers(2, 5))] for _ in range(questions)]
    outcome = [rng.integers(0, len(names), classes).tolist() for names in answers]
    outcome[0] = [c % len(answers[0]) for c in range(classes)]
    cells = [[names[a] for a in row] for names, row in zip(answers, outcome, strict=True)]
    guess = np.array([1 - 1 / len(names) for names in answers])
    people = guess * rng.uniform(0.1, 0.4, questions)
    sources: list[Any] = [ct.Source("people")]
    for name in ("one", "two", "three")[: rng.integers(1, 4)]:
        error = guess * np.clip(rng.uniform(0.1, 0.7, questions), 0, 0.95)
        price = float(rng.uniform(0.01, 0.2))
        sources.append(ct.Source(name, "model", price=price, worker_error=error))
    if seed % 8 in (5, 7):
        sources = sources[:1]
    if seed % 4 == 1:
        sources.append(ct.Source("useless", "model", price=0.05, worker_error=guess))
    if seed % 4 == 3:
        hostile = np.minimum(0.97, guess + (1 - guess) * 0.8)
        sources.append(ct.Source("hostile", "model", price=0.05, worker_error=hostile))
    if len(sources) < 4 and seed % 8 not in (5, 7):
        sources.append(ct.Source("expert", "expert", price=6.0, worker_error=people / 5))
    return ct.Problem(
        [f"class {c}" for c in range(classes)],
        rng.dirichlet(np.full(classes, 4.0)),
        [f"question {q}" for q in range(questions)],
        cells,
        people,
        answers=answers,
        sources=sources,
        source_dependence=float(rng.choice([0.0, 0.3, 0.6])),
    )


def tuned_cost(problem: ct.Problem, mix: tuple[str, ...], seed: int) -> float:
    """Least cost of a mix for the goal; inf where it is out of reach."""
    prices = checked_price(None, problem)
    curve = AdaptiveCurve(problem, Goal(error=GOAL), prices, rng=seed, items=ITEMS, sources=mix)
    choice, _ = curve.best()
    return np.inf if choice is None else float(choice.performance.cost)


def row(seed: int) -> dict[str, Any] | None:
    """Compare one problem; None where the goal is out of reach of all."""
    problem = random_problem(seed)
    names = tuple(source.name for source in problem.sources)
    try:
        choices = ct.plan(problem, error=GOAL)
    except ct.CrowdtreeError:
        return None
    if choices.adaptive is None:
        return None
    mix = choices.mixes[0].sources
    every = [m for size in range(1, len(names) + 1) for m in combinations(names, size)]
    costs = {m: tuned_cost(problem, m, seed=1) for m in every}
    best = min(costs, key=lambda m: costs[m])
    again = ct.simulate(problem, choices.adaptive.policy, 20_000, rng=2)
    return {
        "seed": seed,
        "sources": len(names),
        "shared": problem.source_dependence,
        "chosen": " + ".join(mix),
        "best": " + ".join(best),
        "ratio": costs[mix] / costs[best],
        "to people": costs[mix] / costs[("people",)],
        "error": again.misclassification,
    }


def main() -> None:
    """Run the comparison and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=20)
    given = parser.parse_args()
    with warnings.catch_warnings(action="ignore"):
        rows = [found for seed in range(given.problems) if (found := row(seed)) is not None]
    lines = [
        "| problem | sources | errors in common | chosen mix | best mix | cost / best | "
        "cost / people only | error (95 %) |",
        "| ---: | ---: | ---: | --- | --- | ---: | ---: | --- |",
    ]
    lines += [
        f"| {r['seed']} | {r['sources']} | {r['shared']:.1f} | {r['chosen']} | {r['best']} | "
        f"{r['ratio']:.3f} | {r['to people']:.3f} | {100 * r['error']:.2f} % "
        f"({100 * r['error'].low:.2f} to {100 * r['error'].high:.2f}) |"
        for r in rows
    ]
    worst, people = max(r["ratio"] for r in rows), max(r["to people"] for r in rows)
    over = max(r["error"].low for r in rows)
    lines += [
        "",
        f"{len(rows)} problems; the chosen mix costs at most {worst:.3f} times the best of all "
        f"mixes and {people:.3f} times people only. The largest lower end of an interval of the "
        f"error is {100 * over:.2f} %, for a goal of {100 * GOAL:g} %.",
    ]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
