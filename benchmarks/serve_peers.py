"""Our server and other annotation servers: 8 clients, next + answer, each with its own store.

    python -m benchmarks.serve_peers --seconds 10 --peers out/peers

Each peer runs as its maker starts it, on loopback with its default store, and is asked over HTTP
as its own page would: a project with text items and one yes/no question, eight people who log in,
take the next item and answer it. Ours runs on SQLite and on PostgreSQL with the engine, roles,
leases and durable answers on. One after the other, in one run. Prints one JSON object: loops per
second, p99 in ms and our rate over theirs.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.serve_load import free_port, spread

ITEMS = 3000
PASSWORD = "only-for-this-run-1"
START_SECONDS = 240


class Session:
    """A person with a browser: one kept connection, cookies, the token against forgery."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.cookies: dict[str, str] = {}

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        headers = {"referer": f"http://127.0.0.1:{self.port}/"}
        if self.cookies:
            headers["cookie"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        if "csrftoken" in self.cookies:
            headers["x-csrftoken"] = self.cookies["csrftoken"]
        if body is not None:
            form = isinstance(body, str)
            kind = "x-www-form-urlencoded" if form else "json"
            headers["content-type"] = f"application/{kind}"
            body = body if form else json.dumps(body)
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        found = response.read()
        for value in response.headers.get_all("set-cookie") or []:
            name, _, rest = value.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return response.status, found

    def form(self, path: str, **fields: str) -> tuple[int, bytes]:
        """Open a page with a form, fill it in and send it."""
        self.call("GET", path)
        return self.call(
            "POST", path, urlencode({**fields, "csrfmiddlewaretoken": self.cookies["csrftoken"]})
        )


class Broken(Exception):
    """A peer gave an unexpected response."""


def good(found: tuple[int, bytes], what: str) -> bytes:
    if found[0] >= 400:
        raise Broken(f"{what}: {found[0]} {found[1][:150]!r}")
    return found[1]


class LabelStudio:
    """Label Studio with its SQLite file."""

    name = "label-studio"
    page = (
        '<View><Text name="text" value="$text"/><Choices name="answer" toName="text">'
        '<Choice value="yes"/><Choice value="no"/></Choices></View>'
    )

    def command(self, program: Path, folder: Path, port: int) -> list[str]:
        return [
            *(str(program / "label-studio"), "start", "--no-browser", "--internal-host"),
            *("127.0.0.1", "--port", str(port), "--data-dir", str(folder / "data")),
            *("--username", "owner@example.com", "--password", PASSWORD),
        ]

    def prepare(self, port: int, clients: int) -> list[Session]:
        owner = Session(port)
        good(owner.form("/user/login/", email="owner@example.com", password=PASSWORD), "login")
        # Three answers per item, as in a small vote of ours.
        wish = {"title": "load", "label_config": self.page, "maximum_annotations": 3}
        made = good(owner.call("POST", "/api/projects/", wish), "project")
        self.number = json.loads(made)["id"]
        items = [{"text": f"This is item {k}."} for k in range(ITEMS)]
        good(owner.call("POST", f"/api/projects/{self.number}/import", items), "items")
        people = [Session(port) for _ in range(clients)]
        for place, person in enumerate(people):
            who = {"email": f"worker{place}@example.com", "password": PASSWORD}
            good(person.form("/user/signup/", **who), "signup")
        return people

    def next(self, person: Session) -> Any:
        found = good(person.call("GET", f"/api/projects/{self.number}/next/"), "next")
        return json.loads(found)["id"]

    def answer(self, person: Session, item: Any) -> None:
        value = {"choices": ["yes" if item % 3 else "no"]}
        result = [{"from_name": "answer", "to_name": "text", "type": "choices", "value": value}]
        good(person.call("POST", f"/api/tasks/{item}/annotations/", {"result": result}), "answer")


class Potato:
    """Potato with its files."""

    name = "potato"

    def command(self, program: Path, folder: Path, port: int) -> list[str]:
        items = [{"id": f"item{k}", "text": f"This is item {k}."} for k in range(ITEMS)]
        (folder / "items.json").write_text("\n".join(json.dumps(item) for item in items))
        scheme = {
            "annotation_type": "radio",
            "name": "answer",
            "description": "Is it so?",
            "labels": ["yes", "no"],
        }
        config = {
            "annotation_task_name": "load",
            "task_dir": ".",
            "output_annotation_dir": "out",
            "data_files": ["items.json"],
            "item_properties": {"id_key": "id", "text_key": "text"},
            "annotation_schemes": [scheme],
            "user_config": {"allow_all_users": True, "users": []},
            "authentication": {"method": "in_memory"},
            "assignment_strategy": "fixed_order",
            "max_annotations_per_user": -1,
            "max_annotations_per_item": 3,
            "site_dir": "default",
        }
        (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
        start = (str(program / "potato"), "start", "config.yaml", "--host", "127.0.0.1")
        return [*start, "-p", str(port)]

    def prepare(self, port: int, clients: int) -> list[Session]:
        people = [Session(port) for _ in range(clients)]
        for place, person in enumerate(people):
            who = urlencode({"email": f"worker{place}", "pass": PASSWORD, "action": "signup"})
            good(person.call("POST", "/register", who), "register")
            self.first(person)
        return people

    def first(self, person: Session) -> None:
        good(person.call("GET", "/annotate"), "first page")

    def next(self, person: Session) -> Any:
        wish = {"action": "next_instance"}
        status, page = person.call("POST", "/annotate", wish)
        if status in (301, 302, 303):
            status, page = person.call("GET", "/annotate")
        found = re.search(rb"item\d+", good((status, page), "next"))
        if found is None:
            raise Broken(f"no item on the page: {status} {page[:150]!r}")
        return found[0].decode()

    def answer(self, person: Session, item: Any) -> None:
        value = "yes" if int(item[4:]) % 3 else "no"
        given = {"instance_id": item, "annotations": {f"answer:{value}": value}}
        good(person.call("POST", "/updateinstance", given), "answer")


PEERS: tuple[Any, ...] = (LabelStudio, Potato)


@contextlib.contextmanager
def running(peer: Any, program: Path) -> Iterator[int]:
    """Start a peer in a folder of its own and stop it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        command = peer.command(program, folder, port)
        quiet = {"COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false", "SENTRY_DSN": ""}
        environment = {**os.environ, **quiet, "HOME": name, "PYTHONPATH": ""}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            wait_for(port, process, folder / "log")
            yield port
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(port: int, process: Any, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            Session(port).call("GET", "/")
            return
        time.sleep(0.3)
    raise Broken(f"it does not start: {log.read_text(errors='replace')[-500:]}")


def measured(peer: Any, program: Path, clients: int, seconds: float) -> dict[str, Any]:
    """Loops per second of a peer and its times."""
    with running(peer, program) as port:
        people = peer.prepare(port, clients)
        times: list[tuple[float, float]] = []
        wrong: list[str] = []
        end = time.perf_counter() + seconds

        def live(person: Session) -> None:
            while (begin := time.perf_counter()) < end:
                try:
                    item = peer.next(person)
                    middle = time.perf_counter()
                    peer.answer(person, item)
                except (Broken, OSError, http.client.HTTPException, ValueError) as error:
                    wrong.append(str(error)[:200])  # counted, and not as a loop
                    person.connection.close()
                    continue
                times.append((middle - begin, time.perf_counter() - middle))

        each(live, people)
    if not times:
        raise Broken(wrong[0] if wrong else "no loop was finished")
    # A client finishes the loop that it began: what began in time is counted.
    found: dict[str, Any] = {"loops_per_second": round(len(times) / seconds, 1)}
    if wrong:
        found |= {"failed_requests": len(wrong), "first_failure": wrong[0]}
    for place, name in enumerate(("next", "answer")):
        parts = spread([pair[place] for pair in times])
        found |= {f"{name}_{k}_ms": round(parts[k], 1) for k in ("p50", "p99")}
    return found


def each(work: Callable[[Session], None], people: list[Session]) -> None:
    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def ours(database: str, clients: int, seconds: float) -> dict[str, Any]:
    """Run our own benchmark, the same loop."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.serve_load"]
    options = ("--database", database, "--clients", str(clients), "--seconds", str(seconds))
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"crowdtree on {database}: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, default=Path("out/peers"), help="environments")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for kind in PEERS:
        folder = options.peers / kind.name
        if (folder / "bin").is_dir():
            program = (folder / "bin").resolve()
            try:
                found[kind.name] = measured(kind(), program, options.clients, options.seconds)
            except Broken as error:  # the others are still worth comparing
                found[kind.name] = {"skipped": str(error)}
        else:
            failed = folder.with_suffix(".failed")
            why = failed.read_text().strip() if failed.exists() else "not set up"
            found[kind.name] = {"skipped": why}
    for database in ("sqlite", "postgresql"):
        mine = ours(database, options.clients, options.seconds)
        for kind in PEERS:
            theirs = found[kind.name].get("loops_per_second")
            if theirs:
                mine[f"times_{kind.name}"] = round(mine["loops_per_second"] / theirs, 1)
        found[f"crowdtree on {database}"] = mine
    found["load_average"] = round(os.getloadavg()[0], 1)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
