"""No serious finding of axe-core on any page, light and dark, on a desk and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

axe = pytest.importorskip("axe_playwright_python", reason="needs axe-playwright-python")
SCRIPT = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
MODES = [("light", False), ("dark", True)]


def findings(page: Page) -> list[str]:
    page.evaluate(SCRIPT)
    found: dict[str, Any] = page.evaluate(
        "tags => axe.run(document, {resultTypes: ['violations'], runOnly: tags})", TAGS
    )
    return [
        f"{page.url} {violation['id']}: {node['html'][:150]} {node['failureSummary'][:200]}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def test_axe_would_find_something(open_page) -> None:
    page = open_page(owner=False)
    page.goto("/")
    page.evaluate("document.querySelector('main').innerHTML = '<img src=\"/static/icon.svg\">'")
    assert any("image-alt" in line for line in findings(page))


@pytest.mark.parametrize(("mode", "phone"), MODES, ids=["light-desk", "dark-phone"])
def test_owner_pages(open_page, campaign, mode: str, phone: bool) -> None:
    made = campaign(items=6, policy={"workers": 0}, price=0.05, currency="EUR")
    worker = open_page(owner=False)
    worker.goto(made.join())
    for _ in range(3):
        worker.locator("#task").wait_for()
        worker.wait_for_timeout(220)
        worker.keyboard.press("y")
    worker.close()
    page = open_page(phone=phone, color_scheme=mode)
    found = []
    base = f"/c/{made.number}"
    names = ("items", "workers", "questions", "plan", "share", "webhooks")
    paths = ["/", "/new", "/access", base, *(f"{base}/{name}" for name in names)]
    for path in paths:
        page.goto(path)
        page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        found += findings(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    for path in (f"{base}/items", f"{base}/workers"):
        page.goto(path)
        page.click("tbody a >> nth=0")
        page.wait_for_load_state()
        found += findings(page)
    page.goto("/new")
    page.click("button[value=table1]")
    page.wait_for_url("**/plan")
    found += findings(page)
    page.goto(page.url.replace("plan", "items"))
    found += findings(page)
    assert found == []


@pytest.mark.parametrize(("mode", "phone"), MODES, ids=["light-desk", "dark-phone"])
def test_worker_pages(open_page, campaign, mode: str, phone: bool, shot) -> None:
    made = campaign(instructions="Look **well**.", answers_per_worker=1, completion_code="X")
    page = open_page(owner=False, phone=phone, color_scheme=mode)
    page.goto(made.join())
    found = findings(page)
    page.click("#begin")
    page.locator("#task").wait_for()
    found += findings(page)
    shot(page, f"work-{mode}")
    page.click("#help")
    found += findings(page)
    page.click("#sheet >> text=Close")
    page.wait_for_timeout(220)
    page.click("[data-answer=yes]")
    page.locator("#code").wait_for()
    found += findings(page)
    page.goto("/login?token=x")
    found += findings(page)
    assert found == []
