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

from crowdtree.core.arrays import FloatArray
from crowdtree.core.calibration import FEW
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.core.problem import Problem
from crowdtree.core.text import plural
from crowdtree.learning.opinions.exponents import blend, fit_exponents, profile_interval
from crowdtree.learning.opinions.maps import Kind, Map, Views, choose_map, fit_map, splits
from crowdtree.learning.opinions.rows import Stated, opinions_of, read_sources
from crowdtree.policies.replay import class_codes

__all__ = ["Exponent", "Opinions", "opinions_of"]

IntArray = NDArray[np.int64]


class Exponent(NamedTuple):
    """How much the opinion of a source counts, with its 95 % interval (profile likelihood).

    The `value` 1 takes the probabilities as stated, 0 ignores them. `map` is ``"as stated"``;
    ``"ignored"`` where the known items do not show that the source is of use (`low` and `high` are
    then those of its exponent as stated); ``"scaled"`` where each class has a bias as well;
    ``"confusion"`` where only the likeliest class counts, with the errors it was seen to make.
    """

    source: str
    value: float
    low: float
    high: float
    map: Kind

    def __str__(self) -> str:
        return f"{self.source}: {self.value:.2f} ({self.low:.2f} to {self.high:.2f}), {self.map}"


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
        where the policy is calibrated on the same items. Only the kinds of maps were chosen with
        all of them.
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
    _maps: tuple[Map, ...]
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
        views = _views(sources, problem)
        log_prior = np.log(problem.prior)
        kinds = [choose_map(log_prior, view, known) for view in views]
        maps, powers, ratios = _fit(log_prior, views, known, kinds)
        exponents = []
        for place, (name, made) in enumerate(zip(sources, maps, strict=True)):
            slope = float(made.numbers[0]) if made.kind == "scaled" else 1.0
            value = slope * float(powers[place])
            if made.kind == "ignored":  # what its exponent might be
                alone = [views[place].ratio]
                power = fit_exponents(log_prior, alone, known)[0]
                low, high = profile_interval(log_prior, alone, known, power, 0)
            else:
                low, high = profile_interval(log_prior, ratios, known, powers, place)
            exponents.append(Exponent(name, value, slope * low, slope * high, made.kind))
        priors = _left_out_priors(log_prior, views, known, kinds)
        loss = -np.log(priors[np.arange(len(known)), known])
        notes = _note(sources)
        return cls(
            problem,
            tuple(exponents),
            priors,
            float(loss.mean()),
            float(-log_prior[known].mean()),
            notes,
            maps,
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
        views = _views({name: sources[name] for name in names}, self.problem)
        ratios = [made(view) for made, view in zip(self._maps, views, strict=True)]
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


def _views(sources: Mapping[str, Stated], problem: Problem) -> list[Views]:
    return [Views.of(stated.rows, problem.prior) for stated in sources.values()]


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
    log_prior: FloatArray, views: Sequence[Views], truth: IntArray, kinds: Sequence[Kind]
) -> tuple[tuple[Map, ...], FloatArray, list[FloatArray]]:
    """Maps of these kinds, exponents of all sources together, and the ratios they were fitted to.

    A map with parameters fits the items that it has seen too well, so the exponents are fitted to
    ratios of left-out items.
    """
    maps = tuple(fit_map(k, log_prior, v, truth) for k, v in zip(kinds, views, strict=True))
    ratios = []
    for made, view in zip(maps, views, strict=True):
        ratio = made(view)
        for held, rest in splits(len(truth)) if made.kind in ("scaled", "confusion") else ():
            without = fit_map(made.kind, log_prior, view.take(rest), truth[rest])
            ratio[held] = without(view.take(held))
        ratios.append(ratio)
    return maps, fit_exponents(log_prior, ratios, truth)[0], ratios


def _left_out_priors(
    log_prior: FloatArray, views: Sequence[Views], truth: IntArray, kinds: Sequence[Kind]
) -> FloatArray:
    """Prior of each known item, fitted without its fold."""
    prior = np.exp(log_prior)
    found = np.tile(prior, (len(truth), 1))
    for held, rest in splits(len(truth)):
        parts = [view.take(rest) for view in views]
        maps, powers, _ = _fit(log_prior, parts, truth[rest], kinds)
        ratios = [made(view.take(held)) for made, view in zip(maps, views, strict=True)]
        found[held] = _priors(log_prior, ratios, powers, prior)
    return found


def _priors(
    log_prior: FloatArray, ratios: Sequence[FloatArray], powers: FloatArray, prior: FloatArray
) -> FloatArray:
    """Priors of items; exactly that of the problem where no source has an opinion."""
    made = np.exp(blend(log_prior, ratios, powers))
    silent = ~np.any([ratio.any(axis=1) for ratio in ratios], axis=0)
    return np.where(silent[:, None], prior, made)
