"""crowdtree: labels from an unreliable crowd, at the error you ask for and the lowest cost.

>>> import crowdtree as ct
>>> tree = ct.design(ct.example("table1"))
>>> plan = ct.staff(tree, workers=10)
>>> round(ct.evaluate(plan).misclassification, 4)
0.0062
"""

from crowdtree.design import DESIGNERS, design
from crowdtree.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.evaluate import Bounds, Evaluation, evaluate
from crowdtree.files import example, load_plan, load_problem, save_plan, save_problem
from crowdtree.plan import Plan
from crowdtree.problem import Problem
from crowdtree.staffing import STAFFERS, staff
from crowdtree.tree import Certificate, Level, Node, Tree

__version__ = "0.1.0"

__all__ = [
    "DESIGNERS",
    "STAFFERS",
    "Bounds",
    "Certificate",
    "CrowdtreeError",
    "CrowdtreeWarning",
    "Evaluation",
    "Level",
    "Node",
    "Plan",
    "Problem",
    "Tree",
    "design",
    "evaluate",
    "example",
    "load_plan",
    "load_problem",
    "save_plan",
    "save_problem",
    "staff",
]
