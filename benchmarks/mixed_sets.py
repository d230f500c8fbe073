"""Mixed sets for the benchmarks: answers of people and of models to one question.

Real ones are read from the data folder (``realdata.py``). Of two of them nobody knows the truth, so
half of the people of every item, drawn anew, are held out, and the truth is their majority; items
without one are left out. Simulated ones have mechanisms that the model of ``learn`` does not have.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

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


# Simulated mixes

MECHANISMS = (
    "independent", "difficulty", "families", "clones", "twins", "hostile", "useless", "expert",
    "spammers",
)  # fmt: skip
"""What the sources have in common, or who is among them:

independent given the class; difficulty of an item shared by all; two families of models with errors
of their own; models that all share errors; models that copy the first one; a model that is nearly
always wrong; two models that guess; a model that is nearly always right; three people who guess.
"""


def simulate(
    mechanism: str,
    rng: np.random.Generator,
    people: int = 3,
    models: int = 5,
    classes: int = 3,
    items: int = 800,
) -> Mix:
    """Draw answers of twelve people, `people` of whom answer each item, and of models."""
    truth = rng.choice(classes, items, p=rng.dirichlet(np.full(classes, 3.0)))
    hard = rng.standard_normal(items) if mechanism != "independent" else np.zeros(items)
    alike = (truth + rng.integers(1, classes, items)) % classes
    shared = 1.8 * rng.standard_normal((2, items, classes))
    crowd = 12

    def answer(strength: float, family: int = -1) -> np.ndarray:
        score = np.zeros((items, classes)) if family < 0 else shared[family].copy()
        score[np.arange(items), truth] += strength + hard
        score[np.arange(items), alike] += 0.7
        chance = softmax(score, axis=1)
        return (rng.random((items, 1)) > chance.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)

    asked = np.argsort(rng.random((items, crowd)), axis=1) < people
    said = np.stack([answer(s) for s in rng.normal(2.2, 0.5, crowd)], axis=1)
    if mechanism == "spammers":
        said[:, :2] = rng.integers(0, classes, (items, 2))
        said[:, 2] = 0
    said[~asked] = -1
    family = {"families": partial(rng.integers, 2), "clones": lambda: 0}.get(mechanism)
    made = [
        answer(rng.uniform(1.5, 3.0), -1 if family is None else int(family()))
        for _ in range(models)
    ]
    if mechanism == "twins":
        made = [np.where(rng.random(items) < 0.97, made[0], other) for other in made]
    if mechanism == "hostile":
        made[0] = (truth + 1) % classes
    if mechanism == "useless":
        made[0], made[1] = rng.integers(0, classes, items), np.zeros(items, dtype=int)
    if mechanism == "expert":
        made[0] = np.where(rng.random(items) < 0.99, truth, alike)
    names = ["people"] * crowd + [f"model {m}" for m in range(models)]
    return Mix(np.concatenate([said, np.stack(made, axis=1)], axis=1), names, truth, classes)
