"""Uploaded pictures, sounds and videos: in a folder, or in a bucket like those of S3.

Both have one folder per campaign, with files under the names that workers get, which say nothing
about an item.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from crowdtree.server.store.backup import File, Media
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.tokens import file_name

GIVEN_NAME = re.compile(r"[0-9a-f]{16}(\.\w+)?", re.ASCII)
"""Names that workers get look like this; other files may too."""


class MediaFiles(Media, Protocol):
    """A folder, or a bucket."""

    address: str
    """Where the files are, for people."""
    origin: str
    """Where browsers load the files, if that is neither this server nor reached by https."""

    def check(self) -> None:
        """Raise unless files can be stored."""

    def receive(self, campaign_id: int) -> Path:
        """Name a new local file for an upload; the caller deletes it if it is not kept."""

    def keep(self, part: Path, file: File, kind: str) -> None:
        """Store a file that was received; it replaces one of the same name."""

    def locate(self, file: File, kind: str) -> Path | str | None:
        """Find a file for a browser: its path, or its address."""

    def exists(self, file: File) -> bool:
        """Whether there is a file."""

    def names(self, campaign_id: int) -> set[str]:
        """List the files of a campaign."""

    def copy(self, source: File, target: File) -> None:
        """Copy a file, unless it is missing."""

    def remove(self, campaign_id: int) -> str:
        """Delete the files of a campaign as far as possible; name the folder of what is left."""


def file_of(campaign: Campaign, name: str) -> File:
    """The file of a name that the owner has given."""
    return File(campaign.id, file_name(campaign.secret, name))


def find(
    media: MediaFiles, campaign: Campaign, name: str, kind: str, own: bool
) -> Path | str | None:
    """Find a file by the name that workers get, or with `own` by either name."""
    given = File(campaign.id, name)
    # most names of this form are those that workers get; a file may be called so by itself
    if own and not (GIVEN_NAME.fullmatch(name) and media.exists(given)):
        given = file_of(campaign, name)
    return media.locate(given, kind)


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
        from crowdtree.server.media.bucket import Bucket

        return Bucket(str(place))
    from crowdtree.server.media.folder import Folder

    return Folder(Path(place))
