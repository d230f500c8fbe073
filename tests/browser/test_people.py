"""People with roles in a real browser: the pages, and what each role does not see."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .test_access import everywhere, findings

ALLOWED = ("Log out", "Show", "Create a token", "Log in on another device", "Log out session")
"""Buttons that viewers may use: the last begins the name of each session's button."""
CAMPAIGN = ("", "/items", "/workers", "/audit", "/questions", "/plan", "/share", "/activity")


def invite(page: Page, name: str, role: str) -> str:
    page.goto("/people")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Role", exact=True).select_option(role)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("rowheader", name=name)).to_be_visible()
    return page.get_by_role("textbox", name="Login link").input_value()


def test_an_admin_adds_people_who_see_what_their_role_allows(open_page, campaign, shot) -> None:
    made = campaign(items=4, policy={"workers": 0})
    made.audit()
    admin = open_page()
    links = {role: invite(admin, f"{role} Kim", role) for role in ("viewer", "editor")}
    shot(admin, "people")
    base = f"/c/{made.number}"
    worker = made.api.get(f"/api/campaigns/{made.number}/workers").json()[0]["id"]
    person = f"{base}/workers/{worker}"

    viewer = open_page(owner=False)
    viewer.goto(links["viewer"])
    for path in ("/", "/access", person, *(base + part for part in CAMPAIGN)):
        viewer.goto(path)
        names = [one.inner_text() for one in viewer.get_by_role("button").all() if one.is_visible()]
        wrong = [name for name in names if not name.startswith(ALLOWED)]
        assert not wrong, (path, wrong)
        fields = "form[method=post] :is(input:not([type=hidden]), textarea, select):enabled"
        assert viewer.locator(fields).count() == 0 or not viewer.locator(fields).first.is_visible()
        for hidden in ("New campaign", "People", "Webhooks", "Prolific"):
            assert not viewer.get_by_role("link", name=hidden, exact=True).is_visible(), path
    assert viewer.goto(f"{base}/webhooks").status == 403
    expect(viewer.get_by_role("heading", name="Your role does not allow this")).to_be_visible()
    shot(viewer, "role-refused")

    editor = open_page(owner=False)
    editor.goto(links["editor"])
    editor.goto(person)
    expect(editor.get_by_role("button", name="New personal link")).to_be_visible()
    expect(editor.get_by_role("button", name="Delete personal data")).to_be_hidden()
    editor.goto(f"{base}/share")
    expect(editor.get_by_role("heading", name="Delete this campaign")).to_be_hidden()
    expect(editor.get_by_role("link", name="People", exact=True)).to_be_hidden()

    admin.goto("/people")
    admin.get_by_label("Role of editor Kim").select_option("viewer")
    with admin.expect_response(lambda response: response.request.method != "GET"):
        admin.get_by_role("button", name="Change the role of editor Kim").click()
    admin.wait_for_load_state()
    expect(admin.get_by_label("Role of editor Kim")).to_have_value("viewer")
    editor.reload()
    expect(editor.get_by_role("button", name="Save")).to_be_hidden()
    admin.get_by_role("button", name="Remove viewer Kim").click()
    admin.locator("#ask-yes").click()
    expect(admin.get_by_role("rowheader", name="viewer Kim")).to_have_count(0)
    assert viewer.goto("/").status == 401


def test_an_admin_deletes_personal_data_and_a_campaign(open_page, campaign, shot) -> None:
    made = campaign(items=3, policy={"workers": 0})
    made.audit()
    path = f"/api/campaigns/{made.number}"
    worker = made.api.get(f"{path}/workers").json()[0]["id"]
    page = open_page()
    page.goto(f"/c/{made.number}/workers/{worker}")
    page.get_by_role("button", name="Delete personal data").click()
    shot(page, "erase-worker")
    page.locator("#ask-yes").click()
    expect(page.get_by_text("Personal data deleted.")).to_be_visible()
    assert "Ann" not in page.locator("main").inner_text()
    if made.progress()["status"] == "running":
        made.api.post(f"{path}/pause")
    page.goto(f"/c/{made.number}/share")
    button = page.get_by_role("button", name="Delete the campaign")
    page.get_by_label("Type its name").fill("Fish")
    button.click()
    page.locator("#ask-yes").click()
    expect(page.get_by_text("is called 'Birds', not 'Fish'")).to_be_visible()
    page.get_by_label("Type its name").fill("Birds")
    button.scroll_into_view_if_needed()
    shot(page, "delete-campaign")
    button.click()
    page.locator("#ask-yes").click()
    page.wait_for_url("**/")
    assert made.api.get(path).status == 404


@pytest.mark.slow
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_the_new_pages_have_no_finding_of_any_level(open_page, campaign, shot, colours) -> None:
    made = campaign(items=2)
    page = open_page(color_scheme=colours)
    invite(page, f"Kim {colours}", "editor")
    for path, name in (
        ("/people", "people"),
        ("/activity", "activity"),
        (f"/c/{made.number}/activity", "activity-campaign"),
        ("/access", "access"),
        (f"/c/{made.number}/share", "share"),
    ):
        page.goto(path)
        assert findings(page) == []
        shot(page, f"{name}-{colours}-1280", full=True)
        page.set_viewport_size({"width": 390, "height": 844})
        assert findings(page) == []
        shot(page, f"{name}-{colours}-390", full=True)
        page.set_viewport_size({"width": 1280, "height": 800})
        if colours == "light":
            assert everywhere(page) == []


def test_the_log_has_the_address_that_the_proxy_names(api) -> None:
    """The server believes a proxy on its own machine, as `FORWARDED_ALLOW_IPS` says by default."""
    assert api.post("/api/login-link", headers={"x-forwarded-for": "203.0.113.9"}).ok
    last = api.get("/api/activity?person=owner").json()[0]
    assert (last["action"], last["address"]) == ("login link", "203.0.113.9")
