"""Stop the clock of a page, so that it sends nothing by itself and no test is in a hurry."""

from __future__ import annotations

from datetime import UTC, datetime

from playwright.sync_api import Page

BRIEF, HOLD = 1500, 5000
"""Milliseconds after which worker.js sends the last answer: with nothing else to show, and else."""
AHEAD = 5
"""Seconds to jump when the clock stops: less than the page waits for anything."""


def freeze(page: Page) -> None:
    """Stop the clock, after `page.clock.install()` before the page was loaded."""
    now = page.evaluate("Date.now()") / 1000
    page.clock.pause_at(datetime.fromtimestamp(now + AHEAD, UTC))


def press_now(page: Page, key: str) -> None:
    """Answer while the clock stands; a faster key would be taken for a double one."""
    page.locator("#task").wait_for()
    page.clock.run_for(250)
    page.keyboard.press(key)
