"""Pages about results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from crowdtree.campaign.trace import Trace
from crowdtree.core.checking import check_call, check_options
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.tree import Tree
from crowdtree.learning.judges.result import Judgement
from crowdtree.learning.model import Learned
from crowdtree.planning import PlanChoices
from crowdtree.show.report import write_report as write_plan_report
from crowdtree.show.report.judging import write_judgement_report
from crowdtree.show.report.learned import write_learned_report
from crowdtree.show.report.trace import write_trace_report


def write_report(
    result: PlanChoices | Plan | Tree | Learned | Judgement | Trace,
    path: str | os.PathLike[str],
    **options: Any,
) -> Path:
    """Write a self-contained page (``.html``) about a plan, answers, judged models or a trace.

    Parameters
    ----------
    result
        What :func:`crowdtree.plan`, :func:`crowdtree.learn`, :func:`crowdtree.judge` or
        :func:`crowdtree.explain` returned, a plan, or a tree with one worker per question.
    path
        Where to write.
    options
        `title`: heading of a plan or of learned answers; `price`: price per answer, for the cost of
        a plan; `audit`: an audit of learned labels, whose bound is shown.

    Examples
    --------
    >>> import crowdtree as ct, pathlib, tempfile
    >>> choices = ct.plan(ct.example("table1"), error=0.02)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = ct.write_report(choices, pathlib.Path(folder, "report.html"), price=0.05)
    ...     "The best fixed tree" in page.read_text()
    True
    """
    check_call(write_report, locals())
    writer: Any = write_plan_report
    if isinstance(result, Learned):
        writer = write_learned_report
    elif isinstance(result, Judgement):
        writer = write_judgement_report
    elif isinstance(result, Trace):
        writer = write_trace_report
    check_options("write_report", writer, options)
    writer(path, result, **options)
    return Path(path)
