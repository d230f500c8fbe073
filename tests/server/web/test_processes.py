"""Processes share a port and end with the one that started them."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.web import processes
from tests.weblab import until

SCRIPT = """
import importlib.util, multiprocessing, os, sys, time

def child(pipe, path):
    spec = importlib.util.spec_from_file_location("processes", path)  # without the whole server
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.end_with_parent()
    pipe.send(os.getpid())
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    context.Process(target=child, args=(theirs, sys.argv[1])).start()
    print(mine.recv(), flush=True)
    time.sleep(600)
"""


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return sys.platform != "linux"
    except ProcessLookupError:
        return False
    return state != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not spread connections")
def test_connections_are_spread_over_processes() -> None:
    with processes.SharedPort(socket.AF_INET, ("127.0.0.1", 0)) as port:
        ends = [pickle.loads(pickle.dumps(port)) for _ in range(2)]  # as for another process
        for end in ends:
            end.listen(100)
            end.setblocking(False)
        clients = [socket.create_connection(port.getsockname()) for _ in range(100)]
        assert all(accepted(end) > 20 for end in ends)
        for each in (*ends, *clients):
            each.close()


def accepted(end: socket.socket) -> int:
    """Accept all connections that wait, and count them."""
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            end.accept()[0].close()
            count += 1
    return count


@pytest.mark.skipif(os.name == "nt", reason="there are no such signals on Windows")
def test_a_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), processes.__file__],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        assert runs(child)
        parent.kill()
        parent.wait()
        assert until(lambda: not runs(child))
    finally:
        parent.stdout.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
