"""The process of the rules: it is started again when it dies, and ends when it is asked to."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store import Store
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.owner import campaigns
from crowdtree.server.web import processes as runner_process
from crowdtree.server.web.processes import KeptProcess, run_rules
from tests.storelab import filled


def say_who(pipe: Connection) -> None:
    pipe.send(os.getpid())
    threading.Event().wait()


@pytest.mark.skipif(os.name == "nt", reason="there are no such signals on Windows")
def test_a_process_that_is_killed_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_process, "RESTART_SECONDS", 0.0)
    mine, theirs = multiprocessing.get_context("spawn").Pipe()
    kept = KeptProcess(say_who, theirs)
    first = mine.recv()
    os.kill(first, signal.SIGKILL)
    second = mine.recv()
    kept.close()
    assert first != second == kept.process.pid
    assert not kept.process.is_alive()


def test_rules_run_beside_a_server_on_sqlite(tmp_path: Path) -> None:
    """Both processes write to one file; the process ends with what it was doing."""
    url = str(tmp_path / "x.db")
    with Store(url).opened() as store:
        number, _ = filled(store, n=3)
        store.write(lambda c: campaigns.set_status(c, number, "finishing", store.clock()))
        kept = KeptProcess(run_rules, url)
        while store.read(lambda c: get_campaign(c, number)).status != "finished":
            store.write(lambda c: campaigns.add_items(c, number, []))
        kept.close()
        assert kept.process.exitcode == 0
