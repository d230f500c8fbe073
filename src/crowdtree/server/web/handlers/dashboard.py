"""The dashboard, which changes as answers arrive: how it goes, what it costs, what to look at."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from fastapi import Request
from sqlalchemy.engine import Connection
from starlette.responses import RedirectResponse, Response

from crowdtree.planning import ExpectedPerformance
from crowdtree.server.rules.rule import Note
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign, tally
from crowdtree.server.store.queries.items import divided
from crowdtree.server.store.queries.progress import Progress, is_stuck
from crowdtree.server.store.queries.workers import some_workers
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.handlers.attention import (
    DashboardFacts,
    MonitorSummary,
    monitor_summary,
    notes_about,
    read_facts,
)
from crowdtree.server.web.handlers.audits import audit_part
from crowdtree.server.web.pages import fragment
from crowdtree.server.web.routing import Id, Read, Reply, Routes, State, event_response
from crowdtree.server.web.words import (
    ago,
    amount,
    brief,
    count,
    duration,
    money,
    number,
    percent,
    plural,
)
from crowdtree.show.plots.live_tree import flow_numbers, flow_svg

routes = Routes()
POLL_SECONDS = 2.0
PARTS = ("notes", "labels", "divided", "questions", "places", "monitor", "workers", "actions")
MAX_ROWS = 8
"""Rows of a short table."""
SOON_SECONDS = 3600.0
"""Stalled items that are closed within this time worry nobody."""
MANY_NODES = 20
"""Nodes from which on a tree is too large to see at once."""


@routes.page("GET /c/{campaign_id}", "viewer", "dashboard.html")
async def page(request: Request, state: State, campaign_id: Id) -> Reply | Response:
    """Show how a campaign is going."""
    board, parts = await _read(request, campaign_id)
    campaign = board.campaign
    if campaign.status == "draft":
        step = "share" if board.progress["items"]["total"] else "plan"
        return RedirectResponse(f"/c/{campaign_id}/{step}", 303)
    plan = state.policy(campaign).plan
    flow = await asyncio.to_thread(flow_svg, plan) if plan is not None else ""
    return {"campaign": campaign, "board": board, "flow": flow, "parts": parts}


@routes.page("GET /c/{campaign_id}/live", "viewer")
async def live(request: Request, campaign_id: Id) -> Response:
    """Stream what has changed, at most once per second."""

    async def read() -> JsonObject:
        board, parts = await _read(request, campaign_id)
        return {
            "values": board.values,
            "shares": board.shares,
            "mood": board.mood,
            "status": board.campaign.status,
            "parts": parts,
            "flow": board.flow,
        }

    return await event_response(request, campaign_id, "picture", read, POLL_SECONDS)


async def _read(request: Request, campaign_id: int) -> tuple[Dashboard, dict[str, str]]:
    """Read what the dashboard shows, and render its parts."""
    state: State = request.app.state.crowdtree
    campaign = await state.store.aread(lambda c: get_campaign(c, campaign_id))
    policy = state.policy(campaign)
    people = campaign.settings.labels.people_per_item
    planned = await state.plans.performance_soon(policy, people)

    def look(connection: Connection) -> tuple[Dashboard, dict[str, str]]:
        board = build_dashboard(connection, campaign, policy, planned, state.now)
        parts = {
            name: fragment(f"part-{name}.html", board=board, campaign=campaign) for name in PARTS
        }
        return board, parts | {"audit": audit_part(Read(request, connection), campaign)}

    return await state.store.aread(look)


@dataclass(frozen=True)
class Dashboard:
    """Everything that the dashboard shows; its texts are in `values`."""

    campaign: Campaign
    progress: Progress
    mood: str
    values: dict[str, str]
    shares: dict[str, float]
    notes: list[Note]
    labels: list[JsonObject]
    divided: list[dict[str, object]]
    """Votes on which people disagreed most, among those of the compared labels."""
    compared_labels: int
    questions: list[JsonObject]
    flow: dict[str, JsonObject] | None
    busy_nodes: list[JsonObject]
    workers: list[JsonObject]

    @property
    def monitor(self) -> MonitorSummary | None:
        """Whether the answers contradict the table."""
        return monitor_summary(self.progress)


def build_dashboard(
    connection: Connection,
    campaign: Campaign,
    policy: AnyPolicy,
    planned: ExpectedPerformance | None,
    now: float,
) -> Dashboard:
    """Read the state of a campaign for its dashboard."""
    votes = divided(connection, campaign.id)
    facts = read_facts(connection, campaign, policy, planned, votes, now)
    notes = notes_about(facts)
    mood, headline = _headline(facts, len(notes))
    nodes = facts.progress["nodes"]
    workers = some_workers(connection, campaign.id, policy.problem, sort="seen", most=MAX_ROWS)
    return Dashboard(
        campaign,
        facts.progress,
        mood,
        {"headline": headline, **_values(facts)},
        _shares(facts.progress["items"]),
        notes,
        _labels(facts.progress),
        [{**row, "text": facts.question_text(row["question"])} for row in votes.items],
        votes.labels,
        _questions(policy, tally(connection, campaign.id)),
        flow_numbers(policy.plan, nodes) if policy.plan is not None else None,
        _busy_nodes(policy, nodes),
        [{**row, "seen": ago(row["seen_at"], now)} for row in workers],
    )


def _headline(facts: DashboardFacts, notes: int) -> tuple[str, str]:
    """Mood of the page, and its headline."""
    campaign, items = facts.campaign, facts.progress["items"]
    done = f"{count(items['labelled'])} of {plural(items['total'], 'item')} have a label."
    why = campaign.status_reason
    by_status = {
        "draft": ("still", "Not started yet."),
        "finished": ("done", f"Finished: {done}"),
        "finishing": ("still", "Finishing: the items still in work get the best label so far."),
        "paused": ("still", f"Paused{f': {why}' if why else ''}. Nobody is given questions."),
    }
    if campaign.status in by_status:
        return by_status[campaign.status]
    if campaign.reason.is_worrying:
        return "worry", "All items have their label, but the wanted bound is out of reach."
    if campaign.reason:
        return "still", f"All items have their label; {why}."
    if facts.last_answer is None:
        return "still", "Running, and waiting for the first answer."
    if facts.is_quiet:
        quiet = duration(facts.now - facts.last_answer)
        return "worry", f"No answer for {quiet}. Are workers still there?"
    if is_stuck(items, facts.progress["waiting_for_workers"]):
        closes = facts.closes_in_seconds
        if closes is not None and closes <= SOON_SECONDS:
            rest = f"the rest gets its best label within {duration(closes)}."
            return "still", f"Everybody who is here has answered: {rest}"
        return "worry", "Waiting for more people: those who are here may answer nothing more."
    seconds = facts.forecast.seconds
    about = "" if seconds is not None and seconds < 55 else "about "
    rest = "" if seconds is None else f", done in {about}{duration(seconds)} at this pace"
    more = f" {plural(notes, 'point')} to check below." if notes else ""
    return "good", f"Going well{rest}.{more}"


def _values(facts: DashboardFacts) -> dict[str, str]:
    """Numbers of the page, as text."""
    progress, currency = facts.progress, facts.campaign.settings.money.currency
    items, workers = progress["items"], progress["workers"]
    each, error = progress["answers_per_item"], progress["estimated_error"]
    running = facts.campaign.status in ("running", "paused")
    answers, cost, seconds = facts.forecast
    rate = progress["forecast"]["answers_per_minute"]
    planned = facts.planned
    return {
        "status": facts.campaign.status,
        "labelled": count(items["labelled"]),
        "total": count(items["total"]),
        "open": count(items["open"]),
        "new": count(items["new"]),
        "aside": count(items["set_aside"]),
        "answers": count(progress["answers"]["counted"]),
        "skipped": count(progress["answers"]["skipped"]),
        "each": "–" if each is None else number(each),
        "each_planned": _planned(planned, "" if planned is None else number(planned.answers)),
        "error": "–" if error is None else percent(error),
        "error_planned": _planned(planned, "" if planned is None else percent(planned.error)),
        "spent": money(progress["spent"], currency),
        "cost_total": money(progress["spent"] + (cost or 0.0), currency),
        "left": "–" if answers is None or not running else count(answers),
        "finish": brief(seconds) if seconds and running else "–",
        "pace": "–" if rate is None or not running else f"{amount(rate, 'answer', 2)} per minute",
        "active": count(workers["active"]),
        "stopped": count(workers["paused"] + workers["blocked"]),
    }


def _planned(planned: ExpectedPerformance | None, words: str) -> str:
    if planned is None:
        return "the plan is being computed"
    return f"planned {'about' if planned.exact else 'by simulation about'} {words}"


def _shares(items: dict[str, int]) -> dict[str, float]:
    total = max(items["total"], 1)
    names = ("labelled", "open", "set_aside")
    return {name: round(100 * items[name] / total, 3) for name in names}


def _labels(progress: Progress) -> list[JsonObject]:
    """Labels by class, the most frequent first."""
    rows: list[JsonObject] = [
        {"name": name, "count": value, "right": progress["precision"][name]}
        for name, value in progress["labels"].items()
    ]
    return _with_shares(rows)


def _questions(policy: AnyPolicy, counts: dict[str, int]) -> list[JsonObject]:
    """Questions by how often they were asked."""
    rows: list[JsonObject] = [
        {"text": policy.problem.text(q), "count": counts.get(f"asked:{q}", 0)}
        for q in range(policy.problem.n_questions)
    ]
    return _with_shares([row for row in rows if row["count"]])


def _with_shares(rows: list[JsonObject]) -> list[JsonObject]:
    """Sort rows by count, with the length of their bars in percent."""
    most = max((row["count"] for row in rows), default=0) or 1
    rows = [{**row, "share": round(100 * row["count"] / most, 2)} for row in rows]
    return sorted(rows, key=lambda row: -row["count"])


def _busy_nodes(policy: AnyPolicy, nodes: dict[str, dict[str, int]]) -> list[JsonObject]:
    """Nodes with most items, for a tree that is too large to see at once."""
    if policy.plan is None or policy.plan.tree.n_nodes < MANY_NODES:
        return []
    question = policy.plan.tree.question
    rows: list[JsonObject] = [
        {
            "text": policy.problem.text(int(question[int(node)])),
            "here": max(counts["in"] - counts["out"], 0),
            "passed": counts["out"],
        }
        for node, counts in nodes.items()
        if int(node) >= 0
    ]
    rows.sort(key=lambda row: (-row["here"], -row["passed"]))
    return rows[:MAX_ROWS]
