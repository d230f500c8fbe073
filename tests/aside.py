"""Coroutines in a separate thread, because browser tests keep a running loop in the main one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, main).result()
