"""Numbers for display: three significant digits, percentages, durations; times of exports."""

from __future__ import annotations

import datetime as dt
import math
import re

_BREAK = re.compile(r"(?<=[0-9]) (?=%)")


def iso_time(seconds: float) -> str:
    """Write a time in seconds since 1970 by ISO 8601, in UTC.

    >>> iso_time(1_000_000_000.25)
    '2001-09-09T01:46:40.250Z'
    """
    found = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def percent(share: float) -> str:
    """Write a probability as a percentage: three significant digits, never a false 0 or 100.

    >>> [percent(x) for x in (0.08231187, 0.6, 1.0, 0.00001234, 1e-12, 0.0)]
    ['8.23 %', '60 %', '100 %', '0.00123 %', '< 0.0000001 %', '0 %']
    >>> percent(0.99971), percent(0.9999999)
    ('99.97 %', '99.99999 %')
    """
    if 0 < share < 1e-9:
        return "< 0.0000001 %"
    text = number(100 * share)
    missing = 100 * (1 - share)
    if text == "100" and missing > 1e-9:  # digits up to the first that differs from 100
        text = f"{100 - missing:.{-math.floor(math.log10(missing) + 1e-9)}f}"
    return f"{text} %"


def unbroken(text: str, space: str = "\u00a0") -> str:
    """Put a space at which no line breaks in front of every per cent sign after a digit.

    >>> unbroken("5 % of 20 % wrong", "~")
    '5~% of 20~% wrong'
    """
    return _BREAK.sub(space, text)


def percent_range(low: float, high: float) -> str:
    """Write an interval of probabilities as percentages.

    >>> percent_range(0.00951, 0.0123)
    '0.951–1.23 %'
    """
    return f"{percent(low).removesuffix(' %')}–{percent(high)}"


def percent_cell(share: float) -> str:
    """Write a share in per cent for a narrow cell: without the sign, and empty for 0.

    >>> [percent_cell(share) for share in (0.9025, 0.0009, 0.0, 0.99999, 1.0)]
    ['90.2', '<0.1', '', '>99.9', '100']
    """
    if share == 0:
        return ""
    if share < 0.001:
        return "<0.1"
    return ">99.9" if 0.9995 <= share < 1 else number(100 * share)


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


def rounded_up(value: float) -> float:
    """A number with two significant digits that is not below a value.

    >>> rounded_up(0.0512), rounded_up(0.3)
    (0.052, 0.3)
    """
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / step - 1e-9) * step:.2g}")


def plural(count: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun.

    >>> plural(1, "class", "classes"), plural(3, "question")
    ('1 class', '3 questions')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def span(low: float, high: float) -> str:
    """Two numbers, or the one that both are.

    >>> span(2, 5), span(0.1, 0.1)
    ('2 to 5', '0.1')
    """
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def amount(value: float, one: str, digits: int = 3) -> str:
    """Write a number that need not be whole with its noun.

    >>> amount(1.0004, "answer"), amount(1.5, "answer")
    ('1 answer', '1.5 answers')
    """
    text = number(value, digits)
    return f"{text} {one if text == '1' else one + 's'}"


def duration(seconds: float) -> str:
    """Write a span of time in one or two words.

    >>> [duration(s) for s in (5, 90, 4000, 200_000, 1e9)]
    ['less than a minute', '2 min', '1 h 7 min', '2 days', 'more than a year']
    """
    minutes = round(seconds / 60)
    if seconds < 55:
        return "less than a minute"
    if minutes < 60:
        return f"{max(minutes, 1)} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")
    days = round(minutes / 1440)
    return plural(days, "day") if days <= 365 else "more than a year"


def short(text: str, most: int = 80) -> str:
    """Cut a long text.

    >>> short("a long text", 6)
    'a lon…'
    """
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def squeezed(name: str) -> str:
    """Name by which spellings are compared: without case and further blanks.

    >>> squeezed(" I  Don’t know")
    "i don't know"
    """
    return " ".join(name.casefold().replace("’", "'").split())
