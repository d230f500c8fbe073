"""Comforts of owners in a browser: pictures and search, previews, QR codes, duplicates."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import Faults
from tests.browser.test_access import PHONE, everywhere


def picture(red: int, green: int, blue: int) -> bytes:
    """A PNG file of one colour."""

    def part(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    size = 64
    rows = (b"\x00" + bytes((red, green, blue)) * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    parts = part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def looks(page: Page, name: str, shot: Any) -> list[str]:
    """Findings of axe, and screenshots: desktop and phone, light and dark."""
    found = everywhere(page)
    size = page.viewport_size
    for colours in ("light", "dark"):
        page.emulate_media(color_scheme=colours)
        for width, view in (("desk", size), ("phone", PHONE)):
            page.set_viewport_size(view)
            shot(page, f"{name}-{colours}-{width}", full=True)
    page.set_viewport_size(size)
    page.emulate_media(color_scheme="light")
    return found


def test_items_are_shown_with_pictures_and_found_by_text(
    open_page: Any, campaign: Any, api: Any, shot: Any
) -> None:
    rows = "task,text,image\nrobin,A robin in the snow,red.png\ntrout,A trout in a brook,\n"
    made = campaign(rows=rows + "eagle,,blue.png\n")
    for name, colour in (("red.png", (200, 30, 30)), ("blue.png", (30, 30, 200))):
        path = f"/api/campaigns/{made.number}/media?name={name}"
        assert api.post(path, data=picture(*colour)).ok
    page = open_page()
    page.goto(f"/c/{made.number}/items")
    image = page.locator("tbody img").first
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 64
    found = looks(page, "items", shot)
    page.fill("#text", "BROOK")
    page.click("text=Show >> nth=0")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody th")).to_contain_text("A trout in a brook")
    assert found == []


def test_a_preview_is_marked_and_records_nothing(
    open_page: Any, campaign: Any, shot: Any, faults: Faults
) -> None:
    rows = "task,text,gold\ng,A blackbird,c1\n" + "".join(f"i{k},Item {k},\n" for k in range(6))
    texts = {"en": {"class:c1": "Blackbird", "explanation:c1": "It is black."}}
    wish = {"instructions": "Look **well**.", "price": 0.05, "currency": "EUR"}
    made = campaign(rows=rows, practice_items=1, texts=texts, **wish)
    page = open_page()
    page.goto(f"/c/{made.number}/share")
    page.click("text=Preview as worker")
    expect(page.locator(".previewed")).to_contain_text("nothing is recorded")
    page.click("#begin")
    expect(page.locator("#practice")).to_be_visible()
    page.wait_for_timeout(250)
    page.keyboard.press("y")
    expect(page.locator("#feedback-class")).to_have_text("Blackbird")
    expect(page.locator("#feedback-why")).to_have_text("It is black.")
    found = looks(page, "preview-training", shot)
    page.click("#continue")
    page.locator("#report").wait_for()
    found += looks(page, "preview", shot)
    for _ in range(3):
        page.wait_for_timeout(250)
        page.keyboard.press("y")
    expect(page.locator("#count")).to_contain_text("3")
    page.keyboard.press("u")
    expect(page.locator("#count")).to_contain_text("2")
    page.goto(f"/c/{made.number}/preview?lang=ar")
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    shot(page, "preview-rtl")
    page.click("text=Close the preview")
    page.wait_for_url("**/share")
    facts = made.progress()
    assert facts["answers"]["counted"] == facts["workers"]["active"] == 0
    assert found == []
    assert faults == []


def test_join_links_have_a_code_on_a_card(open_page: Any, campaign: Any, shot: Any) -> None:
    made = campaign(items=6)
    page = open_page()
    page.goto(f"/c/{made.number}/share")
    page.click("text=Create a join link")
    card = page.locator("#join .card")
    expect(card).to_be_visible()
    image = card.locator("img")
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    link = page.input_value("#join input")
    expect(card.locator("[data-written]")).to_have_text(link)
    found = looks(page, "share", shot)
    page.evaluate("document.querySelector('#join .card').classList.add('printed')")
    page.emulate_media(media="print")
    shot(page, "card-print")
    expect(page.locator("h1")).not_to_be_visible()
    expect(image).to_be_visible()
    assert found == []


def test_a_campaign_is_duplicated_from_its_page(open_page: Any, campaign: Any) -> None:
    made = campaign(items=6)
    page = open_page()
    page.goto(f"/c/{made.number}/share")
    page.click("text=Duplicate this campaign")
    page.fill("#copy-name", "Second round")
    page.click("button >> text=Duplicate")
    page.wait_for_url(lambda url: f"/c/{made.number}/" not in url)
    expect(page.locator("h1")).to_have_text("Second round")
    expect(page.locator("main")).to_contain_text("Start the campaign")
