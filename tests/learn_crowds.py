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
    rng: np.random.Generator, items: int, questions: int, classes: int, workers: int, each: int
) -> Crowd:
    """Yes/no questions about classes; cells of a question are alike, workers differ."""
    truth = rng.integers(0, classes, items)
    outcome = rng.integers(0, 2, (questions, classes))
    mean = rng.uniform(0.08, 0.3, (questions, 1))
    error = np.clip(rng.beta(12 * mean, 12 * (1 - mean), (questions, classes)), 0.002, 0.45)
    skill = rng.normal(0, 0.6, workers)
    task = np.repeat(np.arange(items), each)
    asked = rng.integers(0, questions, items * each)
    worker = rng.integers(0, workers, items * each)
    wrong = rng.random(items * each) < expit(logit(error[asked, truth[task]]) - skill[worker])
    label = outcome[asked, truth[task]] ^ wrong
    _, first = np.unique(np.stack([task, asked, worker]), axis=1, return_index=True)
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
