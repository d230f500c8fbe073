"""Maintenance in the background."""

from __future__ import annotations

from functools import partial

from sqlalchemy.engine import Connection

from crowdtree.store.background.stalled import Findings
from crowdtree.web.state import AppState

__all__ = ["check_stalled", "maintain"]


async def maintain(state: AppState) -> None:
    """Apply judgements, revise and finish campaigns (in many rounds), check stalled items."""
    while await state.store.awrite(state.maintenance.round):
        state.waiters.wake(state.maintenance.take_opened())
    if state.stalled.due():
        await check_stalled(state)


async def check_stalled(state: AppState) -> None:
    """Find items that no present worker may answer, and set aside those stalled too long."""
    for found in await state.store.aread(state.stalled.look):
        await state.store.awrite(partial(_apply, state, found))


def _apply(state: AppState, found: Findings, connection: Connection) -> int:
    return state.stalled.apply(connection, found)
