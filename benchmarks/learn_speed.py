"""Speed and memory on simulated crowds, compared with crowd-kit's, measured in one run.

``CROWDKIT_PYTHON=... python -m benchmarks.learn_speed --json out/bench/learn_speed.json``;
CROWDKIT_PYTHON names a Python with crowd-kit. Every run is a process of its own that reads the
same Parquet file and is warmed up on 1,000 answers first. GLAD runs whole (about six minutes);
``--glad N`` stops it after N steps, and ``--glad 0`` leaves it out. ``learn_docs.py`` writes the
page from the JSON.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parents[1]


def crowd(answers: int, seed: int = 0) -> tuple[pl.DataFrame, np.ndarray]:
    """Tasks x 10 of 1,000 workers, binary, errors from Beta(2, 6)."""
    rng = np.random.default_rng(seed)
    tasks, workers, each = answers // 10, 1000, 10
    truth = rng.integers(0, 2, tasks).astype(np.int8)
    error = rng.beta(2, 6, workers)
    task = np.repeat(np.arange(tasks, dtype=np.int32), each)
    first = rng.integers(0, workers, tasks, dtype=np.int32)
    worker = ((first[:, None] + np.arange(each, dtype=np.int32) * 97) % workers).ravel()
    label = truth[task] ^ (rng.random(answers, dtype=np.float32) < error[worker])
    return pl.DataFrame({"task": task, "worker": worker, "label": label.astype(np.int8)}), truth


def ours(method: str, source: str) -> dict:
    """Run in a fresh process: a warm-up compiles or loads the kernels, then the clock starts."""
    code = f"""
import json
import polars as pl
from crowdtree.learning import learn
from benchmarks.learn_peers import Meter
frame = pl.read_parquet({source!r})
learn(frame.head(1000), method={method!r}).intervals
with Meter() as meter:
    learned = learn(frame, method={method!r})
best = learned.posterior.argmax(axis=1).astype('int8')
best.tofile({source + ".labels"!r})
print(json.dumps(dict(meter.found, steps=len(learned.trace))))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    result = json.loads(done.stdout)
    result["labels"] = np.fromfile(source + ".labels", dtype=np.int8)
    return result


def peer(python: str, method: str, source: str, iterations: int | None = None) -> dict:
    target = source + ".csv"
    script = Path(__file__).with_name("learn_peers.py")
    extra = [] if iterations is None else [str(iterations)]
    done = subprocess.run(
        [python, str(script), method, source, target, *extra], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    result = json.loads(done.stdout.strip().splitlines()[-1])
    if "failed" not in result:
        table = pl.read_csv(target).sort("task")
        result["labels"] = table["label"].to_numpy()
    return result


def show(name: str, result: dict, truth: np.ndarray) -> None:
    """Print a run, and put its accuracy in the place of its labels."""
    if "failed" in result:
        print(f"{name:38} fails: {result['failed']}")
        return
    result["right"] = float((result.pop("labels") == truth).mean())
    print(
        f"{name:38}{result['seconds']:9.2f} s {result['cpu']:9.2f} s of processor "
        f"{result['memory'] / 2**20:8.0f} MB above the input {100 * result['right']:8.3f} % right",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--glad", type=int, default=-1, help="steps; -1: until it is done")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--slope", type=int, nargs="*", default=[250_000, 1_000_000, 4_000_000,
                                                                 20_000_000])  # fmt: skip
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    python = os.environ.get("CROWDKIT_PYTHON")
    with tempfile.TemporaryDirectory() as folder:
        found = side_by_side(given.rows, folder, python, given.glad)
        found |= slope(given.slope, folder)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=1))


def side_by_side(rows: int, folder: str, python: str | None, glad: int) -> dict:
    """Ours and theirs in turn, the median of three by time; GLAD once."""
    frame, truth = crowd(rows)
    source = str(Path(folder, f"{rows}.parquet"))
    frame.write_parquet(source)
    print(f"{rows:,} answers")
    runs: dict[str, list[dict]] = {}
    for turn in range(3):
        print(f"  turn {turn + 1} of 3", flush=True)
        for method in ("dawid-skene", "hierarchical"):
            runs.setdefault(f"crowdtree {method}", []).append(ours(method, source))
        if python:
            runs.setdefault("crowd-kit DawidSkene", []).append(peer(python, "DawidSkene", source))
    if python and glad:
        print("  GLAD", flush=True)
        runs["crowd-kit GLAD"] = [peer(python, "GLAD", source, None if glad < 0 else glad)]
    made = {name: sorted(tries, key=lambda r: r.get("seconds", 0))[len(tries) // 2]
            for name, tries in runs.items()}  # fmt: skip
    for name, result in made.items():
        show(name, result, truth)
    for mine, theirs in (("dawid-skene", "DawidSkene"), ("hierarchical", "GLAD")):
        a, b = made[f"crowdtree {mine}"], made.get(f"crowd-kit {theirs}", {})
        if "seconds" in b:
            print(f"  crowdtree {mine} against {theirs}: {b['seconds'] / a['seconds']:.1f} times "
                  f"faster ({b['cpu'] / a['cpu']:.1f} by processor time), memory ratio "
                  f"{a['memory'] / max(b['memory'], 1):.2f}")  # fmt: skip
    return {"rows": rows, "runs": made, "glad_steps": glad}


def slope(sizes: list[int], folder: str) -> dict:
    """Time and memory against the number of answers, from Parquet."""
    points = []
    for rows in sizes:
        frame, truth = crowd(rows)
        source = str(Path(folder, "slope.parquet"))
        frame.write_parquet(source)
        del frame
        code = f"""
import json, resource
from crowdtree.learning import learn
from benchmarks.learn_peers import Meter
import polars as pl
learn(pl.scan_parquet({source!r}).head(1000).collect())  # compiled before the clock starts
with Meter() as meter:
    learned = learn({source!r})
best = learned.posterior.argmax(axis=1).astype('int8')
best.tofile({source + ".labels"!r})
peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps(dict(meter.found, peak=peak, steps=len(learned.trace))))
"""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
        )
        if done.returncode:
            print(f"{rows:,} answers: fails: {done.stderr.strip().splitlines()[-1:]}")
            continue
        point = {"rows": rows, **json.loads(done.stdout)}
        point["right"] = float((np.fromfile(source + ".labels", np.int8) == truth).mean())
        points.append(point)
        print(f"{rows:>12,} answers {point['seconds']:8.2f} s  peak {point['peak'] / 2**20:7.0f} "
              f"MB {100 * point['right']:7.3f} % right in {point['steps']} steps",
              flush=True)  # fmt: skip
    if len(points) < 2:
        return {"slope": points}
    x, y = np.log([[p["rows"], p["cpu"]] for p in points]).T
    power = float(np.polyfit(x, y, 1)[0])
    print(f"processor time grows as answers^{power:.2f}")
    return {"slope": points, "power": power}


if __name__ == "__main__":
    main()
