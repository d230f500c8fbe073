"""No finding of axe-core of any level on the site, light and dark, on desktop and phone."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="browser tests need the package playwright")
pytest.importorskip("axe_playwright_python", reason="needs axe-playwright-python")

from playwright.sync_api import Page

from tests.browser.conftest import DESK, PHONE
from tests.browser.test_access import SCRIPT

NAMES = (
    "index",
    "tutorial",
    "howto/campaign",
    "howto/languages",
    "howto/people",
    "files",
    "gallery",
    "search",
    "reference/http",
    "reference/settings",
    "measured/serving",
    "notebooks/own-data",
)


@pytest.fixture(scope="module")
def page(browser):
    found = browser.new_page()
    yield found
    found.close()


def findings(page: Page) -> list[str]:
    page.evaluate(SCRIPT)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['impact']} {violation['id']}: {node['html'][:150]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


def open_as(page: Page, site: Path, name: str, colours: str, size: dict[str, int]) -> None:
    page.emulate_media(color_scheme=colours)
    page.set_viewport_size(size)
    page.goto((site / f"{name}.html").as_uri())


def test_axe_has_no_finding_on_the_index(site, page):
    open_as(page, site, "index", "light", DESK)
    assert findings(page) == []
    page.evaluate("document.querySelector('h1').innerHTML = '<img src=\"x.png\">'")
    assert any("image-alt" in line for line in findings(page))


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("name", [*NAMES, "reference/python", "reference/commands"])
def test_axe_has_no_finding(site, page, name, colours, size):
    open_as(page, site, name, colours, size)
    assert findings(page) == []


@pytest.mark.parametrize("name", NAMES)
def test_pages_fit_a_phone(site, page, name):
    open_as(page, site, name, "light", PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_tables_of_few_columns_are_stacked_on_a_phone(site, page):
    open_as(page, site, "reference/http", "light", PHONE)
    cut = "table => table.scrollWidth > table.clientWidth + 1"
    tables = page.locator("table.docutils")
    assert not any(table.evaluate(cut) for table in tables.all())
    assert page.locator("table.stacked").count() > 0
    page.set_viewport_size(DESK)
    page.wait_for_function("!document.querySelector('table.stacked')")
