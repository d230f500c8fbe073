"""Processor time and memory of ``learn``, and how they grow with the number of answers.

``python -m benchmarks.learn_speed [--ten-million] [--json out/bench/learn_speed.json]``. Cases: 50
labels with 3,000 answers; 250,000 and 1,000,000 answers with two labels; with ``--ten-million``
also 10,000,000. Every run is a process of its own, warmed up on 1,000 answers before the clock
starts. With CROWDKIT_PYTHON, a Python that has crowd-kit, its Dawid-Skene runs on the million
answers, too, and with ``--glad`` its GLAD, which takes minutes. ``learn_docs.py`` writes the page.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


class Meter:
    """Seconds, processor seconds, the peak of memory, and the peak above that at the start.

    The peak that the kernel keeps is set back first (Linux), so that a higher peak of the warm-up
    does not hide it; where that is not allowed, the growth of the peak is reported.
    """

    def __enter__(self) -> "Meter":
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self._status = Path("/proc/self/status").read_text
            self._start = self._read("VmRSS")
        except OSError:
            self._status = None
            self._start = self._read("")
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        peak = self._read("VmHWM")
        self.found = {"seconds": wall, "cpu": cpu, "peak": peak, "memory": peak - self._start}

    def _read(self, key: str) -> int:
        if self._status is None:
            return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        line = next(line for line in self._status().splitlines() if line.startswith(key))
        return 1024 * int(line.split()[1])


def run(method: str, source: str, target: str) -> dict[str, Any]:
    """Label the answers of a CSV file, which is read: ``learn[:METHOD]``, a class of crowd-kit."""
    kind, _, option = method.partition(":")
    small = f"{source}.small"
    with open(source) as file:
        Path(small).write_text("".join(line for _, line in zip(range(1001), file, strict=False)))
    if kind == "learn":
        from crowdtree import learn

        chosen = {"method": option} if option else {}

        def fit(path: str) -> Any:
            return learn(path, **chosen).labels
    else:
        import pandas as pd
        from crowdkit import aggregation

        seed = {"random_state": 0} if method == "MACE" else {}

        def fit(path: str) -> Any:
            return getattr(aggregation, method)(**seed).fit_predict(pd.read_csv(path))

    try:
        fit(small)
        with Meter() as meter:
            labels = fit(source)
    except Exception as problem:  # report the failure as a result
        return {"failed": f"{type(problem).__name__}: {str(problem)[:90]}"}
    pairs = np.array([[int(task), int(label)] for task, label in labels.items()])
    pairs[pairs[:, 0].argsort()].tofile(target)
    return meter.found


def measure(
    method: str, source: str, python: str = sys.executable
) -> tuple[dict[str, Any], np.ndarray]:
    """Run in a process of its own; give the figures and (task, label) sorted by task."""
    target = source + ".labels"
    command = [python, "-P", __file__, "--run", method, source, target]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no word"])[-1][:90]}, np.empty(0)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return found, np.empty(0) if "failed" in found else np.fromfile(target, int).reshape(-1, 2)


def binary(answers: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Ten answers about each item by 1,000 workers, two labels, errors from Beta(2, 6)."""
    rng = np.random.default_rng(0)
    tasks, workers, each = answers // 10, 1000, 10
    truth = rng.integers(0, 2, tasks).astype(np.int8)
    error = rng.beta(2, 6, workers)
    task = np.repeat(np.arange(tasks, dtype=np.int32), each)
    first = rng.integers(0, workers, tasks, dtype=np.int32)
    worker = ((first[:, None] + np.arange(each, dtype=np.int32) * 97) % workers).ravel()
    label = truth[task] ^ (rng.random(answers, dtype=np.float32) < error[worker])
    return {"task": task, "worker": worker, "label": label.astype(np.int8)}, truth


def fifty() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Three answers about each of 1,000 items, 50 labels."""
    from benchmarks.crowds import simulate

    crowd = simulate("families_50")
    return {"task": crowd.task, "worker": crowd.worker, "label": crowd.label}, crowd.truth


def cases(sizes: list[int], method: str, python: str | None, glad: bool) -> dict[str, Any]:
    """All runs, as they are printed."""
    found: dict[str, Any] = {"runs": {}}
    with tempfile.TemporaryDirectory() as folder:
        for title, size in [("50 labels, ", 0), *(("", size) for size in sizes)]:
            answers, truth = binary(size) if size else fifty()
            source = str(Path(folder, "answers.csv"))
            with open(source, "w", newline="") as file:
                table = csv.writer(file)
                table.writerow(answers)
                table.writerows(zip(*(column.tolist() for column in answers.values()), strict=True))
            rows = len(answers["task"])
            peers = [("DawidSkene", python), *([("GLAD", python)] if glad else [])]
            if not python or size != 1_000_000:
                peers = []
            for name, where in [(method, sys.executable), *peers]:
                result, pairs = measure(name, source, where)
                if "failed" not in result:
                    result |= {"rows": rows, "right": float((pairs[:, 1] == truth).mean())}
                found["runs"][f"{name}, {title}{rows:,} answers"] = result
                print(f"{name}, {title}{rows:,} answers: {shown(result)}", flush=True)
            del answers
    own = [r for name, r in found["runs"].items() if name.startswith(f"{method}, ")
           and "50 labels" not in name and "failed" not in r]  # fmt: skip
    if len(own) > 1:
        x, y = np.log([[r["rows"], r["cpu"]] for r in own]).T
        found["power"] = float(np.polyfit(x, y, 1)[0])
        print(f"processor time grows as answers^{found['power']:.2f}")
    return found


def shown(result: dict[str, Any]) -> str:
    if "failed" in result:
        return f"fails: {result['failed']}"
    return (f"{result['cpu']:.2f} s of processor ({result['seconds']:.2f} s), peak "
            f"{result['peak'] / 2**20:.0f} MB, {result['memory'] / 2**20:.0f} MB above the input, "
            f"{100 * result['right']:.3f} % right")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, nargs="*", default=[250_000, 1_000_000])
    parser.add_argument("--ten-million", action="store_true")
    parser.add_argument("--method", default="learn", help="learn, or learn:METHOD")
    parser.add_argument("--glad", action="store_true", help="also run crowd-kit's GLAD")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run(*given.run)))
        return
    sizes = given.answers + [10_000_000] * given.ten_million
    found = cases(sizes, given.method, os.environ.get("CROWDKIT_PYTHON"), given.glad)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
