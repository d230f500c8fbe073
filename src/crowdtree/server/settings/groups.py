"""The settings of a campaign by group: one ``setting(...)`` defines all that is known of one."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from crowdtree.core.errors import one_line
from crowdtree.server.languages import catalogues, check_overrides
from crowdtree.server.settings.group import (
    ANSWERS,
    HOURS,
    ITEMS,
    MAX_COUNT,
    MINUTES,
    PEOPLE,
    PERCENT,
    Group,
    setting,
)

Page = Annotated[str, Field(max_length=50_000)]
MICRO = 1_000_000
"""Money is stored in whole millionths."""
ADAPTIVE = ("adaptive", "subtypes")
"""Policies that choose questions and stop by the table, as their documents name them."""
BOUND = "finish.max_wrong_labels"
"""The setting that other forms write in the same unit."""


class People(Group):
    """Who may answer."""

    may_join: Literal["any", "named", "signed"] = setting(
        "any",
        "Who may join by the open link",
        "Anybody, only people with a participant id in the link, or only people with a signed one.",
        "Without signed ids, one person can join several times.",
        choices=("anybody", "with an id in the link", "with a signed id, which nobody can choose"),
    )
    max_workers: int = setting(
        10_000,
        "At most this many people",
        "Nobody joins beyond this number; people whom you invite do not count.",
        "With fewer people the campaign takes longer.",
        PEOPLE,
        ge=1,
        le=1_000_000,
    )
    max_workers_per_address: int = setting(
        1_000,
        "From one internet address, at most",
        "People who may join from one internet address.",
        "A low number keeps out people who share an address, such as a school.",
        PEOPLE,
        ge=1,
        le=1_000_000,
    )
    max_joins_per_hour: int = setting(
        3_000,
        "Within an hour, at most",
        "People who may join within an hour.",
        "A low number makes people wait when many come at once.",
        PEOPLE,
        ge=1,
        le=1_000_000,
    )
    participant_parameter: str = setting(
        "PROLIFIC_PID",
        "Name of the id in the link",
        "Query parameter in which a recruiting platform passes the participant id.",
        "Nothing.",
        max_length=64,
        pattern=r"^[A-Za-z0-9_]*$",
    )
    signing_key: int = setting(
        0,
        "Signing key",
        "Number of the key that signs participant ids; the next number is a new key.",
        "Your own site needs each new key.",
        where="page",
        ge=0,
        le=1_000_000,
    )
    oldest_signing_key: int = setting(
        0,
        "Oldest valid signing key",
        "Links that were signed with a key of a lower number are refused.",
        "People with an older link need a new one.",
        where="page",
        ge=0,
        le=1_000_000,
    )


class Tasks(Group):
    """What people read and do."""

    instructions: Page = setting(
        "",
        "Instructions",
        "Shown before the first question and at any time after; Markdown.",
        "Reading time: about a minute for 200 words.",
        lines=5,
    )
    examples: dict[str, Annotated[str, Field(max_length=20_000)]] = setting(
        {},
        "Examples",
        "Examples for questions, by question name; Markdown.",
        "Reading time, once for each question.",
        where="page",
    )
    consent: Page = setting(
        "",
        "Consent",
        "What people must agree to before they get a question; whoever agreed to another text is "
        "asked again; Markdown.",
        "People who do not agree do not answer.",
        lines=3,
    )
    thanks: str = setting(
        "", "Closing words", "What people read at the end.", "Nothing.", max_length=2000
    )
    language: str = setting(
        "",
        "Language of the worker page",
        "Language where neither the worker nor their browser asks for one that there is; English "
        "if empty.",
        "Nothing.",
    )
    texts: dict[str, dict[str, Page]] = setting(
        {},
        "Texts of the page",
        "Texts of the worker page that replace those of the catalogues, by language and key.",
        "Nothing.",
        where="page",
    )
    max_answers_per_worker: int | None = setting(
        None,
        "Answers per person, at most",
        "After this many answers a worker has finished.",
        "With a limit the campaign needs more people.",
        ANSWERS,
        ge=1,
        le=MAX_COUNT,
    )
    max_seconds_per_question: float = setting(
        600.0,
        "Time for a question",
        "How long a question is kept for a worker before somebody else gets it.",
        "An item waits up to {} for a worker who walks away.",
        MINUTES,
        ge=1,
        le=604_800,
    )
    max_open_questions: int = setting(
        3,
        "Open questions per person",
        "Questions that a worker may have open at once (pages fetch the next one early); only one "
        "before the first answer and after one that was not answered in time.",
        "Up to {} questions wait while one worker is away.",
        where="program",
        ge=1,
        le=100,
    )
    one_question_per_item: bool = setting(
        False,
        "Nobody sees the same item twice",
        "A worker answers at most one question about an item.",
        "Each item needs as many people as answers.",
    )
    one_question_per_worker: bool = setting(
        False,
        "Each person answers only one question",
        "A worker answers the same question about many items, as in the paper; requires a plan.",
        "Every question of the plan needs people of its own.",
    )
    show_item_names: bool = setting(
        False,
        "Send workers the names of the items",
        "Workers get the names that you gave items and files; without it they get other names, "
        "except of items that are only names.",
        "Names may tell what an item is, or which items are check items.",
    )

    @field_validator("language")
    @classmethod
    def _language(cls, value: str) -> str:
        if value and value not in catalogues():
            raise ValueError(f"no language {value[:20]!r}; choose from {', '.join(catalogues())}")
        return value

    @field_validator("texts")
    @classmethod
    def _texts(cls, value: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        check_overrides(value)
        return value

    @cached_property
    def consent_mark(self) -> str:
        """Identifies what workers must agree to, in all languages; empty for nothing.

        >>> Tasks().consent_mark, len(Tasks(consent="I take part.").consent_mark)
        ('', 16)
        """
        if not self.consent.strip():
            return ""
        other = {code: texts["consent"] for code, texts in self.texts.items() if "consent" in texts}
        content = json.dumps([self.consent, other], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


class Labels(Group):
    """When an item gets its label."""

    people_per_item: int = setting(
        2,
        "People per label, at least",
        "Different people whose answers a label rests on.",
        "Each item takes at least {} answers.",
        PEOPLE,
        fixed=True,
        ge=1,
        le=100,
    )
    require_trusted_answer: bool = setting(
        True,
        "Hold a label back until a trusted worker's answers support it",
        "Trusted are people whom you invited or vouched for, and people who agree with check items "
        "or with trusted people beyond chance.",
        "Labels wait, or the campaign stops, where nobody is trusted.",
    )
    max_skips: int = setting(
        3,
        "Set an item aside when this many people can't tell",
        "Skips of a question about an item; those of people without a record of answers count "
        "less.",
        "A high number takes more time of people; a low one leaves more items without a label.",
        PEOPLE,
        fixed=True,
        ge=1,
        le=1000,
    )
    close_stalled_after_seconds: float | None = setting(
        604_800.0,
        "Close an item that nobody present may answer after",
        "The item gets its best label so far, with a larger error. It waits for a week at least "
        "while fewer people have seen it than a label takes; if empty, until you finish.",
        "A short time gives up accuracy; a long one delays the end by up to {}.",
        HOURS,
        ge=60,
        le=31_536_000,
    )


class Checks(Group):
    """How careful people are."""

    gold_rate: float = setting(
        0.0,
        "Check items",
        "Share of the questions that are about gold items: items whose class you know.",
        "{} of the answers that you pay for label nothing new.",
        PERCENT,
        ge=0,
        le=1,
    )
    gold_first: int = setting(
        0,
        "Check items for newcomers",
        "Gold questions that a new worker answers before ordinary ones.",
        "{} answers per person that label nothing new.",
        ITEMS,
        ge=0,
        le=1000,
    )
    practice_items: int = setting(
        0,
        "Practice items",
        "Gold items with which every new worker practises; the right answer is shown, nothing is "
        "counted or paid, and they are not used as check items.",
        "The time of each person for {} questions.",
        ITEMS,
        ge=0,
        le=50,
    )
    pause_suspects: bool = setting(
        True,
        "Pause suspicious people",
        "Pause workers if they answer far faster than others, and exclude their answers as well if "
        "they answer like one another, or wrongly, beyond chance.",
        "Honest people can be paused by mistake; their answers are asked again.",
    )
    pause_below: float | None = setting(
        None,
        "Pause people below",
        "Share of right answers below which a worker is paused; never if empty.",
        "Fewer people answer.",
        PERCENT,
        ge=0,
        le=1,
    )
    pause_after_checks: int = setting(
        10,
        "but only after",
        "Answers that are compared with known or decided classes before a worker can be paused.",
        "A careless worker gives at least {} answers.",
        ANSWERS,
        ge=1,
        le=100_000,
    )

    @property
    def asks_gold(self) -> bool:
        """Whether workers are asked about gold items, in practice or after it."""
        return self.gold_rate > 0 or self.gold_first > 0 or self.practice_items > 0


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


class Table(Group):
    """What the table of errors is worth."""

    revise: bool | None = setting(
        None,
        "Revise the table when the answers contradict it",
        "Labels may be taken back; by default on for adaptive policies and off for plans.",
        "More answers per item where the table was too hopeful.",
    )
    person_dependence: float = setting(
        0.2,
        "Dependence of one person's answers",
        "Correlation of a worker's answers to different questions about one item: n of them count "
        "as n / (1 + (n - 1) x) answers; 0 is independent.",
        "A high value takes more answers per item; a low one states too small an error.",
        where="program",
        fixed=True,
        ge=0,
        lt=1,
    )

    def revises(self, policy: str) -> bool:
        """Whether a campaign with this sort of policy revises its table.

        >>> Table().revises("adaptive"), Table().revises("plan")
        (True, False)
        """
        return policy in ADAPTIVE if self.revise is None else self.revise


class Finish(Group):
    """When the campaign ends."""

    automatically: bool = setting(
        True,
        "Finish when the last item has its label",
        "If only untrusted workers support some labels, the campaign waits for you all the same.",
        "Without it you finish the campaign yourself.",
    )
    max_wrong_labels: float | None = setting(
        None,
        "Finish only when an audit certifies wrong labels of at most",
        "A sample of the labels is checked by you or an expert; no audit if empty.",
        "Somebody checks labels: the smaller the share, the more.",
        PERCENT,
        gt=0,
        lt=1,
    )
    max_checks: int | None = setting(
        None,
        "Checks, at most",
        "Checks after which a bound that is not certified counts as out of reach; no limit if "
        "empty.",
        "A low number may leave the labels without a certificate.",
        ITEMS,
        ge=1,
        le=MAX_COUNT,
    )
