"""Malformed input over all verbs: one line, exit code 2, nothing written, in any encoding."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.cli.helpers import run
from tests.cli.malformed import FILES, cases, verbs

pytest.importorskip("fastapi", reason="needs the server's packages")
CASES = cases()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """All the files, an audit and a campaign."""
    place = tmp_path_factory.mktemp("malformed")
    for name, content in FILES.items():
        data = content if isinstance(content, bytes) else content.encode()
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert run("audit", "start", "labels.csv", "-o", "audit.json", "--seed", 1) == 0
        assert run("campaign", "create", "birds.csv") == 0
        assert run("backup", "good.backup") == 0
    return place


def refused(words: list[str], encoding: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is wrong with the refusal of a command; nothing where it is as it should be."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        try:
            code: object = run(*words)
        except BaseException as error:
            return f"raised {error!r}"
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode(encoding) for stream in streams)
    lines = err.splitlines()
    if code == 2 and not out and len(lines) == 1 and lines[0].startswith("crowdtree: "):
        return "" if len(lines[0]) <= 700 else f"is too long: {err}"
    return f"exit code {code}, printed {out[:200]!r}, {err[:500]!r}"


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_malformed_input_gets_one_line(encoding, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir() if "db" not in path.name}
    wrong = {}
    for words in CASES:
        if problem := refused(words, encoding, monkeypatch):
            wrong[" ".join(words)] = problem
    assert not wrong, "\n".join(f"crowdtree {words}: {what}" for words, what in wrong.items())
    after = {path: path.stat().st_mtime_ns for path in folder.iterdir() if "db" not in path.name}
    assert after == before


def test_the_table_covers_every_verb():
    assert len({tuple(words) for words in CASES}) >= 300
    tried = {tuple(words[:count]) for words in CASES for count in (1, 2)}
    assert {tuple(words) for words, _ in verbs()} <= tried
