"""Real mixed sets for the benchmarks: answers of people and of models to one question.

Real ones are read from the data folder (``realdata.py``). Of two of them nobody knows the truth, so
half of the people of every item, drawn anew, are held out, and the truth is their majority; items
without one are left out. Simulated ones: :mod:`benchmarks.simulated_mixes`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.realdata import folder, read_table

REAL = ("cebab_aspects", "lesion", "cifar10h")
NETWORKS = ("cnn", "resnet", "preresnet", "densenet")
CIFAR_ITEMS = 1000
"""Items drawn of the 5,000: as many as the other sets have."""


class Mix(NamedTuple):
    """Answers (item, worker), -1 for none, the source of each worker, and the true classes."""

    answers: np.ndarray
    sources: list[str]
    truth: np.ndarray
    classes: int

    def columns(self, chosen: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The answers of some of the workers by name, as ``ct.learn`` reads them."""
        kept = np.arange(len(self.sources)) if chosen is None else chosen
        item, place = np.nonzero(self.answers[:, kept] >= 0)
        worker = kept[place]
        return {
            "task": item,
            "worker": np.array([f"w{w}" for w in range(len(self.sources))])[worker],
            "label": np.array([f"c{c}" for c in range(self.classes)])[self.answers[item, worker]],
        }

    def table(self, price: float = 1.0) -> dict[str, list[Any]]:
        """Who belongs to which source, as ``ct.learn`` reads it; `price` is that of a model."""
        kinds = ["people" if s == "people" else "model" for s in self.sources]
        return {
            "worker": [f"w{w}" for w in range(len(self.sources))],
            "source": self.sources,
            "kind": kinds,
            "price": [1.0 if kind == "people" else price for kind in kinds],
        }

    @property
    def people(self) -> np.ndarray:
        """Workers who are people."""
        return np.flatnonzero(np.array(self.sources) == "people")

    @property
    def models(self) -> np.ndarray:
        """Workers who are not."""
        return np.flatnonzero(np.array(self.sources) != "people")


def load(name: str, rng: np.random.Generator, people: int = 3) -> Mix:
    """Draw a real set, with at most so many people per item."""
    if folder() is None:
        raise SystemExit("no data folder: set CROWDTREE_DATA")
    made = _networks(rng, people) if name == "cifar10h" else _held_out(name, rng)
    for row in made.answers:
        given = rng.permutation(made.people[row[made.people] >= 0])
        row[given[people:]] = -1
    return made


def _held_out(name: str, rng: np.random.Generator) -> Mix:
    place = folder()
    assert place is not None
    _, *rows = read_table(place / f"mixed_{name}", "answers")
    tasks, workers, kinds, labels = (sorted(set(column)) for column in zip(*rows, strict=True))
    kind = {row[1]: row[2] for row in rows}
    workers.sort(key=lambda who: (kind[who] != kinds[-1], who))  # people first: person > model
    answers = np.full((len(tasks), len(workers)), -1)
    for task, worker, _, label in rows:
        answers[tasks.index(task), workers.index(worker)] = labels.index(label)
    people = np.array([i for i, who in enumerate(workers) if kind[who] == "person"])
    held = np.zeros((len(tasks), len(labels)))
    for row, votes in zip(answers, held, strict=True):
        given = rng.permutation(people[row[people] >= 0])
        chosen = given[: len(given) - len(given) // 2]
        np.add.at(votes, row[chosen], 1)
        row[chosen] = -1
    clear = (held == held.max(axis=1, keepdims=True)).sum(axis=1) == 1
    names = ["people" if kind[who] == "person" else who for who in workers]
    return Mix(answers[clear], names, held[clear].argmax(axis=1), len(labels))


def _networks(rng: np.random.Generator, people: int) -> Mix:
    place = folder()
    assert place is not None
    header, *rows = read_table(place / "mixed_cifar10h", "people")
    names = header[2:]
    said = []
    for network in NETWORKS:
        _, *given = read_table(place / "mixed_cifar10h", f"model_{network}")
        best = {row[0]: int(np.argmax(np.array(row[1:], dtype=float))) for row in given}
        said.append([best[row[0]] for row in rows])
    chosen = rng.permutation(len(rows))[:CIFAR_ITEMS]
    counts = np.array([rows[i][2:] for i in chosen], dtype=int)
    drawn = [rng.permutation(np.repeat(np.arange(len(names)), row))[:people] for row in counts]
    answers = np.concatenate([np.array(drawn), np.array(said).T[chosen]], axis=1)
    truth = np.array([names.index(rows[i][1]) for i in chosen])
    return Mix(answers, ["people"] * people + list(NETWORKS), truth, len(names))
