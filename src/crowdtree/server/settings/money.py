"""What workers get for their answers."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import field_validator

from crowdtree.core.errors import one_line
from crowdtree.server.settings.group import ANSWERS, Group, setting

MICRO = 1_000_000
"""Money is stored in whole millionths."""


class Money(Group):
    """What people get."""

    price: float = setting(
        0.0,
        "Price per answer",
        "Paid for every accepted answer.",
        "Price times answers per item is the price of a label.",
        ge=0,
        le=1_000_000,
    )
    currency: str = setting(
        "", "Currency", "Shown next to amounts, such as EUR.", "Nothing.", max_length=8
    )
    budget: float | None = setting(
        None,
        "Total budget",
        "Maximum cost of all answers together; no limit if empty.",
        "Items that are not labelled when it is spent get their best label so far.",
        ge=1 / MICRO,
        le=1_000_000_000,
    )
    completion_code: str = setting(
        "",
        "Completion code",
        "Code that all workers get at the end, such as the one of a Prolific study.",
        "People can pass it on.",
        max_length=200,
    )
    personal_codes: bool = setting(
        False,
        "Give everybody a code of their own instead",
        "Nobody can guess it or pass it on.",
        "Prolific wants the same code for all.",
    )
    min_answers_for_code: int = setting(
        1,
        "Accepted answers needed for the code",
        "Accepted answers before a worker gets the code and the link back.",
        "People who stop earlier get no code.",
        ANSWERS,
        ge=1,
        le=1_000_000,
    )
    return_url: str = setting(
        "",
        "Link back to your platform",
        "Where workers are sent at the end; an https address.",
        "Nothing.",
        max_length=2000,
    )

    @field_validator("price")
    @classmethod
    def _price(cls, value: float) -> float:
        if 0 < value < 1 / MICRO:
            raise ValueError("must be 0 or at least 0.000001")
        return value

    @field_validator("return_url")
    @classmethod
    def _return_url(cls, value: str) -> str:
        return web_address(value) if value else value

    @property
    def price_micros(self) -> int:
        """Price of one answer in millionths."""
        return round(self.price * MICRO)

    @property
    def budget_micros(self) -> int | None:
        """Budget in millionths."""
        return None if self.budget is None else round(self.budget * MICRO)


def web_address(value: str) -> str:
    """Accept an https address without user name, or raise.

    >>> web_address("javascript:alert(1)")
    Traceback (most recent call last):
        ...
    ValueError: expected an https:// address without a user name, got 'javascript:alert(1)'
    """
    try:
        parts = urlsplit(value)
        good = parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        good = False
    if not good or any(c.isspace() or c in "\\\"'<>" or ord(c) < 32 for c in value):
        raise ValueError(f"expected an https:// address without a user name, got {one_line(value)}")
    return value
