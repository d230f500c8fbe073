"""What a setting is: a default with limits, a label, a sentence, a unit and a cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

MAX_COUNT = 1_000_000_000
"""Largest count; databases hold no more than 64 bits."""
CONFIG = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Group(BaseModel):
    """Settings that belong together; its docstring is the title for people."""

    model_config = CONFIG


class Unit(NamedTuple):
    """How people write a value: `factor` converts what they write to the stored value."""

    name: str = ""
    factor: float = 1.0


PLAIN = Unit()
PERCENT = Unit("%", 0.01)
MINUTES = Unit("minutes", 60.0)
HOURS = Unit("hours", 3600.0)
PEOPLE, ITEMS, ANSWERS = Unit("people"), Unit("items"), Unit("answers")
Where = Literal["form", "page", "program"]
"""Where owners change a setting: in the form of all settings, on a page of its own, or by programs
only."""


@dataclass(frozen=True)
class About:
    """What people read about a setting."""

    costs: str
    """What it costs in answers, time, money or quality; ``{}`` stands for the value."""
    unit: Unit = PLAIN
    where: Where = "form"
    fixed: bool = False
    """Whether it cannot change after the start."""
    lines: int = 1
    """Lines of its field in the form."""
    choices: tuple[str, ...] = ()
    """What the values are called, where they are words."""

    def __call__(self, schema: dict[str, Any]) -> None:
        """Add to the JSON schema of the setting."""
        schema["costs"] = self.costs
        if self.unit.name:
            schema["unit"] = self.unit.name


def setting(
    default: object,
    label: str,
    text: str,
    costs: str,
    unit: Unit = PLAIN,
    *,
    where: Where = "form",
    fixed: bool = False,
    lines: int = 1,
    choices: tuple[str, ...] = (),
    **limits: Any,
) -> Any:
    """Define a setting of a group; `limits` are those of :func:`pydantic.Field`."""
    about = About(costs, unit, where, fixed, lines, choices)
    return Field(default, title=label, description=text, json_schema_extra=about, **limits)
