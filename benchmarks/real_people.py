"""Answers of real people: stated and observed errors of learned policies.

aPascal and soybean: learned from four fifths of the items, tried on the last fifth, all five ways.
Leuven: learned from three respondents, the fourth answers, all four ways. Everything goes through
``learn(...)`` and ``learned.policy(...)``; tables and calibrations are of the training part alone.

1. Targets of 20, 10 and 5 %: how many items stop at the target, their stated and observed error,
   the answers per item, and how many items are labelled as undecided. With ``--repeats 3`` a
   question may be asked three times. The sets have one answer to each: the other two are copies
   by the same person, of which a tenth is changed, in the training part as well.
2. Fixed budgets: accuracy, beside the *private rule* that this benchmark used before (a Beta prior
   around each question's own share of yes, criterion and endgame picked inside the training part).
3. Promises: ``reachable_error``, ``strict``, and the credible intervals of the paper's tree and of
   a frontier plan, beside what is observed: pooled, and in how many splits they agree.

``python -m benchmarks.real_people [--sets leuven apascal soybean] [--splits 5] [--json FILE]``;
``--targets [--repeats 1 3]`` leaves out 2 and 3.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import crowdtree as ct
from benchmarks import learn_sets
from benchmarks.realdata import folder
from crowdtree.core.problem import LINE_BREAKS
from crowdtree.learning.model import Learned
from crowdtree.policies import AdaptivePolicy, PlanPolicy
from crowdtree.simulation import REASONS, Recorded, Run, simulate
from crowdtree.simulation.run import share_estimate

FloatArray = NDArray[np.float64]
TARGETS = (0.2, 0.1, 0.05)
CHANGED = 0.1
"""Copies of an answer that are changed, where a question may be asked several times."""
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
MOST_PICKED = 30
"""Budget beyond which the private rule asks as with this one."""


# ---------------------------------------------------------------- the public route


def taught(split: learn_sets.Split, repeats: int = 1) -> Learned:
    """What is learned from the training part of a split."""
    turns = np.moveaxis(repeated(split.train, repeats, 0), 2, 0)
    parts = [learn_sets.long(values, split.questions, split.workers) for values in turns]
    return ct.learn(pl.concat(parts), dict(enumerate(split.truth)), duplicates="all")


def repeated(values: NDArray[Any], repeats: int, seed: int) -> NDArray[Any]:
    """Items x questions x repeats: the answer, and copies of it of which a tenth is changed."""
    rng = np.random.default_rng(seed)
    made = np.repeat(values[:, :, None], repeats, axis=2)
    changed = rng.random(made.shape) < CHANGED
    changed[:, :, 0] = False
    return np.where(changed & (made >= 0), 1 - made, made)


def recorded(problem: ct.Problem, split: learn_sets.Split, repeats: int = 1) -> Recorded:
    """What is tried, in the order of the problem's questions and classes."""
    place = {re.sub(LINE_BREAKS, " ", name.strip()): i for i, name in enumerate(split.questions)}
    order = [place[name] for name in problem.questions]
    truth = [problem.classes.index(name) for name in split.wanted]
    return Recorded(repeated(split.test, repeats, 1)[:, order], truth)


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
    """Problem and table learned from some rows of the training part, by the private rule."""
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
        table=yes,
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


def picked(folds: list[tuple[Any, Recorded]], budget: int) -> Way:
    """The way that labels most left-out rows of the training part right."""
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


def paired_row(budget: int, ours: Sequence[Run], theirs: Sequence[Run]) -> dict[str, Any]:
    """Accuracy of the learned policy less that of the private rule, item by item."""
    good = [
        (pooled(runs, "label") == pooled(runs, "truth")).astype(float) for runs in (ours, theirs)
    ]
    more = good[0] - good[1]
    half = 1.96 * float(more.std()) / len(more) ** 0.5
    mean = float(more.mean())
    return {"budget": budget, "more": mean, "low": mean - half, "high": mean + half}


Promise = tuple[float, float, float, Run]
"""Stated error with the ends of its interval, and what happened."""


def promise_row(what: str, promises: Sequence[Promise]) -> dict[str, Any]:
    """Mean promise of the splits, beside what is observed on all of them and on each.

    A promise is about the error in the long run, and a split has few items: they agree where the
    observed error is in the interval widened by its own chance (both as normal).
    """
    value, low, high = np.mean([row[:3] for row in promises], axis=0)
    runs = [row[3] for row in promises]
    wrong = pooled(runs, "label") != pooled(runs, "truth")
    seen = share_estimate(int(wrong.sum()), len(wrong))
    inside = agree = 0
    for _, start, end, run in promises:
        count = len(run.label)
        each = float((run.label != run.truth).mean())
        chance = share_estimate(round(each * count), count)
        half = np.hypot((end - start) / 2, (chance.high - chance.low) / 2)
        inside += start <= each <= end
        agree += abs(each - (start + end) / 2) <= half
    return {
        "what": what, "stated": float(value), "low": float(low), "high": float(high),
        "observed": float(seen), "observed low": seen.low, "observed high": seen.high,
        "splits": len(promises), "inside": int(inside), "agree": int(agree),
    }  # fmt: skip


def promised(learned: Learned, plan: Any, crowd: Recorded) -> tuple[Promise, float]:
    """Credible interval of a plan and what happened; its error by the table alone."""
    value = ct.evaluate(plan, learned)
    credible = learned.credible_interval(plan)
    run = tried(PlanPolicy(plan), crowd)
    return (credible.mean, credible.low, credible.high, run), value.misclassification


# ---------------------------------------------------------------- one set


def targets_alone(name: str, splits: int, ways: Sequence[int]) -> dict[str, Any]:
    """Targets alone, with so many answers per question."""
    place = folder()
    if place is None:
        print("the data folder is absent, skipped")
        return {"targets": []}
    found: dict[str, Any] = {"targets": []}
    for repeats in ways:
        runs: dict[float, list[Run]] = {target: [] for target in TARGETS}
        for number, split in enumerate(learn_sets.SETS[name](place)):
            if number >= splits:
                break
            policy = taught(split, repeats).policy(TARGETS[0], MOST[name], repeats=repeats)
            crowd = recorded(policy.problem, split, repeats)
            for target in TARGETS:
                runs[target].append(tried(policy.changed(target_error=target), crowd))
        rows = [target_row(target, part) | {"repeats": repeats} for target, part in runs.items()]
        print(f"\n{name}, answers per question: {repeats}")
        show_targets({"targets": rows})
        found["targets"] += rows
    return found


def report(name: str, splits: int) -> dict[str, Any]:
    place = folder()
    if place is None:
        print("the data folder is absent, skipped")
        return {}
    found: dict[str, Any] = {"targets": [], "budgets": [], "promises": [], "strict": []}
    targets: dict[float, list[Run]] = {target: [] for target in TARGETS}
    budgets: dict[tuple[str, int], list[Run]] = {}
    promises: dict[str, list[Promise]] = {}
    plain: dict[str, list[float]] = {}
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
        spent = tried(policy.changed(target_error=0.0), crowd)
        promises.setdefault("reachable_error", []).append((mean, mean - half, mean + half, spent))
        try:
            policy.changed(target_error=TARGETS[-1], strict=True)
            found["strict"].append("accepted")
        except ct.CrowdtreeError as error:
            found["strict"].append(str(error))
        front = ct.frontier(learned.problem, method="greedy", max_votes=1, allow_groups=True)
        plans = {
            "paper's tree": ct.design(learned.problem, "fm", allow_groups=True),
            "frontier plan": front.points[-1].plan,
        }
        for what, plan in plans.items():
            promise, by_table = promised(learned, plan, crowd)
            promises.setdefault(what, []).append(promise)
            plain.setdefault(what, []).append(by_table)
        way = cache(partial(picked, private_folds(split)))
        table = private_table(split, np.arange(len(split.truth)))
        for budget in BUDGETS[name]:
            spend = learned.policy(0.0, budget)
            budgets.setdefault(("learned.policy", budget), []).append(tried(spend, crowd))
            old = private_policy(table, way(min(budget, MOST_PICKED)), budget)
            runs = budgets.setdefault(("private rule", budget), [])
            runs.append(tried(old, recorded(old.problem, split)))
        print(f"{name} {number + 1}: {time.perf_counter() - began:.0f} s", flush=True)
    found["targets"] = [target_row(target, runs) for target, runs in targets.items()]
    found["budgets"] = [budget_row(who, n, runs) for (who, n), runs in budgets.items()]
    found["paired"] = [
        paired_row(n, budgets["learned.policy", n], budgets["private rule", n])
        for n in BUDGETS[name]
    ]
    found["promises"] = [promise_row(what, rows) for what, rows in promises.items()]
    for row in found["promises"]:
        row["by table"] = float(np.mean(plain[row["what"]])) if row["what"] in plain else None
    show(name, found)
    return found


def show_targets(found: dict[str, Any]) -> None:
    for row in found["targets"]:
        stated = "-" if row["stated"] is None else f"{row['stated']:.3f}"
        print(
            f"  target {row['target']:.2f}: {row['stopped']:.3f} stop, stated {stated}, "
            f"observed {row['observed']:.3f} ({row['low']:.3f} to {row['high']:.3f}), "
            f"{row['answers']:.1f} answers, {row['undecided']:.3f} undecided; "
            f"all items: stated {row['all stated']:.3f}, observed {row['all observed']:.3f}",
            flush=True,
        )


def show(name: str, found: dict[str, Any]) -> None:
    print(f"\n{name}")
    show_targets(found)
    for row in found["budgets"]:
        print(
            f"  {row['who']:15} {row['questions']:6.2f} answers: right {row['right']:.3f} "
            f"({row['low']:.3f} to {row['high']:.3f}), stated {row['stated']:.3f}"
        )
    for row in found["paired"]:
        print(
            f"  {row['budget']} answers: {row['more']:+.3f} ({row['low']:+.3f} to "
            f"{row['high']:+.3f}) more right than by the private rule"
        )
    for row in found["promises"]:
        print(
            f"  {row['what']}: {row['stated']:.3f} ({row['low']:.3f} to {row['high']:.3f}), "
            f"observed {row['observed']:.3f} ({row['observed low']:.3f} to "
            f"{row['observed high']:.3f}); of {row['splits']} splits {row['inside']} inside, "
            f"{row['agree']} agree; by the table {row['by table']}"
        )
    print(f"  strict at {TARGETS[-1]:.2f}: {found['strict'][0]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(learn_sets.SETS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--targets", action="store_true", help="targets alone")
    parser.add_argument("--repeats", type=int, nargs="+", default=[1], help="with --targets")
    parser.add_argument("--json")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ct.CrowdtreeWarning)
    start = time.perf_counter()
    if args.targets:
        found = {name: targets_alone(name, args.splits, args.repeats) for name in args.sets}
    else:
        found = {name: report(name, args.splits) for name in args.sets}
    print(f"{time.perf_counter() - start:.0f} s")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
