"""Execution of simulations: in this process, in local processes or on Dask, with checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crowdtree.errors import CrowdtreeError, needing
from crowdtree.policy import Policy
from crowdtree.problem import Problem
from crowdtree.simulation.crowd import Source, describe_problem
from crowdtree.simulation.engine import BlockRun, run_block, run_steps

__all__ = ["BLOCK", "Checkpoint", "Task", "perform"]

BLOCK = 20_000
"""Items of a task. Fixed, so that the result does not depend on the number of processes."""
CONNECT_SECONDS = 10.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Task:
    """One block of items of one simulation: everything that its result depends on."""

    problem: Problem
    policy: Policy[Any]
    crowd: Source
    key: int
    start: int
    stop: int
    stepwise: bool = False

    def run(self) -> BlockRun:
        """Simulate the block."""
        block = self.crowd.block(self.problem, self.key, self.start, self.stop)
        return (run_steps if self.stepwise else run_block)(self.policy, block)

    def fingerprint(self) -> str:
        """Name of the result: the same for the same task, in any session."""
        content: dict[str, Any] = {
            "problem": describe_problem(self.problem),
            "policy": self.policy.to_dict(),
            "crowd": self.crowd.describe(),
            "run": [self.key, self.start, self.stop, self.stepwise],
        }
        least = getattr(self.policy, "least_answers", 0)  # the policy's document leaves it out
        if least:
            content["least_answers"] = least
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Checkpoint:
    """A folder with one file per finished task; a run that is started again skips those."""

    folder: Path

    @classmethod
    def at(cls, folder: str | os.PathLike[str]) -> Checkpoint:
        """Use a folder, made where it is missing."""
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CrowdtreeError(
                f"checkpoint: {place} cannot be used as a folder ({error.strerror})"
            ) from None
        return cls(place)

    def load(self, task: Task) -> BlockRun | None:
        """Read a finished task, if it is there and whole."""
        path = self._path(task)
        if not path.exists():
            return None
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return BlockRun(*(stored[name] for name in BlockRun._fields))
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None  # truncated or not ours: simulate again

    def save(self, task: Task, result: BlockRun) -> None:
        """Write a finished task: whole or not at all."""
        handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **result._asdict())
            os.replace(name, self._path(task))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _path(self, task: Task) -> Path:
        return self.folder / f"{task.fingerprint()}.npz"


def perform(
    tasks: Sequence[Task],
    *,
    engine: str = "local",
    jobs: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> list[BlockRun]:
    """Run tasks and return their results in order, whatever the engine."""
    if jobs < -1 or jobs == 0:
        raise CrowdtreeError(
            f"jobs: expected a number of processes, or -1 for all cores, got {jobs}"
        )
    store = None if checkpoint is None else Checkpoint.at(checkpoint)
    found: list[BlockRun | None] = [None if store is None else store.load(task) for task in tasks]
    open_tasks = [place for place, result in enumerate(found) if result is None]
    total = sum(task.stop - task.start for task in tasks)
    done = total - sum(tasks[place].stop - tasks[place].start for place in open_tasks)
    if progress is not None:
        progress(done, total)
    results = _results([tasks[place] for place in open_tasks], engine, jobs)
    for place, result in zip(open_tasks, results, strict=True):
        found[place] = result
        if store is not None:
            store.save(tasks[place], result)
        done += len(result.label)
        if progress is not None:
            progress(done, total)
    return [result for result in found if result is not None]


def _results(tasks: Sequence[Task], engine: str, jobs: int) -> Iterator[BlockRun]:
    """Results in the order of the tasks, each as soon as it and those before it are finished."""
    scheme, _, address = engine.partition("://")
    if scheme == "dask" and address:
        yield from _on_dask(tasks, address)
    elif engine != "local":
        raise CrowdtreeError(
            f'engine: {engine!r} is unknown; use "local" or "dask://host:port", '
            "such as dask://localhost:8786"
        )
    elif jobs == 1 or len(tasks) <= 1:
        yield from (task.run() for task in tasks)
    else:
        from joblib import Parallel, delayed

        yield from Parallel(n_jobs=jobs, return_as="generator")(delayed(_run)(t) for t in tasks)


def _on_dask(tasks: Sequence[Task], address: str) -> Iterator[BlockRun]:
    with needing("engine dask", "dask"):
        from distributed import Client
    from joblib import Parallel, delayed, parallel_config

    try:
        client = Client(f"tcp://{address}", timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise CrowdtreeError(
            f"engine: no Dask scheduler responds at {address} ({type(error).__name__}); "
            f"start one with 'dask scheduler' and workers with 'dask worker {address}'"
        ) from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise CrowdtreeError(
                f"engine: the Dask scheduler at {address} has no workers; "
                f"start some with 'dask worker {address}'"
            )
        with parallel_config(backend="dask", client=client):
            yield from Parallel()(delayed(_run)(task) for task in tasks)


def _run(task: Task) -> BlockRun:
    return task.run()
