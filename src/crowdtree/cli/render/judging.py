"""Judged models in a terminal: the answer first, then the numbers behind it."""

from __future__ import annotations

from typing import Any

from crowdtree.cli.render.tables import make_table
from crowdtree.learning.judges.result import Judgement
from crowdtree.show.report.judging import LABELS, judgement_size, judgement_tables

MOST_ROWS, MOST_COLUMNS = 16, 4


def show_judgement(console: Any, judgement: Judgement) -> None:
    """Print verdicts, accuracy beside people, joint errors, drift and agreement."""
    from rich.text import Text

    for name, verdict in judgement.verdicts:
        console.print(f"{name}: {verdict}.", markup=False, style="bold")
    console.print(f"{judgement_size(judgement)}.\n", markup=False)
    for title, note, heads, rows in judgement_tables(judgement):
        if title == LABELS:
            continue
        table = make_table(*heads[:MOST_COLUMNS])
        table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"
        for name, *cells in rows[:MOST_ROWS]:
            table.add_row(Text(name), *cells[: MOST_COLUMNS - 1])
        console.print(table)
        more = f"and {len(rows) - MOST_ROWS} more (--json, -o)\n" if rows[MOST_ROWS:] else ""
        console.print(f"[dim]{more}{note}[/]\n")
