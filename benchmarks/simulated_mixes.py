"""Simulated mixes of people and models, by mechanisms that the model of ``learn`` does not have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import expit, softmax

from benchmarks.mixed_sets import Mix

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


# Mixes of other shapes


def judges(rng: np.random.Generator) -> Mix:
    """33 models grade passages in four grades; most share a view that is not that of the truth."""
    items, models = 800, 33
    seen = rng.standard_normal(items)
    view = 0.6 * seen + 0.8 * rng.standard_normal(items)  # what models have in common
    truth = np.digitize(seen, [0.0, 0.7, 1.4])
    trust = rng.beta(2, 3, models)  # of the truth, the rest of the view
    noise = rng.uniform(0.3, 1.2, models)
    shift = 0.5 * rng.standard_normal((models, 1)) + 0.3
    score = trust[:, None] * seen + (1 - trust[:, None]) * view
    score = score + noise[:, None] * rng.standard_normal((models, items)) + shift
    cuts = np.array([0.0, 0.7, 1.4])
    return _mixed(np.stack([np.digitize(row, cuts) for row in score], axis=1), 0, truth, 4)


def biased_crowd(rng: np.random.Generator) -> Mix:
    """123 people per item, of whom most are wrong about a third of the items; two models."""
    items, people = 350, 123
    truth = rng.integers(0, 2, items)
    lean = 1.0 + 1.9 * rng.standard_normal(items)  # towards the truth
    skill = rng.uniform(0.3, 1.5, people + 2)
    right = rng.random((items, people + 2)) < expit(skill * lean[:, None])
    answers = np.where(right, truth[:, None], 1 - truth[:, None])
    own = rng.random((items, 2)) < 0.6
    known = rng.random((items, 2)) < 0.75
    answers[:, people:] = np.where(
        own, np.where(known, truth[:, None], 1 - truth[:, None]), answers[:, people:]
    )
    return _mixed(answers, people, truth, 2)


def copied(rng: np.random.Generator) -> Mix:
    """Models that often copy one of two others, and people who often copy the first one."""
    items, people, models = 800, 10, 8
    truth = rng.integers(0, 3, items)
    hard = rng.standard_normal(items)
    own = [_answer(rng, truth, rng.normal(1.8, 0.6) + hard, 3) for _ in range(people + models)]
    answers = np.stack(own, axis=1)
    first = people + rng.integers(0, 2, models)
    copies = rng.random((items, models)) < 0.8
    copies[:, :2] = False
    answers[:, people:] = np.where(copies, answers[:, first], answers[:, people:])
    asks_model = rng.random((items, people)) < 0.3
    answers[:, :people] = np.where(asks_model, answers[:, [people]], answers[:, :people])
    return _mixed(_asked(rng, answers, people, 3), people, truth, 3)


def topics(rng: np.random.Generator) -> Mix:
    """Six topics, about some of which most models err; people do not mind."""
    items, people, models = 800, 8, 7
    truth, topic = rng.integers(0, 4, items), rng.integers(0, 6, items)
    common = 1.5 * rng.standard_normal(6)
    level = 2 + common + 0.5 * rng.standard_normal((models, 6))
    trap = (truth + 1 + topic % 3) % 4
    made = [_answer(rng, truth, level[m][topic], 4, trap, 1.0) for m in range(models)]
    said = [_answer(rng, truth, rng.normal(1.8, 0.4, 1), 4) for _ in range(people)]
    answers = np.stack([*said, *made], axis=1)
    return _mixed(_asked(rng, answers, people, 2), people, truth, 4)


def graded(rng: np.random.Generator) -> Mix:
    """Five grades; everybody sees the same noisy thing, and has cuts of their own."""
    items, people, models = 600, 9, 5
    truth = rng.integers(0, 5, items)
    seen = truth + 0.7 * rng.standard_normal(items)
    noise = np.append(rng.uniform(0.4, 1.0, people), rng.uniform(0.3, 0.8, models))
    shift = np.append(0.2 * rng.standard_normal(people), 0.5 * rng.standard_normal(models))
    score = seen[:, None] + shift + noise * rng.standard_normal((items, people + models))
    answers = np.rint(score).clip(0, 4).astype(int)
    return _mixed(_asked(rng, answers, people, 3), people, truth, 5)


def few_people(rng: np.random.Generator) -> Mix:
    """One person about a third of the items, and three models that share errors."""
    items, people, models = 700, 6, 3
    truth = rng.integers(0, 3, items)
    shared, trap = 1.5 * rng.standard_normal(items), (truth + rng.integers(1, 3, items)) % 3
    made = [_answer(rng, truth, 1.8 + shared, 3, trap, 0.5) for _ in range(models)]
    said = [_answer(rng, truth, rng.normal(2.0, 0.5, 1), 3) for _ in range(people)]
    answers = _asked(rng, np.stack([*said, *made], axis=1), people, 1)
    answers[rng.random(items) < 0.67, :people] = -1
    return _mixed(answers, people, truth, 3)


def rare(rng: np.random.Generator) -> Mix:
    """One item of 20 is positive; models miss the same ones, people see false ones."""
    items, people, models = 1000, 10, 6
    truth = (rng.random(items) < 0.05).astype(int)
    hidden = 1.2 * rng.standard_normal(items)
    level = np.where(truth[:, None] == 1, 0.3 + hidden[:, None], -3.5 + 0.5 * hidden[:, None])
    chance = np.concatenate(
        [
            expit(level * 0.8 + 0.3 * rng.standard_normal(people)),
            expit(level + 0.5 * rng.standard_normal(models)),
        ],
        axis=1,
    )
    answers = (rng.random(chance.shape) < chance).astype(int)
    return _mixed(_asked(rng, answers, people, 2), people, truth, 2)


def many_models(rng: np.random.Generator) -> Mix:
    """25 models of mixed quality, whose errors have four causes that each shares in part."""
    items, people, models, classes = 700, 10, 25, 3
    truth = rng.integers(0, classes, items)
    cause = rng.standard_normal((4, items, classes))
    load = rng.normal(0.6, 0.5, (models, 4))
    quality = rng.uniform(0.2, 2.2, models)
    made = []
    for strength, part in zip(quality, load, strict=True):
        score = np.tensordot(part, cause, 1)
        score[np.arange(items), truth] += strength
        made.append(_drawn(rng, softmax(1.5 * score, axis=1)))
    said = [_answer(rng, truth, rng.normal(1.6, 0.5, 1), classes) for _ in range(people)]
    answers = np.stack([*said, *made], axis=1)
    return _mixed(_asked(rng, answers, people, 2), people, truth, classes)


def traps(rng: np.random.Generator) -> Mix:
    """About one item of six everybody is misled; about the others nearly nobody is."""
    items, people, models = 700, 10, 6
    truth = rng.integers(0, 4, items)
    trap, misled = (truth + rng.integers(1, 4, items)) % 4, rng.random(items) < 1 / 6
    level = np.where(misled, -0.5, 3.0)
    draws = [
        _answer(rng, truth, level + rng.normal(0, 0.4), 4, trap, np.where(misled, 2.0, 0.0))
        for _ in range(people + models)
    ]
    return _mixed(_asked(rng, np.stack(draws, axis=1), people, 3), people, truth, 4)


def drawn(rng: np.random.Generator) -> Mix:
    """A mix whose make-up is drawn too: who answers how much, how well, and what errors share."""
    items, classes = int(rng.integers(300, 900)), int(rng.choice([2, 2, 3, 3, 4, 5, 6]))
    people = int(rng.integers(3, 16)) if rng.random() < 0.9 else 0
    models = int(rng.integers(1, 11)) if people else int(rng.integers(3, 11))
    each, rows = int(rng.integers(1, 5)), np.arange(items)
    truth = rng.choice(
        classes, items, p=rng.dirichlet(np.full(classes, rng.choice([1.0, 3.0, 8.0])))
    )
    alike = (truth + rng.integers(1, classes, items)) % classes
    graded = classes > 2 and rng.random() < 0.25
    if graded:
        alike = np.where(truth == 0, 1, np.where(truth == classes - 1, truth - 1, truth + 1))
    hard = rng.choice([0, 0.5, 1.0]) * rng.standard_normal(items)
    families = rng.choice([0, 0.7, 1.5, 2.2]) * rng.standard_normal((3, items, classes))
    crowd = rng.choice([0, 0.5, 1.2]) * rng.standard_normal((items, classes))
    everybody = rng.choice([0, 0, 0.7]) * rng.standard_normal((items, classes))
    misled, pull = rng.random(items) < rng.choice([0, 0, 0.08, 0.16]), rng.choice([0.3, 1.0])

    def answer(strength: float, shared: np.ndarray) -> np.ndarray:
        score = shared + everybody
        score[rows, truth] += strength + hard
        score[rows, alike] += pull
        if graded:
            score -= 0.6 * np.abs(np.arange(classes) - truth[:, None])
        score[misled, truth[misled]] -= 3
        score[misled, alike[misled]] += 2
        return _drawn(rng, softmax(score, axis=1))

    level, spread, many = rng.uniform(0.8, 2.8), rng.choice([0.2, 0.8]), int(rng.integers(1, 4))
    said = [answer(rng.normal(2.0, 0.6), crowd) for _ in range(people)]
    said = [one if rng.random() > 0.08 else rng.integers(0, classes, items) for one in said]
    made = [answer(rng.normal(level, spread), families[rng.integers(many)]) for _ in range(models)]
    if rng.random() < 0.25:
        often = rng.choice([0.5, 0.9])
        made = [np.where(rng.random(items) < often, made[0], one) for one in made]
    kind = rng.random()
    if kind < 0.2:
        made[-1] = np.where(rng.random(items) < 0.98, truth, alike)
    elif kind < 0.3:
        made[-1] = (truth + 1) % classes
    elif kind < 0.45:
        made[-1] = rng.integers(0, classes, items)
    answers = np.stack([*said, *made], axis=1)
    answers = _asked(rng, answers, people, each) if people else answers
    if rng.random() < 0.2:
        answers[rng.random(items) < 0.6, :people] = -1
    return _mixed(answers, people, truth, classes)


OTHERS: dict[str, Callable[[np.random.Generator], Mix]] = {
    made.__name__: made
    for made in (
        judges, biased_crowd, copied, topics, graded, few_people, rare, many_models, traps,
    )
}  # fmt: skip


def _answer(rng, truth, strength, classes, trap=None, pull=0.0):  # type: ignore[no-untyped-def]
    """Answers that prefer the truth by some log odds, and a trap by some others."""
    rows = np.arange(len(truth))
    score = np.zeros((len(truth), classes))
    score[rows, truth] += strength
    if trap is not None:
        score[rows, trap] += pull
    return _drawn(rng, softmax(score, axis=1))


def _drawn(rng: np.random.Generator, chance: np.ndarray) -> np.ndarray:
    """A class of each row."""
    above = rng.random((len(chance), 1)) > chance.cumsum(axis=1)
    return above.sum(axis=1).clip(max=chance.shape[1] - 1)


def _asked(rng: np.random.Generator, answers: np.ndarray, people: int, each: int) -> np.ndarray:
    """Answers of some of the people about each item, and of all models."""
    rank = np.argsort(np.argsort(rng.random((len(answers), people)), axis=1), axis=1)
    answers[:, :people][rank >= each] = -1
    return answers


def _mixed(answers: np.ndarray, people: int, truth: np.ndarray, classes: int) -> Mix:
    models = answers.shape[1] - people
    names = ["people"] * people + [f"model {m}" for m in range(models)]
    return Mix(answers, names, truth, classes)
