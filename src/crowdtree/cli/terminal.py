"""How trees, levels and plans look in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from crowdtree.evaluate import Evaluation
from crowdtree.plan import Plan
from crowdtree.text import number, percent, plural
from crowdtree.tree import Tree

__all__ = [
    "counting",
    "show_certificate",
    "show_frontier",
    "show_levels",
    "show_policies",
    "show_summary",
    "show_tree",
    "watching",
]

FOLD_FROM_LEAVES = 60
FOLD_BELOW = 0.01


def show_summary(console: Any, value: Evaluation) -> None:
    """Say the answer first: how often it goes wrong, and what it costs."""
    plan = value.plan
    tree = plan.tree
    console.print(
        f"[bold]Misclassifies {percent(value.misclassification)}[/] of items "
        f"[dim](exact)[/] with {number(value.expected_answers)} answers per item."
    )
    kind = "one worker per question" if int(plan.votes.max()) == 1 else plan.method
    console.print(
        f"[dim]{tree.method} · {plural(tree.n_nodes, 'node')}, depth {tree.depth} · {kind} · "
        f"additive {percent(value.additive)} (upper bound)[/]\n"
    )


def show_certificate(console: Any, tree: Tree) -> None:
    """Say what is proven about the tree, where something is."""
    proof = tree.certificate
    if proof is None:
        return
    what = "additive error" if proof.objective == "additive" else "misclassification"
    if proof.status == "optimal":
        console.print(f"Proven: no tree has a smaller {what} than {percent(proof.value)}.")
    else:
        stop = proof.status if proof.status == "interrupted" else f"stopped by the {proof.status}"
        console.print(
            f"{stop.capitalize()}: {what} {percent(proof.value)}, and no tree is below "
            f"{percent(proof.lower_bound)} (gap {percent(proof.gap)})."
        )
    console.print(f"[dim]{plural(proof.nodes, 'set')} of classes searched.[/]\n")


@contextmanager
def watching() -> Iterator[Callable[[float, float, int], None] | None]:
    """Show a progress line on stderr while something is searched, if a person looks on."""
    if not sys.stderr.isatty():
        yield None
        return

    def line(value: float, lower: float, nodes: int) -> None:
        gap = (value - lower) / value if value > 0 else 0.0
        words = f"best {percent(value)} · proven from {percent(lower)} · gap {percent(gap)}"
        print(f"\r{words} · {nodes:,} sets   ", end="", file=sys.stderr, flush=True)

    try:
        yield line
    finally:
        print("\r" + " " * 90 + "\r", end="", file=sys.stderr, flush=True)


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr how many of many are done, if a person looks on."""
    watched = sys.stderr.isatty()

    def line(done: int, total: int) -> None:
        if watched:
            print(f"\r{what}: {done:,} of {total:,}   ", end="", file=sys.stderr, flush=True)

    try:
        yield line
    finally:
        line_end = "\r" + " " * 78 + "\r"
        print(line_end if watched else "", end="", file=sys.stderr, flush=True)


def show_tree(console: Any, value: Evaluation, full: bool = False) -> None:
    """Draw the tree; small subtrees of large trees are folded unless `full`."""
    from rich.text import Text

    for line in tree_lines(value, full):
        text = Text()
        for words, style in line:
            text.append(words, style=style)
        console.print(text, soft_wrap=True)
    console.print()


def tree_lines(value: Evaluation, full: bool = False) -> Iterator[list[tuple[str, str]]]:
    """Yield the lines of the drawing as (words, style) pieces."""
    plan = value.plan
    tree, problem = plan.tree, plan.tree.problem
    fold = not full and tree.n_leaves > FOLD_FROM_LEAVES
    stack: list[tuple[int, str, str, str]] = [(0, "", "", "")]
    while stack:
        child, lead, branch, rail = stack.pop()
        style = {"no  ": "dark_orange3", "yes ": "dark_cyan"}.get(branch, "")
        start = [(lead, "dim"), (branch, style)]
        if child < 0:
            yield [*start, *_leaf_words(value, ~child)]
            continue
        share = float(tree.share[child])
        if fold and share < FOLD_BELOW and child:
            count = plural(len(tree.nodes[child].classes), "class", "classes")
            yield [*start, (f"… {count}", "italic"), (f"  {percent(share)} of items", "dim")]
            continue
        question = int(tree.question[child])
        yield [*start, (problem.text(question), "bold"), (_node_words(plan, child), "dim")]
        no, yes = tree.children[child].tolist()
        stack.append((yes, rail + "└─ ", "yes ", rail + "       "))
        stack.append((no, rail + "├─ ", "no  ", rail + "│      "))


def _node_words(plan: Plan, node: int) -> str:
    tree = plan.tree
    share = float(tree.share[node])
    words = [f"error {percent(float(plan.node_error[node]) / share)}"]
    votes = int(plan.votes[node])
    if plan.vote == "margin":
        words.append(f"until a lead of {votes}")
    elif votes > 1:
        words.append(plural(votes, "vote"))
    words.append("all items" if node == 0 else f"{percent(share)} of items")
    words.append(plural(len(tree.nodes[node].classes), "class", "classes"))
    return "   " + " · ".join(words)


def _leaf_words(value: Evaluation, leaf: int) -> list[tuple[str, str]]:
    tree = value.tree
    label = int(tree.leaf_label[leaf])
    others = [tree.problem.classes[c] for c in tree.leaf_classes[leaf] if c != label]
    found = [(tree.problem.classes[label], "bold dark_cyan")]
    if others:
        found.append((f" (or {', '.join(others)})", "dark_cyan"))
    share = percent(float(tree.problem.prior[label]))
    right = percent(float(value.correct[label]))
    return [*found, (f"   {share} of items · right {right}", "dim")]


def show_levels(console: Any, value: Evaluation) -> None:
    """Print the level table: entropy, error and scores."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("level", "sets", "entropy (bits)", "g", "b", "F^m", "F^c"):
        table.add_column(name, justify="right")
    for level in value.plan.levels:
        scores = (level.g, level.b, level.fm, level.fc)
        table.add_row(
            str(level.depth),
            str(len(level.partition)),
            number(level.entropy, 4),
            *("" if score is None else number(score, 4) for score in scores),
        )
    console.print(table)
    console.print()


def show_frontier(
    console: Any, points: Any, chosen: Any = None, most: int = 12, *, priced: bool = False
) -> None:
    """Print the frontier as a small table, evenly thinned, the chosen plan marked."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    paid = ["price per item"] if priced else []
    for name in (*paid, "answers per item", "misclassified", "additive", "votes", "proof"):
        table.add_column(name, justify="right")
    step = max(1, -(-len(points) // most))
    shown = sorted({*range(0, len(points), step), len(points) - 1})
    for place in shown:
        point = points[place]
        table.add_row(
            *([number(point.expected_cost)] if priced else []),
            number(point.expected_answers),
            percent(point.misclassification),
            percent(point.additive),
            _votes(point.plan),
            "proven" if point.status == "optimal" else point.status,
        )
    if chosen is not None:
        table.add_row(
            *([number(chosen.expected_cost)] if priced else []),
            number(chosen.expected_answers),
            percent(chosen.misclassification),
            percent(chosen.additive),
            _votes(chosen.plan),
            "your plan",
            style="bold",
        )
    console.print(table)
    console.print(f"[dim]{len(shown)} of {plural(len(points), 'point')} shown[/]\n")


def _votes(plan: Plan) -> str:
    """Write the fewest and the most votes of a node."""
    low, high = int(plan.votes.min()), int(plan.votes.max())
    return f"{low}" if low == high else f"{low} to {high}"


def show_policies(console: Any, rows: Any) -> None:
    """Print policies beside each other: answers and error with intervals, times the floor."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("policy", no_wrap=True)
    for name in ("answers", "95 %", "wrong", "95 %", "x floor"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        wrong = row.misclassification
        times = "" if row.times_the_floor != row.times_the_floor else number(row.times_the_floor)
        table.add_row(
            row.policy,
            number(row.answers),
            f"[dim]{_between(row.answers)}[/]",
            percent(wrong),
            "[dim]exact[/]" if row.exact else f"[dim]{_between(wrong, 100)} %[/]",
            times,
        )
    console.print(table)
    for row in rows:
        if row.note:
            console.print(f"[dim]{row.policy}: {row.note}[/]")
    console.print("[dim]The floor (Fano) is at each policy's own error; none goes below it.[/]\n")


def _between(value: Any, times: float = 1.0) -> str:
    if value.high <= value.low:
        return "exact"
    return f"{number(times * value.low)}–{number(times * value.high)}"
