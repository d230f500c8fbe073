"""Uploaded files in a bucket like those of S3, which browsers load by signed addresses.

Files are stored under the names that workers get, so that an address says nothing about an item.
Credentials, region and the address of the service are those of the AWS tools: variables such as
``AWS_ACCESS_KEY_ID``, or files.
"""

from __future__ import annotations

import mimetypes
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from crowdtree.core.errors import CrowdtreeError, needing, one_line
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.derived import file_name
from crowdtree.server.store.errors import Unavailable

SIGNED_SECONDS = 900
"""How long a signed address works: long enough to watch a video."""
PLACE = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([\w./-]*))?", re.ASCII)
GIVEN_NAME = re.compile(r"[0-9a-f]{16}(\.\w+)?", re.ASCII)
"""Names that workers get look like this; other files may too."""
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

    def _key(self, number: int, name: str = "") -> str:
        return f"{self._prefix}{number}/{name}"

    def check(self) -> None:
        """Ask for the bucket, or raise an error that says what to check."""
        try:
            with self._calls():
                self._client.head_bucket(Bucket=self.name)
        except Unavailable as error:
            raise CrowdtreeError(
                f"--media: {self.address} cannot be used ({error.__cause__}); check its name, and "
                "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL_S3"
            ) from None

    @contextmanager
    def _calls(self) -> Iterator[None]:
        """Turn errors of the service into one that clients may retry."""
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (Boto3Error, BotoCoreError, ClientError) as error:
            raise Unavailable("the storage of media does not respond; try again later") from error

    def receive(self, number: int) -> Path:  # noqa: ARG002
        """Name a file in the folder of temporary files."""
        return Path(tempfile.gettempdir()) / f"crowdtree-{secrets.token_hex(16)}.part"

    def keep(self, part: Path, campaign: Campaign, name: str, kind: str) -> None:
        """Upload a file under the name that workers get."""
        key = self._key(campaign.id, file_name(campaign.secret, name))
        with self._calls():
            self._client.upload_file(
                str(part), self.name, key, ExtraArgs={"ContentType": kind, "Metadata": {}}
            )
        part.unlink()

    def find(self, campaign: Campaign, name: str, kind: str, own: bool) -> str | None:
        """Sign an address of a file, which works for some minutes."""
        given = file_name(campaign.secret, name) if own else name
        if own and GIVEN_NAME.fullmatch(name):
            # most of these are names that workers get; a file may be called so by itself
            try:
                self._exists(self._key(campaign.id, name))
                given = name
            except FileNotFoundError:
                pass
        wish = {"Bucket": self.name, "Key": self._key(campaign.id, given)}
        with self._calls():
            return str(
                self._client.generate_presigned_url(
                    "get_object",
                    Params=wish | {"ResponseContentType": kind},
                    ExpiresIn=SIGNED_SECONDS,
                )
            )

    def _look(self, key: str) -> None:
        """Raise unless there is a file."""
        from botocore.exceptions import ClientError

        with self._calls():
            try:
                self._client.head_object(Bucket=self.name, Key=key)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in MISSING:
                    raise FileNotFoundError(key) from None
                raise

    def uploaded(self, campaign: Campaign) -> Callable[[str], bool]:
        """List the files once."""
        with self._calls():
            there = set(self._keys(self._key(campaign.id)))
        return lambda name: self._key(campaign.id, file_name(campaign.secret, name)) in there

    def place(self, number: int) -> str:
        """Name the folder of a campaign."""
        return f"{self.address}/{number}"

    def _keys(self, prefix: str) -> Iterator[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self.name, Prefix=prefix
        )
        return (one["Key"] for page in pages for one in page.get("Contents", ()))

    def copy(self, source: Campaign, target: Campaign, names: Iterable[str]) -> None:
        """Copy files inside the bucket."""
        from botocore.exceptions import ClientError

        for name in names:
            old = self._key(source.id, file_name(source.secret, name))
            new = self._key(target.id, file_name(target.secret, name))
            with self._calls():
                try:
                    self._client.copy_object(
                        CopySource={"Bucket": self.name, "Key": old}, Bucket=self.name, Key=new
                    )
                except ClientError as error:
                    if error.response.get("Error", {}).get("Code") not in MISSING:
                        raise

    def remove(self, number: int) -> str:
        """Delete all files of a campaign."""
        try:
            with self._calls():
                keys = list(self._keys(self._key(number)))
            self._delete(keys)
        except Unavailable:
            return self.place(number)
        return ""

    def _delete(self, keys: Sequence[str]) -> None:
        with self._calls():
            for first in range(0, len(keys), AT_ONCE):
                gone = [{"Key": key} for key in keys[first : first + AT_ONCE]]
                self._client.delete_objects(Bucket=self.name, Delete={"Objects": gone})
        self._exists.cache_clear()

    # what backups need: files by campaign and name that workers get

    def stored(self) -> list[tuple[int, str]]:
        """List the files of all campaigns."""
        with self._calls():
            names = [key.removeprefix(self._prefix) for key in self._keys(self._prefix)]
        found = (name.split("/") for name in names)
        return [(int(part[0]), part[1]) for part in found if len(part) == 2 and part[0].isdecimal()]

    @contextmanager
    def read(self, number: int, name: str) -> Iterator[IO[bytes]]:
        """Open a file."""
        with self._calls():
            found = self._client.get_object(Bucket=self.name, Key=self._key(number, name))
            with found["Body"] as body:
                yield body

    def write(self, file: IO[bytes], number: int, name: str) -> None:
        """Store a file."""
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        more = {"ContentType": kind, "Metadata": {}}
        with self._calls():
            self._client.upload_fileobj(file, self.name, self._key(number, name), ExtraArgs=more)

    def delete(self, files: Iterable[tuple[int, str]]) -> None:
        """Delete files."""
        self._delete([self._key(*file) for file in files])


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
