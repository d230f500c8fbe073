"""crowd-kit's aggregators, run in a Python that has them (CROWDKIT_PYTHON), one process a method.

Usage: ``CROWDKIT_PYTHON python learn_peers.py METHOD answers.parquet labels.csv [iterations]``;
prints one JSON line: seconds, memory above the input in bytes, and what failed.
"""

import json
import resource
import sys
import time
import warnings


def run(method: str, source: str, target: str, iterations: int | None) -> dict:
    warnings.filterwarnings("ignore")
    import pandas as pd
    from crowdkit import aggregation

    answers = pd.read_parquet(source) if source.endswith("parquet") else pd.read_csv(source)
    options = {"random_state": 0} if method == "KOS" else {}
    if iterations is not None:
        options["n_iter"] = iterations
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    try:
        labels = getattr(aggregation, method)(**options).fit_predict(answers)
    except Exception as problem:  # the peer's failure is a finding, not ours to hide
        return {"method": method, "failed": f"{type(problem).__name__}: {str(problem)[:90]}"}
    seconds = time.perf_counter() - start
    memory = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    labels.rename("label").rename_axis("task").reset_index().to_csv(target, index=False)
    return {"method": method, "seconds": seconds, "memory": memory}


if __name__ == "__main__":
    count = int(sys.argv[4]) if len(sys.argv) > 4 else None
    print(json.dumps(run(sys.argv[1], sys.argv[2], sys.argv[3], count)))
