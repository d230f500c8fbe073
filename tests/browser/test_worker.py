"""A worker answers: with keys, on a phone, with undo, and through a lost connection."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.clock import BRIEF, HOLD, freeze, press_now


def press(page: Page, key: str) -> None:
    """Answer as a person would: not before the question can be seen."""
    page.locator("#task").wait_for()
    page.wait_for_timeout(220)
    page.keyboard.press(key)


def test_keys_answer_and_the_next_question_is_prefetched(open_page, campaign, shot) -> None:
    made = campaign(instructions="Look **well**.", examples={"T1": "- a _red_ one"})
    page = open_page(owner=False)
    page.clock.install()
    page.goto(made.join())
    assert "/join/" not in page.url  # no secret stays in the address
    expect(page.locator("#intro strong")).to_have_text("well")
    shot(page, "work-intro")
    page.click("#begin")
    expect(page.locator("#question")).to_have_text("T1")
    shot(page, "work")
    for done, key in enumerate("ynyn", start=1):
        before = page.inner_text("#item")
        press(page, key)
        expect(page.locator("#count")).to_have_text(f"{done} answered")
        expect(page.locator("#item")).not_to_have_text(before)
    freeze(page)
    press_now(page, "s")
    expect(page.locator("#last")).to_have_text("Can’t tell: \u2068T1\u2069")
    expect(page.locator("#count")).to_have_text("4 answered")
    page.click("#help")
    expect(page.locator("#sheet em")).to_have_text("red")
    page.keyboard.press("y")  # keys rest while help is open
    page.click("#sheet >> text=Use these keys")
    page.click("#sheet >> text=Close")
    press_now(page, "y")  # and when they are switched off
    expect(page.locator("#count")).to_have_text("4 answered")
    page.close()  # the last answers are handed over when the page goes
    expect_answers(made, counted=4, skipped=1)


def test_a_closed_page_releases_its_questions(open_page, campaign) -> None:
    made = campaign(items=1, policy={"workers": 0})
    first = open_page(owner=False)
    first.goto(made.join())
    first.locator("#task").wait_for()
    link = made.join()
    first.close(run_before_unload=True)  # as a person closes a tab: the page is told
    second = open_page(owner=False)
    second.goto(link)
    second.locator("#task").wait_for(timeout=90_000)  # long before the first one's time is over


def expect_answers(made, counted: int, skipped: int = 0) -> None:
    import time

    for _ in range(100):
        found = made.progress()["answers"]
        if (found["counted"], found["skipped"]) == (counted, skipped):
            return
        time.sleep(0.1)
    raise AssertionError(found)


def test_on_a_phone_everything_is_within_reach(open_page, campaign, shot) -> None:
    made = campaign(rows="task,text\n" + "".join(f"{k},{'Long text. ' * 200}\n" for k in range(6)))
    page = open_page(owner=False, phone=True)
    page.goto(made.join())
    page.locator("#task").wait_for()
    shot(page, "work-phone")
    height = page.viewport_size["height"]
    for name in ("no", "skip", "yes"):
        box = page.locator(f"[data-answer={name}]").bounding_box()
        assert box["height"] >= 48
        assert box["width"] >= 48
        assert box["y"] > height / 2
        assert box["y"] + box["height"] <= height
    undo = page.locator("#undo").bounding_box()
    assert undo["y"] + undo["height"] <= height
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    page.wait_for_timeout(220)
    page.tap("[data-answer=yes]")
    expect(page.locator("#count")).to_have_text("1 answered")


SENT = "**/api/worker/answer"


def test_undo_discards_an_answer_that_has_not_been_sent(open_page, campaign, shot) -> None:
    made = campaign()
    page = open_page(owner=False)
    page.clock.install()
    page.goto(made.join())
    page.locator("#task").wait_for()
    expect(page.locator("#undo")).to_be_disabled()
    first = page.inner_text("#item")
    freeze(page)
    press_now(page, "y")
    expect(page.locator("#between-title")).to_have_text("One moment")  # newcomers hold one question
    page.click("#between-undo button")
    expect(page.locator("#item")).to_have_text(first)
    expect(page.locator("#count")).to_have_text("0 answered")
    expect(page.locator("#undo")).to_be_disabled()
    press_now(page, "n")
    with page.expect_request(SENT) as sent:
        page.clock.run_for(BRIEF)
    assert sent.value.post_data_json["answer"] == "no"
    page.locator("#task").wait_for()
    second = page.inner_text("#item")
    press_now(page, "y")
    expect(page.locator("#item")).not_to_have_text(second)  # the next question is there at once
    third = page.inner_text("#item")
    shot(page, "work-undo")
    page.keyboard.press("u")
    expect(page.locator("#item")).to_have_text(second)
    with page.expect_request(SENT) as sent:  # by the next answer
        press_now(page, "n")
        expect(page.locator("#item")).to_have_text(third)
        press_now(page, "n")
    assert sent.value.post_data_json["answer"] == "no"
    expect(page.locator("#count")).to_have_text("3 answered")
    page.keyboard.press("u")
    expect(page.locator("#item")).to_have_text(third)
    page.keyboard.press("u")  # one answer can be undone, not two
    expect(page.locator("#count")).to_have_text("2 answered")
    page.close()
    expect_answers(made, counted=2)
    assert [line[-1] for line in made.answers()] == ["0", "0"]


def test_the_last_answer_is_sent_by_itself(open_page, campaign) -> None:
    made = campaign()
    page = open_page(owner=False)
    page.clock.install()
    page.goto(made.join())
    page.locator("#task").wait_for()
    freeze(page)
    press_now(page, "y")
    page.clock.run_for(BRIEF)
    page.locator("#task").wait_for()
    first = page.inner_text("#item")
    press_now(page, "y")
    expect(page.locator("#item")).not_to_have_text(first)
    page.clock.run_for(HOLD - 500)
    expect(page.locator("#undo")).to_be_enabled()
    with page.expect_response(SENT) as sent:
        page.clock.run_for(500)
    assert sent.value.ok
    expect(page.locator("#undo")).to_be_disabled()
    expect(page.locator("#last")).to_have_text("Nothing to undo")
    assert made.progress()["answers"]["counted"] == 2


def test_a_question_that_needs_the_last_answer_follows_it(open_page, campaign) -> None:
    made = campaign(items=1, policy={"workers": 0})
    page = open_page(owner=False)
    page.goto(made.join())
    expect(page.locator("#question")).to_have_text("T1")
    item = page.inner_text("#item")
    press(page, "n")
    expect(page.locator("#question")).not_to_have_text("T1")
    expect(page.locator("#item")).to_have_text(item)
    expect(page.locator("#undo")).to_be_disabled()  # the question rests on the answer
    assert made.progress()["answers"]["counted"] == 1


def test_a_lost_connection_loses_nothing(open_page, campaign, shot) -> None:
    made = campaign()
    page = open_page(owner=False)
    page.goto(made.join())
    press(page, "y")
    page.locator("#task").wait_for()
    second = page.inner_text("#item")
    press(page, "n")
    expect(page.locator("#item")).not_to_have_text(second)  # the next question is there already
    page.context.set_offline(True)
    press(page, "y")
    expect(page.locator("#banner")).to_contain_text("No connection.")
    expect(page.locator("#banner")).to_contain_text("kept here")
    expect(page.locator("#count")).to_have_text("3 answered")
    shot(page, "work-offline")
    # even a closed tab keeps them: the next one in this browser sends them
    context = page.context
    page.close()
    context.set_offline(False)
    page = context.new_page()
    page.goto("/work")
    page.locator("#task").wait_for()
    expect_answers(made, counted=3)
    assert len({tuple(line.split(",")[:3]) for line in made.answers()}) == 3  # none twice


def test_a_request_whose_answer_was_lost_is_not_counted_twice(open_page, campaign) -> None:
    made = campaign()
    page = open_page(owner=False)
    page.goto(made.join())
    page.locator("#task").wait_for()
    dropped = []

    def swallow(route) -> None:
        if not dropped:
            dropped.append(route.fetch())  # the server took it, the browser never hears
            route.abort()
        else:
            route.continue_()

    page.route("**/api/worker/answer", swallow)
    press(page, "y")
    press(page, "y")
    expect(page.locator("#banner")).to_contain_text("All answers are saved", timeout=20_000)
    page.close()
    expect_answers(made, counted=2)


def test_the_end_shows_thanks_the_code_and_the_return_link(open_page, campaign, shot) -> None:
    made = campaign(
        max_answers_per_worker=2,
        completion_code="C0DE",
        return_url="https://example.org/done?cc=C0DE",
        thanks="Many thanks!",
    )
    page = open_page(owner=False, phone=True)
    page.goto(made.join() + "?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=t")
    expect(page.locator("#count")).to_have_text("0 of 2")
    press(page, "y")
    press(page, "n")
    expect(page.locator("#between-title")).to_have_text("Many thanks!")
    expect(page.locator("#code code")).to_have_text("C0DE")
    expect(page.locator("#back a")).to_have_attribute("href", "https://example.org/done?cc=C0DE")
    expect(page.locator("#voice")).to_contain_text("Your completion code: C0DE")
    shot(page, "work-end")
    # the platform may send the same person again
    page.goto(made.join() + "?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=u")
    expect(page.locator("#between-title")).to_have_text("Many thanks!")
    workers = made.api.get(f"/api/campaigns/{made.number}/workers").json()
    assert [row["external_id"] for row in workers] == ["p1"]


def test_the_code_comes_after_the_last_answer_only(open_page, campaign, shot) -> None:
    made = campaign(max_answers_per_worker=1, completion_code="C0DE")
    page = open_page(owner=False)
    page.clock.install()
    page.goto(made.join())
    page.locator("#task").wait_for()
    freeze(page)
    press_now(page, "y")
    expect(page.locator("#code")).to_be_hidden()
    page.click("#between-undo button")  # so there is no answer, and no code
    page.locator("#task").wait_for()
    expect(page.locator("#count")).to_have_text("0 of 1")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(SENT, hold)  # the answer is on its way, and does not arrive
    press_now(page, "n")
    with page.expect_request(SENT):
        page.clock.run_for(BRIEF)
    expect(page.locator("#between-undo")).to_be_hidden()
    page.keyboard.press("u")  # too late
    expect(page.locator("#task")).to_be_hidden()
    expect(page.locator("#code")).to_be_hidden()
    assert made.answers() == []
    held[0].continue_()
    expect(page.locator("#code code")).to_have_text("C0DE")
    expect(page.locator("#between-undo")).to_be_hidden()
    shot(page, "work-end-sent")
    assert [line[-1] for line in made.answers()] == ["0"]
    page.keyboard.press("u")
    expect(page.locator("#code code")).to_have_text("C0DE")


def test_uploaded_content_is_shown_and_never_run(open_page, campaign, shot) -> None:
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    rows = (
        "task,text,markdown,image\n"
        f'1,{evil},"**bold** {evil} [go](javascript:alert(3))",\n'
        f"2,{evil},,\n"
    )
    made = campaign(rows=rows, instructions=f"{evil} [x](javascript:alert(4))", thanks=evil)
    page = open_page(owner=False)
    page.goto(made.join())
    page.click("#begin")
    page.locator("#task").wait_for()
    expect(page.locator("#item .words")).to_have_text(evil)
    expect(page.locator("#item strong")).to_have_text("bold")
    assert page.locator("#item script, #item img, #item [onerror]").count() == 0
    assert page.locator("a[href^=javascript]").count() == 0
    shot(page, "work-evil")
    owner = open_page()
    for path in ("items", "items/1", "share", "plan", "workers", ""):
        number = made.number
        if path == "items/1":
            owner.goto(f"/c/{number}/items")
            owner.click("tbody a >> nth=0")
            expect(owner.locator(".item .words")).to_have_text(evil)
        else:
            owner.goto(f"/c/{number}/{path}".rstrip("/"))
        assert owner.locator("main script, main [onerror]").count() == 0


def test_a_picture_can_be_enlarged_and_others_cannot_load_it(open_page, campaign, shot) -> None:
    rows = "task,image,alt\n1,bird one.png,A small brown bird\n2,bird one.png,The same\n"
    made = campaign(rows=rows)
    draft = open_page()
    draft.goto(f"/c/{made.number}/items")
    draft.click("text=Upload images")
    draft.uncheck("input[name=each]")
    picture = {"name": "bird one.png", "mimeType": "image/png", "buffer": draft.screenshot()}
    page_file = {"name": "evil.svg", "mimeType": "image/svg+xml", "buffer": b"<svg/>"}
    draft.set_input_files("form[data-media] input", [picture, page_file])
    draft.click("form[data-media] button")
    expect(draft.locator("[data-done]")).to_have_text("1 of 2 uploaded")
    expect(draft.locator("form[data-media] .problem")).to_contain_text("evil.svg: use one of")
    draft.set_input_files("form[data-media] input", [picture])
    draft.click("form[data-media] button")
    expect(draft.locator("[data-done]")).to_have_text("")  # the page was loaded again
    expect(draft.locator(".seen img").first).to_have_js_property("naturalWidth", 1280)
    page = open_page(owner=False, phone=True)
    page.goto(made.join())
    image = page.get_by_alt_text("A small brown bird")
    expect(image).to_have_js_property("naturalWidth", 1280)
    shot(page, "work-picture")
    image.click()
    expect(page.locator("#zoom img")).to_be_visible()
    shot(page, "work-zoom")
    page.click("#zoom >> text=Close")
    expect(page.locator("#zoom")).to_be_hidden()
    path = str(image.first.get_attribute("src"))
    assert page.request.get(path).ok
    assert page.request.get(f"/media/{made.number}/bird%20one.png").status == 404  # its own name
    stranger = open_page(owner=False)
    assert stranger.request.get(path).status == 404
    stranger.goto(campaign().join())  # a worker of another campaign
    assert stranger.request.get(path).status == 404
    for bad in ("..%2f..%2fserver.log", ".hidden.png", "%2e%2e", "a.html"):
        assert page.request.get(f"/media/{made.number}/{bad}").status in (404, 415, 422)


def sound() -> bytes:
    """A tenth of a second of a quiet tone, as a WAV file."""
    import io
    import math
    import struct
    import wave

    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        tone = (int(3000 * math.sin(0.35 * k)) for k in range(800))
        file.writeframes(b"".join(struct.pack("<h", value) for value in tone))
    return out.getvalue()


FILM = """async () => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 32, height: 32 });
  const pen = canvas.getContext("2d");
  const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: "video/webm" });
  const parts = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  recorder.start();
  for (let k = 0; k < 8; k += 1) {
    pen.fillRect(k, k, 8, 8);
    await new Promise((done) => setTimeout(done, 40));
  }
  await new Promise((done) => { recorder.onstop = done; recorder.stop(); });
  return [...new Uint8Array(await new Blob(parts).arrayBuffer())];
}"""


def test_images_audio_and_video_become_items_and_play(open_page, api, shot) -> None:
    owner = open_page()
    policy = {"policy": {"example": "table1"}, "name": "Media"}
    number = api.post("/api/campaigns", data=policy).json()["id"]
    owner.goto(f"/c/{number}/items")
    film = bytes(owner.evaluate(FILM))
    picture = owner.screenshot()
    files = [
        {"name": "bird (1).png", "mimeType": "image/png", "buffer": picture},
        {"name": "song.wav", "mimeType": "audio/wav", "buffer": sound()},
        {"name": "film.webm", "mimeType": "video/webm", "buffer": film},
    ]
    owner.set_input_files("form[data-media] input[type=file]", files)
    owner.click("form[data-media] button")
    expect(owner.locator(".banner")).to_contain_text("3 items added")
    expect(owner.locator("table.list tbody")).to_contain_text("bird _1_.png")
    assert api.post(f"/api/campaigns/{number}/start").ok
    link = api.post(f"/api/campaigns/{number}/join-link").json()["link"]
    page = open_page(owner=False, phone=True, color_scheme="dark")
    page.goto(link)
    expect(page.locator("#item img")).to_have_js_property("naturalWidth", 1280)
    press(page, "y")
    loaded = "element => new Promise(done => element.readyState > 0 ? done(element.duration) : "
    loaded += "element.addEventListener('loadedmetadata', () => done(element.duration)))"
    audio = page.locator("#item audio")
    assert abs(audio.evaluate(loaded) - 0.1) < 0.01
    shot(page, "work-audio")
    press(page, "y")
    video = page.locator("#item video")
    video.evaluate(loaded)
    expect(video).to_have_js_property("videoWidth", 32)
    shot(page, "work-video")
    # the keys answer also while the player has the focus
    page.focus("#item video")
    press(page, "y")
    expect(page.locator("#count")).to_have_text("3 answered")


def test_no_work_now_is_told_apart_from_no_more_work(open_page, campaign, shot) -> None:
    made = campaign(price=0.1, budget=0.1, completion_code="C0DE")
    first, page = open_page(owner=False), open_page(owner=False, phone=True)
    first.goto(made.join())
    first.locator("#task").wait_for()
    page.goto(made.join())
    expect(page.locator("#between-title")).to_have_text("No work right now")
    expect(page.locator("#between-text")).to_contain_text("continues automatically")
    shot(page, "work-wait-phone")
    first.close()  # which gives the question back
    page.locator("#task").wait_for(timeout=30_000)
    late = open_page(owner=False)
    late.goto(made.join())
    expect(late.locator("#between-title")).to_have_text("No work right now")
    made.api.post(f"/api/campaigns/{made.number}/finish")
    expect(late.locator("#between-title")).to_have_text("The work is finished", timeout=30_000)
    expect(late.locator("#between-text")).to_contain_text("There is no more work for you here.")
    expect(late.locator("#between-text")).to_contain_text("after 1 accepted answer; you have 0")
    expect(late.locator("#code")).to_be_hidden()
    shot(late, "work-no-code")
    late.set_viewport_size({"width": 390, "height": 844})
    shot(late, "work-no-code-phone")


@pytest.mark.parametrize("phone", [False, True])
def test_a_refused_visitor_reads_why(open_page, campaign, shot, phone: bool) -> None:
    made = campaign(may_join="signed")
    page = open_page(owner=False, phone=phone)
    found = page.goto(made.join() + "?participant=p1")
    assert found.status == 403
    expect(page.locator("main")).to_contain_text("is not signed, was changed, or the link has")
    shot(page, "join-refused" + ("-phone" if phone else ""))
