"""What it gains to say what mistakes cost: deadly confusions, plans, experts, and criteria.

``python -m benchmarks.loss --out docs/measured/losses.md`` writes that page's tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crowdtree as ct
from benchmarks.policy_docs import table, written
from crowdtree.policies import AdaptivePolicy, criteria
from crowdtree.simulation import simulate
from crowdtree.simulation.run import Run, share_estimate

MUSHROOMS = ct.example("mushrooms")
PLAIN = MUSHROOMS.replace(loss=None)
EDIBLE = ("champignon", "chanterelle", "porcini", "bay bolete", "parasol", "oyster mushroom")
DEADLY = ("death cap", "destroying angel", "deadly webcap")
TARGETS = (0.1, 0.05, 0.02, 0.01)
TUNED_ON, SEEDS = 20_000, range(100, 120)
WEIGHTS = (0.1, 0.25, 0.5, 1.0)


def places(names: tuple[str, ...]) -> list[int]:
    """Numbers of some classes."""
    return [MUSHROOMS.classes.index(name) for name in names]


def deadly(joint: NDArray[np.float64]) -> float:
    """Share of items that are deadly and called edible; `joint` is of class and label."""
    return float(joint[np.ix_(places(DEADLY), places(EDIBLE))].sum())


def wasted(joint: NDArray[np.float64]) -> float:
    """Share of items that are edible and called something else."""
    return float(joint[places(EDIBLE)].sum() - joint[np.ix_(places(EDIBLE), places(EDIBLE))].sum())


def cost(joint: NDArray[np.float64]) -> float:
    """Expected loss per item."""
    assert MUSHROOMS.loss is not None
    return float((joint * MUSHROOMS.loss.matrix).sum())


def tuned(answers: float) -> AdaptivePolicy:
    """Policy for the loss with slightly fewer answers per item, by bisection on the target."""
    low, high = 1e-4, 0.7
    for _ in range(12):
        middle = float(np.sqrt(low * high))
        policy = AdaptivePolicy(MUSHROOMS, target_loss=middle)
        run = simulate(MUSHROOMS, policy, TUNED_ON, rng=1)
        low, high = (middle, high) if run.answers_per_item > 0.993 * answers else (low, middle)
    return AdaptivePolicy(MUSHROOMS, target_loss=high)


def per_million(run: Run) -> str:
    """Deadly confusions per million items, with their interval."""
    found = share_estimate(round(deadly(run.confusion) * run.items), run.items)
    return f"{1e6 * found:.0f} ({1e6 * found.low:.0f} to {1e6 * found.high:.0f})"


def adaptive_rows(items: int) -> Iterator[list[str]]:
    """The adaptive policy with 0/1 loss and with the loss, at equal answers."""
    for target in TARGETS:
        before = simulate(PLAIN, AdaptivePolicy(PLAIN, target), items, rng=2)
        after = simulate(MUSHROOMS, tuned(float(before.answers_per_item)), items, rng=2)
        fall = deadly(before.confusion) / max(deadly(after.confusion), 1 / items)
        yield [
            f"{target:.0%}",
            *(f"{run.answers_per_item:.2f}" for run in (before, after)),
            *(per_million(run) for run in (before, after)),
            f"**{fall:.0f}**",
            *(f"{cost(run.confusion):.3f}" for run in (before, after)),
            *(f"{wasted(run.confusion):.2%}" for run in (before, after)),
        ]


def plan_rows() -> Iterator[list[str]]:
    """Plans of equal answers, exact."""
    plain, costly = ct.frontier(PLAIN, max_points=60), ct.frontier(MUSHROOMS, max_points=60)
    for answers in (20, 40):
        plans = {
            "tree `fm`, marginal, 0/1": ct.staff(ct.design(PLAIN), answers=answers),
            "tree `fm`, marginal, loss": ct.staff(ct.design(MUSHROOMS), answers=answers),
            "frontier, 0/1": plain.plan_for(answers=answers),
            "frontier, loss": costly.plan_for(answers=answers),
        }
        base = None
        for name, plan in plans.items():
            value = ct.evaluate(plan)
            joint = MUSHROOMS.prior[:, None] * value.confusion
            base = deadly(joint) if "0/1" in name else base
            fall = "" if "0/1" in name else f"**{base / max(deadly(joint), 1e-300):.1f}**"
            yield [
                name,
                f"{value.expected_answers:.1f}",
                f"{1e6 * deadly(joint):.1f}",
                fall,
                f"{cost(joint):.4f}",
                f"{wasted(joint):.2%}",
            ]


def expert_rows(items: int) -> Iterator[list[str]]:
    """An expert at several prices, at most 8 answers per item."""
    assert MUSHROOMS.loss is not None
    for refer in (None, 0.6, 0.3, 0.1):
        problem = MUSHROOMS.replace(loss={**MUSHROOMS.loss.to_dict(), "refer": refer})
        run = simulate(problem, AdaptivePolicy(problem, target_loss=0.05, max_answers=8), items, 3)
        plan = ct.evaluate(ct.staff(ct.design(problem), answers=20))
        yield [
            "none" if refer is None else f"{refer:g}",
            f"{run.risk:.3f}",
            f"{run.undecided:.1%}",
            f"{run.answers_per_item:.2f}",
            f"{plan.risk:.3f}",
            f"{plan.undecided:.1%}",
        ]


def random_problem(seed: int) -> ct.Problem:
    """A random problem with a loss of one of four kinds."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 20)), int(rng.integers(10, 25))
    outcome = rng.integers(0, 2, (m, n))
    while len(np.unique(outcome.T, axis=0)) < n:
        outcome = rng.integers(0, 2, (m, n))
    names = [f"c{k}" for k in range(n)]
    kinds: list[Any] = [
        {"groups": [names[: n // 2], names[n // 2 :]], "within": 0.05},
        {"never": [["c0", names[1:]]], "never_loss": 300},
        np.exp(rng.normal(0, 2, (n, n))) * (1 - np.eye(n)),
        {"groups": [names[k::4] for k in range(4)], "within": 0.0},
    ]
    return ct.Problem(
        names, rng.dirichlet(np.full(n, 2.0)), [f"q{k}" for k in range(m)], outcome,
        rng.uniform(0.05, 0.3, m), normalise=True, loss=kinds[seed % 4],
    )  # fmt: skip


def criterion_rows(items: int) -> Iterator[list[str]]:
    """Answers to an expected loss of 0.02, relative to asking by information."""
    named: list[tuple[str, Any, float]] = [
        *((f"loss, weight {w:g}", "loss", w) for w in WEIGHTS),
        ("accuracy (one step ahead)", "accuracy", 0.25),
        ("ec2", "ec2", 0.25),
    ]
    ratios: dict[str, list[float]] = {name: [] for name, _, _ in named}
    standard = criteria.LOSS_WEIGHT
    for seed in SEEDS:
        problem = random_problem(seed)

        def answers(criterion: Any, problem: ct.Problem = problem) -> float:
            policy = AdaptivePolicy(problem, target_loss=0.02, max_answers=300, criterion=criterion)
            return float(simulate(problem, policy, items, rng=4).answers_per_item)

        base = answers("information")
        for name, criterion, weight in named:
            criteria.LOSS_WEIGHT = weight
            ratios[name].append(answers(criterion) / base)
    criteria.LOSS_WEIGHT = standard
    for name, values in ratios.items():
        low, middle, high = np.quantile(values, [0.0, 0.5, 1.0])
        yield [name, f"{np.mean(values):.3f}", f"{middle:.3f}", f"{low:.3f} to {high:.3f}"]


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--items", type=int, default=1_000_000)
    chosen = parser.parse_args()
    both = ["0/1", "loss"]
    tables = {
        "adaptive": table(
            ["target error", *(f"answers, {x}" for x in both),
             *(f"deadly per million, {x} (95 %)" for x in both), "fall",
             *(f"mean loss, {x}" for x in both), *(f"edible thrown away, {x}" for x in both)],
            list(adaptive_rows(chosen.items)),
        ),
        "plans": table(
            ["plan", "answers", "deadly per million", "fall", "expected loss",
             "edible thrown away"],
            list(plan_rows()),
        ),
        "expert": table(
            ["price of the expert", "adaptive: loss", "referred", "answers", "plan: loss",
             "referred"],
            list(expert_rows(chosen.items // 10)),
        ),
        "criteria": table(
            ["criterion", "answers / information (mean)", "median", "range"],
            list(criterion_rows(chosen.items // 500)),
        ),
    }  # fmt: skip
    for name, content in tables.items():
        print(f"{name}\n{content}\n")
    if chosen.out is not None:
        page = chosen.out.read_text(encoding="utf-8")
        for name, content in tables.items():
            page = written(page, name, content)
        chosen.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
