"""Uploaded media in a bucket, against a local server that behaves like S3."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")
pytest.importorskip("boto3", reason="boto3 is not installed: pip install crowdtree[s3]")
pytest.importorskip("flask_cors", reason="moto is not installed: pip install moto[server]")

from crowdtree.cli import main
from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.media.bucket import SIGNED_SECONDS, Bucket
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.errors import Unavailable
from crowdtree.server.store.tokens import file_name
from tests.serving import free_port
from tests.weblab import Lab, lab

PICTURE = b"\x89PNG picture"
ITEMS = "task,image\n1,gold 1.png\n2,000a1249af2bc5f0.png\n"


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """The address of a local S3."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-c", "from moto.server import main; main()", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                urlopen(f"{address}/moto-api/", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture
def bucket(service: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An empty bucket."""
    import boto3

    for name, value in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": service,
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    made = boto3.resource("s3").create_bucket(Bucket="birds")
    yield made
    made.objects.all().delete()
    made.delete()


@pytest.fixture
def app(bucket: Any) -> Iterator[Lab]:
    del bucket
    with lab(media="s3://birds/some/media") as made:
        yield made


def upload(app: Lab, number: int, name: str, content: bytes = PICTURE) -> Any:
    path = f"/api/campaigns/{number}/media?name={name}"
    return app.client.post(path, content=content, headers=app.owner)


def keys(bucket: Any) -> set[str]:
    return {found.key for found in bucket.objects.all()}


def test_workers_load_files_by_signed_addresses_that_tell_nothing(app: Lab, bucket: Any) -> None:
    number = app.campaign(ITEMS)
    names = ("gold 1.png", "000a1249af2bc5f0.png")
    for name in names:
        assert upload(app, number, name).json() == {"name": name, "bytes": len(PICTURE)}
    worker = app.worker(number)
    image = worker.next()["task"]["item"]["image"]
    app.client.cookies.set("crowdtree_worker", worker.token)
    for name, who in ((image, {}), (names[0], app.owner), (names[1], app.owner)):
        path = f"/media/{number}/{name}"
        found = app.client.get(path, headers=who, follow_redirects=False)
        assert found.status_code == 307
        address = found.headers["location"]
        assert "gold" not in address
        assert f"X-Amz-Expires={SIGNED_SECONDS}" in address
        with urlopen(address) as response:
            assert response.read() == PICTURE
            assert response.headers["content-type"] == "image/png"
    guessed = app.client.get(f"/media/{number}/gold 1.png", follow_redirects=False)
    with pytest.raises(HTTPError, match=r"403|404"):
        urlopen(guessed.headers["location"])
    secret = app.store.read(lambda c: get_campaign(c, number)).secret
    assert keys(bucket) == {f"some/media/{number}/{file_name(secret, name)}" for name in names}


def test_files_that_were_never_uploaded_are_reported(app: Lab) -> None:
    number = app.campaign(ITEMS, start=False)
    upload(app, number, "gold 1.png")
    page = app.get(f"/c/{number}/items").text
    assert "1 file that items show was never uploaded: 000a1249af2bc5f0.png" in page


def test_strangers_get_no_address(app: Lab) -> None:
    number = app.campaign(ITEMS)
    upload(app, number, "gold 1.png")
    found = app.client.get(f"/media/{number}/gold 1.png", follow_redirects=False)
    assert found.status_code == 404


def test_the_address_of_a_file_that_is_missing_leads_nowhere(app: Lab) -> None:
    number = app.campaign(ITEMS)
    upload(app, number, "gold 1.png")
    path = f"/media/{number}/missing.png"
    found = app.client.get(path, headers=app.owner, follow_redirects=False)
    with pytest.raises(HTTPError, match=r"403|404"):
        urlopen(found.headers["location"])


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [("evil.svg", PICTURE, 415), ("../a.png", PICTURE, 422), ("a.png", b"", 422)],
)
def test_what_the_server_refuses_is_not_stored(
    app: Lab, bucket: Any, name: str, content: bytes, status: int
) -> None:
    number = app.campaign(ITEMS)
    assert upload(app, number, name, content).status_code == status
    assert keys(bucket) == set()


def test_files_of_a_draft_are_deleted_with_it(app: Lab, bucket: Any) -> None:
    number, other = app.campaign(ITEMS, start=False), app.campaign(ITEMS, start=False)
    for one in (number, other):
        upload(app, one, "a.png")
    found = app.client.post(f"/c/{number}/discard", headers=app.owner, follow_redirects=False)
    assert found.status_code == 303
    assert [key.split("/")[2] for key in keys(bucket)] == [str(other)]


def test_a_duplicate_has_files_of_its_own(app: Lab) -> None:
    number = app.campaign(ITEMS, start=False)
    upload(app, number, "gold 1.png")
    new = app.post(f"/api/campaigns/{number}/duplicate", {"items": True}).json()["id"]
    app.client.post(f"/c/{number}/discard", headers=app.owner)
    path = f"/media/{new}/gold 1.png"
    found = app.client.get(path, headers=app.owner, follow_redirects=False)
    with urlopen(found.headers["location"]) as response:
        assert response.read() == PICTURE


def test_pages_may_load_from_a_service_without_https(app: Lab, service: str) -> None:
    policy = app.get("/").headers["content-security-policy"]
    assert f"img-src 'self' https: {service} data:" in policy
    assert f"media-src 'self' https: {service}" in policy


def test_an_outage_of_the_service_can_be_retried(
    app: Lab, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import EndpointConnectionError

    def fail(*_: Any, **__: Any) -> None:
        raise EndpointConnectionError(endpoint_url="x")

    number = app.campaign(ITEMS)
    media = app.client.app.state.crowdtree.media  # type: ignore[attr-defined]
    monkeypatch.setattr(media._client, "upload_file", fail)
    found = upload(app, number, "a.png")
    assert (found.status_code, found.json()["error"]) == (503, "unavailable")
    assert keys(bucket) == set()


@pytest.mark.parametrize("place", ["s3://", "s3:birds", "s3://Birds!/x", "s3://a"])
def test_a_malformed_place_is_refused(place: str) -> None:
    with pytest.raises(CrowdtreeError, match="expected s3://BUCKET/PREFIX"):
        Bucket(place)


def test_a_bucket_that_is_missing_is_reported_before_the_start(
    bucket: Any, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del bucket
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--port", "0", "--media", "s3://nowhere"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "s3://nowhere cannot be used" in said
    assert said.count("\n") == 1


def call(capsys: Any, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def files_of(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).rglob("*.png")}


def test_media_move_between_a_folder_and_a_bucket(
    bucket: Any, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with lab("c.db", media="media") as app:
        number = app.campaign(ITEMS)
        for name in ("gold 1.png", "000a1249af2bc5f0.png"):
            assert upload(app, number, name, PICTURE + name.encode()).is_success
    before = files_of("media")
    assert call(capsys, "backup", "a.backup", "--database", "c.db", "--media", "media")[0] == 0
    there = ("--media", "s3://birds/lab")
    code, out, err = call(capsys, "restore", "a.backup", "--database", "d.db", *there)
    assert (code, "2 media files" in out) == (0, True), err
    with lab("d.db", media="s3://birds/lab") as app:
        for name in before:
            found = app.get(f"/media/{number}/{name}", follow_redirects=False)
            with urlopen(found.headers["location"], timeout=20) as file:
                assert file.read() == before[name]
        upload(app, number, "later.png")  # no item shows it yet
        campaign = app.store.read(lambda c: get_campaign(c, number))
    assert len(list(bucket.objects.all())) == 3
    code, out, err = call(capsys, "restore", "a.backup", "--database", "e.db", *there)
    assert (code, "the bucket has media; use another --media" in err) == (2, True)
    assert call(capsys, "backup", "b.backup", "--database", "d.db", *there)[0] == 0
    back = ("restore", "b.backup", "--database", "e.db", "--media", "back")
    assert call(capsys, *back)[0] == 0
    assert files_of("back") == before | {file_name(campaign.secret, "later.png"): PICTURE}
    again = call(capsys, "restore", "b.backup", "--database", "f.db", "--media", "s3://birds/other")
    assert again[0] == 0
    keys = [one.key.partition("/")[::2] for one in bucket.objects.all()]
    assert {k for p, k in keys if p == "lab"} == {k for p, k in keys if p == "other"}
    call(capsys, "restore", "a.backup", "--database", "d.db", "--replace", *there)
    assert sum(one.key.startswith("lab/") for one in bucket.objects.all()) == 2


def test_a_bucket_that_fails_leaves_the_database_and_the_bucket_as_they_were(
    bucket: Any, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with lab("c.db", media="media") as app:
        number = app.campaign(ITEMS)
        upload(app, number, "gold 1.png")
        upload(app, number, "000a1249af2bc5f0.png")
    call(capsys, "backup", "a.backup", "--database", "c.db", "--media", "media")
    write, calls = Bucket._write, []

    def failing(self: Bucket, *given: Any) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise Unavailable("the storage of media does not respond; try again later")
        write(self, *given)

    monkeypatch.setattr(Bucket, "_write", failing)
    wish = ("restore", "a.backup", "--database", "d.db", "--media", "s3://birds")
    code, _, err = call(capsys, *wish)
    assert (code, "storage of media does not respond" in err) == (2, True)
    assert list(bucket.objects.all()) == []
    assert call(capsys, *wish)[0] == 0  # the database is still empty
    assert len(list(bucket.objects.all())) == 2
    assert call(capsys, "restore", "a.backup", "--database", "e.db", "--media", "s3://none")[0] == 2


def test_media_of_a_bucket_can_be_left_out_of_a_backup(
    bucket: Any, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with lab("c.db", media="s3://birds") as app:
        upload(app, app.campaign(ITEMS), "gold 1.png")
    wish = ("backup", "a.backup", "--database", "c.db", "--media", "s3://birds")
    said = call(capsys, *wish, "--no-media")[1]
    assert "Uploaded media are not in the backup; they are in s3://birds." in said
    made = json.loads(call(capsys, *wish, "--json")[1])
    assert (made["media"], made["bucket"]) == (1, "")
    again = ("restore", "a.backup", "--database", "new.db", "--media", "s3://birds", "--no-media")
    assert call(capsys, *again)[0] == 0
    assert len(list(bucket.objects.all())) == 1
