"""The form of all settings: one field per setting, by group, made from what defines them."""

from __future__ import annotations

from typing import NamedTuple, cast, get_args

from crowdtree.server.settings.model import GROUPS, SETTINGS, Settings, about
from crowdtree.server.settings.words import cost_of, is_whole, kind_of, write_value

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
