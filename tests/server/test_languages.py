"""The catalogues: complete, consistent, used, and chosen as people wish."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server import languages
from crowdtree.server.languages import (
    accepted,
    catalogues,
    check_overrides,
    placeholders,
    preferred,
)

SOURCE = Path(languages.__file__).parents[1]
CODES = sorted(path.stem for path in Path(languages.__file__).parent.glob("*.json"))
PLURALS = {"zero", "one", "two", "few", "many", "other"}
BUILT = ("answer.", "key.", "report.", "refused.", "pause.", "check.")
"""Beginnings of keys that pages and scripts put together."""


def stored(code: str) -> dict[str, str | dict[str, str]]:
    """The texts as they are in the file, without English ones for those that are missing."""
    path = Path(languages.__file__).parent / f"{code}.json"
    found: dict[str, str | dict[str, str]] = json.loads(path.read_text("utf-8"))["texts"]
    return found


def test_there_are_four_languages_and_one_is_written_from_right_to_left() -> None:
    assert {"en", "de", "es", "ar"} <= set(CODES)
    assert [code for code in CODES if catalogues()[code].direction == "rtl"] == ["ar"]


@pytest.mark.parametrize("code", CODES)
def test_catalogues_have_the_same_keys_and_placeholders(code: str) -> None:
    english, mine = stored("en"), stored(code)
    assert list(mine) == list(english)
    for key, text in mine.items():
        assert placeholders(text) == placeholders(english[key]), key
        assert isinstance(text, str) == isinstance(english[key], str), key
        if isinstance(text, dict):
            assert set(text) <= PLURALS, key
            assert placeholders(text["other"]) == placeholders(english[key]), key
        assert all(part.strip() == part != "" for part in _forms(text)), key


def _forms(text: str | dict[str, str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text.values())


@pytest.mark.parametrize("code", [code for code in CODES if code != "en"])
def test_texts_are_translated(code: str) -> None:
    english, mine = stored("en"), stored(code)
    same = [key for key, text in mine.items() if text == english[key] and "key" not in key]
    assert set(same) <= {"undo.what", "answer.no"}


@pytest.mark.parametrize("code", CODES)
def test_keys_of_answers_are_different_letters(code: str) -> None:
    keys = [stored(code)[f"key.{name}"] for name in ("yes", "no", "skip", "undo")]
    assert all(isinstance(key, str) and re.fullmatch("[A-Z]", key) for key in keys)
    assert len(set(map(str, keys))) == 4


def test_every_text_is_used_and_every_used_text_exists() -> None:
    scripts = (path for path in SOURCE.glob("web/static/*.js") if path.stem != "owner")
    files = [*SOURCE.glob("web/templates/*.html"), *scripts]
    files += [*SOURCE.glob("web/**/*.py"), *SOURCE.glob("store/**/*.py")]
    text = "\n".join(path.read_text("utf-8") for path in files)
    known = stored("en")
    said = set(re.findall(r"""\b(?:say|english)\(["']([\w.]+)["']""", text))
    said |= {f"refused.{case}" for case in re.findall(r'Refused\("([\w.]+)"\)', text)}
    said |= {f"refused.{case}" for case in re.findall(r'HttpError\(\d+, "([\w.]+)"\)', text)}
    whole = {key for key in said if not key.endswith(".")}
    assert sorted(whole - set(known)) == []
    quoted = set(re.findall(r"""["'`]([\w.]+)["'`]""", text))
    unused = [key for key in known if key not in quoted and not key.startswith(BUILT)]
    assert unused == []


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("fr, es;q=0.5, en;q=0.7", "en"),
        ("AR-eg", "ar"),
        ("*", None),
        ("de;q=0, es;q=abc", None),
        (",".join(["tlh"] * 50 + ["de"]), None),  # only the first ones are read
        ("", None),
    ],
)
def test_the_browser_chooses_a_language(header: str, code: str | None) -> None:
    assert preferred(accepted(header)) == code


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"tlh": {}}, "no language 'tlh'; choose from en, ar, de, es"),
        ({"de": {"answer.maybe": "x"}}, "de: no text 'answer.maybe'"),
        ({"de": {"count.of": "{count} von {all}"}}, "de: count.of: no placeholder {all}"),
    ],
)
def test_wrong_texts_of_owners_are_refused(texts: dict[str, dict[str, str]], words: str) -> None:
    with pytest.raises(CrowdtreeError) as error:
        check_overrides(texts)
    assert words in str(error.value)


def test_texts_of_owners_are_accepted() -> None:
    check_overrides({"de": {"question:T1": "Rot?", "consent": "Ja {so}", "count.of": "{count}"}})
