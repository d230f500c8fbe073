"""`crowdtree serve` prints a link, reports errors in one line, and stops."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the server's packages")

from crowdtree.cli import main
from crowdtree.server.store import Store
from crowdtree.server.store.db.tables import SCHEMA_VERSION

COMMAND = [sys.executable, "-c", "from crowdtree.cli import main; main()", "serve"]
LINK = re.compile(r"http://127\.0\.0\.1:(\d+)(/login\?token=\S+)")


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def refused(capsys, monkeypatch, tmp_path: Path):
    """Start it with something wrong; the one line it says."""
    monkeypatch.chdir(tmp_path)

    def said(*options: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["serve", "--port", "0", *options])
        out, err = capsys.readouterr()
        assert (ended.value.code, out) == (2, "")
        assert err.startswith("crowdtree: ")
        assert err.count("\n") == 1
        return str(err)

    return said


def test_it_prints_a_link_that_works_and_stops_with_pages_open(tmp_path: Path) -> None:
    with serving(tmp_path) as process:
        assert process.stdout is not None
        printed = ""
        while (found := LINK.search(printed)) is None:
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
            printed += line
        port, path = int(found[1]), found[2]
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        client.request("GET", path)
        answer = client.getresponse()
        assert (answer.status, answer.getheader("location")) == (303, "/")
        cookie = str(answer.getheader("set-cookie")).partition(";")[0]
        answer.read()
        client.request("GET", "/new", headers={"cookie": cookie})
        page = client.getresponse().read().decode()
        csrf = re.search(r'name="csrf" content="(\w+)"', page)
        assert csrf is not None
        client.request(
            "POST",
            "/api/campaigns",
            '{"policy": {"example": "table1"}}',
            {"cookie": cookie, "x-csrf-token": csrf[1], "content-type": "application/json"},
        )
        assert client.getresponse().read() == b'{"id":1}'
        # a dashboard that listens does not keep the server from stopping
        client.request("GET", "/c/1/live", headers={"cookie": cookie})
        stream = client.getresponse()
        assert stream.readline().startswith(b"event: picture")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        client.close()
    assert "Stopped. Campaigns are kept in crowdtree.db." in out
    assert process.returncode == 0
    assert err == ""
    with Store(str(tmp_path / "crowdtree.db")).opened():
        assert not (tmp_path / "crowdtree-media").exists()  # made by the first upload only


def test_a_port_in_use_gets_one_line(refused) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port} of 127.0.0.1 is in use" in refused("--port", port)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--port", "99999"), "between 0 and 65535"),
        (("--database", "nowhere/x.db"), "does not exist"),
        (("--database", "postgresql://ann@127.0.0.1:1/x"), "check --database"),
        (("--processes", "2"), "SQLite has one writer"),
        (("--url", "label.example"), "expected https://NAME"),
    ],
)
def test_errors_take_one_line(refused, options, words: str) -> None:
    assert words in refused(*options)


def test_an_invalid_or_different_database_is_refused(refused, tmp_path: Path) -> None:
    (tmp_path / "junk.db").write_text("not a database\n" * 100)
    assert "file is not a database" in refused("--database", "junk.db")
    with Store(str(tmp_path / "newer.db")).opened():
        pass
    with sqlite3.connect(tmp_path / "newer.db") as database:
        database.execute("UPDATE schema_version SET version = '9999'")
    expected = f"expected tables of version {SCHEMA_VERSION}, got 9999"
    assert expected in refused("--database", "newer.db")
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE items (id INTEGER)")
    assert "got tables without a version" in refused("--database", "other.db")
    with Store(str(tmp_path / "half.db")).opened():
        pass
    with sqlite3.connect(tmp_path / "half.db") as database:
        database.execute("DROP TABLE deliveries")
    assert "table deliveries is missing" in refused("--database", "half.db")
