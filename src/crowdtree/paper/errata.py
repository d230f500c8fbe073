"""The errors of the paper, each with evidence computed at run time.

Every function covers the whole range (all 42 trees, a grid of errors) and returns what the paper
prints, what is true, and the numbers that show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdtree.core import voting
from crowdtree.core.evaluation import Evaluation, evaluate
from crowdtree.core.text import number
from crowdtree.core.tree import Tree
from crowdtree.designs.designers import design
from crowdtree.paper.figures import fig_1_tree
from crowdtree.paper.printed import FIG_1B, all_trees, same_shape, table_1


@dataclass(frozen=True)
class Erratum:
    """A statement of the paper, what is true instead, and the evidence."""

    name: str
    place: str
    printed: str
    truth: str
    evidence: dict[str, Any]
    confirmed: bool
    """Whether the evidence, as computed now, shows the error."""


def find_errata() -> list[Erratum]:
    """Compute the evidence for every erratum."""
    values = [evaluate(tree) for tree in all_trees(table_1())]
    return [check(values) for check in ERRATA]


def figure_1_errors(values: list[Evaluation]) -> Erratum:
    """The two misclassification figures leave out every class deeper than two questions."""
    evidence: dict[str, Any] = {"trees": len(values)}
    confirmed = True
    for which, printed in (("a", 0.068), ("b", 0.05)):
        tree = fig_1_tree(which)
        exact, shallow = evaluate(tree).misclassification, _sum_to_depth(tree, 2)
        evidence |= {
            f"printed_{which}": printed,
            f"exact_{which}": exact,
            f"without_classes_deeper_than_2_{which}": shallow,
        }
        digits = len(str(printed).split(".")[1])
        confirmed &= abs(exact - printed) > 0.01 and abs(shallow - printed) <= 0.5 * 10**-digits
    least = min(value.misclassification for value in values)
    evidence["least_of_all_trees"] = least
    evidence["fig_1b_is_best_of_all_trees"] = bool(evidence["exact_b"] <= least + 1e-12)
    return Erratum(
        "figure-1-errors",
        "Section II, Fig. 1",
        "Fig. 1(a) misclassifies 0.068 and Fig. 1(b) 0.05.",
        f"Equation (2) gives {number(evidence['exact_a'], 7)} and "
        f"{number(evidence['exact_b'], 7)}. The printed figures are the same sums with every class "
        "left out that takes more than two questions.",
        evidence,
        confirmed,
    )


def _sum_to_depth(tree: Tree, deepest: int) -> float:
    """Equation (2) over the classes that take at most `deepest` questions."""
    correct, prior = evaluate(tree).correct, tree.problem.prior
    total = 0.0
    for depth, rows in enumerate(tree.leaf_rows, start=1):
        if depth <= deepest:
            total += float(prior[rows.cls] @ (1 - correct[rows.cls]))
    return total


def additive_lower_bound(values: list[Evaluation]) -> Erratum:
    """The lower bound holds for the additive approximation, not for P_m."""
    value = evaluate(fig_1_tree("b"))
    lower = value.bounds.printed_misclassification.lower
    broken = [v for v in values if v.misclassification < v.bounds.additive.lower - 1e-12]
    holds = [
        v
        for v in values
        if v.bounds.additive.lower - 1e-12 <= v.additive <= v.bounds.additive.upper + 1e-12
        and v.misclassification <= v.bounds.misclassification_upper + 1e-12
    ]
    evidence = {
        "printed_lower_bound_fig_1b": lower,
        "exact_fig_1b": value.misclassification,
        "additive_fig_1b": value.additive,
        "trees": len(values),
        "trees_below_the_printed_bound": len(broken),
        "trees_within_the_corrected_bounds": len(holds),
    }
    return Erratum(
        "additive-lower-bound",
        "Section III-A",
        "H(L0) / F^m_max <= P_m.",
        f"For Fig. 1(b) the bound is {number(lower, 4)} and P_m is "
        f"{number(value.misclassification, 4)}. It bounds the additive approximation "
        f"({number(value.additive, 4)}); the upper bound holds for both.",
        evidence,
        lower > value.misclassification and len(holds) == len(values),
    )


def multiplicative_bounds(values: list[Evaluation]) -> Erratum:
    """The power D is missing in the bounds of P_c."""
    value = evaluate(fig_1_tree("b"))
    printed, product = value.bounds.printed_correct, value.bounds.product
    lowest = [v.bounds.printed_correct.lower for v in values]
    outside = [
        v
        for v, low in zip(values, lowest, strict=True)
        if not low <= 1 - v.misclassification <= v.bounds.printed_correct.upper
    ]
    holds = [
        v
        for v in values
        if v.bounds.product.lower - 1e-12 <= v.multiplicative <= v.bounds.product.upper + 1e-12
    ]
    evidence = {
        "printed_lower_fig_1b": printed.lower,
        "printed_upper_fig_1b": printed.upper,
        "exact_P_c_fig_1b": 1 - value.misclassification,
        "product_b_fig_1b": value.multiplicative,
        "corrected_lower_fig_1b": product.lower,
        "corrected_upper_fig_1b": product.upper,
        "trees": len(values),
        "trees_with_printed_lower_bound_above_1": sum(low > 1 for low in lowest),
        "trees_with_P_c_outside_the_printed_bounds": len(outside),
        "trees_with_product_b_inside_the_corrected_bounds": len(holds),
        "largest_printed_lower_bound": max(lowest),
    }
    return Erratum(
        "multiplicative-bounds",
        "Section III-B",
        "(H(L0)+1) / F^c_max <= P_c <= (H(L0)+1) / F^c_min.",
        f"H(L0)+1 is a product of D factors, so the power D is missing. For Fig. 1(b) the printed "
        f"lower bound of a probability is {number(printed.lower, 4)}. The corrected interval, "
        f"{number(product.lower, 4)} to {number(product.upper, 4)}, holds "
        f"{number(value.multiplicative, 4)} = prod b.",
        evidence,
        printed.lower > 1 and len(holds) == len(values) and len(outside) == len(values),
    )


def minimise_fc(values: list[Evaluation]) -> Erratum:
    """Minimising F^c as printed gives the worst tree of all."""
    tree = design(table_1(), "fc-printed")
    mine = evaluate(tree).misclassification
    wrong = sorted(value.misclassification for value in values)
    corrected, additive = design(table_1(), "fc"), design(table_1(), "fm")
    evidence: dict[str, Any] = {
        "fc_printed_tree": tree.to_dict(),
        "fc_printed_misclassification": mine,
        "trees": len(values),
        "trees_that_are_worse": sum(value > mine + 1e-12 for value in wrong),
        "best_of_all_trees": wrong[0],
        "worst_of_all_trees": wrong[-1],
        "fm_gives_fig_1b": same_shape(additive, FIG_1B),
        "fc_corrected_gives_fig_1b": same_shape(corrected, FIG_1B),
        "fc_printed_gives_fig_1b": same_shape(tree, FIG_1B),
    }
    return Erratum(
        "minimise-fc",
        "Section III-B",
        "Choose the questions that minimise F^c; both methods give Fig. 1(b).",
        f"The printed F^c is smallest for the least informative question: minimising it gives a "
        f"tree that misclassifies {number(mine, 4)}, and {evidence['trees_that_are_worse']} of "
        f"the {len(values)} trees are worse. The corrected F^c, maximised, gives Fig. 1(b).",
        evidence,
        not evidence["fc_printed_gives_fig_1b"]
        and evidence["fc_corrected_gives_fig_1b"]
        and evidence["trees_that_are_worse"] == 0,
    )


def proposition_1_proof(_values: list[Evaluation]) -> Erratum:
    """The exponents of the proof are off by one, and its last step does not follow."""
    from scipy.special import beta

    tolerance = 1e-6
    cases = [(float(j), e) for j in (1, 2, 5, 10) for e in (0.05, 0.2, 0.4)]
    slopes = [_slope(j, e) for j, e in cases]
    off: dict[int, list[float]] = {
        shift: [
            abs(_double_integral(j - shift, e) / float(beta(j, j)) ** 2 / slope - 1)
            for (j, e), slope in zip(cases, slopes, strict=True)
        ]
        for shift in (0, 1)
    }
    grow = [float(beta(j, j) / beta(j + 1, j + 1)) ** 2 for j in range(1, 11)]
    evidence: dict[str, Any] = {
        "cases": len(cases),
        "least_relative_error_with_exponent_j": _short(min(off[0])),
        "tolerance_of_the_numerical_derivative": tolerance,
        "exponent_j_minus_1_agrees": bool(max(off[1]) < tolerance),
        "least_growth_of_the_factor_in_front": _short(min(grow)),
    } | _proposition_1_on_a_grid()
    return Erratum(
        "proposition-1-proof",
        "Appendix A",
        "The derivative has (t-t^2)^j (s-s^2)^j under the integral, and its size shrinks with j "
        "because both factors are at most 1.",
        "The exponents should be j-1. The last step does not follow: the factor in front of the "
        f"integral grows at least {number(min(grow), 3)} times with each step of j. The "
        "proposition itself is true: each gain is at most 4e(1-e) times the one before.",
        evidence,
        min(off[0]) > 0.5
        and bool(evidence["exponent_j_minus_1_agrees"])
        and bool(evidence["proposition_holds_on_the_grid"]),
    )


def _slope(j: float, error: float) -> float:
    """Derivative of ``I_e(j, j)`` with respect to j, by central differences."""
    from scipy.special import betainc

    step = 1e-4
    rise = betainc(j + step, j + step, error) - betainc(j - step, j - step, error)
    return float(rise / (2 * step))


def _double_integral(power: float, error: float) -> float:
    """``int_0^e int_0^1 (t-t^2)^a (s-s^2)^a ln((t-t^2)/(s-s^2)) ds dt``, which separates."""
    node, weight = np.polynomial.legendre.leggauss(60)
    x = (node + 1) / 2

    def sums(upper: float) -> tuple[float, float]:
        """Both factors from 0 to at most one half; t = upper x^6 takes the edge off 0."""
        t = upper * x**6
        area = weight / 2 * 6 * upper * x**5 * (t - t * t) ** power
        return float(area.sum()), float(area @ np.log(t - t * t))

    (plain, logged), (half, half_logged) = sums(error), sums(0.5)  # symmetric about one half
    return 2 * (logged * half - plain * half_logged)


def _proposition_1_on_a_grid() -> dict[str, Any]:
    errors = np.arange(1, 50) / 100
    pairs = np.arange(200)
    gain = voting.majority_gain(errors[:, None], pairs)
    ratio = gain[:, 1:] / gain[:, :-1]
    limit = 4 * errors * (1 - errors)
    fused = voting.majority_error(errors[:, None], 2 * pairs[:20] + 1)
    beside = np.abs((fused[:, :-1] - fused[:, 1:]) - gain[:, :19])
    holds = bool((gain > 0).all() and (ratio < limit[:, None] + 1e-12).all())
    return {
        "grid_of_errors": len(errors),
        "grid_of_pairs": len(pairs),
        "proposition_holds_on_the_grid": holds,
        "largest_ratio_of_gains_to_its_limit": _short(float((ratio / limit[:, None]).max())),
        "gains_agree_with_differences": bool(beside.max() < 1e-12),
    }


def _short(value: float) -> float:
    """Six digits: further ones are below the precision of numerical differentiation."""
    return float(f"{value:.6g}")


ERRATA: tuple[Callable[[list[Evaluation]], Erratum], ...] = (
    figure_1_errors,
    additive_lower_bound,
    multiplicative_bounds,
    minimise_fc,
    proposition_1_proof,
)
