"""All questions at once, fused over the whole set of items by Dawid and Skene (1979): a baseline.

Each question is a labelling task of its own, every item gets the same number of answers, the
workers' reliability is learnt from agreement (no gold), and the verdicts are decoded to a class.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.likelihood import UNSURE
from crowdtree.core.problem import DASH, Problem
from crowdtree.core.rng import generator
from crowdtree.learning.dawid_skene import fit_dawid_skene
from crowdtree.learning.passes import Votes
from crowdtree.policies.base import decide, label_errors, normalised, product
from crowdtree.policies.batch import nearest_codeword
from crowdtree.policies.walk import REASONS, Round
from crowdtree.simulation.crowd import Crowd, CrowdBlock
from crowdtree.simulation.run import Run

__all__ = ["Decoding", "simulate_dawid_skene"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Decoding = Literal["nearest", "posterior"]
SMOOTHING = 0.1
"""Pseudo-count of every cell of a worker's table: a few answers do not prove an error of 0."""
MAX_STEPS = 50
TOLERANCE = 1e-7
"""Gain of the objective per answer below which the fit ends."""
MAX_MERGED = 30
"""Answers per item, in bits, up to which items with the same answers are fitted together."""


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

    The people are those of :func:`crowdtree.simulation.simulate` with the same seed; the worker
    errors of the problem are not used for labelling. The `decoder` ``"nearest"`` gives the class
    whose outcomes differ least from the verdicts; ``"posterior"`` the label of least expected loss
    given prior and learnt reliabilities, from which the stated error follows.

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
    people = Crowd() if crowd is None else crowd
    key = int(generator(rng).integers(0, 2**63))
    block = people.block(problem, key, 0, items)
    assert isinstance(block, CrowdBlock)
    verdict = np.empty((items, problem.n_questions), dtype=np.int64)
    log_ratio = np.zeros((int(problem.n_answers.max()), items, problem.n_questions))
    for question in range(problem.n_questions):
        truth, evidence = _fused(block, question, votes)
        verdict[:, question] = _likeliest(truth)
        log_ratio[: len(evidence), :, question] = evidence - evidence[0]
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


def _fused(block: CrowdBlock, question: int, votes: int) -> tuple[FloatArray, FloatArray]:
    """Draw all answers to one question and fuse them: chance and evidence (answer, item)."""
    items, answers = len(block.truth), int(block.problem.n_answers[question])
    slots = answers + (block.problem.unsure is not None)
    rows, here = np.arange(items), np.full(items, question)
    said = np.zeros((items, votes), dtype=np.int64)
    counts = np.zeros((block.model.slots, items), dtype=np.int64)
    for turn in range(votes):
        value = block.answer(Round(rows, here, np.full(items, turn), counts.copy)).value
        said[:, turn] = np.where(value == UNSURE, answers, value)
        counts[np.where(value == UNSURE, len(counts) - 1, value), rows] += 1
    first = block.worker(rows, here, np.zeros(items, dtype=np.int64)).astype(np.int64)
    kept, place, times = _distinct(first, said, slots)
    worker = block.worker(rows[kept, None], here[kept, None], np.arange(votes)).astype(np.int32)
    start, flat = np.arange(0, worker.size + 1, votes), said[kept].ravel().astype(np.int8)
    given = Votes(start, worker.ravel(), flat, block.crowd.workers, slots, answers, times)
    fit = fit_dawid_skene(
        given, np.full(len(kept), -1, np.int32),
        smoothing=SMOOTHING, tolerance=TOLERANCE, steps=MAX_STEPS,
    )  # fmt: skip
    evidence = np.log(np.maximum(fit.posterior, 1e-300)) - fit.log_prior
    return fit.posterior.T[:, place], evidence.T[:, place]


def _likeliest(truth: FloatArray) -> NDArray[np.intp]:
    """Likeliest answer of each task; of equals the last."""
    return np.asarray(len(truth) - 1 - truth[::-1].argmax(axis=0))


def _distinct(first: IntArray, said: IntArray, slots: int) -> tuple[IntArray, IntArray, FloatArray]:
    """One item of each kind, the kind of each item, and how many there are of each kind.

    Items are alike if the same people, who take turns from the `first`, `said` the same.
    """
    votes = said.shape[1]
    if votes * math.log2(slots) > MAX_MERGED:
        every = np.arange(len(said))
        return every, every, np.ones(len(said))
    key = first * slots**votes + said @ slots ** np.arange(votes)
    _, kept, place, times = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    return kept, place, times.astype(np.float64)


def _evidence(problem: Problem, log_ratio: FloatArray) -> FloatArray:
    """Logarithm of the probability of the answers under each class, up to a constant per item."""
    answers = np.arange(len(log_ratio))[:, None, None]
    exists = answers < problem.n_answers[:, None]
    right = np.where(problem.outcome == DASH, exists, problem.right)
    one = right.sum(axis=0) == 1
    told = np.zeros((log_ratio.shape[1], problem.n_classes))
    for ratio, mine in zip(log_ratio[1:], right[1:], strict=True):
        told += product(ratio, np.where(one & mine, 1.0, 0.0))
    sets = (right * (1 << answers)).sum(axis=0)
    for every in np.unique(sets[~one]).tolist():  # each of these answers is equally often true
        some = log_ratio[[a for a in range(len(log_ratio)) if every >> a & 1]]
        either = np.logaddexp.reduce(some, axis=0) - np.log(len(some))
        told += product(either, (sets == every).astype(np.float64))
    return np.asarray(told)
