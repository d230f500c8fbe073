"""How numbers are written for people: three significant digits, percentages in prose."""

from __future__ import annotations

import math

__all__ = ["number", "percent", "plural"]


def percent(value: float, digits: int = 3) -> str:
    """Write a probability as a percentage.

    What is not quite certain does not pass for certain.

    >>> percent(0.08231187), percent(1.0), percent(0.00001234), percent(0.0)
    ('8.23 %', '100 %', '0.00123 %', '0 %')
    >>> percent(0.99971), percent(0.9999999)
    ('99.97 %', '99.99999 %')
    """
    words = number(100 * value, digits)
    missing = 100 * (1 - value)
    if words == "100" and missing > 1e-9:  # digits up to the first that differs from 100
        words = f"{100 - missing:.{-math.floor(math.log10(missing) + 1e-9)}f}"
    return f"{words} %"


def number(value: float, digits: int = 3) -> str:
    """Write a number with some significant digits, and no exponent unless it is minute.

    >>> number(1234.5), number(1.70648), number(0.5), number(1e-7), number(1.2345e-38)
    ('1,234', '1.71', '0.5', '0.0000001', '1.23e-38')
    """
    if abs(value) < 1e-9 or not math.isfinite(value):
        return f"{value:.{digits}g}"
    places = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def plural(count: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun.

    >>> plural(1, "class", "classes"), plural(3, "question")
    ('1 class', '3 questions')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
