"""One question: workers with their own confusions, items that mislead everybody.

The model is described in docs/model.md, sections 9 and 13.

Worker w gives label l to an item of class k with probability

    P(l | w, k, tilt) = softmax over l of (logits[w, k, l] + tilt[l]).

A worker's logits are those of the crowd, plus what the worker leans to whatever the class, plus a
deviation per cell; leanings and deviations are normal, and their variances are estimated, so that
a worker with few answers is taken for a typical one. This is Dawid and Skene (1979) with a
hierarchy: without the leanings, few answers per item pass for classes. The tilt belongs
to the item and is shared by everybody who looks at it: towards one label, drawn at random, by an
amount drawn from a normal distribution of standard deviation ``tilt_sd``. So people may err
together, and a class need not be what most of them say.

A tilt takes one of a few values (Gauss-Hermite nodes), so a class and a tilt together are one of a
few *states*, over which everything is summed exactly. Fitted by EM; ``tilt_sd`` by the evidence of
the answers, workers' logits integrated out by Laplace's method.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdtree.learning.answers import Answers
from crowdtree.learning.passes import AnswerTable, Votes

__all__ = ["CrowdModel", "States", "fit_crowd", "fit_crowds"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

TILT_SDS = (0.0, 0.5, 1.0, 2.0)
"""Standard deviations of the tilt that are tried first, in logits."""
LARGEST_TILT_SD = 3.0
FINEST = 0.25
"""Around the best one the search goes on down to this distance."""
NODES = 7
"""Values of the tilt along one label..."""
FEW_NODES = 3
"""... and with many labels or workers."""
MANY_LABELS = 12
STEPS = 300
ROUGH_STEPS = 80
FEWEST_STEPS = 20  # the crowd's variance moves slowly at first
TOLERANCE = 1e-6
"""The fit has settled when a step adds less than this share of the log likelihood."""
ROUGH = 1e-5
"""The same while models are compared."""
LEAST_WEIGHT = 0.05
"""Models with less of the evidence are left out of the average."""
_TEST_WORK = 1_500_000  # passes of a test: answers and workers' cells, times states
_MOST_CELLS = 30_000_000  # (worker, label, state) combinations of a model
_LONGEST_STEP = 1.0  # logits that one step may move
_PRIOR_WORKERS = 1.0  # the prior of the crowd's mean weighs as much as one worker
_PRIOR_LOGIT = 2.0  # ... whose logit of the right label is this much above the others
_LEAN_START = 0.5  # variance of the leanings to start from
_SHARED_VARIANCE = 5.0  # workers that a cell's variance borrows from the others of its class


class States:
    """Classes times tilts: `tilt` (tilts, labels), log `weight` of each tilt."""

    def __init__(self, labels: int, tilt_sd: float, nodes: int = NODES) -> None:
        self.labels, self.tilt_sd = labels, tilt_sd
        at, weight = np.polynomial.hermite_e.hermegauss(nodes if tilt_sd else 1)
        log_weight = np.log(weight / weight.sum())
        if labels == 2:  # towards the one is away from the other
            self.tilt = np.stack([np.zeros_like(at), tilt_sd * at], axis=1)
            self.weight = log_weight
            return
        still = np.abs(at) < 1e-9
        moved = at[~still]
        towards = np.tile(np.eye(labels), (len(moved), 1)) * np.repeat(moved, labels)[:, None]
        self.tilt = np.concatenate([np.zeros((int(still.sum()), labels)), tilt_sd * towards])
        spread = np.repeat(log_weight[~still], labels) - np.log(labels)
        self.weight = np.concatenate([log_weight[still], spread])

    def __len__(self) -> int:
        return self.labels * len(self.weight)

    def table(self, logits: FloatArray) -> AnswerTable:
        """Probabilities of answers of workers with these logits (worker, class, label)."""
        return AnswerTable.of(logits, self.tilt)

    def log_prior(self, share: FloatArray) -> FloatArray:
        """Log probability of each state before any answer."""
        return np.asarray((np.log(share)[:, None] + self.weight).ravel())


@dataclass(eq=False)
class CrowdModel:
    """A fitted crowd.

    `logits` are (worker, class, label), `lean` (worker, label); `mean` and `variance` of the crowd
    (class, label), `lean_variance` (label), `share` one per class; `posterior` (item, class);
    `counts` are expected answers (worker, label, class); `trace` the log likelihood after each
    step; `evidence` has the workers integrated out.
    """

    states: States
    logits: FloatArray
    lean: FloatArray
    mean: FloatArray
    variance: FloatArray
    lean_variance: FloatArray
    share: FloatArray
    posterior: FloatArray
    counts: FloatArray
    trace: tuple[float, ...]
    evidence: float
    converged: bool

    @cached_property
    def table(self) -> AnswerTable:
        """Probabilities of the workers' answers."""
        return self.states.table(self.logits)

    @cached_property
    def typical(self) -> AnswerTable:
        """Probabilities of the answers of a worker who was never seen."""
        return self.states.table(self.mean[None])

    def by_state(self, rows: FloatArray, share: FloatArray) -> FloatArray:
        """Posterior of the states of an item; `rows` are the log answers, one row per answer."""
        score = self.states.log_prior(share) + rows.sum(axis=0)
        made = np.exp(score - score.max())
        return np.asarray(made / made.sum())


def fit_crowds(
    answers: Answers, gold: IntArray, start: FloatArray
) -> list[tuple[float, CrowdModel]]:
    """Fit the crowd with every strength of tilt that the answers speak for, with its weight.

    The weight is the share of the evidence: how well each model predicts answers from those
    before. With many answers it is found on a part of the items.

    Parameters
    ----------
    answers
        The answers.
    gold
        Known class of each item, -1 where unknown.
    start
        Posterior of the items to start from.
    """
    part = _part(answers)
    tried = _tried(answers.items(part).compact(), gold[part], start[part])
    evidence = np.array([model.evidence for model in tried])
    weight = np.exp(evidence - evidence.max())
    weight = np.where(weight < LEAST_WEIGHT * weight.sum(), 0.0, weight)
    weight /= weight.sum()
    kept = [(float(w), model) for w, model in zip(weight, tried, strict=True) if w > 0]
    whole = len(part) == answers.n_tasks
    return [
        (w, fit_crowd(answers, gold, model.states, start, model if whole else None))
        for w, model in kept
    ]


def _tried(answers: Answers, gold: IntArray, start: FloatArray) -> list[CrowdModel]:
    """Fits with tilts of the first strengths, then of those around the best."""
    found: dict[float, CrowdModel] = {}
    wanted = list(TILT_SDS)
    while wanted:
        for tilt_sd in wanted:
            states = _that_fit(len(answers.labels), tilt_sd, answers.n_workers)
            if states is not None:
                found[tilt_sd] = fit_crowd(answers, gold, states, start, rough=True)
        best = max(found, key=lambda tilt_sd: found[tilt_sd].evidence)
        wanted = _between(best, sorted(found)) if best or len(found) > 1 else []
    return [found[tilt_sd] for tilt_sd in sorted(found)]


def _between(best: float, tried: list[float]) -> list[float]:
    """Values half way from the best to its neighbours, down to the finest distance.

    >>> _between(1.0, [0.0, 0.5, 1.0, 2.0]), _between(0.0, [0.0, 0.25])
    ([0.75, 1.5], [])
    >>> _between(2.0, [1.0, 2.0])
    [1.5, 3.0]
    """
    place = tried.index(best)
    middle = [(best + tried[i]) / 2 for i in (place - 1, place + 1) if 0 <= i < len(tried)]
    if place == len(tried) - 1 and best < LARGEST_TILT_SD:
        middle.append(LARGEST_TILT_SD)
    return [value for value in middle if abs(value - best) >= FINEST]


def fit_crowd(
    answers: Answers,
    gold: IntArray,
    states: States,
    start: FloatArray,
    like: CrowdModel | None = None,
    *,
    rough: bool = False,
) -> CrowdModel:
    """Fit one crowd by EM: states of the items, then a Newton step of everything else.

    `like` is a model of the same workers to start from.
    """
    fit = _Fit(answers, gold, states, start, like)
    return fit.run(ROUGH, ROUGH_STEPS) if rough else fit.run(TOLERANCE, STEPS)


class _Fit:
    """A fit under way."""

    def __init__(
        self,
        answers: Answers,
        gold: IntArray,
        states: States,
        start: FloatArray,
        like: CrowdModel | None,
    ) -> None:
        self.votes, self.gold, self.states = answers.votes, gold, states
        labels, workers = states.labels, answers.n_workers
        self.posterior = np.array(start)
        self.share = (start.sum(axis=0) + 1) / (len(start) + labels)
        if like is None:
            self.mean = _first_mean(answers, start, states)
            self.variance = np.ones((labels, labels))
            self.lean_variance = np.full(labels, _LEAN_START)
            self.logits = np.tile(self.mean, (workers, 1, 1))
            self.lean = np.zeros((workers, labels))
        else:
            self.mean, self.variance, self.share = like.mean, like.variance, like.share
            self.logits, self.lean, self.lean_variance = like.logits, like.lean, like.lean_variance
        self.given = np.zeros((workers, labels, labels))
        self.asked = np.zeros((workers, len(states)))

    def run(self, tolerance: float, steps: int) -> CrowdModel:
        trace: list[float] = []
        converged = False
        for _ in range(steps):
            trace.append(self.expect())
            around = self.mean + self.lean[:, None, :]
            step = newton(self.told(), self.logits, around, self.variance)
            if len(trace) > FEWEST_STEPS and abs(trace[-1] - trace[-2]) < tolerance * abs(
                trace[-1]
            ):
                converged = True
                break
            self.move(step)
        return CrowdModel(
            self.states, self.logits, self.lean, self.mean, self.variance, self.lean_variance,
            self.share, self.posterior, self.given, tuple(trace), trace[-1] + self.laplace(step),
            converged,
        )  # fmt: skip

    def expect(self) -> float:
        """E-step: posteriors and expected counts in place; the log likelihood."""
        self.table = self.states.table(self.logits)
        prior = self.states.log_prior(self.share)
        return self.votes.expect(
            self.table, prior, self.gold, self.posterior, self.given, self.asked
        )

    def told(self) -> Told:
        """What the answers tell the M-step."""
        return Told.of(self.given, self.asked, self.table)

    def move(self, step: Step) -> None:
        """M-step: logits, then the crowd they are drawn from, then the class shares."""
        labels, workers = self.states.labels, len(self.logits)
        unsure = 1 / self.lean_precision(step)
        self.logits = self.logits + np.clip(step.move, -_LONGEST_STEP, _LONGEST_STEP)
        self.lean = lean_of(self.logits - self.mean, self.variance, self.lean_variance)[0]
        own = self.logits - self.lean[:, None, :]
        self.mean = crowd_mean(own)
        self.variance = pooled_variance(((own - self.mean) ** 2 + step.spread).sum(axis=0), workers)
        self.lean_variance = leaning_variance((self.lean**2 + unsure).sum(axis=0), workers)
        self.share = (self.posterior.sum(axis=0) + 1) / (len(self.posterior) + labels)

    def lean_precision(self, step: Step) -> FloatArray:
        """Precision of each leaning with the deviations integrated out (own terms)."""
        told = (1 / self.variance - step.spread / self.variance**2).sum(axis=1)
        return np.asarray(np.maximum(1 / self.lean_variance + told, 1e-9))

    def laplace(self, step: Step) -> float:
        """Log volume of the workers' logits around their peak, under the crowd's prior."""
        workers = len(self.logits)
        away = ((self.logits - self.mean - self.lean[:, None, :]) ** 2 / self.variance).sum()
        away += (self.lean**2 / self.lean_variance).sum()
        scale = workers * (np.log(self.variance).sum() + np.log(self.lean_variance).sum())
        bend = step.log_determinant + np.log(self.lean_precision(step)).sum()
        return -0.5 * float(away + scale + bend)


@dataclass(frozen=True, eq=False)
class Told:
    """Answers of each worker to items of each class: given (w, k, l), expected (w, k, l)."""

    given: FloatArray
    expected: FloatArray

    @classmethod
    def of(cls, given: FloatArray, asked: FloatArray, table: AnswerTable) -> Told:
        """From counts of answers: given (worker, label, class), asked (worker, state)."""
        return cls(given.transpose(0, 2, 1), table.expected(asked))


@dataclass(frozen=True, eq=False)
class Step:
    """A Newton step of the logits, their posterior variance, and what a draw needs."""

    move: FloatArray
    spread: FloatArray
    precision: FloatArray
    side: FloatArray
    log_determinant: float


def newton(told: Told, logits: FloatArray, mean: FloatArray, variance: FloatArray) -> Step:
    """Step to the peak of the logits' posterior.

    The curvature of a row is taken as ``diag(d) - n p p'`` with ``p`` the mean probabilities of its
    answers: never less than the true one, so that no step overshoots, and inverted in closed form
    (Sherman and Morrison 1950).
    """
    size = told.expected.sum(axis=2, keepdims=True)
    share = told.expected / np.maximum(size, 1e-12)
    precision = told.expected + 1 / variance
    slope = told.given - told.expected - (logits - mean) / variance
    side = np.sqrt(size) * share / np.sqrt(precision)
    left = np.maximum(1 - (side**2).sum(axis=2, keepdims=True), 1e-6)
    scaled = slope / np.sqrt(precision)
    move = (scaled + side * (side * scaled).sum(axis=2, keepdims=True) / left) / np.sqrt(precision)
    spread = (1 + side**2 / left) / precision
    return Step(move, spread, precision, side, float(np.log(precision).sum() + np.log(left).sum()))


def lean_of(
    away: FloatArray, variance: FloatArray, lean_variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Leaning of each worker given how far the logits are from the crowd's; its variance."""
    precision = 1 / lean_variance + (1 / variance).sum(axis=0)
    lean = (away / variance).sum(axis=1) / precision
    return lean - lean.mean(axis=1, keepdims=True), 1 / precision


def leaning_variance(square: FloatArray, workers: int) -> FloatArray:
    """Variance of the leanings from their sum of squares; a small crowd keeps some."""
    return np.asarray((square + _LEAN_START) / (workers + 2))


def crowd_mean(logits: FloatArray) -> FloatArray:
    """Mean of the crowd; a prior worker names the right label more often than any other."""
    labels, workers = logits.shape[1], len(logits)
    prior = _PRIOR_LOGIT * (np.eye(labels) - 1 / labels)
    return np.asarray((logits.sum(axis=0) + _PRIOR_WORKERS * prior) / (workers + _PRIOR_WORKERS))


def pooled_variance(square: FloatArray, workers: int) -> FloatArray:
    """Variance of each cell from its sum of squares, held near that of its class."""
    labels = len(square)
    of_class = (square.sum(axis=1, keepdims=True) + labels) / (labels * (workers + 1))
    return np.asarray((square + _SHARED_VARIANCE * of_class) / (workers + _SHARED_VARIANCE))


def _first_mean(answers: Answers, start: FloatArray, states: States) -> FloatArray:
    """The crowd's logits as the starting posterior has them; tilts pull probabilities inwards."""
    labels = states.labels
    everybody = np.zeros_like(answers.worker)
    counts = Votes(answers.start, everybody, answers.label, 1, labels).counts(start)
    share = counts[0].T + 2 * np.eye(labels) + 0.5
    logit = np.log(share / share.sum(axis=1, keepdims=True))
    logit -= logit.mean(axis=1, keepdims=True)
    moved = states.tilt_sd**2 / (1 if labels == 2 else labels / 2)
    return np.asarray(logit * np.sqrt(1 + moved / 2.9))


def _that_fit(labels: int, tilt_sd: float, workers: int) -> States | None:
    """States of a fit that takes seconds: with fewer nodes where labels or workers are many."""
    for nodes in (NODES, FEW_NODES) if labels <= MANY_LABELS else (FEW_NODES,):
        states = States(labels, tilt_sd, nodes)
        if workers * labels * len(states) <= _MOST_CELLS or not tilt_sd:
            return states
    return None


def _part(answers: Answers) -> NDArray[np.intp]:
    """Items spread evenly over the whole, as many as a test may take."""
    labels = len(answers.labels)
    work = (answers.n_answers + answers.n_workers * labels) * len(States(labels, 1.0))
    return np.arange(0, answers.n_tasks, max(1, -(-work // _TEST_WORK)))
