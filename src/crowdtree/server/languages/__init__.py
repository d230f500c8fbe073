"""Texts of the pages for workers and auditors, one catalogue per language.

Every ``CODE.json`` next to this module is a language: ``name`` is shown in the menu, ``direction``
is ``ltr`` or ``rtl``, and ``texts`` has a text for every key. Placeholders are written ``{name}``.
A text that depends on a number has a form for each plural category of the language (``one``,
``few``, ``other`` and so on, as the Unicode CLDR names them); the browser chooses the form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from crowdtree.core.errors import CrowdtreeError

__all__ = [
    "CLASS",
    "ENGLISH",
    "EXPLANATION",
    "NAMED",
    "OWN",
    "QUESTION",
    "Catalogue",
    "Text",
    "accepted",
    "catalogues",
    "check_overrides",
    "english",
    "placeholders",
    "preferred",
]

FOLDER = Path(__file__).parent
ENGLISH = "en"
Text = str | Mapping[str, str]
"""A text, or its forms by plural category."""
OWN = ("instructions", "consent", "thanks")
"""Texts of the owner that can be given in every language."""
QUESTION = "question:"
"""Before the name of a question, the key of its text."""
CLASS, EXPLANATION = "class:", "explanation:"
"""Before the name of a class, the keys of its name for people and of its explanation."""
NAMED = (QUESTION, CLASS, EXPLANATION)
MAX_TAGS = 20
PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Catalogue:
    """The texts of one language."""

    code: str
    name: str
    direction: Literal["ltr", "rtl"]
    texts: Mapping[str, Text]


def catalogues() -> Mapping[str, Catalogue]:
    """All languages by their code, English first.

    >>> list(catalogues())[0], catalogues()["ar"].direction
    ('en', 'rtl')
    """
    return _read(FOLDER)


@cache
def _read(folder: Path) -> Mapping[str, Catalogue]:
    found = {path.stem: _catalogue(path) for path in sorted(folder.glob("*.json"))}
    base = found[ENGLISH].texts
    for code, made in found.items():  # a text that is missing is shown in English
        found[code] = Catalogue(code, made.name, made.direction, {**base, **made.texts})
    return {ENGLISH: found.pop(ENGLISH), **found}


def _catalogue(path: Path) -> Catalogue:
    found = json.loads(path.read_text(encoding="utf-8"))
    return Catalogue(path.stem, found["name"], found["direction"], found["texts"])


def english(key: str) -> str:
    """The English text of a key without plural forms.

    >>> english("answer.yes")
    'Yes'
    """
    return str(catalogues()[ENGLISH].texts[key])


def preferred(tags: Iterable[str]) -> str | None:
    """The first language that there is, of some language tags in order of preference.

    >>> preferred(["fr-CA", "de-AT", "en"]), preferred(["tlh"])
    ('de', None)
    """
    for tag in tags:
        wanted = tag.strip().lower().replace("_", "-")
        for code in catalogues():
            if wanted == code.lower() or wanted.startswith(f"{code.lower()}-"):
                return code
    return None


def accepted(header: str) -> list[str]:
    """The language tags of the HTTP header Accept-Language, the most wanted first.

    >>> accepted("en;q=0.5, de-AT, ar;q=0, *;q=0.1")
    ['de-AT', 'en']
    """
    found = []
    for part in header.split(",")[:MAX_TAGS]:
        tag, _, quality = part.partition(";")
        try:
            weight = float(quality.strip().removeprefix("q=") or 1)
        except ValueError:
            weight = 0.0
        if weight > 0 and tag.strip() not in ("", "*"):
            found.append((weight, tag.strip()))
    return [tag for _, tag in sorted(found, key=lambda pair: -pair[0])]


def placeholders(text: Text) -> set[str]:
    """Names of the placeholders of a text, in any of its forms.

    >>> sorted(placeholders("{count} of {most}"))
    ['count', 'most']
    """
    forms = [text] if isinstance(text, str) else text.values()
    return {name for form in forms for name in PLACEHOLDER.findall(form)}


def check_overrides(texts: Mapping[str, Mapping[str, str]]) -> None:
    """Raise unless every language and key exists, and no placeholder is unknown.

    >>> check_overrides({"de": {"answer.yes": "Ja!"}})
    >>> check_overrides({"de": {"answer.maybe": "Vielleicht"}})
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: de: no text 'answer.maybe'; the reference of texts lists all
    """
    known = catalogues()
    for code, changes in texts.items():
        if code not in known:
            raise CrowdtreeError(f"no language {code[:20]!r}; choose from {', '.join(known)}")
        for key, text in changes.items():
            if key in OWN or key.startswith(NAMED):
                continue
            if key not in known[code].texts:
                raise CrowdtreeError(
                    f"{code}: no text {key[:60]!r}; the reference of texts lists all"
                )
            unknown = placeholders(text) - placeholders(known[code].texts[key])
            if unknown:
                raise CrowdtreeError(f"{code}: {key}: no placeholder {{{min(unknown)[:40]}}}")
