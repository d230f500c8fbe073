"""How people write the values of settings."""

from __future__ import annotations

import math
import re
from typing import Literal, get_args, get_origin

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.settings.model import SETTINGS, about

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
