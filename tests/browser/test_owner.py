"""An owner makes a campaign without a manual, and watches it."""

from __future__ import annotations

import re

from playwright.sync_api import expect

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
    # a bad file says in place what is wrong, and the page stays
    page.set_input_files("input[name=table]", file("birds.csv", TABLE.replace("0,1,-", "0,2,-")))
    page.click("text=See the tree")
    expect(page.locator(".problem")).to_contain_text("2")
    assert "\n" not in page.inner_text(".problem").strip()
    shot(page, "wizard-1-problem")
    page.set_input_files("input[name=table]", file("birds.csv", TABLE))
    page.click("text=See the tree")
    page.wait_for_url("**/plan")
    expect(page.locator("h1")).to_have_text("birds")
    expect(page.locator("#tree svg.ct-tree")).to_contain_text("Can it fly?")
    # a click on the chart, the table and the tree are one choice
    marks = page.locator("path.choice")
    keys = [marks.nth(k).get_attribute("data-choice") for k in range(marks.count())]
    adaptive = next(k for k, key in enumerate(keys) if key.startswith("adaptive"))
    marks.nth(adaptive).click()
    expect(page.locator("#tree")).to_contain_text("No fixed tree")
    expect(page.locator("input[name=choice]:checked")).to_have_value(keys[adaptive])
    tree = next(k for k, key in enumerate(keys) if key.startswith("tree"))
    marks.nth(tree).click()
    expect(page.locator("#tree svg.ct-tree")).to_be_visible()
    page.fill("#price", "0,05")
    page.fill("#currency", "EUR")
    expect(page.locator("label:has(:checked) [data-cost]")).to_contain_text("EUR for 1,000 items")
    shot(page, "wizard-2-plan", full=True)
    page.click("text=Take this plan")
    page.wait_for_url("**/items")
    page.set_input_files("input[name=items]", file("items.csv", "name,text\n1,x\n"))
    page.click("text=Add items")
    expect(page.locator("form[data-send] .problem")).to_contain_text("`task`")
    page.set_input_files("input[name=items]", [])
    page.fill("#pasted", "a robin in the snow\na trout in a brook\n\na robin in the snow")
    page.click("text=Add items")
    expect(page.locator(".banner")).to_contain_text("2 items added. 1 item were there already")
    shot(page, "wizard-3-items", full=True)
    page.click("text=Go on with 2 items")
    page.wait_for_url("**/share")
    page.click("text=Make a join link")
    expect(page.locator("#join input")).to_have_value(re.compile(r"^http://.*/join/.{40,}"))
    page.fill("#who", "Ann")
    page.click("text=Invite")
    expect(page.locator("#invite input")).to_have_value(re.compile(r"/w/.{40,}"))
    page.fill("#instructions", "Look **well**.")
    page.fill("#budget", "lots")
    page.click("text=Save")
    expect(page.locator("form .problem")).to_contain_text("not a number")
    page.fill("#budget", "20")
    shot(page, "wizard-4-share", full=True)
    page.click("text=Start the campaign")  # saves what was typed as well
    page.wait_for_url(re.compile(r"/c/\d+$"))
    expect(page.locator(".status")).to_have_text("running")
    page.goto(page.url + "/share")
    expect(page.locator("#instructions")).to_have_value("Look **well**.")
    expect(page.locator("#budget")).to_have_value("20.0")


def test_the_dashboard_changes_without_a_reload(open_page, campaign, shot) -> None:
    made = campaign(items=6, policy={"workers": 0})
    page = open_page()
    page.goto(f"/c/{made.number}")
    expect(page.locator("[data-live=headline]")).to_contain_text("waiting for the first answer")
    expect(page.locator("[data-part=notes]")).to_contain_text("Nobody has joined yet")
    page.evaluate("window.same = true")
    worker = open_page(owner=False)
    worker.goto(made.join())
    for done in range(1, 5):
        worker.locator("#task").wait_for()
        worker.wait_for_timeout(220)  # a faster key would be taken for a double one
        worker.keyboard.press("y")
        expect(worker.locator("#count")).to_have_text(f"{done} answered")
    expect(page.locator("dl.facts [data-live=labelled]")).not_to_have_text("0")
    expect(page.locator("[data-flow='0']")).to_contain_text("passed")
    expect(page.locator("[data-part=notes]")).to_contain_text("Nothing now")
    expect(page.locator("[data-live=active]")).to_have_text("1")
    assert page.evaluate("window.same") is True
    shot(page, "dashboard", full=True)
    # a number leads to the items behind it, an item to its answers
    page.click("dl.facts a >> nth=0")
    page.click("table.list tbody a >> nth=0")
    expect(page.locator("h2", has_text="Every answer")).to_be_visible()
    expect(page.locator("table.list tbody tr")).not_to_have_count(0)
    shot(page, "item", full=True)


def test_a_destructive_button_names_its_victim_and_asks_once(open_page, campaign, shot) -> None:
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
    expect(page.locator(".status")).to_have_text("paused")
    page.click("text=Finish now")
    dialog.locator("#ask-yes").click()
    expect(page.locator(".status")).to_have_text("finished")
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
    expect(worker.locator("body")).to_contain_text("not valid any more")


def test_a_draft_can_be_deleted_and_leaves_the_list(open_page, shot) -> None:
    page = open_page()
    page.goto("/new")
    page.click("text=More choices")
    page.fill("#name", "Only a try")
    page.click("button[value=table1]")
    page.wait_for_url("**/plan")
    page.goto("/")
    draft = page.locator("tr", has_text="Only a try")
    shot(page, "list")
    draft.locator("text=Delete").click()
    expect(page.locator("#ask")).to_contain_text("Delete the draft “Only a try”?")
    page.click("#ask-yes")
    expect(draft).to_have_count(0)


def test_without_a_session_the_page_says_how_to_log_in(open_page, shot) -> None:
    page = open_page(owner=False)
    for path in ("/", "/new", "/c/1", "/c/1/workers"):
        assert page.goto(path).status == 401
        expect(page.locator("h1")).to_have_text("Open your owner link")
    assert page.goto("/login?token=wrong").status == 401
    expect(page.locator("body")).to_contain_text("used already or is not valid")
    assert page.goto("/work").status == 401
    expect(page.locator("body")).to_contain_text("Open your personal link first")
    shot(page, "no-link")
