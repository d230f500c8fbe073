"""The questions that people are asked: their statistics, and examples to explain them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.store.db.campaign_row import Campaign, get_campaign, tally
from crowdtree.store.merging import merge, read_seen, seen_of
from crowdtree.store.owner import campaigns
from crowdtree.store.queries.items import divided
from crowdtree.store.serving.training import asked_questions
from crowdtree.store.types import AnyPolicy, JsonObject
from crowdtree.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.web.pages.base import PageRoute, go, render
from crowdtree.web.pages.markdown import markdown
from crowdtree.web.requests import Number, state_of

__all__ = ["router"]

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)
FEW = 12
"""Up to this many questions are shown unfolded."""


class Draft(BaseModel):
    """Markdown to preview before it is saved."""

    model_config = ConfigDict(extra="forbid")
    text: Annotated[str, Field(max_length=50_000)]


@router.get("/c/{number}/questions")
async def listed(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show the questions with their examples."""
    state = state_of(request)

    def look(connection: Connection) -> tuple[Campaign, dict[str, int], dict[str, tuple[int, int]]]:
        campaign = get_campaign(connection, number)
        counts = tally(connection, number)
        return campaign, counts, divided(connection, number).questions

    campaign, counts, votes = await state.store.aread(look)
    policy = state.policy(campaign)
    examples = campaign.settings.examples
    rows = [_row(policy, q, examples, counts, votes) for q in asked_questions(policy)]
    return render(
        request,
        "questions.html",
        owner=owner,
        campaign=campaign,
        rows=rows,
        few=len(rows) <= FEW,
        seen=seen_of(_shown(campaign, policy)),
    )


def _row(
    policy: AnyPolicy,
    place: int,
    examples: dict[str, str],
    counts: dict[str, int],
    votes: dict[str, tuple[int, int]],
) -> JsonObject:
    problem = policy.problem
    name = problem.questions[place]
    against, total = votes.get(name, (0, 0))
    text = examples.get(name, "")
    return {
        "place": place,
        "name": name,
        "text": problem.text(place),
        "asked": counts.get(f"asked:{place}", 0),
        "expected": float(problem.worker_error[place].mean()),
        "against": against / total if total else None,
        "examples": text,
        "html": markdown(text) if text.strip() else "",
    }


@router.post("/c/{number}/questions")
async def save(request: Request, number: Number) -> Response:
    """Save the examples."""
    state = state_of(request)
    form = await request.form()

    seen = read_seen(str(form.get("seen", "")))

    def apply(connection: Connection) -> str:
        campaign = get_campaign(connection, number, lock=True)
        policy = state.policy(campaign)
        current = _shown(campaign, policy)
        names = {f"example-{place}": key for place, key in enumerate(policy.problem.questions)}
        wished = {
            _key(names[field]) if field in names else field: str(text).strip()
            for field, text in form.items()
            if field in names or field == "instructions"
        }
        found = {**current, **merge(seen, current, wished)}
        examples = {key: found[_key(key)] for key in policy.problem.questions if found[_key(key)]}
        changes: JsonObject = {"examples": examples, "instructions": found["instructions"]}
        campaigns.change_settings(connection, number, policy, changes, state.now)
        return seen_of(_shown(get_campaign(connection, number), policy))

    seen_now = await state.store.awrite(apply)
    return go(request, f"/c/{number}/questions?saved=1", seen=seen_now)


def _key(question: str) -> str:
    return f"examples of {question}"


def _shown(campaign: Campaign, policy: AnyPolicy) -> dict[str, object]:
    """The texts as the form shows them."""
    examples = campaign.settings.examples
    texts = {_key(name): examples.get(name, "") for name in policy.problem.questions}
    return {"instructions": campaign.settings.instructions, **texts}


@router.post("/preview")
async def preview(request: Request, draft: Draft) -> dict[str, str]:
    """Show Markdown as workers will see it."""
    del request
    return {"html": markdown(draft.text)}
