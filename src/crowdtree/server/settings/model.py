"""The settings of a campaign: one model of all groups, and how people write their values."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from crowdtree.campaign.view import ItemRules
from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.server.settings.group import CONFIG, About, Group
from crowdtree.server.settings.groups import (
    Checks,
    Finish,
    Labels,
    Money,
    People,
    Table,
    Tasks,
)

log = logging.getLogger("crowdtree.server.settings")
NEVER = 2**31 - 1
"""More workers than there can be."""


class Settings(BaseModel):
    """What an owner can choose for a campaign.

    >>> Settings().tasks.max_seconds_per_question
    600.0
    """

    model_config = CONFIG

    people: People = People()
    tasks: Tasks = Tasks()
    labels: Labels = Labels()
    checks: Checks = Checks()
    money: Money = Money()
    table: Table = Table()
    finish: Finish = Finish()

    def values(self) -> dict[str, object]:
        """All values, by ``group.name``."""
        return flat(self.model_dump())

    def changed(self, changes: Mapping[str, object]) -> Settings:
        """Return other settings, or raise with one line about the first mistake.

        >>> Settings().changed({"labels.people_per_item": 3}).labels.people_per_item
        3
        >>> Settings().changed({"checks.gold_rate": 2})
        Traceback (most recent call last):
            ...
        crowdtree.CrowdtreeError: settings: checks.gold_rate: expected at most 1, got 2
        >>> Settings().changed({"labels.people": 3})
        Traceback (most recent call last):
            ...
        crowdtree.CrowdtreeError: settings: 'labels.people': no such setting; did you mean \
labels.people_per_item?
        """
        nested = self.model_dump()
        for name, value in changes.items():
            if name not in SETTINGS:
                raise CrowdtreeError(f"settings: {one_line(name)}: {_unknown(name)}")
            group, _, field = name.partition(".")
            nested[group][field] = value
        try:
            return Settings.model_validate(nested)
        except ValidationError as error:
            raise CrowdtreeError(f"settings: {_words(error.errors()[0])}") from None

    @property
    def rules(self) -> ItemRules:
        """The rules by which items are judged."""
        return ItemRules(
            max_skips=self.labels.max_skips,
            people=self.labels.people_per_item,
            person_dependence=self.table.person_dependence,
        )

    @property
    def min_people_before_repeat(self) -> int:
        """Workers who must have answered about an item before one of them is asked again.

        >>> Settings().min_people_before_repeat
        2
        >>> Settings(labels=Labels(people_per_item=1)).min_people_before_repeat
        0
        """
        if self.tasks.one_question_per_item:
            return NEVER
        people = self.labels.people_per_item
        return people if people > 1 else 0


GROUPS: dict[str, type[Group]] = {
    name: cast("type[Group]", field.annotation) for name, field in Settings.model_fields.items()
}
SETTINGS: dict[str, FieldInfo] = {
    f"{group}.{name}": field
    for group, model in GROUPS.items()
    for name, field in model.model_fields.items()
}
"""Every setting, by ``group.name``: form, help, command line and reference are made of these."""


def about(name: str) -> About:
    """What people read about a setting.

    >>> about("checks.gold_rate").unit.name
    '%'
    """
    return cast("About", SETTINGS[name].json_schema_extra)


def flat(nested: Mapping[str, object]) -> dict[str, object]:
    """Name nested values ``group.name``.

    >>> flat({"money": {"price": 0.05}})
    {'money.price': 0.05}
    """
    found: dict[str, object] = {}
    for group, values in nested.items():
        if group not in GROUPS:
            raise CrowdtreeError(f"settings: {one_line(group)}: {_unknown(group)}")
        if not isinstance(values, Mapping):
            raise CrowdtreeError(
                f"settings: {group}: expected an object with settings of the group"
            )
        found |= {f"{group}.{name}": value for name, value in values.items()}
    return found


LIMITS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def _words(error: ErrorDetails) -> str:
    """Name the place, what is expected there, and what was given."""
    place = ".".join(str(part) for part in error["loc"])
    for limit, words in LIMITS.items():
        if limit in (found := error.get("ctx", {})):
            return f"{place}: expected {words} {found[limit]:,g}, got {error['input']}"
    return f"{place}: {error['msg'].removeprefix('Value error, ')}"  # of validators of our own


def _unknown(name: str) -> str:
    """Say what an unknown name may have meant.

    >>> _unknown("chekcs.gold_rate")
    'no such setting; did you mean checks.gold_rate?'
    >>> _unknown("price")
    'no such setting; did you mean money.price?'
    >>> _unknown("x")
    'no such setting; choose a group from people, tasks, labels, checks, money, table, finish'
    """
    group, _, short = name.rpartition(".")
    names = {known.partition(".")[2]: known for known in SETTINGS}
    near = get_close_matches(name, SETTINGS, 1) or get_close_matches(short, names, 1)
    if near:
        return f"no such setting; did you mean {names.get(near[0], near[0])}?"
    if group in GROUPS:
        return f"no such setting; choose from {', '.join(GROUPS[group].model_fields)}"
    return f"no such setting; choose a group from {', '.join(GROUPS)}"


def stored_settings(text: str) -> Settings:
    """Read the settings of a stored campaign, which another version may have written.

    Settings that this version does not know are ignored; new ones, and those that another version
    allowed and this one does not, get their default.

    >>> other = {"money": {"price": 0.05, "retired": 1}, "finish": {"max_checks": -1}}
    >>> read = stored_settings(json.dumps(other))
    >>> read.money.price, read.finish.max_checks
    (0.05, None)
    """
    groups = {name: of for name, of in json.loads(text).items() if name in GROUPS}
    known = {name: value for name, value in flat(groups).items() if name in SETTINGS}
    try:
        return Settings().changed(known)
    except CrowdtreeError:
        return _what_fits(known)


def _what_fits(values: Mapping[str, object]) -> Settings:
    """Leave out the values that are out of range."""
    settings = Settings()
    for name, value in values.items():
        try:
            settings = settings.changed({name: value})
        except CrowdtreeError:
            log.warning("stored setting %s is out of range and counts as not set", name)
    return settings


# -------------------------------------------------------------------------------- values

Kind = Literal["number", "flag", "choice", "text", "texts"]


def kind_of(name: str) -> Kind:
    """What sort of value a setting has.

    >>> [kind_of(name) for name in ("money.budget", "table.revise", "people.may_join")]
    ['number', 'flag', 'choice']
    """
    annotation = SETTINGS[name].annotation
    types = set(get_args(annotation)) or {annotation}
    if get_origin(annotation) is Literal:
        return "choice"
    if bool in types:
        return "flag"
    if types & {int, float}:
        return "number"
    return "text" if str in types and get_origin(annotation) is None else "texts"


def is_whole(name: str) -> bool:
    """Whether a number is whole."""
    annotation = SETTINGS[name].annotation
    return int in (get_args(annotation) or (annotation,))


def read_value(name: str, text: str) -> object:
    """Read what somebody wrote; a blank number is the default, a decimal comma is accepted.

    >>> read_value("money.price", "0,05"), read_value("checks.gold_rate", "10 %")
    (0.05, 0.1)
    >>> read_value("tasks.max_seconds_per_question", "15"), read_value("money.budget", "")
    (900.0, None)
    """
    field, text = SETTINGS[name], text.strip()
    if kind_of(name) != "number":
        return text
    if not text:
        return None if type(None) in get_args(field.annotation) else field.default
    try:
        value = float(text.replace(",", ".").removesuffix("%").strip())
    except ValueError:
        raise CrowdtreeError(f"{field.title}: {text[:30]!r} is not a number") from None
    value = round(value * about(name).unit.factor, 9)
    if not math.isfinite(value):
        raise CrowdtreeError(f"{field.title}: {text[:30]!r} is too large, or not a number")
    return int(value) if is_whole(name) and value == int(value) else value


def write_value(name: str, value: object) -> str:
    """Write a value as :func:`read_value` reads it.

    >>> write_value("checks.gold_rate", 0.1), write_value("money.budget", None)
    ('10', '')
    """
    if value is None:
        return ""
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value / about(name).unit.factor:.12g}"


def cost_of(name: str, value: object) -> str:
    """Say what a value costs in answers, time, money or quality.

    >>> cost_of("checks.gold_rate", 0.1)
    '10 % of the answers that you pay for label nothing new.'
    >>> cost_of("tasks.max_seconds_per_question", 600.0)
    'An item waits up to 10 minutes for a worker who walks away.'
    """
    costs, unit, written = about(name).costs, about(name).unit.name, write_value(name, value)
    named = unit in ("%", "minutes", "hours") and written
    costs = costs.replace("{}", f"{written} {unit}" if named else written or "any time")
    return re.sub(r"\b1 (answer|question)s\b", r"1 \1", costs)
