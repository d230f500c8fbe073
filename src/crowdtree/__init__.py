"""crowdtree: labels from an unreliable crowd, at the error you ask for and the lowest cost.

>>> import crowdtree as ct
>>> tree = ct.design(ct.example("table1"))
>>> plan = ct.staff(tree, workers=10)
>>> round(ct.evaluate(plan).misclassification, 4)
0.0062
"""

from crowdtree.calibration import Calibration
from crowdtree.design import DESIGNERS, design, verify
from crowdtree.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.evaluate import Bounds, Evaluation, evaluate
from crowdtree.files import example, load_plan, load_problem, save_plan, save_problem
from crowdtree.frontier import Frontier, frontier
from crowdtree.learn import learn
from crowdtree.plan import Plan
from crowdtree.policy import AdaptivePolicy, BatchPolicy, PlanPolicy, policy_from_dict
from crowdtree.problem import Problem
from crowdtree.simulate import Crowd, simulate, sweep
from crowdtree.staffing import STAFFERS, staff
from crowdtree.tree import Certificate, Level, Node, Tree

__version__ = "0.1.0"

__all__ = [
    "DESIGNERS",
    "STAFFERS",
    "AdaptivePolicy",
    "BatchPolicy",
    "Bounds",
    "Calibration",
    "Certificate",
    "Crowd",
    "CrowdtreeError",
    "CrowdtreeWarning",
    "Evaluation",
    "Frontier",
    "Level",
    "Node",
    "Plan",
    "PlanPolicy",
    "Problem",
    "Tree",
    "design",
    "evaluate",
    "example",
    "frontier",
    "learn",
    "load_plan",
    "load_problem",
    "policy_from_dict",
    "save_plan",
    "save_problem",
    "simulate",
    "staff",
    "sweep",
    "verify",
]
