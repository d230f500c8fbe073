"""crowdtree: labels from an unreliable crowd from few answers, with their estimated error.

>>> import crowdtree as ct
>>> tree = ct.design(ct.example("table1"))
>>> plan = ct.staff(tree, workers=10)
>>> round(ct.evaluate(plan).misclassification, 4)
0.0062
"""

import importlib
from typing import TYPE_CHECKING, Any

from crowdtree.calibration import Calibration
from crowdtree.designers import DESIGNERS, design
from crowdtree.designers import verify as check_certificate
from crowdtree.errors import CrowdtreeError, CrowdtreeWarning
from crowdtree.evaluation import Bounds, Evaluation, evaluate
from crowdtree.files import example, load_plan, load_problem, save_plan, save_problem
from crowdtree.fixed_plan import Plan
from crowdtree.frontiers import Frontier, Point, frontier
from crowdtree.learning import learn
from crowdtree.policy import AdaptivePolicy, BatchPolicy, PlanPolicy, policy_from_dict
from crowdtree.problem import Problem
from crowdtree.simulation import Crowd, simulate, sweep
from crowdtree.staffing import STAFFERS, staff
from crowdtree.tree import Certificate, Level, Node, Tree

if TYPE_CHECKING:
    from crowdtree.audit import Audit, plan_audit
    from crowdtree.checkup import Checkup, check
    from crowdtree.client import Client
    from crowdtree.estimators import CrowdClassifier, CrowdLabeller
    from crowdtree.files.audits import load_audit, load_labels, save_audit, verify_audit
    from crowdtree.files.interchange import load_answers
    from crowdtree.learning.judging import Accuracy
    from crowdtree.learning.model import Learned
    from crowdtree.learning.pilot import plan_pilot
    from crowdtree.loss import Loss
    from crowdtree.output import load
    from crowdtree.planning import PlanChoices, plan
    from crowdtree.plots import draw_frontier, draw_tree
    from crowdtree.policy import SubtypePolicy
    from crowdtree.policy.monitor import Monitor, Revision
    from crowdtree.report import write_report
    from crowdtree.report.learned import write_learned_report
    from crowdtree.reproduction import reproduce
    from crowdtree.simulation import Recorded, tune_target
    from crowdtree.simulation.compare import compare_policies
    from crowdtree.simulation.run import Run
    from crowdtree.trace import explain

__version__ = "0.1.0"

verify = check_certificate
"""The older name of :func:`check_certificate`."""

_LAZY = {
    "Accuracy": "crowdtree.learning.judging",
    "Audit": "crowdtree.audit",
    "Checkup": "crowdtree.checkup",
    "Client": "crowdtree.client",
    "Learned": "crowdtree.learning.model",
    "Loss": "crowdtree.loss",
    "Monitor": "crowdtree.policy.monitor",
    "PlanChoices": "crowdtree.planning",
    "Recorded": "crowdtree.simulation",
    "Revision": "crowdtree.policy.monitor",
    "Run": "crowdtree.simulation.run",
    "SubtypePolicy": "crowdtree.policy",
    "check": "crowdtree.checkup",
    "compare_policies": "crowdtree.simulation.compare",
    "draw_frontier": "crowdtree.plots",
    "draw_tree": "crowdtree.plots",
    "explain": "crowdtree.trace",
    "load_answers": "crowdtree.files.interchange",
    "CrowdClassifier": "crowdtree.estimators",
    "CrowdLabeller": "crowdtree.estimators",
    "load": "crowdtree.output",
    "load_audit": "crowdtree.files.audits",
    "load_labels": "crowdtree.files.audits",
    "plan": "crowdtree.planning",
    "plan_audit": "crowdtree.audit",
    "plan_pilot": "crowdtree.learning.pilot",
    "reproduce": "crowdtree.reproduction",
    "save_audit": "crowdtree.files.audits",
    "tune_target": "crowdtree.simulation",
    "verify_audit": "crowdtree.files.audits",
    "write_learned_report": "crowdtree.report.learned",
    "write_report": "crowdtree.report",
}
"""Public names that are imported when they are first used: some are heavy."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'crowdtree' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


__all__ = [
    "DESIGNERS",
    "STAFFERS",
    "Accuracy",
    "AdaptivePolicy",
    "Audit",
    "BatchPolicy",
    "Bounds",
    "Calibration",
    "Certificate",
    "Checkup",
    "Client",
    "Crowd",
    "CrowdClassifier",
    "CrowdLabeller",
    "CrowdtreeError",
    "CrowdtreeWarning",
    "Evaluation",
    "Frontier",
    "Learned",
    "Level",
    "Loss",
    "Monitor",
    "Node",
    "Plan",
    "PlanChoices",
    "PlanPolicy",
    "Point",
    "Problem",
    "Recorded",
    "Revision",
    "Run",
    "SubtypePolicy",
    "Tree",
    "check",
    "check_certificate",
    "compare_policies",
    "design",
    "draw_frontier",
    "draw_tree",
    "evaluate",
    "example",
    "explain",
    "frontier",
    "learn",
    "load",
    "load_answers",
    "load_audit",
    "load_labels",
    "load_plan",
    "load_problem",
    "plan",
    "plan_audit",
    "plan_pilot",
    "policy_from_dict",
    "reproduce",
    "save_audit",
    "save_plan",
    "save_problem",
    "simulate",
    "staff",
    "sweep",
    "tune_target",
    "verify",
    "verify_audit",
    "write_learned_report",
    "write_report",
]
