"""Labels from yes/no questions: how many are said to be right, and how many are.

``python -m benchmarks.learn_tables [--sets soybean apascal leuven] [--splits 5]``: about a quarter
of an hour of one core. In each split of :mod:`benchmarks.learn_sets` the answers about the training
and the test items are learned together, with the classes of some training items as gold; what is
stated about the test items is compared with their classes, which nothing has seen. Of the Leuven
animals the test items are those of one more person.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from numpy.typing import NDArray

import crowdtree as ct
from benchmarks import learn_sets
from benchmarks.realdata import folder

GOLD = (60, 120, 10_000)
"""Items of known class; the last: all training items."""
BINS = 10


def known_items(truth: list[str], most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Training items whose class is known: two per class, then at random."""
    order = rng.permutation(len(truth))
    names = np.array(truth)[order]
    first = np.concatenate([np.flatnonzero(names == name)[:2] for name in np.unique(names)])
    rest = np.setdiff1d(np.arange(len(order)), first)
    return np.sort(order[np.concatenate([first, rest[: max(0, most - len(first))]])])


def calibration_error(stated: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Mean distance of stated and observed accuracy over bins of equal width."""
    place = np.minimum((stated * BINS).astype(int), BINS - 1)
    size = np.bincount(place, minlength=BINS)
    gap = np.bincount(place, stated, BINS) - np.bincount(place, right, BINS)
    return float(np.abs(gap[size > 0]).sum() / len(stated))


def tried(split: learn_sets.Split, most: int, seed: int) -> dict[str, float]:
    """What one split states and shows."""
    keep = known_items(split.truth, most, np.random.default_rng(seed))
    one_more = split.workers[0] != "crowd"
    workers = np.append(split.workers[keep], np.repeat("new" if one_more else "crowd",
                                                        len(split.test)))  # fmt: skip
    values = np.concatenate([split.train[keep], split.test])
    gold = {str(i): split.truth[k] for i, k in enumerate(keep.tolist())}
    learned = ct.learn(learn_sets.long(values, split.questions, workers), gold)
    wanted = {str(len(keep) + i): name for i, name in enumerate(split.wanted)}
    frame = learned.to_frame("labels")
    frame = frame.filter(frame["task"].is_in(list(wanted)))
    named = zip(frame["task"], frame["label"], strict=True)
    right = np.array([wanted[task] == label for task, label in named])
    place = {str(name): i for i, name in enumerate(learned.answers.tasks.tolist())}
    believed = learned.posterior.max(axis=1)[[place[t] for t in frame["task"]]]
    accuracy = learned.accuracy
    return {
        "known": len(keep),
        "right": float(right.mean()),
        "believed": float(believed.mean()),
        "stated": accuracy.value,
        "low": accuracy.low,
        "high": accuracy.high,
        "error before": calibration_error(believed, right),
        "error after": calibration_error(frame["probability"].to_numpy(), right),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(learn_sets.SETS))
    parser.add_argument("--splits", type=int, default=5)
    given = parser.parse_args()
    place = folder()
    if place is None:
        raise SystemExit("no real data; set CROWDTREE_DATA")
    warnings.simplefilter("ignore", ct.CrowdtreeWarning)
    print("| set | known items | right | believed by the fit | stated (95 %) | holds | "
          "calibration error before | after |\n" + "| --- " * 8 + "|")  # fmt: skip
    for name in given.sets:
        for most in GOLD:
            rows = [
                tried(split, most, number)
                for number, split in enumerate(learn_sets.SETS[name](place))
                if number < given.splits
            ]
            mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
            held = sum(row["low"] <= row["right"] <= row["high"] for row in rows)
            print(
                f"| {name} | {mean['known']:.0f} | {mean['right']:.1%} | {mean['believed']:.1%} | "
                f"{mean['stated']:.1%} ({mean['low']:.1%} to {mean['high']:.1%}) | "
                f"{held} of {len(rows)} | {100 * mean['error before']:.1f} | "
                f"{100 * mean['error after']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
