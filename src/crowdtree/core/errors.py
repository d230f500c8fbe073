"""One base error for every mistake that a user can make and fix, and helpers for its message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Made = TypeVar("Made")


class CrowdtreeError(ValueError):
    """A mistake in the input, in one line: what happened, where, and how to fix it.

    >>> raise CrowdtreeError("prior: sums to 0.9; pass normalise=True")
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: prior: sums to 0.9; pass normalise=True
    """

    __module__ = "crowdtree"  # where users import it from, shown in tracebacks


class MissingExtra(CrowdtreeError):
    """Something that needs a package of an extra that is not installed.

    >>> print(MissingExtra("charts", "figures"))
    charts: not installed; run: pip install "crowdtree[figures]"
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what}: not installed; run: pip install "crowdtree[{extra}]"')


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Say which extra to install where an import within the block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "crowdtree").startswith("crowdtree"):
            raise  # a mistake of ours
        raise MissingExtra(what, extra) from None


class CrowdtreeWarning(UserWarning):
    """Something valid but seldom intended, such as a worker who errs more often than not.

    >>> import warnings
    >>> warnings.simplefilter("ignore", CrowdtreeWarning)  # silences these, and no others
    """

    __module__ = "crowdtree"  # where users import it from, shown in tracebacks


def listing(names: Iterable[str], most: int = 5) -> str:
    """Join names for a message and count what does not fit.

    >>> listing(["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    shown = list(names)
    rest = len(shown) - most
    head = ", ".join(shown[:most])
    return f"{head} and {rest} more" if rest > 0 else head


def one_line(value: Any, most: int = 40) -> str:
    """Quote a value for a message, on one line and not too long.

    >>> one_line("two\\nlines"), one_line("x" * 100, most=5)
    ("'two\\\\nlines'", "'xxxxx'...")
    """
    if isinstance(value, list | dict):
        return f"a list of {len(value)}" if isinstance(value, list) else "fields"
    text = str(value)
    return repr(text) if len(text) <= most else f"{text[:most]!r}..."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest a known name that resembles a wrong one; empty if none does.

    >>> did_you_mean("Evalute", ["design", "evaluate"])
    "; did you mean 'evaluate'?"
    """
    from difflib import get_close_matches  # seldom needed

    folded = {other.casefold(): other for other in known}
    close = get_close_matches(name.casefold(), folded, n=1)
    return f"; did you mean {one_line(folded[close[0]])}?" if close else ""


def squeeze(text: object) -> str:
    """Put a message of another library on one line.

    >>> squeeze("a\\n   b")
    'a b'
    """
    return re.sub(r"\s+", " ", str(text)).strip()


def named(source: str, make: Callable[..., Made], *args: Any, **options: Any) -> Made:
    """Call a maker; prefix its errors with the source."""
    try:
        return make(*args, **options)
    except CrowdtreeError as error:
        raise CrowdtreeError(f"{source}: {error}") from None
