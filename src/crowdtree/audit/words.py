"""What an audit says, in sentences, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdtree.audit.records import Forecast
from crowdtree.core.text import number, percent, plural


def sum_up(claims: Mapping[str, Any]) -> str:
    """Say what was asked for, what is estimated and what is certified, in one sentence.

    `claims` are those of :meth:`crowdtree.Audit.to_dict`.

    >>> from crowdtree import Audit
    >>> audit = Audit(["a", "b"], ["x", "x"], [0.1, 0.1], bound=0.6)
    >>> sum_up(audit.to_dict())
    'Asked for at most 60 % wrong labels; nothing is certified before the first check.'
    """
    asked = "" if claims["wanted"] is None else f"at most {percent(claims['wanted'])} wrong labels"
    parts = [f"asked for {asked}"] if asked else []
    if claims["estimate"] is not None:
        ends = f"{percent(claims['low'])} to {percent(claims['high'])}"
        parts.append(f"estimated {percent(claims['estimate'])} ({ends})")
    if claims["checks"] or claims["known"]:
        checks = plural(claims["checks"] + claims["known"], "check")
        parts.append(f"certified at most {percent(claims['upper'])} after {checks}")
        if claims["corrected"] < claims["upper"]:
            better = percent(claims["corrected"])
            parts.append(f"at most {better} once the wrong labels found are corrected")
    else:
        parts.append("nothing is certified before the first check")
    cost = claims.get("loss")
    if cost is not None and (claims["checks"] or claims["known"]):
        parts.append(f"certified mean loss at most {number(cost['upper'])} per label")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def next_step(state: str, forecast: Forecast | None, corrects: bool = False) -> str:
    """Say how the wanted bound stands and what to do next.

    `corrects`: wrong labels that are found are corrected, so that more checks always help.
    """
    if state == "reached":
        return "Reached."
    if corrects and state != "open":
        return "More labels are wrong than it allows; every one that a check finds is corrected."
    if state == "impossible":
        return "Out of reach: the mistakes found are more than it allows; correct labels first."
    if state == "unlikely":
        return "Out of reach: the interval lies above it; correct labels first."
    if forecast is None or forecast.median is None:
        return "Not expected to be reached: correct labels, or accept a higher bound."
    doubt = ""
    if forecast.reached < 0.95:
        doubt = f" The chance that it can be reached at all is {percent(forecast.reached)}."
    return (
        f"About {plural(forecast.median, 'more check')} "
        f"({forecast.low:,} to {forecast.high:,}).{doubt}"
    )
