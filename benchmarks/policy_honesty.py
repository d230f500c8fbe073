"""Calibration of stated errors, also if the assumed worker errors are wrong by a factor of two.

``python -m benchmarks.policy_honesty``
"""

from __future__ import annotations

import argparse
import json

import numpy as np

import crowdtree as ct
from benchmarks.policy_compare import random_problem
from crowdtree.policies import AdaptivePolicy, PlanPolicy, expected_answers
from crowdtree.simulation import Crowd, Run, simulate

Rows = list[dict[str, float | str]]


def shown(name: str, run: Run) -> dict[str, float | str]:
    wrong = run.misclassification
    print(
        f"  {name}: stated {float(run.stated_error):.4f}, observed {wrong}, "
        f"{float(run.answers_per_item):.2f} answers",
        flush=True,
    )
    return {
        "people": name,
        "stated": float(run.stated_error),
        "observed": float(wrong),
        "low": wrong.low,
        "high": wrong.high,
        "answers": float(run.answers_per_item),
    }


def calibration(problem: ct.Problem, items: int) -> tuple[Rows, Rows]:
    print(f"\ncalibration of the adaptive policy, {problem}, {items:,} items")
    rows: Rows = []
    for name, crowd in {
        "as assumed": Crowd(),
        "people of different skill, not told": Crowd(skill_sd=0.7, workers=200),
        "people of different skill, told": Crowd(skill_sd=0.7, workers=200, known_skill=True),
        "10 % spammers": Crowd(spammers=0.1, workers=200),
        "answers about an item are correlated (0.2)": Crowd(shared_difficulty=0.2),
        "items of different difficulty": Crowd(item_difficulty=0.5),
    }.items():
        run = simulate(problem, AdaptivePolicy(problem, 0.02, 200), items, rng=3, crowd=crowd)
        rows.append(shown(name, run))
    aware = AdaptivePolicy(problem, 0.02, 200, shared_difficulty=0.2)
    run = simulate(problem, aware, items, rng=3, crowd=Crowd(shared_difficulty=0.2))
    rows.append(shown("correlated, and the policy allows for it", run))
    run = simulate(problem, AdaptivePolicy(problem, 0.1, 8), items, rng=4)
    for row in run.calibration(8):
        print(
            f"    stated {row.stated:.4f}  observed {row.observed:.4f} "
            f"({row.low:.4f} to {row.high:.4f})"
        )
    return rows, [dict(row._asdict()) for row in run.calibration(8)]


def robustness(items: int) -> Rows:
    print("\nworker errors wrong by a factor of two: target 1 %, ten random problems")
    print("  truth/assumed   adaptive error      answers   tree error (same staffing)")
    rows: Rows = []
    for factor in (0.5, 0.75, 1.0, 1.33, 2.0):
        wrong, answers, tree_wrong = [], [], []
        for number in range(0, 20, 2):
            assumed = random_problem(number)
            truth = assumed.replace(
                worker_error=np.clip(assumed.worker_error[:, 0] * factor, 0, 0.49)
            )
            run = simulate(truth, AdaptivePolicy(assumed, 0.01, 300), items)
            plan = ct.staff(ct.design(assumed), answers=30.0)
            tree = simulate(truth, PlanPolicy(plan, "curtailed"), items)
            wrong.append(run.misclassification)
            answers.append(run.answers_per_item)
            tree_wrong.append(tree.misclassification)
        rows.append(
            {
                "factor": factor,
                "median": float(np.median(wrong)),
                "worst": float(max(wrong)),
                "answers": float(np.median(answers)),
                "tree median": float(np.median(tree_wrong)),
                "tree worst": float(max(tree_wrong)),
            }
        )
        print(
            f"  {factor:6.2f}          median {np.median(wrong):.4f}, worst {max(wrong):.4f}   "
            f"{np.median(answers):6.2f}   median {np.median(tree_wrong):.4f}, "
            f"worst {max(tree_wrong):.4f}",
            flush=True,
        )
    return rows


def stopping(items: int) -> Rows:
    print("\nearly stopping: exact expectation against simulation")
    plan = ct.staff(ct.design(random_problem(8)), answers=40.0)
    rows: Rows = []
    for how in ("none", "curtailed", "margin"):
        run = simulate(plan.tree.problem, PlanPolicy(plan, how), items)
        print(
            f"  {how:10} exact {expected_answers(plan, how):.4f}, simulated "
            f"{run.answers_per_item:.4f} ({run.answers_per_item.low:.4f} to "
            f"{run.answers_per_item.high:.4f}), error {run.misclassification}"
        )
        wrong = ct.evaluate(PlanPolicy(plan, how).voted).misclassification
        rows.append(
            {
                "stopping": how,
                "exact": expected_answers(plan, how),
                "simulated": float(run.answers_per_item),
                "low": run.answers_per_item.low,
                "high": run.answers_per_item.high,
                "exact error": wrong,
                "error": float(run.misclassification),
                "error low": run.misclassification.low,
                "error high": run.misclassification.high,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=40_000)
    parser.add_argument("--json")
    args = parser.parse_args()
    found: dict[str, Rows] = {"stopping": stopping(args.items)}
    found["people"], found["groups"] = calibration(random_problem(8), args.items)
    found["wrong errors"] = robustness(args.items // 4)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
