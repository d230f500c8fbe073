"""A rehearsal: a real server, real HTTP, simulated people."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.demo.example import ITEMS, example_items, load_example
from crowdtree.demo.rehearsal import Person, people, rehearse, served
from crowdtree.errors import CrowdtreeError
from crowdtree.report import LiveCampaign, LiveWorker, report_html
from crowdtree.store import Store
from crowdtree.store.db.campaign_row import get_campaign, list_campaigns, tally
from crowdtree.store.replay.verify import verify


def test_a_campaign_from_the_link_to_the_labels(tmp_path: Path) -> None:
    problem = ct.example("table1")
    rng = np.random.default_rng(3)
    items = example_items(problem, 12, rng, gold=4)
    crowd = [Person(f"worker {n}", 3.0) for n in range(5)] + [Person("spammer", 0.0, True)]
    seen: list[tuple[int, int]] = []
    policy = {"example": "table1", "kind": "adaptive", "target_error": 0.02}
    with served(tmp_path / "live.db") as owner:
        run = rehearse(
            owner, "small", problem, policy, items, crowd, report=lambda *at: seen.append(at)
        )
    assert len(run.truth) == len(run.labels) == 12
    assert run.truth == [item["class"] for item in items if "gold" not in item]
    assert float(run.wrong) <= 0.25  # five workers who hardly err, one who answers at random
    assert seen[-1] == (12, 12)
    assert run.answers > 0
    assert run.checks > 0
    assert sum(worker.answers for worker in run.workers) >= run.answers + run.checks
    with Store(str(tmp_path / "live.db")).opened() as store:
        assert store.read(lambda c: verify(c, 1))["agrees"]


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


def test_the_report_shows_campaigns_beside_the_truth() -> None:
    plan = ct.staff(ct.design(ct.example("table1")), workers=8)
    crowd = [
        LiveWorker("ann", 10, 0.9, 0.92, "active"),
        LiveWorker("coin", 4, 0.5, 0.5, "paused", spammer=True),
    ]
    run = LiveCampaign(
        "the <plan>", ["a", "b", "b", "c"], ["a", "b", "c", None], 20, 6, 0.1, crowd, 2.0, 0.05
    )
    page = report_html(plan, live=[run])
    assert "A live campaign" in page
    assert "the &lt;plan&gt;" in page
    assert "the <plan>" not in page
    assert "50 %" in page  # two of four are wrong: one label, and one that is missing
    assert run.mistakes == [("b", "c", 1), ("c", "no label", 1)]
    assert run.found_out == (1, 0)
    assert json.loads(json.dumps(run.to_dict()))["answers_per_item"] == 5.0
    assert "A live campaign" not in report_html(plan)
