"""Check what an audit is given; mistakes are reported in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crowdtree.audit.costs import checked_risks
from crowdtree.audit.records import Labels
from crowdtree.core.errors import CrowdtreeError, one_line


def checked_labels(
    items: Sequence[Any],
    labels: Sequence[Any],
    errors: Sequence[float],
    risks: Sequence[float] | None = None,
) -> Labels:
    """Accept items with one label and one stated error each, or raise."""
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
    stated = checked_errors(list(errors), "labels", names)
    return Labels(names, said, stated, checked_risks(risks, len(names)))


def checked_errors(errors: list[Any], what: str, names: list[str] | None = None) -> list[float]:
    """Accept stated errors from 0 to 1, or raise with the place of the first that is none."""
    if not errors:
        raise CrowdtreeError(f"{what}: no errors; expected one per label")
    if all(isinstance(error, float) and 0 <= error <= 1 for error in errors):
        return [float(error) for error in errors]
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
