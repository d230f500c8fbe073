"""Are stated errors true, and what if the assumed worker errors are wrong by a factor of two?

``python benchmarks/policy_honesty.py``
"""

from __future__ import annotations

import argparse

import numpy as np

import crowdtree as ct
from crowdtree.policy import AdaptivePolicy, PlanPolicy, expected_answers
from crowdtree.simulate import Crowd, simulate
from policy_compare import random_problem


def calibration(problem: ct.Problem, items: int) -> None:
    print(f"\ncalibration of the adaptive policy, {problem}, {items:,} items")
    for name, crowd in {
        "as assumed": Crowd(),
        "people of different skill, not told": Crowd(skill_sd=0.7, workers=200),
        "people of different skill, told": Crowd(skill_sd=0.7, workers=200, known_skill=True),
        "10 % spammers": Crowd(spammers=0.1, workers=200),
        "answers on an item lean together (0.2)": Crowd(shared_difficulty=0.2),
        "items of different difficulty": Crowd(item_difficulty=0.5),
    }.items():
        run = simulate(problem, AdaptivePolicy(problem, 0.02, 200), items, rng=3, crowd=crowd)
        print(
            f"  {name}: stated {float(run.stated_error):.4f}, observed {run.misclassification}, "
            f"{float(run.answers_per_item):.2f} answers"
        )
    aware = AdaptivePolicy(problem, 0.02, 200, shared_difficulty=0.2)
    run = simulate(problem, aware, items, rng=3, crowd=Crowd(shared_difficulty=0.2))
    print(
        f"  leaning, modelled by the policy: stated {float(run.stated_error):.4f}, observed "
        f"{run.misclassification}, {float(run.answers_per_item):.2f} answers"
    )
    run = simulate(problem, AdaptivePolicy(problem, 0.1, 8), items, rng=4)
    for row in run.calibration(8):
        print(
            f"    stated {row.stated:.4f}  observed {row.observed:.4f} "
            f"({row.low:.4f} to {row.high:.4f})"
        )


def robustness(items: int) -> None:
    print("\nworker errors wrong by a factor of two: target 1 %, ten random problems")
    print("  truth/assumed   adaptive error      answers   tree error (same staffing)")
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
        print(
            f"  {factor:6.2f}          median {np.median(wrong):.4f}, worst {max(wrong):.4f}   "
            f"{np.median(answers):6.2f}   median {np.median(tree_wrong):.4f}, "
            f"worst {max(tree_wrong):.4f}"
        )


def stopping(items: int) -> None:
    print("\nearly stopping: exact expectation against simulation")
    plan = ct.staff(ct.design(random_problem(8)), answers=40.0)
    for how in ("none", "curtailed", "margin"):
        run = simulate(plan.tree.problem, PlanPolicy(plan, how), items)
        print(
            f"  {how:10} exact {expected_answers(plan, how):.4f}, simulated "
            f"{run.answers_per_item:.4f} ({run.answers_per_item.low:.4f} to "
            f"{run.answers_per_item.high:.4f}), error {run.misclassification}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=40_000)
    items = parser.parse_args().items
    stopping(items)
    calibration(random_problem(8), items)
    robustness(items // 4)


if __name__ == "__main__":
    main()
