"""The list of threats, and a server of any checkout as a process with its owner and workers.

Nothing is imported from crowdtree: a checkout with other modules is served by the same code.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Check: TypeAlias = "Callable[[Lab], Finding]"
TABLE = {
    "crowdtree": 1,
    "kind": "problem",
    "dash": "inapplicable",
    "classes": [{"name": "a", "prior": 0.5}, {"name": "b", "prior": 0.5}],
    "questions": [{"name": "q", "error": 0.2, "outcome": [0, 1]}],
}
"""Two classes and a question, which is right for the second."""
ADAPTIVE = {"problem": TABLE, "kind": "adaptive", "target_error": 0.25}
"""One answer is enough for a label."""
COMMAND = (sys.executable, "-m", "crowdtree")
SECONDS = 60.0
"""A request that takes longer counts as not served."""


class Finding(NamedTuple):
    """Whether a threat is closed, and what was seen; none if it cannot be tested here."""

    closed: bool | None
    seen: str


THREATS: dict[str, Check] = {}
"""What is done, and the function that does it."""


def threat(words: str) -> Callable[[Check], Check]:
    """Add a function to the list."""

    def add(check: Check) -> Check:
        THREATS[words] = check
        return check

    return add


@dataclass
class Response:
    """What the server sent; `body` is parsed if it is JSON."""

    status: int
    body: Any
    headers: http.client.HTTPMessage

    def __getitem__(self, name: str) -> Any:
        return self.body[name]


@dataclass
class Client:
    """Sends requests, each over a connection of its own."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = SECONDS
    count: int = 0

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        **headers: str,
    ) -> Response:
        """Send a request; a body that is not bytes is sent as JSON."""
        sent = self.headers | {name.replace("_", "-"): text for name, text in headers.items()}
        if body is not None:
            sent["content-type"] = kind
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.seconds)
        try:
            connection.request(method, path, body, sent)
            found = connection.getresponse()
            text = found.read()
        finally:
            connection.close()
        is_json = found.headers.get_content_type() == "application/json"
        parsed = json.loads(text) if is_json else text.decode(errors="replace")
        return Response(found.status, parsed, found.headers)

    def get(self, path: str, **options: Any) -> Response:
        return self.call("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Response:
        return self.call("POST", path, {} if body is None else body, **options)

    # ---------------------------------------------------------------- as a worker

    def next(self, **wish: Any) -> Response:
        """Ask for a question."""
        return self.post("/api/worker/next", wish)

    def send(self, verb: str, lease: str, **more: Any) -> Response:
        """Answer, skip or report the question of a lease."""
        self.count += 1
        body = {"lease": lease, "key": f"k{self.count}", **more}
        return self.post(f"/api/worker/{verb}", body)

    def work(self, say: Callable[[Any], str] | str, most: int = 200) -> int:
        """Answer until there is no question; "skip" skips. Counts the questions."""
        for done in range(most):
            task = self.next()["task"]
            if task is None:
                return done
            said = say if isinstance(say, str) else say(task["item"])
            more = {} if said == "skip" else {"answer": said}
            self.send("skip" if said == "skip" else "answer", task["lease"], **more)
        return most


def truth(item: Any) -> str:
    """The right answer, which the text of an item tells."""
    return "yes" if item["text"].endswith("b") else "no"


def lie(item: Any) -> str:
    """The wrong answer."""
    return "no" if truth(item) == "yes" else "yes"


def rows(count: int, gold: int = 0) -> list[dict[str, str]]:
    """Items of both classes in turn; `gold` further ones are gold items."""
    made = [{"task": f"i{k}", "text": f"no. {k}: {'ab'[k % 2]}"} for k in range(count + gold)]
    return made[:count] + [{**row, "gold": row["text"][-1]} for row in made[count:]]


@dataclass
class Site(Client):
    """A server with its owner logged in."""

    folder: Path = field(default_factory=Path)
    process: Any = None
    link: str = ""
    lab: Any = None

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the same checkout beside the database."""
        return subprocess.run(
            [*COMMAND, *words],
            cwd=self.folder,
            env=self.lab.environment,
            capture_output=True,
            text=True,
        )

    def made(self, path: str, body: Any = None, **options: Any) -> Response:
        """Post something that must succeed."""
        found = self.post(path, body, **options)
        if found.status >= 400:
            raise Refused(f"{path}: {found.status} {found.body}")
        return found

    def session(self, link: str) -> tuple[dict[str, str], str]:
        """Log in by a link: the headers of a page that is logged in, and the whole cookie."""
        found = self.post("/api/session", {"token": link.partition("token=")[2]})
        if found.status != 200:
            raise Refused(f"the link is refused: {found.status}")
        cookie = str(found.headers["set-cookie"])
        return {"cookie": cookie.partition(";")[0], "x_csrf_token": found["csrf"]}, cookie

    def log_in(self) -> None:
        """Log in by the link that the server printed, and go on with a token."""
        mine, _ = self.session(self.link)
        token = self.made("/api/tokens", {"name": "threats"}, **mine)["token"]
        self.headers = {"authorization": f"Bearer {token}"}

    def campaign(
        self,
        items: Sequence[dict[str, str]],
        settings: dict[str, Any] | None = None,
        policy: dict[str, Any] | None = None,
        start: bool = True,
    ) -> int:
        """Create a campaign with items."""
        wish = {"name": "x", "policy": policy or ADAPTIVE, "settings": settings or {}}
        number = int(self.made("/api/campaigns", wish)["id"])
        self.upload(number, items)
        if start:
            self.made(f"/api/campaigns/{number}/start")
        return number

    def upload(self, number: int, items: Sequence[dict[str, str]]) -> Response:
        """Add items."""
        lines = "\n".join(map(json.dumps, items)).encode()
        return self.made(f"/api/campaigns/{number}/items", lines, kind="application/x-ndjson")

    def invite(self, number: int) -> Client:
        """Invite a worker."""
        token = self.made(f"/api/campaigns/{number}/workers/invite")["token"]
        return Client(self.port, {"authorization": f"Bearer {token}"})

    def open_link(self, number: int, **wish: Any) -> str:
        """Make a join link; its token."""
        return str(self.made(f"/api/campaigns/{number}/join-link", wish)["token"])

    def join(self, token: str, **wish: Any) -> Response:
        """Ask to join by a link."""
        return Client(self.port).post("/api/join", {"token": token, **wish})

    def strangers(self, number: int, count: int) -> list[Client]:
        """Let people join by the open link."""
        token = self.open_link(number)
        joined = [self.join(token)["token"] for _ in range(count)]
        return [Client(self.port, {"authorization": f"Bearer {one}"}) for one in joined]

    def progress(self, number: int) -> Any:
        return self.get(f"/api/campaigns/{number}").body

    def count_of(self, number: int, what: str) -> int:
        """How many items are labelled, or set aside."""
        return int(self.progress(number)["items"][what])

    def paused(self, number: int) -> list[str]:
        """Why workers are paused."""
        found = self.get(f"/api/campaigns/{number}/workers").body
        return [row.get("status_reason", "") for row in found if row["status"] == "paused"]

    def raw(self, text: str = "") -> socket.socket:
        """Open a connection and send a text."""
        made = socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)
        made.sendall(text.encode())
        return made


class Refused(Exception):
    """The server refused what a check depends on."""


class NotTested(Exception):
    """A check is not possible on this machine."""


@dataclass
class Lab:
    """A checkout to test: its servers, and one that many checks share."""

    source: Path
    shared: Site = field(default_factory=lambda: Site(0))

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its commands; ours could name another database."""
        mine = {name: text for name, text in os.environ.items() if "CROWDTREE_" not in name}
        return mine | {"PYTHONPATH": str(self.source / "src")}

    @contextlib.contextmanager
    def start(
        self,
        *options: str,
        folder: Path | None = None,
        before: Sequence[str] = (),
        enter: bool = True,
    ) -> Iterator[Site]:
        """Start a server in a process of its own, `before` in front of it, and log in."""
        with contextlib.ExitStack() as stack:
            folder = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            log = stack.enter_context((folder / "log.txt").open("w"))
            port = free_port()
            process = subprocess.Popen(
                [*before, *COMMAND, "serve", "--json", "--port", str(port), *options],
                cwd=folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                umask=0,
                start_new_session=True,
            )
            try:
                found = json.loads(process.stdout.readline() or "{}")  # type: ignore[union-attr]
                if not found:
                    raise Refused((folder / "log.txt").read_text()[-500:])
                site = Site(port, folder=folder, process=process, link=found["link"], lab=self)
                until(lambda: alive(port), SECONDS)
                if enter:
                    site.log_in()
                yield site
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def alive(port: int) -> bool:
    """Whether a server responds on a port."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        return Client(port).get("/healthz").status == 200
    return False


def until(found: Callable[[], Any], seconds: float) -> Any:
    """Wait until something is found, up to some seconds; what was found last."""
    end = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < end:
        time.sleep(0.2)
    return value
