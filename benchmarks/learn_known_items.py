"""How much do known items narrow the interval of the accuracy, and does it still hold?

``python -m benchmarks.learn_known_items``: half a minute. Crowds of the data folder with at most
2,000 items. The prior of the worth of a further answer is the shipped one, which
was learned from these crowds: in-sample in that respect.
"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.learn_calibration import crowds
from benchmarks.realdata import folder
from crowdtree.learning import learn
from crowdtree.learning.answers import gold_codes, read_gold

KNOWN = (0, 20, 50, 100)
REPEATS = 5
MOST_ITEMS = 2000


def main() -> None:
    warnings.simplefilter("ignore")
    place = folder()
    if place is None:
        raise SystemExit("no data: set CROWDTREE_DATA to the folder that holds crowd_bluebird")
    width: dict[int, list[float]] = {count: [] for count in KNOWN}
    held: dict[int, list[float]] = {count: [] for count in KNOWN}
    for name, (answers, path) in crowds(place).items():
        learned, gold = learn(answers), read_gold(path)
        if learned.answers.n_tasks > MOST_ITEMS:
            continue
        truth = gold_codes(learned.answers, gold, learned.classes)
        right = float((learned.posterior.argmax(axis=1) == truth)[truth >= 0].mean())
        tasks = [task for task in map(str, learned.answers.tasks.tolist()) if task in gold]
        rng = np.random.default_rng(0)
        for count in KNOWN:
            drawn = [rng.choice(tasks, count, replace=False) for _ in range(REPEATS)]
            found = [learned.calibrate({t: gold[t] for t in some}).accuracy for some in drawn]
            width[count].append(float(np.mean([a.high - a.low for a in found])))
            held[count].append(float(np.mean([a.low <= right <= a.high for a in found])))
        print(f"{name:20}" + "".join(f"{100 * width[n][-1]:8.1f}" for n in KNOWN), flush=True)
    for count in KNOWN:
        print(
            f"{count:4} known: width {100 * np.mean(width[count]):.1f} points, holds the observed "
            f"accuracy in {100 * np.mean(held[count]):.0f} %"
        )


if __name__ == "__main__":
    main()
