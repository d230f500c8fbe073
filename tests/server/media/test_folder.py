"""Uploaded files in a folder: replaced all or not at all."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.media import open_media
from crowdtree.server.media.folder import Folder
from crowdtree.server.store.backup import File

OLD, NEW, OTHER = File(1, "0.png"), File(1, "1.png"), File(2, "2.png")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "media")
    keep(made, OLD)
    (made.path / "mine").mkdir()  # of no campaign
    (made.path / "mine" / "note.txt").write_text("x")
    (made.path / "1" / ".0123.part").write_text("still being uploaded")
    return made


def keep(folder: Folder, file: File, content: bytes = b"old") -> None:
    part = folder.receive(file.campaign_id)
    part.write_bytes(content)
    folder.keep(part, file, "image/png")


def contents(folder: Folder) -> dict[File, bytes]:
    found = {}
    for file in folder.stored():
        with folder.read(file) as opened:
            found[file] = opened.read()
    return found


def test_files_are_replaced_at_the_end(folder: Folder) -> None:
    with folder.replacing([3, 3], replace=True) as write:
        write(NEW, io.BytesIO(b"new"))
        write(OTHER, io.BytesIO(b"new"))
        assert contents(folder) == {OLD: b"old"}
    assert contents(folder) == {NEW: b"new", OTHER: b"new"}
    assert sorted(path.name for path in folder.path.iterdir()) == ["1", "2", "mine"]


def test_an_error_leaves_everything_as_it_was(folder: Folder) -> None:
    class Full(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError("full")

    with pytest.raises(OSError, match="full"), folder.replacing([3, 3], replace=True) as write:
        write(OLD, Full(b"new"))
    assert contents(folder) == {OLD: b"old"}
    assert sorted(path.name for path in folder.path.iterdir()) == ["1", "mine"]
    with pytest.raises(CrowdtreeError, match="not empty"), folder.replacing([3], replace=False):
        pass


def test_copies_are_independent_and_missing_files_are_skipped(folder: Folder) -> None:
    folder.copy(OLD, OTHER)
    folder.copy(NEW, File(2, "3.png"))
    keep(folder, OLD, b"new")
    assert contents(folder) == {OLD: b"new", OTHER: b"old"}
    assert folder.names(2) == {"2.png"}
    assert folder.remove(2) == ""
    assert contents(folder) == {OLD: b"new"}


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    folder = open_media(tmp_path / "none")
    assert folder is not None
    folder.check()
    assert (folder.stored(), folder.names(1), folder.locate(OLD, "image/png")) == ([], set(), None)
    assert not (tmp_path / "none").exists()
    assert open_media(None) is None
