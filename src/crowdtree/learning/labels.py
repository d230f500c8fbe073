"""One question: the class of every item, and how often each worker is wrong about it.

No single model is best on all crowds, so the posteriors of several (:mod:`.label_models`) are
averaged with equal weights, and stated through the map of :mod:`.stating`. Labels, class shares,
errors and skills all follow from what is stated, so they cannot contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import CrowdtreeError
from crowdtree.learning.answers import Answers
from crowdtree.learning.copies import find_copies, merge_copies
from crowdtree.learning.dawid_skene import fit_dawid_skene
from crowdtree.learning.label_models import (
    MAX_CELLS,
    Channel,
    Coin,
    Confusion,
    Effects,
    FittedModel,
    LabelFit,
    Leaning,
    ModelFit,
)
from crowdtree.learning.passes import with_gold
from crowdtree.learning.skills import SkillFit
from crowdtree.learning.source_fit import SourceFit, fit_sources
from crowdtree.learning.source_rates import (
    Rates,
    SumOfRight,
    beta_of_crowd,
    rates_of_sources,
    rates_of_workers,
)
from crowdtree.learning.source_tables import Layout
from crowdtree.learning.stating import PRIOR, CrowdMap

IntArray = NDArray[np.int32]

DECOY_ANSWERS = 5
"""Answers per item, on average, that models with decoys need."""
PART_ANSWERS = 100_000
"""Of more answers, models are first fitted to the items that have about so many..."""
PART_GROWTH = 8
"""... then to so many times more, and so on."""
LARGE_TOLERANCE = 1e-4
"""Gain per answer at which a fit to all of many answers, which starts from such a part, ends."""
MAX_DEPENDENCE = 0.9
_LEAST_ERROR = 1e-4
_LEAST_LEFT = 0.05  # share of the information that doubt about classes leaves at the least


def fit_labels(
    answers: Answers,
    gold: IntArray,
    method: str = "ensemble",
    weight: FloatArray | None = None,
) -> LabelFit:
    """Find the labels of items that were asked one question.

    `gold` is the known class of each item, or -1; `weight` that of each known item in the map,
    where they were drawn with unequal chances.
    """
    fitter = LABEL_METHODS.get(method)
    if fitter is None:
        raise CrowdtreeError(
            f"method: {method!r} is unknown; choose from {', '.join(LABEL_METHODS)}"
        )
    if answers.sources is not None and method == "ensemble":
        by_source = fit_sources(answers, gold, Layout.of_labels(len(answers.labels)))
        fit: LabelFit = beside_crowd(by_source, answers, gold)
    else:
        fit = fitter(answers, gold)
    return fit if method != "ensemble" else with_map(fit, answers, gold, weight)


def with_map(
    fit: LabelFit, answers: Answers, gold: IntArray, weight: FloatArray | None
) -> LabelFit:
    """Say by what probabilities are stated: what is known of other crowds, and known items."""
    known, count = np.flatnonzero(gold >= 0), np.diff(answers.start)
    several = isinstance(fit, SourceFit)
    crowd_map = CrowdMap.of_crowd(fit.posterior.shape[1], count, several).updated(
        fit.blind[known], count[known], gold[known], None if weight is None else weight[known]
    )
    return replace(fit, crowd_map=crowd_map)


def beside_crowd(fit: SourceFit, answers: Answers, gold: IntArray) -> SourceFit:
    """Average what the sources say with models that take all workers for independent.

    These know that people differ in skill, but not that models err together. Each fit counts by its
    probability: beforehand that of the crowd is the share of the answers that people gave; items of
    known class change its odds by how likely each fit makes their classes.
    """
    assert answers.sources is not None
    crowd, known = ensemble(answers, gold), np.flatnonzero(gold >= 0)
    is_person = np.array(answers.sources.kinds) == "people"
    usual = float(is_person[answers.sources.codes(answers.workers)][answers.worker].mean())
    own, of_crowd = (
        np.log(np.maximum(part.blind[known, gold[known]], _LEAST_CHANCE)).sum()
        for part in (fit, crowd)
    )
    share = float(expit(logit(usual) + of_crowd - own))
    mixed = replace(fit, crowd=crowd, crowd_share=share)
    return replace(
        mixed,
        posterior=mixed.averaged(fit.posterior, crowd.posterior),
        blind=mixed.averaged(fit.blind, crowd.blind),
    )


_LEAST_CHANCE = 1e-12  # of the class of a known item
MAX_STEPS = 1000
"""Steps after which a fit by maximum likelihood counts as not converged."""


def majority(answers: Answers, gold: IntArray) -> LabelFit:
    """Shares of the votes, taken for probabilities."""
    return LabelFit(_shares(answers, gold), _shares(answers, _unknown(gold)))


def dawid_skene(answers: Answers, gold: IntArray) -> LabelFit:
    """Maximum likelihood by EM, from the majority."""
    votes = answers.votes
    fit = fit_dawid_skene(votes, gold, steps=MAX_STEPS)
    blind = fit_dawid_skene(votes, _unknown(gold), steps=MAX_STEPS) if (gold >= 0).any() else fit
    if not fit.converged:
        raise CrowdtreeError(
            f"learn: dawid-skene did not converge in {len(fit.trace)} steps, so that there are no "
            "numbers to use; leave out the method, or give more answers per item"
        )
    return LabelFit(fit.posterior, blind.posterior, fit.trace)


def ensemble(answers: Answers, gold: IntArray) -> LabelFit:
    """Average models that differ in what they believe, and the shares of the votes."""
    groups = find_copies(answers)
    row, crowd = _strangers_pooled(merge_copies(answers, groups))
    for group in groups:
        row[list(group)] = row[group[0]]
    none = _unknown(gold)
    believed, models = _averaged(crowd, none)
    posterior = believed
    if (gold >= 0).any():
        posterior, models = _averaged(crowd, gold)
    kept = tuple(model for model in models if model.converged)
    left_out = tuple(model.name for model in models if not model.converged)
    steps = max((len(model.trace) for model in kept), default=0)
    padded = [np.pad(model.trace, (0, steps - len(model.trace)), "edge") for model in kept]
    trace = tuple(np.sum(padded, axis=0).tolist()) if padded else ()
    return LabelFit(
        posterior, believed, trace, models=kept, left_out=left_out, row=row, copies=groups
    )


def _averaged(answers: Answers, gold: IntArray) -> tuple[FloatArray, list[FittedModel]]:
    """Equal-weight mean of the vote shares and the models that converged; all models."""
    shares = _shares(answers, gold)
    if (np.diff(answers.start) < 2).all() and (gold < 0).all():
        return shares, []  # nothing shows how often anybody errs
    models = [_fitted(answers, gold, shares, *member) for member in _members(answers)]
    kept = [model.posterior for model in models if model.converged]
    return np.asarray((shares + sum(kept)) / (1 + len(kept))), models


def _members(answers: Answers) -> Iterator[tuple[str, Callable[[], Channel], Effects]]:
    """Models that are averaged: what each believes about workers and about items.

    Decoys need two labels, because with more a model can take one class for a decoy of another,
    and several answers per item, because fewer do not tell a decoy from a class.
    """
    workers, labels = answers.n_workers, len(answers.labels)
    alike, decoys = Effects.none(labels), Effects.decoys(labels)
    members: list[tuple[str, Callable[[], Channel], Effects]] = [
        ("leaning", lambda: Leaning(workers, labels), alike)
    ]
    if labels == 2 and answers.n_answers >= DECOY_ANSWERS * answers.n_tasks:
        members += [
            ("leaning with decoys", lambda: Leaning(workers, labels), decoys),
            ("confusion with decoys", lambda: Confusion(workers, labels), decoys),
        ]
    else:
        members.append(("confusion", lambda: Confusion(workers, labels), alike))
    if labels > 2:
        members += [
            ("difficulty", lambda: Coin(workers, labels), Effects.difficulty(labels)),
            ("shape", lambda: Coin(workers, labels, shaped=True), alike),
        ]
    for member in members:
        if workers * labels**2 * len(member[2]) <= MAX_CELLS:
            yield member


def _fitted(
    answers: Answers,
    gold: IntArray,
    start: FloatArray,
    name: str,
    channel: Callable[[], Channel],
    effects: Effects,
) -> FittedModel:
    """Fit one model; where there are many items, to growing parts of them first."""
    model = ModelFit(name, channel(), effects, len(answers.labels))
    every = answers.n_answers // PART_ANSWERS
    if every < 2:
        return model.fit(answers.votes, gold, start)
    while every > 1:
        part = np.arange(0, answers.n_tasks, every)
        model.fit(answers.items(part).votes, gold[part], start[part])
        every //= PART_GROWTH
    return model.fit(answers.votes, gold, start, LARGE_TOLERANCE)


def _strangers_pooled(answers: Answers) -> tuple[IntArray, Answers]:
    """Take those who answered once for one worker: nothing tells them apart.

    The likelihood is the same, and a crowd of passers-by has as many unknowns as one person.
    """
    once = np.bincount(answers.worker, minlength=answers.n_workers) == 1
    if once.sum() < 2:
        return np.arange(answers.n_workers, dtype=np.int32), answers
    row = np.cumsum(~once) - 1
    row[once] = int((~once).sum())
    names = np.append(answers.workers[~once].astype(object), "")
    return row.astype(np.int32), answers.by_worker(row.astype(np.int32), names)


# ---------------------------------------------------------------- what follows from a fit


def dependence_of(answers: Answers, fit: LabelFit) -> float:
    """Correlation of the answers about an item that explains how often labels are right.

    n answers of correlation r are worth ``n / (1 + (n - 1) r)`` independent ones. Found is the r
    under which a model of independent answers is as sure of the labels as the mean map.
    """
    if not fit.models or fit.crowd_map is None:
        return 0.0
    count = np.maximum(np.diff(answers.start), 1)[:, None]
    row, label = np.arange(len(count)), fit.posterior.argmax(axis=1)
    log = np.log(np.maximum(fit.models[0].posterior, 1e-300))
    wanted = float(fit.crowd_map.typical_right(fit.posterior).mean())

    def right(dependence: float) -> float:
        score = log / (1 + (count - 1) * dependence)
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        return float((weight[row, label] / weight.sum(axis=1)).mean())

    low, high = 0.0, MAX_DEPENDENCE
    if right(low) <= wanted:
        return low
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if right(middle) > wanted else (low, middle)
    return low


def label_skills(answers: Answers, fit: LabelFit, gold: IntArray, stated: FloatArray) -> SkillFit:
    """Errors by question and class, skills of workers and class shares, each with its doubt.

    An error is the share of wrong answers to items of the class, whoever gave them; a worker of
    skill 0 errs as often as all answers together. `stated` are the stated probabilities.
    """
    layout = fit.layout if isinstance(fit, SourceFit) else Layout.of_labels(len(answers.labels))
    sums = _Sums(answers, fit, layout, gold, stated)
    items, classes = stated.shape
    asked, right = sums.asked, sums.of_cells.values.mean(axis=0).reshape(sums.asked.shape)
    error = (asked - right + 0.5) / (asked + 1)
    if len(asked) > 1:  # thin cells are like the others of their question
        wrong, given = (asked - right).sum(axis=1, keepdims=True), asked.sum(axis=1, keepdims=True)
        error = (asked - right + 2 * (wrong + 0.5) / (given + 1)) / (asked + 2)
    error = np.clip(np.where(layout.definite, error, 0.5), _LEAST_ERROR, 1 - _LEAST_ERROR)
    variance = error * (1 - error) / (asked + 2)
    variance += sums.of_cells.total.reshape(asked.shape) / np.maximum(asked, 1) ** 2
    size = np.maximum(error * (1 - error) / variance - 1, 1e-2)
    log_odds, deviation = _worker_rates(*sums.of(answers.worker, np.ones(answers.n_workers)))
    typical = float(np.clip((asked - right).sum() / max(asked.sum(), 1.0), 1e-4, 1 - 1e-4))
    share = (stated.sum(axis=0) + 1) / (items + classes)
    unsure = ((stated * (1 - stated)).sum(axis=0) + sums.of_items.total) / items**2
    unsure += share * (1 - share) / (items + classes)
    skill = _logit(typical) - log_odds
    return SkillFit(
        cell=-_logit(error),
        skill=skill,
        wrong=error * size,
        right=(1 - error) * size,
        skill_sd=deviation,
        spread=float(max(skill.std(), 0.05)),
        posterior=fit.posterior,
        prior=share / share.sum(),
        prior_size=np.maximum(share * (1 - share) / unsure - 1, 1.0),
        answers=asked,
        right_answer=layout.right,
        **(sums.rates() if answers.sources is not None else {}),
    )


class _Sums:
    """Right answers of groups of answers and of cells (question, class), and items of classes."""

    def __init__(
        self,
        answers: Answers,
        fit: LabelFit,
        layout: Layout,
        gold: IntArray,
        stated: FloatArray,
    ) -> None:
        self._answers, self._fit = answers, fit
        self._known, self._stated = gold >= 0, stated
        task, question = answers.task, answers.question_column()
        classes, cells = stated.shape[1], layout.definite.size
        if len(layout.definite) > 1:
            at, cls = np.nonzero(layout.right[answers.label, question])
            self._counted = (layout.definite[question] * stated[task]).sum(axis=1)
        else:  # every answer is right for one class
            at, cls = np.arange(answers.n_answers), answers.label.astype(np.intp)
            self._counted = np.ones(answers.n_answers)
        self._at, self._item, self._class = at, task[at], cls
        chance = np.bincount(at, stated[self._item, self._class], answers.n_answers)
        self._unsure = chance * (self._counted - chance)
        self.of_cells = self._sum(
            self._item, self._class, question[at] * np.int64(classes) + self._class, cells
        )
        row, cls = (part.ravel() for part in np.indices(stated.shape))
        self.of_items = self._sum(row, cls, cls, classes)
        each = [
            np.bincount(task[question == q], minlength=len(stated)) @ stated
            for q in range(len(layout.definite))
        ]
        self.asked = np.stack(each) * layout.definite

    def of(
        self, group: NDArray[Any], workers: NDArray[Any]
    ) -> tuple[FloatArray, FloatArray, SumOfRight]:
        """Answers of each group, the variance of the number of right ones, and these numbers.

        `workers` are those of each group: how they differ averages out.
        """
        size, own = len(workers), PRIOR.worker_sd / np.sqrt(workers)
        count, unsure = (
            np.bincount(group, part, size).astype(np.float64)
            for part in (self._counted, self._unsure)
        )
        right = self._sum(self._item, self._class, group[self._at], size, own)
        return count, unsure, right

    def rates(self) -> dict[str, Rates]:
        """Errors of workers and of their sources."""
        answers, sources = self._answers, self._answers.sources
        assert sources is not None
        source = sources.codes(answers.workers)
        several = np.bincount(source, minlength=len(sources.names))
        each = self.of(answers.worker, np.ones(answers.n_workers))
        return {
            "worker_rates": rates_of_workers(answers, *each),
            "source_rates": rates_of_sources(*self.of(source[answers.worker], several)),
        }

    def _sum(
        self,
        item: NDArray[Any],
        cls: NDArray[Any],
        group: NDArray[Any],
        size: int,
        own_sd: FloatArray | None = None,
    ) -> SumOfRight:
        crowd_map, posterior = self._fit.crowd_map, self._fit.posterior
        open_ = np.zeros(len(item), bool) if crowd_map is None else ~self._known[item]
        sure = np.bincount(group[~open_], self._stated[item, cls][~open_], size)
        values, variance = np.asarray(sure, np.float64)[None], np.zeros(size)
        if crowd_map is not None and open_.any():
            terms = posterior, item[open_], cls[open_], group[open_]
            sums, slopes = crowd_map.sums(*terms), crowd_map.slopes(*terms)
            values = values + np.pad(sums, ((0, 0), (0, size - sums.shape[1])))
            doubt = PRIOR.class_sd**2 * (slopes**2).sum(axis=1)
            if own_sd is not None:
                doubt += own_sd[: len(doubt)] ** 2 * slopes.sum(axis=1) ** 2
            variance[: len(doubt)] = doubt
        return SumOfRight(values, variance)


def _worker_rates(
    count: FloatArray, unsure: FloatArray, right: SumOfRight
) -> tuple[FloatArray, FloatArray]:
    """Log odds of the error of every worker, and their standard deviation.

    Errors in the crowd have a Beta distribution, fitted by its moments, so that a worker of few
    answers is taken for a typical one. What the answers tell is what they would tell were the
    classes known, less what that doubt takes (Louis 1982).
    """
    wrong = count - right.values
    a, b = beta_of_crowd(wrong.mean(axis=0), count, unsure / np.maximum(count, 1) ** 2)
    typical = (wrong.sum(axis=1, keepdims=True) + 0.5) / (count.sum() + 1)  # under each map
    rate = np.clip((wrong + (a + b) * typical) / (count + a + b), _LEAST_ERROR, 1 - _LEAST_ERROR)
    log_odds = _logit(rate)
    mean = 1 / (1 + np.exp(-log_odds.mean(axis=0)))
    left = np.maximum(count - unsure / (mean * (1 - mean)), _LEAST_LEFT * count)
    variance = log_odds.var(axis=0) + 1 / ((left + a + b + 1) * mean * (1 - mean))
    variance += right.variance / (np.maximum(count, 1) * mean * (1 - mean)) ** 2
    return _logit(rate.mean(axis=0)), np.sqrt(variance)


def _logit(share: FloatArray | float) -> FloatArray:
    return np.asarray(np.log(share) - np.log1p(-np.asarray(share)))


def _unknown(gold: IntArray) -> IntArray:
    return np.full(len(gold), -1, np.int32)


def _shares(answers: Answers, gold: IntArray) -> FloatArray:
    return with_gold(answers.votes.shares(), gold)


LABEL_METHODS: Mapping[str, Callable[[Answers, IntArray], LabelFit]] = MappingProxyType(
    {"ensemble": ensemble, "dawid-skene": dawid_skene, "majority": majority}
)
