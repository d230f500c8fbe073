"""Stated probabilities as they come: checked, scaled to sum to 1, missing rows left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural

__all__ = ["Stated", "opinions_of", "read_sources"]

ROUNDING = 1e-3
"""How far a row may be from 1 without a note: stated probabilities are rounded."""


class Stated(NamedTuple):
    """What one source states: a row per item, NaN without an opinion, and notes on what changed.

    A row that is NaN in part comes from a source that does not know those classes.
    """

    rows: FloatArray
    notes: tuple[str, ...] = ()


def check_rows(given: Any, classes: Sequence[str], what: str) -> Stated:
    """Check the probabilities of one source, and scale rows that do not sum to 1.

    >>> check_rows([[2, 2], [np.nan, np.nan]], ["a", "b"], "cnn").notes
    ('cnn: 1 row does not sum to 1 and was scaled, the first one row 0 (sum 4)',)
    """
    try:
        rows = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise CrowdtreeError(f"{what}: expected probabilities, items x classes") from None
    if rows.ndim != 2 or rows.shape[1] != len(classes):
        raise CrowdtreeError(
            f"{what}: expected items x {len(classes)} classes, got shape {rows.shape}; "
            "opinions_of(model, items, classes) puts the columns in order"
        )
    absent = np.isnan(rows).all(axis=1)
    bad = np.argwhere((rows < 0) | np.isinf(rows))
    if len(bad):
        row, cls = bad[0]
        raise CrowdtreeError(
            f"{what}: row {row}, class {classes[cls]!r}: expected a probability, got "
            f"{rows[row, cls]:g}"
        )
    total = np.where(absent, 1.0, np.nansum(rows, axis=1))
    if not total.all():
        raise CrowdtreeError(
            f"{what}: row {np.argmin(total)} is 0 throughout; leave it blank (NaN) where there is "
            "no opinion"
        )
    return Stated(rows / total[:, None], _scaled(total, what))


def _scaled(total: FloatArray, what: str) -> tuple[str, ...]:
    off = np.flatnonzero(np.abs(total - 1) > ROUNDING)
    if not len(off):
        return ()
    verb = "does not sum to 1 and was" if len(off) == 1 else "do not sum to 1 and were"
    return (
        f"{what}: {plural(len(off), 'row')} {verb} scaled, the first one row {off[0]} "
        f"(sum {total[off[0]]:.4g})",
    )


def read_sources(given: Any, classes: Sequence[str]) -> dict[str, Stated]:
    """Probabilities by source: of one source, which has no name of its own, or a mapping.

    >>> list(read_sources({"cnn": [[0.5, 0.5]]}, ["a", "b"]))
    ['cnn']
    """
    if not isinstance(given, Mapping):
        return {"opinion": check_rows(given, classes, "probabilities")}
    if not given:
        raise CrowdtreeError("probabilities: expected one source or more, got none")
    found = {str(name): check_rows(rows, classes, str(name)) for name, rows in given.items()}
    lengths = {name: len(stated.rows) for name, stated in found.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} {count}" for name, count in lengths.items())
        raise CrowdtreeError(f"probabilities: expected as many items of every source, got {counts}")
    return found


def opinions_of(model: Any, items: Any, classes: Sequence[str]) -> FloatArray:
    """Return what a fitted model says about items: a row per item, a column per class.

    Parameters
    ----------
    model
        Anything with ``predict_proba`` and ``classes_``, such as a classifier of scikit-learn.
    items
        What ``predict_proba`` takes, one row per item.
    classes
        Classes in the order of the columns, usually ``problem.classes``. The column of a class that
        the model has never seen is NaN: it has no opinion about it.

    Examples
    --------
    >>> class Coin:
    ...     classes_ = ["tails", "heads"]
    ...
    ...     def predict_proba(self, items):
    ...         return [[0.3, 0.7] for _ in items]
    >>> opinions_of(Coin(), ["toss"], ["heads", "tails"]).tolist()
    [[0.7, 0.3]]
    """
    check_call(opinions_of, {"classes": classes})
    if not (hasattr(model, "predict_proba") and hasattr(model, "classes_")):
        raise CrowdtreeError(
            "model: expected a fitted model with predict_proba and classes_, got "
            f"{type(model).__name__}"
        )
    given = np.asarray(model.predict_proba(items), dtype=np.float64)
    names = [str(name) for name in model.classes_]
    if given.ndim != 2 or given.shape[1] != len(names):
        raise CrowdtreeError(
            f"model: expected items x {len(names)} probabilities, got shape {given.shape}"
        )
    place = {str(name): column for column, name in enumerate(classes)}
    unknown = [name for name in names if name not in place]
    if unknown:
        raise CrowdtreeError(
            f"model: {unknown[0]!r} is not one of the classes; expected some of {', '.join(place)}"
        )
    found = np.full((len(given), len(place)), np.nan)
    found[:, [place[name] for name in names]] = given
    return found
