"""Audits: draw labelled items for checking, take the results, bound the error of all labels."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from crowdtree.audit.ledger import Ledger
from crowdtree.audit.runs import draw_weights
from crowdtree.audit.strata import stratify
from crowdtree.errors import CrowdtreeError, one_line
from crowdtree.result_methods import Framed, Plotted, Saved
from crowdtree.rng import generator
from crowdtree.text import percent, plural

__all__ = ["Audit", "Check", "Draw", "Forecast", "Labels", "Standing", "plan_audit"]

FloatArray = NDArray[np.float64]
REPLAYS = 200
UNSURE = "cannot tell"
"""Truth of a known item about which nobody could tell; its label counts as wrong."""


class Labels(NamedTuple):
    """Labels with stated errors, one entry per item."""

    items: list[str]
    labels: list[str]
    errors: list[float]


@dataclass(frozen=True)
class Standing:
    """What an audit says about a set of labels; shares of its items.

    `upper` is exceeded with a probability of at most one minus the confidence, at any time; so is
    the interval from `low` to `high` missed. `estimate` lies in the interval.
    """

    items: int
    checks: int
    wrong: int
    upper: float
    low: float
    high: float
    estimate: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return asdict(self)


@dataclass
class Check:
    """An item that was drawn, and what was found; `after` results were in when it was drawn."""

    place: int
    after: int
    right: bool | None = None
    truth: str | None = None
    by: list[str] = field(default_factory=list)


class Draw(Protocol):
    """A draw as it was written down; see :class:`Check`."""

    @property
    def item(self) -> str:
        """Name of the item."""

    @property
    def after(self) -> int:
        """Results that counted when it was drawn."""

    @property
    def right(self) -> bool | None:
        """Whether the label is right; none before the result."""

    @property
    def truth(self) -> str | None:
        """The true label, where it was given."""

    @property
    def by(self) -> Sequence[str]:
        """Who checked it."""


@dataclass(frozen=True)
class Forecast:
    """How many more checks a bound takes: quantiles over simulated audits.

    `reached` is the share of the simulations in which the bound holds, so that it can be reached.
    Numbers of checks are over those; none where there are none.
    """

    bound: float
    mean: float | None
    low: int | None
    median: int | None
    high: int | None
    reached: float
    replays: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return asdict(self)


class Audit(Framed, Saved, Plotted):
    """An audit of finished labels that believes no model.

    Items are drawn for checking, unsure ones more often, and never twice. After every check
    `standing` bounds the share of wrong labels among *all* of them, whatever the stated errors
    are worth and whenever the audit stops.

    Parameters
    ----------
    items, labels, errors
        The items, their labels, and the stated probability that each label is wrong.
    bound
        The share of wrong labels that is to be certified; it guides which items are drawn.
    confidence
        Of the bound and of the interval.
    seed
        Of the draws. With the same labels and results the same items are drawn.
    known
        Items whose truth is known already: their true labels by item. They are not drawn.
    correct
        Whether labels that the checks find wrong are replaced by their true ones. `bound` is then
        wanted of the corrected labels, see :attr:`corrected`.

    Examples
    --------
    >>> items = [f"photo {i}" for i in range(300)]
    >>> audit = Audit(items, ["cat"] * 300, [0.02] * 300, bound=0.05, seed=1)
    >>> while audit.state == "open":
    ...     for item in audit.next(10):
    ...         audit.record(item, "cat")
    >>> audit
    <Audit: 60 of 300 items checked, 0 wrong; at most 5 % wrong (95 % confidence)>
    """

    def __init__(
        self,
        items: Sequence[Any],
        labels: Sequence[Any],
        errors: Sequence[float],
        *,
        bound: float | None = None,
        confidence: float = 0.95,
        seed: int = 0,
        known: Mapping[str, str] | None = None,
        correct: bool = False,
    ) -> None:
        self.items, self.labels, self.errors = _checked(items, labels, errors)
        self.bound = None if bound is None else _share(bound, "bound")
        self.confidence = _share(confidence, "confidence")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise CrowdtreeError(f"seed: expected a whole number of 0 or more, got {seed!r}")
        self.seed = seed
        self.correct = correct
        self.signed = False
        """Whether it was loaded from a signed certificate."""
        self._place = {name: place for place, name in enumerate(self.items)}
        self.known = {str(item): str(truth) for item, truth in (known or {}).items()}
        known_right = {
            self._find(i): self.labels[self._find(i)] == t for i, t in self.known.items()
        }

        stated = np.array(self.errors)
        self._strata = stratify(stated)
        self.checks: list[Check] = []
        self._drawn: dict[int, Check] = {}
        self._weights: list[FloatArray] = []
        self._chances: list[float] = []
        self._done = 0
        self._fixed = 0
        self.history: list[Standing] = []
        self._all = self._ledger(known_right, None)
        self._by_label = {
            name: self._ledger(known_right, name) for name in sorted(set(self.labels))
        }
        self._pool = self._pools(known_right)
        self._left = self._all.left.copy()  # not drawn; the ledger counts what is not checked
        self._lean: tuple[int, float, float] = (-1, 1.0, 1.0)

    # ------------------------------------------------------------ setting up

    def _find(self, item: Any) -> int:
        place = self._place.get(str(item))
        if place is None:
            raise CrowdtreeError(f"item {one_line(item)} is unknown; it has no label in this audit")
        return place

    def _ledger(self, known: dict[int, bool], label: str | None) -> Ledger:
        mine = np.array([label is None or name == label for name in self.labels])
        count = sum(bool(mine[place]) for place in known)
        wrong = sum(bool(mine[place]) and not right for place, right in known.items())
        if known:
            mine[list(known)] = False
        codes, stated = self._strata[mine], np.array(self.errors)[mine]
        strata = int(self._strata.max()) + 1
        sizes = np.bincount(codes, minlength=strata).astype(np.float64)
        means = np.bincount(codes, stated, minlength=strata) / np.maximum(sizes, 1)
        wanted = self._to_reject if label is None else None
        return Ledger(sizes, means, (count, wrong), 1 - self.confidence, wanted)

    def _pools(self, known: Mapping[int, bool]) -> list[list[int]]:
        """Places of the items that can be drawn, by stratum."""
        pools: list[list[int]] = [[] for _ in range(int(self._strata.max()) + 1)]
        for place, stratum in enumerate(self._strata.tolist()):
            if place not in known:
                pools[stratum].append(place)
        return pools

    @property
    def _allowed(self) -> int | None:
        """Wrong items that the wanted bound allows."""
        return None if self.bound is None else math.floor(self.bound * len(self.items) + 1e-9)

    @property
    def _to_reject(self) -> int | None:
        """Fewest wrong items that are to be ruled out; those that are corrected come on top."""
        if self._allowed is None:
            return None
        return self._allowed + 1 + (self._fixed if self.correct else 0)

    @cached_property
    def digest(self) -> str:
        """Digest of what is audited and how; every draw depends on it."""
        rows = list(zip(self.items, self.labels, self.errors, strict=True))
        content = [rows, sorted(self.known.items()), self.confidence, self.bound]
        content += ["correct"] if self.correct else []
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    # ------------------------------------------------------------ drawing and recording

    def next(self, n: int = 1) -> list[str]:
        """Draw up to `n` more items for checking; fewer where fewer are left.

        Items of one call are drawn with what the checks have shown before it.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise CrowdtreeError(f"n: expected a whole number of 1 or more, got {n!r}")
        drawn = min(n, round(float(self._left.sum())))
        return [self.items[self._draw()] for _ in range(drawn)]

    def _draw(self) -> int:
        from crowdtree.audit import kernels

        ledger = self._all
        if self._lean[0] != self._done:
            total, need = -1.0, ledger.need
            if self._to_reject is not None:
                total = float(max(self._to_reject - ledger.wrong, 0))
                need = max(need - ledger.wealth_against(self._to_reject), 0.1)
            share, power, _ = kernels.pick_lean(ledger.left, ledger.expected, total, need)
            self._lean = (self._done, share, power)
        weights = np.empty(len(self._left))
        kernels.lean(self._left, ledger.expected, self._lean[1], self._lean[2], weights)
        stratum, index = kernels.draw(self._left, weights, self._uniform(len(self.checks)))
        place = self._pool[stratum].pop(index)
        self._left[stratum] -= 1
        self.checks.append(Check(place, self._done))
        self._drawn[place] = self.checks[-1]
        self._weights.append(weights)
        return place

    def _uniform(self, number: int) -> float:
        """Uniform number of a draw: from a hash, so that every machine gets the same."""
        text = f"{self.seed}:{self.digest}:{number}"
        return (int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") >> 3) / 2**53

    def record(
        self, item: Any, truth: Any = None, *, right: bool | None = None, by: str | None = None
    ) -> None:
        """Record what a check found: the true label, or whether the label is right.

        Several people may check an item; their results must agree.

        Parameters
        ----------
        item
            An item that was drawn.
        truth
            Its true label.
        right
            Whether its label is right, where the true label is not given.
        by
            Who checked it.
        """
        place = self._find(item)
        check = self._drawn.get(place)
        if check is None:
            why = (
                "its truth was known from the start"
                if str(item) in self.known
                else "it was not drawn"
            )
            raise CrowdtreeError(f"item {one_line(item)} cannot be checked: {why}")
        if truth is None and not isinstance(right, bool):
            raise CrowdtreeError(
                f"item {one_line(item)}: expected its true label, or right=True or False"
            )
        name = None if truth is None else str(truth)
        holds = right if name is None else name == self.labels[place]
        if right is not None and holds != right:
            raise CrowdtreeError(
                f"item {one_line(item)}: the true label {one_line(name)} contradicts right={right}"
            )
        differ = name is not None and check.truth is not None and name != check.truth
        # A wrong label without a true one was counted as one that stays.
        differ |= self.correct and name is not None and check.right is False and not check.truth
        if check.right is not None and (holds != check.right or differ):
            raise CrowdtreeError(
                f"item {one_line(item)} was checked twice with different results "
                f"({_found(check.right, check.truth)}, {_found(bool(holds), name)}); "
                "settle it and record one"
            )
        check.right, check.truth = bool(holds), name if name is not None else check.truth
        if by is not None and by not in check.by:
            check.by.append(str(by))
        self._settle()

    def _settle(self) -> None:
        """Take in results in the order of the draws, up to the first that is missing."""
        while self._done < len(self.checks) and self.checks[self._done].right is not None:
            check, weights = self.checks[self._done], self._weights[self._done]
            stratum, error = int(self._strata[check.place]), not check.right
            mine = self._by_label[self.labels[check.place]]
            inside = weights * mine.left / np.maximum(self._all.left, 1)
            mine.take(inside / inside.sum(), stratum, error)
            self._chances.append(float(weights[stratum] / self._all.left[stratum]))
            self._all.take(weights, stratum, error)
            self._done += 1
            self._fixed += error and check.truth is not None
            self.history.append(self.standing)

    def follow(self, draws: Sequence[Draw]) -> None:
        """Repeat draws and results that were written down, from where this audit stands.

        Raises where they are not what the seed, the labels and the results give.
        """
        for number in range(len(self.checks), len(draws)):
            entry = draws[number]
            for earlier in range(len(self.history), min(entry.after, number)):
                self._repeat(draws, earlier)
            if entry.after != len(self.history):
                raise CrowdtreeError(
                    f"draws[{number}]: drawn after {entry.after} results, but "
                    f"{len(self.history)} can have been in"
                )
            item = (self.next(1) or ["none"])[0]
            if item != entry.item:
                raise CrowdtreeError(
                    f"draws[{number}]: item {one_line(entry.item)} was not drawn; seed and labels "
                    f"give {one_line(item)}"
                )
        if [self.items[check.place] for check in self.checks] != [entry.item for entry in draws]:
            raise CrowdtreeError("draws: this audit has drawn other items")
        for number in range(len(draws)):
            self._repeat(draws, number)

    def _repeat(self, draws: Sequence[Draw], number: int) -> None:
        entry, check = draws[number], self.checks[number]
        if entry.right is None:
            if entry.truth is not None or entry.by:
                raise CrowdtreeError(f"draws[{number}]: has a truth but no result")
            if check.right is not None:
                raise CrowdtreeError(f"draws[{number}]: its result was not written down")
            return
        if (check.right, check.truth, check.by) == (entry.right, entry.truth, [*entry.by]):
            return
        try:
            self.record(entry.item, entry.truth, right=entry.right)
            for person in entry.by:
                self.record(entry.item, entry.truth, right=entry.right, by=person)
        except CrowdtreeError as error:
            raise CrowdtreeError(f"draws[{number}]: {error}") from None

    # ------------------------------------------------------------ what is known

    @property
    def pending(self) -> list[str]:
        """Items that were drawn and have no result yet."""
        return [self.items[check.place] for check in self.checks if check.right is None]

    @property
    def standing(self) -> Standing:
        """What the checks say about all labels.

        Results count in the order of the draws: one that comes before an earlier one waits.
        """
        return _standing(self._all)

    @property
    def corrected(self) -> float:
        """Bound on the share of wrong labels once those found wrong have their true labels.

        It holds at any time, as the bound does. Wrong ones of unknown truth stay.

        >>> audit = Audit(list("abcd"), ["x"] * 4, [0.1] * 4)
        >>> for item in audit.next(4):
        ...     audit.record(item, "y" if item == "b" else "x")
        >>> audit.standing.upper, audit.corrected
        (0.25, 0.0)
        """
        return (self._all.most_wrong() - self._fixed) / len(self.items)

    @property
    def truths(self) -> dict[str, str]:
        """True label of every item that is known or was checked, where it was given."""
        found = {item: truth for item, truth in self.known.items() if truth.rstrip("?") != UNSURE}
        for check in self.checks[: self._done]:
            item = self.items[check.place]
            if check.right or check.truth is not None:
                found[item] = self.labels[check.place] if check.right else str(check.truth)
        return found

    @property
    def weights(self) -> dict[str, float]:
        """Weight of every item whose truth is known: weighted sums estimate sums over all items.

        Items were drawn with unequal chances, so that what is counted among them says something
        about all items only with these weights. Items known from the start weigh 1.
        """
        places = [check.place for check in self.checks[: self._done]]
        left = len(self.items) - len(self.known)
        drawn = draw_weights(self._chances, left)
        found = dict.fromkeys(self.known, 1.0)
        return found | {self.items[p]: w for p, w in zip(places, drawn, strict=True)}

    @property
    def by_label(self) -> dict[str, Standing]:
        """What the checks say about each label; every bound holds with the confidence by itself."""
        return {name: _standing(ledger) for name, ledger in self._by_label.items()}

    @property
    def state(self) -> str:
        """How the wanted bound stands: ``reached``, ``open``, ``unlikely`` or ``impossible``.

        ``unlikely``: the interval lies above the bound. ``impossible``: more wrong items were found
        than it allows. Both are about the labels before any correction; where wrong ones are
        corrected, more checks still lead to ``reached``. Without a wanted bound: ``open`` until
        everything is checked.
        """
        allowed, ledger = self._allowed, self._all
        if allowed is None or self._to_reject is None:
            return "reached" if allowed is None and not ledger.remaining else "open"
        if ledger.most_wrong() < self._to_reject:
            return "reached"
        if ledger.wrong > allowed:
            return "impossible"
        return "unlikely" if ledger.interval()[0] > allowed else "open"

    def forecast(self, replays: int = REPLAYS, *, seed: int = 0) -> Forecast | None:
        """How many more checks the wanted bound takes, if the working model is right.

        The working model is what stated errors and checks say together. None without a bound.
        """
        if self.bound is None or self._to_reject is None:
            return None
        ledger, rng = self._all, generator(seed)

        def errors() -> FloatArray:
            from crowdtree.audit import kernels

            belief = rng.choice(len(ledger.beliefs), p=ledger.beliefs)
            mean, strength = ledger.rates[belief], kernels.STRENGTH
            share = rng.beta(
                strength * mean + ledger.found,
                strength * (1 - mean) + ledger.checked - ledger.found,
            )
            return rng.binomial(ledger.left.astype(np.int64), share).astype(np.float64)

        crossed = [-1]
        if self.state == "reached":
            crossed = [0]
        elif self.correct or self.state != "impossible":
            crossed = _replays(
                ledger, self._to_reject, [errors() for _ in range(replays)], False, rng
            )
        return _forecast(self.bound, crossed)

    def to_dict(self) -> dict[str, Any]:
        """Return what is known, as plain data, ready for JSON."""
        return {
            **self.standing.to_dict(),
            "confidence": self.confidence,
            "wanted": self.bound,
            "state": self.state,
            "corrected": self.corrected,
            "drawn": len(self.checks),
            "known": len(self.known),
            "stated": float(np.mean(self.errors)),
            "labels": {name: found.to_dict() for name, found in self.by_label.items()},
        }

    def __repr__(self) -> str:
        found = self.standing
        return (
            f"<Audit: {found.checks:,} of {plural(found.items, 'item')} checked, {found.wrong:,} "
            f"wrong; at most {percent(found.upper)} wrong ({percent(self.confidence)} confidence)>"
        )


def plan_audit(
    errors: Iterable[float],
    bound: float,
    *,
    confidence: float = 0.95,
    replays: int = REPLAYS,
    seed: int = 0,
    truth: Iterable[bool] | None = None,
    uniform: bool = False,
) -> Forecast:
    """Say how many checks an audit takes, if the stated errors are right.

    Parameters
    ----------
    errors
        The stated error of each label.
    bound
        The share of wrong labels that is to be certified.
    confidence
        Of the bound.
    replays
        Simulated audits.
    seed
        Of the simulation.
    truth
        Which labels are wrong, instead of chance by the stated errors.
    uniform
        Draw all items with the same chance and bet without stated errors, to compare.

    Examples
    --------
    >>> found = plan_audit([0.001] * 900 + [0.1] * 100, 0.03)
    >>> found.low <= found.median <= found.high
    True
    """
    stated = _errors(list(errors), "errors")
    bound, confidence = _share(bound, "bound"), _share(confidence, "confidence")
    if isinstance(replays, bool) or not isinstance(replays, int) or replays < 1:
        raise CrowdtreeError(f"replays: expected a whole number of 1 or more, got {replays!r}")
    rng = generator(seed)
    said = np.array(stated)
    used = np.full(len(said), said.mean()) if uniform else said
    codes = stratify(used)
    sizes = np.bincount(codes).astype(np.float64)
    allowed = math.floor(bound * len(said) + 1e-9)
    ledger = Ledger(sizes, np.bincount(codes, used) / sizes, (0, 0), 1 - confidence, allowed + 1)
    fixed = None if truth is None else np.array([bool(x) for x in truth])
    cases = [
        np.bincount(
            codes, (rng.random(len(said)) < said) if fixed is None else fixed, minlength=len(sizes)
        ).astype(np.float64)
        for _ in range(replays)
    ]
    return _forecast(bound, _replays(ledger, allowed + 1, cases, uniform, rng))


def _replays(
    ledger: Ledger,
    total: int,
    cases: list[FloatArray],
    uniform: bool,
    rng: np.random.Generator,
) -> list[int]:
    """Checks until at least `total` wrong items are rejected, in each case; -1 for never."""
    from crowdtree.audit import kernels

    left = np.array([float(total - ledger.wrong)])
    logs = np.array([ledger.wealth_against(total) if total <= ledger.items else ledger.need])
    crossed = np.empty(1, dtype=np.int64)
    batch = max(10, ledger.remaining // 100)
    made = []
    for bad in cases:
        if left[0] > ledger.remaining:
            made.append(0)
            continue
        chances = rng.random((ledger.remaining, 2))
        kernels.replay(
            ledger.left, bad, ledger.beliefs, ledger.rates, ledger.checked, ledger.found, left,
            logs, ledger.need, batch, uniform, chances, crossed,
        )  # fmt: skip
        made.append(int(crossed[0]))
    return made


def _forecast(bound: float, crossed: list[int]) -> Forecast:
    checks = np.array([count for count in crossed if count >= 0])
    reached = len(checks) / len(crossed)
    if not len(checks):
        return Forecast(bound, None, None, None, None, 0.0, len(crossed))
    low, median, high = (math.ceil(q) for q in np.quantile(checks, [0.1, 0.5, 0.9]))
    return Forecast(bound, float(checks.mean()), low, median, high, reached, len(crossed))


def _standing(ledger: Ledger) -> Standing:
    n, (low, high), estimate = ledger.items, ledger.interval(), ledger.estimate
    return Standing(
        n,
        ledger.checks,
        ledger.wrong,
        ledger.most_wrong() / n,
        low / n,
        high / n,
        None if estimate is None else estimate / n,
    )


def _found(right: bool, truth: str | None) -> str:
    return one_line(truth) if truth is not None else "right" if right else "wrong"


def _share(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise CrowdtreeError(f"{what}: expected a number between 0 and 1, got {value!r}")
    return float(value)


def _checked(
    items: Sequence[Any], labels: Sequence[Any], errors: Sequence[float]
) -> tuple[list[str], list[str], list[float]]:
    names, said = [str(item) for item in items], [str(label) for label in labels]
    if not len(names) == len(said) == len(errors):
        raise CrowdtreeError(
            f"labels: {len(names)} items, {len(said)} labels and {len(errors)} errors; expected "
            "one label and one error per item"
        )
    if not names:
        raise CrowdtreeError("labels: no items; expected at least one")
    seen: set[str] = set()
    for number, (name, label) in enumerate(zip(names, said, strict=True), start=1):
        if not name.strip() or not label.strip():
            what = "item" if not name.strip() else f"label of item {one_line(name)}"
            raise CrowdtreeError(f"labels: entry {number}: the {what} is blank; fill it in")
        if name in seen:
            raise CrowdtreeError(
                f"labels: item {one_line(name)} occurs twice; expected one label per item"
            )
        seen.add(name)
    return names, said, _errors(list(errors), "labels", names)


def _errors(errors: list[Any], what: str, names: list[str] | None = None) -> list[float]:
    if not errors:
        raise CrowdtreeError(f"{what}: no errors; expected one per label")
    for number, error in enumerate(errors):
        if isinstance(error, bool) or not isinstance(error, int | float | np.floating | np.integer):
            error = math.nan
        if not 0 <= error <= 1:
            where = f"entry {number + 1}" if names is None else f"item {one_line(names[number])}"
            raise CrowdtreeError(
                f"{what}: {where} has the stated error {one_line(errors[number])}; expected a "
                "number from 0 to 1"
            )
    return [float(error) for error in errors]
