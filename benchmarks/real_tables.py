"""Real tables: what each designer makes of them, as a table for the docs.

    python -m benchmarks.real_tables --out docs/measured/real-tables.md

Reads the data folder (CROWDTREE_DATA, or ../shared/data beside the repository), which is not part
of the repository.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import crowdtree as ct
from benchmarks.realdata import ABSENT, folder, read_table

METHODS = ("fm", "fc", "gain", "gini")
COMMON_ERROR = 0.1


@dataclass(frozen=True)
class Recipe:
    """How a folder of real data becomes a problem."""

    name: str
    folder: str
    dash: str = "inapplicable"
    groups: bool = False
    strength: bool = False
    prior: bool = False

    @property
    def words(self) -> str:
        """How it was read, for the report."""
        said = ["`-` = either" if self.dash == "either" else "`-` = inapplicable"]
        if self.groups:
            said.append("groups allowed")
        said.append("errors from strength" if self.strength else f"error {COMMON_ERROR}")
        said.append("given priors" if self.prior else "equal priors")
        return ", ".join(said)


RECIPES = (
    Recipe("awa2", "awa2", strength=True),
    Recipe("ddxplus", "ddxplus"),
    Recipe("key_grass_genera", "key_grass_genera"),
    Recipe("soybean_large", "soybean_large", "either", groups=True, strength=True, prior=True),
    Recipe("mushroom_species", "mushroom_species", "either", groups=True),
    Recipe("uci_zoo", "uci_zoo", groups=True),
    Recipe("apascal", "apascal", "either", groups=True, strength=True, prior=True),
    Recipe("leuven_animals", "leuven_animals", "either", groups=True, strength=True),
)


def read_strength(place: Path) -> NDArray[np.float64]:
    rows = read_table(place, "strength")[1:]
    return np.array([[float(cell) if cell else np.nan for cell in row[1:]] for row in rows])


def read_prior(place: Path, classes: list[str]) -> list[float]:
    rows = read_table(place, "priors")[1:]
    count = {row[0]: float(row[1]) for row in rows}
    return [count[name] for name in classes]


def load(recipe: Recipe, data: Path) -> ct.Problem:
    """Make the problem of a recipe."""
    place = data / recipe.folder
    header, *rows = read_table(place, "table")
    classes, questions = header[1:], [row[0] for row in rows]
    outcome = [row[1:] for row in rows]
    prior = read_prior(place, classes) if recipe.prior else None
    if recipe.strength:
        return ct.Problem.from_strength(
            classes, prior, questions, read_strength(place),
            outcome=outcome, dash=recipe.dash, normalise=True,
        )  # fmt: skip
    return ct.Problem(
        classes, prior, questions, outcome, COMMON_ERROR, dash=recipe.dash, normalise=True
    )


@dataclass(frozen=True)
class Finding:
    """What the designers make of one table."""

    recipe: Recipe
    problem: ct.Problem
    worth: dict[str, float]
    groups: int
    random_mean: float
    random_half_width: float


def examine(recipe: Recipe, data: Path, orders: int, seed: int = 0) -> Finding:
    """Design a table with every method and with many random orders of questions."""
    problem = load(recipe, data)
    rng = np.random.default_rng(seed)
    trees = {m: ct.design(problem, m, allow_groups=recipe.groups) for m in METHODS}
    draws = [
        ct.evaluate(
            ct.design(problem, "random", rng=rng, allow_groups=recipe.groups)
        ).misclassification
        for _ in range(orders)
    ]
    return Finding(
        recipe=recipe,
        problem=problem,
        worth={m: ct.evaluate(tree).misclassification for m, tree in trees.items()},
        groups=sum(len(members) > 1 for members in trees["fm"].leaf_classes),
        random_mean=float(np.mean(draws)),
        random_half_width=float(1.96 * np.std(draws, ddof=1) / np.sqrt(orders)),
    )


def report(findings: list[Finding], orders: int) -> str:
    lines = [
        "# Real tables",
        "",
        "Written by `python -m benchmarks.real_tables --out docs/measured/real-tables.md`; do not "
        "edit. The data folder is not part of the repository.",
        "",
        "Misclassification with one worker per question, exact (docs/model.md, section 3), errors "
        f"of groups included. *random* is an estimate: the mean over {orders} random orders of the "
        "questions, each node asking the first that splits it, with a 95 % interval. The least "
        "of a row is bold.",
        "",
        "| table | classes x questions | read as | fm | fc | gain (ID3) | gini (CART) | random |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for found in findings:
        least = min(*found.worth.values(), found.random_mean)
        cells = [
            f"**{value:.4f}**" if value <= least * (1 + 1e-9) else f"{value:.4f}"
            for value in (found.worth[m] for m in METHODS)
        ]
        size = f"{found.problem.n_classes} x {found.problem.n_questions}"
        spread = f"{found.random_mean:.4f} ± {found.random_half_width:.4f}"
        lines.append(
            f"| {found.recipe.name} | {size} | {found.recipe.words} | "
            + " | ".join(cells)
            + f" | {spread} |"
        )
    return "\n".join([*lines, "", *_remarks(findings), ""])


def _remarks(findings: list[Finding]) -> list[str]:
    """What holds and what does not, from the numbers."""
    beaten = [f.recipe.name for f in findings if min(f.worth["fm"], f.worth["fc"]) > f.random_mean]
    behind = [
        f.recipe.name
        for f in findings
        if min(f.worth["fm"], f.worth["fc"]) > min(f.worth["gain"], f.worth["gini"]) * (1 + 1e-9)
    ]
    grouped = [f.recipe.name for f in findings if f.groups]
    said = [
        f"The better of fm and fc is at least as good as ID3 and CART on "
        f"{len(findings) - len(behind)} of {len(findings)} tables"
        + (f", and not on {', '.join(behind)}." if behind else "."),
        f"Random orders do better on average on: {', '.join(beaten) or 'none'}.",
    ]
    if grouped:
        said.append(
            f"Some classes stay together on {', '.join(grouped)}: no question separates them "
            "by two different definite answers, so these tables require "
            "`allow_groups=True`."
        )
    said.append(
        "Where priors are equal and no cell is `-`, every split lowers the Gini impurity by the "
        "same amount, so gini asks the first question of the file that splits."
    )
    return [" ".join(said)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report there, too")
    parser.add_argument("--orders", type=int, default=100)
    parser.add_argument("--only", nargs="*", help="names of tables")
    options = parser.parse_args()
    data = folder()
    if data is None:
        raise SystemExit(ABSENT)
    chosen = [r for r in RECIPES if not options.only or r.name in options.only]
    text = report([examine(recipe, data, options.orders) for recipe in chosen], options.orders)
    if options.out:
        options.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
