"""What the pages say, without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the server's packages")

from crowdtree import files
from crowdtree.advise import make_offer, promise_of
from crowdtree.errors import CrowdtreeError
from crowdtree.plots.live_tree import flow_numbers, flow_svg
from crowdtree.plots.style import css_variables
from crowdtree.policy import AdaptivePolicy, PlanPolicy
from crowdtree.store import Settings
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.web.pages.live import look
from crowdtree.web.pages.markdown import markdown
from crowdtree.web.pages.settings import FIELDS, FLAGS, WORDS, shown_settings, value_of
from crowdtree.web.pages.wizard import _pasted
from crowdtree.web.plan_jobs import problem_from_bytes
from crowdtree.web.services.items import MEDIA_TYPES
from crowdtree.web.worker_process import silent
from storelab import Small

WEB = Path(files.__file__).parents[1] / "web"


class Room(Small):
    """A campaign whose dashboard is looked at."""

    def picture(self):
        row = self.store.read(lambda c: get_campaign(c, self.number))
        return self.store.read(
            lambda c: look(c, row, self.policy, promise_of(self.policy), self.clock.now)
        )

    def notes(self) -> str:
        return " | ".join(note.text for note in self.picture().notes)


@pytest.fixture
def room():
    made = []

    def make(**options) -> Room:
        made.append(Room(**options))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


# ------------------------------------------------------------------ the rules of the house


def test_the_stylesheet_takes_every_colour_from_the_tokens():
    css = (WEB / "static" / "crowdtree.css").read_text()
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)", css) == []
    used = set(re.findall(r"var\((--[a-z-]+)\)", css))
    known = set(re.findall(r"(--ct-[a-z-]+):", css_variables()))
    assert used
    assert used <= known


@pytest.mark.parametrize("page", sorted((WEB / "templates").glob("*.html")), ids=lambda p: p.name)
def test_no_template_needs_more_than_the_strict_policy_allows(page):
    text = page.read_text()
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)
    assert not re.search(r"(src|href)=\"(?:https?:)?//", text)


def test_only_what_the_server_made_is_shown_unescaped():
    safe = {
        match
        for page in (WEB / "templates").glob("*.html")
        for match in re.findall(r"\{\{ *([\w.]+)\|safe", page.read_text())
    }
    assert safe == {
        *("drawn", "offer.chart", "tree", "flow", "instructions", "html", "shown.html", "row.html"),
        *(f"parts.{name}" for name in ("actions", "notes", "labels", "divided", "questions")),
        *("parts.workers", "parts.places"),
    }


def test_nothing_that_a_browser_runs_can_be_uploaded():
    assert not {"svg", "html", "htm", "xml", "js", "pdf", "xhtml"} & set(MEDIA_TYPES)


def test_the_table_to_download_is_the_one_that_is_shown_and_can_be_read():
    content = (WEB / "static" / "table.csv").read_bytes()
    assert problem_from_bytes(content, "table.csv").classes == ("robin", "eagle", "trout")
    page = (WEB / "templates" / "new.html").read_text()
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", page)
    assert ",".join(cells) == content.decode().strip().replace("\n", ",")


# ------------------------------------------------------------------ Markdown


@pytest.mark.parametrize(
    "evil",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "![x](data:text/html;base64,PHNjcmlwdD4=)",
        '[x](https://a "onmouseover=alert(1)")',
        "<svg><style>@import'x'</style></svg>",
        "![x](http://plain.example/track.png)",
    ],
)
def test_markdown_runs_nothing(evil):
    made = markdown(evil)
    assert not re.search(r"<(script|svg|style|iframe)", made)
    assert not re.search(r"<[^>]*\son\w+=", made)
    assert not re.search(r'(href|src)="(?!https:|mailto:)', made)


def test_markdown_is_markdown():
    made = markdown("# Head\n\n- **one**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    for tag in ("<h1>", "<li>", "<strong>", "<table>", "<td>"):
        assert tag in made


# ------------------------------------------------------------------ choices


@pytest.fixture(scope="module")
def animals():
    return make_offer(silent, files.example("animals"))


def test_every_choice_keeps_its_promise(animals):
    for choice in animals.choices:
        assert choice.error <= choice.target
    for kind in ("tree", "adaptive"):
        mine = [c for c in animals.choices if c.kind == kind]
        assert len(mine) > 3
        assert [c.target for c in mine] == sorted(c.target for c in mine)
        assert [c.answers for c in mine] == sorted((c.answers for c in mine), reverse=True)


def test_every_choice_has_one_mark_on_the_chart(animals):
    keys = re.findall(r'data-choice="([^"]+)"', animals.chart)
    assert keys == [choice.key for choice in animals.choices]
    assert " style=" not in animals.chart
    assert "<style" not in animals.chart


def test_a_choice_is_found_again(animals):
    for choice in animals.choices:
        assert animals.nearest(choice.policy, choice.promise) is choice
        assert animals.get(choice.key) is choice
    with pytest.raises(CrowdtreeError, match="choose one"):
        animals.get("tree-7")
    assert isinstance(animals.get("adaptive-0.01").policy, AdaptivePolicy)
    assert isinstance(animals.get("tree-0.01").policy, PlanPolicy)


# ------------------------------------------------------------------ forms


def test_numbers_are_read_as_people_write_them():
    assert value_of("price", "0,05") == 0.05
    assert value_of("pause_below", "60 %".replace(" ", "")) == 0.6
    assert value_of("answers_per_worker", "") is None
    assert value_of("instructions", "") == ""
    with pytest.raises(CrowdtreeError, match="budget: 'much' is not a number"):
        value_of("budget", "much")


def test_every_setting_has_a_field_and_is_written_as_it_is_read():
    elsewhere = {"examples", "leases_per_worker"}  # a page of its own; only for programs
    assert {*FIELDS, *FLAGS, *WORDS} | elsewhere >= set(Settings.model_fields)
    form = (WEB / "templates" / "share.html").read_text()
    for name in (*FIELDS, *FLAGS, *WORDS):
        assert f'name="{name}"' in form or f'field("{name}"' in form
    settings = Settings(price=0.05, budget=20, gold_rate=0.07, pause_below=0.55, lease_seconds=90)
    written = shown_settings(settings.model_dump())
    for name, text in written.items():
        assert value_of(name, text) == getattr(settings, name)


def test_pasted_items_may_be_lines_or_tables():
    assert _pasted("id,text\n1,a\n")[1] == "csv"
    assert _pasted('{"task": "1"}\n')[1] == "jsonl"
    lines, kind = _pasted("one, with a comma\n\n  two ")
    assert kind == "jsonl"
    assert [json.loads(line)["text"] for line in lines.splitlines()] == ["one, with a comma", "two"]
    with pytest.raises(CrowdtreeError, match="paste one item per line"):
        _pasted(" \n ")


# ------------------------------------------------------------------ the live picture


def test_the_dashboard_says_what_needs_the_owner(room):
    one = room(price=1.0, budget=3.0, currency="EUR")
    one.start()
    assert one.picture().values["headline"] == "Running, and waiting for the first answer."
    assert "Nobody has joined yet." in one.notes()
    assert "The budget of 3.00 EUR will not be enough" in one.notes()
    who = one.worker()
    assert "Nobody has joined" not in one.notes()
    one.answer(who, 1)
    assert one.picture().values["headline"].startswith("Going well")
    one.clock.now += 3600
    picture = one.picture()
    assert picture.mood == "worry"
    assert "No answer for 1 h" in picture.values["headline"]
    assert "The last answer came 1 h ago." in one.notes()


def test_the_numbers_of_the_tree_add_up(room):
    one = room(rows=3)
    one.start()
    who = one.worker()
    one.answer(who, 1)  # c4 after the first question
    one.answer(who, 0)  # on to the second
    flow = one.picture().flow
    assert flow["text"]["0"] == "0 here · 2 passed"
    leaves = [text for key, text in flow["text"].items() if int(key) < 0]
    assert sorted(leaves)[-1] == "1 item"
    assert one.picture().values["labelled"] == "1"
    keys = set(re.findall(r'data-flow="(-?\d+)"', flow_svg(one.policy.plan)))
    assert keys == set(flow_numbers(one.policy.plan, {})["text"])
