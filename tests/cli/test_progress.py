"""Progress goes to people, and as plain lines to logs."""

from __future__ import annotations

import pytest

from crowdtree.cli.render import progress as module
from crowdtree.cli.render.progress import counting, progress


def test_progress_on_a_terminal_leaves_nothing_on_the_output(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress(counting("[items]")) as watch:
        watch(5, 10)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "[items]: 5 of 10" in shown.err


def test_elsewhere_slow_work_writes_plain_lines_less_and_less_often(capsys, monkeypatch):
    clock = iter([0.0, 1.9, 2.0, 2.9, 3.0, 4.4])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(module, "PLAIN_SECONDS", 2.0)
    with progress(counting("items")) as watch:
        for done in range(1, 6):
            watch(done, 10)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "items: 2 of 10 · 20 % done · about 8 s left",
        "items: 4 of 10 · 40 % done · about 4 s left",
    ]


def test_learning_says_what_it_is_doing(tmp_path, capsys, monkeypatch):
    from crowdtree.cli import main

    rows = [f"{t},{w},{'ab'[t % 2]}\n" for t in range(9) for w in "xyz"]
    (tmp_path / "a.csv").write_text("task,worker,label\n" + "".join(rows))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with pytest.raises(SystemExit):
        main(["learn", str(tmp_path / "a.csv"), "--json"])
    assert "learning from 27 answers" in capsys.readouterr().err
