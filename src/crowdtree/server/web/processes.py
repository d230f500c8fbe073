"""What a server process asks of the operating system: files for connections, and its own end."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait

log = logging.getLogger("crowdtree.server.web")
SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""Variable with the folder in which several processes of one server share counts and limits."""
GRACE_SECONDS = 10.0
"""Seconds for a graceful end after the parent process has died."""


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
