"""What workers read and do."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Annotated

from pydantic import Field, field_validator

from crowdtree.server.languages import catalogues, check_overrides
from crowdtree.server.settings.group import ANSWERS, MAX_COUNT, MINUTES, Group, setting

Page = Annotated[str, Field(max_length=50_000)]


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
