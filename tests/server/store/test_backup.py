"""Backups: taken while a server writes, restored into either database, and refused if damaged."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.media.folder import Folder
from crowdtree.server.store import Store
from crowdtree.server.store import restore as restoring
from crowdtree.server.store.backup import back_up
from crowdtree.server.store.db.tables import answers, metadata
from crowdtree.server.store.replay.verify import verify
from crowdtree.server.store.restore import restore
from tests.storelab import Small, filled, work


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind to restore into."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'target.db'}"
    return str(request.getfixturevalue("postgres").database())


def rows(store: Store) -> dict[str, list[Any]]:
    """All rows of all tables."""
    return store.read(
        lambda c: {
            name: sorted(map(tuple, c.execute(sa.select(table))), key=repr)
            for name, table in metadata.tables.items()
        }
    )


def uploaded(path: Path, name: str = "1/bird.png", content: bytes = b"picture") -> Folder:
    (path / name).parent.mkdir(parents=True, exist_ok=True)
    (path / name).write_bytes(content)
    return Folder(path)


def test_a_backup_of_a_campaign_in_use_restores_into_either_database(
    url: str, target: str, tmp_path: Path
) -> None:
    media, copied = uploaded(tmp_path / "media"), Folder(tmp_path / "copied")
    uploaded(media.path, "1/.0123.part")  # still being uploaded
    campaign = Small(url=url)
    campaign.start()
    ann = campaign.worker()
    for value in (0, 1, 1, 0, 1):
        campaign.answer(ann, value)
    expected = rows(campaign.store)
    made = back_up(url, media, tmp_path / "a.backup")
    campaign.answer(ann, 1)  # the server goes on
    campaign.store.close()
    assert made["rows"]["answers"] == 5
    assert (tmp_path / "a.backup").stat().st_mode & 0o077 == 0, "others can read the backup"
    restore(tmp_path / "a.backup", target, copied)
    assert [path.name for path in copied.path.rglob("*") if path.is_file()] == ["bird.png"]
    with Store(target, clock=campaign.clock, rng=0).opened() as store:
        assert rows(store) == expected
        found = store.read(lambda c: verify(c, campaign.number))
        assert found["differences"] == []
        campaign.store = store
        campaign.answer(ann, 1)  # new ids continue after the old ones
        newest = store.read(lambda c: c.execute(sa.select(sa.func.max(answers.c.id))).scalar())
        assert newest == 6
        assert store.read(lambda c: verify(c, campaign.number))["differences"] == []


def test_a_backup_is_one_state_while_answers_arrive(url: str, tmp_path: Path) -> None:
    import threading

    with Store(url, rng=0).opened() as store:
        number, hashes = filled(store, n=30)
        worker = threading.Thread(target=work, args=(store, hashes))
        worker.start()
        files = [tmp_path / f"{k}.backup" for k in range(3)]
        for file in files:
            back_up(url, None, file)
        worker.join()
    for file in files:
        copy = str(file.with_suffix(".db"))
        restore(file, copy, None)
        with Store(copy).opened() as store:
            assert store.read(lambda c: verify(c, number))["differences"] == []


def test_ids_of_deleted_rows_are_not_given_again(url: str, target: str, tmp_path: Path) -> None:
    insert = sa.text("INSERT INTO campaigns (name) VALUES ('x') RETURNING id")
    with Store(url).opened() as store:
        for _ in range(3):
            last = store.write(lambda c: c.execute(insert).scalar_one())
        store.write(lambda c: c.execute(sa.text("DELETE FROM campaigns")).rowcount)
        back_up(url, None, tmp_path / "a.backup")
    restore(tmp_path / "a.backup", target, None)
    with Store(target).opened() as store:
        assert store.write(lambda c: c.execute(insert).scalar_one()) == last + 1


def test_a_database_with_rows_is_replaced_only_if_asked(
    url: str, target: str, tmp_path: Path
) -> None:
    for place in (url, target):
        Small(url=place, rows=2 if place == url else 3).store.close()
    media = uploaded(tmp_path / "media")
    there = uploaded(tmp_path / "there", "1/old.png")
    back_up(url, media, tmp_path / "a.backup")
    with pytest.raises(CrowdtreeError, match=r"not empty.*--replace"):
        restore(tmp_path / "a.backup", target, None)
    with pytest.raises(CrowdtreeError, match=r"folder of media is not empty.*--replace"):
        restore(tmp_path / "a.backup", target, there)
    with Store(target).opened() as store:
        assert len(rows(store)["items"]) == 3
    restore(tmp_path / "a.backup", target, there, replace=True)
    with Store(target).opened() as store:
        assert len(rows(store)["items"]) == 2
    assert [path.name for path in there.path.rglob("*.png")] == ["bird.png"]


def test_a_database_that_a_server_has_open_is_left_alone(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crowdtree.server.store.restore.DISCONNECTING", 1)
    campaign = Small(url=url)
    back_up(url, None, tmp_path / "a.backup")
    with pytest.raises(CrowdtreeError, match="stop the server first"):
        restore(tmp_path / "a.backup", url, None, replace=True)
    campaign.start()
    campaign.store.close()


def rewritten(path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Change or remove members of an archive."""
    with zipfile.ZipFile(path) as archive:
        found = {name: change(name, archive.read(name)) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in found.items():
            if content is not None:
                archive.writestr(name, content)


def manifest(**changes: Any) -> Callable[[str, bytes], bytes]:
    def change(name: str, content: bytes) -> bytes:
        return (
            json.dumps(json.loads(content) | changes).encode() if name[-4:] == "json" else content
        )

    return change


DAMAGE: dict[str, tuple[Callable[[str, bytes], bytes | None], str]] = {
    "row": (
        lambda n, c: c.replace(b"Birds", b"Words") if "campaigns" in n else c,
        "checksum of tables/campaigns",
    ),
    "text": (lambda n, c: b"[" if "items" in n else c, r"tables/items.jsonl cannot be read"),
    "media": (lambda n, c: b"other" if n.endswith("png") else c, "checksum of media/1/bird.png"),
    "missing": (lambda n, c: None if "answers" in n else c, "tables/answers.jsonl is missing"),
    "no manifest": (lambda n, c: None if n == "backup.json" else c, "not a backup of crowdtree"),
    "other tables": (
        manifest(tables="9999", crowdtree="9.0"),
        "got '9999'; restore it with crowdtree 9.0",
    ),
    "newer format": (manifest(format="crowdtree backup 2"), "expected the format.*update"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_backup_changes_nothing(case: str, tmp_path: Path) -> None:
    database, path = str(tmp_path / "c.db"), tmp_path / "a.backup"
    media = uploaded(tmp_path / "media")
    Small(url=database).store.close()
    back_up(database, media, path)
    change, words = DAMAGE[case]
    rewritten(path, change)
    with Store(database).opened() as store:
        expected = rows(store)
    with pytest.raises(CrowdtreeError, match=words):
        restore(path, database, media, replace=True)
    with Store(database).opened() as store:
        assert rows(store) == expected
    assert [one.name for one in media.path.rglob("*")] == ["1", "bird.png"]


def test_names_outside_the_folder_of_media_are_refused(tmp_path: Path) -> None:
    database, path = str(tmp_path / "c.db"), tmp_path / "a.backup"
    Small(url=database).store.close()
    back_up(database, uploaded(tmp_path / "media"), path)
    with zipfile.ZipFile(path) as archive:
        made = json.loads(archive.read("backup.json"))
    made["sha256"]["media/1/../../evil.png"] = made["sha256"]["media/1/bird.png"]
    rewritten(path, manifest(sha256=made["sha256"]))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("media/1/../../evil.png", b"picture")
    with pytest.raises(CrowdtreeError, match="not a name of uploaded media"):
        restore(path, str(tmp_path / "new.db"), Folder(tmp_path / "new"))
    assert not list(tmp_path.rglob("evil.png"))


MANIFESTS: list[dict[str, Any]] = [
    {"sha256": {}},
    {"sha256": [1]},
    {"sha256": 3},
    {"rows": 5},
    {"rows": {}},
    {"rows": {"campaigns": "many"}},
    {"last_ids": None},
    {"last_ids": {"items": "a"}},
    {"tables": 5},
    {"created_at": []},
]


def test_a_backup_that_somebody_has_written_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, path = str(tmp_path / "c.db"), tmp_path / "a.backup"
    Small(url=database).store.close()
    made = back_up(database, uploaded(tmp_path / "media"), path)
    new = (str(tmp_path / "new.db"), Folder(tmp_path / "new"))
    whole = path.read_bytes()
    for changes in MANIFESTS:
        rewritten(path, manifest(**changes))
        with pytest.raises(CrowdtreeError, match=r"is not a backup of crowdtree \(backup.json\)"):
            restore(path, *new)
    rewritten(path, lambda n, c: b"[" * 200_000 if n == "backup.json" else c)
    with pytest.raises(CrowdtreeError, match="is not a backup"):
        restore(path, *new)
    for content in (b"[" * 200_000, b"[1]\n[1]\n"):
        path.write_bytes(whole)
        sums = made["sha256"] | {"tables/items.jsonl": hashlib.sha256(content).hexdigest()}
        rewritten(path, manifest(sha256=sums))
        rewritten(path, lambda n, c, content=content: content if "items" in n else c)
        with pytest.raises(CrowdtreeError, match=r"tables/items.jsonl cannot be read"):
            restore(path, *new)
    path.write_bytes(whole)
    monkeypatch.setattr(restoring, "MAX_LINE", 20)
    with pytest.raises(CrowdtreeError, match="too long a line"):
        restore(path, *new)
    monkeypatch.setattr(restoring, "MAX_MANIFEST", 20)
    with pytest.raises(CrowdtreeError, match="is not a backup"):
        restore(path, *new)


def test_media_that_do_not_fit_on_the_disk_are_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, path = str(tmp_path / "c.db"), tmp_path / "a.backup"
    Small(url=database).store.close()
    back_up(database, uploaded(tmp_path / "media"), path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3))
    with pytest.raises(CrowdtreeError, match="take 7 bytes, and the disk has 3"):
        restore(path, str(tmp_path / "new.db"), Folder(tmp_path / "new"))


def test_a_truncated_backup_and_other_files_are_refused(tmp_path: Path) -> None:
    database, path = str(tmp_path / "c.db"), tmp_path / "a.backup"
    Small(url=database).store.close()
    back_up(database, None, path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CrowdtreeError, match="damaged, or not a backup"):
        restore(path, str(tmp_path / "new.db"), None)
    with pytest.raises(CrowdtreeError, match="no such file"):
        restore(tmp_path / "none", str(tmp_path / "new.db"), None)
    (tmp_path / "empty.db").touch()
    with pytest.raises(CrowdtreeError, match="no tables of crowdtree"):
        back_up(str(tmp_path / "empty.db"), None, tmp_path / "b.backup")
    assert not (tmp_path / "b.backup").exists()
