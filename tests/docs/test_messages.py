"""The messages in the reference are those that commands print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.helpers import TABLE, complaint, run
from tests.docs.pages import DOCS

pytest.importorskip("fastapi", reason="the messages of campaigns need the server's packages")

ON_SERVERS = ("is in use, maybe by", "was stored with another key")
"""Parts of messages that a running server gives, apart from sentences on its pages."""

CASES: dict[str, tuple[str, ...]] = {
    "": (
        "design bird.csv",
        "frontier birds.csv --error 1e-10",
        "audit plan labels.csv",
        "campaign status 1",
        "restore made.backup --database c.db",
        "prolific submissions 1 --database c.db",
        "serve --processes 4 --database c.db",
    ),
    "name,robin,eagle\nhunts,0,1\n": ("design birds.csv",),
    "question,robin,eagle\nhunts,0,1\n": ("design birds.csv",),
    "question,error,robin,eagle\nhunts,5,0,1\n": ("design birds.csv",),
    "question,error,robin,eagle\nhunts,0.1,0,\n": ("design birds.csv",),
    "question,error,robin,eagle\nprior,,0.6,0.5\nhunts,0.1,0,1\n": ("design birds.csv",),
    "question,error,eagle,owl,trout\nflies,0.1,1,1,0\n": ("design birds.csv",),
    "photo,said\n1,x\n": ("learn birds.csv",),
    "task,worker,label\n1,b,x\n2,b,y\n": ("learn birds.csv",),
}
"""What is in ``birds.csv`` (by default a table without mistakes), and commands that fail."""


def printed(capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    Path("birds.csv").write_text(TABLE)
    Path("labels.csv").write_text("item,label,error\n1,robin,0.1\n")
    Path("items.csv").write_text("task,text\n1,a bird\n")
    for call in ("create birds.csv --adaptive", "items 1 items.csv", "start 1"):
        assert run("campaign", *call.split(), "--database", "c.db") == 0
    assert run("backup", "made.backup", "--database", "c.db") == 0
    capsys.readouterr()
    for table, calls in CASES.items():
        Path("birds.csv").write_text(table or TABLE)
        for call in calls:
            yield complaint(capsys, *call.split()).removeprefix("crowdtree: ")


def test_messages_of_the_reference_are_printed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CROWDTREE_PROLIFIC_TOKEN", raising=False)
    found = list(printed(capsys))
    page = (DOCS / "reference" / "messages.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([^`]+)`", page, re.M)
    patterns = [".*".join(map(re.escape, words.split("..."))) for words in documented]
    missing = [
        words
        for words, pattern in zip(documented, patterns, strict=True)
        if not any(re.match(pattern, line) for line in found)
        and not any(part in words for part in ON_SERVERS)
        and not words[0].isupper()  # a sentence on a page
    ]
    assert missing == []
    unknown = [line for line in found if not any(re.match(words, line) for words in patterns)]
    assert unknown == []
