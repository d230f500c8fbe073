"""A process beside the server for work that takes seconds: comparing plans, simulating items.

The server's own process answers workers and must not wait for arithmetic. One job runs at a time,
at low priority, with a limit of time and of memory; it tells how far it is. A job that takes too
long is stopped with its process, and the next one gets a new process.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing as mp
import signal
import time
from collections.abc import Callable
from typing import Any

from crowdtree.errors import CrowdtreeError
from crowdtree.store import Unavailable

__all__ = ["Studio", "Tell", "silent"]

Tell = Callable[[float, str], None]
"""Hears how far a job is (0 to 1), and what is being done."""
MOST_SECONDS = 120.0
MOST_WAITING = 8
MOST_BYTES = 4 * 2**30
LOOK_SECONDS = 0.1
METHOD = "spawn"  # a fork would take the server's threads and sockets with it


class Studio:
    """Runs plain functions of an importable module in a process of their own.

    >>> studio = Studio()
    >>> asyncio.run(studio.work(_square, 7))
    49
    >>> studio.close()
    """

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self.seconds = seconds
        self.waiting = 0
        self._lock = asyncio.Lock()
        self._process: Any = None
        self._line: Any = None

    async def work(self, job: Callable[..., Any], *values: Any, tell: Tell | None = None) -> Any:
        """Run ``job(tell, *values)`` there and wait for its result."""
        if self.waiting >= MOST_WAITING:
            raise Unavailable("Others are making plans just now. Try again in a minute.")
        self.waiting += 1
        try:
            async with self._lock:
                return await self._run(job, values, tell)
        finally:
            self.waiting -= 1

    async def _run(self, job: Callable[..., Any], values: tuple[Any, ...], tell: Any) -> Any:
        self.open()
        end = time.monotonic() + self.seconds
        try:
            self._line.send((job, values))
            while time.monotonic() < end:
                if not await asyncio.to_thread(self._line.poll, LOOK_SECONDS):
                    continue
                kind, found = self._line.recv()
                if kind == "told" and tell is not None:
                    tell(*found)
                elif kind == "failed":
                    raise CrowdtreeError(found)
                elif kind == "done":
                    return found
        except (OSError, EOFError):
            self.close()
            raise CrowdtreeError(
                "plan: the comparison ended without a result; the table may need too much memory"
            ) from None
        except asyncio.CancelledError:  # nobody waits for it any more
            self.close()
            raise
        self.close()
        raise CrowdtreeError(
            f"plan: comparing plans for this table takes longer than {self.seconds:.0f} s; make "
            "the plan with `crowdtree design` and the campaign with `crowdtree campaign create`"
        )

    def open(self) -> None:
        """Start the process, so that it is ready when it is needed."""
        if self._process is not None and self._process.is_alive():
            return
        self.close()
        context: Any = mp.get_context(METHOD)
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def close(self) -> None:
        """Stop the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._line.close()
        self._process = self._line = None


def _serve(line: Any) -> None:
    """Do jobs until the server goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    _limits()

    def tell(share: float, words: str) -> None:
        line.send(("told", (share, words)))

    with contextlib.suppress(EOFError, OSError):
        while True:
            job, values = line.recv()
            try:
                answer = ("done", job(tell, *values))
            except CrowdtreeError as error:
                answer = ("failed", str(error))
            except MemoryError:
                answer = ("failed", "plan: the table needs too much memory")
            line.send(answer)


def _limits() -> None:
    """Stand back behind the server; not everywhere possible."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import os
        import resource

        os.nice(5)
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))


def silent(share: float, words: str) -> None:
    """Tell nobody."""
    del share, words


def _square(tell: Tell, value: int) -> int:
    tell(0.5, "halfway")
    return value * value
