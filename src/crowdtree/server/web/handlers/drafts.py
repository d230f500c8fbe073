"""The steps of a new campaign: its table and its plan; slow work reports its progress.

The response is JSON lines: ``{"share": 0.4, "words": "..."}`` while the work goes on, and at the
end ``{"go": "/where"}`` or ``{"error": code, "message": "..."}``. So it works with any number of
server processes, without shared state.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache

from fastapi import Request
from sqlalchemy.engine import Connection
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from crowdtree import io as files
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural
from crowdtree.planning import MENU_ITEMS, Report
from crowdtree.server.settings.groups import BOUND
from crowdtree.server.settings.model import read_value, write_value
from crowdtree.server.settings.presets import PRESETS, settings_for
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.owner import campaigns, deleting
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.errors import FAULT, PASTED
from crowdtree.server.web.handlers.settings import read_form
from crowdtree.server.web.pages import fragment, go, page_refusal, render, wants_json
from crowdtree.server.web.plans import EXAMPLE
from crowdtree.server.web.routing import Id, Reply, Routes, State
from crowdtree.server.web.state import AppState
from crowdtree.server.web.worker_process import silent
from crowdtree.show.plots.html import tree_section
from crowdtree.show.plots.trees import tree_views

routes = Routes()
MAX_SIMULATED = 5000
"""Items of a simulated campaign; a share of more items takes hardly more checks."""
BEAT_SECONDS = 5.0
"""Seconds between lines at most, so that proxies keep the connection open."""
BEGUN = 0.1
"""Share of the work at which the input has been read."""
Make = Callable[[Report], Awaitable[str]]

# --------------------------------------------------------------------------------- table


@routes.page("GET /new", "editor", "new.html")
async def new(state: State) -> Reply:
    """Ask for the table."""
    state.plans.process.open()  # it starts while the owner chooses a table
    return {"examples": await run_in_threadpool(_examples), "presets": PRESETS}


@cache
def _examples() -> dict[str, str]:
    """Describe the examples that a campaign can ask about in a few words."""
    found = {}
    for name in sorted(files.EXAMPLES):
        problem = files.example(name)
        if not problem.is_yes_no:
            continue
        title = "Table 1 of the paper" if name == "table1" else name.capitalize()
        size = plural(problem.n_classes, "class", "classes")
        found[name] = f"{title}: {size}, {plural(problem.n_questions, 'question')}"
    return found


@routes.page("POST /new", "editor")
async def create(request: Request, state: State) -> Response:
    """Read the table and make a draft with the default plan."""
    form = await request.form()
    content, file, title = await _table(form)
    options: JsonObject = {}
    if form.get("dash") in ("inapplicable", "either"):
        options["dash"] = form["dash"]
    name = (str(form.get("name", "")).strip() or title)[:200]
    who = str(form.get("who", "open"))

    async def make(report: Report) -> str:
        settings = settings_for(who)
        menu = await state.plans.read(content, file, options, report)
        policy = menu.first().policy
        campaign_id = await state.store.awrite(
            lambda c: campaigns.create(c, name, policy, settings, state.now)
        )
        return f"/c/{campaign_id}/plan"

    return await with_progress(request, make)


async def _table(form: FormData) -> tuple[bytes, str, str]:
    """The content of the table that was uploaded, pasted or chosen, its file name and a title."""
    upload = form.get("table")
    if isinstance(upload, UploadFile) and upload.filename:
        return await upload.read(), upload.filename, upload.filename.rsplit(".", 1)[0]
    if str(form.get("pasted", "")).strip():
        return str(form["pasted"]).encode(), PASTED, ""
    if form.get("example") in files.EXAMPLES:
        example = str(form["example"])
        return b"", f"{EXAMPLE}{example}", f"Example: {example}"
    raise CrowdtreeError("Choose a file with your table, paste it, or choose an example.")


# ---------------------------------------------------------------------------------- plan


async def _campaign(state: AppState, campaign_id: int) -> Campaign:
    return await state.store.aread(lambda c: get_campaign(c, campaign_id))


@routes.page("GET /c/{campaign_id}/plan", "viewer", "plan.html")
async def plan(request: Request, state: State, campaign_id: Id) -> Reply | Response:
    """Show the plan, and what each error costs."""
    campaign = await _campaign(state, campaign_id)
    policy, menu = state.policy(campaign), state.plans.known(campaign.problem)
    values: JsonObject = {"campaign": campaign}
    if campaign.status == "draft" and menu is None:
        return render("working.html", owner=request.state.owner, **values)
    performance = await state.plans.performance(policy)
    values |= {"performance": performance, "tree": await run_in_threadpool(_tree, policy)}
    values["costs"] = policy.problem.loss is not None
    if menu is not None:
        chosen = menu.nearest(policy, performance).key
        values |= {"menu": menu, "chosen": chosen, "simulated": MENU_ITEMS}
        certify = write_value(BOUND, campaign.settings.finish.max_wrong_labels)
        values |= {"certify": certify, "most": MAX_SIMULATED}
    return values


def _tree(policy: AnyPolicy) -> str:
    drawn = tree_section(tree_views(policy.plan)) if policy.plan is not None else ""
    return fragment("part-tree.html", drawn=drawn, problem=policy.problem, policy=policy)


@routes.page("POST /c/{campaign_id}/plan/ready", "viewer")
async def ready(request: Request, state: State, campaign_id: Id) -> Response:
    """Work out again, after a restart, what the page of the plan shows."""
    campaign = await _campaign(state, campaign_id)

    async def make(report: Report) -> str:
        await state.plans.menu(campaign.problem, report)
        return f"/c/{campaign_id}/plan"

    return await with_progress(request, make)


@routes.page("GET /c/{campaign_id}/plan/tree", "viewer")
async def tree(state: State, campaign_id: Id, choice: str = "") -> Response:
    """Draw the tree of a choice."""
    menu = await state.plans.menu((await _campaign(state, campaign_id)).problem)
    return HTMLResponse(await run_in_threadpool(_tree, menu.get(choice).policy))


@routes.page("GET /c/{campaign_id}/plan/checks", "viewer")
async def checks(
    state: State, campaign_id: Id, choice: str = "", certify: str = "", items: str = ""
) -> Response:
    """Say how many checks a certificate takes with a choice, and what watching costs."""
    campaign = await _campaign(state, campaign_id)
    bound = read_value(BOUND, certify.strip()[:20])
    if bound is None:
        return HTMLResponse("")
    if not isinstance(bound, float) or not 0 < bound < 1:
        raise CrowdtreeError("certify: expected a percentage between 0 and 100")
    count = items.strip().replace(",", "")[:9]
    if not count.isascii() or not count.isdigit() or not 1 <= int(count) <= MAX_SIMULATED:
        raise CrowdtreeError(f"items: expected a whole number from 1 to {MAX_SIMULATED:,}")
    policy = (await state.plans.menu(campaign.problem)).get(choice).policy
    cost = await state.plans.certificate(policy, bound, int(count))
    return HTMLResponse(fragment("part-checks.html", found=cost))


@routes.page("POST /c/{campaign_id}/plan", "editor")
async def choose(request: Request, state: State, campaign_id: Id) -> Response:
    """Save the chosen plan and the price."""
    form = await request.form()
    campaign = await _campaign(state, campaign_id)
    choice = (await state.plans.menu(campaign.problem)).get(str(form.get("choice", "")))
    changes = read_form(form, ("money.price", "money.currency", BOUND))

    def apply(connection: Connection) -> None:
        deleting.change_policy(connection, campaign_id, choice.policy, state.now)
        campaigns.change_settings(connection, campaign_id, choice.policy, changes, state.now)

    await state.store.awrite(apply)
    return go(request, f"/c/{campaign_id}/items")


# ------------------------------------------------------------------------------ progress


async def with_progress(request: Request, make: Make) -> Response:
    """Do slow work: with progress for a script; a browser without scripts waits.

    Errors in the input (a file that cannot be read) are reported with their HTTP status.
    """
    if not wants_json(request):
        return RedirectResponse(await make(silent), 303)
    job = _Job(make)
    first = await job.begun()
    if "error" in first:
        return JSONResponse(first, job.status)
    return StreamingResponse(job.lines(first), media_type="application/x-ndjson")


class _Job:
    """Work in progress, and its messages."""

    def __init__(self, make: Make) -> None:
        self.messages: asyncio.Queue[JsonObject] = asyncio.Queue()
        self.status = 200
        self.task = asyncio.create_task(self._work(make))

    async def _work(self, make: Make) -> None:
        try:
            where = await make(self._report)
            self.messages.put_nowait({"go": where})
        except CrowdtreeError as error:
            self.status, code, message, _ = page_refusal(error)
            self.messages.put_nowait({"error": code, "message": message})
        except Exception:
            self.status = 500
            self.messages.put_nowait({"error": "fault", "message": FAULT})
            raise

    def _report(self, share: float, words: str) -> None:
        self.messages.put_nowait({"share": round(share, 3), "words": words})

    async def begun(self) -> JsonObject:
        """Wait until the input has been read, or the work is over."""
        try:
            while True:
                first = await self.messages.get()
                if first.get("share", 1.0) >= BEGUN:
                    return first
        except asyncio.CancelledError:  # the client has disconnected
            self.task.cancel()
            raise

    async def lines(self, last: JsonObject) -> AsyncIterator[str]:
        """Yield messages until the work is over."""
        try:
            while "share" in last:
                yield json.dumps(last) + "\n"
                try:
                    async with asyncio.timeout(BEAT_SECONDS):
                        last = await self.messages.get()
                except TimeoutError:
                    continue
            yield json.dumps(last) + "\n"
        finally:
            self.task.cancel()  # the client has disconnected, or the work is done
