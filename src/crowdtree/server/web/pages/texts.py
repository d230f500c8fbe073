"""Texts of the worker page in each language, which the owner may replace."""

from __future__ import annotations

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.server.languages import (
    CLASS,
    ENGLISH,
    EXPLANATION,
    OWN,
    QUESTION,
    Text,
    catalogues,
    preferred,
)
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.owner.campaigns import merge, read_seen, seen_of
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, go, render
from crowdtree.server.web.requests import Number, state_of

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)


@router.get("/c/{number}/texts")
async def shown(request: Request, number: Number, owner: OwnerNeeded, lang: str = "") -> Response:
    """Show the texts of a language."""
    state = state_of(request)
    campaign = await state.store.aread(lambda c: get_campaign(c, number))
    code = preferred([lang, campaign.settings.tasks.language]) or ENGLISH
    found = catalogues()[code]
    return render(
        request,
        "texts.html",
        owner=owner,
        campaign=campaign,
        language=found,
        languages=[(other, made.name) for other, made in catalogues().items()],
        own={name: getattr(campaign.settings.tasks, name) for name in OWN},
        questions=_questions(state.policy(campaign)),
        classes=_classes(state.policy(campaign)),
        texts=[(key, _form(text), isinstance(text, str)) for key, text in found.texts.items()],
        changed=campaign.settings.tasks.texts.get(code, {}),
        seen=seen_of(_fields(campaign, state.policy(campaign), code)),
    )


@router.post("/c/{number}/texts")
async def save(request: Request, number: Number, lang: str) -> Response:
    """Save the texts of a language that are filled in; an empty one is that of the catalogue."""
    state = state_of(request)
    form = await request.form()
    seen = read_seen(str(form.get("seen", "")))
    wished = {
        key.removeprefix("text-"): str(text).strip()
        for key, text in form.items()
        if key.startswith("text-")
    }

    def apply(connection: Connection) -> str:
        campaign = get_campaign(connection, number, lock=True)
        policy = state.policy(campaign)
        current = _fields(campaign, policy, lang)
        found = {**current, **merge(seen, current, wished)}
        kept = {key: text for key, text in found.items() if text}
        texts = {**campaign.settings.tasks.texts, lang: kept}
        changes: JsonObject = {"tasks.texts": {code: of for code, of in texts.items() if of}}
        campaigns.change_settings(connection, number, policy, changes, state.now)
        return seen_of(_fields(get_campaign(connection, number), policy, lang))

    seen_now = await state.store.awrite(apply)
    return go(request, f"/c/{number}/texts?lang={lang}", seen=seen_now)


def _fields(campaign: Campaign, policy: AnyPolicy, code: str) -> dict[str, str]:
    """The fields of the form: the owner's texts in a language, by key."""
    keys = (*OWN, *_questions(policy), *_classes(policy), *catalogues()[ENGLISH].texts)
    return dict.fromkeys(keys, "") | campaign.settings.tasks.texts.get(code, {})


def _questions(policy: AnyPolicy) -> dict[str, str]:
    """Texts of the questions that are asked, by the key under which they are translated."""
    problem = policy.problem
    return {f"{QUESTION}{problem.questions[q]}": problem.text(q) for q in policy.questions_used()}


def _classes(policy: AnyPolicy) -> dict[str, str]:
    """Names and explanations of the classes, by the key under which they are translated."""
    problem = policy.problem
    explained = problem.descriptions or [""] * problem.n_classes
    found: dict[str, str] = {}
    for name, text in zip(problem.classes, explained, strict=True):
        found |= {f"{CLASS}{name}": name, f"{EXPLANATION}{name}": text}
    return found


def _form(text: Text) -> str:
    return text if isinstance(text, str) else text["other"]
