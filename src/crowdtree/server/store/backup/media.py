"""Uploaded media in backups: read from a folder or a bucket, and restored to either.

A folder has files under the names that the owner gave them, a bucket under those that workers get.
A member ``media/CAMPAIGN/NAME`` has the owner's name, which items of the campaign tell. Files of a
bucket that no item shows are members ``stored/CAMPAIGN/NAME``, by the name that workers get.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.items import media_names
from crowdtree.io.private import open_private, private_folder
from crowdtree.server.store.derived import file_name
from crowdtree.server.store.errors import Unavailable

MEMBER = re.compile(r"(media|stored)/(\d+)/([^/\\\0]+)", re.ASCII)


class Stored(NamedTuple):
    """A file of a bucket: the campaign, and the name that workers get."""

    number: int
    name: str


class Bucket(Protocol):
    """A bucket of uploaded media."""

    address: str

    def check(self) -> None:
        """Raise unless the bucket can be used."""

    def stored(self) -> list[tuple[int, str]]:
        """All files: campaign, and name that workers get."""

    def read(self, number: int, name: str) -> contextlib.AbstractContextManager[IO[bytes]]:
        """Open a file."""

    def write(self, file: IO[bytes], number: int, name: str) -> None:
        """Store a file."""

    def delete(self, files: Iterable[tuple[int, str]]) -> None:
        """Delete files."""


Opened = Iterable[tuple["MediaMember", IO[bytes]]]
Media = Path | Bucket | None
"""A folder, a bucket, or neither."""


def is_media(name: str) -> bool:
    """Whether a member of a backup is an uploaded file.

    >>> is_media("media/1/bird.png"), is_media("tables/items.jsonl")
    (True, False)
    """
    return name.startswith(("media/", "stored/"))


class MediaMember(NamedTuple):
    """An uploaded file as a backup names it."""

    known: bool
    """Whether the name is the owner's."""
    number: int
    name: str

    @classmethod
    def of(cls, member: str) -> MediaMember:
        """Read the name of a member, or raise."""
        found = MEMBER.fullmatch(member)
        if found is None or found[3] in (".", ".."):
            raise CrowdtreeError(f"{member[:80]!r} is not a name of uploaded media")
        return cls(found[1] == "media", int(found[2]), found[3])


# ------------------------------------------------------------------------------ into a backup


def media_files(media: Media, own: dict[tuple[int, str], str]) -> Iterator[tuple[str, IO[bytes]]]:
    """Open the uploaded files in turn, with the names of their members.

    `own` has the owner's names of the files of a bucket (see :func:`own_names`).
    """
    if isinstance(media, Path):
        yield from _of_folder(media)
    elif media is not None:
        for number, name in media.stored():
            given = own.get((number, name))
            member = f"stored/{number}/{name}" if given is None else f"media/{number}/{given}"
            with media.read(number, name) as file:
                yield member, file


def _of_folder(folder: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Open the files of a folder, without those that are still being uploaded."""
    for path in sorted(folder.glob("*/*")):
        if path.name.startswith(".") or not path.parent.name.isdecimal() or not path.is_file():
            continue
        try:
            file = path.open("rb")
        except FileNotFoundError:  # deleted meanwhile
            continue
        with file:
            yield f"media/{path.parent.name}/{path.name}", file


def own_names(connection: Connection) -> dict[tuple[int, str], str]:
    """Names that owners gave the files that items show, by campaign and name for workers."""
    items = sa.table("items", sa.column("campaign_id"), sa.column("payload"))
    secrets = secrets_of(connection)
    found = {}
    for row in connection.execute(sa.select(items)):
        for name in media_names(json.loads(row.payload)):
            found[row.campaign_id, file_name(secrets[row.campaign_id], name)] = name
    return found


def secrets_of(connection: Connection) -> dict[int, str]:
    """The secrets of the campaigns, from which names for workers are derived."""
    campaigns = sa.table("campaigns", sa.column("id"), sa.column("secret"))
    return {row.id: row.secret for row in connection.execute(sa.select(campaigns))}


# ------------------------------------------------------------------------------ out of a backup


class Target:
    """Where media are restored to; this one takes none.

    First `take` gets every file, whose checksum is compared while it is read; then `place` stores
    what needs a connection, before the database is committed; then `finish` replaces the old files.
    """

    def take(self, member: MediaMember, parts: Iterable[bytes]) -> None:
        """Read a file."""

    def place(self, files: Opened, secrets: dict[int, str]) -> None:
        """Store the files where nothing is lost if the database is not."""

    def finish(self) -> None:
        """Put the files in place of those that were there."""


@contextlib.contextmanager
def target_of(media: Media, sizes: list[int], replace: bool) -> Iterator[Target]:
    """Open a folder or a bucket to restore files of these sizes to.

    One that is not empty is refused, or replaced.
    """
    if media is None or (isinstance(media, Path) and not (sizes or media.is_dir())):
        yield Target()
    elif isinstance(media, Path):
        private_folder(media)
        if not replace and _campaigns(media):
            raise CrowdtreeError(
                f"{media}: the folder of media is not empty; use another --media, or --replace to "
                "delete what it has"
            )
        if sum(sizes) > (free := shutil.disk_usage(media).free):
            raise CrowdtreeError(
                f"{media}: the media take {sum(sizes):,} bytes, and the disk has {free:,}; use "
                "another --media"
            )
        scratch = Path(tempfile.mkdtemp(dir=media, prefix=".restore."))
        try:
            yield _Folder(media, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    else:
        media.check()
        before = {Stored(*one) for one in media.stored()}
        if before and not replace:
            raise CrowdtreeError(
                f"{media.address}: the bucket has media; use another --media, --replace to delete "
                "what it has, or --no-media to leave them as they are"
            )
        yield _Bucket(media, before)


class _Folder(Target):
    """A folder: files are unpacked beside it, then moved."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder, self.scratch = folder, scratch

    def take(self, member: MediaMember, parts: Iterable[bytes]) -> None:
        if not member.known:  # a folder has files under the owner's names
            return
        private_folder(self.scratch / str(member.number))
        with open_private(self.scratch / str(member.number) / member.name) as file:
            file.writelines(parts)

    def finish(self) -> None:
        for old in _campaigns(self.folder):
            shutil.rmtree(old)
        for new in self.scratch.iterdir():
            os.replace(new, self.folder / new.name)


def _campaigns(folder: Path) -> list[Path]:
    """Folders of campaigns; others are not ours."""
    return [one for one in folder.iterdir() if one.name.isdecimal()]


class _Bucket(Target):
    """A bucket: files are stored beside those that are there, which are deleted at the end."""

    def __init__(self, bucket: Bucket, before: set[Stored]) -> None:
        self.bucket, self.before = bucket, before
        self.made: set[Stored] = set()

    def take(self, member: MediaMember, parts: Iterable[bytes]) -> None:
        del member
        for _ in parts:  # compares the checksum; the file is sent in `place`
            pass

    def place(self, files: Opened, secrets: dict[int, str]) -> None:
        try:
            for member, file in files:
                name = member.name
                if member.known:
                    if member.number not in secrets:  # left over from a campaign that was deleted
                        continue
                    name = file_name(secrets[member.number], name)
                self.made.add(Stored(member.number, name))
                self.bucket.write(file, member.number, name)
        except BaseException:
            with contextlib.suppress(Unavailable):
                self.bucket.delete(self.made - self.before)
            raise

    def finish(self) -> None:
        self.bucket.delete(self.before - self.made)
