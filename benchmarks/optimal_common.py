"""Tables, clocks and Markdown shared by the benchmarks of optimal trees."""

from __future__ import annotations

import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

import crowdtree as ct
from crowdtree.io.atomic import write_atomically

ROOT = Path(__file__).resolve().parents[1]
COMMON_ERROR = 0.1
ERROR_RANGE = (0.01, 0.3)
Errors = Literal["common", "question", "cell"]
ERROR_WORDS = {
    "common": "one error",
    "question": "an error per question",
    "cell": "an error per cell",
}
Result = TypeVar("Result")


class Table(NamedTuple):
    """A random problem, and its prior as whole numbers for solvers without weights."""

    problem: ct.Problem
    counts: list[int]


def random_table(
    classes: int, questions: int, seed: int, errors: Errors, equal_prior: bool = False
) -> Table:
    """Fair-coin outcomes that separate all classes; the prior is 1 to 9 parts per class."""
    rng = np.random.default_rng(seed)
    while True:
        outcome = rng.integers(0, 2, (questions, classes))
        if len(np.unique(outcome, axis=1).T) == classes:
            break
    counts = np.ones(classes, int) if equal_prior else rng.integers(1, 10, classes)
    shape = {"common": (), "question": (questions,), "cell": (questions, classes)}[errors]
    error = rng.uniform(*ERROR_RANGE, shape) if shape else COMMON_ERROR
    problem = ct.Problem(
        [f"c{c}" for c in range(classes)],
        counts / counts.sum(),
        [f"q{q}" for q in range(questions)],
        outcome,
        error,
    )
    return Table(problem, counts.tolist())


def warm_up() -> float:
    """Compile the search (or load it) on a small problem; return the seconds this took."""
    started = time.perf_counter()
    for errors in ("cell", "common"):
        ct.design(random_table(10, 12, 0, errors).problem, "optimal")
    return time.perf_counter() - started


class Seconds(NamedTuple):
    """Medians over the runs: by the clock, and of the processor."""

    clock: float
    processor: float


def timed(
    work: Callable[[], Result], enough: float = 2.0, most: int = 15
) -> tuple[Result, Seconds]:
    """Run; repeat short runs and take the medians."""
    clock: list[float] = []
    processor: list[float] = []
    while True:
        started = time.perf_counter(), time.process_time()
        result = work()
        clock.append(time.perf_counter() - started[0])
        processor.append(time.process_time() - started[1])
        if len(clock) >= most or sum(clock) >= enough:
            return result, Seconds(statistics.median(clock), statistics.median(processor))


def data_folder() -> Path | None:
    """Where the real tables are: CROWDTREE_DATA, or ../shared/data beside the repository."""
    folder = Path(os.environ.get("CROWDTREE_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines)


def seconds_text(seconds: float) -> str:
    """Seconds with the digits that mean something."""
    return f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.3g}"


def machine() -> str:
    """The machine in one line."""
    cores = os.cpu_count()
    return f"Python {platform.python_version()}, {platform.machine()}, {cores} cores"


def put_between(path: Path, name: str, text: str) -> None:
    """Replace the text between the markers ``<!-- name:begin -->`` and ``<!-- name:end -->``."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    page = path.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{path}: no markers {begin} ... {end} to write between")
    block = f"{begin}\n{text.strip()}\n{end}"
    save(path, pattern.sub(lambda _: block, page))


def save(path: Path, text: str) -> None:
    """Write a text atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: file.write(text.encode()))
