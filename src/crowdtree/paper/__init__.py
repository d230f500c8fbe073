"""The paper, recomputed: its figures, each of its numbers, and its errors with the evidence."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from crowdtree.core.checking import check_call
from crowdtree.core.evaluation import evaluate
from crowdtree.core.result_methods import HtmlShown
from crowdtree.core.text import number, percent
from crowdtree.designs.designers.greedy import fc_printed
from crowdtree.paper.errata import Erratum, find_errata
from crowdtree.paper.figures import fig_1, fig_1_tree, fig_2, fig_3, fig_4
from crowdtree.paper.numbers import Comparison, comparisons
from crowdtree.paper.printed import all_trees, table_1
from crowdtree.show.plots.html import page, tree_section
from crowdtree.show.plots.save import svg_to_png, write_atomic
from crowdtree.show.plots.trees import tree_svg, tree_views
from crowdtree.show.report.templates import render

__all__ = [
    "Reproduction",
    "all_trees",
    "fc_printed",
    "fig_1_tree",
    "find_errata",
    "reproduce",
    "table_1",
]


@dataclass(frozen=True, repr=False)
class Reproduction(HtmlShown):
    """The results, and the folder they were written to."""

    out: Path
    data: dict[str, Any]
    errata: list[Erratum]

    @cached_property
    def table(self) -> list[Comparison]:
        """Printed against recomputed, row by row."""
        return comparisons(self.data, self.errata)

    def numbers(self) -> dict[str, Any]:
        """Everything that was computed, as plain data."""
        return self.data | {
            "table": [asdict(row) for row in self.table],
            "errata": [asdict(erratum) for erratum in self.errata],
        }

    def to_dict(self) -> dict[str, Any]:
        """The numbers, and the folder they were written to."""
        return {"out": str(self.out)} | self.numbers()

    def __repr__(self) -> str:
        return f"<Reproduction: {self.lines()[-1]}>"

    def lines(self) -> list[str]:
        """A summary in a few lines."""
        a, b = (row["misclassification"] for row in self.data["fig_1"])
        k10 = self.data["fig_4"][10]
        differ = sum(row.verdict == "differs" for row in self.table)
        shown = sum(erratum.confirmed for erratum in self.errata)
        return [
            f"Fig. 1(a) misclassifies {number(a, 7)} (printed 0.068), "
            f"Fig. 1(b) {number(b, 7)} (printed 0.05).",
            f"Fig. 4, K = 10: paper-fm {number(k10['paper-fm'], 5)}, "
            f"marginal {number(k10['marginal'], 5)}.",
            f"{len(self.table)} numbers and statements checked, {differ} differ; "
            f"{shown} of {len(self.errata)} errata shown by computed evidence.",
        ]


def reproduce(out: str | os.PathLike[str]) -> Reproduction:
    """Recompute every figure and number of the paper and write them to a folder.

    Parameters
    ----------
    out
        The folder, created if missing. It gets the data (CSV and JSON) and pictures (SVG and
        PNG) of Fig. 1 to 4, ``printed-and-recomputed`` and ``errata`` (Markdown and JSON), and an
        ``index.html`` that shows it all.

    Returns
    -------
    Reproduction
        ``lines()`` as text, ``to_dict()`` as data.

    Examples
    --------
    >>> made = reproduce("paper")  # doctest: +SKIP
    >>> print("\\n".join(made.lines()))  # doctest: +SKIP
    """
    check_call(reproduce, locals())
    folder = Path(out)
    data = {"fig_1": fig_1(), "fig_2": fig_2(), "fig_3": fig_3(), "fig_4": fig_4()}
    made = Reproduction(folder, data, find_errata())
    for name, rows in data.items():
        _write_rows(folder / name.replace("_", ""), rows)
    rows = [asdict(row) for row in made.table]
    _write_rows(folder / "printed-and-recomputed", rows)
    write_atomic(folder / "printed-and-recomputed.md", _table_text(made.table))
    write_atomic(folder / "errata.json", _json([asdict(erratum) for erratum in made.errata]))
    write_atomic(folder / "errata.md", _errata_text(made.errata))
    write_atomic(folder / "numbers.json", _json(made.numbers()))
    charts = _draw(folder, data)
    write_atomic(folder / "index.html", _page(made, charts))
    return made


def _draw(folder: Path, data: Mapping[str, Any]) -> dict[str, str]:
    from crowdtree.paper import pictures
    from crowdtree.show.plots.vega import chart_svg

    charts = {
        "fig2": pictures.chart_of_fig_2(),
        "fig3": pictures.chart_of_fig_3(data["fig_3"]),
        "fig4": pictures.chart_of_fig_4(data["fig_4"]),
    }
    drawn = {
        f"fig1{which}": tree_svg(fig_1_tree(which), title=_tree_title(which)) for which in "ab"
    }
    drawn |= {name: chart_svg(chart) for name, chart in charts.items()}
    for name, svg in drawn.items():
        write_atomic(folder / f"{name}.svg", svg)
        write_atomic(folder / f"{name}.png", svg_to_png(svg))
    return {name: chart_svg(chart, page=True) for name, chart in charts.items()}


def _tree_title(which: str) -> str:
    wrong = percent(evaluate(fig_1_tree(which)).misclassification)
    return f"Fig. 1({which}): {wrong} of items get a wrong label"


def _page(made: Reproduction, charts: Mapping[str, str]) -> str:
    trees = [
        (_tree_title(which), tree_section(tree_views(fig_1_tree(which), prefix=f"fig1{which}")))
        for which in "ab"
    ]
    title = "Decision trees for crowds: the paper, recomputed"
    nodes = fig_1_tree("b").n_nodes
    body = render("paper.html", title=title, made=made, trees=trees, charts=charts, nodes=nodes)
    return page(title, body)


def _write_rows(stem: Path, rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomic(stem.with_name(stem.name + ".csv"), text.getvalue())
    write_atomic(stem.with_name(stem.name + ".json"), _json(rows))


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _cells(values: Iterable[str]) -> str:
    return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"


def _table_text(rows: Iterable[Comparison]) -> str:
    head = ("where", "what", "printed", "recomputed", "verdict")
    body = [_cells((r.place, r.what, r.printed, r.recomputed, r.verdict)) for r in rows]
    return "\n".join(["# Printed and recomputed", "", _cells(head), _cells(["---"] * 5), *body, ""])


def _errata_text(found: Iterable[Erratum]) -> str:
    lines = ["# Errata, with the evidence computed", ""]
    for erratum in found:
        shown = "shown by" if erratum.confirmed else "NOT shown by"
        lines += [
            f"## {erratum.place}",
            "",
            f"Printed: {erratum.printed}",
            "",
            f"True: {erratum.truth}",
            "",
            f"This is {shown} the evidence:",
            "",
            *(
                f"- {key.replace('_', ' ')}: {_plain(value)}"
                for key, value in erratum.evidence.items()
            ),
            "",
        ]
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Write a number without the last digits, which are rounding errors."""
    return f"{value:.8g}" if isinstance(value, float) else value
