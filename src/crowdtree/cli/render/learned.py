"""Learned results in a terminal: workers, the error table, confused pairs, assumed errors."""

from __future__ import annotations

from typing import Any

from crowdtree.cli.render.tables import NAME, make_table, short_text
from crowdtree.core.text import percent, plural, short
from crowdtree.learning.compare import against_assumed, confused_pairs
from crowdtree.show.report.learned_tables import (
    accuracy_words,
    label_worth,
    ranked_flags,
    share,
    worst_cells,
)

MOST_WORKERS = 16
MOST_QUESTIONS = 12
MOST_PAIRS = 5
MOST_LABELS = 8
MOST_FLAGS = 12
MOST_THIN = 3
WORKER = 20
"""Most characters of a worker, so that the whole row fits in 80."""
CELL = 8
"""Characters of a cell of the error table, its gap included."""


def show_learned(console: Any, learned: Any) -> None:
    """Print the workers' reliability, the errors, and open points."""
    console.print(
        f"[bold]{plural(len(learned.labels), 'label')}[/] from "
        f"{plural(learned.answers.n_answers, 'answer')} by "
        f"{plural(len(learned.workers), 'worker')}; "
        f"error of a typical worker: [bold]{percent(learned.typical_error)}[/]."
    )
    for words in accuracy_words(learned):
        console.print(words)
    console.print()
    _labels(console, learned)
    _sources(console, learned)
    _workers(console, learned)
    _errors(console, learned)
    _pairs(console, learned)
    _assumed(console, learned)
    _flags(console, learned)


def _labels(console: Any, learned: Any) -> None:
    """Recall and precision of each label, the least precise first."""
    rows = label_worth(learned)
    table = make_table("label", "items", "precision", "recall")
    for row in rows[:MOST_LABELS]:
        cells = f"{row.items:,}", share(row.precision), share(row.recall)
        table.add_row(short_text(row.name), *cells)
    console.print(table)
    left = len(rows) - MOST_LABELS
    more = f" {plural(left, 'more label')} of greater precision." if left > 0 else ""
    console.print(
        "[dim]Precision: items with the label that are of its class; recall: items of the\n"
        f"class that have the label. Estimates.{more}[/]\n"
    )


def _sources(console: Any, learned: Any) -> None:
    """Error of each source, the smallest first, where there are several."""
    if not learned.sources:
        return
    level = f"{100 * learned.level:.3g} %"
    table = make_table("source", "kind", "errs", f"{level} interval", "workers", "answers", left=2)
    for source in sorted(learned.sources.values(), key=lambda source: source.error):
        ends = f"{share(source.low)} to {share(source.high)}"
        counts = f"{source.workers:,}", f"{source.answers:,}"
        table.add_row(short_text(source.name), source.kind, share(source.error), ends, *counts)
    console.print(table)
    console.print()


def _workers(console: Any, learned: Any) -> None:
    workers = sorted(learned.workers.values(), key=lambda worker: (worker.error, worker.name))
    half = MOST_WORKERS // 2
    cut = len(workers) > MOST_WORKERS
    shown = [*workers[:half], *workers[-half:]] if cut else workers
    level = f"{100 * learned.level:.3g} %"
    table = make_table("worker", "errs", f"{level} interval", "skill", "answers", "agrees")
    for place, worker in enumerate(shown):
        if cut and place == half:
            table.add_row(f"… {plural(len(workers) - len(shown), 'worker')} between", style="dim")
        spread = (worker.high - worker.low) / 2
        table.add_row(
            short_text(worker.name, WORKER),
            share(worker.error),
            f"{share(worker.error_low)} to {share(worker.error_high)}",
            f"{worker.skill:+.2f} ± {spread:.2f}",
            f"{worker.answers:,}",
            f"{100 * worker.agreement:.0f} %",
        )
    console.print(table)
    console.print("[dim]Skill 0 is the typical worker; intervals are estimates.[/]\n")


def _errors(console: Any, learned: Any) -> None:
    """Errors of a typical worker with half their intervals, as many classes as fit."""
    problem = learned.problem
    fits = max(1, (console.width - NAME - 2) // (CELL + 2))
    rows, columns, half, definite = worst_cells(learned, MOST_QUESTIONS, fits)
    table = make_table("error, in %", *(short(problem.classes[c], CELL) for c in columns))
    for q in rows:
        cells = [
            _cell(float(problem.worker_error[q, c]), float(half[q, c])) if definite[q, c] else "–"
            for c in columns
        ]
        table.add_row(short_text(problem.text(q)), *cells)
    console.print(table)
    left = []
    if len(rows) < problem.n_questions:
        left.append(f"{len(rows)} of {problem.n_questions:,} questions, the worst")
    if len(columns) < problem.n_classes:
        left.append(f"{len(columns)} of {problem.n_classes:,} classes, the most common")
    shown = f" Shown: {'; '.join(left)}." if left else ""
    console.print(f"[dim]± half of the interval; – right answer unknown.{shown}[/]\n")


def _cell(error: float, half: float) -> Any:
    from rich.text import Text

    style = "bold dark_orange3" if error >= 0.3 else "dark_orange3" if error >= 0.2 else ""
    return Text(f"{100 * error:.0f} ± {100 * half:.0f}", style=style)


def _pairs(console: Any, learned: Any) -> None:
    pairs = [pair for pair in confused_pairs(learned) if pair.shared >= 0.01]
    if not pairs:
        return
    table = make_table("still confused", "with", "shared", left=2)
    for pair in pairs[:MOST_PAIRS]:
        table.add_row(short_text(pair.first), short_text(pair.second), share(pair.shared))
    console.print(table)
    rest = len(pairs) - MOST_PAIRS
    more = f"; {plural(rest, 'more pair')} above 1 %" if rest > 0 else ""
    console.print(f"[dim]Share of one class's probability that lies with the other{more}.[/]\n")


def _assumed(console: Any, learned: Any) -> None:
    cells = against_assumed(learned)
    if not cells:
        return
    outside = [cell for cell in cells if cell.outside]
    console.print(
        f"Of the {plural(len(cells), 'assumed error')}, {len(outside)} "
        f"{'lies' if len(outside) == 1 else 'lie'} outside the learned interval"
        + (":" if outside else ".")
    )
    if outside:
        table = make_table("question", "class", "assumed", "learned", "interval", left=2)
        for cell in outside[:MOST_PAIRS]:
            table.add_row(
                short_text(cell.question),
                short_text(cell.cls),
                share(cell.assumed),
                share(cell.learned),
                f"{share(cell.low)} to {share(cell.high)}",
            )
        console.print(table)
    console.print()


def _flags(console: Any, learned: Any) -> None:
    others, thin = ranked_flags(learned)
    rest = [flag for flag in others if flag.kind != "confused"]
    shown = [*rest[:MOST_FLAGS], *thin[:MOST_THIN]]
    if not shown:
        return
    console.print("Points to check:")
    for flag in shown:
        console.print(f"  {flag.subject}: {flag.message}", soft_wrap=True, markup=False)
    left = len(rest) + len(thin) - len(shown)
    if left > 0:
        more = sum(flag.more for flag in thin)
        words = f"; {more:,} answers would settle the {plural(len(thin), 'thin cell')}"
        console.print(f"  and {left:,} more (see --json or --report){words if more else ''}")
    console.print()
