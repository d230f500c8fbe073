"""Pictures are written wholly or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

import crowdtree as ct
from crowdtree.show.plots import draw_tree, save


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "t.svg"
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(save.os, "replace", fail)
    with pytest.raises(ct.CrowdtreeError, match="No space left on device"):
        draw_tree(ct.design(ct.example("table1")), target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_path_that_cannot_be_written_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ct.CrowdtreeError, match="cannot be written"):
        draw_tree(ct.design(ct.example("table1")), tmp_path / "file" / "t.svg")
