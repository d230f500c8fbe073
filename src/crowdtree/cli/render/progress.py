"""Progress of slow work on stderr: a line that disappears on terminals, elsewhere plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crowdtree.core.text import percent, plural

PLAIN_SECONDS = 2.0
"""Seconds before the first plain line; the next one comes when half as much time again is over."""
LEAST_SECONDS = 2.0
"""Seconds before anything can be said about the time that is left."""
Words = tuple[str, float | None]
"""What to show, and the share that is done where it is known."""


def time_left(seconds: float, share: float | None) -> str:
    """Time that is left, as a part of what is shown: nothing where it cannot be known yet.

    >>> time_left(30, 0.25), time_left(600, 0.5), time_left(1, 0.25), time_left(30, None)
    (' · about 90 s left', ' · about 10 min left', '', '')
    """
    if not share or seconds < LEAST_SECONDS:
        return ""
    left = seconds * (1 - share) / share
    return f" · about {left / 60:.0f} min left" if left >= 100 else f" · about {left:.0f} s left"


def _plain(words: Callable[..., Words]) -> Callable[..., None]:
    """Make a callback that writes a line when the work takes long, and then less and less often."""
    began, due = time.monotonic(), PLAIN_SECONDS

    def update(*values: object) -> None:
        nonlocal due
        seconds = time.monotonic() - began
        if seconds >= due:
            text, share = words(*values)
            done = "" if share is None else f" · {percent(share)} done"
            print(f"{text}{done}{time_left(seconds, share)}", file=sys.stderr, flush=True)
            due = 1.5 * seconds

    return update


@contextmanager
def progress(words: Callable[..., Words]) -> Iterator[Callable[..., None]]:
    """Make a callback for something slow.

    `words` turns the arguments of the callback into what is shown.
    """
    if not sys.stderr.isatty():
        yield _plain(words)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, began = bar.add_task("", total=None), time.monotonic()

        def update(*values: object) -> None:
            text, share = words(*values)
            text += time_left(time.monotonic() - began, share)
            total = None if share is None else 1.0
            bar.update(task, description=text, total=total, completed=share or 0.0)

        yield update


def search_words(value: float, lower: float, nodes: int) -> Words:
    """Progress of the search for a proven optimal tree.

    >>> search_words(0.02, 0.01, 1500)
    ('best 2 % · proven from 1 % · gap 50 % · 1,500 sets', None)
    """
    gap = (value - lower) / value if value > 0 else 0.0
    words = f"best {percent(value)} · proven from {percent(lower)} · gap {percent(gap)}"
    return f"{words} · {plural(nodes, 'set')}", None


def verify_words(done: int, items: int) -> Words:
    """Progress of the verification of a campaign.

    >>> verify_words(20_000, 80_000)
    ('20,000 of 80,000 items replayed', 0.25)
    """
    return f"{done:,} of {plural(items, 'item')} replayed", done / max(1, items)


def frontier_words(points: int, proven: float, gap: float) -> Words:
    """Progress of a frontier.

    >>> frontier_words(120, 0.25, 0.031)
    ('120 points · 25 % of the curve proven · gap at most 3.1 % · Ctrl-C keeps the curve', 0.25)
    """
    words = f"{plural(points, 'point')} · {percent(proven)} of the curve proven"
    return f"{words} · gap at most {percent(gap)} · Ctrl-C keeps the curve", proven


def item_words(done: int, total: int) -> Words:
    """Progress of a simulation.

    >>> item_words(5000, 10_000)
    ('simulating 10,000 items', 0.5)
    """
    return f"simulating {plural(total, 'item')}", done / total


def job_words(share: float, what: str) -> Words:
    """Progress of a job that says what it does."""
    return what, share


def stage_words(doing: str) -> Words:
    """Progress of something that says what it is doing.

    >>> stage_words("reading answers.csv")
    ('reading answers.csv', None)
    """
    return doing, None


def counting(what: str) -> Callable[[int, int], Words]:
    """Progress of something that is counted.

    >>> counting("the plan")(5, 1000)
    ('the plan: 5 of 1,000', 0.005)
    """
    return lambda done, total: (f"{what}: {done:,} of {total:,}", done / max(total, 1))
