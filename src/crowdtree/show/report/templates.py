"""The Jinja templates of the package, and how numbers are written in them."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any

from crowdtree.core.text import number, percent, unbroken

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """Fill a template of the package; what is not marked as safe is escaped."""
    return unbroken(_templates().get_template(template).render(**values))


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("crowdtree"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": percent, "digits": digits, "evidence": evidence}
    return made


def digits(value: float | None, count: int = 3) -> str:
    """A number in a table; nothing where there is none.

    >>> digits(0.08231), digits(None), digits(float("inf"))
    ('0.0823', '', '∞')
    """
    if value is None:
        return ""
    return number(value, count) if math.isfinite(value) else "∞"


def evidence(value: Any) -> str:
    """A value of any kind, for display.

    >>> evidence(True), evidence(42), evidence(0.08231187500000008)
    ('yes', '42', '0.08231188')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return json.dumps(value)
    return number(value, 7) if isinstance(value, float) else str(value)
