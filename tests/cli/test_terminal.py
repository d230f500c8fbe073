"""What reaches the terminal: names without control characters, notes first, absolute links."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from rich.text import Text

from crowdtree.cli.render import console
from tests.cli.helpers import result, run


def test_control_characters_in_names_are_shown_as_escapes(capsys: Any, tmp_path: Any) -> None:
    table = tmp_path / "t.csv"
    table.write_text("question,error,rob\x1b[2Jin,eagle\nflies\x07,0.1,0,1\n", encoding="utf-8")
    assert run("design", table) == 0
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert r"rob\x1b[2Jin" in shown.out
    assert "\x07" not in shown.out
    assert run("design", tmp_path / "no\x1b[2J.csv") == 2
    assert "\x1b" not in capsys.readouterr().err


def test_no_line_begins_with_a_per_cent_sign(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for width in range(8, 24):
        page = console()
        page.width, page.soft_wrap = width, False
        page.print("at most 5 % of items, then 20 % more", Text("wrong: 12.5 % of all"))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert any(line.endswith("5 %") for line in lines)
    assert not any(line.startswith("%") for line in lines)


def test_notes_come_before_the_result(tmp_path: Any) -> None:
    table = tmp_path / "t.csv"
    table.write_text("question,error,robin,eagle\nflies,0.1,0,1\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "crowdtree", "design", table],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("crowdtree: note: ")


def test_links_of_campaigns_are_absolute(capsys: Any, tmp_path: Any) -> None:
    options = ("--database", tmp_path / "c.db")
    assert run("campaign", "create", "example:table1", *options) == 0
    capsys.readouterr()
    url = ("--url", "https://label.example/")
    link = result(capsys, "campaign", "join-link", 1, *url, *options)["link"]
    assert str(link).startswith("https://label.example/join/")
    links = result(capsys, "campaign", "invite", 1, "Ann", "Bob", *url, *options)["links"]
    assert list(links) == ["Ann", "Bob"]
    assert all(link.startswith("https://label.example/w/") for link in links.values())
