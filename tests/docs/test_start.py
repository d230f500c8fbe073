"""The recorded session of the first five minutes is what the commands print."""

import re
from pathlib import Path

from tests.cli.helpers import run

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_recorded_session(tmp_path, monkeypatch, capsys):
    page = (DOCS / "start.md").read_text(encoding="utf-8")
    install, *session = re.findall(r"```console\n\$ (.*?)```", page, re.DOTALL)
    (own,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert "pip install" in install  # tests/test_package.py installs the wheel
    assert len(session) == 3, "four commands are promised"
    monkeypatch.chdir(tmp_path)
    for recorded in session:
        command, _, printed = recorded.partition("\n")
        program, *words = command.split()
        assert program == "ct/bin/crowdtree"
        assert run(*words) == 0
        assert capsys.readouterr().out == printed
        Path("waste.csv").write_text(own, encoding="utf-8")
    picture = (DOCS / "figures" / "start.svg").read_text(encoding="utf-8")
    assert Path("waste.svg").read_text(encoding="utf-8") == picture


def test_the_index_shows_lines_of_the_first_five_minutes():
    start, index = (
        (DOCS / name).read_text(encoding="utf-8").replace("ct/bin/", "")
        for name in ("start.md", "index.md")
    )
    block = index.split("```console\n")[1].split("```")[0]
    lines = [line.split("  #")[0].strip() for line in block.splitlines()]
    assert len(lines) == 3
    assert set(lines) <= set(start.splitlines())
