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
    # isort: off
    from crowdtree import paper as paper
    from crowdtree.audit import Audit as Audit, plan_audit as plan_audit
    from crowdtree.campaign.trace import Trace as Trace, explain as explain
    from crowdtree.client import Client as Client
    from crowdtree.core.calibration import Calibration as Calibration
    from crowdtree.core.errors import (
        CrowdtreeError as CrowdtreeError,
        CrowdtreeWarning as CrowdtreeWarning,
    )
    from crowdtree.core.evaluation import Evaluation as Evaluation, evaluate as evaluate
    from crowdtree.core.fixed_plan import Plan as Plan
    from crowdtree.core.plurality import plurality_error as plurality_error
    from crowdtree.core.problem import Problem as Problem
    from crowdtree.core.sources import Source as Source
    from crowdtree.core.tree import Tree as Tree
    from crowdtree.designs.designers import design as design, verify as verify
    from crowdtree.designs.frontiers import Frontier as Frontier, frontier as frontier
    from crowdtree.designs.staffing import staff as staff
    from crowdtree.io import example as example, load_problem as load_problem
    from crowdtree.io.audits import load_audit as load_audit, verify_audit as verify_audit
    from crowdtree.io.opinions import load_opinions as load_opinions
    from crowdtree.learning import learn as learn
    from crowdtree.learning.estimators import (
        CrowdClassifier as CrowdClassifier,
        CrowdLabeller as CrowdLabeller,
    )
    from crowdtree.learning.judges import judge as judge
    from crowdtree.learning.judges.result import Judgement as Judgement
    from crowdtree.learning.model import Learned as Learned
    from crowdtree.learning.opinions import Opinions as Opinions, opinions_of as opinions_of
    from crowdtree.learning.pilot import plan_pilot as plan_pilot
    from crowdtree.planning import PlanChoices as PlanChoices, plan as plan
    from crowdtree.planning.checkup import Checkup as Checkup, check as check
    from crowdtree.policies import (
        AdaptivePolicy as AdaptivePolicy,
        BatchPolicy as BatchPolicy,
        PlanPolicy as PlanPolicy,
        SubtypePolicy as SubtypePolicy,
    )
    from crowdtree.policies.monitor import Monitor as Monitor
    from crowdtree.show.output import load as load, save as save, write_report as write_report
    from crowdtree.simulation import (
        Crowd as Crowd,
        Recorded as Recorded,
        simulate as simulate,
        sweep as sweep,
        tune_target as tune_target,
    )
    from crowdtree.simulation.compare import compare_policies as compare_policies
    from crowdtree.simulation.run import Run as Run
    # isort: on

__version__ = "0.1.0"

_MODULES = {
    "audit": "Audit plan_audit",
    "campaign.trace": "Trace explain",
    "client": "Client",
    "core.calibration": "Calibration",
    "core.errors": "CrowdtreeError CrowdtreeWarning",
    "core.evaluation": "Evaluation evaluate",
    "core.fixed_plan": "Plan",
    "core.plurality": "plurality_error",
    "core.problem": "Problem",
    "core.sources": "Source",
    "core.tree": "Tree",
    "designs.designers": "design verify",
    "designs.frontiers": "Frontier frontier",
    "designs.staffing": "staff",
    "io": "example load_problem",
    "io.audits": "load_audit verify_audit",
    "io.opinions": "load_opinions",
    "learning": "learn",
    "learning.estimators": "CrowdClassifier CrowdLabeller",
    "learning.judges": "judge",
    "learning.judges.result": "Judgement",
    "learning.model": "Learned",
    "learning.opinions": "Opinions opinions_of",
    "learning.pilot": "plan_pilot",
    "planning": "PlanChoices plan",
    "planning.checkup": "Checkup check",
    "policies": "AdaptivePolicy BatchPolicy PlanPolicy SubtypePolicy",
    "policies.monitor": "Monitor",
    "show.output": "load save write_report",
    "simulation": "Crowd Recorded simulate sweep tune_target",
    "simulation.compare": "compare_policies",
    "simulation.run": "Run",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}
"""Public names, imported when first used: clients and receivers of webhooks need no NumPy."""
__all__ = sorted([*_LAZY, "paper"])


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        if not name.startswith("_") and importlib.util.find_spec(f"crowdtree.{name}"):
            return importlib.import_module(f"crowdtree.{name}")
        from crowdtree.core.errors import did_you_mean

        meant = did_you_mean(name, __all__)
        raise AttributeError(f"module 'crowdtree' has no attribute {name!r}{meant}")
    value = getattr(importlib.import_module(f"crowdtree.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
