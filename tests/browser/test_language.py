"""The worker page in other languages: consent, training, reports, pauses, plurals, direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from crowdtree.server.languages import catalogues
from tests.browser.clock import freeze
from tests.browser.test_access import everywhere

ROWS = "task,text,gold,explanation\ng0,Gold 0,c1,It has a tail.\ng1,Gold 1,c4,\n" + "".join(
    f"i{k},This is item {k},,\n" for k in range(9)
)
SETTINGS: dict[str, Any] = {
    "consent": "I take part **voluntarily**.",
    "instructions": "Look well.",
    "practice_items": 2,
    "price": 0.05,
    "currency": "EUR",
    "texts": {"ar": {"question:T1": "هل هذا طائر؟"}, "de": {"question:T1": "Ist das ein Vogel?"}},
}


def press(page: Page, key: str) -> None:
    page.locator("#task").wait_for()
    page.wait_for_timeout(220)  # a double click must not answer twice
    page.keyboard.press(key)


def send_all(page: Page) -> None:
    """Hide the page for a moment, which sends the last answer."""
    page.evaluate("""async () => {
      Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
      delete document.visibilityState;
      while (Object.keys(localStorage).some((name) => /^crowdtree-[0-9]+-[0-9]+$/.test(name))) {
        await new Promise((done) => setTimeout(done, 20));
      }
    }""")


def prepare(page: Page) -> None:
    """Agree, begin, and practise."""
    page.click("#agree")
    page.click("#begin")
    for number in (1, 2):
        expect(page.locator("#practice-title")).to_contain_text(str(number))
        page.wait_for_timeout(220)
        page.click("[data-answer=yes]")
        page.click("#continue")
    page.locator("#report").wait_for()


def look(page: Page, found: list[str], shot: Callable[..., None], name: str) -> None:
    found += everywhere(page)
    page.emulate_media(color_scheme="dark")
    shot(page, f"language-{name}")


@pytest.mark.parametrize(
    ("code", "phone"), [("ar", True), pytest.param("de", False, marks=pytest.mark.slow)]
)
def test_the_whole_way_without_findings(open_page, campaign, shot, code: str, phone: bool) -> None:
    made = campaign(rows=ROWS, **SETTINGS)
    page = open_page(owner=False, phone=phone, locale=code, color_scheme="dark")
    found: list[str] = []
    page.goto(made.join())
    direction = catalogues()[code].direction
    expect(page.locator("html")).to_have_attribute("dir", direction)
    expect(page.locator("#consent strong")).to_have_text("voluntarily")
    look(page, found, shot, f"{code}-consent")
    page.click("#agree")
    page.click("#begin")
    expect(page.locator("#question")).to_have_text(SETTINGS["texts"][code]["question:T1"])
    look(page, found, shot, f"{code}-training")
    page.wait_for_timeout(220)
    page.click("[data-answer=no]")
    expect(page.locator("#feedback-verdict")).to_have_text(_text(code, "training.right"))
    expect(page.locator("#feedback-why")).to_have_text("It has a tail.")
    look(page, found, shot, f"{code}-feedback")
    page.click("#continue")
    page.wait_for_timeout(220)
    page.click("[data-answer=skip]")
    page.click("#continue")
    expect(page.locator("#banner")).to_have_text(_text(code, "training.done"))
    assert made.answers() == []
    look(page, found, shot, f"{code}-work")
    boxes = [page.locator(f"[data-answer={name}]").bounding_box() for name in ("no", "yes")]
    assert (boxes[0]["x"] < boxes[1]["x"]) == (direction == "ltr")
    page.click("#report")
    look(page, found, shot, f"{code}-report")
    page.click("#report-cancel")
    page.click("#help")
    look(page, found, shot, f"{code}-help")
    assert found == []


def _text(code: str, key: str) -> str:
    return str(catalogues()[code].texts[key])


def test_pages_of_owners_and_refusals_have_no_findings(open_page, campaign) -> None:
    number = campaign(rows=ROWS, **SETTINGS).number
    page = open_page(locale="ar")
    found = []
    for path in ("/join/none", f"/c/{number}/texts?lang=ar", f"/c/{number}/reports"):
        page.goto(path)
        found += everywhere(page)
    assert found == []


def test_forms_of_plurals_are_those_of_the_language(open_page, campaign) -> None:
    page = open_page(owner=False)
    for code, made in catalogues().items():
        rules = "code => new Intl.PluralRules(code).resolvedOptions().pluralCategories"
        wanted = set(page.evaluate(rules, code))
        for key, text in made.texts.items():
            assert isinstance(text, str) or set(text) == wanted, (code, key)
    page.goto(campaign().join() + "?lang=ar")
    said = {}
    for count in (0, 1, 2, 3, 11, 100):
        script = "async n => (await import('/static/texts.js')).say('count.given', {count: n})"
        said[count] = page.evaluate(script, count)
    forms = catalogues()["ar"].texts["count.given"]
    assert isinstance(forms, dict)
    assert (said[0], said[1], said[2]) == (forms["zero"], forms["one"], forms["two"])
    assert [said[count].split()[-1] for count in (3, 11, 100)] == ["إجابات", "إجابة", "إجابة"]


def test_the_menu_changes_the_language_and_the_page_goes_on(open_page, campaign) -> None:
    page = open_page(owner=False)
    page.goto(campaign().join())
    page.locator("#task").wait_for()
    press(page, "y")
    expect(page.locator("#count")).to_have_text("1 answered")
    page.select_option("#lang", "de")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.locator("#count")).to_have_text("1 Antwort")
    page.locator("#task").wait_for()
    press(page, "j")  # the letter of the language
    expect(page.locator("#count")).to_have_text("2 Antworten")
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "de")


def test_keys_work_with_a_keyboard_of_another_script(open_page, campaign) -> None:
    page = open_page(owner=False, locale="ar")
    page.goto(campaign().join())
    page.locator("#task").wait_for()
    page.wait_for_timeout(220)
    page.locator("body").dispatch_event("keydown", {"key": "غ", "code": "KeyY", "bubbles": True})
    expect(page.locator("#count")).to_have_text("إجابة واحدة")


def test_who_does_not_agree_gets_nothing(open_page, campaign) -> None:
    made = campaign(rows=ROWS, **SETTINGS)
    page = open_page(owner=False)
    page.goto(made.join())
    page.click("#decline")
    expect(page.locator("#declined h1")).to_have_text("You did not agree")
    page.reload()
    page.locator("#consent").wait_for()
    prepare(page)
    page.reload()
    page.locator("#task").wait_for()  # once is enough
    expect(page.locator("#practice")).to_be_hidden()


def test_a_report_reaches_the_owner_and_can_be_undone(open_page, campaign, shot) -> None:
    made = campaign()
    page = open_page(owner=False)
    page.clock.install()
    page.goto(made.join())
    page.locator("#task").wait_for()
    freeze(page)
    item = page.inner_text("#item")
    page.click("#report")
    page.check("input[value=unreadable]")
    page.fill("#words", "y n too dark")
    page.click("#report-form button[type=submit]")
    expect(page.locator("#banner")).to_have_text("Thank you. The item was reported and skipped.")
    page.click("#between-undo button")  # nobody hears of it
    expect(page.locator("#item")).to_have_text(item)
    page.click("#report")
    page.check("input[value=unsuitable]")
    page.fill("#words", "y n too bright")
    page.click("#report-form button[type=submit]")
    page.clock.resume()
    send_all(page)
    expect(page.locator("#item")).not_to_have_text(item)
    expect(page.locator("#count")).to_have_text("0 answered")
    owner = open_page()
    owner.goto(f"/c/{made.number}/reports")
    assert owner.locator("tbody tr").count() == 1
    expect(owner.locator("tbody")).to_contain_text("y n too bright")
    shot(owner, "reports")


@pytest.mark.parametrize("whom", ["worker", "campaign"])
def test_a_pause_is_told_at_once(open_page, campaign, api, whom: str) -> None:
    made = campaign()
    page = open_page(owner=False)
    page.goto(made.join())
    page.locator("#task").wait_for()
    press(page, "y")
    page.locator("#task").wait_for()  # from now on the page holds more than one question
    base = f"/api/campaigns/{made.number}"
    number = api.get(f"{base}/workers").json()[0]["id"]
    path, title = {
        "worker": (f"{base}/workers/{number}", "Your work is paused"),
        "campaign": (base, "Not open now"),
    }[whom]
    assert api.post(f"{path}/pause").ok
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.locator("#between-title")).to_have_text(title)
    assert api.post(f"{path}/resume").ok
    page.evaluate("dispatchEvent(new Event('focus'))")
    page.locator("#task").wait_for()
    assert len(made.answers()) == 1


def test_earnings_are_shown(open_page, campaign) -> None:
    made = campaign(price=0.05, currency="EUR", max_answers_per_worker=4)
    page = open_page(owner=False, locale="de")
    page.goto(made.join())
    page.locator("#task").wait_for()
    press(page, "j")
    press(page, "n")
    send_all(page)
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.locator("#amount")).to_have_text("0,10 €")
    expect(page.locator("#count")).to_have_text("2 von 4")
    assert page.locator("#progress").evaluate("bar => bar.value") == 2
