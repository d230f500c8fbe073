"""Graceful shutdown."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import crowdtree as ct
from crowdtree.policies import PlanPolicy
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import Next, Store, tokens
from crowdtree.server.store.owner import campaigns, people
from tests.serving import Client, free_port


def campaign_where_two_must_wait(url: str) -> tuple[str, list[str]]:
    """Make a campaign whose only question is held by a third; tokens of the owner and of both."""
    problem = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    policy = PlanPolicy(ct.staff(ct.design(problem), workers=0))
    with Store(url).opened() as store:
        number = store.write(lambda c: campaigns.create(c, "w", policy, Settings(), store.clock()))
        rows = [{"task": "1", "payload": "{}", "gold": None}]
        store.write(lambda c: campaigns.add_items(c, number, rows))
        store.write(lambda c: campaigns.set_status(c, number, "running", store.clock()))
        made = [
            store.write(lambda c: people.invite(c, number, "", policy, False, store.clock()))[1]
            for _ in range(3)
        ]
        assert store.ask(Next(tokens.hashed(made[0])))["task"] is not None
        return store.write(lambda c: tokens.issue(c, "owner", store.clock())), made[1:]


def start(url: str, port: int) -> subprocess.Popen[str]:
    code = (
        "from crowdtree.server.web.serve import Serving, run; "
        f"run(Serving({url!r}, port={port}), lambda link: None)"
    )
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env=environment
    )


def test_waiting_workers_are_answered_when_the_server_stops(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'waiting.db'}"
    owner, invited = campaign_where_two_must_wait(url)
    port = free_port()
    server = start(url, port)
    heard: list[tuple[int, Any]] = []

    def wait(token: str) -> None:
        client = Client(port, token, timeout=60)
        heard.append(client.post("/api/worker/next", {"wait": 25}))
        client.close()

    assert any(metrics(port, owner) for _ in range(600))  # it is up
    threads = [threading.Thread(target=wait, args=(token,)) for token in invited]
    for thread in threads:
        thread.start()
    assert any("crowdtree_waiting_workers 2" in metrics(port, owner) for _ in range(600))
    assert not heard
    server.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(60)
    assert [(status, body["task"], body["reason"]) for status, body in heard] == [
        (200, None, "wait")
    ] * 2
    _, said = server.communicate(timeout=60)
    assert "Traceback" not in said
    assert "Cancel" not in said


def metrics(port: int, token: str) -> str:
    time.sleep(0.05)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/metrics", headers={"authorization": f"Bearer {token}"})
        return connection.getresponse().read().decode()
    except OSError:  # not up yet
        return ""
    finally:
        connection.close()
