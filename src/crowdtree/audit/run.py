"""Audits: draw labelled items for checking, take the results, bound the error of all labels."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from crowdtree.audit import kernels
from crowdtree.audit.costs import Costs
from crowdtree.audit.forecast import REPLAYS, forecast_rest
from crowdtree.audit.inputs import checked_labels
from crowdtree.audit.ledger import Ledger, allowed_wrong, shared_estimates
from crowdtree.audit.records import Check, Draw, Forecast, MeanLoss, Replaced, Standing
from crowdtree.audit.runs import draw_weights
from crowdtree.audit.strata import stratify
from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_call, check_share
from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.core.result_methods import Framed, Plotted, Saved
from crowdtree.core.rng import generator
from crowdtree.core.text import percent, plural, squeezed

PLANNED = 400
"""Planned number of checks where neither a number nor a bound is given; at most half of them."""
UNLABELLED = "label"
"""Label of items of which only the stated errors are given."""
STATES = ("reached", "open", "unlikely", "impossible")
"""How a bound stands, from the best."""
UNSURE = "cannot tell"
"""Truth of a known item about which nobody could tell; its label counts as wrong."""


class Audit(Framed, Saved, Plotted):
    """An audit of finished labels that believes no model.

    Items are drawn for checking, unsure ones more often, and never twice. After every check
    `standing` bounds the share of wrong labels among *all* of them, whatever the stated errors
    are worth and whenever the audit stops.

    An audit is tuned either to reach a `bound` in few checks, or to a `planned` number of checks:
    its bound is then nearly as low as that of a fixed sample at that number, and less so before.

    Parameters
    ----------
    items, labels, errors
        The items, their labels, and the stated probability that each label is wrong. With stated
        errors alone, ``Audit(errors)``, items are numbered from 0 and have no labels.
    risks
        The stated expected loss of each label, where mistakes have different costs; it guides which
        items are drawn, as the errors do.
    bound
        The share of wrong labels that is to be certified; it guides which items are drawn.
    confidence
        Of the bound and of the interval.
    planned
        The number of checks after which the bound will be used. So many items are drawn with equal
        chances, and nine tenths of the risk are kept for the exact bound at that number. Default:
        none with a `bound` or `loss_bound`, else 400 or half of the items if those are fewer. 0:
        none, so that the whole risk is for bounds at any time.
    seed
        Of the draws. With the same labels and results the same items are drawn.
    rng
        In place of the seed: a seed, or a generator that draws one.
    known
        Items whose truth is known already: their true labels by item. They are not drawn.
    correct
        Whether labels that the checks find wrong are replaced by their true ones. `bound` is then
        wanted of the corrected labels, see :attr:`corrected`.
    loss
        What mistakes cost, in any spelling of :func:`crowdtree.core.loss.make_loss`: the mean loss
        of the labels is bounded as well, see :attr:`mean_loss`.
    loss_bound
        The mean loss per label that is to be certified.
    classes
        Names of the classes of the loss; by default the labels and known truths, sorted.

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
        labels: Sequence[Any] | None = None,
        errors: Sequence[float] | None = None,
        risks: Sequence[float] | None = None,
        known: Mapping[str, str] | None = None,
        *,
        bound: float | None = None,
        confidence: float = 0.95,
        planned: int | None = None,
        seed: int | None = None,
        rng: np.random.Generator | int | None = None,
        correct: bool = False,
        loss: Any = None,
        loss_bound: float | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        if isinstance(items, str):
            raise CrowdtreeError(
                f"items: expected a list, got the text {one_line(items)}; load a file first: "
                "Audit(*load(file))"
            )
        check_call(Audit, locals())
        if labels is None and errors is None:
            errors = list(items)
            items, labels = range(len(errors)), [UNLABELLED] * len(errors)
        if labels is None or errors is None:
            missing = "labels" if labels is None else "errors"
            raise CrowdtreeError(f"{missing}: expected one per item, got none")
        named = checked_labels(items, labels, errors, risks)
        self.items, self.labels, self.errors, self.risks = named[:4]
        numbers = map(str, range(len(self.items)))
        self.numbered = set(self.labels) == {UNLABELLED} and self.items == list(numbers)
        if seed is not None and rng is not None:
            raise CrowdtreeError("seed, rng: expected one of the two, got both")
        if rng is not None:
            seed = int(rng.integers(2**32)) if isinstance(rng, np.random.Generator) else rng
        self.bound = None if bound is None else check_share("bound", bound)
        self.confidence = check_share("confidence", confidence)
        self.seed = int(seed or 0)
        if self.seed < 0:
            raise CrowdtreeError(f"seed: expected a whole number of 0 or more, got {seed}")
        self.correct = correct
        self.signed = False
        """Whether it was loaded from a signed certificate."""
        self._place = {name: place for place, name in enumerate(self.items)}
        self.known = {str(item): str(truth) for item, truth in (known or {}).items()}
        self.costs = None
        if loss is not None:
            truths = [truth for truth in self.known.values() if truth.rstrip("?") != UNSURE]
            rows = (self.labels, self.errors, self.risks)
            self.costs = Costs(loss, classes, *rows, truths)
        self.loss_bound = _checked_loss_bound(loss_bound, self.costs)
        stated = np.array(self.errors)
        self._strata = stratify(stated) if self.costs is None else self.costs.strata
        self.planned = self._checked_plan(planned)
        self.checks: list[Check] = []
        self._drawn: dict[int, Check] = {}
        self._weights: list[FloatArray] = []
        self._open_ledgers()
        self._pool = self._pools(self._known_right)
        self._left = self._all.left.copy()  # not drawn; the ledger counts what is not checked

    # ------------------------------------------------------------ setting up

    def _open_ledgers(self) -> None:
        """Begin to count results, with what was known before the audit."""
        known = self._known_right
        self._chances: list[float] = []
        self._done = 0
        self._fixed = 0
        self._fixed_loss = 0.0
        self._all = self._ledger(known, None)
        self._lost = None if self.costs is None else self._loss_ledger(self.costs, known)
        self._by_label = {name: self._ledger(known, name) for name in sorted(set(self.labels))}
        self._lean = (1.0, 1.0)
        self._lean_until = 0  # checks after which it is chosen anew
        self._guide = self._all  # the ledger that chances follow

    @property
    def _known_right(self) -> dict[int, bool]:
        places = {self._find(item): truth for item, truth in self.known.items()}
        return {place: self.labels[place] == truth for place, truth in places.items()}

    def _find(self, item: Any) -> int:
        place = self._place.get(str(item))
        if place is None:
            raise CrowdtreeError(f"item {one_line(item)} is unknown; it has no label in this audit")
        return place

    def _checked_plan(self, planned: int | None) -> int:
        """Accept a planned number of checks, or choose one; 0 for none."""
        items = len(self.items) - len(self.known)
        if planned is None:
            aimed = self.bound is not None or self.loss_bound is not None
            return 0 if aimed else min(PLANNED, (items + 1) // 2)
        if planned < 0:
            raise CrowdtreeError(f"planned: expected a number of checks, 0 for none: {planned!r}")
        return min(planned, items)

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
        planned = self.planned > 0
        return Ledger(sizes, means, (count, wrong), 1 - self.confidence, wanted, planned=planned)

    def _loss_ledger(self, costs: Costs, known: dict[int, bool]) -> Ledger:
        open_ = np.ones(len(self.items), dtype=bool)
        open_[list(known)] = False
        strata = len(costs.size)
        sizes = np.bincount(self._strata[open_], minlength=strata).astype(np.float64)
        means = np.bincount(self._strata[open_], costs.stated[open_], minlength=strata)
        mass = float(sum(costs.size[self._strata[place]] for place in known))
        lost = sum(
            costs.share(place, right, self.known[self.items[place]])
            * costs.size[self._strata[place]]
            for place, right in known.items()
        )
        return Ledger(
            sizes,
            means / np.maximum(sizes, 1),
            (len(known), float(lost), mass),
            1 - self.confidence,
            self._loss_allowed,
            costs.size,
        )

    @property
    def _loss_allowed(self) -> float | None:
        """Sum of losses that the wanted bound allows; those that are corrected come on top."""
        if self.loss_bound is None or self.costs is None:
            return None
        allowed = self.loss_bound * len(self.items) / self.costs.largest
        return allowed + (self._fixed_loss if self.correct else 0.0)

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
        return None if self.bound is None else allowed_wrong(self.bound, len(self.items))

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
        content += ["planned", self.planned] if self.planned else []
        content += ["correct"] if self.correct else []
        if self.costs is not None:
            content += ["loss", self.costs.to_dict(), self.loss_bound, self.risks]
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Audit):
            return NotImplemented
        mine, others = ((audit.digest, audit.seed, audit.checks) for audit in (self, other))
        return mine == others

    def __hash__(self) -> int:
        return hash((self.digest, self.seed))

    # ------------------------------------------------------------ drawing and recording

    def next(self, n: int = 1) -> list[str]:
        """Draw up to `n` more items for checking; fewer where fewer are left.

        Items of one call are drawn with what the checks have shown before it.
        """
        check_call(Audit.next, {"n": n})
        if n < 1:
            raise CrowdtreeError(f"n: expected a whole number of 1 or more, got {n}")
        drawn = min(n, round(float(self._left.sum())))
        return [self.items[self._draw()] for _ in range(drawn)]

    def draw(self) -> Any:  # type: ignore[override]  # an item to check, not a picture
        """Draw one more item for checking: its name, or its number where only errors were given.

        >>> audit = Audit([0.01, 0.2, 0.05], rng=0)
        >>> while audit.checked < 3:
        ...     audit.record(audit.draw(), wrong=False)
        >>> audit.upper, audit.interval
        (0.0, (0.0, 0.0))
        """
        drawn = self.next(1)
        if not drawn:
            raise CrowdtreeError("draw: every item has been drawn")
        return int(drawn[0]) if self.numbered else drawn[0]

    def _draw(self) -> int:
        if len(self.checks) < self.planned:
            weights = self._left / self._left.sum()
        else:
            if self._done >= self._lean_until:
                aims = [(ledger, *_lean_for(ledger, total)) for ledger, total in self._aims()]
                self._guide, share, power, _ = max(aims, key=lambda aim: aim[3])
                self._lean = share, power
                self._lean_until = self._done + max(1, self._done // 10)
            ledger = self._guide
            weights = kernels.lean(self._left * ledger.size, ledger.expected, *self._lean)
        stratum, index = kernels.draw(self._left, weights, self._uniform(len(self.checks)))
        place: int = self._pool[stratum].pop(index)
        self._left[stratum] -= 1
        self.checks.append(Check(place, self._done))
        self._drawn[place] = self.checks[-1]
        self._weights.append(weights)
        return place

    def _aims(self) -> list[tuple[Ledger, float | None]]:
        """Ledgers of the wanted bounds that are not reached yet, and what each has to rule out."""
        found: list[tuple[Ledger, float | None]] = []
        if self._lost is not None and self._loss_state != "reached":
            found.append((self._lost, self._loss_allowed))
        if self._to_reject is not None and (not found or self.error_state != "reached"):
            found.append((self._all, float(self._to_reject)))
        wanted = [aim for aim in found if aim[1] is not None]
        return wanted or [(self._all, None)]

    def _uniform(self, number: int) -> float:
        """Uniform number of a draw: from a hash, so that every machine gets the same."""
        text = f"{self.seed}:{self.digest}:{number}"
        return (int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") >> 3) / 2**53

    def spelled(self, truth: Any) -> str:
        """A class as the labels spell it: case and blanks do not make another one."""
        folded = {squeezed(label): label for label in set(self.labels)}
        one = len(folded) == len(set(self.labels))
        return folded.get(squeezed(str(truth)), str(truth)) if one else str(truth)

    def record(
        self,
        item: Any,
        truth: Any = None,
        *,
        right: bool | None = None,
        wrong: bool | None = None,
        by: str | None = None,
        replace: bool = False,
    ) -> None:
        """Record what a check found: the true label, or whether the label is right.

        Several people may check an item; their results must agree. A result that was recorded by
        mistake is replaced with `replace`: the audit keeps both and counts the new one, with the
        chances of the draws as they were. The bound holds as long as the results that count are
        right, so look for mistakes among all checks, not only among those that found one.

        Parameters
        ----------
        item
            An item that was drawn.
        truth
            Its true label.
        right, wrong
            Whether its label is right or wrong, where the true label is not given; give one.
        by
            Who checked it.
        replace
            Whether to replace an earlier result that differs.
        """
        place = self._find(item)
        if wrong is not None:
            if not isinstance(wrong, bool | np.bool_) or right is not None:
                raise CrowdtreeError(
                    f"item {one_line(item)}: expected right or wrong, one of them, as True or False"
                )
            right = not wrong
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
        name = None if truth is None else self.spelled(truth)
        holds = right if name is None else name == self.labels[place]
        if right is not None and holds != right:
            raise CrowdtreeError(
                f"item {one_line(item)}: the true label {one_line(name)} contradicts right={right}"
            )
        differ = name is not None and check.truth is not None and name != check.truth
        # A wrong label without a true one was counted as one that stays.
        differ |= self.correct and name is not None and check.right is False and not check.truth
        if check.right is not None and (holds != check.right or differ):
            if not replace:
                raise CrowdtreeError(
                    f"item {one_line(item)} was checked twice with different results "
                    f"({_found(check.right, check.truth)}, {_found(bool(holds), name)}); "
                    "settle it and record one, or pass replace=True (--replace) to replace the "
                    "first"
                )
            old = Replaced(len(self.checks), check.right, check.truth, tuple(check.by))
            check.replaced.append(old)
            check.truth, check.by = None, []
            self._open_ledgers()  # later draws keep the chances that they had
        check.right, check.truth = bool(holds), name if name is not None else check.truth
        if by is not None and by not in check.by:
            check.by.append(str(by))
        self._settle()

    def _settle(self) -> None:
        """Take in results in the order of the draws, up to the first that is missing."""
        while self._done < len(self.checks) and self.checks[self._done].right is not None:
            check, weights = self.checks[self._done], self._weights[self._done]
            stratum, error = int(self._strata[check.place]), float(not check.right)
            mine = self._by_label[self.labels[check.place]]
            inside = weights * mine.left / np.maximum(self._all.left, 1)
            mine.take(inside / inside.sum(), stratum, error)
            self._chances.append(float(weights[stratum] / self._all.left[stratum]))
            self._all.take(weights, stratum, error)
            self._done += 1
            if self._done == self.planned:
                for ledger in (self._all, *self._by_label.values()):
                    ledger.look()
            fixed = not check.right and check.truth is not None
            self._fixed += fixed
            if self._lost is not None and self.costs is not None:
                lost = self.costs.share(check.place, bool(check.right), check.truth)
                self._lost.take(weights, stratum, lost)
                self._fixed_loss += fixed * lost * float(self.costs.size[stratum])

    def follow(self, draws: Sequence[Draw]) -> None:
        """Repeat draws and results that were written down, from where this audit stands.

        Raises where they are not what the seed, the labels and the results give.
        """
        check_call(Audit.follow, {"draws": draws})
        replaced = [k for k, entry in enumerate(draws) if _replaced(entry)]
        for number in range(len(self.checks), len(draws)):
            entry = draws[number]
            for earlier in replaced:
                if earlier < number and _replaced(draws[earlier])[0].draws <= number:
                    self._repeat(draws, earlier)
            for earlier in range(self._done, min(entry.after, number)):
                self._repeat(draws, earlier)
            if entry.after != self._done:
                raise CrowdtreeError(
                    f"draws[{number}]: drawn after {entry.after} results, but "
                    f"{self._done} can have been in"
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
        old = _replaced(entry)
        for k, result in enumerate((*old, entry)):
            if k < len(check.replaced):
                continue
            if k and old[k - 1].draws > len(self.checks):
                return  # it was replaced later
            if (check.right, check.truth, check.by) == (result.right, result.truth, [*result.by]):
                continue
            given = {"right": result.right, "replace": k > 0}
            try:
                self.record(entry.item, result.truth, **given)
                for person in result.by:
                    self.record(entry.item, result.truth, by=person, **given)
            except CrowdtreeError as error:
                raise CrowdtreeError(f"draws[{number}]: {error}") from None
        if [*map(_plain, check.replaced)] != [*map(_plain, old)]:
            raise CrowdtreeError(f"draws[{number}]: results were replaced in another order")

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
        return _standing(self._all, self._all.estimate)

    @property
    def history(self) -> list[Standing]:
        """What was known about all labels after every check."""
        ledger = self._all
        return [_standing(ledger, ledger.estimate_after(t), t) for t in range(1, self._done + 1)]

    @property
    def checked(self) -> int:
        """Checks that count."""
        return self._done

    @property
    def upper(self) -> float:
        """Certified upper bound on the share of wrong labels among all items."""
        return self._all.most_wrong() / len(self.items)

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the share of wrong labels among all items."""
        return self.standing.low, self.standing.high

    def needed(self, bound: float, replays: int = REPLAYS) -> float:
        """Estimate how many more checks certify a bound: a median, infinite if out of reach."""
        check_call(Audit.needed, locals())
        total = allowed_wrong(check_share("bound", bound), len(self.items)) + 1
        ledger = self._all
        state = "reached" if ledger.most_wrong() < total else "open"
        if ledger.wrong >= total:
            state = "impossible"
        rng = generator(0)
        found = forecast_rest(ledger, bound, total, state, replays, rng, self.planned).median
        return math.inf if found is None else float(found)

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
    def mean_loss(self) -> MeanLoss | None:
        """What the checks say about the mean loss of all labels; None without a loss.

        Its bound and interval hold as those of the share of wrong labels do. A label found wrong
        whose truth was not given counts as its worst mistake.

        >>> audit = Audit(list("abcd"), ["safe", "safe", "safe", "toxic"], [0.1] * 4,
        ...               loss={"pairs": {"toxic": {"safe": 20}}})
        >>> for item in audit.next(4):
        ...     audit.record(item, "toxic" if item in "bd" else "safe")
        >>> audit.mean_loss.upper, audit.mean_loss.corrected
        (5.0, 0.0)
        """
        if self._lost is None or self.costs is None:
            return None
        ledger, scale = self._lost, self.costs.largest / len(self.items)
        low, high = ledger.interval()
        estimate = ledger.estimate
        return MeanLoss(
            upper=ledger.most_wrong() * scale,
            low=low * scale,
            high=high * scale,
            estimate=None if estimate is None else estimate * scale,
            corrected=max(ledger.most_wrong() - self._fixed_loss, 0.0) * scale,
            stated=float((self.costs.stated * self.costs.size[self._strata]).sum()) * scale,
            wanted=self.loss_bound,
            state=self._loss_state,
        )

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
    def known_wrong(self) -> Counter[str]:
        """Wrong labels among the items that were known from the start, by label.

        `standing.wrong` counts them too, though they are no checks.
        """
        return Counter(self.labels[p] for p, right in self._known_right.items() if not right)

    @property
    def replaced(self) -> int:
        """Results that were replaced by later ones."""
        return sum(len(check.replaced) for check in self.checks)

    @property
    def by_label(self) -> dict[str, Standing]:
        """What the checks say about each label; every bound holds with the confidence by itself.

        Estimates add up to that of all labels.
        """
        total = self._all.estimate
        shares = shared_estimates(total, list(self._by_label.values()))
        return {
            name: _standing(ledger, estimate)
            for (name, ledger), estimate in zip(self._by_label.items(), shares, strict=True)
        }

    @property
    def state(self) -> str:
        """How the wanted bound stands: ``reached``, ``open``, ``unlikely`` or ``impossible``.

        ``unlikely``: the interval lies above the bound. ``impossible``: more wrong items were found
        than it allows. Both are about the labels before any correction; where wrong ones are
        corrected, more checks still lead to ``reached``. Without a wanted bound: ``open`` until
        everything is checked. Of a bound on the error and one on the loss, the worse of the two.
        """
        if self.loss_bound is None:
            return self.error_state
        states = [self._loss_state, *([] if self.bound is None else [self.error_state])]
        return max(states, key=STATES.index)

    @property
    def _loss_state(self) -> str:
        ledger, allowed = self._lost, self._loss_allowed
        if ledger is None or allowed is None:
            return "open" if ledger is None or ledger.remaining else "reached"
        most = allowed * (1 + 1e-12)
        if ledger.most_wrong() <= most:
            return "reached"
        if ledger.wrong > most:
            return "impossible"
        return "unlikely" if ledger.interval()[0] > most else "open"

    @property
    def error_state(self) -> str:
        """How the wanted bound on the share of wrong labels stands, see :attr:`state`."""
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
        check_call(Audit.forecast, locals())
        return self._forecast(self._all, self.bound, self._to_reject, self.state, replays, seed)

    def forecast_loss(self, replays: int = REPLAYS, *, seed: int = 0) -> Forecast | None:
        """How many more checks the wanted bound on the mean loss takes; as :meth:`forecast`."""
        check_call(Audit.forecast_loss, locals())
        limits = self.loss_bound, self._loss_allowed
        return self._forecast(self._lost, *limits, self._loss_state, replays, seed)

    def _forecast(
        self,
        ledger: Ledger | None,
        bound: float | None,
        total: float | None,
        state: str,
        replays: int,
        seed: int,
    ) -> Forecast | None:
        if ledger is None or bound is None or total is None:
            return None
        state = "open" if self.correct and state == "impossible" else state
        rng = generator(seed)
        return forecast_rest(ledger, bound, total, state, replays, rng, self.planned)

    def to_dict(self) -> dict[str, Any]:
        """Return what is known, as plain data, ready for JSON."""
        cost = self.mean_loss
        return {
            **self.standing.to_dict(),
            "confidence": self.confidence,
            "wanted": self.bound,
            "state": self.state,
            "corrected": self.corrected,
            "drawn": len(self.checks),
            "known": len(self.known),
            **({"replaced": self.replaced} if self.replaced else {}),
            "stated": float(np.mean(self.errors)),
            "labels": {name: found.to_dict() for name, found in self.by_label.items()},
            **({} if cost is None else {"loss": cost.to_dict()}),
        }

    def __repr__(self) -> str:
        found = self.standing
        wrong = found.wrong - self.known_wrong.total()
        return (
            f"<Audit: {found.checks:,} of {plural(found.items, 'item')} checked, {wrong:,} "
            f"wrong; at most {percent(found.upper)} wrong ({percent(self.confidence)} confidence)>"
        )


def _standing(ledger: Ledger, estimate: float | None, checks: int | None = None) -> Standing:
    """What is known after so many checks, after all of them by default."""
    n, checks = ledger.items, ledger.checks if checks is None else checks
    low, high = ledger.interval(checks)
    return Standing(
        n,
        checks,
        round(ledger.wrong_after(checks)),
        ledger.most_wrong(checks) / n,
        low / n,
        high / n,
        None if estimate is None else estimate / n,
    )


def _lean_for(ledger: Ledger, total: float | None) -> tuple[float, float, float]:
    """How chances lean to rule a total out soonest: share, power and expected checks."""
    left, need = -1.0, ledger.need
    if total is not None:
        left = max(total - ledger.wrong, 0.0)
        need = max(need - ledger.wealth_against(total), 0.1)
    share, power, checks = kernels.pick_lean(ledger.left, ledger.expected, left, need)
    return float(share), float(power), float(checks)


def _checked_loss_bound(bound: Any, costs: Costs | None) -> float | None:
    if bound is None:
        return None
    if costs is None:
        raise CrowdtreeError("loss_bound: give the loss as well, or bound the error")
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 < bound < math.inf:
        raise CrowdtreeError(f"loss_bound: expected a number above 0, got {bound!r}")
    return float(bound)


def _replaced(entry: Draw) -> Sequence[Any]:
    """Earlier results of a draw; those of campaigns have none."""
    return getattr(entry, "replaced", ())


def _plain(result: Any) -> tuple[Any, ...]:
    return result.draws, result.right, result.truth, tuple(result.by)


def _found(right: bool, truth: str | None) -> str:
    return one_line(truth) if truth is not None else "right" if right else "wrong"
