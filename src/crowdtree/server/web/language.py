"""The language of the pages for workers and auditors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request
from starlette.responses import Response

from crowdtree.server.languages import (
    CLASS,
    ENGLISH,
    Catalogue,
    Text,
    accepted,
    catalogues,
    preferred,
)
from crowdtree.server.settings.model import Settings
from crowdtree.server.web.auth import remember
from crowdtree.server.web.state import state_of

COOKIE = "crowdtree_language"
PARAMETER = "lang"
MAX_HEADER = 500
PAGES = ("/w/", "/join/", "/work", "/a/", "/check")
"""Where the pages for workers and auditors begin."""


@dataclass(frozen=True)
class Speech:
    """The texts of a page in one language, with those that the owner has changed."""

    catalogue: Catalogue
    changes: Mapping[str, str]

    @property
    def code(self) -> str:
        """Code of the language."""
        return self.catalogue.code

    @property
    def direction(self) -> str:
        """Direction in which it is written."""
        return self.catalogue.direction

    @property
    def menu(self) -> list[tuple[str, str]]:
        """Code and name of every language."""
        return [(code, other.name) for code, other in catalogues().items()]

    @property
    def texts(self) -> dict[str, Text]:
        """All texts, for the script of the page."""
        return {**self.catalogue.texts, **self.changes}

    def own(self, key: str, text: str) -> str:
        """A text of the owner, in this language if there is one."""
        return self.changes.get(key) or text

    def __call__(self, key: str, **values: object) -> str:
        """Write a text without plural forms."""
        made = str(self.texts[key])
        for name, value in values.items():
            made = made.replace(f"{{{name}}}", str(value))
        return made

    def refusal(self, case: str, message: str = "") -> str:
        """The sentence for a refused request; without one, the message in English."""
        for key in (f"refused.{case}", f"refused.{case.partition('.')[0]}"):
            if key in self.texts:
                return self(key)
        return message


def speech_of(request: Request, settings: Settings | None = None) -> Speech:
    """The language for a request.

    In this order: the parameter ``lang`` of the address, what was chosen before (a cookie), the
    languages of the browser, the language of the campaign, English.
    """
    chosen = [request.query_params.get(PARAMETER, ""), request.cookies.get(COOKIE, "")]
    browser = accepted(request.headers.get("accept-language", "")[:MAX_HEADER])
    default = [] if settings is None else [settings.tasks.language]
    code = preferred([*chosen, *browser, *default]) or ENGLISH
    changes = {} if settings is None else _changes(settings, code)
    return Speech(catalogues()[code], {key: text for key, text in changes.items() if text})


def _changes(settings: Settings, code: str) -> dict[str, str]:
    """The owner's texts; classes without a name in a language have that of the campaign's own."""
    base = settings.tasks.texts.get(settings.tasks.language or ENGLISH, {})
    names = {key: text for key, text in base.items() if key.startswith(CLASS)}
    return {**names, **settings.tasks.texts.get(code, {})}


def keep_language(request: Request, response: Response) -> None:
    """Remember the language that the address asks for."""
    code = preferred([request.query_params.get(PARAMETER, "")])
    if code is not None:
        remember(response, state_of(request), COOKIE, code)


def for_workers(path: str) -> bool:
    """Whether a page is for workers or auditors.

    >>> for_workers("/join/abc"), for_workers("/c/1/workers")
    (True, False)
    """
    return path.startswith(PAGES)
