"""How a campaign is going, in a few lines."""

from __future__ import annotations

from typing import Any

from crowdtree.cli.render.status import status_lines


def test_it_says_how_often_the_table_was_revised() -> None:
    last = {"number": 2, "reason": {"text": "people err more"}, "finished_at": None}
    line = "   revised 2 times, items are being replayed: people err more"
    assert line in status_lines(row(revision=last))


def row(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": 3,
        "name": "Birds",
        "status": "running",
        "reason": "",
        "status_reason": "",
        "items": {"new": 60, "open": 10, "labelled": 28, "set_aside": 2, "gold": 5, "total": 100},
        "answers_per_item": 6.25,
        "estimated_error": 0.0123,
        "spent": 12.5,
        "price": 0.05,
        "budget": 40.0,
        "workers": {"active": 9, "paused": 1, "blocked": 0},
        "waiting_for_workers": 4,
        "forecast": {
            "answers_left": 412.4,
            "answers_per_minute": 8.0,
            "seconds_left": 3093.0,
            "cost_left": 20.62,
        },
    }
    return made | changes


def test_status_shows_progress_cost_and_points_to_check() -> None:
    assert status_lines(row()) == [
        "3  Birds: running",
        "   30 of 100 items done, 6.25 answers per item, 1.23 % of labels wrong (estimate)",
        "   spent 12.50 of 40.00, about 20.62 remaining",
        "   about 412 answers remaining, 52 min at the current rate",
        "   check: 2 items set aside, 1 worker paused, 4 items waiting for more workers",
    ]


def test_amounts_have_their_currency() -> None:
    money = status_lines(row(currency="EUR"))[2]
    assert money == "   spent 12.50 of 40.00 EUR, about 20.62 remaining"


def test_status_of_a_draft() -> None:
    nothing = {"new": 1, "open": 0, "labelled": 0, "set_aside": 0, "gold": 0, "total": 1}
    forecast = dict.fromkeys(("answers_left", "answers_per_minute", "seconds_left", "cost_left"))
    draft = row(
        status="draft",
        items=nothing,
        answers_per_item=None,
        estimated_error=None,
        price=0.0,
        workers={"active": 0, "paused": 0, "blocked": 0},
        waiting_for_workers=0,
        forecast=forecast,
    )
    assert status_lines(draft) == ["3  Birds: draft", "   0 of 1 item done"]


def test_status_shows_the_reason_of_a_pause() -> None:
    paused = row(status="paused", reason="budget spent", status_reason="the budget is spent")
    assert status_lines(paused)[0] == "3  Birds: paused (the budget is spent)"
    assert not any("pace" in line for line in status_lines(paused))
    assert any("raise the budget" in line for line in status_lines(paused))


def test_status_counts_labels_that_wait_for_known_people() -> None:
    words = "2 labels waiting for people who are known (invite some by personal links)"
    assert any(words in line for line in status_lines(row(waiting_for_known=2)))
