"""Uploaded media in backups: read from a folder or a bucket, and restored to either."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, NamedTuple, Protocol

from crowdtree.core.errors import CrowdtreeError

MEMBER = re.compile(r"media/(\d+)/([^/\\\0]+)", re.ASCII)


class File(NamedTuple):
    """An uploaded file: its campaign, and the name that workers get."""

    campaign_id: int
    name: str

    @property
    def member(self) -> str:
        """The name of the file in a backup."""
        return f"media/{self.campaign_id}/{self.name}"

    @classmethod
    def of(cls, member: str) -> File:
        """Read the name of a file in a backup, or raise.

        >>> File.of("media/1/bird.png")
        File(campaign_id=1, name='bird.png')
        """
        found = MEMBER.fullmatch(member)
        if found is None or found[2] in (".", ".."):
            raise CrowdtreeError(f"{member[:80]!r} is not a name of uploaded media")
        return cls(int(found[1]), found[2])


Write = Callable[[File, IO[bytes]], None]


class Media(Protocol):
    """Uploaded media: a folder, or a bucket."""

    def stored(self) -> list[File]:
        """List the files of all campaigns."""

    def read(self, file: File) -> AbstractContextManager[IO[bytes]]:
        """Open a file."""

    def replacing(self, sizes: list[int], replace: bool) -> AbstractContextManager[Write]:
        """Replace all files by files of these sizes: at the end, or not at all after an error.

        If there are files, they are refused, or replaced.
        """


def is_media(name: str) -> bool:
    """Whether a member of a backup is an uploaded file.

    >>> is_media("media/1/bird.png"), is_media("tables/items.jsonl")
    (True, False)
    """
    return name.startswith("media/")
