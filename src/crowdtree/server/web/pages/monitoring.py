"""What the dashboard says about the table of a campaign."""

from __future__ import annotations

from typing import NamedTuple

from crowdtree.server.store.queries.progress import FindingRow, Progress
from crowdtree.server.web.pages.words import count, number, percent

REVISED = (
    "The table was revised; labels that no longer reach the target were taken back, and their "
    "items are asked about again."
)
DUE = "The table is being revised."
TOLD = (
    "The errors that labels state are wrong as well. Let the campaign revise its table in the "
    "settings, or revise it with crowdtree campaign revise."
)
ENDED = "The errors that labels state may be wrong as well."


class Row(NamedTuple):
    """What the table and the answers say about a question, a class or the dependence."""

    about: str
    assumed: str
    estimate: str
    between: str


class Shown(NamedTuple):
    """A sentence about the table, and a row per question, class and dependence."""

    text: str
    rows: list[Row]


def shown_monitor(facts: Progress) -> Shown | None:
    """Say whether the answers contradict the table; ``None`` before the first answer."""
    found = facts["monitor"]
    if found is None:
        return None
    if not found["alarms"]:
        return Shown(f"{count(found['answers'])} answers do not contradict the table.", [])
    first = found["alarms"][0]["text"]
    said = [f"{first[:1].upper()}{first[1:]}."]
    wrong = [row for row in found["findings"] if not row["low"] <= row["assumed"] <= row["high"]]
    said += [f"{row['text'][:1].upper()}{row['text'][1:]}." for row in wrong[:1]]
    text = " ".join([*said, _done(facts, found["adapt"])])
    return Shown(text, [_row(row) for row in found["findings"]])


def _done(facts: Progress, adapt: bool) -> str:
    """What was done about it, or what to do."""
    revision = facts["revision"]
    if revision is not None and revision["actor"] == "server":
        return REVISED
    if facts["status"] == "finished":
        return ENDED
    return DUE if adapt else TOLD


def _row(row: FindingRow) -> Row:
    if row["subject"] == "dependence":
        words = number(row["assumed"], 2), number(row["estimate"], 2)
        return Row("Correlation of errors", *words, "")
    about = f"Share of {row['name']}" if row["subject"] == "prior" else f"Errors: {row['name']}"
    ends = [percent(round(row[end], 3)) for end in ("low", "high")]
    values = [percent(round(row[name], 3)) for name in ("assumed", "estimate")]
    return Row(about, values[0], values[1], " to ".join(ends))
