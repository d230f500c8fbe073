"""A rehearsal: a real server, real HTTP, simulated people."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.cli.rehearsal.example import ITEMS, example_items, load_example
from crowdtree.cli.rehearsal.rehearsal import people, served
from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import Store
from crowdtree.server.store.db.campaign_row import get_campaign, list_campaigns, tally
from crowdtree.server.store.replay.verify import verify
from crowdtree.show.report import LiveCampaign, LiveWorker, report_html
from tests.cli.helpers import run


def test_the_demo_goes_from_a_table_to_audited_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"ITEMS": 12, "KNOWN": 4, "PEOPLE": 6, "SPAMMERS": 1, "SIMULATED": 500, "CHECKS": 5}
    for name, value in {"EXAMPLE": "table1", **small}.items():
        monkeypatch.setattr(f"crowdtree.cli.demo.{name}", value)
    assert run("demo", "--out", tmp_path) == 0
    out = capsys.readouterr().out
    choices = ct.load(tmp_path / "plan.json")
    assert choices == ct.plan(ct.example("table1"), error=0.01, price=0.02)
    assert choices.recommended.summary[1:] in out
    assert choices.reason in out
    assert len(ct.load(tmp_path / "labels.csv")[0]) == 12
    assert ct.load(tmp_path / "audit.json").checked == 5
    words = (tmp_path / "report.html").read_text()
    parts = [
        "Recommended",
        "The best fixed tree",
        "The campaign",
        "Learned from",
        "Audited",
        "Several answers per question",
        "in turns",
        "People, models and an expert",
        "people only",
    ]
    places = [words.index(part) for part in parts]
    assert places == sorted(places)
    with Store(str(tmp_path / "campaign.db")).opened() as store:
        assert store.read(lambda c: verify(c, 1))["agrees"]
    monkeypatch.chdir(tmp_path)
    shown = [line[2:] for line in out.splitlines() if line.startswith("$ ")]
    assert [line.split()[1] for line in shown] == [
        "plan", "simulate", "plan", "plan", "serve", "learn", "audit", "report"
    ]  # fmt: skip
    for line in shown:
        if " serve " not in line and "example:triage" not in line:  # searched for long enough above
            assert run(*shlex.split(line)[1:]) == 0, line
    capsys.readouterr()


def test_a_server_that_cannot_start_is_named(tmp_path: Path) -> None:
    (tmp_path / "live.db").write_text("this is no database, and never was one " * 30)
    with (
        pytest.raises(CrowdtreeError, match="the server did not start"),
        served(tmp_path / "live.db"),
    ):
        pass


def test_items_describe_their_class() -> None:
    problem = ct.example("animals")
    items = example_items(problem, 50, np.random.default_rng(0), gold=5)
    assert [("gold" in item) for item in items] == [True] * 5 + [False] * 50
    assert all(item["class"] in item["text"] for item in items)
    assert len({item["task"] for item in items}) == 55


def test_people_are_mixed_and_the_last_are_spammers() -> None:
    crowd = people(30, 2, np.random.default_rng(0))
    assert [p.spammer for p in crowd] == [False] * 28 + [True] * 2
    assert len({p.skill for p in crowd[:28]}) == 28
    assert len({p.name for p in crowd}) == 30


def test_the_example_is_loaded_once(tmp_path: Path) -> None:
    with Store(str(tmp_path / "x.db")).opened() as store:
        number = load_example(store)
        assert number is not None
        assert load_example(store) is None
        found = store.read(list_campaigns)
        assert [row.id for row in found] == [number]
        assert store.read(lambda c: get_campaign(c, number)).status == "running"
        counts = store.read(lambda c: tally(c, number))
        assert counts["new"] == ITEMS


def test_the_report_shows_a_campaign_beside_the_truth() -> None:
    plan = ct.staff(ct.design(ct.example("table1")), workers=8)
    crowd = [
        LiveWorker("ann", 10, 0.9, 0.92, "active"),
        LiveWorker("coin", 4, 0.5, 0.5, "paused", spammer=True),
    ]
    truth, labels = ["a", "b", "b", "<c>"], ["a", "b", "<c>", None]
    live = LiveCampaign(truth, labels, 20, 6, 0.1, crowd, price=0.5, notes=[("Audited", "by <me>")])
    page = report_html(plan, live=live)
    assert "The campaign" in page
    assert "by &lt;me&gt;" in page
    assert "<me>" not in page
    assert "<c>" not in page
    assert "50\u00a0%" in page  # two of four are wrong: one label, and one that is missing
    assert live.mistakes == [("<c>", "no label", 1), ("b", "<c>", 1)]
    assert live.found_out == (1, 0)
    assert live.cost == 7.0  # of all 14 answers
    assert json.loads(json.dumps(live.to_dict()))["answers_per_item"] == 5.0
    assert "The campaign" not in report_html(plan)
