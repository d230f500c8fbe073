"""Workers who copy each other: their answers count as those of one (docs/model.md, section 13.2).

Those who know the truth agree with the others' majority as often as the others do; copies of a
worker who is wrong or guesses do not. Neither do workers who always give the same answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.learning.answers import Answers

LEAST_SHARED = 20
"""Items that two workers must share, and answers about which a group and the others compare."""
LEAST_AGREEMENT = 0.75
"""Agreement beyond chance of workers who may copy each other."""
SAME_SHARE = 0.98
"""Share of one label among the answers of somebody who always says the same."""
RARE = 1e-3
"""Probability of so many equal answers, were they drawn from those of the others."""
LESS = 0.5
"""Copies agree with the others' majority this many times as often as they do, beyond chance."""
MAX_WORKERS = 3000
_SURE = 3.0  # standard deviations


def find_copies(answers: Answers) -> tuple[tuple[int, ...], ...]:
    """Groups of workers who copy each other, at one question; constant ones first.

    Where these are many, they are the majority that others would be compared with.
    """
    constant = _constant(answers)
    left = np.ones(answers.n_workers, bool)
    left[[w for group in constant for w in group]] = False
    return (*constant, *_colluding(_of_workers(answers, left)))


def _of_workers(answers: Answers, kept: BoolArray) -> Answers:
    """Answers of some of the workers, about all items."""
    if kept.all():
        return answers
    return answers.rows(kept[answers.worker])


def _constant(answers: Answers) -> tuple[tuple[int, ...], ...]:
    """Workers who give one label to all items, which the others would hardly do."""
    given, count = _given(answers)
    top = given.argmax(axis=1)
    same = (count >= LEAST_SHARED) & (given.max(axis=1) >= SAME_SHARE * count)
    if same.sum() < 2 or same.all():
        return ()
    others = _of_workers(answers, ~same)
    seen = (np.diff(others.start) > 0)[answers.task] & same[answers.worker]
    like = others.votes.shares()[answers.task[seen], top[answers.worker[seen]]]
    shared = np.bincount(answers.worker[seen], minlength=len(count))
    share = np.bincount(answers.worker[seen], like, len(count)) / np.maximum(shared, 1)
    same &= shared * np.log(np.clip(share, 1e-9, 1)) < np.log(RARE)
    groups = (np.flatnonzero(same & (top == c)).tolist() for c in range(len(answers.labels)))
    return tuple(tuple(group) for group in groups if len(group) > 1)


def _colluding(answers: Answers) -> tuple[tuple[int, ...], ...]:
    if not 3 <= answers.n_workers <= MAX_WORKERS:
        return ()
    same, both = agreement(answers, answers.n_workers)
    share = np.bincount(answers.label) / answers.n_answers
    chance = min(float(share @ share), 0.99)  # how often any two answers are the same
    with np.errstate(invalid="ignore"):
        beyond = (same / both - chance) / (1 - chance)
    close = (both >= LEAST_SHARED) & (beyond >= LEAST_AGREEMENT)
    np.fill_diagonal(close, False)
    if not close.any():
        return ()
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    _, group = connected_components(csr_array(close.astype(np.int8)), directed=False)
    groups = np.flatnonzero(np.bincount(group) > 1).tolist()
    return tuple(
        tuple(np.flatnonzero(group == code).tolist())
        for code in groups
        if _agree(same, both, group == code, chance) and _are_copies(answers, group == code, chance)
    )


def agreement(answers: Answers, workers: int) -> tuple[FloatArray, FloatArray]:
    """Answers on which two workers agree, and pairs of answers that they have in common."""
    from scipy.sparse import csr_array

    labels, width = len(answers.labels), answers.n_tasks * len(answers.questions)
    asked = answers.task.astype(np.int64) * len(answers.questions) + answers.question_column()
    columns = ((asked * labels + answers.label, width * labels), (asked, width))
    ones = np.ones(answers.n_answers, np.float32)
    given, seen = (
        csr_array((ones, (answers.worker, column)), shape=(workers, size))
        for column, size in columns
    )
    same, both = ((part @ part.T).toarray().astype(np.float64) for part in (given, seen))
    return same, both


def _agree(same: FloatArray, both: FloatArray, member: BoolArray, chance: float) -> bool:
    """Whether all of a group agree nearly always, not only those who are next to each other."""
    pairs = np.ix_(member, member)
    shared = both[pairs].sum() - np.trace(both[pairs])
    equal = same[pairs].sum() - np.trace(same[pairs])
    return bool((equal / shared - chance) / (1 - chance) >= LEAST_AGREEMENT)


def _are_copies(answers: Answers, member: BoolArray, chance: float) -> bool:
    """Whether a group agrees with the majority of the others far less than they do themselves."""
    mine, task = member[answers.worker], answers.task
    labels = len(answers.labels)
    cell = task.astype(np.int64) * labels + answers.label
    votes = np.bincount(cell[~mine], minlength=answers.n_tasks * labels).reshape(-1, labels)
    # an answer of the others is compared with the majority without it
    seen = votes[task]
    seen[np.arange(len(task)), answers.label] -= ~mine
    top = seen.max(axis=1)
    clear = (top > 0) & ((seen == top[:, None]).sum(axis=1) == 1)
    agrees = seen[np.arange(len(task)), answers.label] == top
    counts = [int((clear & part).sum()) for part in (mine, ~mine)]
    if min(counts) < LEAST_SHARED or mine.sum() > (~mine).sum():
        return False  # a group that gives most of the answers is the crowd
    group, others = (
        (float(agrees[clear & part].mean()) - chance) / (1 - chance) for part in (mine, ~mine)
    )
    doubt = _SURE * 0.5 / (1 - chance) * (counts[0] ** -0.5 + counts[1] ** -0.5)
    return bool(group + doubt < LESS * others)


def merge_copies(answers: Answers, groups: tuple[tuple[int, ...], ...]) -> Answers:
    """Replace the answers of each group with those of its first worker: what most of it say.

    A group that always says the same says nothing about an item, so its answers are left out.
    """
    if not groups:
        return answers
    leader = np.arange(answers.n_workers, dtype=np.int32)
    for group in groups:
        leader[list(group)] = group[0]
    merged = answers.by_worker(leader, answers.workers).one_each()
    given, count = _given(merged)
    leads = np.isin(np.arange(answers.n_workers), [group[0] for group in groups])
    share = given.max(axis=1) / np.maximum(count, 1)
    return _of_workers(merged, ~(leads & (share >= SAME_SHARE)))


def _given(answers: Answers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Answers of every worker by label (worker, label), and in all."""
    labels = len(answers.labels)
    cell = answers.worker.astype(np.int64) * labels + answers.label
    given = np.bincount(cell, minlength=answers.n_workers * labels).reshape(-1, labels)
    return given, given.sum(axis=1)
