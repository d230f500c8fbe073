"""What the pages, the API and the terminal say about the table of a campaign."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import crowdtree as ct
from crowdtree.cli.render.status import status_lines
from crowdtree.policies import AdaptivePolicy
from crowdtree.policies.monitor import Alarm, Finding
from crowdtree.server.store.db.tables import monitors
from crowdtree.server.store.owner.revisions import revise
from tests.weblab import Lab

ALARM = Alarm("question", "q <1>", 79, 8, 31.5)
FINDINGS = [
    Finding("question", "q <1>", 0.1, 0.22, 0.15, 0.3, 31.5),
    Finding("prior", "c1", 0.2, 0.25, 0.1, 0.4, 1.0),
    Finding("dependence", "", 0.0, 0.2, 0.2, 0.2, 1.0),
]
SAID = "people are wrong about 22 % (15 % to 30 %) of the time, the table says 10 %"


def monitored(app: Lab, alarms: int = 1, **settings: Any) -> int:
    """Make a campaign of which 79 answers were compared with the table."""
    number = app.campaign(example="table1", kind="adaptive", target_error=0.1, settings=settings)
    said = {
        "alarms": json.dumps([{**ALARM._asdict(), "text": str(ALARM)}] * alarms),
        "findings": json.dumps([{**f._asdict(), "text": str(f)} for f in FINDINGS] * alarms),
    }

    def write(connection: Any) -> None:
        connection.execute(monitors.delete().where(monitors.c.campaign_id == number))
        row = {"campaign_id": number, "answers": 79, **said}
        connection.execute(monitors.insert().values(**row))

    app.store.write(write)
    return number


def test_an_alarm_is_shown_with_what_to_do(app: Lab) -> None:
    number = monitored(app, revise=False)
    page = app.get(f"/c/{number}").text
    assert "After 8 items (79 answers) the answers contradict the table" in page
    assert SAID in page
    assert "q &lt;1&gt;" in page
    assert "q <1>" not in page
    assert "Let the campaign revise its table in the settings" in page
    for cells in ("Share of c1", "Correlation of errors", "15 % to 30 %"):
        assert cells in page
    found = app.get(f"/api/campaigns/{number}").json()["monitor"]
    assert (found["adapt"], found["answers"], len(found["alarms"])) == (False, 79, 1)


def test_a_revision_is_shown(app: Lab) -> None:
    number = monitored(app)
    assert "The table is being revised." in app.get(f"/c/{number}").text
    worse = ct.example("table1").replace(worker_error=0.2)
    policy = AdaptivePolicy(worse, target_error=0.1, strict=False)
    reason = {"text": "errors", "why": "alarm", "answers": 79, "last_answer_id": 1}
    app.store.write(lambda c: revise(c, number, policy, reason, app.clock(), "server"))
    assert "labels that no longer reach the target were taken back" in app.get(f"/c/{number}").text


def test_a_table_that_is_not_contradicted_is_one_sentence(app: Lab) -> None:
    number = monitored(app, alarms=0)
    assert "79 answers do not contradict the table." in app.get(f"/c/{number}").text
    lines = status_lines(app.get(f"/api/campaigns/{number}").json())
    assert not [line for line in lines if "alarm" in line]


def test_the_terminal_shows_alarms_and_a_table(app: Lab) -> None:
    number = monitored(app, revise=False)
    lines = status_lines(app.get(f"/api/campaigns/{number}").json())
    assert f"   alarm {ALARM}" in lines
    assert lines[-5:] == [
        "   the table is not revised (setting adapt)",
        "                          assumed  estimated  95 % interval",
        "   errors of q <1>        10 %     22 %       15 % to 30 %",
        "   share of c1            20 %     25 %       10 % to 40 %",
        "   correlation of errors  0        0.2",
    ]


def test_the_setting_is_shown_as_it_works(app: Lab) -> None:
    box = 'name="table.revise" checked'
    adaptive = app.campaign(example="table1", kind="adaptive", target_error=0.1, start=False)
    assert box in app.get(f"/c/{adaptive}/share").text
    assert box not in app.get(f"/c/{app.campaign(start=False)}/share").text


def test_the_server_compares_answers_in_the_background(app: Lab) -> None:
    number = app.campaign(example="table1", kind="adaptive", target_error=0.1)
    worker = app.worker(number)
    worker.work()
    app.settle()
    found = app.get(f"/api/campaigns/{number}").json()["monitor"]
    assert (found["answers"], found["alarms"]) == (1, [])
