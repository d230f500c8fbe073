"""Answers of real people: accuracy against the number of questions, adaptive and the paper's tree.

aPascal: tables from four fifths of the objects, tried on the last fifth, all five ways. Leuven:
tables from three respondents, the fourth answers, all four ways. Nothing is learnt from the answers
that are tried. ``python benchmarks/real_people.py``
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crowdtree as ct
from crowdtree.policy import AdaptivePolicy, PlanPolicy
from crowdtree.simulate import Recorded, Run, simulate
from crowdtree.simulate.run import mean_estimate, share_estimate
from realdata import apascal, leuven

Fold = tuple[ct.Problem, NDArray[np.float64], NDArray[np.int8], NDArray[np.int64]]
"""Problem and P(yes | class) of the training part; answers and classes of the part to try."""


def apascal_folds(parts: int = 5) -> list[Fold]:
    found = apascal()
    if found is None:
        return []
    classes, questions, answers, truth = found
    fold = np.random.default_rng(0).permutation(len(truth)) % parts
    made = []
    for part in range(parts):
        train = fold != part
        count = np.bincount(truth[train], minlength=len(classes))
        said = np.stack([answers[train & (truth == c)].sum(axis=0) for c in range(len(classes))], 1)
        yes = (said + 0.5) / (count + 1.0)
        prior = (count + 1) / (count + 1).sum()
        problem = ct.Problem.from_strength(classes, prior, questions, yes)
        made.append((problem, yes, answers[~train], truth[~train]))
    return made


def leuven_folds() -> list[Fold]:
    found = leuven()
    if found is None:
        return []
    classes, questions, answers = found
    made = []
    for left_out in range(len(answers)):
        train = np.delete(answers, left_out, axis=0)
        yes = smoothed_shares(train)
        share = train.mean(axis=0)
        problem = ct.Problem.from_strength(classes, None, questions, share)
        made.append((problem, yes, answers[left_out].T, np.arange(len(classes))))
    return made


def smoothed_shares(answers: NDArray[np.int8]) -> NDArray[np.float64]:
    """P(yes | class) from few answers a cell: a Beta prior a question, itself learnt.

    Each question has a Beta prior around its own share of yes, whose strength follows from how
    much people agree on it; the distribution of strengths over questions is learnt by EM.
    """
    from scipy.special import betaln

    people = len(answers)
    yes = answers.sum(axis=0)
    base = (yes.sum(axis=1) + 1) / (people * yes.shape[1] + 2)
    strength = np.geomspace(0.05, 20, 60)
    a, b = base[:, None] * strength, (1 - base[:, None]) * strength
    like = np.zeros_like(a)
    for k in range(people + 1):
        cells = (yes == k).sum(axis=1)[:, None]
        like += cells * (betaln(a + k, b + people - k) - betaln(a, b))
    like = np.exp(like - like.max(axis=1, keepdims=True))
    weight = np.full(len(strength), 1 / len(strength))
    for _ in range(50):
        share = like * weight
        share /= share.sum(axis=1, keepdims=True)
        weight = share.mean(axis=0)
    level = [(share * ((k + a) / (people + strength))).sum(axis=1) for k in range(people + 1)]
    return np.clip(np.take_along_axis(np.stack(level, 1), yes.astype(int), 1), 0.002, 0.998)


def joined(runs: Sequence[Run]) -> str:
    wrong = np.concatenate([run.label != run.truth for run in runs])
    right = share_estimate(int((~wrong).sum()), len(wrong))
    stated = 1 - np.concatenate([run.posterior_error for run in runs]).mean()
    answers = mean_estimate(np.concatenate([run.answers for run in runs]))
    return f"{float(answers):6.2f} questions, right {right}, stated {stated:.3f}"


def tried(folds: list[Fold], make: Callable[[ct.Problem, NDArray[Any]], Any]) -> list[Run]:
    return [
        simulate(problem, make(problem, yes), len(truth), crowd=Recorded(answers, truth))
        for problem, yes, answers, truth in folds
    ]


def report(name: str, folds: list[Fold], sketch: dict[int, float], counts: Sequence[int]) -> None:
    if not folds:
        print(f"{name}: the data folder is absent, skipped")
        return
    print(f"\n{name}: {folds[0][0]}, {sum(len(f[3]) for f in folds)} tries")
    tree = tried(folds, lambda p, _: PlanPolicy(ct.design(p, "fm", allow_groups=True)))
    print(f"  paper's tree            {joined(tree)}")
    mean = float(np.mean(np.concatenate([run.answers for run in tree])))
    for criterion in ("information", "accuracy"):
        for count in sorted({*counts, int(mean)}):

            def make(
                problem: ct.Problem,
                yes: NDArray[Any],
                count: int = count,
                criterion: Any = criterion,
            ) -> AdaptivePolicy:
                return AdaptivePolicy(
                    problem, 0.0, count, repeats=1, yes_probability=yes, criterion=criterion
                )

            bar = f"  (sketch {sketch[count]:.2f})" if count in sketch else ""
            note = "  (no more than the tree)" if count == int(mean) else ""
            print(
                f"  adaptive, {criterion:12}  {joined(tried(folds, make))}{bar}{note}", flush=True
            )


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore", ct.CrowdtreeWarning)
    report("aPascal", apascal_folds(), {5: 0.70, 10: 0.79}, (3, 5, 8, 10, 15, 20, 30, 64))
    report("Leuven", leuven_folds(), {8: 0.35, 20: 0.55, 30: 0.65}, (4, 8, 12, 20, 30, 60, 120))


if __name__ == "__main__":
    main()
