"""Do the intervals of ``ct.judge`` hold? On simulated crowds, and on real ones by halves.

The simulated crowds follow mechanisms that nothing in the package assumes: items of unequal
difficulty, wrong answers that go to an item's look-alike, items that mislead nearly everybody,
models whose errors share a cause, people of unequal skill and style, two to six people per item.

- ``these people``: the people stay, items are drawn anew; the truth is what 20,000 items give;
- ``other people``: people are drawn anew as well; the truth is the mean over all draws;
- real sets: an estimate from one half of the items (or people) against that from the other half,
  where the half-widths add in quadrature.

``python -m benchmarks.judge --out docs/measured/judge.md`` writes the tables.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.policy_docs import table, written
from benchmarks.realdata import ABSENT, folder
from crowdtree.learning.judges import scoring
from crowdtree.learning.judges.agreement import cohen_kappa, krippendorff_alpha
from crowdtree.learning.judges.intervals import Interval
from crowdtree.learning.judges.question import QuestionAnswers
from crowdtree.learning.judges.reading import read_questions

REAL = ("mixed_cebab_aspects", "mixed_lesion")
LARGE = 20_000
Estimates = dict[str, Interval | None]


class World:
    """People and two models, fixed when they are drawn; ``items`` draws items with answers."""

    def __init__(self, rng: np.random.Generator, people: int, labels: int, few: int, many: int):
        self.people, self.labels, self.few, self.many = people, labels, few, many
        self.skill = rng.normal(1.5, 0.7, people)
        self.liking = rng.dirichlet(np.full(labels, 3.0), people)  # what they say when they guess
        self.busy = rng.normal(0, 1, people)
        self.level = np.array([1.6, 1.2])

    def items(
        self, rng: np.random.Generator, count: int, misleading: float = 0.05
    ) -> QuestionAnswers:
        """Draw items: their truth, difficulty and look-alike, and the answers."""
        k = self.labels
        truth = rng.integers(0, k, count)
        alike = (truth + rng.integers(1, k, count)) % k
        hard = rng.normal(0, 1.2, count)
        trap = rng.random(count) < misleading
        right = expit(self.skill[:, None] - hard) * np.where(trap, 0.3, 1.0)
        guess = (rng.random((self.people, count, 1)) > self.liking.cumsum(1)[:, None]).sum(axis=2)
        wrong = np.where(rng.random(right.shape) < 0.6, alike, np.minimum(guess, k - 1))
        answers = np.where(rng.random(right.shape) < right, truth, wrong)
        order = np.argsort(-(self.busy[:, None] + rng.gumbel(size=right.shape)), axis=0)
        size = rng.integers(self.few, self.many + 1, count)
        rank = np.argsort(order, axis=0)
        answers = np.where(rank < size, answers, -1)
        cause = rng.normal(size=count)  # of errors that the models share
        margin = self.level[:, None] - 0.8 * hard + 1.5 * cause
        knows = rng.random((2, count)) < expit(margin)
        models = np.where(knows, truth, alike)
        models[:, rng.random(count) < 0.05] = -1
        names = [f"p{w}" for w in range(self.people)]
        return QuestionAnswers(
            "label", tuple(map(str, range(k))), answers.astype(np.int8), names,
            models.astype(np.int8), ["m0", "m1"], np.where(rng.random(count) < 0.5, truth, -1),
        )  # fmt: skip


WORLDS: Mapping[str, tuple[int, int, int, int]] = {
    "8 people, 3 labels, 2 to 6 each": (8, 3, 2, 6),
    "5 people, 2 labels, 3 to 5 each": (5, 2, 3, 5),
    "60 people, 4 labels, 2 to 5 each": (60, 4, 2, 5),
}


def without_gold(data: QuestionAnswers) -> QuestionAnswers:
    return replace(data, gold=np.full_like(data.gold, -1))


def measure(data: QuestionAnswers, rng: np.random.Generator) -> Estimates:
    """Every kind of interval that a judgement states."""
    bare = without_gold(data)
    people, gold = scoring.compare(bare, 0, "people"), scoring.compare(data, 0, "gold")
    label = next(row for row in scoring.label_scores(bare) if row.who == "m0")
    together = {(row.first, row.second): row for row in scoring.errors_together(bare, rng)}
    both = (data.models >= 0).all(axis=0)
    return {
        "model, against people": people.accuracy,
        "person, against people": people.person,
        "difference, against people": people.difference,
        "gain of a vote, against people": people.vote_gain,
        "model, against gold": gold.accuracy,
        "difference, against gold": gold.difference,
        "gain of a vote, against gold": gold.vote_gain,
        "recall": label.recall,
        "precision": label.precision,
        "both wrong": together["m0", "m1"].both_wrong,
        "correlation, two models": together["m0", "m1"].correlation,
        "correlation, model and person": together["m0", "a person"].correlation,
        "alpha of people": krippendorff_alpha(bare.votes, rng),
        "kappa of two models": cohen_kappa(data.models[:, both], rng),
    }


def these_people(sizes: tuple[int, ...], draws: int) -> Iterator[list[str]]:
    """Coverage where the people stay and items are drawn anew."""
    hits: dict[tuple[str, str, int], list[bool]] = defaultdict(list)
    for place, (name, shape) in enumerate(WORLDS.items()):
        for repeat in range(4):  # four crowds of each kind
            rng = np.random.default_rng([place, repeat])
            world = World(rng, *shape)
            truth = measure(world.items(rng, LARGE), rng)
            for size in sizes:
                for _ in range(draws // 4):
                    for what, estimate in measure(world.items(rng, size), rng).items():
                        target = truth[what]
                        if estimate is not None and target is not None:
                            inside = estimate.low <= target.value <= estimate.high
                            hits[what, name, size].append(inside)
    for what in dict.fromkeys(key[0] for key in hits):
        cells = [hits[what, name, size] for name in WORLDS for size in sizes]
        yield [what, *(f"{100 * np.mean(cell):.1f}" for cell in cells)]


def other_people(sizes: tuple[int, ...], draws: int) -> Iterator[list[str]]:
    """Coverage where people are drawn anew as well: what is for these people, and for others."""
    ways: dict[str, Callable[[Any], tuple[Interval | None, Interval | None]]] = {
        "difference": lambda row: (row.difference, row.difference_others),
        "gain of a vote": lambda row: (row.vote_gain, row.vote_gain_others),
    }
    cells: dict[tuple[str, int], list[str]] = defaultdict(list)
    for place, shape in enumerate(WORLDS.values()):
        for size in sizes:
            rng = np.random.default_rng([place, size, 1])
            rows = [
                scoring.compare(without_gold(World(rng, *shape).items(rng, size)), 0, "people")
                for _ in range(draws)
            ]
            for what, ends in ways.items():
                pairs = [ends(row) for row in rows]
                target = np.mean([pair[0].value for pair in pairs])
                for which in (0, 1):
                    inside = [p[which].low <= target <= p[which].high for p in pairs]
                    cells[what, which].append(f"{100 * np.mean(inside):.1f}")
    for (what, which), values in cells.items():
        yield [f"{what}, {'for other people' if which else 'for these people'}", *values]


def real_sets(draws: int) -> Iterator[list[str]]:
    """Coverage of what the other half gives, by halves of items and of people."""
    place = folder()
    if place is None:
        raise SystemExit(ABSENT)
    for name in REAL:
        data = read_questions(place / name / "answers.csv", None, None, None, ())[0][0]
        for what in ("items", "people"):
            rng = np.random.default_rng(0)
            hits: dict[str, list[bool]] = defaultdict(list)
            for _ in range(draws):
                halves = [_measured(half, rng) for half in _halves(data, what, rng)]
                for key, one in halves[0].items():
                    two = halves[1][key]
                    if one is not None and two is not None:
                        apart = abs(one.value - two.value)
                        hits[key[0]].append(apart <= np.hypot(one.half, two.half))
            for key, inside in hits.items():
                if what == "items" or key in ("difference", "difference, other people"):
                    yield [name, what, key, f"{len(inside):,}", f"{100 * np.mean(inside):.1f}"]


LIMITS = {  # margin, and share of the items that each person answers
    "5 points behind, margin 5": (0.05, 0.7),
    "equal, margin 0": (0.0, 0.7),
    "equal, margin 0, everybody answers everything": (0.0, 1.0),
}


def limits(draws: int) -> Iterator[list[str]]:
    """How often a model exactly at a limit passes it, or fails it, by gold."""
    for name, (margin, asked) in LIMITS.items():
        passed = failed = 0
        for draw in range(draws):
            rng = np.random.default_rng([draw, 99])
            right = (
                np.where(rng.random(200) < 0.2, 0.6, 0.9) - np.repeat([0, margin], [5, 1])[:, None]
            )
            truth = rng.integers(0, 3, 200)
            wrong = (truth + rng.integers(1, 3, right.shape)) % 3
            answers = np.where(rng.random(right.shape) < right, truth, wrong)
            answers[:5][rng.random((5, 200)) >= asked] = -1
            data = QuestionAnswers(
                "label", ("a", "b", "c"), answers[:5], list("vwxyz"), answers[5:], ["m"], truth
            )
            difference = scoring.compare(data, 0, "gold").difference
            assert difference is not None
            passed += difference.low > -margin
            failed += difference.high < -margin
        yield [name, f"{100 * passed / draws:.1f}", f"{100 * failed / draws:.1f}"]


def _halves(data: QuestionAnswers, what: str, rng: np.random.Generator) -> list[QuestionAnswers]:
    axis = data.people.shape[what == "items"]
    order = rng.permutation(axis)
    parts = []
    for half in (order[: axis // 2], order[axis // 2 :]):
        if what == "people":
            parts.append(replace(data, people=data.people[half]))
        else:
            parts.append(
                replace(data, people=data.people[:, half], models=data.models[:, half],
                        gold=data.gold[half])
            )  # fmt: skip
    return parts


def _measured(
    data: QuestionAnswers, rng: np.random.Generator
) -> dict[tuple[str, str], Interval | None]:
    estimates: dict[tuple[str, str], Interval | None] = {}
    for model, name in enumerate(data.model_names):
        row = scoring.compare(data, model, "people")
        estimates |= {
            ("model", name): row.accuracy,
            ("difference", name): row.difference,
            ("difference, other people", name): row.difference_others,
            ("gain of a vote", name): row.vote_gain,
        }
    estimates["alpha of people", ""] = krippendorff_alpha(data.votes, rng)
    for pair in list(scoring.errors_together(data, rng))[:3]:
        estimates["correlation", f"{pair.first} {pair.second}"] = pair.correlation
    return estimates


def main() -> None:
    """Print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--halves", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="*", default=[60, 300])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sizes = tuple(options.sizes)
    head = ["", *(f"{name}, {size} items" for name in WORLDS for size in sizes)]
    tables = {
        "these": table(head, list(these_people(sizes, options.draws))),
        "other": table(head, list(other_people(sizes, options.draws))),
        "limits": table(
            ["model", "shown to be better, in %", "shown to be worse, in %"],
            list(limits(10 * options.draws)),
        ),
        "real": table(
            ["set", "halves of", "interval", "comparisons", "held, in %"],
            list(real_sets(options.halves)),
        ),
    }
    for name, text in tables.items():
        print(f"{name}\n{text}\n")
    if options.out:
        page = options.out.read_text(encoding="utf-8")
        for name, text in tables.items():
            page = written(page, name, text)
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
