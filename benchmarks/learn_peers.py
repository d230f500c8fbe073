"""crowd-kit's aggregators, run in a Python that has them (CROWDKIT_PYTHON), one process per method.

Usage: ``CROWDKIT_PYTHON python learn_peers.py METHOD answers.parquet labels.csv [iterations]``;
prints one JSON line: seconds, memory above the input in bytes, and what failed. With
``--probabilities`` instead of iterations the table holds the probability of every label.
"""

import json
import resource
import sys
import time
import warnings
from pathlib import Path


class Meter:
    """Seconds, processor seconds, and the peak of memory above what was held at the start.

    The peak that the kernel keeps is set back first (Linux), so that a higher peak of the warm-up
    or of reading the input does not hide it; where that is not allowed, the growth of the peak is
    reported.
    """

    def __enter__(self) -> "Meter":
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self._held = self._status("VmRSS")
        except OSError:
            self._held = None
            self._peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        if self._held is None:
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self._peak
        else:
            grown = self._status("VmHWM") - self._held
        self.found = {"seconds": wall, "cpu": cpu, "memory": 1024 * grown}

    @staticmethod
    def _status(key: str) -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1])
        raise OSError(key)


def run(
    method: str, source: str, target: str, iterations: int | None, probabilities: bool = False
) -> dict:
    warnings.filterwarnings("ignore")
    import pandas as pd
    from crowdkit import aggregation

    answers = pd.read_parquet(source) if source.endswith("parquet") else pd.read_csv(source)
    options = {"random_state": 0} if method in ("KOS", "MACE") else {}
    if iterations is not None:
        options["n_iter"] = iterations
    meter = Meter()
    try:
        if len(answers) > 100_000:  # as ours is, before the clock starts
            getattr(aggregation, method)(**{**options, "n_iter": 1}).fit_predict(answers[:1000])
        with meter:
            made = getattr(aggregation, method)(**options)
            labels = (made.fit_predict_proba if probabilities else made.fit_predict)(answers)
    except Exception as problem:  # report the peer's failure as a result
        return {"method": method, "failed": f"{type(problem).__name__}: {str(problem)[:90]}"}
    if probabilities:
        labels.rename_axis("task").reset_index().to_csv(target, index=False)
        return {"method": method, **meter.found}
    labels.rename("label").rename_axis("task").reset_index().to_csv(target, index=False)
    return {"method": method, **meter.found}


if __name__ == "__main__":
    probable = "--probabilities" in sys.argv
    count = int(sys.argv[4]) if len(sys.argv) > 4 and not probable else None
    print(json.dumps(run(sys.argv[1], sys.argv[2], sys.argv[3], count, probable)))
