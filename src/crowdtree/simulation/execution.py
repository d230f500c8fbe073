"""Execution of simulations: in this process, in local processes or on Dask, with checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from crowdtree.core.errors import CrowdtreeError, needing
from crowdtree.core.problem import Problem
from crowdtree.policies import Policy
from crowdtree.policies.walk import ItemLabels, label_items, walk_items
from crowdtree.simulation.crowd import Respondents, describe_problem
from crowdtree.simulation.run import BlockRun

__all__ = ["BLOCK", "Checkpoint", "Task", "perform", "serve_tasks"]

BLOCK = 20_000
"""Items of a task. Fixed, so that the result does not depend on the number of processes."""
CONNECT_SECONDS = 10.0
Progress = Callable[[int, int], None]
Worker = subprocess.Popen[bytes]


@dataclass(frozen=True, eq=False)
class Task:
    """One block of items of one simulation: everything that its result depends on."""

    problem: Problem
    policy: Policy[Any]
    crowd: Respondents
    key: int
    start: int
    stop: int
    stepwise: bool = False

    def run(self, progress: Callable[[float], None] | None = None) -> BlockRun:
        """Simulate the block."""
        block = self.crowd.block(self.problem, self.key, self.start, self.stop)
        walk = label_items if self.stepwise else walk_items
        return BlockRun(block.truth, walk(self.policy, block, self.stop - self.start, progress))

    def fingerprint(self) -> str:
        """Name of the result: the same for the same task, in any session."""
        content: dict[str, Any] = {
            "problem": describe_problem(self.problem),
            "policy": self.policy.to_dict(),
            "crowd": self.crowd.describe(),
            "run": [self.key, self.start, self.stop, self.stepwise],
        }
        if self.policy.least_answers:  # the policy's document leaves it out
            content["least_answers"] = self.policy.least_answers
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
                labels = ItemLabels(*(stored[name] for name in ItemLabels._fields))
                return BlockRun(stored["truth"], labels)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None  # truncated or not ours: simulate again

    def save(self, task: Task, result: BlockRun) -> None:
        """Write a finished task: whole or not at all."""
        handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, truth=result.truth, **result.labels._asdict())
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

    def report(within: float = 0.0) -> None:
        """Report the finished tasks, and part of the next one."""
        if progress is not None:
            progress(done + int(within * min(BLOCK, total - done)), total)

    report()
    results = _results([tasks[place] for place in open_tasks], engine, jobs, report)
    for place, result in zip(open_tasks, results, strict=True):
        found[place] = result
        if store is not None:
            store.save(tasks[place], result)
        done += len(result.truth)
        report()
    return [result for result in found if result is not None]


def _results(
    tasks: Sequence[Task], engine: str, jobs: int, report: Callable[[float], None]
) -> Iterator[BlockRun]:
    """Results in the order of the tasks, each as soon as it and those before it are finished.

    `report` is called with the share of a task that is done, where it runs in this process.
    """
    scheme, _, address = engine.partition("://")
    if scheme == "dask" and address:
        yield from _on_dask(tasks, address)
    elif engine != "local":
        raise CrowdtreeError(
            f'engine: {engine!r} is unknown; use "local" or "dask://host:port", '
            "such as dask://localhost:8786"
        )
    elif jobs == 1 or len(tasks) <= 1:
        yield from (task.run(report) for task in tasks)
    else:
        yield from _in_processes(tasks, jobs)


def _in_processes(tasks: Sequence[Task], jobs: int) -> Iterator[BlockRun]:
    """Run tasks in processes that do not import the program that calls.

    A script therefore needs no ``if __name__ == "__main__"``, whatever the system.
    """
    number = min(_cores() if jobs == -1 else jobs, len(tasks))
    workers: list[Worker] = []
    idle: SimpleQueue[Worker] = SimpleQueue()

    def run(task: Task) -> BlockRun:
        worker = idle.get()
        try:
            return _run_in(worker, task)
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(number) as threads:
        try:
            for _ in range(number):
                workers.append(_start_worker(max(_cores() // number, 1)))
                idle.put(workers[-1])
            yield from threads.map(run, tasks)
        finally:  # also after Ctrl-C, or when the caller wants no more results
            threads.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.kill()
                worker.communicate()


def _cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start_worker(threads: int) -> Worker:
    """Start a process for tasks, whose libraries compute in so many threads."""
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
    return subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import serve_tasks; serve_tasks()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, **{name: str(n) for name, n in limits.items()}},
    )


def _run_in(worker: Worker, task: Task) -> BlockRun:
    """Run a task in a worker; here if it has parts that cannot be sent, as of a notebook."""
    try:
        message = pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError):
        return task.run()
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        pickle.dump(message, worker.stdin)
        worker.stdin.flush()
        result, error = pickle.load(worker.stdout)
    except (OSError, EOFError):
        raise CrowdtreeError(
            "jobs: a process ended before its result was complete; "
            "if the memory is full, use fewer jobs"
        ) from None
    if error is not None:
        raise error
    return task.run() if result is None else result


def serve_tasks() -> None:
    """Run the tasks that come on standard input until it ends, and write their results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process ends it
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a policy prints is no result
    while True:
        try:
            message = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_answer(message), results)
        results.flush()


def _answer(message: bytes) -> tuple[BlockRun | None, Exception | None]:
    """Result of a task, or its error; neither if the task cannot be read here."""
    try:
        task = pickle.loads(message)
    except (pickle.UnpicklingError, AttributeError, ImportError):
        return None, None
    try:
        return task.run(), None
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # such as an error whose arguments are not those of its class
            return None, CrowdtreeError(str(error))
        return None, error


def _on_dask(tasks: Sequence[Task], address: str) -> Iterator[BlockRun]:
    with needing("engine dask", "dask"):
        from distributed import Client
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
        running = [client.submit(Task.run, task, pure=False) for task in tasks]
        while running:
            yield running.pop(0).result()
