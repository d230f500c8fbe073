"""Maintenance in the background."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

from sqlalchemy.engine import Connection

from crowdtree.store.background.stalled import Findings
from crowdtree.web.state import AppState

__all__ = ["WATCH_SECONDS", "assess", "check_stalled", "maintain", "watch"]

WATCH_SECONDS = 0.25
"""Between two looks at the answers, so that workers do not wait for them."""
IDLE_SECONDS = 1.0
"""Between two looks where this process has written nothing; others may have."""


async def maintain(state: AppState) -> None:
    """Apply judgements, revise and finish campaigns (in many rounds), check stalled items."""
    while await state.store.awrite(state.maintenance.round):
        state.waiters.wake(state.maintenance.take_opened())
    if state.stalled.due():
        await check_stalled(state)


async def watch(state: AppState) -> None:
    """Compare new answers with the tables of their campaigns, then wait for more."""
    state.changed.clear()
    if not await asyncio.to_thread(state.watching.round, state.store):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                await state.changed.wait()


async def assess(state: AppState) -> None:
    """Assess whom to trust, give out the labels that waited for them, and pause suspects."""
    state.waiters.wake(await asyncio.to_thread(state.trusting.round, state.store))


async def check_stalled(state: AppState) -> None:
    """Find items that no present worker may answer, and set aside those stalled too long."""
    for found in await state.store.aread(state.stalled.look):
        await state.store.awrite(partial(_apply, state, found))


def _apply(state: AppState, found: Findings, connection: Connection) -> int:
    return state.stalled.apply(connection, found)
