"""Worker pages: every text is in the catalogues, and the language is the worker's."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server import languages
from crowdtree.server.web import pages
from tests.weblab import Lab, lab

WEB = Path(pages.__file__).parent
TEMPLATES = ("work.html", "check.html", "refused.html", "macros-worker.html")
SCRIPTS = ("worker", "preparing", "summary", "texts", "item", "outbox", "check", "api")
SPOKEN = ("aria-label", "alt", "title", "placeholder")
"""Attributes that people read or hear."""


@pytest.fixture
def app() -> Iterator[Lab]:
    with lab() as made:
        yield made


# ---------------------------------------------------------------- nothing outside the catalogues


class Texts(HTMLParser):
    """Texts and spoken attributes of a page; what is inside an element of the owner is left out."""

    def __init__(self, owners: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.found: list[str] = []
        self.owners = owners
        self.stack: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.found += [str(given[name]) for name in SPOKEN if given.get(name)]
        if tag not in ("meta", "link", "input", "br", "img"):
            mine = tag in ("script", "style", "option", "kbd")
            self.stack.append(mine or (given.get("dir") == "auto" and tag in self.owners))

    def handle_endtag(self, _: str) -> None:
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        if not any(self.stack):
            self.found.append(data)


def words(text: str) -> list[str]:
    """Words in the markup of a template, without its expressions and statements."""
    plain = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", text, flags=re.S)
    parser = Texts()
    parser.feed(plain)
    return [part.strip() for part in parser.found if re.search(r"[^\W\d_]", part)]


def literals(text: str) -> list[str]:
    """Strings of a script that look like words for people."""
    text = re.sub(r"(?m)^\s*//.*$|\s// .*$", "", text)
    found = re.findall(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', text)
    parts = (re.sub(r"\$\{[^}]*\}", "", plain or template) for plain, template in found)
    return [part for part in parts if _is_prose(part)]


def _is_prose(text: str) -> bool:
    """Whether a text has a capitalised word, or several words that are no selector."""
    listed = re.fullmatch(r"[a-z]+(?:, [a-z]+)+", text)
    selects = all(re.search(r"[#.\[:>][a-z]|>", part) for part in text.split())
    if listed or (selects and not text.endswith(".")):
        return False
    several = re.search(r"[^\W\d_]{2,} [^\W\d_]{2,}", text)
    return bool(several or re.search(r"\b[A-Z][a-z]+\b", text))


CODES = {"all answered", "worker paused", "asking again", "not started", "Key", "words large"}
"""Codes of the API, names of keys, and classes of the style sheet."""


def test_the_searches_find_words() -> None:
    assert words("<p>{{ say('x') }} Hello</p><a title='Go on'></a>") == ["Hello", "Go on"]
    assert literals(
        'a = "Thank you"; b = `${n} answers are kept`; c = "div.x > p"; d = "Copied"'
    ) == [
        *("Thank you", " answers are kept", "Copied"),
    ]


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_hold_no_words(name: str) -> None:
    assert words((WEB / "templates" / name).read_text("utf-8")) == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_hold_no_words(name: str) -> None:
    found = literals((WEB / "static" / f"{name}.js").read_text("utf-8"))
    assert [text for text in found if text not in CODES] == []


# ---------------------------------------------------------------- a new language


def bracketed(text: str | dict[str, str]) -> str | dict[str, str]:
    if isinstance(text, str):
        return f"⟦{text}⟧"
    return {form: f"⟦{words}⟧" for form, words in text.items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The catalogues with a language that nobody speaks."""
    for path in Path(languages.__file__).parent.glob("*.json"):
        shutil.copy(path, tmp_path)
    found = json.loads((tmp_path / "en.json").read_text("utf-8"))
    texts = {key: bracketed(text) for key, text in found["texts"].items()}
    made = {"name": "Newspeak", "direction": "rtl", "texts": texts}
    (tmp_path / "xx.json").write_text(json.dumps(made), "utf-8")
    monkeypatch.setattr(languages, "FOLDER", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_new_language_needs_only_its_catalogue(app: Lab) -> None:
    owners = {"instructions": "Look **well**.", "consent": "I take part.", "practice_items": 1}
    number = app.campaign(settings={**owners, "language": "xx", "max_answers_per_worker": 3})
    worker = app.worker(number)
    head = {**worker.headers, "accept-language": "xx"}
    page = app.client.get("/work", headers=head).text
    assert '<html lang="xx" dir="rtl">' in page
    assert ">Newspeak</option>" in page
    parser = Texts(owners=("span", "div"))
    parser.feed(re.sub(r"<title>.*?</title>", "", page))
    shown = [text.strip() for text in parser.found if re.search(r"[^\W\d_]", text)]
    assert len(shown) > 40
    assert [text for text in shown if not re.fullmatch(r"([\s·]*⟦[^⟧]*⟧[\s·]*)+", text)] == []


@pytest.mark.usefixtures("folder")
def test_texts_that_a_new_catalogue_lacks_are_english(folder: Path) -> None:
    (folder / "yy.json").write_text('{"name": "Y", "direction": "ltr", "texts": {"help": "H"}}')
    languages._read.cache_clear()
    texts = languages.catalogues()["yy"].texts
    assert (texts["help"], texts["close"]) == ("H", "Close")


# ---------------------------------------------------------------- whose language


def html(app: Lab, path: str = "/work", **head: str) -> str:
    found: str = app.client.get(path, headers=head).text
    return found


def lang(text: str) -> str:
    found = re.search(r'<html lang="(\w+)"', text)
    assert found is not None
    return found[1]


def test_the_language_is_asked_for_then_chosen_then_the_browsers_then_the_campaigns(
    app: Lab,
) -> None:
    worker = app.worker(app.campaign(settings={"language": "es"}))
    assert lang(html(app, **worker.headers)) == "es"
    assert lang(html(app, **worker.headers, **{"accept-language": "fr,de;q=0.5"})) == "de"
    browser = {**worker.headers, "accept-language": "de"}
    assert lang(html(app, "/work?lang=ar-EG", **browser)) == "ar"
    assert app.client.cookies["crowdtree_language"] == "ar"
    assert lang(html(app, **browser)) == "ar"  # chosen before
    assert lang(html(app, "/work?lang=en", **browser)) == "en"
    assert lang(html(app, "/work?lang=nonsense", **browser)) == "en"


def test_links_keep_the_language_that_they_ask_for(app: Lab) -> None:
    number = app.campaign()
    link = app.post(f"/api/campaigns/{number}/join-link").json()["link"]
    page = app.client.get(f"{link}?lang=de")
    assert lang(page.text) == "de"
    assert "Weiß nicht" in page.text


def test_refusals_of_links_are_in_the_workers_language(app: Lab) -> None:
    page = app.client.get("/join/none", headers={"accept-language": "de"})
    assert page.status_code == 401
    assert "Dieser Link ist nicht mehr gültig." in page.text
    number = app.campaign(settings={"may_join": "named"})
    link = app.post(f"/api/campaigns/{number}/join-link").json()["link"]
    page = app.client.get(f"{link}?lang=ar")
    assert "لا يحتوي هذا الرابط على معرّف مشارك" in page.text
    assert 'dir="rtl"' in page.text


def test_a_refusal_carries_its_case(app: Lab) -> None:
    number = app.campaign(settings={"may_join": "named"})
    token = app.post(f"/api/campaigns/{number}/join-link").json()["link"].rpartition("/")[2]
    found = app.post("/api/join", {"token": token}).json()
    assert (found["error"], found["case"]) == ("participant", "participant.missing")
    assert found["message"].startswith("This link carries no participant id.")


def test_owners_replace_texts_in_a_language(app: Lab) -> None:
    texts = {
        "de": {"answer.yes": "Jawohl <b>", "instructions": "Schau *gut* hin.", "thanks": "Tschüs"}
    }
    worker = app.worker(app.campaign(settings={"instructions": "Look.", "texts": texts}))
    page = html(app, "/work?lang=de", **worker.headers)
    assert "Jawohl &lt;b&gt;" in page
    assert "Schau <em>gut</em> hin." in page
    data = re.search(r"data-texts='(.*?)'", page)
    assert data is not None
    assert json.loads(data[1])["thanks"] == "Tschüs"
    english = html(app, "/work?lang=en", **worker.headers)
    assert "Jawohl" not in english
    assert "<p>Look.</p>" in english


def test_auditors_read_classes_as_the_owner_named_them(app: Lab) -> None:
    names = {"de": {"class:c1": "Amsel", "explanation:c1": "schwarz"}, "en": {"class:c1": "Bird"}}
    number = app.campaign(settings={"texts": names})
    made = app.post(f"/api/campaigns/{number}/audit/links", {"name": "Ann"}).json()
    head = {"authorization": f"Bearer {made['token']}"}
    german, spanish = (html(app, f"/check?lang={code}", **head) for code in ("de", "es"))
    assert '<input type="radio" name="truth" value="c1">' in german
    assert 'Amsel <span class="small">schwarz</span>' in german
    assert ">Bird</span>" in spanish  # the language of the campaign
    assert ">c2</span>" in german


@pytest.mark.parametrize("key", ["class:robin", "question:robin", "explanation:T1"])
def test_texts_for_unknown_names_are_refused(app: Lab, key: str) -> None:
    number = app.campaign()
    body = {"tasks": {"texts": {"de": {key: "x"}}}}
    path = f"/api/campaigns/{number}/settings"
    found = app.client.patch(path, json=body, headers=app.owner)
    assert found.status_code == 422
    assert f"texts: de: '{key}' names no" in found.json()["message"]


def test_the_page_of_texts_saves_one_language(app: Lab) -> None:
    number = app.campaign(settings={"texts": {"es": {"help": "Socorro"}}})
    assert "Weiß nicht" in app.get(f"/c/{number}/texts?lang=de").text
    sent = {"text-answer.skip": " Keine Ahnung ", "text-help": "", "text-question:T1": "Rot?"}
    sent["text-class:c2"] = "Rotkehlchen"
    path = f"/c/{number}/texts?lang=de"
    assert app.client.post(path, data=sent, headers=app.owner).status_code == 200
    settings = app.get(f"/api/campaigns/{number}/definition").json()["settings"]
    german = {"answer.skip": "Keine Ahnung", "question:T1": "Rot?", "class:c2": "Rotkehlchen"}
    assert settings["tasks"]["texts"] == {"es": {"help": "Socorro"}, "de": german}
    wrong = app.client.post(path, data={"text-count.of": "{x}"}, headers=app.owner)
    assert wrong.status_code == 422
    assert "no placeholder {x}" in wrong.text
