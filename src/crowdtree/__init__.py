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
    from crowdtree.campaign.trace import Trace, explain
    from crowdtree.client import Client
    from crowdtree.core.calibration import Calibration
    from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning
    from crowdtree.core.evaluation import Evaluation, evaluate
    from crowdtree.core.fixed_plan import Plan
    from crowdtree.core.plurality import plurality_error
    from crowdtree.core.problem import Problem
    from crowdtree.core.sources import Source
    from crowdtree.core.tree import Tree
    from crowdtree.designs.designers import design, verify
    from crowdtree.designs.frontiers import Frontier, frontier
    from crowdtree.designs.staffing import staff
    from crowdtree.io import example, load_problem
    from crowdtree.io.audits import load_audit, verify_audit
    from crowdtree.io.opinions import load_opinions
    from crowdtree.learning import learn
    from crowdtree.learning.estimators import CrowdClassifier, CrowdLabeller
    from crowdtree.learning.judges import judge
    from crowdtree.learning.judges.result import Judgement
    from crowdtree.learning.model import Learned
    from crowdtree.learning.opinions import Opinions, opinions_of
    from crowdtree.learning.pilot import plan_pilot
    from crowdtree.planning import PlanChoices, plan
    from crowdtree.planning.checkup import Checkup, check
    from crowdtree.policies import AdaptivePolicy, BatchPolicy, PlanPolicy, SubtypePolicy
    from crowdtree.policies.monitor import Monitor
    from crowdtree.show.output import load, save, write_report
    from crowdtree.simulation import Crowd, Recorded, simulate, sweep, tune_target
    from crowdtree.simulation.compare import compare_policies
    from crowdtree.simulation.run import Run

__version__ = "0.1.0"

_LAZY = {
    "AdaptivePolicy": "crowdtree.policies",
    "Audit": "crowdtree.audit",
    "BatchPolicy": "crowdtree.policies",
    "Calibration": "crowdtree.core.calibration",
    "Checkup": "crowdtree.planning.checkup",
    "Client": "crowdtree.client",
    "Crowd": "crowdtree.simulation",
    "CrowdClassifier": "crowdtree.learning.estimators",
    "CrowdLabeller": "crowdtree.learning.estimators",
    "CrowdtreeError": "crowdtree.core.errors",
    "CrowdtreeWarning": "crowdtree.core.errors",
    "Evaluation": "crowdtree.core.evaluation",
    "Frontier": "crowdtree.designs.frontiers",
    "Judgement": "crowdtree.learning.judges.result",
    "Learned": "crowdtree.learning.model",
    "Monitor": "crowdtree.policies.monitor",
    "Opinions": "crowdtree.learning.opinions",
    "Plan": "crowdtree.core.fixed_plan",
    "PlanChoices": "crowdtree.planning",
    "PlanPolicy": "crowdtree.policies",
    "Problem": "crowdtree.core.problem",
    "Recorded": "crowdtree.simulation",
    "Run": "crowdtree.simulation.run",
    "Source": "crowdtree.core.sources",
    "SubtypePolicy": "crowdtree.policies",
    "Trace": "crowdtree.campaign.trace",
    "Tree": "crowdtree.core.tree",
    "check": "crowdtree.planning.checkup",
    "compare_policies": "crowdtree.simulation.compare",
    "design": "crowdtree.designs.designers",
    "evaluate": "crowdtree.core.evaluation",
    "example": "crowdtree.io",
    "explain": "crowdtree.campaign.trace",
    "frontier": "crowdtree.designs.frontiers",
    "judge": "crowdtree.learning.judges",
    "learn": "crowdtree.learning",
    "load": "crowdtree.show.output",
    "load_audit": "crowdtree.io.audits",
    "load_opinions": "crowdtree.io.opinions",
    "load_problem": "crowdtree.io",
    "opinions_of": "crowdtree.learning.opinions",
    "paper": "crowdtree",
    "plan": "crowdtree.planning",
    "plan_audit": "crowdtree.audit",
    "plan_pilot": "crowdtree.learning.pilot",
    "plurality_error": "crowdtree.core.plurality",
    "save": "crowdtree.show.output",
    "simulate": "crowdtree.simulation",
    "staff": "crowdtree.designs.staffing",
    "sweep": "crowdtree.simulation",
    "tune_target": "crowdtree.simulation",
    "verify": "crowdtree.designs.designers",
    "verify_audit": "crowdtree.io.audits",
    "write_report": "crowdtree.show.output",
}
"""Public names, imported when first used: clients and receivers of webhooks need no NumPy."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        if not name.startswith("_") and importlib.util.find_spec(f"crowdtree.{name}"):
            return importlib.import_module(f"crowdtree.{name}")
        from crowdtree.core.checking import did_you_mean

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
