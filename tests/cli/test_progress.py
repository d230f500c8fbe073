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
