"""Uploaded files in a folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.private import make_private, open_private, private_folder
from crowdtree.server.store.backup import File, Write


class Folder:
    """A folder with one folder per campaign."""

    origin = ""

    def __init__(self, path: Path) -> None:
        self.path, self.address = path, str(path)

    def _of(self, campaign_id: int) -> Path:
        return self.path / str(campaign_id)

    def _path(self, file: File) -> Path:
        return self._of(file.campaign_id) / file.name

    def _campaigns(self) -> list[Path]:
        """Folders of campaigns; others are not ours."""
        there = self.path.iterdir() if self.path.is_dir() else ()
        return [each for each in there if each.name.isdecimal() and each.is_dir()]

    def check(self) -> None:
        """Let nobody else read the files; the folder is made by the first upload."""
        for folder in self._campaigns():
            for path in (folder, *folder.iterdir()):
                make_private(path)

    def receive(self, campaign_id: int) -> Path:
        """Name a hidden file in the folder of a campaign."""
        private_folder(self._of(campaign_id))
        return self._of(campaign_id) / f".{secrets.token_hex(8)}.part"

    def keep(self, part: Path, file: File, kind: str) -> None:  # noqa: ARG002
        """Give a file its name."""
        os.replace(part, self._path(file))

    def locate(self, file: File, kind: str) -> Path | None:  # noqa: ARG002
        """Find a file."""
        return self._path(file) if self.exists(file) else None

    def exists(self, file: File) -> bool:
        """Look for a file."""
        return self._path(file).is_file()

    def names(self, campaign_id: int) -> set[str]:
        """List the folder once."""
        folder = self._of(campaign_id)
        return set(os.listdir(folder) if folder.is_dir() else ())

    def copy(self, source: File, target: File) -> None:
        """Link the file, which is replaced and never changed, or copy it."""
        private_folder(self._of(target.campaign_id))
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            try:
                os.link(self._path(source), self._path(target))
            except (PermissionError, NotImplementedError):  # a file system without links
                shutil.copy2(self._path(source), self._path(target))

    def remove(self, campaign_id: int) -> str:
        """Delete the folder of a campaign."""
        folder = self._of(campaign_id)
        shutil.rmtree(folder, ignore_errors=True)
        return str(folder) if folder.exists() else ""

    def stored(self) -> list[File]:
        """List the files, without those that are still being uploaded."""
        return [
            File(int(folder.name), path.name)
            for folder in self._campaigns()
            for path in sorted(folder.iterdir())
            if path.is_file() and not path.name.startswith(".")
        ]

    @contextlib.contextmanager
    def read(self, file: File) -> Iterator[IO[bytes]]:
        """Open a file."""
        with self._path(file).open("rb") as opened:
            yield opened

    @contextlib.contextmanager
    def replacing(self, sizes: list[int], replace: bool) -> Iterator[Write]:
        """Write files beside those that are there, then put them in their place."""
        if self._campaigns() and not replace:
            raise CrowdtreeError(
                f"{self.path}: the folder of media is not empty; use another --media, or --replace "
                "to delete what it has"
            )
        is_new = not self.path.exists()
        private_folder(self.path)
        if sum(sizes) > (free := shutil.disk_usage(self.path).free):
            raise CrowdtreeError(
                f"{self.path}: the media take {sum(sizes):,} bytes, and the disk has {free:,}; use "
                "another --media"
            )
        beside = Folder(Path(tempfile.mkdtemp(dir=self.path, prefix=".restore.")))
        try:
            yield beside._write
            for old in self._campaigns():
                shutil.rmtree(old)
            for new in beside._campaigns():
                os.replace(new, self.path / new.name)
        finally:
            shutil.rmtree(beside.path, ignore_errors=True)
            if is_new:
                with contextlib.suppress(OSError):  # it has files now
                    self.path.rmdir()

    def _write(self, file: File, content: IO[bytes]) -> None:
        private_folder(self._of(file.campaign_id))
        with open_private(self._path(file)) as opened:
            shutil.copyfileobj(content, opened)
