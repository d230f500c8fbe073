"""Answers per item at equal misclassification: adaptive policies, trees, plans and the floor.

Every number is computed in this run. ``python -m benchmarks.policy_compare [--items 20000]``
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable

import numpy as np

import crowdtree as ct
from benchmarks.realdata import awa2
from crowdtree.core.bounds import fano_floor
from crowdtree.designs.frontiers import frontier
from crowdtree.learning.dawid_skene import fit_dawid_skene
from crowdtree.learning.passes import Votes
from crowdtree.policies import AdaptivePolicy, BatchPolicy, expected_answers
from crowdtree.policies.walk import Round
from crowdtree.simulation import (
    Crowd,
    Run,
    simulate,
    simulate_dawid_skene,
    tune_target,
)

ERROR = 0.01


def random_problem(number: int) -> ct.Problem:
    """5 to 20 classes, twice as many questions, one error per question from 0.1 to 0.3."""
    rng = np.random.default_rng((2018, number))
    classes = 5 + round(15 * number / 19)
    questions = 2 * classes
    while True:
        outcome = rng.integers(0, 2, (questions, classes))
        if len(np.unique(outcome, axis=1).T) == classes:
            break
    return ct.Problem(
        [f"c{i}" for i in range(classes)],
        rng.dirichlet(np.full(classes, 5.0)),
        [f"q{i}" for i in range(questions)],
        outcome,
        rng.uniform(0.1, 0.3, questions),
    )


def at_error(points: Iterable[tuple[float, float]], error: float) -> float:
    """Cost at exactly this error, log-linear between the plans around it (kind to the plans)."""
    before = None
    for wrong, cost in points:
        if wrong <= error:
            if before is None or before[0] == wrong:
                return cost
            share = np.log(before[0] / error) / np.log(before[0] / wrong)
            return float(before[1] + share * (cost - before[1]))
        before = (wrong, cost)
    return float("nan")


def staffed(tree: ct.Tree, method: str) -> Iterable[tuple[float, ct.Plan]]:
    """Plans with more and more workers."""
    for pairs in range(2000):
        plan = ct.staff(tree, workers=2 * pairs, method=method)
        yield ct.evaluate(plan).misclassification, plan


def paper(problem: ct.Problem, error: float) -> tuple[float, ct.Plan]:
    """Answers of the paper's tree with Algorithm 1, and its first plan that is good enough."""
    costs, last = [], None
    for wrong, plan in staffed(ct.design(problem, "fm"), "paper-fm"):
        costs.append((wrong, ct.evaluate(plan).expected_answers))
        last = plan
        if wrong <= error:
            break
    assert last is not None
    return at_error(costs, error), last


def best_plan(problem: ct.Problem, error: float, vote: str, seconds: float) -> tuple[float, bool]:
    """Answers of the co-designed frontier plan, and whether the points around are proven."""
    front = frontier(problem, vote, max_points=200, time_limit=seconds)
    points = [(p.misclassification, p.expected_answers) for p in front]
    good = [p.gap for p in front if error / 3 < p.misclassification < error * 3]
    return at_error(points, error), max(good, default=1.0) < 1e-9


def adaptive(problem: ct.Problem, error: float, items: int, **options: object):  # type: ignore[no-untyped-def]
    """Answers of an adaptive policy whose mean error is the given one."""

    def make(target: float) -> AdaptivePolicy:
        return AdaptivePolicy(problem, target, 1000, **options)  # type: ignore[arg-type]

    target = tune_target(problem, make, error, items=items)
    return target, simulate(problem, make(target), 2 * items, rng=1)


def compare(number: int, items: int, seconds: float) -> dict[str, float | bool]:
    problem = random_problem(number)
    cost, plan = paper(problem, ERROR)
    row: dict[str, float | bool] = {
        "classes": problem.n_classes,
        "floor": fano_floor(problem, ERROR),
        "paper": cost,
        "paper curtailed": expected_answers(plan, "curtailed"),
        "paper margin": expected_answers(plan, "margin"),
    }
    row["frontier"], row["proven"] = best_plan(problem, ERROR, "majority", seconds)
    row["frontier margin"], _ = best_plan(problem, ERROR, "margin", seconds)
    for criterion in ("information", "ec2", "accuracy", "gbs"):
        target, run = adaptive(problem, ERROR, items, criterion=criterion)
        row[criterion] = float(run.answers_per_item)
        if criterion == "information":
            row["target"] = target
            row["low"], row["high"] = run.answers_per_item.interval
            row["wrong"] = float(run.misclassification)
            row["wrong low"], row["wrong high"] = run.misclassification.interval
    few = min(items, 4000)
    row["batch"] = batch(lambda votes: simulate(problem, BatchPolicy(problem, votes), few))
    row["batch posterior"] = batch(
        lambda votes: simulate(problem, BatchPolicy(problem, votes, "posterior"), few)
    )
    crowd = Crowd(workers=100)
    row["Dawid-Skene"] = batch(lambda votes: simulate_dawid_skene(problem, votes, few, crowd=crowd))
    row["Dawid-Skene posterior"] = batch(
        lambda votes: simulate_dawid_skene(problem, votes, few, crowd=crowd, decoder="posterior")
    )
    if number % 5 == 0:
        peer = crowd_kit(problem, few, crowd)
        if peer is not None:
            row["crowd-kit agrees"] = peer
    return row


def batch(ask: Callable[[int], Run]) -> float:
    """Answers of the fewest votes per question with which all questions at once are good enough."""
    for votes in range(1, 30, 2):
        run = ask(votes)
        if run.misclassification <= ERROR:
            return float(run.answers_per_item)
    return float("nan")


def crowd_kit(problem: ct.Problem, items: int, crowd: Crowd) -> float | None:
    """Share of verdicts on which crowd-kit's Dawid-Skene and ours agree; None if not installed."""
    try:
        import pandas as pd
        from crowdkit.aggregation import DawidSkene
    except ImportError:
        return None
    block = crowd.block(problem, 1, 0, items)
    even = int(np.argmin(np.abs(problem.outcome @ problem.prior - 0.5)))  # a question that splits
    rows, question = np.arange(items), np.full(items, even)
    yes = np.zeros(items, dtype=np.int64)
    task, worker, value = [], [], []
    for turn in range(5):
        repeat = np.full(items, turn)
        said = block.answer(Round(rows, question, repeat, yes.copy)).value.astype(np.int64)
        yes = yes + said
        task.append(rows)
        worker.append(block.worker(rows, question, repeat).astype(np.int64))  # type: ignore[attr-defined]
        value.append(said)
    told = {n: np.concatenate(v) for n, v in (("task", task), ("worker", worker), ("label", value))}
    theirs = DawidSkene(n_iter=50).fit_predict(pd.DataFrame(told)).to_numpy()
    order = np.argsort(told["task"], kind="stable")
    who, said = told["worker"][order].astype(np.int32), told["label"][order].astype(np.int8)
    votes = Votes(np.arange(0, len(order) + 1, 5), who, said, crowd.workers, 2)
    ours = fit_dawid_skene(votes, np.full(items, -1, np.int32), smoothing=0.1, steps=50)
    return float((theirs == (ours.posterior[:, 1] > 0.5)).mean())


def interval(values: np.ndarray) -> str:  # type: ignore[type-arg]
    """Median with a bootstrap 95 % interval over the problems."""
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(values, (4000, len(values))), axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return f"{np.median(values):.3f} ({low:.3f} to {high:.3f})"


def random_part(args: argparse.Namespace) -> list[dict[str, float | bool]]:
    print(f"20 random problems, answers per item at {ERROR:.0%} misclassification")
    names = ["floor", "information", "ec2", "accuracy", "gbs", "frontier margin", "frontier"]
    names += ["paper margin", "paper curtailed", "paper", "batch", "batch posterior"]
    names += ["Dawid-Skene", "Dawid-Skene posterior"]
    print("classes  " + "  ".join(f"{name[:15]:>15}" for name in names) + "   observed error")
    rows = []
    for number in range(args.problems):
        row = compare(number, args.items, args.seconds)
        rows.append(row)
        cells = "  ".join(f"{row.get(name, float('nan')):15.2f}" for name in names)
        proven = "" if row["proven"] else "  (frontier not proven)"
        seen = f"{row['wrong']:.4f} ({row['wrong low']:.4f} to {row['wrong high']:.4f})"
        print(f"{row['classes']:7}  {cells}   {seen}{proven}", flush=True)
    ours = np.array([row["information"] for row in rows])
    for name, bar in (("paper", "at most 0.4"), ("frontier", "at most 0.6"), ("floor", "")):
        other = np.array([row[name] for row in rows])
        print(f"adaptive / {name}: median {interval(ours / other)} {bar}")
    for name in names[2:]:
        other = np.array([row.get(name, np.nan) for row in rows])
        print(f"{name} / adaptive: median {np.nanmedian(other / ours):.3f}")
    return rows


def awa2_part(args: argparse.Namespace) -> list[dict[str, float | str]]:
    table = awa2()
    if table is None:
        print("awa2: the data folder is absent, skipped")
        return []
    print(f"\nawa2, 50 classes x 85 questions, uniform prior, final error {ERROR:.0%}")
    found = []
    for error in (0.1, 0.2, 0.3):
        problem = table.replace(worker_error=error)
        floor = fano_floor(problem, ERROR)
        for criterion in ("information", "ec2", "accuracy"):
            target, run = adaptive(problem, ERROR, args.items, criterion=criterion)
            answers, wrong = run.answers_per_item, run.misclassification
            # the floor at the error that was really had, from the side that counts against us
            low = answers.low / fano_floor(problem, wrong.low)
            high = answers.high / fano_floor(problem, wrong.high)
            print(
                f"error {error}: {criterion:12} {answers} answers, wrong {wrong}, "
                f"target {target:.4f}, floor at 1 % {floor:.2f}, "
                f"ratio {answers / floor:.3f} ({low:.3f} to {high:.3f})",
                flush=True,
            )
            found.append(
                {
                    "error": error,
                    "criterion": criterion,
                    "answers": float(answers),
                    "floor": floor,
                    "wrong": float(wrong),
                    "ratio": answers / floor,
                    "low": low,
                    "high": high,
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="search time of a frontier price"
    )
    parser.add_argument("--json")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ct.CrowdtreeWarning)
    start = time.perf_counter()
    found = {"random": random_part(args), "awa2": awa2_part(args)}
    print(f"{time.perf_counter() - start:.0f} s")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
