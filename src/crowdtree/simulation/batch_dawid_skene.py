"""All questions at once, fused over the whole set of items by Dawid and Skene (1979).

The usual method of crowd labelling, as a baseline: each question is a labelling task of its own,
every item gets the same number of answers, the reliability of the workers is learnt from their
agreement (no gold), and the verdicts are decoded to the nearest class. Unlike a policy it requires
all items together, so it is a separate function.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.errors import CrowdtreeError
from crowdtree.policy.base import decide, label_errors, normalised, product
from crowdtree.policy.batch import nearest_codeword
from crowdtree.problem import DASH, Problem
from crowdtree.rng import generator
from crowdtree.simulation.crowd import Crowd, CrowdBlock
from crowdtree.simulation.engine import REASONS
from crowdtree.simulation.run import Run

__all__ = ["DawidSkene", "Decoding", "dawid_skene", "simulate_dawid_skene"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Decoding = Literal["nearest", "posterior"]
SMOOTHING = 0.1
"""Pseudo-count of every cell of a worker's table: a few answers do not prove an error of 0."""
MOST_STEPS = 50
TOLERANCE = 1e-7
"""Gain of the objective per answer below which the fit ends."""
MOST_MERGED = 30
"""Answers per item up to which items with the same answers are fitted together."""
LEAST_SHARE = 1e-15
"""Of yes and of no, so that a question with one answer only does not end in a division by 0."""


class DawidSkene(NamedTuple):
    """Estimates from the answers to one yes/no question.

    `yes` is each task's probability that the truth is yes, `log_ratio` the evidence of its answers
    alone, ``ln P(answers | yes) - ln P(answers | no)``; `says_yes` is each worker's probability
    of answering yes, where the truth is no and where it is yes; `share` the share of yes.
    """

    yes: FloatArray
    log_ratio: FloatArray
    says_yes: FloatArray
    share: float


def dawid_skene(
    task: ArrayLike, worker: ArrayLike, value: ArrayLike, tasks: int, workers: int
) -> DawidSkene:
    """Learn truths and reliabilities of one yes/no question from answers alone, by EM.

    The expectation maximisation of :func:`crowdtree.learning.dawid_skene.fit_dawid_skene`, with a
    tenth of an answer added to every cell of a worker's table, for at most 50 steps. What follows
    for *no* is computed from what follows for *yes*, which takes half the time.

    Parameters
    ----------
    task, worker
        Number of the task and of the worker of each answer, counted from 0.
    value
        The answers, 0 or 1.
    tasks, workers
        How many there are.

    References
    ----------
    Dawid and Skene (1979), the binary case.

    Examples
    --------
    >>> task, worker = [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3
    >>> found = dawid_skene(task, worker, [1, 1, 0, 0, 0, 1, 1, 1, 0], 3, 3)
    >>> found.yes.round().tolist(), bool(found.says_yes[2, 0] > 0.5)
    ([1.0, 0.0, 1.0], True)
    """
    t, w, said = (np.asarray(a, dtype=np.int64) for a in (task, worker, value))
    if not (len(t) == len(w) == len(said)) or np.any((said != 0) & (said != 1)):
        raise CrowdtreeError(
            "dawid_skene: expected one task, one worker and one value (0 or 1) per answer"
        )
    order = np.argsort(t, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(t, minlength=tasks))])
    return _fit(start, w[order], said[order], workers, np.ones(tasks))


def _fit(
    start: IntArray, worker: IntArray, said: IntArray, workers: int, times: FloatArray
) -> DawidSkene:
    """Fit to answers that are sorted by task; `start` is where those of each task begin.

    `times` is how many tasks have exactly these answers of these workers.
    """
    from scipy.sparse import csr_array

    votes, tasks = np.diff(start), times.sum()
    cell = (said * workers + worker).astype(np.int32)
    given = np.bincount(cell, np.repeat(times, votes), minlength=2 * workers)
    shape = (len(votes), 2 * workers)
    rows = csr_array((np.ones(len(cell)), cell, start.astype(np.int32)), shape=shape)
    columns = rows.T
    yes = np.where(votes > 0, rows @ np.repeat([0.0, 1.0], workers) / np.maximum(votes, 1), 0.5)
    before = -np.inf
    for _ in range(MOST_STEPS):
        counted = times * yes
        share = np.clip(counted.sum() / tasks, LEAST_SHARE, 1 - LEAST_SHARE)
        if_yes = np.asarray(columns @ counted)
        held = np.stack([given - if_yes, if_yes]).reshape(2, 2, workers) + SMOOTHING
        log_answer = np.log(held) - np.log(held[:, :1] + held[:, 1:])  # (truth, said, worker)
        log_ratio = rows @ (log_answer[1] - log_answer[0]).ravel()
        odds = log_ratio + np.log(share / (1 - share))
        rest = np.exp(-np.abs(odds))
        yes = np.where(odds >= 0, 1.0, rest) / (1.0 + rest)
        reached = (
            given @ log_answer[0].ravel() + tasks * np.log(1 - share)
            + times @ (np.maximum(odds, 0.0) + np.log(1.0 + rest))
            + SMOOTHING * log_answer.sum()
        )  # fmt: skip
        if reached - before < TOLERANCE * given.sum():
            break
        before = reached
    return DawidSkene(yes, log_ratio, np.exp(log_answer[:, 1].T), float(times @ yes / tasks))


def simulate_dawid_skene(
    problem: Problem,
    votes: int = 3,
    items: int = 10_000,
    rng: np.random.Generator | int = 0,
    *,
    crowd: Crowd | None = None,
    decoder: Decoding = "nearest",
) -> Run:
    """Ask every question `votes` times about every item and fuse by Dawid and Skene.

    The people are those of :func:`crowdtree.simulation.simulate` with the same seed.

    Parameters
    ----------
    problem
        Classes, prior and outcomes. The worker errors are not used for labelling: the
        reliabilities are learnt.
    votes
        Answers to each question on each item.
    items, rng, crowd
        As in :func:`crowdtree.simulation.simulate`.
    decoder
        ``"nearest"``: the class whose outcomes differ least from the verdicts;
        ``"posterior"``: the label of least expected loss (the likeliest class, for 0/1 loss)
        given prior and learnt reliabilities.

    Returns
    -------
    Run
        The stated error is that of the posterior with the learnt reliabilities.

    Examples
    --------
    >>> import crowdtree as ct
    >>> problem = ct.example("table1").replace(worker_error=0.2)
    >>> run = simulate_dawid_skene(problem, 5, items=500, crowd=Crowd(workers=20))
    >>> float(run.answers_per_item), bool(run.misclassification < 0.2)
    (25.0, True)
    """
    if int(votes) != votes or not 1 <= votes <= 32_000:
        raise CrowdtreeError(f"votes: expected a whole number from 1 to 32,000, got {votes}")
    if decoder not in get_args(Decoding):
        raise CrowdtreeError(f'decoder: expected "nearest" or "posterior", got {decoder!r}')
    problem.require_yes_no("batch_dawid_skene")
    people = Crowd() if crowd is None else crowd
    key = int(generator(rng).integers(0, 2**63))
    block = people.block(problem, key, 0, items)
    assert isinstance(block, CrowdBlock)
    verdict = np.empty((items, problem.n_questions), dtype=np.int64)
    log_ratio = np.empty((items, problem.n_questions))
    for question in range(problem.n_questions):
        fused = _fused(block, question, votes)
        verdict[:, question] = fused.yes >= 0.5
        log_ratio[:, question] = fused.log_ratio
    prior = problem.prior if block.prior is None else block.prior
    log_posterior = normalised(np.log(prior) + _evidence(problem, log_ratio))
    best = decide(log_posterior, problem.loss)
    nearest = decoder == "nearest"
    label = nearest_codeword(problem, verdict, block.prior) if nearest else best.label
    referred = np.zeros(items, dtype=bool) if nearest else best.referred
    posterior, loss = np.exp(log_posterior), problem.loss
    return Run(
        problem,
        truth_index=block.truth,
        label_index=label.astype(np.int64),
        answers=np.full(items, votes * problem.n_questions, dtype=np.int32),
        posterior_error=label_errors(posterior, label),
        reason=np.where(referred, REASONS.index("referred"), REASONS.index("questions")).astype(
            np.int8
        ),
        asked=np.full(problem.n_questions, votes * items, dtype=np.int64),
        stated_loss=None if loss is None else loss.risk_of(posterior, label, referred),
    )


def _fused(block: CrowdBlock, question: int, votes: int) -> DawidSkene:
    """Draw all answers to one question and fuse them."""
    items = len(block.truth)
    rows, here = np.arange(items), np.full(items, question)
    said = np.zeros((items, votes), dtype=np.int64)
    for turn in range(votes):
        yes = said[:, :turn].sum(axis=1)
        said[:, turn] = block.answer(
            rows, here, np.full(items, turn), np.stack([turn - yes, yes])
        ).value
    first = block.worker(rows, here, np.zeros(items, dtype=np.int64)).astype(np.int64)
    kept, place, times = _distinct(first, said)
    worker = block.worker(rows[kept, None], here[kept, None], np.arange(votes)).astype(np.int64)
    start = np.arange(0, worker.size + 1, votes)
    found = _fit(start, worker.ravel(), said[kept].ravel(), block.crowd.workers, times)
    return found._replace(yes=found.yes[place], log_ratio=found.log_ratio[place])


def _distinct(first: IntArray, said: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """One item of each kind, the kind of each item, and how many there are of each kind.

    Items are alike if the same people, who take turns from the `first`, `said` the same.
    """
    votes = said.shape[1]
    if votes > MOST_MERGED:
        every = np.arange(len(said))
        return every, every, np.ones(len(said))
    key = (first << votes) + said @ (1 << np.arange(votes))
    _, kept, place, times = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    return kept, place, times.astype(np.float64)


def _evidence(problem: Problem, log_ratio: FloatArray) -> FloatArray:
    """Logarithm of the probability of the answers under each class, up to a constant per item."""
    dash = problem.outcome == DASH
    told = product(log_ratio, np.where(problem.outcome == 1, 1.0, 0.0))
    if dash.any():
        either = np.logaddexp(0.0, log_ratio) - np.log(2.0)
        told += product(either, dash.astype(np.float64))
    return np.asarray(told)
