"""Graceful shutdown: open streams and long polls end as soon as the process is asked to stop.

Otherwise the server would wait for every open page, and then cut it off with an error.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def before_stopping(act: Callable[[], None]) -> None:
    """Call a function when the process is asked to stop, before the handlers that are installed.

    In the main thread only; the web server restores its own handlers when it ends.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in SIGNALS:
        _chain(number, act)


def _chain(number: int, act: Callable[[], None]) -> None:
    then = signal.getsignal(number)

    def handle(found: int, frame: FrameType | None) -> None:
        act()
        if callable(then):
            then(found, frame)

    signal.signal(number, handle)
