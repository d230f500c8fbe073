"""Audits of finished labels: a bound on their error that holds whatever any model says.

`run` draws, records and plans; `ledger` holds the evidence about a set of labels; `strata` groups
items and holds the working model; `kernels` is the compiled arithmetic. Files are read and
written by :mod:`crowdtree.files.audits`.
"""

from crowdtree.audit.run import Audit, Check, Draw, Forecast, Labels, Standing, plan_audit

__all__ = ["Audit", "Check", "Draw", "Forecast", "Labels", "Standing", "plan_audit"]
