"""Progress is shown to people only."""

from __future__ import annotations


def test_progress_is_shown_on_a_terminal_only(capsys, monkeypatch):
    from crowdtree.cli.render.progress import counting, progress

    with progress(counting("items")) as watch:
        assert watch is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress(counting("[items]")) as watch:
        watch(5, 10)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "[items]: 5 of 10" in shown.err


def test_learning_says_what_it_is_doing(tmp_path, capsys, monkeypatch):
    import pytest

    from crowdtree.cli import main

    rows = [f"{t},{w},{'ab'[t % 2]}\n" for t in range(9) for w in "xyz"]
    (tmp_path / "a.csv").write_text("task,worker,label\n" + "".join(rows))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with pytest.raises(SystemExit):
        main(["learn", str(tmp_path / "a.csv"), "--json"])
    assert "learning from 27 answers" in capsys.readouterr().err
