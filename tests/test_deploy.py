"""Files to operate the server: they are well-formed, careful, and backups restore."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from deploy.try_steps import stages, steps

DEPLOY = Path(__file__).parent.parent / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
UNITS = ("crowdtree.service", "crowdtree-backup.service", "crowdtree-backup.timer")


def program(name: str) -> str:
    """Find a program of this environment or of the machine; skip without it."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def test_the_image_is_small_careful_and_watched():
    build, final = stages(DOCKERFILE)
    said = dict(final)
    assert said["USER"].isdigit()
    assert said["USER"] != "0"
    assert "/healthz" in said["HEALTHCHECK"]
    assert json.loads(said["CMD"])[0] == "serve"
    assert any(step.word == "COPY" and "--from=build" in step.rest for step in final)
    assert not any("pip install" in step.rest for step in final)
    assert all(":latest" not in step.rest and ":" in step.rest for step in (build[0], final[0]))


def test_files_that_the_image_copies_are_there_and_sent_to_the_builder():
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    for step in stages(DOCKERFILE)[0]:
        if step.word == "COPY":
            for name in step.rest.split()[:-1]:
                assert (DEPLOY.parent / name).exists(), name
                assert f"!{name}" in sent


def test_hadolint_has_no_finding():
    made = subprocess.run([program("hadolint"), DEPLOY / "Dockerfile"], capture_output=True)
    assert made.stdout.decode() == ""


def test_every_instruction_is_one_that_the_trial_knows():
    known = set(re.findall(r'"([A-Z]+)"', (DEPLOY / "try_steps.py").read_text()))
    assert {step.word for step in steps(DOCKERFILE)} <= known


def test_compose_file():
    made = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = made["services"]
    server = services["server"]
    assert server["read_only"] is True
    assert server["cap_drop"] == ["ALL"]
    assert "ports" not in server, "only the proxy may be reached"
    for name, service in services.items():
        assert not service["image"].endswith(":latest"), name
        assert set(service["networks"]) <= set(made["networks"]), name
        assert set(service.get("depends_on", ())) <= set(services), name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("./") and source != "./metrics-token":
                assert (DEPLOY / source).exists(), source
            elif source[0] not in "$.":
                assert source in made["volumes"], source
    variables = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    assert variables == set(re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text(), re.M))


def test_options_of_the_server_exist():
    """Options in compose.yaml and in the unit are those of `crowdtree serve`."""
    import typer.main

    from crowdtree.cli.app import app

    serve = typer.main.get_command(app).commands["serve"]
    known = {option for parameter in serve.params for option in parameter.opts}
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["server"]
    given = {word.partition("=")[0] for word in compose["command"][1:]}
    unit = (DEPLOY / "crowdtree.service").read_text()
    given |= set(re.findall(r"--[a-z-]+", re.search(r"ExecStart=.*", unit)[0]))
    assert given <= known


@pytest.mark.parametrize("name", UNITS)
def test_units_are_well_formed(name):
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(DEPLOY / name)
    assert unit["Unit"]["Description"]
    if name.endswith(".service"):
        service = unit["Service"]
        assert service["NoNewPrivileges"] == "yes"
        assert service["ProtectSystem"] == "strict"
        assert service["User"] != "root"
    else:
        assert unit["Timer"]["Persistent"] == "yes"


def test_systemd_rates_the_service_as_safe():
    command = [program("systemd-analyze"), "security", "--offline=true", "--threshold=20"]
    made = subprocess.run(
        [*command, "./crowdtree.service"], cwd=DEPLOY, capture_output=True, text=True
    )
    if "Overall exposure level" not in made.stdout:
        pytest.skip("systemd-analyze cannot rate units here")
    assert made.returncode == 0, made.stdout[-300:]


def test_the_dashboard_shows_every_metric():
    from crowdtree.server.store import Store
    from crowdtree.server.web.metrics import exposition

    with Store("sqlite://").opened() as store:
        text = store.read(lambda connection: exposition(connection, 0, 0.0))
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    shown = " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    names = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    parts = re.findall(r"\w+", re.sub(r"_(bucket|sum|count)\b", "", shown))
    assert names <= set(parts)
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in board["panels"]]
    assert len(places) == len(set(places))


def back_up(*words: object, programs: object = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", DEPLOY / "backup.sh", *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
    )


def test_a_backup_of_a_running_campaign_verifies(url, request, tmp_path):
    from crowdtree.server.store import Store
    from crowdtree.server.store.replay.verify import verify
    from tests.storelab import Small

    campaign = Small(url=url)
    campaign.start()
    ann = campaign.worker()
    for value in (0, 1, 1, 0, 1):
        campaign.answer(ann, value)
    folder = tmp_path / "backups"
    if url.startswith("sqlite"):
        made = back_up(url.removeprefix("sqlite:///"), tmp_path / "none", folder)
        assert made.returncode == 0, made.stderr
        restored = f"sqlite:///{next(folder.iterdir())}"
    else:
        postgres = request.getfixturevalue("postgres")
        programs, restored = postgres.server.bin_path, postgres.database()
        made = back_up(url, tmp_path / "none", folder, programs=programs)
        assert made.returncode == 0, made.stderr
        load = [programs / "pg_restore", "--no-owner", f"--dbname={restored}"]
        subprocess.run([*load, next(folder.iterdir())], check=True)
    campaign.answer(ann, 1)  # after the backup
    campaign.store.close()
    with Store(restored).opened() as store:
        found = store.read(lambda connection: verify(connection, campaign.number))
    assert found["agrees"]
    assert found["answers"] == 5


def test_a_backup_of_an_open_database_restores(tmp_path):
    database, media, folder = tmp_path / "c.db", tmp_path / "media", tmp_path / "backups"
    media.mkdir()
    (media / "a.png").write_bytes(b"picture")
    writer = sqlite3.connect(database)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("CREATE TABLE answers (value INTEGER)")
    writer.executemany("INSERT INTO answers VALUES (?)", [(i,) for i in range(1000)])
    writer.commit()
    writer.execute("INSERT INTO answers VALUES (-1)")  # not committed: not in the backup
    made = back_up(database, media, folder)
    writer.close()
    assert made.returncode == 0, made.stderr
    copy, archive = sorted(folder.iterdir())
    assert copy.suffix == ".db"
    assert archive.name.endswith(".media.tar.gz")
    assert copy.stat().st_mode & 0o077 == 0, "others may read the backup"
    restored = sqlite3.connect(copy)
    assert restored.execute("SELECT count(*), min(value) FROM answers").fetchone() == (1000, 0)
    assert restored.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    restored.close()
    shutil.unpack_archive(archive, tmp_path / "restored")
    assert (tmp_path / "restored" / "a.png").read_bytes() == b"picture"


def test_a_backup_that_fails_leaves_nothing(tmp_path):
    made = back_up(tmp_path / "none.db", tmp_path, tmp_path / "backups")
    assert made.returncode == 2
    assert "there is no file" in made.stderr
    assert list((tmp_path / "backups").iterdir()) == []
    assert back_up("one").returncode == 2


def test_old_backups_are_deleted(tmp_path):
    folder = tmp_path / "backups"
    folder.mkdir()
    sqlite3.connect(tmp_path / "c.db").close()
    old, other = folder / "crowdtree-20200101T000000Z.db", folder / "notes.txt"
    for path in (old, other):
        path.touch()
        os.utime(path, (time.time() - 30 * 86_400,) * 2)
    assert back_up(tmp_path / "c.db", tmp_path / "none", folder, 7).returncode == 0
    assert not old.exists()
    assert other.exists()


@pytest.mark.slow
def test_every_step_of_the_dockerfile_works_in_a_clean_environment():
    """Installs the packages anew; the server starts on a read-only file system, as another user."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"]).returncode != 0:
        pytest.skip("mount namespaces need the rights of root")
    made = subprocess.run(
        [sys.executable, DEPLOY / "try_steps.py", "/usr/bin/python3"],
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert made.returncode == 0, made.stderr[-2000:]
    assert "healthy" in made.stdout
