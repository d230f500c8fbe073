"""The progress of a campaign, in a few lines of text."""

from __future__ import annotations

from typing import Any

from crowdtree.core.text import amount, duration, number, percent, plural
from crowdtree.server.reasons import CampaignReason


def status_lines(row: dict[str, Any]) -> list[str]:
    """Show progress, cost, forecast and points to check; from `progress`.

    Forecasts are extrapolated from the numbers so far.
    """
    items, reason = row["items"], row["status_reason"]
    done = items["labelled"] + items["set_aside"]
    first = f"{row['id']}  {row['name']}: {row['status']}{f' ({reason})' if reason else ''}"
    lines = [first, f"   {done:,} of {plural(items['total'], 'item')} done"]
    if row["answers_per_item"] is not None:
        lines[-1] += f", {amount(row['answers_per_item'], 'answer')} per item"
    if row["estimated_error"] is not None:
        lines[-1] += f", {percent(row['estimated_error'])} of labels wrong (estimate)"
    parts = (_money(row), _ahead(row), _revised(row), _attention(row))
    lines += [f"   {words}" for words in parts if words]
    return lines + [f"   {words}" for words in _monitor(row)]


def _money(row: dict[str, Any]) -> str:
    if not row["price"]:
        return ""
    of = f" of {row['budget']:,.2f}" if row["budget"] is not None else ""
    unit = f" {row['currency']}" if row.get("currency") else ""
    left = row["forecast"]["cost_left"]
    ahead = f", about {left:,.2f} remaining" if left else ""
    return f"spent {row['spent']:,.2f}{of}{unit}{ahead}"


def _ahead(row: dict[str, Any]) -> str:
    forecast = row["forecast"]
    if row["status"] != "running" or not forecast["answers_left"]:
        return ""
    words = f"about {forecast['answers_left']:,.0f} answers remaining"
    seconds = forecast["seconds_left"]
    return words if seconds is None else f"{words}, {duration(seconds)} at the current rate"


def _attention(row: dict[str, Any]) -> str:
    found = []
    if row["reason"] == CampaignReason.BUDGET_SPENT:
        found.append("raise the budget on the page Links and settings, or finish")
    if row["items"]["set_aside"]:
        found.append(f"{plural(row['items']['set_aside'], 'item')} set aside")
    if row["items"].get("withdrawn"):
        found.append(f"{plural(row['items']['withdrawn'], 'item')} withdrawn")
    if row.get("corrected"):
        found.append(f"{plural(row['corrected'], 'item')} labelled by hand")
    if row.get("undecided"):
        found.append(f"{plural(row['undecided'], 'item')} undecided")
    if row["workers"]["paused"]:
        found.append(f"{plural(row['workers']['paused'], 'worker')} paused")
    if row.get("excluded_workers"):
        found.append(f"answers of {plural(row['excluded_workers'], 'worker')} excluded")
    if row.get("waiting_for_workers"):
        found.append(f"{plural(row['waiting_for_workers'], 'item')} waiting for more workers")
    if row.get("waiting_for_known"):
        text = f"{plural(row['waiting_for_known'], 'label')} waiting for people who are known"
        found.append(f"{text} (invite some by personal links)")
    return f"check: {', '.join(found)}" if found else ""


def _revised(row: dict[str, Any]) -> str:
    last = row.get("revision")
    if not last:
        return ""
    why = f": {last['reason']['text']}" if last["reason"].get("text") else ""
    doing = ", items are being replayed" if last["finished_at"] is None else ""
    return f"revised {plural(last['number'], 'time')}{doing}{why}"


def _monitor(row: dict[str, Any]) -> list[str]:
    """Show alarms, and what the answers say beside what the table says."""
    found = row.get("monitor")
    if not found or not found["alarms"]:
        return []
    lines = [f"alarm {alarm['text']}" for alarm in found["alarms"]]
    if not found["adapt"]:
        lines.append("the table is not revised (setting adapt)")
    rows = [("", "assumed", "estimated", "95 % interval"), *map(_finding, found["findings"])]
    if len(rows) > 1:
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines += ["  ".join(map(str.ljust, cells, wide)).rstrip() for cells in rows]
    return lines


def _finding(row: dict[str, Any]) -> tuple[str, str, str, str]:
    if row["subject"] == "dependence":
        return "correlation of errors", number(row["assumed"]), number(row["estimate"]), ""
    about = "share" if row["subject"] == "prior" else "errors"
    said = [percent(round(row[key], 3)) for key in ("assumed", "estimate", "low", "high")]
    return f"{about} of {row['name']}", said[0], said[1], f"{said[2]} to {said[3]}"
