"""The process that runs the rules, beside those that serve requests."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from crowdtree.server.rules.runner import Runner
from crowdtree.server.store import Store
from crowdtree.server.web.logs import LogFormat, configure
from crowdtree.server.web.processes import end_with_parent

log = logging.getLogger("crowdtree.server.web")
RESTART_SECONDS = 1.0
"""Pause before a process that has ended is started again."""
ASKED_SECONDS = 15.0
"""Pause if it was asked to end, which often ends the whole server."""
STOP_SECONDS = 5.0
"""How long a process may take to end when it is asked to."""
NICENESS = 5
"""How much the rules step back behind the requests where both want the processor."""


def run_rules(database: str, log_format: LogFormat = "text") -> None:
    """Run the rules of a database until the process is asked to stop, or its parent has died."""
    configure(access_log=False, log_format=log_format)
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
