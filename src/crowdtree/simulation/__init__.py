"""Simulate: synthetic crowds drive a policy, vectorised over items; sweeps over grids."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from crowdtree.campaign.view import check_people
from crowdtree.core.checking import check_call, check_share, named_options
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.outcomes import quoted
from crowdtree.core.problem import Problem
from crowdtree.core.result_methods import Framed, HtmlShown
from crowdtree.core.rng import generator
from crowdtree.policies import Policy
from crowdtree.policies.walk import REASONS
from crowdtree.simulation.batch_dawid_skene import simulate_dawid_skene
from crowdtree.simulation.crowd import Crowd, Recorded, Respondents
from crowdtree.simulation.execution import BLOCK, Progress, Task, perform
from crowdtree.simulation.run import Adaptation, CalibrationRow, Estimate, Run

__all__ = [
    "REASONS",
    "Adaptation",
    "CalibrationRow",
    "Crowd",
    "Estimate",
    "Recorded",
    "Run",
    "Sweep",
    "SweepRow",
    "simulate",
    "simulate_dawid_skene",
    "sweep",
    "tune_target",
]

MAX_ITEMS = 1_000_000_000


@named_options
def simulate(
    problem: Problem,
    policy: Policy[Any],
    items: int = 10_000,
    rng: np.random.Generator | int = 0,
    *,
    crowd: Respondents | None = None,
    engine: str = "local",
    jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    stepwise: bool = False,
    adapt: bool = False,
    people_per_item: int = 1,
) -> Run:
    """Let a simulated crowd answer, and estimate a policy's cost and error.

    Parameters
    ----------
    problem
        The classes, and, unless the crowd has its own problem, the true errors of the answers. The
        policy may assume other errors as long as classes and questions are the same.
    policy
        The policy.
    items
        Number of items.
    rng
        Seed or generator. The same seed gives the same items and people, to the last bit,
        whatever the policy, the engine and the number of processes.
    crowd
        Who answers; ``None`` for people who err exactly as the problem says.
    engine
        ``"local"``, or ``"dask://host:port"`` for a Dask cluster.
    jobs
        Local processes; -1 for all cores.
    checkpoint
        A folder for finished parts: a run that was interrupted and is started again skips them.
    progress
        Called with (items done, items in all).
    stepwise
        Run every item through the policy's own steps, as a live campaign does: slow, for checks.
    adapt
        Watch the table and revise it when the answers contradict it, as a live campaign does:
        items are labelled one after the other, and opened again if they no longer reach the target
        (:class:`crowdtree.Monitor`). On this machine, in one process.
    people_per_item
        Different people whose answers a label rests on at least, as the setting of a live campaign
        (2 there unless it is changed). Every simulated answer about an item is another person's,
        so this is the least number of answers.

    Returns
    -------
    Run

    Examples
    --------
    >>> import crowdtree as ct
    >>> from crowdtree.policies import AdaptivePolicy
    >>> problem = ct.example("table1").replace(worker_error=0.2)
    >>> run = simulate(problem, AdaptivePolicy(problem, target_error=0.01), items=2000)
    >>> bool(run.misclassification.high < 0.02), bool(10 < run.answers_per_item < 12)
    (True, True)
    """
    check_call(simulate, locals())
    crowd = Crowd() if crowd is None else crowd
    policy = _with_people(policy, people_per_item)
    key = _key(rng)
    tasks = _tasks(problem, policy, items, key, crowd, stepwise)
    if adapt:
        if engine != "local" or jobs != 1 or checkpoint is not None:
            raise CrowdtreeError(
                "adapt: each item depends on those before it; leave out engine, jobs and checkpoint"
            )
        from crowdtree.simulation.adapting import run_adapting

        block = crowd.block(problem, key, 0, int(items))
        if block.prior is not None:
            raise CrowdtreeError(
                "adapt: the test of the table needs items that start alike, but these have their "
                "own priors; leave out adapt"
            )
        return run_adapting(problem, policy, block, progress=progress)
    policy.warn_if_unreachable()
    parts = perform(tasks, engine=engine, jobs=jobs, checkpoint=checkpoint, progress=progress)
    return Run.join(problem, parts)


class SweepRow(NamedTuple):
    """One cell of a sweep."""

    policy: str
    crowd: str
    run: Run


class Sweep(list[SweepRow], Framed, HtmlShown):
    """The cells of a sweep, policy by policy; ``to_frame()`` tabulates them."""

    def __repr__(self) -> str:
        policies, crowds = ({row[place] for row in self} for place in (0, 1))
        return f"Sweep({len(policies)} policies x {len(crowds)} crowds)"


def sweep(
    problem: Problem,
    policies: Mapping[str, Policy[Any]],
    crowds: Mapping[str, Respondents] | None = None,
    items: int = 10_000,
    rng: np.random.Generator | int = 0,
    *,
    engine: str = "local",
    jobs: int = -1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Simulate every policy with every crowd; all of them get answers from the same people.

    Budgets and targets are part of a policy, noise is part of a crowd: give one entry each.
    The parameters are those of :func:`simulate`.

    >>> import crowdtree as ct
    >>> from crowdtree.policies import AdaptivePolicy
    >>> problem = ct.example("table1")
    >>> policies = {f"target {t}": AdaptivePolicy(problem, t) for t in (0.1, 0.01)}
    >>> rows = sweep(problem, policies, {"as assumed": Crowd()}, items=500, jobs=1)
    >>> [(row.policy, row.run.items) for row in rows]
    [('target 0.1', 500), ('target 0.01', 500)]
    >>> rows.to_frame()["policy"].to_list()
    ['target 0.1', 'target 0.01']
    """
    check_call(sweep, locals())
    people = {"as assumed": Crowd()} if crowds is None else crowds
    for name, given in (("policies", policies), ("crowds", people)):
        if not given:
            raise CrowdtreeError(f"{name}: expected at least one, got none")
    key = _key(rng)
    cells = [(policy, crowd) for policy in policies for crowd in people]
    lists = [_tasks(problem, policies[p], items, key, people[c], False) for p, c in cells]
    flat = [task for tasks in lists for task in tasks]
    parts = iter(perform(flat, engine=engine, jobs=jobs, checkpoint=checkpoint, progress=progress))
    return Sweep(
        SweepRow(policy, crowd, Run.join(problem, [next(parts) for _ in tasks]))
        for (policy, crowd), tasks in zip(cells, lists, strict=True)
    )


def tune_target(
    problem: Problem,
    make: Callable[[float], Policy[Any]],
    error: float,
    *,
    items: int = 20_000,
    rng: np.random.Generator | int = 0,
    crowd: Respondents | None = None,
    loss: bool = False,
) -> float:
    """Find the `target_error` per item at which the mean error over all items is `error`.

    A policy that stops at 1 % per item is usually more certain than that when it stops, and so
    spends more than a mean error of 1 % requires. An estimate from simulated items: bisection on
    the mean stated error (observed error, where a crowd is given), which varies less than counts.

    Parameters
    ----------
    problem
        The problem.
    make
        Makes the policy for a target, as in ``lambda t: AdaptivePolicy(problem, t)``.
    error
        Misclassification to reach.
    items, rng, crowd
        As in :func:`simulate`.
    loss
        Whether `error` and the target are expected losses (`target_loss`).

    Examples
    --------
    >>> import crowdtree as ct
    >>> from crowdtree.policies import AdaptivePolicy
    >>> problem = ct.example("table1").replace(worker_error=0.2)
    >>> target = tune_target(problem, lambda t: AdaptivePolicy(problem, t), 0.01, items=2000)
    >>> 0.01 < target < 0.03
    True
    """

    check_call(tune_target, locals())
    if not loss:
        check_share("error", error)

    def reached(target: float) -> float:
        run = simulate(problem, make(target), items, rng, crowd=crowd)
        if loss:
            return float(run.stated_risk if crowd is None else run.risk)
        return float(run.stated_error if crowd is None else run.misclassification)

    if isinstance(rng, np.random.Generator):
        rng = int(rng.integers(2**63))
    low, high = error / 4, min(0.5, 8 * error)
    if loss:
        refer = None if problem.loss is None else problem.loss.refer
        high = 64 * error if refer is None else min(64 * error, 0.999 * refer)
    if reached(low) > error:
        raise CrowdtreeError(
            f"{'loss' if loss else 'error'}: {error:g} cannot be reached; with "
            f"{'target_loss' if loss else 'target_error'}={low:g} it is {reached(low):.3g}; "
            "raise max_answers or repeats, or add questions"
        )
    for _ in range(12):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if reached(middle) <= error else (low, middle)
    return low


def _key(rng: np.random.Generator | int) -> int:
    return int(generator(rng).integers(0, 2**63))


def _with_people(policy: Policy[Any], people: int) -> Policy[Any]:
    """Policy whose labels rest on at least some people; one person is no restriction."""
    check_people(policy, people)
    if people == 1:
        return policy
    return policy.at_least(people)


def _tasks(
    problem: Problem, policy: Policy[Any], items: int, key: int, crowd: Respondents, stepwise: bool
) -> list[Task]:
    if not 1 <= items <= MAX_ITEMS:
        raise CrowdtreeError(f"items: expected a whole number from 1 to {MAX_ITEMS:,}, got {items}")
    if policy.kind == "tree":  # a tree asks a source at each node
        problem = problem.as_options()
    if (policy.problem.classes, policy.problem.questions) != (problem.classes, problem.questions):
        raise CrowdtreeError(
            "policy: its problem has different classes or questions than the one to simulate"
        )
    asked, known = ([source.name for source in p.sources] for p in (policy.problem, problem))
    if asked != known and max(len(asked), len(known)) > 1:
        raise CrowdtreeError(
            f"policy: asks {listing(map(quoted, asked))}, but in the problem to simulate "
            f"{listing(map(quoted, known))} answer; make the policy for this problem"
        )
    crowd.block(problem, key, 0, 1)  # report errors here rather than in a worker process
    return [
        Task(problem, policy, crowd, key, start, min(start + BLOCK, int(items)), stepwise)
        for start in range(0, int(items), BLOCK)
    ]
