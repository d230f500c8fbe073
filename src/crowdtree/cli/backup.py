"""The verbs `backup` and `restore`: all campaigns of a server in one file, and back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from crowdtree.cli import render
from crowdtree.cli.campaign.database import (
    HERE,
    Database,
    MediaPlace,
    check_exists,
    import_server,
    media_place,
    next_step,
    one_line,
    opened_media,
    without_password,
)
from crowdtree.cli.options import AsJson, argument, check_folder, check_outputs, flag, with_options
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural

BackupFile = Annotated[Path, argument("FILE", "The backup.")]


@dataclass(frozen=True)
class Place:
    """What is backed up, or restored: the options of `serve` with the same names."""

    database: Database = HERE
    media: MediaPlace = None
    no_media: Annotated[bool, flag("--no-media", "Leave media out.")] = False

    @property
    def bucket(self) -> str:
        """The address of the bucket of media; empty for a folder."""
        is_bucket = import_server("crowdtree.server.media").is_bucket
        return self.media if self.media and is_bucket(self.media) else ""

    def storage(self) -> Any:
        """The folder of media, the bucket, or none where media are left out."""
        if self.no_media:
            return None
        if not self.bucket:
            check_folder(Path(media_place(self.database, self.media)))
        return opened_media(self.database, self.media)


@with_options
def backup_verb(file: BackupFile, place: Place, as_json: AsJson = False) -> None:
    """Write all campaigns, answers and uploaded media to one file. The server may be running.

    The key that encrypts secrets of webhooks is not included: keep it elsewhere. Media in a bucket
    (s3://...) are read from there; --no-media leaves them out.

    Examples:

      crowdtree backup monday.backup

      crowdtree backup monday.backup --database postgresql://user@host/name --media media
    """
    check_outputs([file])
    check_exists(place.database)
    if os.path.realpath(file) == os.path.realpath(place.database.removeprefix("sqlite:///")):
        raise CrowdtreeError(f"{file}: is the database itself; give the backup another name")
    backup = import_server("crowdtree.server.store.backup")
    with one_line():
        left_out = place.bucket if place.no_media else ""
        made = backup.back_up(place.database, place.storage(), file, left_out)
    _show(made, as_json, file, "Backed up", [file], "")


@with_options
def restore_verb(
    file: BackupFile,
    place: Place,
    replace: Annotated[
        bool, flag("--replace", "First delete what the database and the media folder hold.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Load a backup into an empty database, and its media into a folder or bucket.

    Stop any server that uses this database. If the backup is damaged, nothing is changed.

    Examples:

      crowdtree restore monday.backup --database new.db

      crowdtree restore monday.backup --replace --media s3://my-bucket/crowdtree
    """
    restore = import_server("crowdtree.server.store.restore").restore
    with one_line():
        made = restore(file, place.database, place.storage(), replace)
    then = next_step(place.database, "campaign", "verify", 1) if made["rows"]["campaigns"] else ""
    _show(made, as_json, file, f"Restored into {without_password(place.database)}:", [], then)


def _show(
    made: Any, as_json: bool, file: Path, done: str, written: list[Path | None], then: str
) -> None:
    rows = made["rows"]
    files = sum(map(import_server("crowdtree.server.store.backup").is_media, made["sha256"]))
    found = {
        "file": str(file),
        "crowdtree": made["crowdtree"],
        "created_at": made["created_at"],
        "campaigns": rows["campaigns"],
        "answers": rows["answers"],
        "media": files,
        "bucket": made.get("bucket", ""),
    }

    counts = plural(rows["campaigns"], "campaign"), plural(rows["answers"], "line") + " of the log"
    lines = [f"{done} {', '.join(counts)}, {plural(files, 'media file')}."]
    if made.get("bucket"):
        lines.append(f"Uploaded media are not in the backup; they are in {made['bucket']}.")
    render.emit(as_json, found, lines, written, then)
