"""An auditor checks labels: with keys and on a phone; the owner sees what is certified."""

from __future__ import annotations

import re

from playwright.sync_api import expect


def test_keys_check_items_without_showing_labels(open_page, campaign, shot) -> None:
    made = campaign(items=30, policy={"workers": 0})
    page = open_page(owner=False)
    page.goto(made.audit())
    assert page.url.endswith("/check")  # no secret stays in the address
    page.locator("#task").wait_for()
    expect(page.locator("#record")).to_be_disabled()
    shot(page, "check")
    classes = page.locator("label.class input").count()
    for done in range(1, 4):
        before = page.inner_text("#item")
        page.keyboard.press("1")
        page.keyboard.press("2" if done == 2 else "1")  # changed before it is recorded
        expect(page.locator("#record")).to_be_enabled()
        page.keyboard.press("Enter")
        expect(page.locator("#count")).to_have_text(f"{done} checked")
        expect(page.locator("#item")).not_to_have_text(before)
    page.keyboard.press("0")
    expect(page.locator("label.class input").nth(classes - 1)).to_be_checked()
    shown = page.inner_text("#item")
    page.reload()  # nothing was recorded; the same item comes again
    expect(page.locator("#item")).to_have_text(shown)
    audit = made.api.get(f"/api/campaigns/{made.number}/audit").json()
    assert audit["people"] == {"Max": 3}
    owner = open_page()
    owner.goto(f"/c/{made.number}")
    expect(owner.locator("[data-part=audit]")).to_contain_text("after 3 checks")
    expect(owner.locator("[data-part=audit] svg")).to_be_visible()
    owner.locator("#audit-title").scroll_into_view_if_needed()
    shot(owner, "dashboard-audit", full=True)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(owner.locator("[data-part=audit]")).to_contain_text("after 4 checks")  # live


def test_on_a_phone_and_to_the_end(open_page, campaign, shot) -> None:
    made = campaign(items=6, policy={"workers": 0})
    page = open_page(owner=False, phone=True)
    page.goto(made.audit(0.6))
    page.locator("#task").wait_for()
    shot(page, "check-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator("#record").bounding_box()
    assert box["y"] + box["height"] <= page.viewport_size["height"]
    for place in range(page.locator("label.class").count()):
        assert page.locator("label.class").nth(place).bounding_box()["height"] >= 44
    for done in range(1, 7):
        page.locator("label.class").last.tap()
        page.tap("#record")
        expect(page.locator("#count")).to_have_text(f"{done} checked")
        if page.locator("#between").is_visible():
            break
    expect(page.locator("#between-title")).to_have_text("Thank you!")
    shot(page, "check-end-phone")


def test_the_owner_starts_an_audit_and_revokes_a_link(open_page, campaign, shot) -> None:
    made = campaign(items=12, policy={"workers": 0})
    made.audit()
    page = open_page()
    page.goto(f"/c/{made.number}/audit")
    page.fill("#bound", "much")
    page.click("text=Start again >> nth=-1")
    expect(page.locator(".problem")).to_contain_text("not a number")
    page.fill("#bound", "25")
    page.click("form[data-send] button")
    expect(page.locator("main")).to_contain_text("Asked for at most 25 %")
    page.fill("#who", "Eve")
    page.click("text=Create a check link")
    link = page.locator("#checker input")
    expect(link).to_have_value(re.compile("/a/"))
    expect(page.locator("#links")).to_contain_text("Eve")
    shot(page, "audit", full=True)
    page.set_viewport_size({"width": 390, "height": 844})
    shot(page, "audit-phone", full=True)
    address = link.input_value()
    other = open_page(owner=False)
    other.goto(address)
    other.locator("#task").wait_for()
    page.click("text=Revoke the link of Eve")
    page.click("#ask-yes")
    expect(page.locator("#links")).not_to_contain_text("Eve")
    other.keyboard.press("1")
    other.keyboard.press("Enter")
    expect(other.locator("#between-title")).to_have_text("This link no longer works")
