"""An owner creates a campaign and monitors it."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.weblab import until

TABLE = """question,error,text,robin,eagle,trout
prior,,,0.5,0.2,0.3
flies,0.05,Can it fly?,1,1,0
hunts,0.1,Does it hunt?,0,1,-
"""


def file(name: str, text: str) -> dict[str, object]:
    return {"name": name, "mimeType": "text/csv", "buffer": text.encode()}


def test_the_wizard_from_the_table_to_the_running_campaign(open_page, shot) -> None:
    page = open_page()
    page.goto("/new")
    page.check("text=Colleagues I know")
    # a bad file says in place what is wrong, and the page stays
    page.set_input_files("input[name=table]", file("birds.csv", TABLE.replace("0,1,-", "0,2,-")))
    page.click("text=Show the plan")
    expect(page.locator(".problem")).to_contain_text("2")
    assert "\n" not in page.inner_text(".problem").strip()
    shot(page, "wizard-1-problem")
    page.set_input_files("input[name=table]", file("birds.csv", TABLE))
    page.click("text=Show the plan")
    page.wait_for_url("**/plan")
    expect(page.locator("h1")).to_have_text("birds")
    expect(page.locator("#tree")).to_contain_text("No fixed tree")  # adaptive by default
    # a click on the chart, the table and the tree are one choice
    marks = page.locator("path.choice")
    keys = [marks.nth(k).get_attribute("data-choice") for k in range(marks.count())]
    adaptive = next(k for k, key in enumerate(keys) if key.startswith("adaptive"))
    marks.nth(adaptive).click()
    expect(page.locator("#tree")).to_contain_text("No fixed tree")
    expect(page.locator("input[name=choice]:checked")).to_have_value(keys[adaptive])
    tree = next(k for k, key in enumerate(keys) if key.startswith("tree"))
    marks.nth(tree).click()
    expect(page.locator("#tree svg.ct-tree")).to_contain_text("Can it fly?")
    page.fill("#price", "0,05")
    page.fill("#currency", "EUR")
    expect(page.locator("label:has(:checked) [data-cost]")).to_contain_text("EUR for 1,000 items")
    shot(page, "wizard-2-plan", full=True)
    page.click("text=Use this plan")
    page.wait_for_url("**/items")
    page.set_input_files("input[name=items]", file("items.csv", "name,text\n1,x\n"))
    page.click("text=Add items")
    expect(page.locator("form[data-send] .problem")).to_contain_text("`task`")
    page.set_input_files("input[name=items]", [])
    page.fill("#pasted", "a robin in the snow\na trout in a brook\n\na robin in the snow")
    page.click("text=Add items")
    expect(page.locator(".banner")).to_contain_text("2 items added. 1 item already existed")
    shot(page, "wizard-3-items", full=True)
    page.click("text=Continue with 2 items")
    page.wait_for_url("**/share")
    page.click("text=Create a join link")
    expect(page.locator("#join input")).to_have_value(re.compile(r"^http://.*/join/.{40,}"))
    page.fill("#who", "Ann")
    page.click("text=Invite")
    expect(page.locator("#invite input")).to_have_value(re.compile(r"/w/.{40,}"))
    page.fill("[name='tasks.instructions']", "Look **well**.")
    page.fill("[name='money.budget']", "lots")
    page.click("text=Save")
    expect(page.locator("form .problem").first).to_contain_text("not a number")
    page.fill("[name='money.budget']", "20")
    shot(page, "wizard-4-share", full=True)
    # examples for a question, seen before they are saved
    page.click("text=Save")
    expect(page.locator("#said")).to_have_text("Saved.")
    page.click("text=Write examples for the questions")
    page.wait_for_url("**/questions")
    area = page.get_by_role("textbox", name="Examples for Can it fly?")
    area.fill("**Yes:** a robin")
    page.get_by_label("Preview: Examples for Can it fly?").click()
    expect(page.locator(".preview strong")).to_have_text("Yes:")
    shot(page, "wizard-5-examples", full=True)
    page.click("button:text-is('Save')")
    expect(page.locator("#said")).to_contain_text("Saved.")
    page.click("text=Back to share and start")
    expect(page.locator("main")).to_contain_text("Examples for 1 question")
    page.click("text=Start the campaign")  # saves what was typed as well
    page.wait_for_url(re.compile(r"/c/\d+$"))
    expect(page.locator("h1 .status")).to_have_text("running")
    page.goto(page.url + "/share")
    expect(page.locator("[name='tasks.instructions']")).to_have_value("Look **well**.")
    expect(page.locator("[name='money.budget']")).to_have_value("20")


def answer(worker, times: int, key: str = "y") -> None:
    """Answer some questions as a person would."""
    for done in range(1, times + 1):
        worker.locator("#task").wait_for()
        worker.wait_for_timeout(220)  # a faster key would be taken for a double one
        worker.keyboard.press(key)
        expect(worker.locator("#count")).to_have_text(f"{done} answered")


def test_the_dashboard_changes_without_a_reload(open_page, campaign, shot) -> None:
    made = campaign(items=6, policy={"workers": 0}, price=0.5, currency="EUR")
    page = open_page()
    page.goto(f"/c/{made.number}")
    expect(page.locator("[data-live=headline]")).to_contain_text("waiting for the first answer")
    expect(page.locator("[data-part=notes]")).to_contain_text("Nobody has joined yet")
    page.evaluate("window.same = true")
    people = open_page()
    people.goto(f"/c/{made.number}/workers")
    expect(people.locator("#people")).to_contain_text("Nobody has joined yet")
    worker = open_page(owner=False)
    worker.goto(made.join() + "?PROLIFIC_PID=person-1")
    answer(worker, 4)
    worker.close()  # hands over the last one
    expect(page.locator("dl.facts [data-live=labelled]")).to_have_text("4")
    expect(page.locator("[data-part=notes]")).to_contain_text("Nothing at the moment")
    # every number is the one that the API tells
    facts = made.progress()
    assert (facts["items"]["labelled"], facts["answers"]["counted"]) == (4, 4)
    here = f"{facts['items']['open']} here · 4 passed"  # one vote per question, and all said yes
    expect(page.locator("[data-flow='0']")).to_have_text(here)
    for name, text in {
        "total": "6",
        "open": str(facts["items"]["open"]),
        "new": str(facts["items"]["new"]),
        "active": str(facts["workers"]["active"]),
        "each": f"{facts['answers_per_item']:g}",
        "spent": f"{facts['spent']:.2f} EUR",
        "error": f"{100 * facts['estimated_error']:.3g} %",
    }.items():
        expect(page.locator(f"[data-live={name}]").first).to_have_text(text)
    expect(page.locator("[data-part=labels] tbody tr").first).to_contain_text("4")
    row = page.locator("[data-part=workers] tbody tr")
    expect(row).to_contain_text("person-1")
    expect(people.locator("#people tbody tr")).to_contain_text("person-1")  # updated automatically
    assert page.evaluate("window.same") is True
    shot(page, "dashboard", full=True)
    row.locator("text=Pause").click()
    expect(row.locator(".status")).to_have_text("paused")
    # a number leads to the items behind it, an item to its answers
    page.click("dl.facts a >> nth=0")
    page.click("table.list tbody a >> nth=0")
    expect(page.locator("h2", has_text="Every answer")).to_be_visible()
    expect(page.locator("table.list tbody tr")).not_to_have_count(0)
    shot(page, "item", full=True)


def test_a_broken_event_stream_reconnects(open_page, campaign) -> None:
    made = campaign(items=3)
    page = open_page()
    broken = []

    def between(route) -> None:  # a proxy that answers while the server is away
        broken.append(route.request.url)
        if len(broken) < 3:
            route.fulfill(status=502, body="bad gateway")
        else:
            route.continue_()

    page.route("**/live", between)
    page.goto(f"/c/{made.number}")
    assert made.api.post(f"/api/campaigns/{made.number}/pause").ok
    expect(page.locator("h1 .status")).to_have_text("paused", timeout=20_000)
    assert len(broken) == 3


def test_a_destructive_button_asks_for_confirmation(open_page, campaign, shot) -> None:
    made = campaign(items=5)
    page = open_page()
    page.goto(f"/c/{made.number}")
    page.click("text=Finish now")
    dialog = page.locator("#ask")
    expect(dialog).to_contain_text("Finish “Birds” now?")
    expect(dialog).to_contain_text("5 items that nobody has seen get no label")
    shot(page, "ask")
    dialog.locator("text=Keep it").click()
    assert made.progress()["status"] == "running"
    page.click("button:has-text('Pause')")
    expect(page.locator("h1 .status")).to_have_text("paused")
    page.click("text=Finish now")
    dialog.locator("#ask-yes").click()
    expect(page.locator("h1 .status")).to_have_text("finished")
    expect(page.locator("[data-part=actions] button")).to_have_count(0)
    expect(page.locator("[data-part=notes]")).to_contain_text("5 items set aside")


def test_a_worker_is_paused_and_blocked_from_the_table(open_page, campaign, shot) -> None:
    made = campaign()
    worker = open_page(owner=False)
    worker.goto(made.join() + "?PROLIFIC_PID=person-1&STUDY_ID=s&SESSION_ID=t")
    worker.locator("#task").wait_for()
    page = open_page()
    page.goto(f"/c/{made.number}/workers")
    row = page.locator("tbody tr")
    expect(row).to_contain_text("person-1")
    row.locator("text=Pause").click()
    expect(row.locator(".status")).to_have_text("paused")
    shot(page, "workers")
    row.locator("text=Block").click()
    expect(page.locator("#ask")).to_contain_text("Block person-1?")
    page.click("#ask-yes")
    expect(row.locator(".status")).to_have_text("blocked")
    worker.reload()
    expect(worker.locator("body")).to_contain_text("cannot take part")


def test_answers_are_excluded_after_a_preview(open_page, campaign, shot) -> None:
    alone = {"people_per_item": 1, "require_trusted_answer": False, "automatically": False}
    made = campaign(items=3, policy={"workers": 0}, **alone)
    made.audit()  # Ann answers everything
    count = len(made.answers())
    page = open_page()
    page.goto(f"/c/{made.number}/workers")
    row = page.locator("tbody tr")
    row.locator("button:has-text('Exclude')").click()
    dialog = page.locator("#ask")
    expect(dialog).to_contain_text("Exclude all answers of Ann?")
    expect(dialog).to_contain_text(re.compile(r"\d+ answers? .* would no longer count"))
    shot(page, "exclude")
    dialog.locator("text=Keep it").click()
    assert made.progress()["excluded_workers"] == 0
    row.locator("button:has-text('Exclude')").click()
    page.click("#ask-yes")
    expect(row).to_contain_text("answers excluded")
    row.locator("button:has-text('Include')").click()
    page.click("#ask-yes")
    expect(row.locator("button:has-text('Exclude')")).to_be_visible()
    for _ in range(100):  # the items are replayed in the background
        if len(made.answers()) == count:
            break
        page.wait_for_timeout(100)
    assert len(made.answers()) == count


def test_a_draft_can_be_deleted_and_leaves_the_list(open_page, shot) -> None:
    page = open_page()
    page.goto("/new")
    page.fill("#name", "Only a try")
    page.check("text=An open crowd")
    page.click("button[value=table1]")
    page.wait_for_url("**/plan")
    page.goto("/")
    draft = page.locator("tr", has_text="Only a try")
    shot(page, "list")
    draft.locator("text=Delete").click()
    expect(page.locator("#ask")).to_contain_text("Delete the draft “Only a try”?")
    page.click("#ask-yes")
    expect(draft).to_have_count(0)


def test_logging_out_ends_the_session_everywhere(browser, base, api, open_page, faults) -> None:
    page = open_page()
    page.goto("/access")
    page.fill("#name", "nightly export")
    page.click("text=Create a token")
    expect(page.locator("#token input")).to_have_value(re.compile(r"^.{40,}$"))
    token = page.input_value("#token input")
    row = page.locator("#tokens tr", has_text="nightly export")
    expect(row).to_have_count(1)  # the list came along
    headers = {"authorization": f"Bearer {token}"}
    assert page.request.get("/api/campaigns", headers=headers).ok
    page.reload()
    assert token not in page.content()
    row.get_by_role("button").click()
    expect(page.locator("#ask")).to_contain_text("Revoke “nightly export”")
    page.click("#ask-yes")
    expect(row).to_have_count(0)
    stranger = browser.new_context(base_url=base)
    assert stranger.request.get("/api/campaigns", headers=headers).status == 401
    # another browser of the owner, by a link of its own
    link = api.post("/api/login-link").json()["link"]
    other = faults.watch(stranger.new_page())
    other.goto(link)
    expect(other.locator("h1")).to_have_text("Campaigns")
    cookies = stranger.cookies()
    other.click("text=Log out")
    expect(other.locator("h1")).to_have_text("Open your owner link")
    stranger.add_cookies(cookies)  # a copy of the cookie is of no use either
    assert other.goto("/").status == 401
    stranger.close()
    page.goto("/")
    expect(page.locator("h1")).to_have_text("Campaigns")


def test_a_webhook_is_added_watched_and_removed(open_page, campaign, shot) -> None:
    made = campaign(items=3, policy={"workers": 0})
    page = open_page()
    page.goto(f"/c/{made.number}/webhooks")
    page.fill("#url", "http://127.0.0.1:9/labels")  # nothing listens at this address
    page.click("text=Add a webhook")
    expect(page.locator("#secret input")).to_have_value(re.compile(r"^whsec_.{32}$"))
    secret = page.input_value("#secret input")
    expect(page.locator("#hooks")).to_contain_text("nothing to send yet")
    worker = open_page(owner=False)
    worker.goto(made.join())
    answer(worker, 1)
    worker.close()
    hooks = f"/api/campaigns/{made.number}/webhooks"
    assert until(lambda: made.api.get(hooks).json()[0]["last_error"])
    page.reload()
    expect(page.locator("#hooks")).to_contain_text("connection refused")
    expect(page.locator("#hooks tbody tr").first).to_contain_text("connection refused")
    assert secret not in page.content()
    shot(page, "webhooks", full=True)
    with page.expect_event("load"):  # or the dialog below would open on the page that goes away
        page.click("text=Try again now")
    page.locator("#hooks >> text=Remove").click()
    expect(page.locator("#ask")).to_contain_text("127.0.0.1:9/labels gets no more messages")
    page.click("#ask-yes")
    expect(page.locator("#hooks")).to_contain_text("None yet")
    assert made.api.get(hooks).json() == []


def test_without_a_session_the_page_says_how_to_log_in(open_page, shot) -> None:
    page = open_page(owner=False)
    for path in ("/", "/new", "/c/1", "/c/1/workers"):
        assert page.goto(path).status == 401
        expect(page.locator("h1")).to_have_text("Open your owner link")
    assert page.goto("/login?token=wrong").status == 401
    expect(page.locator("body")).to_contain_text("already used or is not valid")
    assert page.goto("/work").status == 401
    expect(page.locator("body")).to_contain_text("Open your personal link first")
    shot(page, "no-link")
