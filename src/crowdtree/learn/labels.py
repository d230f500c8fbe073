"""One question: what each item is, and how each worker confuses the labels.

A hierarchical Bayesian form of Dawid and Skene (1979). Worker w answers an item of class k with
label l with probability ``phi[w, l, k]``; the columns of all workers are drawn from one Dirichlet
distribution a class, whose mean (the crowd's confusion) and strength (how alike its members are)
are estimated too, so that a worker with few answers is taken for a typical one. Fitted by
variational Bayes: the evidence bound can only rise.

Where items of one class fall into hidden *types* that workers answer differently, workers err
together and independent errors are a poor account; two classes then settle on whatever splits the
answers best. The test is how much more the types explain: see :data:`TYPES_SHARE`.

Where answers are few, leanings of the workers can pass for classes of the items. The test is how
much is left of the classes when the crowd is held equally good on both: see :data:`LEAN_SHARE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError
from crowdtree.learn.answers import Answers
from crowdtree.learn.dirichlet import divergence, fit_dirichlet, log_density, mean_log

__all__ = ["LABEL_METHODS", "Explained", "LabelFit", "explain", "fit_labels"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

TYPES_SHARE = 0.2
"""Types replace classes when they explain this much more, as a share of what classes explain."""
LEAN_SHARE = 0.5
"""Two classes are not believed when most of what they explain is lost with an even-handed crowd."""
MOST_TYPES = 4
"""Types tried a class."""
_TEST_ANSWERS = 200_000  # types are looked for in a part of the items when there are more answers
_MOST_CELLS = 30_000_000  # (worker, label, type) counts in memory
_TOLERANCE = 1e-7
_FEW_WORKERS = 2.0  # the hyperprior weighs as much as two workers
_OWN, _OTHER = 4.0, 1.0  # ... who answer right as a Dirichlet(4, 1, ..., 1) has it


@dataclass(frozen=True, eq=False)
class LabelFit:
    """What was found about one question.

    `counts` are expected answers (worker, label, class); `alpha` is the crowd's Dirichlet
    (label, class); `mass` the expected items a class; `trace` the objective after each step.
    """

    posterior: FloatArray
    counts: FloatArray
    alpha: FloatArray
    mass: FloatArray
    trace: tuple[float, ...]
    objective: str
    types: int = 1


def fit_labels(answers: Answers, gold: IntArray, method: str = "hierarchical") -> LabelFit:
    """Find the labels of items that were asked one question.

    Parameters
    ----------
    answers
        The answers.
    gold
        Known class of each item, -1 where unknown.
    method
        ``"hierarchical"`` (this module's model), ``"dawid-skene"`` (maximum likelihood, as the
        authors have it), ``"majority"``.
    """
    fitter = LABEL_METHODS.get(method)
    if fitter is None:
        raise CrowdtreeError(
            f"method: {method!r} is unknown; choose from {', '.join(LABEL_METHODS)}"
        )
    return fitter(answers, gold)


def majority(answers: Answers, gold: IntArray) -> LabelFit:
    """Shares of the votes, taken for probabilities."""
    share = _shares(answers, gold)
    counts = _counts(answers, share)
    alpha = counts.sum(axis=0) + 0.5
    return LabelFit(share, counts, alpha, share.sum(axis=0), (), "none")


def dawid_skene(answers: Answers, gold: IntArray) -> LabelFit:
    """Maximum likelihood by EM, from the majority; stops when an answer gains less than 1e-5."""
    n_labels = len(answers.labels)
    posterior = _shares(answers, gold)
    counts, mass = _counts(answers, posterior), posterior.sum(axis=0)
    trace: list[float] = []
    for _ in range(100):
        with np.errstate(divide="ignore"):
            # a worker who never met a class has no opinion on it; -60 keeps 0 x log 0 out
            total = counts.sum(axis=1, keepdims=True)
            share = np.where(total > 0, counts / np.maximum(total, 1e-300), 1 / n_labels)
            log_answer = np.maximum(np.log(share), -60.0)
            log_prior = np.maximum(np.log(mass / mass.sum()), -60.0)
        trace.append(_e_step(answers, gold, log_answer, log_prior, posterior, counts, mass))
        if len(trace) > 1 and trace[-1] - trace[-2] < 1e-5 * answers.n_answers:
            break
    return LabelFit(
        posterior, counts, counts.sum(axis=0) + 0.5, mass, tuple(trace), "log likelihood"
    )


def hierarchical(answers: Answers, gold: IntArray) -> LabelFit:
    """Variational Bayes with a learned crowd; with types where the answers ask for them."""
    if (gold >= 0).all():
        return _variational(answers, gold, _shares(answers, gold))
    test = _part(answers)  # how to read the answers is asked of the answers alone
    found = explain(test, hopeless=TYPES_SHARE)
    if found.types_share >= TYPES_SHARE:
        chosen, types = found.typed, found.typed.types
    else:
        chosen, types = (found.tied if found.tied_loss > LEAN_SHARE else found.plain), 1
    if test is answers and not (gold >= 0).any():
        return chosen
    shares = _shares(answers, gold)
    if types == 1:
        return _variational(answers, gold, shares, tied=chosen is found.tied)
    none = np.full(answers.n_tasks, -1, np.int32)
    start = _stratified(_shares(answers, none), types)
    return _clamped(answers, gold, _merged(answers, _variational(answers, none, start), types))


class Explained(NamedTuple):
    """What several accounts of the same answers explain.

    What classes explain is the evidence bound of `plain` less that of "no classes at all".
    `types_share` is what two types a class explain on top of it, as a share of it; `tied_loss` the
    share that is lost when the crowd is held equally good on all classes. Shares, because every
    real crowd departs from its model and any departure is "significant" when there are enough
    answers: how much it explains tells whether to change the reading of the classes.
    """

    plain: LabelFit
    typed: LabelFit
    tied: LabelFit
    types_share: float
    tied_loss: float


def explain(answers: Answers, hopeless: float = -np.inf) -> Explained:
    """Fit the accounts; more than two types only if two reach a share of `hopeless`."""
    none = np.full(answers.n_tasks, -1, np.int32)
    shares = _shares(answers, none)
    plain = _variational(answers, none, shares.copy())
    nothing = _variational(answers, none, np.ones((answers.n_tasks, 1)))
    told = max(plain.trace[-1] - nothing.trace[-1], 1e-9)
    typed, share = plain, -np.inf
    for types in range(2, MOST_TYPES + 1):
        if answers.n_workers * types * len(answers.labels) ** 2 > _MOST_CELLS:
            break
        fit = _variational(answers, none, _stratified(shares, types))
        if types == 2:
            share = (fit.trace[-1] - plain.trace[-1]) / told
        if types == 2 or fit.trace[-1] > typed.trace[-1]:
            typed = _merged(answers, fit, types)
        if share < hopeless:
            break
    tied, loss = plain, 0.0
    if len(answers.labels) == 2:  # of more labels the crowd's favourite mistakes would be lost
        tied = _variational(answers, none, shares.copy(), tied=True)
        loss = (plain.trace[-1] - tied.trace[-1]) / told
    return Explained(plain, typed, tied, float(share), float(loss))


def _variational(
    answers: Answers, gold: IntArray, posterior: FloatArray, *, tied: bool = False
) -> LabelFit:
    """Raise the evidence bound from some posteriors (item, type); each step can only raise it.

    `tied` holds the crowd equally good on all classes (its members may differ all the same).
    """
    types = posterior.shape[1]
    n_labels = len(answers.labels)
    posterior = np.ascontiguousarray(posterior)
    counts, mass = _counts(answers, posterior), posterior.sum(axis=0)
    hyper = _hyper(n_labels, types)
    alpha = hyper.copy()
    hyper_log = mean_log(hyper, 0)
    trace: list[float] = []
    for step in range(500):
        column = alpha + counts
        log_answer = mean_log(column, 1)
        if step > 1:
            told = log_answer.sum(axis=0) + _FEW_WORKERS * hyper_log
            alpha = fit_dirichlet(
                _same(told) if tied else told, alpha, answers.n_workers + _FEW_WORKERS
            )
        log_prior = mean_log(mass + 1, 0)
        bound = -divergence(column, alpha, 1) - divergence(mass + 1, np.ones(types), 0)
        bound += _FEW_WORKERS * float(log_density(hyper_log, alpha).sum())
        bound += _e_step(answers, gold, log_answer, log_prior, posterior, counts, mass)
        trace.append(bound)
        if step > 5 and trace[-1] - trace[-2] < _TOLERANCE * abs(bound):
            break
    return LabelFit(posterior, counts, alpha, mass, tuple(trace), "evidence bound")


def _same(told: FloatArray) -> FloatArray:
    """Average over the classes what is told about right answers, and about wrong ones."""
    own = np.eye(len(told), dtype=bool)
    return np.asarray(np.where(own, told[own].mean(), told[~own].mean()))


def _merged(answers: Answers, fit: LabelFit, types: int) -> LabelFit:
    """Call each type what the crowd mostly says of it, and add up the types of a class."""
    n_labels = len(answers.labels)
    says = np.argmax(fit.alpha / fit.alpha.sum(axis=0), axis=0)
    to_class = (says[:, None] == np.arange(n_labels)).astype(np.float64)
    mass = fit.mass @ to_class
    weighted = fit.alpha * (fit.mass / np.maximum(mass[says], 1e-300))
    return LabelFit(
        fit.posterior @ to_class,
        fit.counts @ to_class,
        np.maximum(weighted @ to_class, 1e-3),
        mass,
        fit.trace,
        fit.objective,
        types,
    )


def _clamped(answers: Answers, gold: IntArray, fit: LabelFit) -> LabelFit:
    """Hold the items of known class to it, and count anew."""
    from dataclasses import replace

    known = np.flatnonzero(gold >= 0)
    posterior = fit.posterior.copy()
    posterior[known] = 0.0
    posterior[known, gold[known]] = 1.0
    counts = _counts(answers, posterior)
    return replace(fit, posterior=posterior, counts=counts, mass=posterior.sum(axis=0))


def _stratified(shares: FloatArray, types: int) -> FloatArray:
    """Cut each class into types of equal mass by how sure the vote was: easy items to hard ones."""
    items, labels = shares.shape
    cut = np.zeros((items, labels, types))
    for label in range(labels):
        order = np.argsort(-shares[:, label], kind="stable")
        mine = shares[order, label]
        middle = (np.cumsum(mine) - mine / 2) / max(float(mine.sum()), 1e-300)
        cut[order, label, np.minimum((middle * types).astype(int), types - 1)] = mine
    return cut.reshape(items, labels * types)


def _part(answers: Answers) -> Answers:
    """Items spread evenly over the whole, about as many as hold 200,000 answers."""
    from dataclasses import replace

    stride = -(-answers.n_answers // _TEST_ANSWERS)
    if stride == 1:
        return answers
    chosen = np.arange(0, answers.n_tasks, stride)
    length = np.diff(answers.start)[chosen]
    start = np.concatenate([[0], np.cumsum(length)])
    rows = np.repeat(answers.start[chosen] - start[:-1], length) + np.arange(start[-1])
    return replace(
        answers,
        tasks=answers.tasks[chosen],
        start=start,
        worker=answers.worker[rows],
        label=answers.label[rows],
    )


# ---------------------------------------------------------------- parts of a step


def _e_step(
    answers: Answers,
    gold: IntArray,
    log_answer: FloatArray,
    log_prior: FloatArray,
    posterior: FloatArray,
    counts: FloatArray,
    mass: FloatArray,
) -> float:
    from crowdtree.learn import kernels

    return float(
        kernels.label_pass(
            answers.start,
            answers.worker,
            answers.label,
            np.ascontiguousarray(log_answer),
            log_prior,
            gold,
            posterior,
            counts,
            mass,
        )
    )


def _shares(answers: Answers, gold: IntArray) -> FloatArray:
    from crowdtree.learn import kernels

    share = kernels.vote_shares(answers.start, answers.label, len(answers.labels))
    known = np.flatnonzero(gold >= 0)
    share[known] = 0.0
    share[known, gold[known]] = 1.0
    return np.asarray(share)


def _counts(answers: Answers, posterior: FloatArray) -> FloatArray:
    from crowdtree.learn import kernels

    counts = np.empty((answers.n_workers, len(answers.labels), posterior.shape[1]))
    kernels.count_pass(answers.start, answers.worker, answers.label, posterior, counts)
    return counts


def _hyper(labels: int, types: int) -> FloatArray:
    """Where the crowd's Dirichlet starts: a typical worker is better than chance."""
    if types == 1:
        return np.ones((labels, 1))
    owner = np.repeat(np.arange(labels), types // labels)
    return np.where(np.arange(labels)[:, None] == owner, _OWN, _OTHER)


LABEL_METHODS: Mapping[str, Callable[[Answers, IntArray], LabelFit]] = MappingProxyType(
    {"hierarchical": hierarchical, "dawid-skene": dawid_skene, "majority": majority}
)
