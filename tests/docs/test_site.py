"""The documentation site is built without warnings, and says what the code says."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import crowdtree as ct
from tests.docs.pages import DOCS


def pages(site: Path) -> dict[str, str]:
    found = {str(path.relative_to(site)): path.read_text() for path in site.rglob("*.html")}
    assert len(found) > 30
    return found


def test_every_public_name_has_its_place_in_the_reference(site):
    text = (site / "reference" / "python.html").read_text()
    places = set(re.findall(r'id="crowdtree\.(\w+)', text))  # paper is a module of several
    missing = set(ct.__all__) - places
    assert not missing


def test_every_command_and_option_is_in_the_reference(site):
    import typer.main

    from crowdtree.cli.app import app

    text = html.unescape(re.sub(r"<[^>]+>", "", (site / "reference" / "commands.html").read_text()))

    def check(command, name):
        assert name in text
        for parameter in command.params:
            assert getattr(parameter, "hidden", False) or parameter.opts[-1].upper() in text.upper()
        for child, made in getattr(command, "commands", {}).items():
            if not made.hidden:
                check(made, f"{name} {child}")

    check(typer.main.get_command(app), "crowdtree")


def test_commands_in_the_pages_run(site):
    for name, text in pages(site).items():
        assert "command not found" not in text, name
        if not name.startswith("internals"):
            assert "Traceback (most recent call last)" not in re.sub(
                r"&gt;&gt;&gt;.*?</pre>", "", text, flags=re.S
            ), name


class Checker(HTMLParser):
    """Collect pictures without a description, and addresses outside the site that are loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.nameless: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        words = str(given.get("alt") or "")
        if tag == "img" and (not words or words.endswith((".svg", ".png"))):
            self.nameless.append(str(given.get("src")))
        source = given.get("src") if tag in ("script", "img", "iframe") else None
        if tag == "link" and given.get("rel") in ("stylesheet", "preload", "preconnect", "icon"):
            source = given.get("href")
        if source and re.match(r"(https?:)?//", source):
            self.loaded.append(source)


def test_pictures_are_described_and_nothing_is_loaded_from_elsewhere(site):
    for name, text in pages(site).items():
        checker = Checker()
        checker.feed(text)
        assert not checker.nameless, name
        assert not checker.loaded, name


def test_links_and_anchors_lead_somewhere(site):
    found = pages(site)
    ids = {name: set(re.findall(r'id="([^"]+)"', text)) for name, text in found.items()}
    for name, text in found.items():
        for target in re.findall(r'href="([^"]*)"', text):
            address, _, anchor = html.unescape(target).partition("#")
            address = address.partition("?")[0]
            if re.match(r"[a-z]+:", address) or (not address and not anchor):
                continue
            path = (site / name).parent / address if address else site / name
            assert path.resolve().exists(), f"{name}: {target}"
            place = str(path.resolve().relative_to(site.resolve()))
            if anchor and place in ids:
                assert anchor in ids[place], f"{name}: {target}"


def test_every_page_is_in_the_contents(site):
    index = (site / "index.html").read_text()
    for page in [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]:
        name = page.relative_to(DOCS).with_suffix(".html")
        assert str(name) == "index.html" or f'href="{name}"' in index, name


def test_rows_of_a_table_have_as_many_cells_as_its_header():
    def cells(line: str) -> int:
        return len(re.sub(r"`[^`]*`|\\\|", "", line).strip().strip("|").split("|"))

    rows = 0
    for page in DOCS.rglob("*.md"):
        width, code = 0, False
        for line in page.read_text().splitlines():
            code ^= line.lstrip().startswith("```")
            if code or not line.startswith("|"):
                width = 0
                continue
            width = width or cells(line)
            assert cells(line) == width, f"{page.name}: {line}"
            rows += 1
    assert rows > 1000
