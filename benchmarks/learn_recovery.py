"""Recovery on simulated crowds: do 95 % intervals cover, and does the error shrink as a root?

``python benchmarks/learn_recovery.py [--runs 20]``. Prints the coverage of the cells' and the
skills' intervals, and the root mean square error against the number of answers.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import expit, logit

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from crowdtree.learn import learn
from learn_crowds import many_questions, one_question


def score(learned, crowd) -> tuple[np.ndarray, np.ndarray, float, float]:
    low, high = learned.intervals.worker_error
    told = learned.problem.outcome == crowd.problem.outcome
    covered = ((low <= crowd.error) & (crowd.error <= high))[told]
    order = [int(name) for name in learned.answers.workers]
    miss = learned.fit.skill - crowd.skill[order]
    # what "typical" means moves with who happened to work: the size of the error is measured
    # against the mean of these workers, the coverage against that of the whole population
    met = expit(logit(crowd.error) - crowd.skill[order].mean())
    return (
        covered,
        np.abs(miss / learned.fit.skill_sd) < 1.96,
        float(np.sqrt(np.mean((learned.fit.error - met)[told] ** 2))),
        float(np.sqrt(np.mean(miss**2))),
    )


def row(title: str, scores: list) -> float:
    cells, skills = (np.concatenate([s[i] for s in scores]) for i in (0, 1))
    error, skill = (float(np.sqrt(np.mean([s[i] ** 2 for s in scores]))) for i in (2, 3))
    print(
        f"{title:52} cells {100 * cells.mean():5.1f} % (of {len(cells):5}) "
        f"skills {100 * skills.mean():5.1f} % (of {len(skills):5})  rms error {error:.4f} "
        f"rms skill {skill:.3f}",
        flush=True,
    )
    return error


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    shapes = {
        "classes, gold and table": lambda c: learn(c.answers, c.gold, problem=c.problem),
        "classes, no gold, table known": lambda c: learn(c.answers, problem=c.problem),
        "classes, all gold, no table": lambda c: learn(c.answers, c.gold),
        "classes, a quarter gold, no table": quarter,
    }
    for title, fit in shapes.items():
        errors = []
        for items in (400, 1600, 6400):
            crowds = (
                many_questions(np.random.default_rng(s), items, 20, 8, 60, 20) for s in range(runs)
            )
            errors.append(
                row(f"{title}, {items * 20:,} answers", [score(fit(c), c) for c in crowds])
            )
        print(f"  error ~ answers^{np.polyfit(np.log([1, 4, 16]), np.log(errors), 1)[0]:.2f}")
    for each in (5, 10):
        for known in (True, False):
            crowds = (one_question(np.random.default_rng(s), 1500, 60, each) for s in range(runs))
            title = f"one question, {'gold' if known else 'no gold'}, {each} answers an item"
            row(title, [score(learn(c.answers, c.gold if known else None), c) for c in crowds])


def quarter(crowd):
    frame = pl.DataFrame(crowd.answers)
    count = frame["task"].n_unique() // 4
    return learn(frame, dict(list(crowd.gold.items())[:count]))


if __name__ == "__main__":
    main()
