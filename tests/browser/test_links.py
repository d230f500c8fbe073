"""Links in a real browser: from other sites to the owner's pages, and the join link."""

from __future__ import annotations

from playwright.sync_api import Page, expect

ELSEWHERE = "http://mail.example/"


def at_another_site(page: Page, content: str) -> None:
    """Show a page of another site."""
    page.route(
        f"{ELSEWHERE}**",
        lambda route: route.fulfill(body=content, content_type="text/html"),
    )
    page.goto(ELSEWHERE)


def test_a_link_in_a_mail_leads_the_owner_where_it_points(open_page, campaign, base) -> None:
    made = campaign(items=2)
    page = open_page()
    at_another_site(page, f'<a href="{base}/c/{made.number}/share">campaign</a>')
    page.get_by_role("link", name="campaign").click()
    expect(page).to_have_url(f"{base}/c/{made.number}/share")
    expect(page.get_by_role("heading", name="Links for workers")).to_be_visible()


def test_a_form_of_another_site_changes_nothing(open_page, campaign, base) -> None:
    made = campaign(items=2)
    page = open_page()
    target = f"{base}/api/campaigns/{made.number}/pause"
    at_another_site(page, f'<form method="post" action="{target}"><button>Win</button></form>')
    with page.expect_response(target) as found:
        page.get_by_role("button", name="Win").click()
    assert found.value.status == 401  # the browser sends no cookie with it
    assert made.progress()["status"] == "running"


def test_replacing_a_join_link_asks_first_and_another_one_does_not(
    open_page, campaign, shot
) -> None:
    made = campaign(items=2)
    page = open_page()
    page.goto(f"/c/{made.number}/share")
    link = page.get_by_role("textbox", name="Join link")
    page.get_by_role("button", name="Create a join link").click()
    expect(page.get_by_text("1 join link works now")).to_be_visible()
    first = link.input_value()
    page.get_by_role("button", name="Create another join link").click()
    expect(page.get_by_text("2 join links work now")).to_be_visible()
    second = link.input_value()
    assert first != second
    page.get_by_role("button", name="Replace them by a new one").click()
    shot(page, "join-link-replace")
    page.get_by_role("button", name="Replace", exact=True).click()
    expect(page.get_by_text("1 join link works now")).to_be_visible()
    shot(page, "join-link")
    guest = open_page(owner=False)
    for old in (first, second):
        assert guest.goto(old).status == 401
    assert guest.goto(link.input_value()).ok
