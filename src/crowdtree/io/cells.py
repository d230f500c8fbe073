"""What single cells of tables and documents say: outcomes and numbers, in all their spellings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.core.problem import CELLS, DASH

_PLAIN = ("0", "1", "-", "-1", "–", "—", "−")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3})+")


def cell_code(cell: Any) -> int:
    """Outcome of a cell: 0, 1 or -1 for ``-``; KeyError for anything else.

    >>> [cell_code(cell) for cell in ("0", " 1 ", "1.0", "-", True, "No", "Y", "n/a")]
    [0, 1, 1, -1, 1, 0, 1, -1]
    """
    text = str(int(cell)) if isinstance(cell, bool) else str(cell).strip().casefold()
    if text in CELLS:
        return CELLS[text]
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        raise KeyError(cell) from None
    if value not in (0, 1, -1):
        raise KeyError(cell)
    return int(value)


def cell_number(cell: str, *, decimal_comma: bool = False) -> float:
    """Number of a cell, percentages as shares; NaN if it is none or ambiguous.

    ``1,234`` is ambiguous unless commas are known to be decimal commas.

    >>> [cell_number(cell) for cell in ("0.2", "20%", "2,5 %", "0,05", "1,234", "x")]
    [0.2, 0.2, 0.025, 0.05, nan, nan]
    """
    text = cell.strip()
    share = text.endswith("%")
    text = text.removesuffix("%").rstrip()
    if not (share or decimal_comma) and _THOUSANDS.fullmatch(text):
        return float("nan")
    try:
        if share and "e" not in text.casefold():
            return float(text.replace(",", ".") + "e-2")  # correctly rounded, unlike / 100
        return float(text.replace(",", ".")) / (100 if share else 1)
    except ValueError:
        return float("nan")


def by_class(cells: Any, places: dict[str, int], where: str, default: Any) -> list[Any]:
    """Put cells in the order of the classes."""
    if isinstance(cells, list):
        if len(cells) != len(places):
            raise CrowdtreeError(
                f"{where}: expected {len(places)} cells, one per class, got {len(cells)}"
            )
        return cells
    row = [default] * len(places)
    for name, cell in cells.items():
        place = places.get(name) if isinstance(name, str) else None
        if place is None:
            raise CrowdtreeError(
                f"{where}: {one_line(name)} is not a class of this problem"
                + ("" if isinstance(name, str) else "; put names in quotes")
            )
        row[place] = cell
    return row


def numbers_by_class(
    cells: Any, places: dict[str, int], where: str, default: Any, needless: Sequence[bool]
) -> list[float]:
    """Read a number for each class; NaN where it is missing and not needed."""
    given = by_class(cells, places, where, default)
    if set(map(type, given)) <= {float, int}:
        return given
    row = []
    for name, cell, free in zip(places, given, needless, strict=True):
        if cell is None and free:
            cell = float("nan")
        if isinstance(cell, str) and 0 <= cell_number(cell) <= 1:
            cell = cell_number(cell)
        if isinstance(cell, bool) or not isinstance(cell, int | float):
            got = "is missing" if cell is None else f"is {one_line(cell)}"
            raise CrowdtreeError(
                f"{where}: class {one_line(name)} {got}; write a number from 0 to 1"
            )
        row.append(cell)
    return row


class Spellings:
    """Spellings other than 0, 1, - and plain numbers that were read, for a note about them."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, str]] = {}  # by meaning, and without upper case

    def add_outcomes(self, cells: Iterable[Any]) -> None:
        """Record outcomes that are words."""
        for cell in cells:
            text = str(cell).strip()
            code = CELLS.get(text.casefold())
            if code is not None and not isinstance(cell, bool) and text not in _PLAIN:
                spellings = self._seen.setdefault("-" if code == DASH else str(code), {})
                spellings.setdefault(text.casefold(), text)

    def add_number(self, cell: str, *, decimal_comma: bool = False) -> None:
        """Record the first percentage and the first unexpected decimal comma."""
        kind = "%" if "%" in cell else ","
        known = any(kind in text for spellings in self._seen.values() for text in spellings)
        if not known and (kind == "%" or ("," in cell and not decimal_comma)):
            value = cell_number(cell, decimal_comma=decimal_comma)
            self._seen[f"{value:g}"] = {cell: cell.strip()}

    def notes(self) -> list[str]:
        """One statement about all of them.

        >>> seen = Spellings()
        >>> seen.add_outcomes(["yes", "n/a", "0", "Y"]), seen.add_number("20%")
        (None, None)
        >>> seen.notes()
        ['yes/Y read as 1, n/a as -, 20% as 0.2']
        """
        pairs = [f"{'/'.join(texts.values())} as {code}" for code, texts in self._seen.items()]
        return [", ".join(pairs).replace(" as ", " read as ", 1)] if pairs else []
