"""Audits of finished labels: a bound on their error that holds whatever any model says.

`run` draws and records; `forecast` says how many checks it takes; `ledger` holds the evidence about
a set of labels; `strata` groups items and holds the working model; `kernels` is the arithmetic.
"""

from crowdtree.audit.forecast import plan_audit
from crowdtree.audit.records import Check, Draw, Forecast, Labels, Standing
from crowdtree.audit.run import Audit

__all__ = ["Audit", "Check", "Draw", "Forecast", "Labels", "Standing", "plan_audit"]
