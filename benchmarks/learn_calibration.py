"""Stated and observed accuracy of real crowds, each left out of what was learned across crowds.

``CROWDKIT_PYTHON=... python -m benchmarks.learn_calibration --json out/bench/calibration.json``;
CROWDKIT_PYTHON names a Python with crowd-kit (without it the peers are left out).
For every crowd of the data folder:

- *without gold*: labels, stated probabilities and the interval of the accuracy. The prior of what
  a further answer is worth comes from the other crowds alone (leave one crowd out).
- *with 50 known items*, drawn at random three times: the same on the other items.
- workers with 20 answers or more to items of known class: how often the interval of their error
  holds the error that was observed on these items.
- peers: Dawid-Skene, one-coin, MACE and GLAD of crowd-kit, as they are and with one temperature
  that was fitted on the other crowds.

The last lines print the two numbers that ``crowdtree/learning/dependence.py`` ships: mean and
standard deviation of log worth over all crowds. On these crowds they are in-sample.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.realdata import folder
from crowdtree.learning import dependence, learn
from crowdtree.learning.answers import gold_codes, read_gold

PEERS = ("DawidSkene", "OneCoinDawidSkene", "MACE", "GLAD")
KNOWN = 50
REPEATS = 3
LEAST = 20


def crowds(place: Path) -> dict[str, tuple[Path, Path]]:
    """Answers and gold of every crowd."""
    found = {}
    for crowd in sorted(place.glob("crowd_*")):
        path = next(p for p in (crowd / "answers.csv", crowd / "answers.csv.gz") if p.exists())
        found[crowd.name.removeprefix("crowd_")] = path, crowd / "gold.csv"
    return found


def scores(posterior: np.ndarray, truth: np.ndarray, bins: int = 10) -> dict[str, float]:
    """Accuracy, mean stated probability, expected calibration error (in points) and log loss."""
    known = truth >= 0
    p, t = posterior[known], truth[known]
    top, right = p.max(axis=1), p.argmax(axis=1) == t
    bin_ = np.minimum((top * bins).astype(int), bins - 1)
    gap = [abs(right[bin_ == b].sum() - top[bin_ == b].sum()) for b in range(bins)]
    chance = np.maximum(p[np.arange(len(t)), t], 1e-9)
    return {
        "accuracy": 100 * float(right.mean()),
        "stated": 100 * float(top.mean()),
        "calibration": 100 * float(sum(gap)) / len(t),
        "log_loss": float(-np.log(chance).mean()),
    }


def noise(posterior: np.ndarray, bins: int = 10, repeats: int = 20) -> float:
    """Calibration error that chance alone leaves to perfectly calibrated probabilities."""
    rng = np.random.default_rng(0)
    sums = np.cumsum(posterior, axis=1)
    drawn = [(rng.random((len(sums), 1)) > sums).sum(axis=1) for _ in range(repeats)]
    last = posterior.shape[1] - 1
    return float(np.mean([scores(posterior, np.minimum(d, last), bins)["calibration"]
                          for d in drawn]))  # fmt: skip


def best_worth(posterior: np.ndarray, count: np.ndarray, truth: np.ndarray) -> float:
    """Log worth under which the known items are likeliest."""
    known = np.flatnonzero(truth >= 0)
    flat = dependence.Worth.any().updated(posterior[known], count[known], truth[known])
    return float(dependence.GRID[int(flat.weight[0].argmax())])


def set_prior(worths: list[float]) -> None:
    """Let crowds differ as these do."""
    dependence.CROWD_MEAN = float(np.mean(worths))
    dependence.CROWD_SD = float(np.std(worths, ddof=1))


def workers_held(learned: Any, truth: np.ndarray) -> tuple[int, int]:
    """Workers whose interval holds their observed error, of those with enough known answers."""
    a = learned.answers
    told = truth[a.task]
    here = told >= 0
    count = np.bincount(a.worker[here], minlength=a.n_workers)
    wrong = np.bincount(a.worker[here], weights=a.label[here] != told[here], minlength=a.n_workers)
    rows = [(w.error_low, w.error_high) for w in learned.workers.values()]
    low, high = np.array(rows).T
    error = wrong / np.maximum(count, 1)
    enough = count >= LEAST
    return int(((low <= error) & (error <= high))[enough].sum()), int(enough.sum())


def ours(answers: Path, gold: dict[str, str]) -> dict[str, Any]:
    """One crowd under the prior that is set, without gold and with 50 known items."""
    learned = learn(answers)
    truth = gold_codes(learned.answers, gold, learned.classes)
    accuracy, shares = learned.accuracy, learned.intervals.prior
    told = truth[truth >= 0]
    observed = np.bincount(told, minlength=len(learned.classes)) / len(told)
    found: dict[str, Any] = scores(learned.posterior, truth)
    found |= {
        "low": 100 * accuracy.low,
        "high": 100 * accuracy.high,
        "noise": noise(learned.posterior[truth >= 0]),
        "workers": workers_held(learned, truth),
        "shares": (
            int(((shares.low <= observed) & (observed <= shares.high)).sum()),
            len(observed),
        ),
    }
    rng = np.random.default_rng(0)
    tasks = np.array([t for t in map(str, learned.answers.tasks.tolist()) if t in gold])
    parts = []
    for _ in range(REPEATS):
        some = set(rng.choice(tasks, KNOWN, replace=False).tolist())
        helped = learn(answers, {t: gold[t] for t in some}, classes=learned.classes)
        rest = np.where(helped.gold >= 0, -1, truth)
        parts.append(scores(helped.posterior, rest) | {"noise": noise(helped.posterior[rest >= 0])})
    found["gold"] = {key: float(np.mean([part[key] for part in parts])) for key in parts[0]}
    return found


def peer(python: str, method: str, learned: Any) -> np.ndarray | None:
    """Probabilities of a peer, laid out as ours; None where it fails."""
    with tempfile.TemporaryDirectory() as place:
        source, target = Path(place, "a.csv"), Path(place, "p.csv")
        learned.answers.to_crowdkit().write_csv(source)
        script = Path(__file__).with_name("learn_peers.py")
        done = subprocess.run(
            [python, str(script), method, str(source), str(target), "--probabilities"],
            capture_output=True, text=True, check=False, timeout=3600,
        )  # fmt: skip
        if done.returncode or not target.exists():
            return None
        table = pl.read_csv(target, infer_schema=False)
    row = {task: i for i, task in enumerate(table["task"])}
    order = [row[task] for task in map(str, learned.answers.tasks.tolist())]
    made = np.full((len(order), len(learned.classes)), 1e-9)
    for k, label in enumerate(learned.classes):
        if label in table.columns:
            made[:, k] += np.nan_to_num(table[label].cast(pl.Float64).to_numpy())[order]
    return made / made.sum(axis=1, keepdims=True)


def tempered(posterior: np.ndarray, power: float) -> np.ndarray:
    made = np.exp(power * np.log(posterior / posterior.max(axis=1, keepdims=True)))
    return made / made.sum(axis=1, keepdims=True)


def peers(python: str, sets: dict[str, tuple[Path, Path]]) -> dict[str, dict[str, Any]]:
    """Scores of every peer on every crowd, raw and with a temperature from the other crowds."""
    powers = np.geomspace(0.02, 1, 40)
    found: dict[str, dict[str, Any]] = {name: {} for name in sets}
    for method in PEERS:
        made = {}
        for name, (answers, gold) in sets.items():
            learned = learn(answers, method="majority")
            posterior = peer(python, method, learned)
            if posterior is not None:
                truth = gold_codes(learned.answers, read_gold(gold), learned.classes)
                made[name] = posterior, truth
        loss = {
            n: [scores(tempered(p, x), t)["log_loss"] for x in powers] for n, (p, t) in made.items()
        }
        for name, (posterior, truth) in made.items():
            others = np.mean([loss[n] for n in made if n != name], axis=0)
            power = float(powers[int(np.argmin(others))])
            found[name][method] = scores(posterior, truth)
            found[name][f"{method}, tempered"] = scores(tempered(posterior, power), truth)
        print(f"{method}: {len(made)} of {len(sets)} crowds", flush=True)
    return found


def show(found: dict[str, Any]) -> None:
    head = ("accuracy", "stated", "low", "high", "calibration", "noise", "log_loss")
    known = f"   with {KNOWN} known items: calibration, noise, log loss"
    print(f"{'crowd':20}" + "".join(f"{name:>12}" for name in head) + known)
    for name, row in found.items():
        cells = "".join(f"{row[h]:12.3f}" if h == "log_loss" else f"{row[h]:12.1f}" for h in head)
        gold = row["gold"]
        after = f"{gold['calibration']:8.1f}{gold['noise']:8.1f}{gold['log_loss']:8.3f}"
        held = "workers {}/{} shares {}/{}".format(*row["workers"], *row["shares"])
        print(f"{name:20}{cells}   {after}   {held}")
    rows = list(found.values())
    for key in ("calibration", "noise", "log_loss"):
        mean = np.mean([r[key] for r in rows]), np.mean([r["gold"][key] for r in rows])
        print(f"mean {key}: {mean[0]:.3f} without gold, {mean[1]:.3f} with {KNOWN} known items")
    held = [r["workers"][0] / r["workers"][1] for r in rows if r["workers"][1]]
    inside = sum(r["low"] <= r["accuracy"] <= r["high"] for r in rows)
    shares = [sum(r["shares"][i] for r in rows) for i in (0, 1)]
    print(
        f"intervals: accuracy {inside} of {len(rows)} crowds, workers {100 * np.mean(held):.1f} %"
    )
    print(f"(mean over crowds), class shares {shares[0]} of {shares[1]}")
    if all("peers" in row for row in rows):
        show_peers(found)


def show_peers(found: dict[str, Any]) -> None:
    won, ranks = 0, []
    for name, row in found.items():
        others = row["peers"]
        best = min(other["log_loss"] for other in others.values())
        won += row["log_loss"] < best
        plain = {k: round(v["accuracy"], 2) for k, v in others.items() if "tempered" not in k}
        every = [round(row["accuracy"], 2), *plain.values()]
        ranks.append([1 + sum(x > y for x in every) for y in every])
        told = ", ".join(f"{k} {v['accuracy']:.2f}/{v['log_loss']:.3f}" for k, v in others.items())
        gap = every[0] - max(plain.values())
        print(f"{name:20} {gap:+.2f} points, log loss {row['log_loss']:.3f}/{best:.3f}; {told}")
    print(f"log loss below every peer, tempered or not, on {won} of {len(found)} crowds")
    names = ["crowdtree", *plain]
    full = [row for row in ranks if len(row) == len(names)]
    for name, rank in zip(names, np.mean(full, axis=0), strict=True):
        print(f"average rank of the accuracy: {name} {rank:.2f}")


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    place = folder()
    if place is None:
        raise SystemExit("no data: set CROWDTREE_DATA to the folder that holds crowd_bluebird")
    sets = crowds(place)
    worth = {}
    for name, (answers, gold) in sets.items():
        learned = learn(answers)
        truth = gold_codes(learned.answers, read_gold(gold), learned.classes)
        worth[name] = best_worth(learned.fit.posterior, np.diff(learned.answers.start), truth)
    print("worth of a further answer:",
          ", ".join(f"{n} {np.exp(w):.2f}" for n, w in worth.items()), flush=True)  # fmt: skip
    found = {}
    for name, (answers, gold) in sets.items():
        set_prior([w for other, w in worth.items() if other != name])
        found[name] = ours(answers, read_gold(gold))
    python = os.environ.get("CROWDKIT_PYTHON")
    if python:
        for name, rows in peers(python, sets).items():
            found[name]["peers"] = rows
    show(found)
    set_prior(list(worth.values()))
    mean, spread = dependence.CROWD_MEAN, dependence.CROWD_SD
    print(f"to ship: worth {np.exp(mean):.3f} (log {mean:.3f}), deviation of the log {spread:.3f}")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
