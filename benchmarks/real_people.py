"""Answers of real people: what a learned policy promises, and what it keeps.

aPascal and soybean: learned from four fifths of the items, tried on the last fifth, all five ways.
Leuven: learned from three respondents, the fourth answers, all four ways. Everything goes through
``learn(...)`` and ``learned.policy(...)``; tables and calibrations are of the training part alone.

1. Targets of 20, 10 and 5 %: how many items stop at the target, their stated and observed error,
   the answers per item, and how many items are labelled as undecided.
2. Fixed budgets: accuracy, beside the *private rule* that this benchmark used before (a Beta prior
   around each question's own share of yes, criterion and endgame picked inside the training part).
3. Promises: ``reachable_error``, ``strict`` and ``evaluate`` of a tree, beside what is observed.

``python benchmarks/real_people.py [--sets leuven apascal soybean] [--splits 5] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crowdtree as ct
import learn_sets
from crowdtree.learning.identification import plan_error
from crowdtree.learning.model import Learned
from crowdtree.policy import AdaptivePolicy, PlanPolicy
from crowdtree.problem import LINE_BREAKS
from crowdtree.simulation import REASONS, Recorded, Run, simulate
from crowdtree.simulation.run import share_estimate
from realdata import folder

FloatArray = NDArray[np.float64]
TARGETS = (0.2, 0.1, 0.05)
BUDGETS = {"apascal": (5, 10, 20, 30), "leuven": (8, 20, 30, 60), "soybean": (5, 10, 20, 30)}
MOST = {"apascal": 64, "leuven": 120, "soybean": 60}
Way = tuple[str, int | None]
WAYS: tuple[Way, ...] = (
    ("information", 1),
    ("information", 2),
    ("information", 4),
    ("information", 8),
    ("information", None),
    ("ec2", 1),
)
"""Ways of asking among which the private rule picks: criterion, last answers for accuracy."""
INNER = 3


# ---------------------------------------------------------------- the public route


def taught(split: learn_sets.Split) -> Learned:
    """What the training part of a split teaches."""
    answers = learn_sets.long(split.train, split.questions, split.workers)
    return ct.learn(answers, dict(enumerate(split.truth)))


def recorded(problem: ct.Problem, split: learn_sets.Split) -> Recorded:
    """What is tried, in the order of the problem's questions and classes."""
    place = {re.sub(LINE_BREAKS, " ", name.strip()): i for i, name in enumerate(split.questions)}
    order = [place[name] for name in problem.questions]
    truth = [problem.classes.index(name) for name in split.wanted]
    return Recorded(split.test[:, order], truth)


def tried(policy: Any, crowd: Recorded) -> Run:
    return simulate(policy.problem, policy, len(crowd.truth), crowd=crowd)


# ---------------------------------------------------------------- the private rule, a baseline


def shares(yes: NDArray[Any], asked: NDArray[Any]) -> FloatArray:
    """P(yes | class) of each cell by the private rule.

    Each question has a Beta prior around its own share of yes. Its strength follows from how much
    the classes agree on it: a posterior over a grid of strengths, whose own prior is shared by all
    questions and learned by EM.
    """
    from scipy.special import betaln

    base = (yes.sum(axis=1) + 1) / (asked.sum(axis=1) + 2)
    strength = np.geomspace(0.05, 20, 40)
    a, b = base[:, None] * strength, (1 - base[:, None]) * strength
    like = np.zeros_like(a)
    for k, n in zip(yes.T, asked.T, strict=True):
        like += betaln(a + k[:, None], b + (n - k)[:, None]) - betaln(a, b)
    like = np.exp(like - like.max(axis=1, keepdims=True))
    weight = np.full(len(strength), 1 / len(strength))
    for _ in range(50):
        share = like * weight
        share /= share.sum(axis=1, keepdims=True)
        weight = share.mean(axis=0)
    found = [
        (share * ((k[:, None] + a) / (n[:, None] + strength))).sum(axis=1)
        for k, n in zip(yes.T, asked.T, strict=True)
    ]
    return np.asarray(np.clip(np.stack(found, axis=1), 0.002, 0.998))


def private_table(split: learn_sets.Split, rows: NDArray[Any]) -> tuple[ct.Problem, FloatArray]:
    """Problem and table that some rows of the training part teach, by the private rule."""
    classes = sorted(set(split.truth))
    truth = np.array([classes.index(name) for name in split.truth])[rows]
    values = split.train[rows]
    yes = np.stack([(values[truth == c] == 1).sum(axis=0) for c in range(len(classes))], axis=1)
    asked = np.stack([(values[truth == c] >= 0).sum(axis=0) for c in range(len(classes))], axis=1)
    table = shares(yes, asked)
    count = np.bincount(truth, minlength=len(classes)) + 1
    questions = [re.sub(LINE_BREAKS, " ", name.strip()) for name in split.questions]
    return ct.Problem.from_strength(classes, count / count.sum(), questions, table), table


def private_policy(table: tuple[ct.Problem, FloatArray], way: Way, budget: int) -> AdaptivePolicy:
    problem, yes = table
    criterion, last = way
    return AdaptivePolicy(
        problem,
        0.0,
        budget,
        repeats=1,
        yes_probability=yes,
        criterion=criterion,  # type: ignore[arg-type]
        endgame=budget if last is None else last,
    )


def private_folds(split: learn_sets.Split) -> list[tuple[Any, Recorded]]:
    """Tables without some of the training rows, and those rows."""
    truth = np.array(split.truth)
    people = sorted(set(split.workers.tolist()))
    if len(people) > 1:
        inner = [np.flatnonzero(split.workers == name) for name in people]
    else:
        inner = learn_sets.folds(truth, INNER, seed=1)
    made = []
    for held in inner:
        table = private_table(split, np.setdiff1d(np.arange(len(truth)), held))
        codes = [table[0].classes.index(name) for name in truth[held]]
        made.append((table, Recorded(split.train[held], codes)))
    return made


def picked(folds: list[tuple[Any, Recorded]], budget: int, most: int = 30) -> Way:
    """The way that labels most left-out rows of the training part right."""
    budget = min(budget, most)
    right = [
        sum(
            int((run.label == run.truth).sum())
            for run in (tried(private_policy(table, way, budget), crowd) for table, crowd in folds)
        )
        for way in WAYS
    ]
    return WAYS[int(np.argmax(right))]


# ---------------------------------------------------------------- rows


def pooled(runs: Sequence[Run], column: str) -> NDArray[Any]:
    return np.concatenate([getattr(run, column) for run in runs])


def target_row(target: float, runs: Sequence[Run]) -> dict[str, Any]:
    """Items that stopped at a target over all splits, what was stated, what was observed."""
    stopped = pooled(runs, "reason") == REASONS.index("target")
    wrong = pooled(runs, "label") != pooled(runs, "truth")
    seen = share_estimate(int(wrong[stopped].sum()), int(stopped.sum()))
    reasons = pooled(runs, "reason")
    undecided = reasons == REASONS.index("undecided")
    return {
        "target": target,
        "items": len(stopped),
        "stopped": float(stopped.mean()),
        "stated": float(pooled(runs, "posterior_error")[stopped].mean()) if stopped.any() else None,
        "observed": float(seen),
        "low": seen.low,
        "high": seen.high,
        "answers": float(pooled(runs, "answers").mean()),
        "undecided": float(undecided.mean()),
        "all stated": float(pooled(runs, "posterior_error").mean()),
        "all observed": float(wrong.mean()),
    }


def budget_row(who: str, budget: int, runs: Sequence[Run]) -> dict[str, Any]:
    good = pooled(runs, "label") == pooled(runs, "truth")
    right = share_estimate(int(good.sum()), len(good))
    return {
        "who": who,
        "budget": budget,
        "questions": float(pooled(runs, "answers").mean()),
        "right": float(right),
        "low": right.low,
        "high": right.high,
        "stated": 1 - float(pooled(runs, "posterior_error").mean()),
    }


def promise_row(what: str, stated: Sequence[tuple[float, float, float]], runs: Any) -> Any:
    """Mean promise of the splits (value, low, high), beside what is observed on all of them."""
    value, low, high = np.mean(np.array(stated), axis=0)
    wrong = np.concatenate([run.label != run.truth for run in runs])
    seen = share_estimate(int(wrong.sum()), len(wrong))
    return {
        "what": what, "stated": float(value), "low": float(low), "high": float(high),
        "observed": float(seen), "observed low": seen.low, "observed high": seen.high,
    }  # fmt: skip


# ---------------------------------------------------------------- one set


def report(name: str, splits: int) -> dict[str, Any]:
    place = folder()
    if place is None:
        print("the data folder is absent, skipped")
        return {}
    found: dict[str, Any] = {"targets": [], "budgets": [], "promises": [], "strict": []}
    targets: dict[float, list[Run]] = {target: [] for target in TARGETS}
    budgets: dict[tuple[str, int], list[Run]] = {}
    reach, trees, left_out = ([], []), ([], []), []  # type: ignore[var-annotated]
    for number, split in enumerate(learn_sets.SETS[name](place)):
        if number >= splits:
            break
        began = time.perf_counter()
        learned = taught(split)
        policy = learned.policy(TARGETS[0], MOST[name])
        crowd = recorded(policy.problem, split)
        for target in TARGETS:
            targets[target].append(tried(policy.changed(target_error=target), crowd))
        mean, half = policy.reachable_error()
        reach[0].append((mean, mean - half, mean + half))
        reach[1].append(tried(policy.changed(target_error=0.0), crowd))
        try:
            policy.changed(target_error=TARGETS[-1], strict=True)
            found["strict"].append("accepted")
        except ct.CrowdtreeError as error:
            found["strict"].append(str(error))
        tree = ct.design(learned.problem, "fm", allow_groups=True)
        value = ct.evaluate(tree, learned)
        credible = value.credible
        assert credible is not None
        trees[0].append((value.misclassification, credible.low, credible.high))
        trees[1].append(tried(PlanPolicy(tree), crowd))
        left_out.append(plan_error(learned, lambda p: ct.design(p, "fm", allow_groups=True))[:3])
        inner = private_folds(split)
        table = private_table(split, np.arange(len(split.truth)))
        for budget in BUDGETS[name]:
            spend = learned.policy(0.0, budget)
            budgets.setdefault(("learned.policy", budget), []).append(tried(spend, crowd))
            old = private_policy(table, picked(inner, budget), budget)
            runs = budgets.setdefault(("private rule", budget), [])
            runs.append(tried(old, recorded(old.problem, split)))
        print(f"{name} {number + 1}: {time.perf_counter() - began:.0f} s", flush=True)
    found["targets"] = [target_row(target, runs) for target, runs in targets.items()]
    found["budgets"] = [budget_row(who, n, runs) for (who, n), runs in budgets.items()]
    found["promises"] = [
        promise_row("reachable_error", *reach),
        promise_row("evaluate of the paper's tree", *trees),
        promise_row("plan_error of the paper's tree", left_out, trees[1]),
    ]
    show(name, found)
    return found


def show(name: str, found: dict[str, Any]) -> None:
    print(f"\n{name}")
    for row in found["targets"]:
        print(
            f"  target {row['target']:.2f}: {row['stopped']:.3f} stop, stated {row['stated']:.3f}, "
            f"observed {row['observed']:.3f} ({row['low']:.3f} to {row['high']:.3f}), "
            f"{row['answers']:.1f} answers, {row['undecided']:.3f} undecided; "
            f"all items: stated {row['all stated']:.3f}, observed {row['all observed']:.3f}"
        )
    for row in found["budgets"]:
        print(
            f"  {row['who']:15} {row['questions']:6.2f} answers: right {row['right']:.3f} "
            f"({row['low']:.3f} to {row['high']:.3f}), stated {row['stated']:.3f}"
        )
    for row in found["promises"]:
        print(
            f"  {row['what']}: {row['stated']:.3f} ({row['low']:.3f} to {row['high']:.3f}), "
            f"observed {row['observed']:.3f} ({row['observed low']:.3f} to "
            f"{row['observed high']:.3f})"
        )
    print(f"  strict at {TARGETS[-1]:.2f}: {found['strict'][0]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(learn_sets.SETS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ct.CrowdtreeWarning)
    start = time.perf_counter()
    found = {name: report(name, args.splits) for name in args.sets}
    print(f"{time.perf_counter() - start:.0f} s")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
