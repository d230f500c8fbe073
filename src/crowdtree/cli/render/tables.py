"""Tables in a terminal: frontiers, and comparisons of policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from crowdtree.core.fixed_plan import Plan
from crowdtree.core.text import number, percent, percent_range, plural, short

MOST_POINTS = 12
NAME = 24
"""Most characters of a name in a table."""


def make_table(*columns: str, left: int = 1, wrap: bool = False) -> Any:
    """Make a table without lines: so many columns of text, then numbers."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for i, name in enumerate(columns):
        table.add_column(Text(name), justify="left" if i < left else "right", no_wrap=not wrap)
    return table


def short_text(name: str, most: int = NAME) -> Any:
    """Cut a long name, in which nothing is markup."""
    from rich.text import Text

    return Text(short(name, most))


def show_choices(console: Any, choices: Any) -> None:
    """Print the choices for a goal, the recommended one first, and what is proven about them."""
    console.print(f"[bold]{choices.headline}[/]")
    console.print(f"{choices.reason}\n")
    columns: list[tuple[str, str, Callable[[float], str]]]
    columns = [("answers", "answers", number), ("wrong", "error", percent)]
    columns += [] if choices.price is None else [("cost", "cost", number)]
    columns += [] if choices.problem.loss is None else [("loss", "risk", number)]
    table = make_table("plan", *(name for name, _, _ in columns), "wrong, 95 %")
    for choice in choices.choices:
        row = choice.performance
        sure = "exact" if row.exact else percent_range(*row.error.interval)
        cells = [form(getattr(row, part)) for _, part, form in columns]
        table.add_row(choice.name, *cells, f"[dim]{sure}[/]")
    console.print(table)
    for note in choices.notes:
        console.print(f"[dim]{note}[/]")
    console.print()
    if choices.mixes:
        show_mixes(console, choices)


def show_mixes(console: Any, choices: Any) -> None:
    """Print mixes of sources, the chosen one first, with the cost of each source."""
    header, *rows = choices.mix_rows
    table = make_table(*header, wrap=True)
    for column in table.columns[1:]:
        column.min_width = min(len(column.header), 6)
    for row in rows:
        table.add_row(*row)
    console.print("Cost per item, in all and by source:")
    console.print(table)
    console.print()


def show_frontier(console: Any, points: Any, chosen: Any, *, priced: bool, undecided: bool) -> None:
    """Print the frontier as a small table, evenly thinned, the chosen plan marked."""
    paid = ["price"] if priced else []
    left = ["undecided", "wrong of the others"] if undecided else ["misclassified", "additive"]
    costly = len(points) > 0 and points[0].plan.tree.problem.loss is not None
    if costly and not undecided:
        left = ["expected loss", "misclassified"]
    names = (*paid, "answers per item", *left, "votes", "proof")
    table = make_table(*names, left=0, wrap=True)
    for column, name in zip(table.columns, names, strict=True):
        column.min_width = max(map(len, name.split()))  # two lines are fine, but no cut word
    step = max(1, -(-len(points) // MOST_POINTS))
    shown = sorted({*range(0, len(points), step), len(points) - 1})
    rows = [(points[place], None) for place in shown]
    for point, style in [*rows, *([] if chosen is None else [(chosen, "bold")])]:
        proof = "proven" if point.status == "optimal" else point.status
        if proof != "proven" and 0 < point.gap < 1:
            proof = f"within {percent(point.gap)}"
        table.add_row(
            *([number(point.expected_cost)] if priced else []),
            number(point.expected_answers),
            *_errors(point, undecided, costly),
            _votes(point.plan),
            "your plan" if style else proof,
            style=style,
        )
    console.print(table)
    console.print(f"[dim]{len(shown)} of {plural(len(points), 'point')} shown[/]\n")


def _errors(point: Any, undecided: bool, costly: bool) -> tuple[str, str]:
    if undecided:
        return percent(point.undecided), percent(point.decided_error)
    if costly:
        return number(point.risk), percent(point.misclassification)
    return percent(point.misclassification), percent(point.additive)


def _votes(plan: Plan) -> str:
    """Write the fewest and the most votes of a node."""
    low, high = int(plan.votes.min()), int(plan.votes.max())
    return f"{low}" if low == high else f"{low} to {high}"


def show_policies(console: Any, rows: Any, costs: Sequence[float] | None = None) -> None:
    """Print a comparison of policies: answers and error with intervals, multiples of the floor.

    Where mistakes have different costs, the expected loss comes before the error. `costs` are the
    prices per item, one per row.
    """
    costly = rows[0].problem.loss is not None
    paid = [*([] if costs is None else ["price"]), *(["loss"] if costly else [])]
    table = make_table("policy", "answers", "95 %", *paid, "wrong", "95 %", "x floor")
    for index, row in enumerate(rows):
        wrong = row.misclassification
        times = "" if row.times_the_floor != row.times_the_floor else number(row.times_the_floor)
        table.add_row(
            row.policy,
            number(row.answers),
            f"[dim]{_between(row.answers)}[/]",
            *([] if costs is None else [number(costs[index])]),
            *([number(row.risk)] if costly else []),
            percent(wrong),
            "[dim]exact[/]" if row.exact else f"[dim]{percent_range(*wrong.interval)}[/]",
            times,
        )
    console.print(table)
    for row in rows:
        if row.note:
            console.print(f"[dim]{row.policy}: {row.note}[/]")
    if costly:
        console.print(
            "[dim]Loss: expected loss per item; exact for plans, else the mean of what the policy "
            "states (Dawid-Skene: observed).[/]"
        )
    console.print(
        "[dim]x floor: answers / the fewest that any policy needs for that error (Fano).[/]\n"
    )


def _between(value: Any, times: float = 1.0) -> str:
    if value.high <= value.low:
        return "exact"
    return f"{number(times * value.low)}–{number(times * value.high)}"
