"""Audits: what owners see and start, what auditors check."""

from __future__ import annotations

import asyncio
from typing import TypedDict

from sqlalchemy.engine import Connection

from crowdtree.audit import Standing
from crowdtree.io.items import visible
from crowdtree.server.store.audits import checking
from crowdtree.server.store.audits.report import AuditReport, audit_report, history_of
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.tokens import ID_LENGTH
from crowdtree.server.web.state import AppState

MAX_CHARTS = 20


class Me(TypedDict):
    """What an auditor is told about the campaign."""

    name: str
    campaign: str
    campaign_id: int
    classes: list[dict[str, str]]


async def start(
    state: AppState, number: int, bound: float | None, confidence: float = 0.95
) -> None:
    """Start an audit of the labels that there are."""
    await state.store.awrite(
        lambda c: checking.start(c, number, bound, state.now, confidence=confidence)
    )


async def report(state: AppState, number: int) -> AuditReport:
    """Sum up the audit of a campaign."""
    return await state.store.aread(lambda c: audit_report(c, state.store.audits, number))


async def chart_of(state: AppState, number: int, found: AuditReport) -> str:
    """Draw how the bound fell, as SVG; nothing before the first check."""
    claims = found["claims"]
    if claims is None or not claims["checks"]:
        return ""
    key = (number, found["started_at"] or 0.0, claims["checks"])
    if key not in state.charts:
        history = await state.store.aread(lambda c: history_of(c, state.store.audits, number))
        if len(state.charts) >= MAX_CHARTS:
            state.charts.clear()
        state.charts[key] = await asyncio.to_thread(
            _draw, history[: claims["checks"]], claims["confidence"], claims["wanted"]
        )
    return state.charts[key]


def _draw(history: list[Standing], confidence: float, wanted: float | None) -> str:
    # altair is slow to import, and only this function needs it
    from crowdtree.show.plots.audits import audit_chart
    from crowdtree.show.plots.vega import chart_svg

    return chart_svg(audit_chart(history, confidence, wanted), page=True)


# ------------------------------------------------------------------------------ auditors


async def report_auditor(state: AppState, who: str) -> Me:
    """What the auditor's page shows besides the item."""

    def read(connection: Connection) -> Me:
        number, name = checking.auditor_of(connection, who, state.now)
        campaign = get_campaign(connection, number)
        return {
            "name": name,
            "campaign": campaign.name,
            "campaign_id": number,
            "classes": [
                {"name": entry["name"], "description": entry.get("description", "")}
                for entry in campaign.problem["classes"]
            ],
        }

    return await state.store.aread(read)


async def hand_out(state: AppState, who: str) -> checking.Handed:
    """Hand the auditor an item: what workers see of it, and neither its label nor its error."""

    def apply(connection: Connection) -> checking.Handed:
        number, _ = checking.auditor_of(connection, who, state.now)
        cache = state.store.audits
        return checking.hand_out(connection, cache, number, who[:ID_LENGTH], state.now)

    found = await state.store.awrite(apply)
    item = found["item"]
    if item is not None:
        found["item"] = {"task": item["task"], **visible(item)}
    return found
