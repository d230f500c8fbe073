"""How well can 50 known items calibrate a crowd at all?

``python -m benchmarks.learn_limit [--draws 30]``: two minutes. Every crowd of the data folder is
fitted once without gold. The rest is repeated for many random draws of 50 known items, on the
other items, with the prior of the worth of a further answer from the other crowds (leave one crowd
out):

- *none*, *known*: calibration error before and after the known items update the worth; *loss* is
  the log loss after.
- *in-sample*: the same with the worth and scale under which all items of the crowd are likeliest.
  No forecaster of this family can know them.
- *limit*: the same on simulated truths. A worth is drawn from the prior, then the class of every
  item from the probabilities that it implies. The forecaster knows the model, the prior and 50
  classes: nobody can do better where crowds differ as much as these do.
- *chance*: the calibration error of a forecaster of those truths who knows the worth as well.

Known items are used after the fit here (``learned.calibrate``), so that one fit serves all draws.
``learn_calibration.py`` gives them to the fit.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks.learn_calibration import KNOWN, best_worth, crowds, scores, set_prior
from benchmarks.realdata import folder
from crowdtree.learning import dependence, learn
from crowdtree.learning.answers import gold_codes, read_gold

COLUMNS = ("none", "known", "loss", "in-sample", "limit", "chance")
Fitted = tuple[np.ndarray, np.ndarray, np.ndarray]  # posterior, answers, truth of known items


def fitted(answers: Path, gold: Path) -> Fitted:
    """Posteriors without gold of the items whose truth is known."""
    learned = learn(answers)
    truth = gold_codes(learned.answers, read_gold(gold), learned.classes)
    known = np.flatnonzero(truth >= 0)
    count = np.diff(learned.answers.start)
    return learned.fit.posterior[known], count[known], truth[known]


def by_worth(posterior: np.ndarray, count: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Stated probabilities under every log worth of the grid: (worth, item, class)."""
    worths = np.exp(dependence.GRID)
    return np.array([dependence._discounted(posterior, count, w, scale) for w in worths])


def in_sample(posterior: np.ndarray, count: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Probabilities under the scale and worth that fit all items best."""
    best = dependence.Worth.any().updated(posterior, count, truth).weight
    scale, worth = np.unravel_index(int(best.argmax()), best.shape)
    return by_worth(posterior, count, dependence.SCALES[scale])[worth]


def calibration(stated: np.ndarray, truth: np.ndarray) -> float:
    return scores(stated, truth)["calibration"]


def simulated(table: np.ndarray, prior: np.ndarray, rng: np.random.Generator) -> list[float]:
    """Calibration errors of the best forecaster: with known items, and knowing the worth."""
    drawn = table[rng.choice(len(prior), p=prior)]
    last = drawn.shape[1] - 1
    truth = (rng.random((len(drawn), 1)) > drawn.cumsum(axis=1)).sum(axis=1)
    truth = np.minimum(truth, last)
    order = rng.permutation(len(truth))
    known, rest = order[:KNOWN], order[KNOWN:]
    log = np.log(np.maximum(table[:, known, truth[known]], 1e-9)).sum(axis=1)
    weight = prior * np.exp(log - log.max())
    stated = np.tensordot(weight / weight.sum(), table[:, rest], 1)
    return [calibration(stated, truth[rest]), calibration(drawn[rest], truth[rest])]


def row(crowd: Fitted, draws: int) -> np.ndarray:
    """Means over the draws, one per column."""
    posterior, count, truth = crowd
    prior = dependence.Worth.of_a_crowd()
    before, best = prior.stated(posterior, count), in_sample(*crowd)
    table = by_worth(posterior, count)
    on_grid = prior.weight[0] / prior.weight[0].sum()
    rng = np.random.default_rng(0)
    found = []
    for _ in range(draws):
        order = rng.permutation(len(truth))
        known, rest = order[:KNOWN], order[KNOWN:]
        worth = prior.updated(posterior[known], count[known], truth[known])
        after = scores(worth.stated(posterior[rest], count[rest]), truth[rest])
        found.append(
            [calibration(before[rest], truth[rest]), after["calibration"], after["log_loss"],
             calibration(best[rest], truth[rest]), *simulated(table, on_grid, rng)]
        )  # fmt: skip
    return np.mean(found, axis=0)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=30, help="draws of known items per crowd")
    given = parser.parse_args()
    place = folder()
    if place is None:
        raise SystemExit("no data: set CROWDTREE_DATA to the folder that holds crowd_bluebird")
    sets = {name: fitted(*paths) for name, paths in crowds(place).items()}
    worth = {name: best_worth(*crowd) for name, crowd in sets.items()}
    print(f"{'crowd':20}" + "".join(f"{name:>11}" for name in COLUMNS))
    rows = []
    for name, crowd in sets.items():
        set_prior([w for other, w in worth.items() if other != name])
        rows.append(row(crowd, given.draws))
        print(f"{name:20}" + "".join(f"{value:11.2f}" for value in rows[-1]), flush=True)
    print(f"{'mean':20}" + "".join(f"{value:11.2f}" for value in np.mean(rows, axis=0)))


if __name__ == "__main__":
    main()
