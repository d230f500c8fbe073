"""Recovery on simulated crowds: coverage of 95 % intervals, and the rate at which errors shrink.

``python -m benchmarks.learn_recovery [--runs 20] [--only coverage|slope]``: three to four minutes
of one core. Truths are drawn anew for every crowd, in three shapes: as the model assumes them
(normal skills, Beta errors around the mean of their question), in two groups (a fifth of the
workers far below the others; easy and hard cells), and otherwise (skills with the tails of
Student's t of 4 degrees of freedom; errors spread evenly).

Crowds have many yes/no questions; one question with several labels is in ``learn_labels.py``.
Coverage is pooled over crowds. Two intervals of the coverage itself are printed: the binomial one
(Wilson), and one from the spread between crowds, which does not take the cells of one crowd for
independent; they share the uncertainty about the typical worker, so prefer the second.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

from crowdtree.learning import learn
from tests.learn_crowds import (
    ERRORS,
    Crowd,
    crowd_error,
    gold_of,
    many_questions,
    with_spammer,
)

SHAPES = tuple(ERRORS)
KINDS = ("error cells", "worker skills", "class shares")
Z = 1.959963984540054


def quarter(crowd: Crowd) -> dict[str, str]:
    return dict(list(crowd.gold.items())[: len(crowd.gold) // 4])


def asked(rng, shape: str) -> Crowd:
    return many_questions(rng, 300, 15, 6, 40, 16, shape)


SETTINGS: dict[str, Callable] = {
    "all gold, table known": lambda c: learn(c.answers, c.gold, problem=c.problem),
    "no gold, table known": lambda c: learn(c.answers, problem=c.problem),
    "all gold, no table": lambda c: learn(c.answers, c.gold),
    "quarter gold, no table": lambda c: learn(c.answers, quarter(c)),
}


def covered(learned, crowd: Crowd) -> list[np.ndarray]:
    """Whether each interval holds the truth: cells with a known outcome, skills, class shares."""
    told = learned.problem.outcome == crowd.problem.outcome
    (low, high), shares = learned.intervals.worker_error, learned.intervals.prior
    error = crowd_error(crowd)
    order = [int(name) for name in learned.answers.workers]
    miss = learned.fit.skill - crowd.skill[order]
    share = crowd.problem.prior
    return [
        ((low <= error) & (error <= high))[told],
        np.abs(miss) <= Z * learned.fit.skill_sd,
        (shares.low <= share) & (share <= shares.high),
    ]


def wilson(hits: int, count: int) -> tuple[float, float]:
    share, extra = hits / count, Z**2 / count
    middle = (share + extra / 2) / (1 + extra)
    half = Z * np.sqrt(share * (1 - share) / count + extra / count / 4) / (1 + extra)
    return middle - half, middle + half


def between(parts: list[np.ndarray]) -> float:
    """Half width of a 95 % interval of the pooled share, from the spread between crowds."""
    hits, size = (np.array([f(p) for p in parts], float) for f in (np.sum, len))
    off = hits - hits.sum() / size.sum() * size
    return float(Z * np.sqrt(len(parts) / (len(parts) - 1) * (off**2).sum()) / size.sum())


def row(title: str, kind: str, parts: list[np.ndarray]) -> None:
    every = np.concatenate([p.ravel() for p in parts])
    low, high = wilson(int(every.sum()), len(every))
    half = between([p.ravel() for p in parts])
    print(
        f"{title:40} {kind:14} {100 * every.mean():5.1f} % of {len(every):6}   "
        f"binomial {100 * low:5.1f} to {100 * high:5.1f}   by crowds +-{100 * half:.1f}",
        flush=True,
    )


def coverage(runs: int) -> None:
    pooled: dict[tuple[str, str], list] = {}
    for number, (title, fit) in enumerate(SETTINGS.items()):
        for shape in SHAPES:
            # every setting has crowds of its own: pooled rows are then independent
            seeds = np.random.SeedSequence([number, SHAPES.index(shape)]).spawn(runs)
            crowds = (asked(np.random.default_rng(seed), shape) for seed in seeds)
            scores = [covered(fit(crowd), crowd) for crowd in crowds]
            for kind, parts in zip(KINDS, zip(*scores, strict=True), strict=True):
                pooled.setdefault((title, kind), []).append(list(parts))
        for kind in KINDS:
            by_shape = pooled[title, kind]
            row(title, kind, [part for parts in by_shape for part in parts])
            rest = (f"{s} {100 * np.concatenate([p.ravel() for p in parts]).mean():.1f}"
                    for s, parts in zip(SHAPES, by_shape, strict=True))  # fmt: skip
            print(f"{'':40} {', '.join(rest)}")
    print()
    for kind in KINDS:
        for s, shape in enumerate(SHAPES):
            row(f"all settings, {shape}", kind, [p for t in SETTINGS for p in pooled[t, kind][s]])
        row("all", kind, [p for t in SETTINGS for parts in pooled[t, kind] for p in parts])


def slopes(runs: int) -> None:
    """Root mean square error against answers: all gold, then no gold with the table known."""
    sizes = 100 * 4 ** np.arange(5)
    for title, fit in (
        ("all gold", lambda c: learn(c.answers, c.gold, problem=c.problem)),
        ("no gold, table known", lambda c: learn(c.answers, problem=c.problem)),
    ):
        squares = np.array([[_square(fit, int(n), seed) for n in sizes] for seed in range(runs)])
        print(f"\n{title}: answers, root mean square error of the cells, local slope")
        rng = np.random.default_rng(0)
        draws = squares[rng.integers(0, runs, (2000, runs))].mean(axis=1)
        for i, n in enumerate(sizes):
            error = np.sqrt(squares[:, i].mean())
            text = f"{16 * n:9,} {error:.5f}"
            if i:
                step = np.log(draws[:, i] / draws[:, i - 1]) / 2 / np.log(4)
                now = np.log(squares[:, i].mean() / squares[:, i - 1].mean()) / 2 / np.log(4)
                low, high = np.quantile(step, [0.025, 0.975])
                text += f"  {now:.3f} ({low:.3f} to {high:.3f})"
            print(text, flush=True)


def _square(fit, items: int, seed: int) -> float:
    crowd = many_questions(np.random.default_rng(seed), items, 15, 6, 40, 16)
    # measured against these workers, who are the same however many answers they give: 40 workers
    # determine the mean of a population only to its spread over the root of 40
    return float(np.mean((fit(crowd).fit.error - crowd_error(crowd)) ** 2))


SPAMMERS = ("none", "random", "constant")
KNOWN: dict[str, Callable] = {
    "all gold": lambda c: learn(c.answers, c.gold),
    "40 gold of 300": lambda c: learn(c.answers, gold_of(c, 40)),
    "no gold, table known": lambda c: learn(c.answers, problem=c.problem),
}


def bias(runs: int) -> None:
    """Learned over actual error of the crowd, with and without a spammer among 25 workers."""
    print(f"learned / actual error of {runs} crowds per row, 300 items, 14 questions, 25 workers,")
    print("14 answers per item; coverage of 95 % intervals (skills: of all but the spammer)")
    for known, fit in KNOWN.items():
        for classes in (2, 5, 10):
            for spammer in SPAMMERS:
                _bias_row(known, fit, classes, spammer, runs)


def _bias_row(known: str, fit: Callable, classes: int, spammer: str, runs: int) -> None:
    ratio, settled, hits = [], 0, ([], [], [])
    for seed in range(runs):
        # every row has crowds of its own: what 25 workers happen to be is common to their skills
        place = [list(KNOWN).index(known), SPAMMERS.index(spammer)]
        rng = np.random.default_rng([classes, seed, *place])
        crowd, actual = with_spammer(rng, many_questions(rng, 300, 14, classes, 25, 14), spammer)
        learned = fit(crowd)
        settled += learned.converged
        told = learned.problem.outcome == crowd.problem.outcome
        ratio.append(learned.problem.worker_error[told].mean() / actual[told].mean())
        (low, high), shares = learned.intervals.worker_error, learned.intervals.prior
        hits[0].append(((low <= actual) & (actual <= high))[told])
        order = np.array([int(name) for name in learned.answers.workers])
        near = np.abs(learned.fit.skill - crowd.skill[order]) <= Z * learned.fit.skill_sd
        hits[1].append(near[(order > 0) | (spammer == "none")])
        share = crowd.problem.prior
        hits[2].append((shares.low <= share) & (share <= shares.high))
    covered_ = " ".join(f"{100 * np.concatenate(part).mean():5.1f}" for part in hits)
    print(
        f"{known:22} {classes:2} classes, spammer {spammer:9} median {np.median(ratio):.3f} "
        f"({min(ratio):.3f} to {max(ratio):.3f})   cells, skills, shares {covered_} %   "
        f"(skills by crowds +-{100 * between(hits[1]):.1f})   settled {settled}",
        flush=True,
    )


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="crowds per setting and shape")
    parser.add_argument("--only", choices=["coverage", "slope", "bias"])
    chosen = parser.parse_args()
    start = time.process_time()
    if chosen.only in (None, "bias"):
        bias(chosen.runs)
    if chosen.only in (None, "coverage"):
        coverage(chosen.runs)
    if chosen.only in (None, "slope"):
        slopes(max(3, chosen.runs // 4))
    print(f"\n{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
