"""The documentation site, built once for all processes of a test run."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; every warning is an error, and every example runs."""
    shared = tmp_path_factory.getbasetemp()
    if shared.name.startswith("popen-"):  # a process of pytest-xdist
        shared = shared.parent
    out, outcome = shared / "site", shared / "site.log"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not outcome.exists():
            build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
            made = subprocess.run([*build, DOCS, out], capture_output=True, text=True, timeout=500)
            outcome.write_text("" if made.returncode == 0 else made.stderr[-4000:] or "failed")
    assert outcome.read_text() == ""
    return out
