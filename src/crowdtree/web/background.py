"""Maintenance in the background."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sqlalchemy.engine import Connection

from crowdtree.store import Store
from crowdtree.store.background.stalled import Findings
from crowdtree.web.state import AppState

__all__ = ["WATCH_SECONDS", "assess", "check_stalled", "maintain", "watch"]

T = TypeVar("T")

WATCH_SECONDS = 0.25
"""Between two looks at the answers, so that workers do not wait for them."""
IDLE_SECONDS = 1.0
"""Between two looks where this process has written nothing; others may have."""
WATCH_PAUSE, MOST_PAUSE = 10, 2.0
"""While answers come in, a look is followed by a pause of so many times its duration, in seconds at
most: answering requests comes first."""
USUAL_SECONDS, TURN_SECONDS = sys.getswitchinterval(), 0.0005
"""How long a thread computes before another may go on: usually, and while some compute beside the
requests, which would else wait several times 5 ms."""
_computing: set[Callable[..., object]] = set()


async def maintain(state: AppState) -> None:
    """Apply judgements, revise and finish campaigns (in many rounds), check stalled items."""
    while await state.store.awrite(state.maintenance.round):
        state.waiters.wake(state.maintenance.take_opened())
    if state.stalled.due():
        await check_stalled(state)


async def watch(state: AppState) -> None:
    """Compare new answers with the tables of their campaigns, then wait for more."""
    state.changed.clear()
    begin = time.monotonic()
    more = await _compute(state.watching.round, state.store)
    if state.changed.is_set():
        await asyncio.sleep(min(MOST_PAUSE, WATCH_PAUSE * (time.monotonic() - begin)))
    elif not more:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                await state.changed.wait()


async def assess(state: AppState) -> None:
    """Assess whom to trust, give out the labels that waited for them, and pause suspects."""
    state.waiters.wake(await _compute(state.trusting.round, state.store))


async def _compute(work: Callable[[Store], T], store: Store) -> T:
    """Compute in a thread that lets requests go on after a short turn."""
    _computing.add(work)
    sys.setswitchinterval(TURN_SECONDS)
    try:
        return await asyncio.to_thread(work, store)
    finally:
        _computing.discard(work)
        if not _computing:
            sys.setswitchinterval(USUAL_SECONDS)


async def check_stalled(state: AppState) -> None:
    """Find items that no present worker may answer, and set aside those stalled too long."""
    for found in await state.store.aread(state.stalled.look):
        await state.store.awrite(partial(_apply, state, found))


def _apply(state: AppState, found: Findings, connection: Connection) -> int:
    return state.stalled.apply(connection, found)
