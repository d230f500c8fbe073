"""Where uploaded pictures, sounds and videos are kept: a folder, or a bucket like those of S3."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from crowdtree.io.private import private_folder
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.derived import file_name


class MediaFiles(Protocol):
    """Uploaded files of campaigns."""

    origin: str
    """Where browsers load the files, if that is neither this server nor reached by https."""

    def check(self) -> None:
        """Raise unless files can be stored."""

    def receive(self, number: int) -> Path:
        """Name a new local file for an upload; the caller deletes it if it is not kept."""

    def keep(self, part: Path, campaign: Campaign, name: str, kind: str) -> None:
        """Store a file that was received; it replaces one of the same name."""

    def find(self, campaign: Campaign, name: str, kind: str, own: bool) -> Path | str | None:
        """Find a file by the name that workers get, or with `own` by its own: a path or address."""

    def uploaded(self, campaign: Campaign) -> Callable[[str], bool]:
        """Whether a file was uploaded, as of now."""

    def place(self, number: int) -> str:
        """Where the files of a campaign are, for people."""

    def copy(self, source: Campaign, target: Campaign, names: Iterable[str]) -> None:
        """Give another campaign the same files; those that are missing are skipped."""

    def remove(self, number: int) -> str:
        """Delete the files of a campaign as far as possible; name the folder of what is left."""


def is_bucket(place: str | Path) -> bool:
    """Whether media are in a bucket.

    >>> is_bucket("s3://birds/media"), is_bucket(Path("media"))
    (True, False)
    """
    return str(place).startswith("s3:")


def open_media(place: str | Path | None) -> MediaFiles | None:
    """Use a folder, or a bucket ``s3://NAME/PREFIX``; none where media are refused."""
    if place is None:
        return None
    if is_bucket(place):
        from crowdtree.server.web.media_bucket import Bucket

        return Bucket(str(place))
    return Folder(Path(place))


class Folder:
    """A folder with one folder per campaign."""

    origin = ""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names: dict[int, tuple[int, dict[str, str]]] = {}
        """Files of campaigns by the names that workers get, and when the folder changed."""

    def check(self) -> None:
        """Do nothing: the folder is made by the first upload."""

    def _of(self, number: int) -> Path:
        return self.path / str(number)

    def receive(self, number: int) -> Path:
        """Name a hidden file in the folder of a campaign."""
        private_folder(self._of(number))
        return self._of(number) / f".{secrets.token_hex(8)}.part"

    def keep(self, part: Path, campaign: Campaign, name: str, kind: str) -> None:  # noqa: ARG002
        """Give a file its name."""
        os.replace(part, self._of(campaign.id) / name)

    def find(self, campaign: Campaign, name: str, kind: str, own: bool) -> Path | None:  # noqa: ARG002
        """Find a file; the names of a folder are kept until it changes."""
        folder = self._of(campaign.id)
        if own and (folder / name).is_file():
            return folder / name
        if not folder.is_dir():
            return None
        changed = folder.stat().st_mtime_ns
        known = self._names.get(campaign.id)
        if known is None or known[0] != changed:
            there = [path.name for path in folder.iterdir()]
            known = (changed, {file_name(campaign.secret, each): each for each in there})
            self._names[campaign.id] = known
        found = known[1].get(name)
        return None if found is None else folder / found

    def uploaded(self, campaign: Campaign) -> Callable[[str], bool]:
        """Look into the folder once."""
        folder = self._of(campaign.id)
        return set(os.listdir(folder) if folder.is_dir() else ()).__contains__

    def place(self, number: int) -> str:
        """Name the folder of a campaign."""
        return str(self._of(number))

    def copy(self, source: Campaign, target: Campaign, names: Iterable[str]) -> None:
        """Link the files, which are replaced and never changed, or copy them."""
        there = self._of(target.id)
        for name in names:
            old, new = self._of(source.id) / name, there / name
            private_folder(there)
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                try:
                    os.link(old, new)
                except (PermissionError, NotImplementedError):  # a file system without links
                    shutil.copy2(old, new)

    def remove(self, number: int) -> str:
        """Delete the folder of a campaign."""
        folder = self._of(number)
        shutil.rmtree(folder, ignore_errors=True)
        return self.place(number) if folder.exists() else ""
