"""Uploaded files in a bucket like those of S3, which browsers load by signed addresses.

Credentials, region and the address of the service are those of the AWS tools: variables such as
``AWS_ACCESS_KEY_ID``, or files.
"""

from __future__ import annotations

import mimetypes
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from crowdtree.core.errors import CrowdtreeError, needing, one_line
from crowdtree.server.store.backup import File, Write
from crowdtree.server.store.errors import Unavailable

SIGNED_SECONDS = 900
"""How long a signed address works: long enough to watch a video."""
PLACE = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([\w./-]*))?", re.ASCII)
SECONDS = 10
"""Timeout of connections and replies."""
MISSING = ("404", "NoSuchKey", "NotFound")
KNOWN_FILES = 100_000
AT_ONCE = 1000
"""Files that one request may delete."""


class Bucket:
    """A bucket, or the part of it below a prefix; one folder per campaign."""

    def __init__(self, place: str) -> None:
        found = PLACE.fullmatch(place)
        if found is None:
            raise CrowdtreeError(f"--media: expected s3://BUCKET/PREFIX, got {one_line(place)}")
        self.address, self.name = place.rstrip("/"), found[1]
        self._prefix = f"{found[2].strip('/')}/" if (found[2] or "").strip("/") else ""
        self._client = _client(self.address)
        service = urlsplit(self._client.meta.endpoint_url)
        self.origin = "" if service.scheme == "https" else f"{service.scheme}://{service.netloc}"
        self._exists = lru_cache(KNOWN_FILES)(self._look)

    def _key(self, file: File) -> str:
        return f"{self._prefix}{file.campaign_id}/{file.name}"

    def check(self) -> None:
        """Ask for the bucket, or raise an error that says what to check."""
        try:
            with _calls():
                self._client.head_bucket(Bucket=self.name)
        except (Unavailable, FileNotFoundError) as error:
            raise CrowdtreeError(
                f"--media: {self.address} cannot be used ({error.__cause__}); check its name, and "
                "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL_S3"
            ) from None

    def receive(self, campaign_id: int) -> Path:  # noqa: ARG002
        """Name a file in the folder of temporary files."""
        return Path(tempfile.gettempdir()) / f"crowdtree-{secrets.token_hex(16)}.part"

    def keep(self, part: Path, file: File, kind: str) -> None:
        """Upload a file."""
        more = {"ContentType": kind, "Metadata": {}}
        with _calls():
            self._client.upload_file(str(part), self.name, self._key(file), ExtraArgs=more)
        part.unlink()

    def locate(self, file: File, kind: str) -> str:
        """Sign an address of a file, which works for some minutes."""
        wanted = {"Bucket": self.name, "Key": self._key(file), "ResponseContentType": kind}
        with _calls():
            return str(
                self._client.generate_presigned_url(
                    "get_object", Params=wanted, ExpiresIn=SIGNED_SECONDS
                )
            )

    def exists(self, file: File) -> bool:
        """Ask for a file; files that are there are remembered."""
        try:
            self._exists(self._key(file))
        except FileNotFoundError:
            return False
        return True

    def _look(self, key: str) -> None:
        """Raise unless there is a file, which is not remembered."""
        with _calls():
            self._client.head_object(Bucket=self.name, Key=key)

    def names(self, campaign_id: int) -> set[str]:
        """List the files of a campaign once."""
        return {file.name for file in self._files(f"{campaign_id}/")}

    def _files(self, below: str = "") -> list[File]:
        """List the files below a part of the prefix; others are not ours."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self.name, Prefix=self._prefix + below
        )
        with _calls():
            keys = [each["Key"] for page in pages for each in page.get("Contents", ())]
        parts = (key.removeprefix(self._prefix).split("/") for key in keys)
        return [File(int(p[0]), p[1]) for p in parts if len(p) == 2 and p[0].isdecimal()]

    def copy(self, source: File, target: File) -> None:
        """Copy a file inside the bucket."""
        old = {"Bucket": self.name, "Key": self._key(source)}
        with suppress(FileNotFoundError), _calls():
            self._client.copy_object(CopySource=old, Bucket=self.name, Key=self._key(target))

    def remove(self, campaign_id: int) -> str:
        """Delete all files of a campaign."""
        try:
            self._delete(self._files(f"{campaign_id}/"))
        except Unavailable:
            return f"{self.address}/{campaign_id}"
        return ""

    def _delete(self, files: Iterable[File]) -> None:
        keys = [{"Key": self._key(file)} for file in files]
        with _calls():
            for first in range(0, len(keys), AT_ONCE):
                gone = {"Objects": keys[first : first + AT_ONCE]}
                self._client.delete_objects(Bucket=self.name, Delete=gone)
        self._exists.cache_clear()

    def stored(self) -> list[File]:
        """List the files of all campaigns."""
        return self._files()

    @contextmanager
    def read(self, file: File) -> Iterator[IO[bytes]]:
        """Open a file."""
        with _calls():
            found = self._client.get_object(Bucket=self.name, Key=self._key(file))
            with found["Body"] as body:
                yield body

    @contextmanager
    def replacing(self, sizes: list[int], replace: bool) -> Iterator[Write]:  # noqa: ARG002
        """Write files beside those that are there, which are deleted at the end."""
        self.check()
        before = set(self.stored())
        if before and not replace:
            raise CrowdtreeError(
                f"{self.address}: the bucket has media; use another --media, --replace to delete "
                "what it has, or --no-media to leave them as they are"
            )
        written: set[File] = set()

        def write(file: File, content: IO[bytes]) -> None:
            written.add(file)
            self._write(file, content)

        try:
            yield write
        except BaseException:
            with suppress(Unavailable):
                self._delete(written - before)
            raise
        self._delete(before - written)

    def _write(self, file: File, content: IO[bytes]) -> None:
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        more = {"ContentType": kind, "Metadata": {}}
        with _calls():
            self._client.upload_fileobj(content, self.name, self._key(file), ExtraArgs=more)


@contextmanager
def _calls() -> Iterator[None]:
    """Turn errors of the service into one that clients may retry, or into "not found"."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (Boto3Error, BotoCoreError, ClientError) as error:
        if isinstance(error, ClientError) and error.response["Error"].get("Code") in MISSING:
            raise FileNotFoundError("not found") from error
        raise Unavailable("the storage of media does not respond; try again later") from error


def _client(place: str) -> Any:
    with needing(f"--media {place}: boto3", "s3"):
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    # another service than that of AWS, at one address for all buckets
    other = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    config = Config(
        signature_version="s3v4",
        connect_timeout=SECONDS,
        read_timeout=SECONDS,
        retries={"max_attempts": 3, "mode": "standard"},
        s3={"addressing_style": "path" if other else "virtual"},
        request_checksum_calculation="when_required",  # others know fewer checksums
        response_checksum_validation="when_required",
    )
    try:
        return boto3.client("s3", config=config)
    except (BotoCoreError, ValueError) as error:
        raise CrowdtreeError(f"--media: {place} cannot be used: {one_line(str(error))}") from None
