"""Answers of real people: accuracy against the number of questions, adaptive and the paper's tree.

aPascal: tables from four fifths of the objects, tried on the last fifth, all five ways. Leuven:
tables from three respondents, the fourth answers, all four ways. The same rules on both sets:

- tables by one empirical Bayes rule (:func:`shares`), the tree on the same learnt table;
- how the adaptive policy chooses (criterion, and how many of the last answers are chosen for
  accuracy) is picked for each budget by a second cross-validation *inside* the training part.

Nothing is learnt or picked from the answers that are tried. ``python benchmarks/real_people.py``
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crowdtree as ct
from crowdtree.policy import AdaptivePolicy, PlanPolicy
from crowdtree.simulate import Recorded, Run, simulate
from crowdtree.simulate.run import Estimate, mean_estimate, share_estimate
from realdata import apascal, leuven

FloatArray = NDArray[np.float64]
Way = tuple[str, int | None]
"""Criterion, and the number of last answers that are chosen for accuracy (None: all of them)."""
WAYS: tuple[Way, ...] = (
    ("information", 1),
    ("information", 2),
    ("information", 4),
    ("information", 8),
    ("information", None),
    ("ec2", 1),
)
INNER = 3
MOST_PICKED = 30
"""Beyond this budget the way is that of this budget: the ways differ little there."""


@dataclass(frozen=True, eq=False)
class People:
    """Answers, one row a try, with the class of each, and the part that each row belongs to."""

    name: str
    classes: Sequence[str]
    questions: Sequence[str]
    answers: NDArray[np.int8]
    truth: NDArray[np.int64]
    part: NDArray[np.int64]
    uniform: bool

    def rows(self, chosen: NDArray[np.bool_]) -> People:
        """Some of the rows."""
        return People(
            self.name,
            self.classes,
            self.questions,
            self.answers[chosen],
            self.truth[chosen],
            self.part[chosen],
            self.uniform,
        )

    def learnt(self) -> tuple[ct.Problem, FloatArray]:
        """The problem and P(yes | class) that these answers teach."""
        n = len(self.classes)
        count = np.bincount(self.truth, minlength=n)
        said = np.stack([self.answers[self.truth == c].sum(axis=0) for c in range(n)], axis=1)
        yes = shares(said, count)
        prior = None if self.uniform else (count + 1) / (count + 1).sum()
        return ct.Problem.from_strength(self.classes, prior, self.questions, yes), yes

    def tried(self, make: Callable[[ct.Problem, FloatArray], Any], train: People) -> Run:
        """Run the policy that `train` teaches on these answers."""
        problem, yes = train.learnt()
        crowd = Recorded(self.answers, self.truth)
        return simulate(problem, make(problem, yes), len(self.truth), crowd=crowd)


def apascal_people(parts: int = 5) -> People | None:
    found = apascal()
    if found is None:
        return None
    classes, questions, answers, truth = found
    part = np.random.default_rng(0).permutation(len(truth)) % parts
    return People("aPascal", classes, questions, answers, truth, part, uniform=False)


def leuven_people() -> People | None:
    found = leuven()
    if found is None:
        return None
    classes, questions, answers = found
    respondents = len(answers)
    truth = np.tile(np.arange(len(classes)), respondents)
    part = np.repeat(np.arange(respondents), len(classes))
    rows = answers.transpose(0, 2, 1).reshape(-1, len(questions))
    return People("Leuven", classes, questions, rows, truth, part, uniform=True)


def shares(yes: NDArray[Any], count: NDArray[Any]) -> FloatArray:
    """P(yes | class) of each cell, by empirical Bayes.

    Each question has a Beta prior around its own share of yes. Its strength follows from how much
    the classes agree on it: a posterior over a grid of strengths, whose own prior is shared by all
    questions and learnt by EM.
    """
    from scipy.special import betaln

    base = (yes.sum(axis=1) + 1) / (count.sum() + 2)
    strength = np.geomspace(0.05, 20, 40)
    a, b = base[:, None] * strength, (1 - base[:, None]) * strength
    like = np.zeros_like(a)
    for c, n in enumerate(count):
        k = yes[:, c][:, None]
        like += betaln(a + k, b + n - k) - betaln(a, b)
    like = np.exp(like - like.max(axis=1, keepdims=True))
    weight = np.full(len(strength), 1 / len(strength))
    for _ in range(50):
        share = like * weight
        share /= share.sum(axis=1, keepdims=True)
        weight = share.mean(axis=0)
    found = np.stack(
        [
            (share * ((yes[:, c][:, None] + a) / (n + strength))).sum(axis=1)
            for c, n in enumerate(count)
        ],
        axis=1,
    )
    return np.asarray(np.clip(found, 0.002, 0.998))


def maker(way: Way, budget: int) -> Callable[[ct.Problem, FloatArray], AdaptivePolicy]:
    criterion, last = way

    def make(problem: ct.Problem, yes: FloatArray) -> AdaptivePolicy:
        return AdaptivePolicy(
            problem,
            0.0,
            budget,
            repeats=1,
            yes_probability=yes,
            criterion=criterion,  # type: ignore[arg-type]
            endgame=budget if last is None else last,
        )

    return make


def picked(train: People, budget: int) -> Way:
    """The way that labels most answers of the training part right, cross-validated within it."""
    budget = min(budget, MOST_PICKED)
    if train.uniform:  # whole respondents are left out
        inner = train.part
    else:
        inner = np.random.default_rng(1).permutation(len(train.truth)) % INNER
    taught = []
    for part in np.unique(inner):
        rest = train.rows(inner != part)
        taught.append((train.rows(inner == part), rest.learnt()))
    right = []
    for way in WAYS:
        good = 0
        for held, (problem, yes) in taught:
            crowd = Recorded(held.answers, held.truth)
            run = simulate(problem, maker(way, budget)(problem, yes), len(held.truth), crowd=crowd)
            good += int((run.label == run.truth).sum())
        right.append(good)
    return WAYS[int(np.argmax(right))]


def row_of(runs: Sequence[Run]) -> dict[str, Any]:
    """Accuracy and cost over all parts."""
    good = sum(int((run.label == run.truth).sum()) for run in runs)
    right: Estimate = share_estimate(good, sum(run.items for run in runs))
    answers = mean_estimate(np.concatenate([run.answers for run in runs]))
    stated = 1 - float(np.concatenate([run.posterior_error for run in runs]).mean())
    return {
        "questions": float(answers),
        "right": float(right),
        "low": right.low,
        "high": right.high,
        "stated": stated,
    }


def words(row: dict[str, Any]) -> str:
    return (
        f"{row['questions']:6.2f} questions, right {row['right']:.3f} "
        f"({row['low']:.3f} to {row['high']:.3f}), stated {row['stated']:.3f}"
    )


def report(
    people: People | None, sketch: dict[int, float], counts: Sequence[int]
) -> list[dict[str, Any]]:
    if people is None:
        print("the data folder is absent, skipped")
        return []
    folds = [
        (people.rows(people.part != part), people.rows(people.part == part))
        for part in np.unique(people.part)
    ]
    tree = row_of(
        [
            held.tried(lambda p, _: PlanPolicy(ct.design(p, "fm", allow_groups=True)), train)
            for train, held in folds
        ]
    )
    print(f"\n{people.name}: {len(people.truth)} tries\n  paper's tree  {words(tree)}", flush=True)
    rows = [tree | {"who": "paper's tree", "budget": None, "sketch": None}]
    for budget in sorted({*counts, int(tree["questions"])}):
        ways = [picked(train, budget) for train, _ in folds]
        runs = [
            held.tried(maker(way, budget), train)
            for way, (train, held) in zip(ways, folds, strict=True)
        ]
        row = row_of(runs) | {"who": "adaptive", "budget": budget, "sketch": sketch.get(budget)}
        row["picked"] = {
            f"{name}, last {'all' if last is None else last}": n
            for (name, last), n in Counter(ways).most_common()
        }
        bar = f"  (sketch {sketch[budget]:.2f})" if budget in sketch else ""
        note = "  (no more than the tree)" if budget == int(tree["questions"]) else ""
        print(f"  adaptive      {words(row)}{bar}{note}  {row['picked']}", flush=True)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ct.CrowdtreeWarning)
    start = time.perf_counter()
    found = {
        "leuven": report(
            leuven_people(), {8: 0.35, 20: 0.55, 30: 0.65}, (4, 8, 12, 20, 30, 60, 120)
        ),
        "apascal": report(apascal_people(), {5: 0.70, 10: 0.79}, (3, 5, 10, 15, 20, 30, 64)),
    }
    print(f"{time.perf_counter() - start:.0f} s")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
