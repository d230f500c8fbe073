"""A plan in a terminal: the summary, the tree and its levels; and writing it to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from crowdtree import io as files
from crowdtree.cli import render
from crowdtree.cli.options import PlanOutputs
from crowdtree.cli.render.tables import make_table
from crowdtree.core.errors import listing
from crowdtree.core.evaluation import Evaluation
from crowdtree.core.problem import Problem
from crowdtree.core.text import amount, number, percent, plural
from crowdtree.core.tree import Tree
from crowdtree.designs.designers.optimal import LESS_MISCLASSIFIED
from crowdtree.designs.frontiers import Goal
from crowdtree.planning import best_adaptive
from crowdtree.show.plots import draw_tree
from crowdtree.show.plots.tree_fold import views
from crowdtree.show.plots.tree_model import Facts

MAX_QUICK_CELLS = 2500
"""Classes times questions up to which an adaptive policy is simulated beside a tree."""
MOST_NAMES = 6
"""Names of a folded subtree that are printed."""
LEGEND = (
    "recall: of the items of a class, how many get its label; "
    "precision: of the items that end there, how many are of its class"
)


def finish(
    value: Evaluation, outputs: PlanOutputs, then: str, prices: Sequence[float] | None
) -> None:
    """Write the requested files, then print the plan and what to run `then`."""
    tree = value.tree
    cost = None
    if prices is not None:
        cost = float(value.answers_by_node @ np.asarray(prices)[tree.question])
    if outputs.output is not None:
        files.save_plan(value.plan, outputs.output)
    if outputs.draw is not None:
        draw_tree(value.plan, outputs.draw, fold=0.0 if outputs.full else None)

    def show(console: Any) -> None:
        show_plan(console, value, outputs, cost)
        problem, goal = tree.problem, Goal(answers=value.expected_answers)
        if problem.has_prices:
            goal = Goal(cost=value.expected_cost)
        adaptive_line(console, problem.whole or problem, goal)

    found = value.to_dict()
    if cost is not None:
        found["expected_cost"] = cost
    render.emit(outputs.as_json, found, show, (outputs.output, outputs.draw), then)


def adaptive_line(
    console: Any, problem: Problem, goal: Goal, prices: Sequence[float] | None = None
) -> None:
    """Say in one line what `plan` would give for the same goal, if that is quickly found."""
    found = None
    if problem.n_classes * problem.n_questions <= MAX_QUICK_CELLS:
        found = best_adaptive(problem, goal, prices)
    if found is None:
        words = "an adaptive policy may need fewer answers"
    else:
        risk = "" if problem.loss is None else f"expected loss {number(found.risk)}, "
        if risk and goal.cost is not None:
            risk = f"cost and expected loss {number(found.cost + found.risk)} together, "
        paid = "" if np.isnan(found.cost) else f" for {number(found.cost)}"
        words = (
            f"{risk}{percent(found.error)} wrong with {amount(found.answers, 'answer')} per item"
            f"{paid} (adaptive, simulated)"
        )
    console.print(f"[dim]With crowdtree plan: {words}.[/]\n")


def show_plan(
    console: Any, value: Evaluation, outputs: PlanOutputs, cost: float | None = None
) -> None:
    """Print the requested parts of a plan."""
    show_summary(console, value)
    if cost is not None:
        paid = ", ".join(outputs.price or ())
        console.print(f"[bold]{number(cost)}[/] per item at {paid} per answer.\n")
    show_certificate(console, value.tree)
    show_tree(console, value, outputs.full)
    if outputs.levels:
        show_levels(console, value)


def show_summary(console: Any, value: Evaluation) -> None:
    """Print the error and cost of the plan."""
    plan = value.plan
    tree = plan.tree
    paid = f" for {number(value.expected_cost)}" if tree.problem.has_prices else ""
    console.print(
        f"[bold]Misclassifies {percent(value.decided_error)}[/] of "
        f"{'the labelled ' if plan.handed_over else ''}items "
        f"[dim](exact)[/] with {amount(value.expected_answers, 'answer')} per item{paid}."
    )
    loss = tree.problem.loss
    if plan.handed_over:
        left = "referred to an expert" if loss and loss.refer is not None else "left undecided"
        console.print(f"[bold]{percent(value.undecided)}[/] of all items are {left}.")
    if loss is not None:
        console.print(f"[bold]Expected loss {number(value.risk)}[/] per item [dim](exact)[/].")
    kind = "one worker per question" if int(plan.votes.max()) == 1 else plan.method
    proven = "upper bound" if value.additive_is_bound else "approximation"
    bound = f"additive {percent(value.additive)} ({proven})"
    if loss is not None:
        bound = f"additive risk {number(value.additive_risk)} ({proven})"
    console.print(
        f"[dim]{tree.method} · {plural(tree.n_nodes, 'node')}, depth {tree.depth} · {kind} · "
        f"{bound}[/]\n"
    )


def show_certificate(console: Any, tree: Tree) -> None:
    """Print what is proven about the tree, if anything."""
    proof = tree.certificate
    if proof is None:
        return
    what = "additive error" if proof.objective == "additive" else "misclassification"
    shown: Callable[[float], str] = percent
    if tree.problem.loss is not None:
        what, shown = "additive risk", number
    if proof.status == "optimal":
        console.print(f"Proven: no tree has a smaller {what} than {shown(proof.value)}.")
    elif proof.status == LESS_MISCLASSIFIED:
        console.print(
            f"Proven: no tree has a smaller {what} than {percent(proof.lower_bound)}. This one has "
            f"{percent(proof.value)}, but misclassifies fewer items than the tree that attains it."
        )
    else:
        stop = proof.status if proof.status == "interrupted" else f"stopped by the {proof.status}"
        console.print(
            f"{stop.capitalize()}: {what} {shown(proof.value)}, and no tree is below "
            f"{shown(proof.lower_bound)} (gap {percent(proof.gap)})."
        )
    console.print(f"[dim]{plural(proof.nodes, 'set')} of classes searched.[/]\n")


def show_tree(console: Any, value: Evaluation, full: bool = False) -> None:
    """Draw the tree; small subtrees of large trees are folded unless `full`."""
    from rich.text import Text

    for line in tree_lines(value, full):
        text = Text()
        for words, style in line:
            text.append(words, style=style)
        console.print(text, soft_wrap=True)
    console.print(f"[dim]{LEGEND}[/]\n")


def tree_lines(value: Evaluation, full: bool = False) -> Iterator[list[tuple[str, str]]]:
    """Yield the lines of the drawing as (words, style) pieces."""
    plan, facts = value.plan, Facts(value.plan, value)
    tree, problem = plan.tree, plan.tree.problem
    folded = set() if full else set(next(views(tree)).folds)
    for rail, branch, child in tree.outline(folded):
        style = {"no  → ": "dark_orange3", "yes → ": "dark_cyan"}.get(branch, "")
        start = [(rail, "dim"), (branch, style)]
        if child < 0:
            yield [*start, *_leaf_words(facts, ~child)]
        elif child in folded:
            names = listing(tree.nodes[child].classes, most=MOST_NAMES)
            size = f"… {facts.fold_text(child)} of items: "
            yield [*start, (size, "italic"), (names, "dim")]
        else:
            question = int(tree.question[child])
            yield [*start, (problem.text(question), "bold"), (_node_words(facts, child), "dim")]


def _node_words(facts: Facts, node: int) -> str:
    plan, tree = facts.plan, facts.tree
    words = [f"error {percent(facts.error(node))}"]
    listed = plan.rule.listed(int(plan.votes[node]), tree.problem.n_answers.max() > 2)
    words += [listed] if listed else []
    words.append("all items" if node == 0 else f"{percent(facts.share(node))} of items")
    words.append(plural(len(tree.nodes[node].classes), "class", "classes"))
    return "   " + " · ".join(words)


def _leaf_words(facts: Facts, leaf: int) -> list[tuple[str, str]]:
    found = [(facts.label(leaf), "bold dark_cyan")]
    if facts.others(leaf):
        found.append((f" (or {', '.join(facts.others(leaf))})", "dark_cyan"))
    if leaf in facts.plan.handed_over:
        found.insert(0, ("perhaps ", "italic"))
    return [*found, ("   " + " · ".join(facts.leaf_small(leaf)), "dim")]


def show_levels(console: Any, value: Evaluation) -> None:
    """Print the level table: entropy, error and scores."""
    table = make_table("level", "sets", "entropy (bits)", "g", "b", "F^m", "F^c", left=0)
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
