"""Accuracy on real crowds, compared with crowd-kit's aggregators.

``python -m benchmarks.learn_accuracy [--skip-glad]`` with CROWDKIT_PYTHON naming a
Python that has crowd-kit. Prints a table, the average ranks, and the worst gap to the best.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.realdata import folder
from crowdtree.learning import learn

PEERS = ("MajorityVote", "Wawa", "OneCoinDawidSkene", "DawidSkene", "GLAD", "KOS")
OURS = {"crowdtree": "hierarchical", "crowdtree dawid-skene": "dawid-skene"}


def score(labels: dict[str, str], gold: dict[str, str]) -> float:
    return 100 * float(np.mean([labels.get(task) == label for task, label in gold.items()]))


def wawa(frame: pl.DataFrame) -> dict[str, str]:
    """Worker agreement with the majority as weight of a vote, by its definition."""

    def vote(table: pl.DataFrame) -> pl.DataFrame:
        score = table.group_by("task", "label").agg(pl.col("weight").sum())
        best = score.sort(["task", "weight", "label"], descending=[False, True, False])
        return best.group_by("task", maintain_order=True).first().select("task", "label")

    first = vote(frame.with_columns(weight=pl.lit(1.0))).rename({"label": "majority"})
    skill = (
        frame.join(first, on="task")
        .group_by("worker")
        .agg(weight=(pl.col("label") == pl.col("majority")).mean())
    )
    made = vote(frame.join(skill, on="worker")).cast(pl.String)
    return dict(zip(made["task"], made["label"], strict=True))


def peer(python: str, method: str, frame: pl.DataFrame) -> tuple[dict[str, str] | None, str]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "a.csv"), Path(folder, "l.csv")
        frame.write_csv(source)
        script = Path(__file__).with_name("learn_peers.py")
        done = subprocess.run(
            [python, str(script), method, str(source), str(target)],
            capture_output=True, text=True, check=False, timeout=3600,
        )  # fmt: skip
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"]
            return None, said[-1][:90]
        result = json.loads(done.stdout.strip().splitlines()[-1])
        if "failed" in result:
            return None, result["failed"]
        table = pl.read_csv(target, infer_schema=False)
        return dict(zip(table["task"], table["label"], strict=True)), ""


def main() -> None:
    warnings.simplefilter("ignore")
    data = folder()
    if data is None:
        raise SystemExit("no data: set CROWDTREE_DATA to the folder that holds crowd_bluebird")
    python = os.environ.get("CROWDKIT_PYTHON")
    peers = [p for p in PEERS if python and not (p == "GLAD" and "--skip-glad" in sys.argv)]
    defined = ["Wawa by definition"] if python else []
    rows: dict[str, list[float]] = {name: [] for name in (*OURS, *defined, *peers)}
    names, failures = [], {}
    for place in sorted(data.glob("crowd_*")):
        path = next(p for p in (place / "answers.csv", place / "answers.csv.gz") if p.exists())
        frame = pl.read_csv(path, columns=["task", "worker", "label"])
        truth = pl.read_csv(place / "gold.csv", infer_schema=False)
        gold = dict(zip(truth["task"], truth["label"], strict=True))
        names.append(place.name.removeprefix("crowd_"))
        for name, method in OURS.items():
            rows[name].append(score(dict(learn(frame, method=method).labels), gold))
        for name in defined:
            rows[name].append(score(wawa(frame), gold))
        for name in peers:
            labels, problem = peer(python or "", name, frame)
            rows[name].append(score(labels, gold) if labels else float("nan"))
            if problem:
                failures.setdefault((name, problem), []).append(names[-1])
    report(names, rows, failures)


def report(names: list[str], rows: dict[str, list[float]], failures: dict) -> None:
    table = np.array(list(rows.values()))
    table_for_rank = np.where(np.isnan(table), -1, table.round(2))
    rank = (table_for_rank[None] > table_for_rank[:, None] + 1e-9).sum(axis=1) + 1
    print(f"{'accuracy, %':24}" + "".join(f"{n:>12}" for n in names) + f"{'avg rank':>12}")
    for name, values, ranks in zip(rows, table, rank, strict=True):
        cells = "".join(f"{'fails':>12}" if np.isnan(v) else f"{v:12.2f}" for v in values)
        print(f"{name:24}{cells}{ranks.mean():12.2f}")
    best = np.nanmax(table[2:], axis=0) if len(table) > 2 else np.nanmax(table, axis=0)
    gap = (table[0] - best).min()
    print(f"\ncrowdtree less the best peer, worst set: {gap:+.2f} points")
    for (name, problem), where in failures.items():
        print(f"{name} fails on {', '.join(where)}: {problem}")


if __name__ == "__main__":
    main()
