"""Branch and bound over sets of classes: the compiled search behind ``method="optimal"``.

Works on arrays alone; :mod:`crowdtree.design.optimal` and :mod:`crowdtree.frontier` put problems
in and take trees out. Imported only when it is used, because it compiles.
"""

from crowdtree.design.exact.exact_objective import solve_exact
from crowdtree.design.exact.search import solve_additive
from crowdtree.design.exact.solution import Solution

__all__ = ["Solution", "solve_additive", "solve_exact"]
