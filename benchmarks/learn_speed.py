"""Speed and memory on simulated crowds, beside crowd-kit's, measured in one run.

``python benchmarks/learn_speed.py [--glad N] [--rows 1000000 ...]``. CROWDKIT_PYTHON names a Python
with crowd-kit. GLAD runs N steps only (default 1: minutes already), so what is printed for it is a
lower bound of its time; ``--glad 100`` runs it whole, and is fair to its accuracy too.
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
import json, resource, time, polars as pl
from crowdtree.learn import learn
import scipy.special, scipy.stats
frame = pl.read_parquet({source!r})
learn(frame.head(1000), method={method!r})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
learned = learn(frame, method={method!r})
seconds = time.perf_counter() - start
memory = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
best = learned.posterior.argmax(axis=1).astype('int8')
best.tofile({source + ".labels"!r})
print(json.dumps(dict(seconds=seconds, memory=memory, steps=len(learned.trace))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
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


def show(name: str, result: dict, truth: np.ndarray, note: str = "") -> None:
    if "failed" in result:
        print(f"{name:38} fails: {result['failed']}")
        return
    right = 100 * float((result["labels"] == truth).mean())
    print(
        f"{name:38}{result['seconds']:9.2f} s {result['memory'] / 2**20:8.0f} MB above the input"
        f" {right:8.3f} % right {note}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--glad", type=int, default=1)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--slope", type=int, nargs="*", default=[])
    given = parser.parse_args()
    python = os.environ.get("CROWDKIT_PYTHON")
    with tempfile.TemporaryDirectory() as folder:
        for rows in given.rows:
            side_by_side(rows, folder, python, given.glad)
        slope(given.slope, folder)


def side_by_side(rows: int, folder: str, python: str | None, glad: int) -> None:
    frame, truth = crowd(rows)
    source = str(Path(folder, f"{rows}.parquet"))
    frame.write_parquet(source)
    print(f"{rows:,} answers")
    mine = {}
    for method in ("dawid-skene", "hierarchical"):
        runs = [ours(method, source) for _ in range(3)]
        mine[method] = min(runs, key=lambda r: r["seconds"])
        show(f"crowdtree {method}", mine[method], truth)
    if not python:
        print("set CROWDKIT_PYTHON to compare")
        return
    theirs = min((peer(python, "DawidSkene", source) for _ in range(3)), key=lambda r: r["seconds"])
    show("crowd-kit DawidSkene", theirs, truth)
    ratio = theirs["seconds"] / mine["dawid-skene"]["seconds"]
    print(f"  Dawid-Skene: {ratio:.1f} times faster, memory ratio "
          f"{mine['dawid-skene']['memory'] / max(theirs['memory'], 1):.2f}")  # fmt: skip
    if glad:
        result = peer(python, "GLAD", source, glad)
        show(f"crowd-kit GLAD, at most {glad} steps", result, truth)
        at_least = result["seconds"] / mine["hierarchical"]["seconds"]
        print(f"  GLAD: crowdtree is {at_least:.1f} times faster than its first {glad} step(s) "
              f"alone; memory ratio "
              f"{mine['hierarchical']['memory'] / max(result['memory'], 1):.2f}")  # fmt: skip


def slope(sizes: list[int], folder: str) -> None:
    """Time and memory against the number of answers, from Parquet."""
    points = []
    for rows in sizes:
        frame, truth = crowd(rows)
        source = str(Path(folder, "slope.parquet"))
        frame.write_parquet(source)
        del frame
        code = f"""
import json, resource, time
from crowdtree.learn import learn
import polars as pl
learn(pl.scan_parquet({source!r}).head(1000).collect())  # compiled before the clock starts
start = time.perf_counter()
learned = learn({source!r})
seconds = time.perf_counter() - start
best = learned.posterior.argmax(axis=1).astype('int8')
best.tofile({source + ".labels"!r})
print(json.dumps([seconds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{rows:,} answers: fails: {done.stderr.strip().splitlines()[-1:]}")
            continue
        seconds, peak = json.loads(done.stdout)
        right = 100 * float((np.fromfile(source + ".labels", np.int8) == truth).mean())
        points.append((rows, seconds))
        print(f"{rows:>12,} answers {seconds:8.2f} s  peak {peak / 2**20:7.0f} MB "
              f"{right:7.3f} % right", flush=True)  # fmt: skip
    if len(points) > 1:
        x, y = np.log(np.array(points)).T
        print(f"time grows as answers^{np.polyfit(x, y, 1)[0]:.2f}")


if __name__ == "__main__":
    main()
