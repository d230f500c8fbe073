"""Every number and every checkable statement of the paper, with the recomputed value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from crowdtree.core.evaluation import evaluate
from crowdtree.core.problem import DASH
from crowdtree.core.text import number
from crowdtree.designs.designers import design
from crowdtree.paper.errata import Erratum
from crowdtree.paper.figures import fig_1_tree
from crowdtree.paper.printed import FIG_1B, all_trees, same_shape, table_1

AGREES, DIFFERS, GIVEN, PARTLY = "agrees", "differs", "given", "only in part"


@dataclass(frozen=True)
class Comparison:
    """One number or statement: where, what, as printed, as recomputed, and the verdict."""

    place: str
    what: str
    printed: str
    recomputed: str
    value: float | None
    verdict: str


def comparisons(data: dict[str, Any], found: list[Erratum]) -> list[Comparison]:
    """Compare the paper with the recomputed figures, in the order of the paper."""
    evidence = {erratum.name: erratum.evidence for erratum in found}
    return [
        *_table_1(),
        *_figure_1(evidence["figure-1-errors"]),
        *_figure_2(data["fig_2"]),
        *_section_3(evidence),
        *_figure_3(data["fig_3"]),
        *_section_4(evidence["proposition-1-proof"]),
        *_figure_4(data["fig_4"]),
    ]


def _verdict(printed: str, value: float) -> str:
    """Whether a number rounds to what is printed."""
    digits = len(printed.partition(".")[2])
    return AGREES if f"{value:.{digits}f}" == printed else DIFFERS


def _judge(true: bool) -> str:
    return AGREES if true else DIFFERS


def _table_1() -> Iterator[Comparison]:
    problem, place = table_1(), "Table 1"
    prior = ", ".join(f"{p:.2f}" for p in problem.prior)
    total = float(problem.prior.sum())
    yield Comparison(place, "prior of c1 to c5", prior, f"sums to {total:.10g}", total, GIVEN)
    whole = [
        name
        for name, row in zip(problem.questions, problem.outcome, strict=True)
        if DASH not in row and row.min() < row.max()
    ]
    part = [
        (name, [c for c, cell in zip(problem.classes, row, strict=True) if cell != DASH])
        for name, row in zip(problem.questions, problem.outcome, strict=True)
        if DASH in row
    ]
    printed = "T1 T2 T3 T4"
    yield Comparison(
        "Section II", "tests that split all objects", printed, " ".join(whole), len(whole),
        _judge(" ".join(whole) == printed),
    )  # fmt: skip
    words = "; ".join(f"{name}: {' '.join(classes)}" for name, classes in part)
    yield Comparison(
        "Section II", "test that splits a subset only", "T5: c1 c2 c3 c5", words, len(part),
        _judge(words == "T5: c1 c2 c3 c5"),
    )  # fmt: skip
    yield Comparison("Section II", "error of every test", "0.05", "taken as given", 0.05, GIVEN)


def _figure_1(evidence: dict[str, Any]) -> Iterator[Comparison]:
    drawn = {
        "a": ["c1 c2 c3 c4 c5", "c1 c3 c4", "c2 c5", "c1 c3"],
        "b": ["c1 c2 c3 c4 c5", "c1 c2 c3 c5", "c2 c3 c5", "c2 c5"],
    }
    for which, printed in (("a", "0.068"), ("b", "0.05")):
        place = f"Fig. 1({which})"
        sets = [" ".join(node.classes) for node in fig_1_tree(which).nodes]
        yield Comparison(
            place, "classes at each test", " | ".join(drawn[which]), " | ".join(sets), len(sets),
            _judge(sets == drawn[which]),
        )  # fmt: skip
        exact = evidence[f"exact_{which}"]
        yield Comparison(
            place, "misclassification", printed, number(exact, 7), exact, _verdict(printed, exact)
        )
        part = evidence[f"without_classes_deeper_than_2_{which}"]
        yield Comparison(
            place, "the same without classes deeper than 2", printed, number(part, 7), part,
            f"explains {printed}",
        )  # fmt: skip


def _figure_2(rows: list[dict[str, Any]]) -> Iterator[Comparison]:
    printed = [
        [["c1", "c2", "c3", "c4", "c5"]],
        [["c1", "c3", "c4"], ["c2", "c5"]],
        [["c1", "c3"], ["c4"], ["c2"], ["c5"]],
        [["c1"], ["c2"], ["c3"], ["c4"], ["c5"]],
    ]
    for row, sets in zip(rows, printed, strict=True):
        text = " ".join("{" + ",".join(part) + "}" for part in sets)
        same = sorted(text.split()) == sorted(row["partition"].split())
        yield Comparison(
            "Fig. 2", f"partition of level {row['level']}", text, row["partition"],
            len(row["partition"].split()), _judge(same),
        )  # fmt: skip
    deepest = rows[-1]
    yield Comparison(
        "Section II", "entropy of the last level", "0", number(deepest["entropy"]),
        deepest["entropy"], _judge(deepest["entropy"] == 0),
    )  # fmt: skip


def _section_3(evidence: dict[str, dict[str, Any]]) -> Iterator[Comparison]:
    lower = evidence["additive-lower-bound"]
    yield Comparison(
        "Section III-A", "H(L0)/F^m_max <= P_m for Fig. 1(b)", "holds",
        f"{number(lower['printed_lower_bound_fig_1b'], 4)} <= {number(lower['exact_fig_1b'], 4)}",
        lower["printed_lower_bound_fig_1b"],
        _judge(lower["printed_lower_bound_fig_1b"] <= lower["exact_fig_1b"]),
    )  # fmt: skip
    upper = evaluate(fig_1_tree("b"))
    bound = upper.bounds.misclassification_upper
    yield Comparison(
        "Section III-A", "P_m <= H(L0)/F^m_min for Fig. 1(b)", "holds",
        f"{number(upper.misclassification, 4)} <= {number(bound, 4)}", bound,
        _judge(upper.misclassification <= bound),
    )  # fmt: skip
    both = evidence["multiplicative-bounds"]
    low, high = both["printed_lower_fig_1b"], both["printed_upper_fig_1b"]
    exact = both["exact_P_c_fig_1b"]
    yield Comparison(
        "Section III-B", "(H(L0)+1)/F^c_max <= P_c <= (H(L0)+1)/F^c_min for Fig. 1(b)", "holds",
        f"{number(low, 4)} <= {number(exact, 4)} <= {number(high, 4)}", low,
        _judge(low <= exact <= high),
    )  # fmt: skip
    yield from _designs(evidence["minimise-fc"])
    yield _accuracy()
    yield Comparison("Section III-B", "r", "1", "taken as given", 1.0, GIVEN)


def _designs(fc: dict[str, Any]) -> Iterator[Comparison]:
    errors = [step / 100 for step in range(1, 50)]
    same = sum(same_shape(design(table_1(e)), FIG_1B) for e in errors)
    yield Comparison(
        "Section III-B", "F^m gives Fig. 1(b), for any p*", "yes",
        f"for {same} of {len(errors)} values of p*", same, _judge(same == len(errors)),
    )  # fmt: skip
    yield Comparison(
        "Section III-B", "F^c, minimised as printed, gives Fig. 1(b)", "yes",
        f"no: misclassifies {number(fc['fc_printed_misclassification'], 4)}",
        fc["fc_printed_misclassification"], _judge(fc["fc_printed_gives_fig_1b"]),
    )  # fmt: skip


def _accuracy() -> Comparison:
    values = [evaluate(tree) for tree in all_trees(table_1())]
    better = sum(
        abs(v.multiplicative - (1 - v.misclassification))
        < abs(v.additive - v.misclassification) - 1e-15
        for v in values
    )
    return Comparison(
        "Section III-B", "the multiplicative approximation is the more accurate", "yes",
        f"for {better} of {len(values)} trees", better, _judge(better == len(values)),
    )  # fmt: skip


def _figure_3(rows: list[dict[str, Any]]) -> Iterator[Comparison]:
    inner = [row for row in rows if row["worker_error"] > 0]
    wins = sum(row["proposed"] < row["random_mean"] for row in inner)
    yield Comparison(
        "Fig. 3", "the proposed tree beats the mean of all orders", "significantly",
        f"at {wins} of {len(inner)} values of p* > 0", wins, _judge(wins == len(inner)),
    )  # fmt: skip
    for error in (0.05, 0.2, 0.3):
        row = next(r for r in rows if r["worker_error"] == error)
        words = f"{number(row['proposed'], 5)} against {number(row['random_mean'], 5)}"
        yield Comparison(
            "Fig. 3", f"proposed against random order, p* = {error:g}", "drawn, not printed",
            words, row["proposed"], "new",
        )  # fmt: skip
    gap = [row["random_mean"] - row["proposed"] for row in rows]
    peak = max(range(len(gap)), key=gap.__getitem__)
    grows = all(a < b for a, b in pairwise(gap))
    yield Comparison(
        "Fig. 3", "the improvement grows with p*", "yes",
        f"the difference grows up to p* = {rows[peak]['worker_error']:g} ({number(gap[peak], 4)})",
        gap[peak], AGREES if grows else PARTLY,
    )  # fmt: skip
    ratio = [row["random_mean"] / row["proposed"] for row in inner]
    yield Comparison(
        "Fig. 3", "the same as a ratio", "not said",
        f"falls from {number(ratio[0])} to {number(ratio[-1])} times", ratio[0], "new",
    )  # fmt: skip


def _section_4(evidence: dict[str, Any]) -> Iterator[Comparison]:
    cells = evidence["grid_of_errors"] * evidence["grid_of_pairs"]
    holds = evidence["proposition_holds_on_the_grid"]
    yield Comparison(
        "Proposition 1", "f_e(k) falls, by less and less", "proved",
        f"{'holds' if holds else 'fails'} on a grid of {cells:,} cells", cells, _judge(holds),
    )  # fmt: skip
    off = evidence["least_relative_error_with_exponent_j"]
    yield Comparison(
        "Appendix A", "exponent under the integral", "j",
        f"j-1; with j the derivative is off by {number(100 * off)} % at the least", off,
        _judge(off < 1e-6),
    )  # fmt: skip


def _figure_4(rows: list[dict[str, Any]]) -> Iterator[Comparison]:
    yield Comparison("Fig. 4", "error of every worker", "0.2", "taken as given", 0.2, GIVEN)
    for pairs in (0, 10, 25):
        row = rows[pairs]
        words = ", ".join(
            f"{name} {number(row[name], 4)}"
            for name in ("single", "random", "paper-fm", "everyone", "marginal")
        )
        yield Comparison(
            "Fig. 4", f"misclassification at K = {pairs}", "drawn, not printed", words,
            row["paper-fm"], "new",
        )  # fmt: skip
    rest = rows[1:]
    yield _claim(rest, "random", "single", "random assignment beats a single test")
    yield _claim(rest, "paper-fm", "random", "the proposed rule beats random assignment")
    yield _claim(rest, "everyone", "paper-fm", "everyone on every test is best")
    yield _claim(
        rest, "marginal", "paper-fm", "marginal staffing beats the proposed rule", new=True
    )
    yield from _costs(rows)


def _claim(
    rows: list[dict[str, Any]], better: str, worse: str, what: str, new: bool = False
) -> Comparison:
    wins = [row["K"] for row in rows if row[better] <= row[worse] + 1e-12]
    lost = [row["K"] for row in rows if row["K"] not in wins]
    words = f"for {len(wins)} of {len(rows)} values of K > 0"
    if lost:
        words += f", not for K = {', '.join(map(str, lost))}"
    verdict = "new" if new else AGREES if not lost else PARTLY
    return Comparison("Fig. 4", what, "not said" if new else "yes", words, len(wins), verdict)


def _costs(rows: list[dict[str, Any]]) -> Iterator[Comparison]:
    nodes, questions = fig_1_tree("b").n_nodes, table_1().n_questions
    workers = 2 * 25
    ratio = nodes * (workers + 1) / (nodes + workers)
    yield Comparison(
        "Section IV", "cost of everyone, as a multiple of the proposed rule's (K = 25)",
        f"M = {questions}", f"{number(ratio)}; tends to {nodes}, the nodes of the tree", ratio,
        AGREES if round(ratio) == questions else PARTLY,
    )  # fmt: skip
    row = rows[26]
    gap, times = row["paper-fm"] - row["everyone"], row["paper-fm"] / row["everyone"]
    yield Comparison(
        "Section IV", "for K > 25 the proposed rule is comparable to everyone", "yes",
        f"at K = 26 {number(100 * gap)} percentage points apart, but {number(times)} times the "
        "error", times, AGREES if times < 2 else PARTLY,
    )  # fmt: skip
