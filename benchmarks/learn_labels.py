"""Labels of one question: how many are right, what is stated, and whether intervals hold.

``python -m benchmarks.learn_labels [--only real|simulated|NAMES] [--methods NAMES] [--json FILE]``
on the crowds of ``crowds.py``. Methods are those of ``peers.py``, ``learn`` (the default of
``ct.learn``) and ``learn:METHOD``; ``ct.learn`` is used through the public API alone. A real crowd
is left out of what ``learn`` knows from other crowds (``prior_without``).

- *accuracy*: share of the items of known class whose label is right. Equal methods share the mean
  of their ranks. *gap*: accuracy less that of the best peer on the crowd.
- *calibration error*: over ten bins of equal width of the stated probability of the label, mean
  distance of stated and observed share, weighted by items. *by chance*: the same if the stated
  probabilities were the true ones (simulated).
- *known items*: drawn at random ``--draws`` times and given to ``learned.calibrate``, or with
  ``--gold fit`` to ``learn``; calibration is that of the other items. A number of known items that
  would leave fewer than 30 others is skipped.
- *held*: how often the 95 % interval of ``learned.accuracy`` holds the share of right labels of the
  items that it speaks about: all for ``calibrate``, which leaves labels as they are, the others
  for ``--gold fit``. Where few items have a known class (trec), their share stands for all.
- *workers*: of those with 20 or more answers to items of known class, how many have a 95 %
  interval that holds the share of these answers that is wrong. Where all classes are known, that
  is the very error rate of what they did; *bias* is the mean of stated less observed error.
  *shares*: the same for the share of every class among the items of known class.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

import crowdtree as ct
from benchmarks.crowd_prior import prior_without
from benchmarks.crowds import SIMULATED, Crowd, choose, load
from benchmarks.peers import PEERS

KNOWN = (20, 50, 200)
MIN_OTHERS = 30
MIN_ANSWERS = 20
BINS = 10
Row = dict[str, Any]


def calibration_error(stated: np.ndarray, right: np.ndarray) -> float:
    """Expected calibration error over bins of equal width, in points."""
    bins = np.minimum((stated * BINS).astype(int), BINS - 1)
    return 100 * float(np.abs(np.bincount(bins, stated - right)).sum() / len(stated))


def calibration(stated: np.ndarray, right: np.ndarray) -> Row:
    """Stated and observed share, calibration error, and that of chance alone."""
    rng = np.random.default_rng(0)
    chance = [calibration_error(stated, rng.random(len(stated)) < stated) for _ in range(20)]
    return {
        "accuracy": 100 * float(right.mean()),
        "stated": 100 * float(stated.mean()),
        "calibration": calibration_error(stated, right),
        "chance": float(np.mean(chance)),
    }


def statements(learned: Any, crowd: Crowd) -> tuple[np.ndarray, np.ndarray]:
    """Stated probability and correctness of the label of each item of known class."""
    frame = learned.label_columns()
    label = dict(zip(frame["task"], frame["label"], strict=True))
    stated = dict(zip(frame["task"], frame["probability"], strict=True))
    gold = crowd.gold
    right = np.array([label[task] == name for task, name in gold.items()])
    return np.array([stated[task] for task in gold]), right


def interval(learned: Any, share: float) -> Row:
    """The interval of the accuracy, and whether it holds a share."""
    value, low, high = (float(x) for x in learned.accuracy[:3])
    return {
        "value": 100 * value,
        "low": 100 * low,
        "high": 100 * high,
        "width": 100 * (high - low),
        "held": low <= share <= high,
    }


def workers(learned: Any, crowd: Crowd) -> Row:
    """Intervals of the workers' errors against the errors that they made on known items."""
    truth = crowd.truth[crowd.task]
    known, size = truth >= 0, len(crowd.workers)
    count = np.bincount(crowd.worker[known], minlength=size)
    wrong = np.bincount(crowd.worker[known], (crowd.label != truth)[known], size)
    held, bias = [], []
    for index in np.flatnonzero(count >= MIN_ANSWERS):
        found, error = learned.workers[crowd.workers[index]], wrong[index] / count[index]
        held.append(found.error_low - 1e-9 <= error <= found.error_high + 1e-9)
        bias.append(100 * (found.error - error))
    mean = float(np.mean(bias)) if bias else 0.0
    return {"workers_held": int(sum(held)), "workers": len(held), "workers_bias": mean}


def shares(learned: Any, crowd: Crowd) -> Row:
    """Intervals of the class shares against the shares among the items of known class."""
    names = np.array(crowd.labels)[crowd.truth[crowd.truth >= 0]]
    ends = learned.intervals.prior
    observed = np.array([(names == name).mean() for name in learned.classes])
    inside = (ends.low <= observed) & (observed <= ends.high)
    return {"shares_held": int(inside.sum()), "shares": len(inside)}


def known_items(learned: Any, crowd: Crowd, method: Row, count: int, draws: int, fit: bool) -> Row:
    """Calibration and the interval with known items: means over random draws of them."""
    gold, rng, rows = crowd.gold, np.random.default_rng(count), []
    for _ in range(draws):
        chosen = rng.permutation(len(gold)) < count
        some = {task: gold[task] for task, taken in zip(gold, chosen, strict=True) if taken}
        if fit:
            known = ct.learn(crowd.frame, some, classes=learned.classes, **method)
        else:
            known = learned.calibrate(some)
        stated, right = statements(known, crowd)
        share = float(right[~chosen].mean() if fit else right.mean())
        rows.append(calibration(stated[~chosen], right[~chosen]) | interval(known, share))
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def measure_learn(crowd: Crowd, method: Row, draws: int, fit: bool) -> Row:
    """Measure ``ct.learn`` on a crowd."""
    with prior_without(crowd.name):
        start = time.process_time()
        learned = ct.learn(crowd.frame, **method)
        stated, right = statements(learned, crowd)
        row = {"seconds": time.process_time() - start, **calibration(stated, right)}
        row |= interval(learned, float(right.mean()))
        row |= workers(learned, crowd) | shares(learned, crowd)
        sizes = [n for n in KNOWN if draws and len(right) - n >= MIN_OTHERS]
        row["known"] = {str(n): known_items(learned, crowd, method, n, draws, fit) for n in sizes}
    return row


def measure_peer(crowd: Crowd, name: str) -> Row:
    """Measure a method of ``peers.py`` on a crowd."""
    start = time.process_time()
    posterior = PEERS[name](crowd).posterior
    known = crowd.truth >= 0
    right = posterior.argmax(axis=1)[known] == crowd.truth[known]
    seconds = time.process_time() - start
    return {"seconds": seconds, **calibration(posterior.max(axis=1)[known].clip(0, 1), right)}


def measure(crowd: Crowd, methods: list[str], draws: int, fit: bool) -> Row:
    """Measure methods on a crowd."""
    rows = {}
    for name in methods:
        kind, _, option = name.partition(":")
        if kind == "learn":
            chosen = {"method": option} if option else {}
            rows[name] = measure_learn(crowd, chosen, draws, fit)
        else:
            rows[name] = measure_peer(crowd, name)
    return {"simulated": crowd.name in SIMULATED, "methods": rows}


def standing(found: dict[str, Row], methods: list[str]) -> dict[str, Row]:
    """Mean accuracy, average rank, and mean and worst gap to the best peer of every method."""
    table = np.array([[row["methods"][m]["accuracy"] for m in methods] for row in found.values()])
    ranks = np.array([rankdata(-row.round(6)) for row in table]).mean(axis=0)
    peers = [i for i, m in enumerate(methods) if m in PEERS]
    gaps = table - table[:, peers or slice(None)].max(axis=1, keepdims=True)
    names = list(found)
    return {
        m: {"accuracy": table[:, i].mean(), "rank": ranks[i], "gap": gaps[:, i].mean(),
            "worst": gaps[:, i].min(), "where": names[int(gaps[:, i].argmin())]}
        for i, m in enumerate(methods)
    }  # fmt: skip


def summary(found: dict[str, Row], name: str) -> list[str]:
    """Lines about the statements of one method of ``learn``: without and with known items."""
    rows = {crowd: row["methods"][name] for crowd, row in found.items()}
    lines = []
    for count in ("0", *map(str, KNOWN)):
        some = {c: r if count == "0" else r["known"][count] for c, r in rows.items()
                if count == "0" or count in r["known"]}  # fmt: skip
        if not some:
            continue
        worst = max(some, key=lambda c: some[c]["calibration"])
        mean = {key: np.mean([r[key] for r in some.values()])
                for key in ("calibration", "chance", "held", "width")}  # fmt: skip
        lines.append(
            f"  {count:>3} known items, {len(some)} crowds: calibration error "
            f"{mean['calibration']:.1f} (chance {mean['chance']:.1f}; worst {worst} "
            f"{some[worst]['calibration']:.1f}), interval holds {100 * mean['held']:.0f} %, "
            f"width {mean['width']:.1f}"
        )
    total, held = (sum(r[key] for r in rows.values()) for key in ("workers", "workers_held"))
    few = min(((r["workers_held"] / r["workers"], c) for c, r in rows.items() if r["workers"]),
              default=(1.0, "none"))  # fmt: skip
    within, classes = (sum(r[key] for r in rows.values()) for key in ("shares_held", "shares"))
    lines.append(f"  class shares: {within} of {classes} intervals hold")
    lines.append(f"  workers: {held} of {total} intervals hold ({100 * held / max(total, 1):.1f} %;"
                 f" worst {few[1]} {100 * few[0]:.0f} %)")  # fmt: skip
    return lines


def report(found: dict[str, Row], methods: list[str]) -> Iterator[str]:
    """Lines of the whole report."""
    yield f"{'accuracy, %':24}" + "".join(f"{m:>13}" for m in methods)
    for crowd, row in found.items():
        cells = "".join(f"{row['methods'][m]['accuracy']:13.2f}" for m in methods)
        yield f"{crowd:24}{cells}"
    yield f"\n{'calibration error':24}" + "".join(f"{m:>13}" for m in methods)
    for crowd, row in found.items():
        cells = "".join(f"{row['methods'][m]['calibration']:13.1f}" for m in methods)
        yield f"{crowd:24}{cells}"
    for name in [m for m in methods if m not in PEERS]:
        head = ("right", "stated", "low", "high", "error", "chance", "workers", "bias", "seconds")
        head += tuple(f"{n}: {x}" for n in KNOWN for x in ("error", "held", "width"))
        yield f"\n{name:24}" + "".join(f"{x:>11}" for x in head)
        for crowd, row in found.items():
            one = row["methods"][name]
            cells = [f"{one[key]:.1f}" for key in ("accuracy", "stated", "low", "high",
                                                    "calibration", "chance")]  # fmt: skip
            cells += [f"{one['workers_held']}/{one['workers']}", f"{one['workers_bias']:+.1f}",
                      f"{one['seconds']:.1f}"]  # fmt: skip
            for count in map(str, KNOWN):
                some = one["known"].get(count)
                cells += [f"{some['calibration']:.1f}", f"{100 * some['held']:.0f} %",
                          f"{some['width']:.1f}"] if some else ["-"] * 3  # fmt: skip
            yield f"{crowd:24}" + "".join(f"{x:>11}" for x in cells)
    for kind, simulated in (("real", False), ("simulated", True)):
        some = {c: row for c, row in found.items() if row["simulated"] == simulated}
        if not some:
            continue
        yield f"\n{len(some)} {kind} crowds"
        for method, row in standing(some, methods).items():
            error = np.mean([r["methods"][method]["calibration"] for r in some.values()])
            yield (f"  {method:24} accuracy {row['accuracy']:.2f}, average rank {row['rank']:.2f}, "
                   f"gap to the best peer {row['gap']:+.2f} (worst {row['worst']:+.2f}, "
                   f"{row['where']}), calibration error {error:.1f}")  # fmt: skip
        for method in [m for m in methods if m not in PEERS]:
            yield f"  {method}:"
            yield from summary(some, method)
            behind = {c: standing({c: row}, methods)[method]["gap"] for c, row in some.items()}
            low = [f"{c} {gap:+.1f}" for c, gap in behind.items() if gap < -2]
            yield f"  more than 2 points below the best peer: {', '.join(low) or 'none'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="real, simulated, or names of crowds with commas")
    parser.add_argument("--methods", default=",".join(["learn", *PEERS]))
    parser.add_argument("--draws", type=int, default=20, help="draws of known items; 0 for none")
    parser.add_argument("--gold", choices=("calibrate", "fit"), default="calibrate")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    methods, found = given.methods.split(","), {}
    for crowd in map(load, choose(given.only)):
        found[crowd.name] = measure(crowd, methods, given.draws, given.gold == "fit")
        shown = ", ".join(f"{m} {r['accuracy']:.1f}"
                          for m, r in found[crowd.name]["methods"].items())  # fmt: skip
        print(f"{crowd.name}: {shown}", flush=True)
        if given.json:
            given.json.write_text(json.dumps(found, indent=1))
    print("\n" + "\n".join(report(found, methods)))


if __name__ == "__main__":
    main()
