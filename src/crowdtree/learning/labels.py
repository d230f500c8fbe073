"""One question: the class of every item, and how often each worker is wrong about it.

Everything that is reported follows from one fit: expected answers (worker, label, class) and the
posterior of the items. Labels, class shares, errors and skills cannot contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError
from crowdtree.learning.answers import Answers
from crowdtree.learning.crowd_draws import Draws, draw_crowd
from crowdtree.learning.crowd_model import CrowdModel, States, fit_crowd, fit_crowds
from crowdtree.learning.dawid_skene import fit_dawid_skene
from crowdtree.learning.dependence import Worth
from crowdtree.learning.skills import SkillFit

__all__ = [
    "LABEL_METHODS",
    "LabelFit",
    "fit_labels",
    "label_skills",
    "skills_of_counts",
    "worker_rates",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

_LEAST_ERROR = 1e-4
_LEAST_LEFT = 0.05  # share of the information that doubt about classes leaves at the least


@dataclass(frozen=True, eq=False)
class LabelFit:
    """What was found about one question.

    `posterior` (item, class) takes answers as independent given the state of the item, `blind` is
    the same without any gold; `counts` are expected answers (worker, label, class); `worth` is
    what a further answer is worth (None: nothing is discounted); `trace` the objective after each
    step; `models` are the crowds that were averaged, with their weights, and `place` is the row of
    each worker in them.
    """

    posterior: FloatArray
    blind: FloatArray
    counts: FloatArray
    trace: tuple[float, ...]
    worth: Worth | None = None
    models: tuple[tuple[float, CrowdModel], ...] = ()
    draws: Draws | None = None
    converged: bool = True
    place: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))

    @property
    def model(self) -> CrowdModel | None:
        """The crowd of the largest weight."""
        return max(self.models, key=lambda pair: pair[0])[1] if self.models else None


def fit_labels(
    answers: Answers,
    gold: IntArray,
    method: str = "hierarchical",
    weight: FloatArray | None = None,
) -> LabelFit:
    """Find the labels of items that were asked one question.

    Parameters
    ----------
    answers
        The answers.
    gold
        Known class of each item, -1 where unknown.
    method
        ``"hierarchical"`` (:mod:`crowdtree.learning.crowd_model`), ``"dawid-skene"`` (maximum
        likelihood, as the authors have it), ``"majority"``.
    weight
        Weight of each known item in the discount, where they were drawn with unequal chances.
    """
    fitter = LABEL_METHODS.get(method)
    if fitter is None:
        raise CrowdtreeError(
            f"method: {method!r} is unknown; choose from {', '.join(LABEL_METHODS)}"
        )
    fit = fitter(answers, gold)
    if weight is None or fit.worth is None:
        return fit
    return replace(fit, worth=_worth(answers, gold, fit.blind, weight))


def majority(answers: Answers, gold: IntArray) -> LabelFit:
    """Shares of the votes, taken for probabilities."""
    share = _shares(answers, gold)
    return LabelFit(share, _shares(answers, _unknown(gold)), answers.votes.counts(share), ())


def dawid_skene(answers: Answers, gold: IntArray) -> LabelFit:
    """Maximum likelihood by EM, from the majority."""
    workers, labels = answers.n_workers, len(answers.labels)
    rows = answers.start, answers.worker, answers.label
    fit = fit_dawid_skene(*rows, gold, workers, labels)
    known = (gold >= 0).any()
    blind = fit_dawid_skene(*rows, _unknown(gold), workers, labels) if known else fit
    return LabelFit(fit.posterior, blind.posterior, fit.counts, fit.trace, converged=fit.converged)


def hierarchical(answers: Answers, gold: IntArray) -> LabelFit:
    """Workers and items with effects of their own; sampled where that is not too much work."""
    place, crowd = _strangers_pooled(answers)
    none = _unknown(gold)
    blind = fit_crowds(crowd, none, _shares(answers, none))
    believed = np.asarray(sum(weight * model.posterior for weight, model in blind))
    start = _shares(answers, gold)
    if (gold >= 0).all():  # nothing is left to find but how often workers err
        models = [(1.0, fit_crowd(crowd, gold, States(len(answers.labels), 0.0), start))]
    elif (gold >= 0).any():
        models = [(w, fit_crowd(crowd, gold, model.states, start, model)) for w, model in blind]
    else:
        models = blind
    best = max(models, key=lambda pair: pair[0])[1]
    posterior = np.asarray(sum(weight * model.posterior for weight, model in models))
    draws = None if (gold >= 0).all() else draw_crowd(crowd, gold, best)
    converged = all(model.converged for _, model in models) and (draws is None or draws.converged)
    return LabelFit(
        posterior, believed, answers.votes.counts(posterior), best.trace,
        _worth(answers, gold, believed), tuple(models), draws, converged, place,
    )  # fmt: skip


def _strangers_pooled(answers: Answers) -> tuple[IntArray, Answers]:
    """Take those who answered once for one worker: nothing tells them apart.

    The likelihood is the same, and a crowd of passers-by has as many unknowns as one person.
    """
    once = np.bincount(answers.worker, minlength=answers.n_workers) == 1
    if once.sum() < 2:
        return np.arange(answers.n_workers, dtype=np.int32), answers
    place = np.cumsum(~once) - 1
    place[once] = int((~once).sum())
    names = np.append(answers.workers[~once].astype(object), "")
    return place.astype(np.int32), answers.by_worker(place.astype(np.int32), names)


def _worth(
    answers: Answers, gold: IntArray, blind: FloatArray, weight: FloatArray | None = None
) -> Worth:
    known = np.flatnonzero(gold >= 0)
    count = np.diff(answers.start)
    much = None if weight is None else weight[known]
    return Worth.of_a_crowd().updated(blind[known], count[known], gold[known], much)


# ---------------------------------------------------------------- what follows from a fit


def label_skills(answers: Answers, fit: LabelFit) -> SkillFit:
    """Errors by class, skills of workers and class shares, each with its doubt.

    The error of a class is the share of wrong answers to its items, whoever gave them; a worker
    of skill 0 errs as often as all answers together.
    """
    counts, labels = fit.counts, len(answers.labels)
    asked, right = counts.sum(axis=(0, 1)), np.einsum("wkk->k", counts)
    error = np.clip((asked - right + 0.5) / (asked + 1), _LEAST_ERROR, 1 - _LEAST_ERROR)[None]
    doubt = np.zeros(labels) if fit.draws is None else fit.draws.error.var(axis=0)
    variance = error * (1 - error) / (asked + 2) + doubt
    size = np.maximum(error * (1 - error) / variance - 1, 1e-2)
    mean, deviation = worker_rates(answers, fit.posterior)
    if fit.draws is not None:
        deviation = np.maximum(deviation, fit.draws.worker_error.std(axis=0)[fit.place])
    typical = float(np.clip((asked - right).sum() / max(asked.sum(), 1.0), 1e-4, 1 - 1e-4))
    share = (fit.posterior.sum(axis=0) + 1) / (len(fit.posterior) + labels)
    if fit.draws is None:
        unsure = (fit.posterior * (1 - fit.posterior)).sum(axis=0) / len(fit.posterior) ** 2
        doubt = unsure + share * (1 - share) / (len(fit.posterior) + labels)
    else:
        doubt = fit.draws.share.var(axis=0)
    skill = _logit(typical) - _logit(mean)
    cell = -_logit(error)
    return SkillFit(
        cell=cell,
        skill=skill,
        wrong=error * size,
        right=(1 - error) * size,
        skill_sd=deviation / (mean * (1 - mean)),
        spread=float(max(skill.std(), 0.05)),
        posterior=fit.posterior,
        sign=np.ones((1, labels), np.int8),
        prior=share / share.sum(),
        prior_size=np.maximum(share * (1 - share) / np.maximum(doubt, 1e-12) - 1, 1.0),
        answers=asked[None],
    )


def skills_of_counts(fit: SkillFit, counts: FloatArray) -> SkillFit:
    """The same with errors and skills of counts that have grown since."""
    asked, right = counts.sum(axis=(0, 1)), np.einsum("wkk->k", counts)
    error = np.clip((asked - right + 0.5) / (asked + 1), _LEAST_ERROR, 1 - _LEAST_ERROR)[None]
    size = np.maximum((fit.wrong + fit.right) * (asked + 2) / (fit.answers + 2), 1e-2)
    count, hit = counts.sum(axis=(1, 2)), np.einsum("wkk->w", counts)
    a, b = _beta_of_crowd(count - hit, count, np.zeros(len(count)))
    mean = np.clip((count - hit + a) / (count + a + b), _LEAST_ERROR, 1 - _LEAST_ERROR)
    typical = float(np.clip((asked - right).sum() / max(asked.sum(), 1.0), 1e-4, 1 - 1e-4))
    chance = 1 / np.sqrt((count + a + b + 1) * mean * (1 - mean))
    cell = -_logit(error)
    return replace(
        fit, cell=cell, wrong=error * size, right=(1 - error) * size,
        skill=_logit(typical) - _logit(mean), skill_sd=chance, answers=asked[None],
    )  # fmt: skip


def worker_rates(answers: Answers, posterior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Error of every worker and its standard deviation.

    Errors in the crowd have a Beta distribution, fitted by its moments, so that a worker of few
    answers is taken for a typical one. What the answers tell is what they would tell were the
    classes known, less what that doubt takes (Louis 1982).
    """
    right = posterior[answers.task, answers.label]
    count = np.bincount(answers.worker, minlength=answers.n_workers).astype(np.float64)
    wrong = count - np.bincount(answers.worker, weights=right, minlength=answers.n_workers)
    unsure = np.bincount(answers.worker, weights=right * (1 - right), minlength=len(count))
    a, b = _beta_of_crowd(wrong, count, unsure / np.maximum(count, 1) ** 2)
    mean = np.clip((wrong + a) / (count + a + b), _LEAST_ERROR, 1 - _LEAST_ERROR)
    told = np.maximum(count - unsure / (mean * (1 - mean)), _LEAST_LEFT * count)
    return mean, np.sqrt(mean * (1 - mean) / (told + a + b + 1))


def _beta_of_crowd(wrong: FloatArray, count: FloatArray, doubt: FloatArray) -> tuple[float, float]:
    """Beta distribution of the errors of workers, by its first two moments.

    >>> a, b = _beta_of_crowd(np.array([2.0, 8.0]), np.array([10.0, 10.0]), np.zeros(2))
    >>> round(a / (a + b), 2), 1 < a + b < 10
    (0.5, True)
    """
    mean = (wrong.sum() + 0.5) / (count.sum() + 1)
    met = count > 0
    chance = mean * (1 - mean) / np.maximum(count, 1)
    weight = np.where(met, 1 / (chance + 0.02), 0.0)
    # expected counts vary less than drawn ones, by the doubt about the classes
    square = (wrong / np.maximum(count, 1) - mean) ** 2 + doubt
    between = float((weight * (square - chance)).sum() / max(weight.sum(), 1e-12))
    # two workers' worth of a spread as seen in most crowds keeps a tiny crowd from no spread at all
    workers = float(met.sum())
    between = (max(between, 0.0) * workers + 2 * 0.01) / (workers + 2)
    size = float(np.clip(mean * (1 - mean) / max(between, 1e-6) - 1, 1.0, 500.0))
    return float(mean * size), float((1 - mean) * size)


def _logit(share: FloatArray | float) -> FloatArray:
    return np.asarray(np.log(share) - np.log1p(-np.asarray(share)))


def _unknown(gold: IntArray) -> IntArray:
    return np.full(len(gold), -1, np.int32)


def _shares(answers: Answers, gold: IntArray) -> FloatArray:
    share = answers.votes.shares()
    known = np.flatnonzero(gold >= 0)
    share[known] = 0.0
    share[known, gold[known]] = 1.0
    return share


LABEL_METHODS: Mapping[str, Callable[[Answers, IntArray], LabelFit]] = MappingProxyType(
    {"hierarchical": hierarchical, "dawid-skene": dawid_skene, "majority": majority}
)
