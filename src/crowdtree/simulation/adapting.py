"""Simulate a campaign that watches its table and revises it, answer by answer as a live one."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from crowdtree.core.problem import Problem
from crowdtree.policies import Policy
from crowdtree.policies.monitor import Monitor
from crowdtree.policies.walk import ItemLabels, Walk
from crowdtree.simulation.crowd import Block
from crowdtree.simulation.execution import Progress
from crowdtree.simulation.run import Adaptation, BlockRun, Run

__all__ = ["run_adapting"]


def run_adapting(
    problem: Problem,
    policy: Policy[Any],
    block: Block,
    *,
    adapt: bool = True,
    progress: Progress | None = None,
) -> Run:
    """Label the items of a block one after the other, and revise the table where it is wrong.

    Without `adapt` only the alarms are noted. `progress` is called with (items done, items in all).
    """
    items = len(block.truth)
    monitor = Monitor(policy, adapt=adapt)
    walks = [Walk(policy, block, row) for row in range(items)]
    queue, reopened = deque(range(items)), 0
    while queue:
        row = queue.popleft()
        walk = walks[row]
        while walk.label is None:
            answer = walk.step()
            if answer is not None:
                monitor.observe(str(row), answer)
                if monitor.due:
                    monitor.revise()
                    revised = monitor.policy.at_least(policy.least_answers)
                    again = [r for r in range(items) if walks[r].revise(revised)]
                    queue.extend(again)
                    reopened += len(again)
        if progress is not None:
            progress(items - len(queue), items)
    labels = ItemLabels.blank(items, problem.n_options)
    for walk in walks:
        labels.write(walk)
    adaptation = Adaptation(
        tuple(monitor.alarms),
        tuple(monitor.revisions),
        reopened,
        monitor.evidence,
        tuple(monitor.findings()) if monitor.alarms else (),
    )
    return replace(Run.join(problem, [BlockRun(block.truth, labels)]), adaptation=adaptation)
