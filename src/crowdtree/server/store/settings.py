"""The settings of a campaign."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from crowdtree.campaign.view import ItemRules
from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.server.languages import catalogues, check_overrides

log = logging.getLogger("crowdtree.server.store")
MICRO = 1_000_000
"""Money is stored in whole millionths."""
MOST = 1_000_000_000
"""Largest count; databases hold no more than 64 bits."""
ADAPTIVE = ("adaptive", "subtypes")
"""Policies that choose questions and stop by the table, as their documents name them."""
NEVER = 2**31 - 1
"""More workers than there can be."""
Rate = Annotated[float, Field(ge=0, le=1)]
Short = Annotated[str, Field(max_length=2000)]


class Settings(BaseModel):
    """What an owner can choose for a campaign.

    >>> Settings(gold_rate=0.1).lease_seconds
    600.0
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    lease_seconds: Annotated[float, Field(ge=1, le=604_800)] = 600.0
    """How long a worker may hold a question."""
    leases_per_worker: Annotated[int, Field(ge=1, le=100)] = 3
    """Questions that one worker may hold at the same time (pages prefetch the next one); only one
    before the first answer, and after a lease that expired."""
    one_question_per_item: bool = False
    """Whether a worker sees an item only once."""
    dedicated: bool = False
    """Whether each worker answers only one question, as in the paper."""
    most_skips: Annotated[int, Field(ge=1, le=1000)] = 3
    """Skips of a question on an item after which the item is set aside, each by a person with a
    record of answers; those of people without one weigh less."""
    people_per_item: Annotated[int, Field(ge=1, le=100)] = 2
    """Different workers whose answers a label rests on at least."""
    person_dependence: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Correlation of one worker's answers to different questions about one item: n of them count as
    n / (1 + (n - 1) person_dependence) answers. 0: independent."""
    provisional: bool = True
    """Whether a label waits until somebody is known whose answers speak for it. Known are people
    whom the owner invited or vouched for, and those whose answers agree with gold items or with
    known people beyond chance."""
    pause_suspects: bool = True
    """Whether the server pauses workers, and excludes their answers, if they answer faster than
    people read, like one another beyond chance, or wrongly beyond chance."""
    gold_rate: Rate = 0.0
    """Share of questions that are about gold items (items whose class is known)."""
    gold_first: Annotated[int, Field(ge=0, le=1000)] = 0
    """Gold questions that a new worker must answer before ordinary ones."""
    pause_below: Rate | None = None
    """Reliability (expected share of right answers) below which a worker is paused."""
    pause_after: Annotated[int, Field(ge=1, le=100_000)] = 10
    """Answers to compare with known or decided classes before a worker can be paused."""
    give_up_seconds: Annotated[float, Field(ge=60, le=31_536_000)] | None = 604_800.0
    """How long an item waits for more workers when nobody present may answer it; then it is set
    aside with the best label so far. None: until the campaign is finished."""
    answers_per_worker: Annotated[int, Field(ge=1, le=MOST)] | None = None
    """Answers after which a worker has finished."""
    price: Annotated[float, Field(ge=0, le=1_000_000)] = 0.0
    """Price per answer."""
    budget: Annotated[float, Field(ge=1 / MICRO, le=1_000_000_000)] | None = None
    """Maximum cost of all answers together."""
    currency: Annotated[str, Field(max_length=8)] = ""
    """Shown next to amounts, such as EUR."""
    finish_by_itself: bool = True
    """Whether the campaign finishes when its last item is labelled. Where some labels
    rest on strangers alone, it waits for the owner all the same."""
    adapt: bool | None = None
    """Whether the table is revised when the answers contradict it. None: where the policy chooses
    questions and stops by the table, which a plan does not."""
    certify: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of wrong labels that an audit must certify before the campaign finishes by itself."""
    most_checks: Annotated[int, Field(ge=1, le=MOST)] | None = None
    """Checks after which a bound that is not certified counts as out of reach."""
    show_task: bool = False
    """Whether workers get the names that the owner gave the items and their files. They may say
    what an item is, or which ones are gold; without it workers get other names, except of items
    that are only names."""
    most_workers: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Workers of the campaign; nobody joins beyond it. Invited people do not count."""
    workers_per_address: Annotated[int, Field(ge=1, le=1_000_000)] = 1_000
    """Workers who may join from one internet address."""
    joins_per_hour: Annotated[int, Field(ge=1, le=1_000_000)] = 3_000
    """Workers who may join within an hour."""
    participants: Literal["any", "named", "signed"] = "any"
    """Who may join by the open link: anybody, those with a participant id in the link, or only
    those with a signed one."""
    signing_key: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Number of the key with which participant ids are signed; the next number is a new key."""
    oldest_signing_key: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Links that were signed with a key of a lower number are refused."""
    instructions: Annotated[str, Field(max_length=50_000)] = ""
    """Instructions for workers, in Markdown."""
    examples: dict[str, Annotated[str, Field(max_length=20_000)]] = {}
    """Examples for questions, by question name, in Markdown."""
    consent: Annotated[str, Field(max_length=50_000)] = ""
    """What workers must agree to before they get a question, in Markdown. Whoever agreed to another
    text is asked again."""
    training: Annotated[int, Field(ge=0, le=50)] = 0
    """Gold items with which every new worker practises: the first ones, which are then not used as
    check items. The right answer is shown; nothing is counted or paid."""
    language: str = ""
    """Language of the worker page where neither the worker nor their browser asks for one that
    there is; English if empty."""
    texts: dict[str, dict[str, Annotated[str, Field(max_length=50_000)]]] = {}
    """Texts of the worker page that replace those of the catalogues, by language and key."""
    thanks: Short = ""
    """What workers read at the end."""
    completion_code: Annotated[str, Field(max_length=200)] = ""
    """Code that all workers get at the end, such as the one of a Prolific study."""
    personal_codes: bool = False
    """Whether each worker gets a code of their own instead, which nobody can guess or pass on."""
    least_answers: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Accepted answers before a worker gets the code and the link back."""
    return_url: Short = ""
    """Where workers are sent at the end; an https address."""
    participant_parameter: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_]*$")] = (
        "PROLIFIC_PID"
    )
    """Query parameter in which a recruiting platform passes the participant id."""

    @field_validator("price")
    @classmethod
    def _price(cls, value: float) -> float:
        if 0 < value < 1 / MICRO:
            raise ValueError("must be 0 or at least 0.000001")
        return value

    @field_validator("return_url")
    @classmethod
    def _return_url(cls, value: str) -> str:
        return web_address(value, "return_url") if value else value

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

    def adapts(self, policy: str) -> bool:
        """Whether a campaign with this sort of policy revises its table.

        >>> Settings().adapts("adaptive"), Settings().adapts("plan")
        (True, False)
        """
        return policy in ADAPTIVE if self.adapt is None else self.adapt

    @property
    def asks_gold(self) -> bool:
        """Whether workers are asked about gold items, in the training or after it."""
        return self.gold_rate > 0 or self.gold_first > 0 or self.training > 0

    @cached_property
    def consent_mark(self) -> str:
        """Identifies what workers must agree to, in all languages; empty for nothing.

        >>> Settings().consent_mark, len(Settings(consent="I take part.").consent_mark)
        ('', 16)
        """
        if not self.consent.strip():
            return ""
        said = {code: texts["consent"] for code, texts in self.texts.items() if "consent" in texts}
        told = json.dumps([self.consent, said], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def rules(self) -> ItemRules:
        """The rules by which items are judged."""
        return ItemRules(
            max_skips=self.most_skips,
            people=self.people_per_item,
            person_dependence=self.person_dependence,
        )

    @property
    def people_first(self) -> int:
        """Workers who must have answered about an item before one of them is asked again.

        >>> Settings(people_per_item=1).people_first, Settings(people_per_item=3).people_first
        (0, 3)
        """
        if self.one_question_per_item:
            return NEVER
        return self.people_per_item if self.people_per_item > 1 else 0

    @property
    def price_micros(self) -> int:
        """Price of one answer in millionths."""
        return round(self.price * MICRO)

    @property
    def budget_micros(self) -> int | None:
        """Budget in millionths."""
        return None if self.budget is None else round(self.budget * MICRO)


def checked_settings(values: Mapping[str, object]) -> Settings:
    """Validate settings that an owner sent, or raise with one line about the first mistake.

    >>> checked_settings({"gold_rate": 2})
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: settings: gold_rate: Input should be less than or equal to 1
    """
    try:
        return Settings.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = ", ".join(sorted(Settings.model_fields))
            raise CrowdtreeError(
                f"settings: {one_line(where)}: no such setting; choose from {known}"
            ) from None
        words = first["msg"].removeprefix("Value error, ")  # of validators of our own
        raise CrowdtreeError(f"settings: {where}: {words}") from None


def stored_settings(text: str) -> Settings:
    """Read the settings of a stored campaign, which another version may have written.

    Settings that this version does not know are ignored; new ones, and those that another version
    allowed and this one does not, get their default.

    >>> found = stored_settings('{"price": 0.05, "retired": 1, "most_checks": 99999999999999999}')
    >>> found.price, found.most_checks == Settings().most_checks
    (0.05, True)
    """
    known = {k: v for k, v in json.loads(text).items() if k in Settings.model_fields}
    try:
        return Settings.model_validate(known)
    except ValidationError as error:
        wrong = {str(found["loc"][0]) for found in error.errors() if found["loc"]}
        log.warning("stored settings that are out of range count as not set: %s", sorted(wrong))
        return Settings.model_validate({k: v for k, v in known.items() if k not in wrong})


def web_address(value: str, what: str) -> str:
    """Accept an https address without user name, or raise.

    >>> web_address("javascript:alert(1)", "return_url")
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: return_url: must be an https:// address, without a user name
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
