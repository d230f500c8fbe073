"""What the pages say, without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the server's packages")

from crowdtree import files
from crowdtree.errors import CrowdtreeError
from crowdtree.plots.style import css_variables
from crowdtree.policy import AdaptivePolicy, PlanPolicy
from crowdtree.store import Next, Settings, Store, Submit
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.db.problem_json import problem_to_json
from crowdtree.store.db.tables import audit, items, workers
from crowdtree.store.owner import campaigns, drafts, people, tokens
from crowdtree.store.queries.items import PAGE, divided, some_items
from crowdtree.web.api.media import TYPES
from crowdtree.web.building import Wish, policy_of, problem_from_bytes
from crowdtree.web.pages.choices import make_offer, planned
from crowdtree.web.pages.flow import flow_numbers, flow_svg
from crowdtree.web.pages.live import look
from crowdtree.web.pages.markdown import markdown
from crowdtree.web.pages.sharing import FIELDS, FLAGS, WORDS, shown_settings, value_of
from crowdtree.web.pages.wizard import _pasted
from crowdtree.web.studio import silent

WEB = Path(files.__file__).parents[1] / "web"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Room:
    """A campaign in a database of its own, on the small example with one vote a question."""

    def __init__(self, rows: int = 4, **settings) -> None:
        self.clock = Clock()
        self.store = Store("sqlite://", clock=self.clock, rng=0)
        self.policy = policy_of(Wish(example="table1"))
        self.number = self.store.write(
            lambda c: campaigns.create(c, "Birds", self.policy, Settings(**settings), 0.0)
        )
        made = [{"task": str(k), "payload": json.dumps({"text": f"t{k}"})} for k in range(rows)]
        self.store.write(lambda c: campaigns.add_items(c, self.number, made))

    def start(self) -> None:
        self.store.write(lambda c: campaigns.set_status(c, self.number, "running", self.clock.now))

    def worker(self) -> str:
        made = (self.number, "Ann", self.policy, False, self.clock.now)
        return tokens.hashed(self.store.write(lambda c: people.invite(c, *made)[1]))

    def answer(self, who: str, value: int) -> None:
        task = self.store.ask(Next(who))["task"]
        self.store.ask(Submit(who, task["lease"], "answer", value, f"k{task['lease']}"))

    def picture(self):
        row = self.store.read(lambda c: get_campaign(c, self.number))
        return self.store.read(
            lambda c: look(c, row, self.policy, planned(self.policy), self.clock.now)
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
    assert not {"svg", "html", "htm", "xml", "js", "pdf", "xhtml"} & set(TYPES)


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
    return make_offer(silent, problem_to_json(files.example("animals")))


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
    with pytest.raises(CrowdtreeError, match="paste one item a line"):
        _pasted(" \n ")


# ------------------------------------------------------------------ drafts


def test_a_draft_can_change_its_plan_until_it_starts(room):
    one = room()
    other = AdaptivePolicy(one.policy.problem, 0.02, 50)
    one.store.write(lambda c: drafts.change_policy(c, one.number, other, 1.0))
    row = one.store.read(lambda c: get_campaign(c, one.number))
    assert (row.policy["policy"], row.version) == ("adaptive", 1)
    one.start()
    with pytest.raises(CrowdtreeError, match="has started"):
        one.store.write(lambda c: drafts.change_policy(c, one.number, one.policy, 2.0))


def test_a_discarded_draft_leaves_only_a_line_in_the_audit(room):
    one, other = room(), room()
    one.worker()
    one.store.write(lambda c: drafts.discard(c, one.number, 5.0))
    with pytest.raises(CrowdtreeError, match="does not exist"):
        one.store.read(lambda c: get_campaign(c, one.number))
    for table in (items, workers):
        assert one.store.read(lambda c, t=table: c.execute(t.select()).all()) == []
    actions = one.store.read(lambda c: [row.action for row in c.execute(audit.select())])
    assert actions[-1] == "discard"
    other.start()
    with pytest.raises(CrowdtreeError, match="has started"):
        other.store.write(lambda c: drafts.discard(c, other.number, 5.0))


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


def test_divided_votes_come_first(room):
    one = room(rows=2)
    plan = policy_of(Wish(example="table1", workers=8))
    one.store.write(lambda c: drafts.change_policy(c, one.number, plan, 0.0))
    one.start()
    people_ = [one.worker() for _ in range(4)]
    assert plan.plan.votes[0] == 5
    for who, vote in zip(people_, (1, 0, 1, 1), strict=True):
        one.answer(who, vote)
    for who in people_[:3]:  # three of five agree: the vote is over
        one.answer(who, 1)
    found = one.store.read(lambda c: divided(c, one.number))
    assert (found.labels, found.questions) == (2, {"T1": (1, 7)})
    assert [(row["yes"], row["no"]) for row in found.items] == [(3, 1)]


def test_items_are_found_by_status_label_and_name(room):
    one = room(rows=120)
    one.start()
    who = one.worker()
    one.answer(who, 1)

    def find(**asked):
        return one.store.read(lambda c: some_items(c, one.number, **asked))

    assert [row["task"] for row in find(status="labelled")] == ["0"]
    assert [row["task"] for row in find(label=3)] == ["0"]
    assert find(label=0) == []
    assert [row["task"] for row in find(find="11")] == ["11", *map(str, range(110, 120))]
    assert [row["task"] for row in find(find="11", after="118")] == ["119"]
    assert [row["task"] for row in find(find="0", label=3, status="labelled")] == ["0"]
    assert find(find="0", label=2) == []
    assert find(find="%") == []
    first = find()
    assert len(first) == PAGE
    assert find(after=str(first[-1]["cursor"]))[0]["task"] == str(PAGE)
