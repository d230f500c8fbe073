"""How far greedy trees are from optimal, how long proofs take, and the gap over time.

``python -m benchmarks.optimal_gap`` writes ``out/optimal_gap.md``; ``--parts greedy times curve``
picks. Errors are drawn from 0.01 to 0.3, priors are 1 to 9 parts per class, tables are fair coins.
Times leave out compilation, which is stated.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import crowdtree as ct
from benchmarks.optimal_common import (
    ERROR_WORDS,
    ROOT,
    Errors,
    data_folder,
    machine,
    markdown,
    put_between,
    random_table,
    save,
    seconds_text,
    timed,
    warm_up,
)

SIZES = ((10, 20), (20, 30), (40, 60))
GREEDY = ("fm", "fc", "gain")
MOMENTS = (1, 10, 30, 60, 120, 300)
MISSING_DATA_ERROR = 0.1


# ------------------------------------------------------------------ greedy against optimal


def greedy_rows(limits: argparse.Namespace) -> Iterator[list[str]]:
    for classes, questions in SIZES:
        for errors in ("cell", "question"):
            yield _greedy_row(classes, questions, errors, limits)


def _greedy_row(
    classes: int, questions: int, errors: Errors, limits: argparse.Namespace
) -> list[str]:
    above: list[list[float]] = []
    for seed in range(limits.seeds):
        problem = random_table(classes, questions, seed, errors).problem
        best = ct.design(
            problem, "optimal", objective=limits.objective, time_limit=limits.time_limit
        )
        if best.certificate is not None and best.certificate.status == "optimal":
            least = _value(best, limits.objective)
            trees = (ct.design(problem, method) for method in GREEDY)
            above.append([100 * (_value(tree, limits.objective) / least - 1) for tree in trees])
    size = [f"{classes} x {questions}", ERROR_WORDS[errors], f"{len(above)} of {limits.seeds}"]
    if not above:
        return size + ["-"] * len(GREEDY)
    mean, most = np.mean(above, axis=0), np.max(above, axis=0)
    return size + [f"{a:.1f} % ({b:.1f} %)" for a, b in zip(mean, most, strict=True)]


def _value(tree: ct.Tree, objective: str) -> float:
    worth = ct.evaluate(tree)
    return worth.additive if objective == "additive" else worth.misclassification


GREEDY_HEADER = ("classes x questions", "worker errors", "proven", *(f"{m}" for m in GREEDY))


# ------------------------------------------------------------------ time to a proof


@dataclass(frozen=True)
class Case:
    """A problem to prove, and the seconds in which it should be."""

    title: str
    make: Callable[[], ct.Problem]
    wanted: float | None


def time_cases() -> Iterator[Case]:
    for classes, questions, errors, wanted in (
        (30, 30, "cell", 0.5),
        (50, 85, "question", 0.5),
        (50, 85, "common", 0.5),
        (50, 85, "cell", 60.0),
    ):
        title = f"{classes} x {questions}, {ERROR_WORDS[errors]}"
        yield Case(title, _maker(classes, questions, 0, errors), wanted)
    folder = data_folder()
    if folder is not None:
        yield from real_cases(folder)


def _maker(classes: int, questions: int, seed: int, errors: Errors) -> Callable[[], ct.Problem]:
    return lambda: random_table(classes, questions, seed, errors).problem


def real_cases(folder: Path) -> Iterator[Case]:
    """The real tables, equal priors; errors from the strengths where there are some."""
    for name in ("awa2", "ddxplus", "key_grass_genera"):
        table, strength = folder / name / "table.csv", folder / name / "strength.csv"
        if not table.is_file():
            continue
        plain = {"worker_error": MISSING_DATA_ERROR}
        yield Case(f"{name}, error {MISSING_DATA_ERROR}", _reader(table, plain), None)
        if strength.is_file():
            yield Case(
                f"{name}, errors from strengths", _reader(table, {"strengths": strength}), None
            )


def _reader(table: Path, options: dict[str, Any]) -> Callable[[], ct.Problem]:
    def read() -> ct.Problem:
        with warnings.catch_warnings():
            # A table thresholded below one half has cells where most people say otherwise.
            warnings.simplefilter("ignore", ct.CrowdtreeWarning)
            return ct.load_problem(table, **options)

    return read


def time_rows(limits: argparse.Namespace) -> Iterator[list[str]]:
    for case in time_cases():
        yield _time_row(case, limits)
    if data_folder() is None:
        yield ["the real tables: no data folder (set CROWDTREE_DATA)", *"-----"]


def _time_row(case: Case, limits: argparse.Namespace) -> list[str]:
    problem = case.make()
    try:
        tree, seconds = timed(lambda: _optimal(problem, limits))
    except ct.CrowdtreeError as error:
        return [case.title, str(error), *"----"]
    proof = ct.verify(tree)
    wanted = "-"
    if case.wanted is not None:
        met = proof.status == "optimal" and seconds.clock <= case.wanted
        wanted = f"{case.wanted:g} s: {'met' if met else 'NOT met'}"
    return [
        case.title,
        proof.status,
        f"{100 * proof.gap:.2f} %",
        seconds_text(seconds.clock),
        seconds_text(seconds.processor),
        wanted,
    ]


def _optimal(problem: ct.Problem, limits: argparse.Namespace, **options: Any) -> ct.Tree:
    return ct.design(
        problem,
        "optimal",
        objective=limits.objective,
        time_limit=limits.time_limit,
        allow_groups=True,
        **options,
    )


TIME_HEADER = ("problem", "proof", "gap", "seconds", "CPU seconds", "wanted")


# ------------------------------------------------------------------ the gap over time


def curve_rows(limits: argparse.Namespace) -> Iterator[list[str]]:
    classes, questions = limits.curve_size
    problem = random_table(classes, questions, 0, "cell").problem
    started = time.perf_counter(), time.process_time()
    seen: list[tuple[float, float, float, float]] = []

    def since() -> tuple[float, float]:
        return time.perf_counter() - started[0], time.process_time() - started[1]

    def note(value: float, bound: float, _nodes: int) -> None:
        seen.append((*since(), value, bound))

    tree = _optimal(problem, limits, progress=note)
    proof = ct.verify(tree)
    wanted = [moment for moment in MOMENTS if moment < limits.time_limit]
    for moment in wanted:
        later = [row for row in seen if row[0] >= moment]
        if later:
            yield _curve_row(*later[0])
    yield _curve_row(*since(), proof.value, proof.lower_bound, f" ({proof.status})")


def _curve_row(
    clock: float, processor: float, value: float, bound: float, end: str = ""
) -> list[str]:
    gap = (value - bound) / value if value > 0 else 0.0
    numbers = [f"{value:.6f}", f"{bound:.6f}", f"{100 * gap:.2f} %"]
    return [f"{clock:.1f}{end}", f"{processor:.1f}", *numbers]


CURVE_HEADER = ("seconds", "CPU seconds", "best tree", "lower bound (proven)", "gap")

PARTS: dict[str, tuple[tuple[str, ...], Callable[[argparse.Namespace], Iterator[list[str]]]]] = {
    "greedy": (GREEDY_HEADER, greedy_rows),
    "times": (TIME_HEADER, time_rows),
    "curve": (CURVE_HEADER, curve_rows),
}


def intro(part: str, limits: argparse.Namespace) -> str:
    """What a table shows, in one sentence."""
    error = "additive error" if limits.objective == "additive" else "misclassification"
    if part == "greedy":
        return f"How far each greedy tree's {error} is above the proven least: mean (most)."
    if part == "times":
        return f"Least {error}, limit {limits.time_limit:g} s; short runs are repeated (median)."
    size = "{} x {}".format(*limits.curve_size)
    return f"Gap over time, {size}, an error per cell, {error}."


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=10, help="problems of each size")
    parser.add_argument("--time-limit", type=float, default=60, help="seconds per search")
    parser.add_argument("--objective", choices=("additive", "exact"), default="additive")
    parser.add_argument("--curve-size", nargs=2, type=int, default=(100, 100))
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "optimal_gap.md")
    parser.add_argument("--page", type=Path, help="write between the markers of this page too")
    limits = parser.parse_args()
    about = f"{machine()}; the search compiled or loaded in {seconds_text(warm_up())} s."
    texts = [about]
    for part in limits.parts:
        header, make = PARTS[part]
        rows = []
        for row in make(limits):
            rows.append(row)
            print(*row, sep="  ", flush=True)
        text = f"{intro(part, limits)}\n\n{markdown(header, rows)}"
        texts.append(text)
        if limits.page:
            put_between(limits.page, part, f"{about}\n\n{text}")
    save(limits.out, "\n\n".join(texts) + "\n")
    print("\n" + "\n\n".join(texts))


if __name__ == "__main__":
    main()
