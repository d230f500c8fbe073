"""A process for work that takes seconds: comparing plans, simulating items.

The server process must stay responsive. One job runs at a time, at low priority, with limits on
time and memory, and reports its progress. A job that exceeds its time is killed with its process,
and the next one gets a new process.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing as mp
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeVar

from crowdtree.core.errors import CrowdtreeError
from crowdtree.planning import Report
from crowdtree.server.store import Unavailable

T = TypeVar("T")
MAX_SECONDS = 120.0
MAX_WAITING = 8
MAX_BYTES = 4 * 2**30
LOOK_SECONDS = 0.1


class WorkerProcess:
    """Runs importable functions in a separate process."""

    def __init__(self, seconds: float = MAX_SECONDS) -> None:
        self.seconds = seconds
        self.waiting = 0
        self._lock = asyncio.Lock()
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    async def run(self, job: Callable[..., T], *values: object, report: Report | None = None) -> T:
        """Run ``job(report, *values)`` in the process and wait for its result."""
        if self.waiting >= MAX_WAITING:
            raise Unavailable("Too many plans are being computed. Try again in a minute.")
        self.waiting += 1
        try:
            async with self._lock:
                return await self._run(job, values, report)
        finally:
            self.waiting -= 1

    async def _run(
        self, job: Callable[..., T], values: tuple[object, ...], report: Report | None
    ) -> T:
        pipe = self.open()
        end = time.monotonic() + self.seconds
        try:
            await asyncio.to_thread(pipe.send, (job, values))  # a new process reads it late
            while time.monotonic() < end:
                if not await asyncio.to_thread(pipe.poll, LOOK_SECONDS):
                    continue
                kind, found = await asyncio.to_thread(pipe.recv)
                if kind == "progress" and report is not None:
                    report(*found)
                elif kind == "failed":
                    raise CrowdtreeError(found)
                elif kind == "done":
                    made: T = found
                    return made
        except (OSError, EOFError):
            self.close()
            raise CrowdtreeError(
                "plan: the comparison ended without a result; the table may need too much memory"
            ) from None
        except asyncio.CancelledError:  # nobody waits for the result
            self.close()
            raise
        self.close()
        raise CrowdtreeError(
            f"plan: comparing plans for this table takes longer than {self.seconds:.0f} s; make "
            "the plan with `crowdtree design` and the campaign with `crowdtree campaign create`"
        )

    def open(self) -> Connection:
        """Start the process if it does not run, also ahead of the first job."""
        if self._pipe is not None and self._process is not None and self._process.is_alive():
            return self._pipe
        self.close()
        context = mp.get_context("spawn")  # a fork would copy the server's threads and sockets
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        return self._pipe

    def close(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


def _serve(pipe: Connection) -> None:
    """Run jobs until the server closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles Ctrl-C and kills this process
    _limits()

    def report(share: float, words: str) -> None:
        pipe.send(("progress", (share, words)))

    with contextlib.suppress(EOFError, OSError):
        while True:
            job, values = pipe.recv()
            try:
                answer = ("done", job(report, *values))
            except CrowdtreeError as error:
                answer = ("failed", str(error))
            except MemoryError:
                answer = ("failed", "plan: the table needs too much memory")
            pipe.send(answer)


def _limits() -> None:
    """Lower the priority and limit the memory, where the platform can."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import os
        import resource

        os.nice(5)
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))


def silent(share: float, words: str) -> None:
    """Discard progress reports."""
    del share, words
