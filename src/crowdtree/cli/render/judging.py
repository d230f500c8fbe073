"""Judged models in a terminal: the answer first, then the numbers behind it."""

from __future__ import annotations

from typing import Any

from crowdtree.cli.render.learned import _short, _table
from crowdtree.judging.result import Judgement
from crowdtree.report.judging import interval_words, judgement_size
from crowdtree.text import percent

MOST_ROWS = 16


def show_judgement(console: Any, judgement: Judgement) -> None:
    """Print verdicts, accuracy beside people, joint errors, drift and agreement."""
    several = len(judgement.questions) > 1
    for score in judgement.scores:
        place = f" at {score.question}" if several else ""
        console.print(f"{score.model}{place}: {score.verdict}.", markup=False, style="bold")
    console.print(
        f"{judgement_size(judgement)[0].upper()}{judgement_size(judgement)[1:]}.\n", markup=False
    )
    if judgement.scores:
        _scores(console, judgement)
        _together(console, judgement)
    _rows(
        console, judgement, ("change of accuracy", "to", "points", "other answers"),
        [(row.question, row.old, row.new, interval_words(row.change, "points"),
          percent(row.changed_answers)) for row in judgement.drift],
    )  # fmt: skip
    _rows(
        console, judgement, ("agreement", "items", "Krippendorff's alpha"),
        [(row.question, row.group, f"{row.items:,}", interval_words(row.alpha, "number"))
         for row in judgement.agreement],
    )  # fmt: skip


def _scores(console: Any, judgement: Judgement) -> None:
    rows = []
    for score in judgement.scores:
        main = score.main
        cells = ["–"] * 3
        if main is not None:
            cells = [interval_words(main.model), interval_words(main.person)]
            cells.append(interval_words(main.difference, "points"))
        rows.append((score.question, score.model, *cells))
    _rows(console, judgement, ("model", "right", "a person", "difference in points"), rows)
    gold = any(score.verdict.reference == "gold" for score in judgement.scores)
    against = "known items" if gold else "the vote of other people, each person left out in turn"
    console.print(f"[dim]Right: by {against}. Intervals: 95 %.[/]\n")


def _together(console: Any, judgement: Judgement) -> None:
    """Joint errors, the most correlated first."""
    known = [row for row in judgement.together if row.correlation is not None]
    known.sort(key=lambda row: -row.correlation.value if row.correlation else 0.0)
    rows = [
        (row.question, f"{row.first}, {row.second}", percent(row.both_wrong.value),
         percent(row.independent), interval_words(row.correlation, "number"))
        for row in known
    ]  # fmt: skip
    _rows(console, judgement, ("wrong together", "both", "if independent", "correlation"), rows)


def _rows(console: Any, judgement: Judgement, heads: tuple[str, ...], rows: list[Any]) -> None:
    """A table whose rows begin with their question, shown where there are several."""
    if not rows:
        return
    several = len(judgement.questions) > 1
    table = _table(heads[0], *heads[1:])
    for question, name, *cells in rows[:MOST_ROWS]:
        table.add_row(_short(f"{question}: {name}" if several else name, 36), *cells)
    console.print(table)
    if len(rows) > MOST_ROWS:
        console.print(f"[dim]and {len(rows) - MOST_ROWS} more (see --json or -o)[/]")
    console.print()
