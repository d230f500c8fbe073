"""Links for workers, and every setting of a campaign: one field per setting, by group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, cast, get_args

from fastapi import Request
from sqlalchemy.engine import Connection
from starlette.datastructures import FormData
from starlette.responses import Response

from crowdtree.server.languages import catalogues
from crowdtree.server.settings.model import (
    GROUPS,
    SETTINGS,
    Settings,
    about,
    cost_of,
    is_whole,
    kind_of,
    read_value,
    write_value,
)
from crowdtree.server.settings.presets import PRESETS, preset_of
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.owner import campaigns, people
from crowdtree.server.store.owner.campaigns import merge, read_seen, seen_of
from crowdtree.server.store.queries.progress import progress
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.pages import go
from crowdtree.server.web.routing import Id, Reply, Routes, State
from crowdtree.server.web.services.items import missing_media, never_uploaded

routes = Routes()
SHOWN_PEOPLE = 3
"""Numbers of people per label whose price is shown."""
FORM = tuple(name for name in SETTINGS if about(name).where == "form")
"""Settings that the page shows."""
FLAGS = tuple(name for name in FORM if kind_of(name) == "flag")
IN_SIGHT = (
    "tasks.instructions",
    "tasks.consent",
    "tasks.language",
    "money.price",
    "money.currency",
    "money.budget",
)
"""Settings with a field of their own on the page."""


@routes.page("GET /c/{campaign_id}/share", "viewer", "share.html")
async def share(state: State, campaign_id: Id) -> Reply:
    """Show the links for workers and the settings."""

    def look(connection: Connection) -> tuple[Campaign, JsonObject]:
        campaign = get_campaign(connection, campaign_id)
        missing: list[str] = []
        if campaign.status == "draft":
            missing = missing_media(connection, campaign_id, state.media)
        return campaign, {
            "campaign": campaign,
            "facts": progress(connection, campaign_id, state.now),
            "joins": people.join_links(connection, campaign_id, state.now),
            "missing": never_uploaded(missing),
        }

    campaign, values = await state.store.aread(look)
    settings, policy = campaign.settings, state.policy(campaign)
    performance = await state.plans.performance(policy)
    least = settings.labels.people_per_item
    extra = await state.plans.people_costs(policy, _numbers_of_people(policy, least))
    written = settings.values()
    return values | {
        "performance": performance,
        "answers": performance.answers + extra[least],
        "by_people": {n: performance.answers + more for n, more in extra.items()},
        "presets": PRESETS,
        "preset": preset_of(settings),
        "groups": field_groups(settings, campaign.policy["policy"], campaign.status != "draft"),
        "written": {name: write_value(name, written[name]) for name in IN_SIGHT},
        "seen": seen_of(_shown(campaign)),
        "examples": sum(1 for text in settings.tasks.examples.values() if text.strip()),
        "base": state.options.url,
        "languages": [(code, language.name) for code, language in catalogues().items()],
    }


def _numbers_of_people(policy: AnyPolicy, chosen: int) -> list[int]:
    """Numbers of people per label whose price is shown: the first few, and the chosen one.

    >>> from crowdtree import AdaptivePolicy, example
    >>> _numbers_of_people(AdaptivePolicy(example("table1"), max_answers=2, strict=False), 1)
    [1, 2]
    """
    most = policy.max_answers or SHOWN_PEOPLE
    return sorted({chosen, *range(1, min(SHOWN_PEOPLE, most) + 1)})


@routes.page("POST /c/{campaign_id}/share", "editor")
async def save(request: Request, state: State, campaign_id: Id) -> Response:
    """Save the settings."""
    form = await request.form()
    changes = read_form(form, (name for name in FORM if name in form))
    if "flags" in form:  # browsers do not send unchecked boxes
        changes |= {name: form.get(name) == "on" for name in FLAGS}
    name, seen = str(form.get("name", "")).strip(), read_seen(str(form.get("seen", "")))

    def apply(connection: Connection) -> str:
        campaign = get_campaign(connection, campaign_id, lock=True)
        values = campaign.settings.changed(changes).values()
        wanted = {key: values[key] for key in changes} | ({"name": name} if name else {})
        merged = merge(seen, _shown(campaign), wanted)
        renamed, policy = merged.pop("name", None), state.policy(campaign)
        campaigns.change_settings(connection, campaign_id, policy, merged, state.now)
        if renamed is not None:
            campaigns.rename(connection, campaign_id, name, state.now)
        return seen_of(_shown(get_campaign(connection, campaign_id)))

    seen_now = await state.store.awrite(apply)
    return go(request, f"/c/{campaign_id}/share?saved=1", seen=seen_now)


def _shown(campaign: Campaign) -> JsonObject:
    """The name and the settings as the form shows them."""
    revises = campaign.settings.table.revises(campaign.policy["policy"])
    return {**campaign.settings.values(), "table.revise": revises, "name": campaign.name}


def read_form(form: FormData, names: Iterable[str]) -> JsonObject:
    """Read some settings from a form."""
    return {name: read_value(name, str(form.get(name, ""))) for name in names}


# ---------------------------------------------------------------------------------- form


class Field(NamedTuple):
    """A setting as the form shows it."""

    name: str
    label: str
    text: str
    costs: str
    kind: str
    unit: str
    value: str
    checked: bool
    whole: bool
    lines: int
    choices: list[tuple[str, str]]
    locked: bool
    """Whether it cannot change any more."""


class FieldGroup(NamedTuple):
    """Settings that belong together."""

    name: str
    title: str
    fields: list[Field]


def field_groups(settings: Settings, policy: str, started: bool) -> list[FieldGroup]:
    """Settings behind *Change*, with what each costs."""
    values = settings.values()
    values["table.revise"] = settings.table.revises(policy)
    groups = []
    for group, model in GROUPS.items():
        names = [name for name in FORM if name.startswith(f"{group}.") and name not in IN_SIGHT]
        fields = [_field(name, values[name], started) for name in names]
        groups.append(FieldGroup(group, str(model.__doc__).rstrip("."), fields))
    return [group for group in groups if group.fields]


def _field(name: str, value: object, started: bool) -> Field:
    setting, more = SETTINGS[name], about(name)
    keys = get_args(setting.annotation) if more.choices else ()
    return Field(
        name,
        str(setting.title),
        str(setting.description),
        cost_of(name, value),
        kind_of(name),
        more.unit.name,
        write_value(name, value),
        value is True,
        is_whole(name),
        more.lines,
        list(zip(cast("tuple[str, ...]", keys), more.choices, strict=True)),
        started and more.fixed,
    )
