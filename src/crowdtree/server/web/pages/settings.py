"""Links for workers, and every setting of a campaign."""

from __future__ import annotations

import asyncio
import math
from typing import NamedTuple

from fastapi import APIRouter, Request
from sqlalchemy.engine import Connection
from starlette.datastructures import FormData
from starlette.responses import Response

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.languages import catalogues
from crowdtree.server.store import Settings, checked_settings
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.merging import merge, read_seen, seen_of
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.queries.progress import Progress, progress
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.auth import OWNER_ONLY, OwnerNeeded
from crowdtree.server.web.pages.base import PageRoute, go, render
from crowdtree.server.web.requests import Number, state_of
from crowdtree.server.web.services.items import missing_media, never_uploaded

router = APIRouter(route_class=PageRoute, dependencies=OWNER_ONLY)


class Field(NamedTuple):
    """How a setting is written in a form: `unit` converts what is written to the stored value."""

    unit: float = 1.0
    whole: bool = False
    blank: float | None = None
    """What an empty field means."""


SHOWN_PEOPLE = 3
"""Numbers of people per label whose price is shown."""
DAY, MINUTE, PERCENT = 86_400.0, 60.0, 0.01
FIELDS = {
    "price": Field(blank=0.0),
    "budget": Field(),
    "people_per_item": Field(whole=True, blank=1),
    "gold_rate": Field(PERCENT, blank=0.0),
    "gold_first": Field(whole=True, blank=0),
    "training": Field(whole=True, blank=0),
    "pause_below": Field(PERCENT),
    "pause_after": Field(whole=True, blank=Settings().pause_after),
    "answers_per_worker": Field(whole=True),
    "least_answers": Field(whole=True, blank=Settings().least_answers),
    "most_workers": Field(whole=True, blank=Settings().most_workers),
    "workers_per_address": Field(whole=True, blank=Settings().workers_per_address),
    "joins_per_hour": Field(whole=True, blank=Settings().joins_per_hour),
    "most_skips": Field(whole=True, blank=Settings().most_skips),
    "lease_seconds": Field(MINUTE, blank=Settings().lease_seconds),
    "give_up_seconds": Field(DAY),
    "certify": Field(PERCENT),
    "most_checks": Field(whole=True),
}
FLAGS = (
    *("one_question_per_item", "dedicated", "finish_by_itself", "adapt"),
    *("personal_codes", "show_task", "provisional", "pause_suspects"),
)
WORDS = (
    *("instructions", "consent", "language", "currency", "thanks", "completion_code", "return_url"),
    *("participant_parameter", "participants"),
)


@router.get("/c/{number}/share")
async def share(request: Request, number: Number, owner: OwnerNeeded) -> Response:
    """Show the links for workers and the settings."""
    state = state_of(request)

    def look(connection: Connection) -> tuple[Campaign, Progress, int]:
        joins = people.join_links(connection, number, state.now)
        return get_campaign(connection, number), progress(connection, number, state.now), joins

    campaign, facts, joins = await state.store.aread(look)
    policy = state.policy(campaign)
    performance = await state.plans.performance(policy)
    people_per_item = campaign.settings.people_per_item
    extra = await state.plans.people_costs(policy, _numbers_of_people(policy, people_per_item))
    missing: list[str] = []
    if campaign.status == "draft":
        missing = await asyncio.to_thread(missing_media, state.store, number, state.media)
    return render(
        request,
        "share.html",
        owner=owner,
        campaign=campaign,
        facts=facts,
        joins=joins,
        performance=performance,
        answers=performance.answers + extra[people_per_item],
        by_people={n: performance.answers + more for n, more in extra.items()},
        written=shown_settings(campaign.settings.model_dump()),
        seen=seen_of(_shown(campaign)),
        examples=sum(1 for text in campaign.settings.examples.values() if text.strip()),
        base=state.options.url,
        missing=never_uploaded(missing) if missing else "",
        languages=[(code, found.name) for code, found in catalogues().items()],
    )


def _numbers_of_people(policy: AnyPolicy, chosen: int) -> list[int]:
    """Numbers of people per label whose price is shown: the first few, and the chosen one.

    >>> from crowdtree import AdaptivePolicy, example
    >>> _numbers_of_people(AdaptivePolicy(example("table1"), max_answers=2, strict=False), 1)
    [1, 2]
    """
    most = policy.max_answers or SHOWN_PEOPLE
    return sorted({chosen, *range(1, min(SHOWN_PEOPLE, most) + 1)})


@router.post("/c/{number}/share")
async def save(request: Request, number: Number) -> Response:
    """Save the settings."""
    state = state_of(request)
    form = await request.form()
    changes = changes_of(form, tuple(name for name in (*FIELDS, *WORDS) if name in form))
    if "flags" in form:  # browsers do not send unchecked boxes
        changes |= {name: form.get(name) == "on" for name in FLAGS}
    name = str(form.get("name", "")).strip()

    seen = read_seen(str(form.get("seen", "")))

    def apply(connection: Connection) -> str:
        campaign = get_campaign(connection, number, lock=True)
        current = _shown(campaign)
        wished = checked_settings({**campaign.settings.model_dump(), **changes}).model_dump()
        wanted = {key: wished[key] for key in changes} | ({"name": name} if name else {})
        mine = merge(seen, current, wanted)
        renamed = mine.pop("name", None)
        campaigns.change_settings(connection, number, state.policy(campaign), mine, state.now)
        if renamed is not None:
            campaigns.rename(connection, number, name, state.now)
        return seen_of(_shown(get_campaign(connection, number)))

    seen_now = await state.store.awrite(apply)
    return go(request, f"/c/{number}/share?saved=1", seen=seen_now)


def _shown(campaign: Campaign) -> JsonObject:
    """The name and the settings as the form shows them."""
    adapts = campaign.settings.adapts(campaign.policy["policy"])
    return {**campaign.settings.model_dump(), "adapt": adapts, "name": campaign.name}


def changes_of(form: FormData, names: tuple[str, ...]) -> JsonObject:
    """Read some settings from a form."""
    texts = {name: str(form.get(name, "")).strip() for name in names}
    return {name: number_of(name, text) if name in FIELDS else text for name, text in texts.items()}


def number_of(name: str, text: str) -> float | None:
    """Read a field of a form; a blank is the default, a decimal comma is accepted.

    >>> number_of("price", "0,05"), number_of("gold_rate", "10 %"), number_of("budget", "")
    (0.05, 0.1, None)
    >>> number_of("lease_seconds", "15"), number_of("most_skips", "")
    (900.0, 3)
    """
    field = FIELDS[name]
    if not text:
        return field.blank
    try:
        value = float(text.replace(",", ".").removesuffix("%").strip())
    except ValueError:
        raise CrowdtreeError(f"{_label(name)}: {text[:30]!r} is not a number") from None
    value = round(value * field.unit, 9)
    if not math.isfinite(value):
        raise CrowdtreeError(f"{_label(name)}: {text[:30]!r} is too large, or not a number")
    return int(value) if field.whole and value == int(value) else value


def _label(name: str) -> str:
    return name.removesuffix("_seconds").replace("_", " ")


def shown_settings(settings: JsonObject) -> dict[str, str]:
    """Write the settings as they are typed in the form.

    >>> shown_settings({"price": 0.05, "gold_rate": 0.1, "budget": None, "lease_seconds": 600.0})
    {'price': '0.05', 'budget': '', 'gold_rate': '10', 'lease_seconds': '10'}
    """
    return {
        name: _written(settings[name], field) for name, field in FIELDS.items() if name in settings
    }


def _written(value: float | None, field: Field) -> str:
    blank = value is None or (value == 0 and field.blank == 0)
    return "" if blank else f"{float(value or 0) / field.unit:.12g}"
