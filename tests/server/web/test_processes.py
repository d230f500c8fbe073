"""Processes end with the one that started them."""

from __future__ import annotations

import contextlib
import os
import signal
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
