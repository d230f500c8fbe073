"""Items that start from a classifier's opinion: answers at equal accuracy, with and without.

Everything is measured on items that were used for nothing before. With 50, 200 and 1000 known
items, drawn twelve times:

- mixed_cifar10h: photographs of ten things, one question with ten answers. The confusions of the
  people, the exponents of the opinions and the calibration of the policy come from the known items.
  People answer in a random order. Opinions: each of four networks, all of them, and the rows of
  the weakest one shuffled among the items.
- apascal: 20 classes of objects. A logistic regression reads every third attribute, in place of
  features of the picture; people are asked the others. The table comes from one half of the
  objects; the known items, from the other half, train the regression (cross-fitted in five folds
  for their own opinions), the exponents, and the calibration. Tried on the rest of that half.

Answers at equal accuracy: policies without and with opinions at several targets (or budgets) give
accuracy against answers per item, interpolated where the one without opinions is.

``python -m benchmarks.opinions [--sets cifar apascal] [--draws 12] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import crowdtree as ct
from benchmarks.realdata import folder, read_table
from crowdtree.core.stats import mean_half_width
from crowdtree.simulation import Recorded, Run

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
KNOWN = (50, 200, 1000)
NETWORKS = ("cnn", "resnet", "preresnet", "densenet")
TARGETS = (0.4, 0.2, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002)
PEOPLE = 12
"""Answers of people that are kept of each photograph, the most that a policy may use."""
PEOPLE_ASKED = (1, 2, 3)
BUDGETS = (1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 43)
EVERY = 3
"""Every so manieth attribute is read by the classifier."""
FOLDS = 5
Rows = dict[str, FloatArray]


def shuffled(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    return rows[rng.permutation(len(rows))]


def describe(opinions: ct.Opinions) -> str:
    return "; ".join(map(str, opinions.exponents))


# ---------------------------------------------------------------- photographs


def photographs(seed: int = 0) -> tuple[list[str], IntArray, NDArray[np.int8], Rows]:
    """Classes, truth, answers of people in a random order, and what each network says."""
    place = folder()
    assert place is not None
    here = place / "mixed_cifar10h"
    header, *lines = read_table(here, "people")
    classes = header[2:]
    truth = np.array([classes.index(line[1]) for line in lines])
    rng = np.random.default_rng(seed)
    values = np.full((len(lines), 1, PEOPLE), -1, dtype=np.int8)
    for row, line in enumerate(lines):
        said = rng.permutation(np.repeat(np.arange(len(classes)), np.array(line[2:], int)))
        values[row, 0, : len(said[:PEOPLE])] = said[:PEOPLE]
    rows = {}
    for name in NETWORKS:
        names, *table = read_table(here, f"model_{name}")
        assert names[1:] == classes
        assert [line[0] for line in table] == [line[0] for line in lines]
        rows[name] = np.array([line[1:] for line in table], dtype=np.float64)
    return classes, truth, values, rows


def people_table(classes: list[str], truth: IntArray, values: NDArray[np.int8]) -> ct.Problem:
    """Confusions of the people about known items, shrunk to people who err evenly."""
    n = len(classes)
    counts = np.zeros((n, n))
    there = values[:, 0] >= 0
    item, turn = np.nonzero(there)
    np.add.at(counts, (truth[item], values[item, 0, turn]), 1)
    right = (np.trace(counts) + 1) / (counts.sum() + 2)
    even = np.full((n, n), (1 - right) / (n - 1))
    np.fill_diagonal(even, right)
    table = (counts + 10 * even) / (counts.sum(axis=1, keepdims=True) + 10)
    return ct.Problem.from_table(classes, None, ["what"], {"what": table.T}, [classes])


def arms_of(rows: Rows, rng: np.random.Generator) -> dict[str, Rows]:
    """What items start from: nothing, each network, all of them, and shuffled rows."""
    alone = {name: {name: table} for name, table in rows.items()}
    return {
        "none": {},
        **alone,
        "all four": rows,
        "cnn shuffled": {"cnn": shuffled(rows["cnn"], rng)},
    }


def cifar(draws: int) -> Iterator[dict[str, Any]]:
    """One row per number of known items, draw, arm, and policy."""
    for items in KNOWN:
        for draw in range(draws):
            classes, truth, values, rows = photographs(draw)
            rng = np.random.default_rng((items, draw))
            order = rng.permutation(len(truth))
            known, fresh = order[:items], order[items:]
            problem = people_table(classes, truth[known], values[known])
            for arm, given in arms_of(rows, rng).items():
                known_rows = {name: table[known] for name, table in given.items()}
                fresh_rows = {name: table[fresh] for name, table in given.items()}
                opinions = ct.Opinions.fit(known_rows, truth[known], problem) if given else None
                before = None if opinions is None else opinions.known_priors
                now = None if opinions is None else opinions.priors(fresh_rows)
                policy = ct.AdaptivePolicy(
                    problem, 0.05, PEOPLE, repeats=PEOPLE, strict=False, undecided=False
                )
                policy = policy.calibrate(Recorded(values[known], truth[known], before))
                crowd = Recorded(values[fresh], truth[fresh], now)
                row = {"set": "cifar", "known": items, "draw": draw, "arm": arm,
                       "exponents": "" if opinions is None else describe(opinions)}  # fmt: skip
                for target in TARGETS:
                    run = tried(policy.changed(target_error=target), crowd)
                    yield row | {"target": target} | numbers(run)
                for people in PEOPLE_ASKED:
                    asked = policy.changed(target_error=0.0, max_answers=people, repeats=people)
                    run = tried(asked, crowd)
                    right = run.label_index == run.truth_index
                    if arm == "none":
                        three = right
                    more = right.astype(float) - three
                    gain = {"more": float(more.mean()), "half": mean_half_width(more)}
                    yield row | {"budget": people} | numbers(run) | gain


# ---------------------------------------------------------------- objects


def objects() -> tuple[list[str], IntArray, NDArray[np.int8], list[str]]:
    """Classes, truth, answers to all attributes, and their names."""
    place = folder()
    assert place is not None
    table = pl.read_csv(place / "apascal" / "objects_wide.csv.gz")
    names = table["class"].to_list()
    classes = sorted(set(names))
    values = table.select(table.columns[3:]).to_numpy().astype(np.int8)
    return classes, np.array([classes.index(name) for name in names]), values, table.columns[3:]


def object_table(
    classes: list[str], truth: IntArray, values: NDArray[np.int8], questions: list[str]
) -> ct.Problem:
    """Shares of yes by class, with one more yes and one more no each."""
    count = np.bincount(truth, minlength=len(classes))
    yes = np.stack([values[truth == c].sum(axis=0) for c in range(len(classes))], axis=1)
    prior = (count + 1) / (count + 1).sum()
    return ct.Problem.from_strength(classes, prior, questions, (yes + 1) / (count + 2))


def classifier_rows(
    seen: NDArray[np.int8], truth: IntArray, known: IntArray, fresh: IntArray, classes: list[str]
) -> tuple[FloatArray, FloatArray]:
    """Opinions about known items, each from the other folds, and about new ones."""
    from sklearn.linear_model import LogisticRegression

    names = np.array(classes)[truth]
    fold = np.arange(len(known)) % FOLDS
    rows = np.empty((len(known), len(classes)))
    for out in range(FOLDS):
        rest = known[fold != out]
        model = LogisticRegression(max_iter=1000).fit(seen[rest], names[rest])
        rows[fold == out] = ct.opinions_of(model, seen[known[fold == out]], classes)
    model = LogisticRegression(max_iter=1000).fit(seen[known], names[known])
    return rows, ct.opinions_of(model, seen[fresh], classes)


def apascal(draws: int) -> Iterator[dict[str, Any]]:
    """One row per number of known items, draw, arm, and budget."""
    classes, truth, values, names = objects()
    free = np.arange(len(names)) % EVERY == 0
    asked = [name for name, is_free in zip(names, free, strict=True) if not is_free]
    for items in KNOWN:
        for draw in range(draws):
            rng = np.random.default_rng((items, draw))
            order = rng.permutation(len(truth))
            half = len(order) // 2
            taught, known, fresh = order[:half], order[half : half + items], order[half + items :]
            problem = object_table(classes, truth[taught], values[taught][:, ~free], asked)
            rows = classifier_rows(values[:, free], truth, known, fresh, classes)
            right = float((np.nanargmax(rows[1], axis=1) == truth[fresh]).mean())
            mixed = shuffled(rows[0], rng), shuffled(rows[1], rng)
            arms = {"none": None, "classifier": rows, "shuffled": mixed}
            for arm, given in arms.items():
                opinions = (
                    None if given is None else ct.Opinions.fit(given[0], truth[known], problem)
                )
                before = None if opinions is None else opinions.known_priors
                now = None if opinions is None else opinions.priors(given[1])
                said = values[:, ~free][:, :, None]
                policy = ct.AdaptivePolicy(problem, 0.0, len(asked), repeats=1, strict=False)
                policy = policy.calibrate(Recorded(said[known], truth[known], before))
                crowd = Recorded(said[fresh], truth[fresh], now)
                row = {"set": "apascal", "known": items, "draw": draw, "arm": arm, "right": right,
                       "exponents": "" if opinions is None else describe(opinions)}  # fmt: skip
                yield row | {"budget": 0} | at_once(problem, now, truth[fresh])
                for budget in BUDGETS:
                    run = tried(policy.changed(max_answers=budget), crowd)
                    yield row | {"budget": budget} | numbers(run)


# ---------------------------------------------------------------- numbers


def tried(policy: ct.AdaptivePolicy, crowd: Recorded) -> Run:
    return ct.simulate(policy.problem, policy, len(crowd.truth), crowd=crowd)


def numbers(run: Run) -> dict[str, float]:
    return {
        "items": run.items,
        "answers": float(run.answers.mean()),
        "accuracy": float((run.label_index == run.truth_index).mean()),
        "stated": 1 - float(run.posterior_error.mean()),
    }


def at_once(problem: ct.Problem, prior: FloatArray | None, truth: IntArray) -> dict[str, float]:
    """Numbers of the labels that items have without an answer."""
    rows = np.tile(problem.prior, (len(truth), 1)) if prior is None else prior
    right = float((rows.argmax(axis=1) == truth).mean())
    stated = float(rows.max(axis=1).mean())
    return {"items": len(truth), "answers": 0.0, "accuracy": right, "stated": stated}


def curve(rows: list[Mapping[str, Any]], known: int, arm: str, by: str) -> FloatArray:
    """Mean answers, accuracy and stated accuracy over the draws, one row per target or budget."""
    mine = [r for r in rows if r["known"] == known and r["arm"] == arm and by in r]
    keys = sorted({r[by] for r in mine}, reverse=by == "target")
    names = ("answers", "accuracy", "stated")
    return np.array(
        [[np.mean([r[n] for r in mine if r[by] == key]) for n in names] for key in keys]
    )


def answers_for(points: FloatArray, accuracy: float) -> float:
    """Answers per item at which a curve reaches an accuracy; NaN where it does not."""
    reached = np.maximum.accumulate(points[:, 1])
    if accuracy > reached[-1] + 1e-12:
        return float("nan")
    place = int(np.argmax(reached >= accuracy - 1e-12))
    if place == 0:
        return float(points[0, 0])
    low, high = points[place - 1], points[place]
    share = (accuracy - reached[place - 1]) / (reached[place] - reached[place - 1])
    return float(low[0] + share * (high[0] - low[0]))


def show(rows: list[Mapping[str, Any]], by: str, at: tuple[float, ...]) -> None:
    """Print answers at equal accuracy, and the exponents of the first draw."""
    arms = list(dict.fromkeys(r["arm"] for r in rows))
    for known in sorted({r["known"] for r in rows}):
        plain = curve(rows, known, "none", by)
        keys = sorted({r[by] for r in rows if by in r}, reverse=by == "target")
        print(f"\n{rows[0]['set']}: {known} known items, answers at the accuracy without opinions")
        for key in at:
            spent, accuracy, _ = plain[keys.index(key)]
            cells = []
            for arm in arms[1:]:
                needed = answers_for(curve(rows, known, arm, by), accuracy)
                cells.append(f"{arm} {needed:.2f} ({needed / spent - 1:+.1%})")
            print(f"  {by} {key:g}, accuracy {accuracy:.1%}: none {spent:.2f}; {'; '.join(cells)}")
        for arm in arms:
            points = curve(rows, known, arm, by)
            gap = float(np.abs(points[:, 1] - points[:, 2]).mean())
            first = next(r for r in rows if r["known"] == known and r["arm"] == arm)
            line = "; ".join(f"{a:.2f}: {right:.1%}" for a, right, _ in points)
            print(f"  {arm}: answers: accuracy {line}")
            print(f"    |stated - observed| {gap:.3f}; exponents (first draw) {first['exponents']}")
        if by == "target":
            for arm in arms:
                fixed = curve(rows, known, arm, "budget")
                print(f"  {arm}: with 1, 2, 3 people {', '.join(f'{a:.1%}' for a in fixed[:, 1])}")
            for arm in arms[1:]:
                two = [r for r in rows if r["known"] == known and r["arm"] == arm
                       and r.get("budget") == 2]  # fmt: skip
                more, half = (float(np.mean([r[name] for r in two])) for name in ("more", "half"))
                print(f"  {arm}: 2 people less 3 without: {more:+.2%} (± {half:.2%} within a draw)")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["cifar", "apascal"])
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--json")
    args = parser.parse_args()
    if folder() is None:
        print("the data folder is absent, skipped")
        return
    warnings.simplefilter("ignore")
    found: list[dict[str, Any]] = []
    for name in args.sets:
        rows = list({"cifar": cifar, "apascal": apascal}[name](args.draws))
        found += rows
        if name == "cifar":
            show(rows, "target", (0.2, 0.1, 0.05, 0.02))
        else:
            show(rows, "budget", (4, 8, 12, 15))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
