"""Simulated crowds whose truth is known, for the tests and benchmarks of learning."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from crowdtree import Problem


class Crowd(NamedTuple):
    answers: dict[str, Any]
    gold: dict[str, str]
    skill: np.ndarray
    error: np.ndarray
    problem: Problem


SKILLS = {
    "model": lambda rng, n: rng.normal(0, 0.6, n),
    "two groups": lambda rng, n: np.where(
        rng.random(n) < 0.2, rng.normal(-1.2, 0.2, n), rng.normal(0.3, 0.3, n)
    ),
    "heavy tails": lambda rng, n: 0.5 * rng.standard_t(4, n),
}
"""Skills of a crowd, mean 0 in the population: as the model assumes them, and otherwise."""

ERRORS = {
    "model": lambda rng, shape: _beta(rng, rng.uniform(0.08, 0.3, (shape[0], 1)), shape),
    "two groups": lambda rng, shape: rng.choice([0.06, 0.3], shape),
    "heavy tails": lambda rng, shape: rng.uniform(0.02, 0.4, shape),
}
"""Errors of the cells: as the model assumes them, of two kinds, and evenly spread."""


def _beta(rng: np.random.Generator, mean: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return np.clip(rng.beta(12 * mean, 12 * (1 - mean), shape), 0.002, 0.45)


def labelled(
    rng: np.random.Generator,
    items: int,
    workers: int,
    each: int,
    labels: int = 2,
    shape: str = "model",
) -> Crowd:
    """One question with its errors, class shares and skills drawn anew; `shape` says how.

    Who errs on an item of a class names the other labels in shares that the class has.
    """
    share = rng.dirichlet(np.full(labels, 8.0))
    truth = rng.choice(labels, items, p=share)
    miss = ERRORS[shape](rng, (1, labels))[0]
    off = rng.dirichlet(np.full(labels - 1, 4.0), labels)
    skill = SKILLS[shape](rng, workers)
    task = np.repeat(np.arange(items), each)
    worker = np.argsort(rng.random((items, workers)), axis=1)[:, :each].ravel()
    wrong = rng.random(items * each) < expit(logit(miss)[truth[task]] - skill[worker])
    others = np.array([[k for k in range(labels) if k != c] for c in range(labels)])
    pick = (rng.random(len(task))[:, None] > np.cumsum(off, axis=1)[truth[task]]).sum(axis=1)
    said = np.where(wrong, others[truth[task], np.minimum(pick, labels - 2)], truth[task])
    error = np.diag(miss)
    error[others.T, np.arange(labels)] = (miss[:, None] * off).T
    error = miss[None] if labels == 2 else error
    names = [str(c) for c in range(labels)]
    outcome = [[0, 1]] if labels == 2 else np.eye(labels, dtype=int)
    problem = Problem(names, share, [f"q{i}" for i in range(len(outcome))], outcome, 0.2)
    answers = {"task": task, "worker": worker, "label": said}
    return Crowd(answers, {str(i): str(c) for i, c in enumerate(truth)}, skill, error, problem)


def one_question(
    rng: np.random.Generator,
    items: int,
    workers: int,
    each: int,
    error: tuple[float, ...] = (0.2, 0.3),
) -> Crowd:
    """Binary labels; each item goes to `each` different workers of normal skill."""
    truth = (rng.random(items) < 0.4).astype(int)
    skill = rng.normal(0, 0.7, workers)
    task = np.repeat(np.arange(items), each)
    worker = np.argsort(rng.random((items, workers)), axis=1)[:, :each].ravel()
    wrong = rng.random(items * each) < expit(logit(np.array(error))[truth[task]] - skill[worker])
    answers = {"task": task, "worker": worker, "label": truth[task] ^ wrong}
    problem = Problem(["0", "1"], None, ["label"], [[0, 1]], [list(error)])
    gold = {str(i): str(c) for i, c in enumerate(truth)}
    return Crowd(answers, gold, skill, np.array([error]), problem)


def many_questions(
    rng: np.random.Generator,
    items: int,
    questions: int,
    classes: int,
    workers: int,
    each: int,
    shape: str = "model",
) -> Crowd:
    """Yes/no questions about classes; errors and skills of some `shape`."""
    truth = rng.integers(0, classes, items)
    outcome = rng.integers(0, 2, (questions, classes))
    error = ERRORS[shape](rng, (questions, classes))
    skill = SKILLS[shape](rng, workers)
    task = np.repeat(np.arange(items), each)
    asked = rng.integers(0, questions, items * each)
    worker = rng.integers(0, workers, items * each)
    wrong = rng.random(items * each) < expit(logit(error[asked, truth[task]]) - skill[worker])
    label = outcome[asked, truth[task]] ^ wrong
    _, first = np.unique((task * questions + asked) * workers + worker, return_index=True)
    names = [f"class{c:02d}" for c in range(classes)]
    texts = [f"question{q:02d}" for q in range(questions)]
    answers = {
        "task": task[first],
        "question": np.array(texts)[asked[first]],
        "worker": worker[first],
        "label": label[first],
    }
    problem = Problem(names, None, texts, outcome, 0.2)
    return Crowd(answers, {str(i): names[c] for i, c in enumerate(truth)}, skill, error, problem)


def crowd_error(crowd: Crowd) -> np.ndarray:
    """Error of the crowd per cell: the mean over its workers, each by the answers given."""
    count = np.bincount(crowd.answers["worker"], minlength=len(crowd.skill))
    own = expit(logit(crowd.error)[None] - crowd.skill[:, None, None])
    return np.einsum("w,wqc->qc", count / count.sum(), own)


def with_spammer(rng: np.random.Generator, crowd: Crowd, kind: str) -> tuple[Crowd, np.ndarray]:
    """Worker 0 always answers yes ("constant") or at random ("random"); returns the error."""
    mine = crowd.answers["worker"] == 0
    said = {"none": crowd.answers["label"], "constant": 1, "random": rng.integers(0, 2, len(mine))}
    label = np.where(mine, said[kind], crowd.answers["label"])
    share = mine.mean()
    skill = np.where(np.arange(len(crowd.skill)) == 0, 0.0, crowd.skill)
    at_zero = {"none": expit(logit(crowd.error) - crowd.skill[0]), "random": 0.5,
               "constant": crowd.problem.outcome == 0}[kind]  # fmt: skip
    error = crowd_error(crowd._replace(skill=skill)) + share * (at_zero - crowd.error)
    return crowd._replace(answers={**crowd.answers, "label": label}), error


def gold_of(crowd: Crowd, items: int) -> dict[str, str]:
    """Classes of some items, of every class at least one."""
    first = {name: task for task, name in reversed(crowd.gold.items())}
    chosen = [*first.values(), *(task for task in crowd.gold if task not in first.values())]
    return {task: crowd.gold[task] for task in chosen[:items]}
