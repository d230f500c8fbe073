"""crowdtree: labels from an unreliable crowd, from few answers, with their estimated error.

>>> import crowdtree as ct
>>> tree = ct.design(ct.example("table1"))
>>> plan = ct.staff(tree, workers=10)
>>> round(ct.evaluate(plan).misclassification, 4)
0.0062
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crowdtree import paper
    from crowdtree.audit import Audit, plan_audit
    from crowdtree.calibration import Calibration
    from crowdtree.checkup import Checkup, check
    from crowdtree.client import Client
    from crowdtree.designers import design, verify
    from crowdtree.errors import CrowdtreeError, CrowdtreeWarning
    from crowdtree.estimators import CrowdClassifier, CrowdLabeller
    from crowdtree.evaluation import Evaluation, evaluate
    from crowdtree.files import example, load_problem
    from crowdtree.files.audits import load_audit, verify_audit
    from crowdtree.files.opinions import load_opinions
    from crowdtree.fixed_plan import Plan
    from crowdtree.frontiers import Frontier, frontier
    from crowdtree.judging import judge
    from crowdtree.judging.result import Judgement
    from crowdtree.learning import learn
    from crowdtree.learning.model import Learned
    from crowdtree.learning.pilot import plan_pilot
    from crowdtree.opinions import Opinions, opinions_of
    from crowdtree.output import load, save, write_report
    from crowdtree.planning import PlanChoices, plan
    from crowdtree.plurality import plurality_error
    from crowdtree.policy import AdaptivePolicy, BatchPolicy, PlanPolicy, SubtypePolicy
    from crowdtree.policy.monitor import Monitor
    from crowdtree.problem import Problem
    from crowdtree.simulation import Crowd, Recorded, simulate, sweep, tune_target
    from crowdtree.simulation.compare import compare_policies
    from crowdtree.simulation.run import Run
    from crowdtree.sources import Source
    from crowdtree.staffing import staff
    from crowdtree.trace import Trace, explain
    from crowdtree.tree import Tree

__version__ = "0.1.0"

_LAZY = {
    "AdaptivePolicy": "crowdtree.policy",
    "Audit": "crowdtree.audit",
    "BatchPolicy": "crowdtree.policy",
    "Calibration": "crowdtree.calibration",
    "Checkup": "crowdtree.checkup",
    "Client": "crowdtree.client",
    "Crowd": "crowdtree.simulation",
    "CrowdClassifier": "crowdtree.estimators",
    "CrowdLabeller": "crowdtree.estimators",
    "CrowdtreeError": "crowdtree.errors",
    "CrowdtreeWarning": "crowdtree.errors",
    "Evaluation": "crowdtree.evaluation",
    "Frontier": "crowdtree.frontiers",
    "Judgement": "crowdtree.judging.result",
    "Learned": "crowdtree.learning.model",
    "Monitor": "crowdtree.policy.monitor",
    "Opinions": "crowdtree.opinions",
    "Plan": "crowdtree.fixed_plan",
    "PlanChoices": "crowdtree.planning",
    "PlanPolicy": "crowdtree.policy",
    "Problem": "crowdtree.problem",
    "Recorded": "crowdtree.simulation",
    "Run": "crowdtree.simulation.run",
    "Source": "crowdtree.sources",
    "SubtypePolicy": "crowdtree.policy",
    "Trace": "crowdtree.trace",
    "Tree": "crowdtree.tree",
    "check": "crowdtree.checkup",
    "compare_policies": "crowdtree.simulation.compare",
    "design": "crowdtree.designers",
    "evaluate": "crowdtree.evaluation",
    "example": "crowdtree.files",
    "explain": "crowdtree.trace",
    "frontier": "crowdtree.frontiers",
    "judge": "crowdtree.judging",
    "learn": "crowdtree.learning",
    "load": "crowdtree.output",
    "load_audit": "crowdtree.files.audits",
    "load_opinions": "crowdtree.files.opinions",
    "load_problem": "crowdtree.files",
    "opinions_of": "crowdtree.opinions",
    "paper": "crowdtree",
    "plan": "crowdtree.planning",
    "plan_audit": "crowdtree.audit",
    "plan_pilot": "crowdtree.learning.pilot",
    "plurality_error": "crowdtree.plurality",
    "save": "crowdtree.output",
    "simulate": "crowdtree.simulation",
    "staff": "crowdtree.staffing",
    "sweep": "crowdtree.simulation",
    "tune_target": "crowdtree.simulation",
    "verify": "crowdtree.designers",
    "verify_audit": "crowdtree.files.audits",
    "write_report": "crowdtree.output",
}
"""Public names, imported when first used: clients and receivers of webhooks need no NumPy."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        if not name.startswith("_") and importlib.util.find_spec(f"crowdtree.{name}"):
            return importlib.import_module(f"crowdtree.{name}")
        from crowdtree.checking import did_you_mean

        meant = did_you_mean(name, __all__)
        raise AttributeError(f"module 'crowdtree' has no attribute {name!r}{meant}")
    if _LAZY[name] == "crowdtree":
        return importlib.import_module(f"crowdtree.{name}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "AdaptivePolicy",
    "Audit",
    "BatchPolicy",
    "Calibration",
    "Checkup",
    "Client",
    "Crowd",
    "CrowdClassifier",
    "CrowdLabeller",
    "CrowdtreeError",
    "CrowdtreeWarning",
    "Evaluation",
    "Frontier",
    "Judgement",
    "Learned",
    "Monitor",
    "Opinions",
    "Plan",
    "PlanChoices",
    "PlanPolicy",
    "Problem",
    "Recorded",
    "Run",
    "Source",
    "SubtypePolicy",
    "Trace",
    "Tree",
    "check",
    "compare_policies",
    "design",
    "evaluate",
    "example",
    "explain",
    "frontier",
    "judge",
    "learn",
    "load",
    "load_audit",
    "load_opinions",
    "load_problem",
    "opinions_of",
    "paper",
    "plan",
    "plan_audit",
    "plan_pilot",
    "plurality_error",
    "save",
    "simulate",
    "staff",
    "sweep",
    "tune_target",
    "verify",
    "verify_audit",
    "write_report",
]
