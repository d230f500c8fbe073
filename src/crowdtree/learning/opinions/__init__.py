"""Opinions about single items: a classifier's or model's class probabilities as their priors.

An item about which a source states ``s(c)`` starts from ``prior(c) (s(c) / prior(c))^w`` in place
of the problem's prior. The exponent ``w`` is fitted to items of known class: about 1 for calibrated
probabilities, less for a source that is too sure, and 0 for a useless one (docs/howto/opinions.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.calibration import FEW
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.core.problem import Problem
from crowdtree.core.text import plural
from crowdtree.learning.opinions.exponents import (
    blend,
    fit_exponents,
    is_useful,
    log_ratios,
    profile_interval,
    splits,
)
from crowdtree.learning.opinions.rows import Stated, opinions_of, read_sources
from crowdtree.policies.replay import class_codes

__all__ = ["Exponent", "Opinions", "opinions_of"]

IntArray = NDArray[np.int64]


class Exponent(NamedTuple):
    """How much the opinion of a source counts, with its 95 % interval (profile likelihood).

    The `value` 1 takes the probabilities as stated, 0 ignores them. A source is `ignored` where the
    known items do not show that it is of use; `low` and `high` are then those of the exponent that
    it might have.
    """

    source: str
    value: float
    low: float
    high: float
    ignored: bool = False

    def __str__(self) -> str:
        ignored = ", ignored" if self.ignored else ""
        return f"{self.source}: {self.value:.2f} ({self.low:.2f} to {self.high:.2f}){ignored}"


@dataclass(frozen=True, eq=False)
class Opinions:
    """What class probabilities of classifiers or models are worth, learned from known items.

    Made by :meth:`fit`.

    Attributes
    ----------
    problem
        The problem, whose prior items without an opinion start from.
    exponents
        One per source.
    known_priors
        Priors of the known items, each from a fit without it (and a tenth of the others): use these
        where the policy is calibrated on the same items. Only which sources are ignored was chosen
        with all of them.
    log_loss, prior_log_loss
        Mean log loss of `known_priors` on the known items, and that of the problem's prior.
    notes
        How rows were read that were not plain.
    """

    problem: Problem
    exponents: tuple[Exponent, ...]
    known_priors: FloatArray
    log_loss: float
    prior_log_loss: float
    notes: tuple[str, ...]
    _powers: FloatArray

    @classmethod
    def fit(
        cls,
        probabilities: ArrayLike | Mapping[str, Any],
        truth: Sequence[str | int] | NDArray[Any],
        problem: Problem,
    ) -> Opinions:
        """Learn the exponents from items of known class.

        Parameters
        ----------
        probabilities
            Of each known item (row) and class (column, as in ``problem.classes``); several sources
            as a mapping from their names. A row of NaN is an item without an opinion; a NaN beside
            numbers is a class that the source does not know, which keeps its prior probability. The
            source must not have been trained on these items.
        truth
            Class of each item, by name or number.
        problem
            The problem; its prior is what opinions are compared with.

        Examples
        --------
        >>> import crowdtree as ct
        >>> problem = ct.Problem(["cat", "dog"], None, ["barks"], [[0, 1]], 0.1)
        >>> rng = np.random.default_rng(1)
        >>> truth = rng.integers(0, 2, 200)
        >>> said = np.where(rng.random(200) < 0.8, truth, 1 - truth)  # right four times in five
        >>> sure = np.where(np.arange(2) == said[:, None], 0.99, 0.01)  # states more than that
        >>> opinions = ct.Opinions.fit(sure, truth, problem)
        >>> 0.2 < opinions.exponents[0].value < 0.4
        True
        >>> opinions.priors([[0.01, 0.99]]).round(1).tolist()
        [[0.2, 0.8]]
        """
        check_call(Opinions.fit, {"truth": truth, "problem": problem})
        sources = read_sources(probabilities, problem.classes)
        known = class_codes(problem, truth)
        items = {len(stated.rows) for stated in sources.values()}
        if items != {len(known)}:
            raise CrowdtreeError(
                f"truth: expected one class per item ({items.pop()}), got {len(known)}"
            )
        if not len(known):
            raise CrowdtreeError("truth: expected items of known class, got none")
        _warn_few(len(known))
        log_prior, ratios = np.log(problem.prior), _ratios(sources, problem)
        useful = np.array([is_useful(log_prior, ratio, known) for ratio in ratios])
        powers = _fit(log_prior, ratios, known, useful)
        exponents = []
        for place, name in enumerate(sources):
            used, at = [r for r, u in zip(ratios, useful, strict=True) if u], useful[:place].sum()
            chosen = powers[useful]
            if not useful[place]:  # what its exponent might be
                used, at = [ratios[place]], 0
                chosen = fit_exponents(log_prior, used, known)[0]
            ends = profile_interval(log_prior, used, known, chosen, int(at))
            exponents.append(Exponent(name, float(powers[place]), *ends, not useful[place]))
        priors = _left_out_priors(log_prior, ratios, known, useful)
        loss = -np.log(priors[np.arange(len(known)), known])
        notes = _note(sources)
        return cls(
            problem,
            tuple(exponents),
            priors,
            float(loss.mean()),
            float(-log_prior[known].mean()),
            notes,
            powers,
        )

    def priors(self, probabilities: ArrayLike | Mapping[str, Any]) -> FloatArray:
        """Priors of new items, a row each, ready for ``policy.start(prior=row)``.

        Parameters
        ----------
        probabilities
            As in :meth:`fit`, of the same sources.
        """
        sources = read_sources(probabilities, self.problem.classes)
        names = [row.source for row in self.exponents]
        if sorted(sources) != sorted(names):
            raise CrowdtreeError(
                f"probabilities: expected the sources {', '.join(names)}, got {', '.join(sources)}"
            )
        _note(sources)
        ratios = _ratios({name: sources[name] for name in names}, self.problem)
        return _priors(np.log(self.problem.prior), ratios, self._powers, self.problem.prior)

    def to_dict(self) -> dict[str, Any]:
        """Summarise in plain JSON."""
        return {
            "exponents": [row._asdict() for row in self.exponents],
            "items": len(self.known_priors),
            "log_loss": self.log_loss,
            "prior_log_loss": self.prior_log_loss,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        rows = "; ".join(map(str, self.exponents))
        return f"Opinions({plural(len(self.known_priors), 'known item')}; {rows})"


def _ratios(sources: Mapping[str, Stated], problem: Problem) -> list[FloatArray]:
    return [log_ratios(stated.rows, problem.prior) for stated in sources.values()]


def _note(sources: Mapping[str, Stated]) -> tuple[str, ...]:
    """Warn of rows that were scaled, and return the notes."""
    notes = tuple(note for stated in sources.values() for note in stated.notes)
    for note in notes:
        warnings.warn(note, CrowdtreeWarning, stacklevel=3)
    return notes


def _warn_few(items: int) -> None:
    if items < FEW:
        warnings.warn(
            f"opinions: {plural(items, 'item')} of known class; below {FEW} the exponents rest "
            "mostly on their prior, which distrusts opinions",
            CrowdtreeWarning,
            stacklevel=3,
        )


def _fit(
    log_prior: FloatArray, ratios: Sequence[FloatArray], truth: IntArray, useful: BoolArray
) -> FloatArray:
    """Exponents of all sources together, 0 of those that are ignored."""
    powers = np.zeros(len(ratios))
    used = [ratio for ratio, is_used in zip(ratios, useful, strict=True) if is_used]
    if used:
        powers[useful] = fit_exponents(log_prior, used, truth)[0]
    return powers


def _left_out_priors(
    log_prior: FloatArray, ratios: Sequence[FloatArray], truth: IntArray, useful: BoolArray
) -> FloatArray:
    """Prior of each known item, fitted without its fold."""
    prior = np.exp(log_prior)
    priors = np.tile(prior, (len(truth), 1))
    for held, rest in splits(len(truth)):
        powers = _fit(log_prior, [ratio[rest] for ratio in ratios], truth[rest], useful)
        priors[held] = _priors(log_prior, [ratio[held] for ratio in ratios], powers, prior)
    return priors


def _priors(
    log_prior: FloatArray, ratios: Sequence[FloatArray], powers: FloatArray, prior: FloatArray
) -> FloatArray:
    """Priors of items; exactly that of the problem where no source has an opinion."""
    made = np.exp(blend(log_prior, ratios, powers))
    parts = [(power * ratio).any(axis=1) for ratio, power in zip(ratios, powers, strict=True)]
    silent = ~np.any(parts, axis=0)
    return np.where(silent[:, None], prior, made)
