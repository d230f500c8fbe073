"""The rules of one campaign that its owner may choose."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from crowdtree.errors import CrowdtreeError

__all__ = ["MICRO", "Settings", "checked_settings", "web_address"]

MICRO = 1_000_000
"""Money is kept in whole millionths."""
Rate = Annotated[float, Field(ge=0, le=1)]
Short = Annotated[str, Field(max_length=2000)]


class Settings(BaseModel):
    """What an owner may choose for a campaign.

    >>> Settings(gold_rate=0.1).lease_seconds
    600.0
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    lease_seconds: Annotated[float, Field(ge=1, le=604_800)] = 600.0
    """How long a worker may hold a question."""
    leases_per_worker: Annotated[int, Field(ge=1, le=100)] = 3
    """Questions that one worker may hold at the same time (the next one is fetched ahead)."""
    one_question_per_item: bool = False
    """Whether a worker sees an item once only."""
    dedicated: bool = False
    """Whether each worker answers one question only, as in the paper."""
    most_skips: Annotated[int, Field(ge=1, le=1000)] = 3
    """Skips of a question on an item after which the item is set aside."""
    gold_rate: Rate = 0.0
    """Share of questions that are about items whose class is known."""
    gold_first: Annotated[int, Field(ge=0, le=1000)] = 0
    """How many questions about such items each worker gets first, to be known before they count."""
    pause_below: Rate | None = None
    """Reliability (share of right answers) below which a worker is paused."""
    pause_after: Annotated[int, Field(ge=1, le=100_000)] = 10
    """Judged answers before a worker can be paused."""
    give_up_seconds: Annotated[float, Field(ge=60, le=31_536_000)] | None = 604_800.0
    """How long an item waits for more workers when nobody here may answer it; then it is set aside
    with the best label so far. None: for ever, or until the campaign is finished."""
    answers_per_worker: Annotated[int, Field(ge=1)] | None = None
    """Answers after which a worker is thanked and done."""
    price: Annotated[float, Field(ge=0, le=1_000_000)] = 0.0
    """What one answer costs."""
    budget: Annotated[float, Field(gt=0, le=1_000_000_000)] | None = None
    """Most that all answers may cost together."""
    currency: Annotated[str, Field(max_length=8)] = ""
    finish_by_itself: bool = True
    """Whether the campaign finishes when its last item is labelled."""
    instructions: Annotated[str, Field(max_length=50_000)] = ""
    """What workers read first; Markdown."""
    examples: dict[str, Annotated[str, Field(max_length=20_000)]] = {}
    """Examples for a question, by its name; Markdown."""
    thanks: Short = ""
    completion_code: Annotated[str, Field(max_length=200)] = ""
    return_url: Short = ""
    """Where a worker goes at the end; an https address."""
    participant_parameter: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_]*$")] = (
        "PROLIFIC_PID"
    )
    """Name of the participant id in the address by which a platform sends its workers."""

    @field_validator("return_url")
    @classmethod
    def _return_url(cls, value: str) -> str:
        return web_address(value, "return_url") if value else value

    @property
    def price_micros(self) -> int:
        """Price of one answer in millionths."""
        return round(self.price * MICRO)

    @property
    def budget_micros(self) -> int | None:
        """Budget in millionths."""
        return None if self.budget is None else round(self.budget * MICRO)


def checked_settings(values: dict[str, Any]) -> Settings:
    """Read settings, or say in one line what is wrong.

    >>> checked_settings({"gold_rate": 2})
    Traceback (most recent call last):
        ...
    crowdtree.errors.CrowdtreeError: settings: gold_rate: Input should be less than or equal to 1
    """
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CrowdtreeError(f"settings: {where}: {first['msg']}") from None


def web_address(value: str, what: str) -> str:
    """Accept an https address without user name, or raise.

    >>> web_address("javascript:alert(1)", "return_url")
    Traceback (most recent call last):
        ...
    crowdtree.errors.CrowdtreeError: return_url: must be an https:// address, without a user name
    """
    try:
        parts = urlsplit(value)
        good = parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        good = False
    if not good or any(c.isspace() or c in "\\\"'<>" or ord(c) < 32 for c in value):
        raise CrowdtreeError(f"{what}: must be an https:// address, without a user name")
    return value
