"""What all processes of a server do: log, end with their parent, start again, stop gracefully."""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Literal

from crowdtree.server.rules.runner import Runner
from crowdtree.server.store import Store

log = logging.getLogger("crowdtree.server.web")
SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""Variable with the folder in which several processes of one server share counts and limits."""
GRACE_SECONDS = 10.0
"""Seconds for a graceful end after the parent process has died."""
RESTART_SECONDS = 1.0
"""Pause before a process that has ended is started again."""
ASKED_SECONDS = 15.0
"""Pause if it was asked to end, which often ends the whole server."""
STOP_SECONDS = 5.0
"""How long a process may take to end when it is asked to."""
NICENESS = 5
"""How much the rules step back behind the requests where both want the processor."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)

# ---------------------------------------------------------------------------------- logs

LogFormat = Literal["text", "json"]
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the request that is being served, also in threads that work for it."""


class JsonLines(logging.Formatter):
    """Format a log record as one JSON object.

    >>> record = logging.LogRecord("crowdtree.server.web", 30, "", 0, "two\\nlines", (), None)
    >>> record.created = 0.0
    >>> print(JsonLines().format(record))
    {"time": "1970-01-01T00:00:00.000Z", "level": "warning", "logger": "crowdtree.server.web", \
"message": "two\\nlines"}
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write the record with the fields of a request, if there is one."""
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, object] = {
            "time": f"{whole}.{int(record.created % 1 * 1000):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request := REQUEST_ID.get():
            fields["request_id"] = request
        fields |= getattr(record, "request", {})
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def configure_logs(access_log: bool, log_format: LogFormat) -> None:
    """Log warnings, and requests if wanted, to standard error."""
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(name)s %(message)s")
    handler.setFormatter(JsonLines() if log_format == "json" else text)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    if access_log:
        logging.getLogger("crowdtree.access").setLevel(logging.INFO)


# ------------------------------------------------------------------------ this process


def allow_connections() -> None:
    """Raise the number of open files to what the system allows: each connection is one."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # not on this platform
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def end_with_parent() -> None:
    """End this process when the one that started it has died, even if it was killed.

    Otherwise the processes of ``--processes`` would go on and keep the port. A process that was not
    started by :mod:`multiprocessing` has no such parent.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    log.warning("the parent process has died: stopping")
    with contextlib.suppress(OSError):
        os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACE_SECONDS)
    os._exit(1)


def before_stopping(act: Callable[[], None]) -> None:
    """Call a function when the process is asked to stop, before the handlers that are installed.

    Open streams and long polls then end at once; otherwise the server would wait for every open
    page, and cut it off with an error. In the main thread only; the web server restores its own
    handlers when it ends.
    """
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            _chain(number, act)


def _chain(number: int, act: Callable[[], None]) -> None:
    then = signal.getsignal(number)

    def handle(received: int, frame: FrameType | None) -> None:
        act()
        if callable(then):
            then(received, frame)

    signal.signal(number, handle)


# ------------------------------------------------------------------------ the rules


def run_rules(database: str, log_format: LogFormat = "text") -> None:
    """Run the rules of a database until the process is asked to stop, or its parent has died."""
    configure_logs(access_log=False, log_format=log_format)
    with Store(database).opened() as store:
        run_until_stopped(Runner(store))


def run_until_stopped(runner: Runner) -> None:
    """Run rules until the process is asked to stop. Ctrl-C is left to the parent process."""
    stopping = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    end_with_parent()
    with contextlib.suppress(AttributeError, OSError):  # not on this platform
        os.nice(NICENESS)
    runner.run(stopping)


class KeptProcess:
    """A process that runs a function, and is started again whenever it ends."""

    def __init__(self, target: Callable[..., None], *args: Any) -> None:
        self.target, self.args = target, args
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self.process = self._start()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _start(self) -> BaseProcess:
        context = multiprocessing.get_context("spawn")  # a fork would copy threads and sockets
        process = context.Process(target=self.target, args=self.args, daemon=True)
        process.start()
        return process

    def _keep(self) -> None:
        while True:
            wait([self.process.sentinel])
            if self._stopping.is_set():
                return
            self.process.join()
            code = self.process.exitcode
            if self._stopping.wait(RESTART_SECONDS if code else ASKED_SECONDS):
                return
            log.error("the process of the rules ended with code %s: starting it again", code)
            with self._lock:
                if self._stopping.is_set():
                    return
                self.process = self._start()

    def close(self) -> None:
        """End the process, and do not start it again."""
        with self._lock:
            self._stopping.set()
        self.process.terminate()
        self.process.join(STOP_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self._thread.join()
