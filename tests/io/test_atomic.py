"""Files are written wholly or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import crowdtree as ct
from crowdtree import CrowdtreeError
from crowdtree.io import (
    save_problem,
)
from tests.io.helpers import expected, put


def test_readers_never_see_half_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.json"
    save_problem(expected(), path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CrowdtreeError, match=r"p\.json: cannot be written \(No space left"):
        save_problem(ct.example("table1"), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["p.json"]


def test_permissions_of_a_file_are_kept(tmp_path: Path) -> None:
    path = put(tmp_path, "old", "p.json")
    path.chmod(0o640)
    save_problem(expected(), path)
    assert path.stat().st_mode & 0o777 == 0o640
