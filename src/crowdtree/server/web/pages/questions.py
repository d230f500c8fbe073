"""The questions that people are asked: their texts, statistics and examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.server.store.corrections.editing import edit_texts
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign, tally
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.owner.campaigns import merge, read_seen, seen_of
from crowdtree.server.store.queries.items import divided
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, go, render
from crowdtree.server.web.pages.markdown import markdown
from crowdtree.server.web.requests import Number, state_of

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
    examples = campaign.settings.tasks.examples
    rows = [_row(policy, q, examples, counts, votes) for q in policy.questions_used()]
    return render(
        request,
        "questions.html",
        owner=owner,
        campaign=campaign,
        rows=rows,
        few=len(rows) <= FEW,
        explained=[(c, name, explanation(policy, c)) for c, name in enumerate(campaign.classes)],
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


def explanation(policy: AnyPolicy, place: int) -> str:
    """What a class is, in words, for people who check labels."""
    found = policy.problem.descriptions
    return found[place] if found else ""


@router.post("/c/{number}/questions")
async def save(request: Request, number: Number) -> Response:
    """Save the texts of the questions, the explanations of the classes, and the examples."""
    state = state_of(request)
    form = await request.form()

    seen = read_seen(str(form.get("seen", "")))

    def apply(connection: Connection) -> str:
        campaign = get_campaign(connection, number, lock=True)
        policy = state.policy(campaign)
        current = _shown(campaign, policy)
        problem = policy.problem
        names = {"instructions": "instructions"}
        names |= {f"example-{place}": _key(key) for place, key in enumerate(problem.questions)}
        names |= {f"text-{place}": _text(key) for place, key in enumerate(problem.questions)}
        names |= {f"class-{place}": _class(key) for place, key in enumerate(problem.classes)}
        wished = {names[field]: str(text).strip() for field, text in form.items() if field in names}
        found = {**current, **merge(seen, current, wished)}
        edit_texts(
            connection,
            number,
            _edited(found, current, _text, problem.questions),
            _edited(found, current, _class, problem.classes),
            state.now,
        )
        examples = {key: found[_key(key)] for key in policy.problem.questions if found[_key(key)]}
        changes: JsonObject = {
            "tasks.examples": examples,
            "tasks.instructions": found["instructions"],
        }
        before = campaign.settings.values()
        if any(before[name] != value for name, value in changes.items()):
            campaigns.change_settings(connection, number, policy, changes, state.now)
        after = get_campaign(connection, number)
        return seen_of(_shown(after, state.policy(after)))

    seen_now = await state.store.awrite(apply)
    return go(request, f"/c/{number}/questions?saved=1", seen=seen_now)


def _key(question: str) -> str:
    return f"examples of {question}"


def _edited(
    found: dict[str, object],
    current: dict[str, object],
    key: Callable[[str], str],
    names: Sequence[str],
) -> dict[str, str]:
    """The texts that are others than before, by the name of their question or class."""
    return {name: str(found[key(name)]) for name in names if found[key(name)] != current[key(name)]}


def _text(question: str) -> str:
    return f"text of {question}"


def _class(name: str) -> str:
    return f"explanation of {name}"


def _shown(campaign: Campaign, policy: AnyPolicy) -> dict[str, object]:
    """The texts as the form shows them."""
    examples, problem = campaign.settings.tasks.examples, policy.problem
    shown: dict[str, object] = {"instructions": campaign.settings.tasks.instructions}
    for place, name in enumerate(problem.questions):
        shown |= {_key(name): examples.get(name, ""), _text(name): problem.text(place)}
    for place, name in enumerate(problem.classes):
        shown[_class(name)] = explanation(policy, place)
    return shown


@router.post("/preview")
async def preview(request: Request, draft: Draft) -> dict[str, str]:
    """Show Markdown as workers will see it."""
    del request
    return {"html": markdown(draft.text)}
