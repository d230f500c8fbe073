"""Branch and bound over sets of classes: the compiled search behind ``method="optimal"``.

Works on arrays only; :mod:`crowdtree.designers.optimal` and :mod:`crowdtree.frontiers` convert
problems to arrays and the results to trees. Imported only when it is used, because it compiles.
"""

from crowdtree.designers.exact.exact_objective import solve_exact
from crowdtree.designers.exact.search import solve_additive
from crowdtree.designers.exact.solution import Solution

__all__ = ["Solution", "solve_additive", "solve_exact"]
