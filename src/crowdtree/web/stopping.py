"""Ending without losing anybody: open streams and waiting workers are sent home at once.

Without this a stop waits for every page that is open, and then cuts them off with an error.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["before_stopping"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def before_stopping(act: Callable[[], None]) -> None:
    """Do something when the process is asked to stop, before what was to happen then anyway.

    For the main thread only; the web server puts its own handlers back when it ends.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in SIGNALS:
        _chain(number, act)


def _chain(number: int, act: Callable[[], None]) -> None:
    then = signal.getsignal(number)

    def handle(found: int, frame: Any) -> None:
        act()
        if callable(then):
            then(found, frame)

    signal.signal(number, handle)
