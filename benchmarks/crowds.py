"""Crowds for the benchmarks of label models: one question, every item has one true label.

Eleven real crowds are read from the data folder (``realdata.py``). The others are simulated by
mechanisms that no label model here assumes: difficulty that workers share, items that mislead
nearly everybody, copied answers, experts, systems that err together, sub-types, fatigue, grades.
Seeds are fixed by the name of a crowd; ``load(name, again=1)`` is another crowd of the same kind.

``python -m benchmarks.crowds`` lists them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit

from benchmarks.realdata import ABSENT, folder

Simulated = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Item, worker and label of every answer, and the true label of every item."""


class Crowd(NamedTuple):
    """Answers in codes: ``labels[label]`` is the name of a label; a truth of -1 is unknown."""

    name: str
    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray
    truth: np.ndarray
    tasks: list[str]
    workers: list[str]
    labels: list[str]

    @property
    def frame(self) -> pl.DataFrame:
        """The answers by name, as ``ct.learn`` reads them."""
        names = {"task": self.tasks, "worker": self.workers, "label": self.labels}
        codes = {"task": self.task, "worker": self.worker, "label": self.label}
        return pl.DataFrame({key: np.array(names[key])[codes[key]] for key in names})

    @property
    def gold(self) -> dict[str, str]:
        """True label of every item for which it is known."""
        known = np.flatnonzero(self.truth >= 0)
        return {self.tasks[i]: self.labels[self.truth[i]] for i in known}


# Helpers of the simulated crowds


def deal(
    rng: np.random.Generator, items: int, workers: int, each: int, tail: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Give every item to `each` different workers; activity falls as rank^-tail."""
    weight = -tail * np.log(np.arange(1, workers + 1))
    order = np.argsort(-(weight + rng.gumbel(size=(items, workers))), axis=1)
    return np.repeat(np.arange(items), each), order[:, :each].ravel()


def draw(rng: np.random.Generator, table: np.ndarray) -> np.ndarray:
    """Draw a column for every row of probabilities."""
    return np.minimum((rng.random((len(table), 1)) > table.cumsum(axis=1)).sum(axis=1),
                      table.shape[1] - 1)  # fmt: skip


def classes(rng: np.random.Generator, items: int, k: int, shares: Sequence[float] = ()) -> Any:
    """Draw true labels, evenly or by their shares."""
    return rng.choice(k, items, p=np.array(shares) / sum(shares) if shares else None)


def other(rng: np.random.Generator, truth: np.ndarray, k: int) -> np.ndarray:
    """Draw one of the labels that are not the true one."""
    return (truth + rng.integers(1, k, truth.shape)) % k


def answer(
    rng: np.random.Generator, truth: np.ndarray, task: np.ndarray, right: np.ndarray, k: int,
    alike: np.ndarray | None = None, share: float = 0.8,
) -> np.ndarray:  # fmt: skip
    """Answer rightly with probability `right`, else mostly the item's own look-alike."""
    wrong = other(rng, truth[task], k)
    if alike is not None:
        wrong = np.where(rng.random(len(task)) < share, alike[task], wrong)
    return np.where(rng.random(len(task)) < right, truth[task], wrong)


# Mechanisms


def shared_difficulty(
    rng: np.random.Generator, k: int, items: int, workers: int, each: int, level: float = 1.0,
    spread: float = 1.2, tail: float = 0.0, shares: Sequence[float] = (),
) -> Simulated:  # fmt: skip
    """Some items are harder for everybody; mistakes go to the item's own look-alike."""
    truth = classes(rng, items, k, shares)
    task, worker = deal(rng, items, workers, each, tail)
    skill, hard = rng.normal(level, 0.7, workers), rng.normal(0, spread, items)
    right = 1 / k + (1 - 1 / k) * expit(skill[worker] - hard[task])
    return task, worker, answer(rng, truth, task, right, k, other(rng, truth, k)), truth


def misleading(
    rng: np.random.Generator, k: int, items: int, workers: int, each: int, share: float,
    fooled: float = 0.75,
) -> Simulated:  # fmt: skip
    """Of a share of the items most people give the same wrong label."""
    truth = classes(rng, items, k)
    task, worker = deal(rng, items, workers, each)
    trap = rng.random(items) < share
    right = np.where(trap[task], 1 - fooled, rng.beta(8, 2, workers)[worker])
    return task, worker, answer(rng, truth, task, right, k, other(rng, truth, k)), truth


def colluders(
    rng: np.random.Generator, k: int, items: int, workers: int, each: int, groups: int,
    size: int, leader: float,
) -> Simulated:  # fmt: skip
    """Groups copy a leader, who is right with probability `leader`, nineteen times in twenty."""
    truth = classes(rng, items, k)
    task, worker = deal(rng, items, workers, each)
    label = answer(rng, truth, task, rng.beta(8, 3, workers)[worker], k)
    for group in range(groups):
        model = np.where(rng.random(items) < leader, truth, other(rng, truth, k))
        member = (worker >= group * size) & (worker < (group + 1) * size)
        label = np.where(member & (rng.random(len(task)) < 0.95), model[task], label)
    return task, worker, label, truth


def experts(
    rng: np.random.Generator, k: int, items: int, workers: int, each: int, number: int,
    layman: float,
) -> Simulated:  # fmt: skip
    """A few experts; laymen take half of the items for the same look-alike."""
    truth = classes(rng, items, k)
    task, worker = deal(rng, items, workers, each, 0.3)
    tricky, knows = rng.random(items) < 0.5, worker < number
    right = np.where(knows, 0.93, np.where(tricky[task], layman, rng.beta(7, 3, workers)[worker]))
    return task, worker, answer(rng, truth, task, right, k, other(rng, truth, k)), truth


def systems(
    rng: np.random.Generator, k: int, items: int, level: float, same: float, number: int = 10
) -> Simulated:
    """Systems that answer everything: an error of one is often an error of all."""
    truth = classes(rng, items, k)
    task, worker = np.repeat(np.arange(items), number), np.tile(np.arange(number), items)
    common, own = rng.normal(size=items), rng.normal(size=len(task))
    margin = level + rng.normal(0, 0.2, number)[worker]
    right = margin + np.sqrt(same) * common[task] + np.sqrt(1 - same) * own > 0
    return task, worker, answer(rng, truth, task, right, k, other(rng, truth, k), 0.7), truth


def spammers(
    rng: np.random.Generator, k: int, items: int, workers: int, each: int, constant: int,
    uniform: int,
) -> Simulated:  # fmt: skip
    """Workers who always give one label, or any label, among normal ones."""
    task, worker, label, truth = shared_difficulty(rng, k, items, workers, each, 1.3)
    favourite = rng.integers(0, k, workers)
    label = np.where(worker < constant, favourite[worker], label)
    guess = (worker >= constant) & (worker < constant + uniform)
    return task, worker, np.where(guess, rng.integers(0, k, len(task)), label), truth


def sub_types(
    rng: np.random.Generator, k: int, items: int, workers: int, each: int, kinds: int = 3
) -> Simulated:
    """Classes of several kinds; two schools of workers, each blind to other kinds."""
    truth, kind = classes(rng, items, k), rng.integers(0, kinds, items)
    task, worker = deal(rng, items, workers, each)
    alike = (truth + 1 + kind) % k
    alike = np.where(alike == truth, (truth + 1) % k, alike)
    blind = rng.random((2, k, kinds)) < 0.4
    school = rng.integers(0, 2, workers)
    missed = blind[school[worker], truth[task], kind[task]]
    right = np.where(missed, 0.35, 0.88)
    return task, worker, answer(rng, truth, task, right, k, alike, 0.9), truth


def fatigue(
    rng: np.random.Generator, k: int, items: int, workers: int, each: int, swap: bool = False
) -> Simulated:
    """Workers tire from answer to answer, or change their mind about two labels half-way."""
    truth = classes(rng, items, k)
    task, worker = deal(rng, items, workers, each, 0.8)
    time = np.arange(len(task)) / len(task)
    if swap:
        wrong = (truth + 1 + (np.arange(items) > items / 2)) % k
        right = rng.beta(6, 3, workers)[worker]
        return task, worker, answer(rng, truth, task, right, k, wrong, 0.9), truth
    decline = rng.exponential(3, workers)[worker] * time
    right = 1 / k + (1 - 1 / k) * expit(rng.normal(2, 0.5, workers)[worker] - decline)
    return task, worker, answer(rng, truth, task, right, k), truth


def grades(
    rng: np.random.Generator, k: int, items: int, workers: int, each: int, noise: float
) -> Simulated:
    """Grades of a quality that workers see with noise, severity and an own use of the scale."""
    quality = rng.normal(size=items)
    limits = np.quantile(quality, np.arange(1, k) / k)
    task, worker = deal(rng, items, workers, each)
    seen = quality[task] + rng.normal(0, 0.3, items)[task]
    seen = rng.lognormal(0, 0.3, workers)[worker] * seen + rng.normal(0, 0.4, workers)[worker]
    label = np.searchsorted(limits, seen + rng.normal(0, noise, len(task)))
    return task, worker, label, np.searchsorted(limits, quality)


def families(
    rng: np.random.Generator, k: int, items: int, workers: int, each: int, size: int = 5
) -> Simulated:
    """Many labels in families: people know the family, and only some know the member."""
    truth = classes(rng, items, k, list(1 / np.arange(1, k + 1) ** 0.5))
    task, worker = deal(rng, items, workers, each, 0.7)
    level, hard = rng.normal(0.6, 0.8, workers), rng.normal(0, 1, items)
    knows = rng.random(len(task)) < expit(level[worker] - hard[task])
    lost = rng.random(len(task)) < 0.08
    member = truth[task] // size * size + rng.integers(0, size, len(task))
    label = np.where(lost, rng.integers(0, k, len(task)), np.minimum(member, k - 1))
    return task, worker, np.where(knows & ~lost, truth[task], label), truth


UNEVEN = [60, 12, 8, 6, 4, 2, 2, 2, 2, 2]
SIMULATED: dict[str, tuple[int, Callable[..., Simulated]]] = {  # labels, then (items, workers, ...)
    "hard_2": (2, partial(shared_difficulty, items=1000, workers=60, each=5)),
    "hard_5": (5, partial(shared_difficulty, items=800, workers=50, each=7)),
    "hard_25": (25, partial(shared_difficulty, items=1500, workers=80, each=5)),
    "hard_twenty_answers_5": (5, partial(shared_difficulty, items=300, workers=100, each=20,
                                         level=0.3)),
    "two_answers_3": (3, partial(shared_difficulty, items=5000, workers=100, each=2)),
    "misleading_2": (2, partial(misleading, items=600, workers=50, each=10, share=0.15)),
    "misleading_10": (10, partial(misleading, items=1000, workers=60, each=5, share=0.25)),
    "colluders_random_3": (3, partial(colluders, items=500, workers=20, each=10, groups=1, size=8,
                                      leader=1 / 3)),
    "colluders_wrong_5": (5, partial(colluders, items=800, workers=40, each=6, groups=3, size=3,
                                     leader=0.1)),
    "experts_5": (5, partial(experts, items=800, workers=40, each=8, number=5, layman=0.35)),
    "experts_2": (2, partial(experts, items=600, workers=60, each=15, number=15, layman=0.45)),
    "systems_5": (5, partial(systems, items=2000, level=0.4, same=0.6)),
    "systems_2": (2, partial(systems, items=5000, level=0.4, same=0.8)),
    "one_answer_3": (3, partial(shared_difficulty, items=1000, workers=50, each=1, level=1.5)),
    "one_answer_10": (10, partial(misleading, items=2000, workers=80, each=1, share=0.1)),
    "constant_spammers_3": (3, partial(spammers, items=400, workers=20, each=10, constant=12,
                                       uniform=0)),
    "spammers_10": (10, partial(spammers, items=1000, workers=60, each=6, constant=9, uniform=15)),
    "sub_types_3": (3, partial(sub_types, items=1000, workers=50, each=8)),
    "sub_types_10": (10, partial(sub_types, items=1500, workers=60, each=6)),
    "tired_2": (2, partial(fatigue, items=1500, workers=40, each=4)),
    "changed_mind_5": (5, partial(fatigue, items=1000, workers=40, each=5, swap=True)),
    "uneven_10": (10, partial(shared_difficulty, items=1500, workers=60, each=5, shares=UNEVEN)),
    "rare_yes_2": (2, partial(shared_difficulty, items=2000, workers=60, each=5, level=1.6,
                              shares=[24, 1])),
    "grades_5": (5, partial(grades, items=600, workers=40, each=6, noise=0.5)),
    "grades_10": (10, partial(grades, items=1000, workers=50, each=3, noise=0.4)),
    "long_tail_5": (5, partial(shared_difficulty, items=1000, workers=300, each=5, tail=1.3)),
    "families_50": (50, partial(families, items=1000, workers=60, each=3)),
    "families_50_more": (50, partial(families, items=1500, workers=60, each=10)),
}  # fmt: skip


def simulate(name: str, again: int = 0) -> Crowd:
    """Simulate a crowd; `again` counts further crowds of the same kind."""
    k, mechanism = SIMULATED[name]
    rng = np.random.default_rng([zlib.crc32(name.encode()), again])
    task, worker, label, truth = mechanism(rng, k)
    tasks = [f"item{i:04d}" for i in range(len(truth))]
    workers = [f"worker{i:03d}" for i in range(worker.max() + 1)]
    return Crowd(name, task, worker, label, truth, tasks, workers, [f"{c:02d}" for c in range(k)])


def real_names() -> list[str]:
    """Names of the real crowds; none where the data folder is absent."""
    place = folder()
    paths = sorted(place.glob("crowd_*")) if place else []
    return [path.name.removeprefix("crowd_") for path in paths]


def files(name: str) -> tuple[Path, Path]:
    """Answers and gold of a real crowd."""
    place = folder()
    if place is None:
        raise SystemExit(ABSENT)
    return next(
        (place / f"crowd_{name}").glob("answers.csv*")
    ), place / f"crowd_{name}" / "gold.csv"


def read(name: str) -> Crowd:
    """Read a real crowd of the data folder."""
    answers, gold = (pl.read_csv(path, infer_schema=False) for path in files(name))
    labels = sorted({*answers["label"], *gold["label"]})
    code = {label: number for number, label in enumerate(labels)}
    known = {task: code[label] for task, label in gold.select("task", "label").iter_rows()}
    tasks, task = np.unique(answers["task"].to_numpy(), return_inverse=True)
    workers, worker = np.unique(answers["worker"].to_numpy(), return_inverse=True)
    label = np.array([code[name] for name in answers["label"]])
    truth = np.array([known.get(name, -1) for name in tasks])
    return Crowd(name, task, worker, label, truth, tasks.tolist(), workers.tolist(), labels)


def load(name: str, again: int = 0) -> Crowd:
    """A crowd by name, real or simulated."""
    return simulate(name, again) if name in SIMULATED else read(name)


def choose(only: str | None = None) -> Iterator[str]:
    """Names of crowds: ``real``, ``simulated``, one by name, several by commas, or all."""
    real = real_names()
    if not real and only in (None, "real"):
        print(f"real crowds are left out: {ABSENT}")
    kinds = {None: [*real, *SIMULATED], "real": real, "simulated": list(SIMULATED)}
    for name in kinds[only] if only in kinds else only.split(","):
        if name not in {*real, *SIMULATED}:
            raise SystemExit(f"no crowd is called {name!r}; there are: {', '.join(kinds[None])}")
        yield name


def main() -> None:
    print(f"{'crowd':24}{'labels':>8}{'items':>8}{'known':>8}{'workers':>9}{'per item':>10}"
          f"{'answers right, %':>18}")  # fmt: skip
    for crowd in map(load, choose()):
        truth = crowd.truth[crowd.task]
        right = 100 * (crowd.label == truth)[truth >= 0].mean()
        items, known = len(crowd.tasks), (crowd.truth >= 0).sum()
        print(f"{crowd.name:24}{len(crowd.labels):8}{items:8}{known:8}{len(crowd.workers):9}"
              f"{len(crowd.task) / items:10.1f}{right:18.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
