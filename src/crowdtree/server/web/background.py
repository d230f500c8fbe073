"""Maintenance in the background."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from functools import partial

from sqlalchemy.engine import Connection

from crowdtree.server.rules.stalled_items import Findings
from crowdtree.server.web.state import AppState

WATCH_SECONDS = 0.25
"""Between two looks at the answers, so that workers do not wait for them."""
BUSY_SECONDS = 1.0
"""Further pause while answers come in: what a look finds is written between them."""
IDLE_SECONDS = 1.0
"""Between two looks where this process has written nothing; others may have."""
USUAL_SECONDS, TURN_SECONDS = sys.getswitchinterval(), 0.0005
"""How long a thread computes before another may go on: usually, and while one computes for long
beside the requests, which would else wait several times 5 ms."""


async def maintain(state: AppState) -> None:
    """Apply judgements, revise and finish campaigns (in many rounds), check stalled items."""
    while await state.store.awrite(state.maintenance.round):
        state.waiters.wake(state.maintenance.take_opened())
    if state.stalled.due():
        await check_stalled(state)


async def watch(state: AppState) -> None:
    """Compare new answers with the tables of their campaigns, then wait for more."""
    state.changed.clear()
    more = await asyncio.to_thread(state.watching.round, state.store)
    if state.changed.is_set():
        await asyncio.sleep(BUSY_SECONDS)
    elif not more:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                await state.changed.wait()


async def assess(state: AppState) -> None:
    """Assess whom to trust, give out the labels that waited for them, and pause suspects."""
    sys.setswitchinterval(TURN_SECONDS)
    try:
        state.waiters.wake(await asyncio.to_thread(state.trusting.round, state.store))
    finally:
        sys.setswitchinterval(USUAL_SECONDS)


async def check_stalled(state: AppState) -> None:
    """Find items that no present worker may answer, and set aside those stalled too long."""
    for found in await state.store.aread(state.stalled.look):
        await state.store.awrite(partial(_apply, state, found))


def _apply(state: AppState, found: Findings, connection: Connection) -> int:
    return state.stalled.apply(connection, found)
