"""Settings that two people change at the same time: merged by field, or refused.

A form carries a digest of each value that it shows. When it is saved, only what differs from what
was shown is a change; if somebody else changed the same field meanwhile, the form is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from crowdtree.server.store.errors import Refused

LENGTH = 16
SHORT = 40
"""Longest new value that is repeated in a refusal."""


def _digest(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:LENGTH]


def seen_of(values: Mapping[str, object]) -> str:
    """Digests of the values that a form shows, for a hidden field."""
    return json.dumps({name: _digest(value) for name, value in values.items()})


def read_seen(text: str) -> dict[str, str]:
    """Read what :func:`seen_of` wrote; nothing where a form does not carry it.

    >>> read_seen(seen_of({"price": 0.05})).keys(), read_seen("x")
    (dict_keys(['price']), {})
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def merge(
    seen: Mapping[str, str], current: Mapping[str, object], wanted: Mapping[str, object]
) -> dict[str, object]:
    """The values that a form changes; refused where somebody else changed one of them too.

    Parameters
    ----------
    seen
        Digests of what the form showed.

    Examples
    --------
    >>> seen = read_seen(seen_of({"price": 1, "code": "A"}))
    >>> merge(seen, {"price": 2, "code": "A"}, {"price": 1, "code": "B"})
    {'code': 'B'}
    >>> merge(seen, {"price": 2, "code": "A"}, {"price": 3, "code": "A"})
    Traceback (most recent call last):
        ...
    crowdtree.server.store.errors.Refused: price was changed to 2 since this page was opened;
    nothing was \
saved: reload the page and make your change again
    """
    changes = {
        name: value for name, value in wanted.items() if seen.get(name, "") != _digest(value)
    }
    clashes = [
        name
        for name, value in changes.items()
        if name in seen and _digest(current.get(name)) not in (seen[name], _digest(value))
    ]
    if clashes:
        words = ", ".join(_words(name, current.get(name)) for name in clashes)
        raise Refused(
            "changed",
            f"{words} since this page was opened; nothing was saved: reload the page and make "
            "your change again",
        )
    return changes


def _words(name: str, value: object) -> str:
    shown = "" if value is None else str(value)
    to = f" to {shown}" if 0 < len(shown) <= SHORT else ""
    return f"{name.replace('_', ' ')} was changed{to}"
