"""What each label is worth, in a terminal: the table of the classes and the confusion matrix."""

from __future__ import annotations

import math
from typing import Any

from crowdtree.cli.render.tables import NAME, make_table, short_text
from crowdtree.core.evaluation import Evaluation
from crowdtree.core.per_class import confusion_columns
from crowdtree.core.text import percent, percent_cell, plural, short
from crowdtree.show.plots.text import distinct

MOST_CLASSES = 12
"""Classes that are printed without `--full`, those of the least precision first."""
MOST_PAIRS = 10
COLUMN = 8
"""Most characters of a name above a column of the matrix."""
CELL = 5
"""Most characters of a share in the matrix."""
GAP = 2
"""Spaces between two columns."""
FIRST = "of its items, in %"


def show_classes(console: Any, value: Evaluation, full: bool = False) -> None:
    """Print share, recall, precision and the worst confusion of each class."""
    rows = sorted(value.classes, key=lambda row: (not math.isnan(row.precision), row.precision))
    shown = rows if full or len(rows) <= MOST_CLASSES else rows[:MOST_CLASSES]
    table = make_table("class", "share", "recall", "precision", *_left(value, "undecided"))
    table.add_column("the others are mostly", no_wrap=True)
    for row in shown:
        table.add_row(
            short_text(row.name),
            percent(row.share),
            percent(row.recall),
            "never given" if math.isnan(row.precision) else percent(row.precision),
            *_left(value, percent(row.undecided)),
            short_text(row.confused_with or ""),
        )
    console.print(table)
    if len(shown) < len(rows):
        words = f"The {len(shown)} of {len(rows):,} classes with the least precision; all: --full"
        console.print(words, style="dim")
    console.print()


def show_confusion(console: Any, value: Evaluation, full: bool = False) -> None:
    """Print the confusion matrix where it fits or with `full`, else the largest confusions."""
    classes = value.tree.problem.classes
    names = [*distinct(classes, COLUMN), *_left(value, "undecided")]
    first = min(NAME, max(len(FIRST), *map(len, classes)))
    fits = first + sum(max(len(name), CELL) + GAP for name in names) <= console.width
    (_show_matrix if fits or full else _show_pairs)(console, value)


def _show_matrix(console: Any, value: Evaluation) -> None:
    undecided = [row.undecided for row in value.classes] if value.plan.handed_over else None
    columns = confusion_columns(value.tree.problem, value.labelled, undecided)
    table = make_table(FIRST, *(short(name, NAME) for name in distinct(list(columns)[1:], COLUMN)))
    for name, *cells in zip(*columns.values(), strict=True):
        table.add_row(short_text(name), *map(percent_cell, cells))
    console.print(table)
    console.print("Rows: true class. Columns: label.\n", style="dim")


def _show_pairs(console: Any, value: Evaluation) -> None:
    table = make_table("true class", "gets the label", "of its items", "of all items", left=2)
    for row in value.confusions(MOST_PAIRS):
        shares = percent(row.given), percent(row.overall)
        table.add_row(short_text(row.truth), short_text(row.label), *shares)
    console.print(table)
    size = plural(len(value.classes), "class", "classes")
    words = f"The largest confusions; the matrix of {size}: --full or --json"
    console.print(words + "\n", style="dim", markup=False)


def _left(value: Evaluation, cell: str) -> tuple[str, ...]:
    return (cell,) if value.plan.handed_over else ()
