"""No finding of axe-core of any level on any page, light and dark, on desktop and phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

axe = pytest.importorskip("axe_playwright_python", reason="needs axe-playwright-python")
SCRIPT = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
PHONE = {"width": 390, "height": 844}
COLOURS = ["color-contrast", "link-in-text-block"]
SPACE = ["target-size", "scrollable-region-focusable"]


def findings(page: Page, rules: list[str] | None = None) -> list[str]:
    """Findings of any level on a page as it is now, of all rules or of some."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(SCRIPT)
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    found: dict[str, Any] = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{page.url} {violation['id']}: {node['html'][:150]} {node['failureSummary'][:200]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


def everywhere(page: Page) -> list[str]:
    """Findings in light and dark mode, on desktop and phone; only rules that differ run again."""
    size = page.viewport_size
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    found = findings(page)
    page.emulate_media(color_scheme="dark")
    found += findings(page, COLOURS)
    page.set_viewport_size(PHONE)
    found += findings(page, SPACE)
    wide = page.evaluate("document.documentElement.scrollWidth")
    found += [f"{page.url} is {wide} wide on a phone"] * (wide > PHONE["width"])
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(size)
    return found


def test_axe_detects_a_known_fault(open_page) -> None:
    page = open_page(owner=False)
    page.goto("/")
    page.evaluate("document.querySelector('main').innerHTML = '<img src=\"/static/icon.svg\">'")
    assert any("image-alt" in line for line in findings(page))


def test_owner_pages(open_page, campaign) -> None:
    made = campaign(items=6, policy={"workers": 0}, price=0.05, currency="EUR")
    worker = open_page(owner=False)
    worker.goto(made.join())
    worker.locator("#task").wait_for()
    worker.wait_for_timeout(220)
    worker.keyboard.press("y")
    worker.close()
    page = open_page()
    found = []
    base = f"/c/{made.number}"
    names = (
        "items",
        "workers",
        "audit",
        "questions",
        "plan",
        "share",
        "webhooks",
        "activity",
        "reports",
        "texts",
        "prolific",
    )
    server = ("/", "/new", "/access", "/people", "/activity")
    for path in [*server, base, *(f"{base}/{name}" for name in names)]:
        page.goto(path)
        found += everywhere(page)
    for path in (f"{base}/items", f"{base}/workers"):
        page.goto(path)
        page.click("tbody a >> nth=0")
        page.wait_for_load_state()
        found += everywhere(page)
    page.goto("/new")
    page.check("text=An open crowd")
    page.click("button[value=table1]")
    page.wait_for_url("**/plan")
    found += everywhere(page)
    page.goto(page.url.replace("plan", "items"))
    found += everywhere(page)
    page.goto(f"{base}9")
    found += everywhere(page)
    assert found == []


def test_audit_pages(open_page, campaign) -> None:
    made = campaign(items=6, policy={"workers": 0})
    page = open_page(owner=False)
    page.goto(made.audit())
    page.locator("#task").wait_for()
    found = everywhere(page)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.locator("#count >> text=1 checked").wait_for()
    owner = open_page()
    for path in ("", "/audit"):
        owner.goto(f"/c/{made.number}{path}")
        found += everywhere(owner)
    assert found == []


def test_worker_pages(open_page, campaign, shot) -> None:
    made = campaign(
        instructions="Look **well**.",
        examples={"T1": "**Yes:** [this](https://example.org) one"},
        max_answers_per_worker=1,
        completion_code="X",
        return_url="https://example.org/done",
    )
    page = open_page(owner=False)
    page.goto(made.join())
    found = everywhere(page)
    page.click("#begin")
    page.locator("#task").wait_for()
    found += everywhere(page)
    page.click("#examples")
    found += everywhere(page)
    shot(page, "work-help")
    page.click("#sheet >> text=Close")
    page.emulate_media(color_scheme="dark")
    shot(page, "work-dark")
    page.wait_for_timeout(220)
    page.click("[data-answer=yes]")
    page.locator("#code").wait_for()
    found += everywhere(page)
    page.goto("/login?token=x")
    found += everywhere(page)
    page.context.clear_cookies()
    page.goto("/")
    found += everywhere(page)
    assert found == []
