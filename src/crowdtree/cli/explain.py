"""The verb `explain`: how an item gets its label, answer by answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

from crowdtree.campaign.trace import explain, read_answer, read_asked
from crowdtree.cli import render
from crowdtree.cli.options import (
    AsJson,
    File,
    ReadingGroups,
    Seed,
    check_html,
    check_outputs,
    option,
    with_options,
)
from crowdtree.cli.policy import PolicyOptions, read_policy
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.problem import Problem
from crowdtree.show.report.trace import write_trace_report


@dataclass(frozen=True)
class Outputs:
    """Output options."""

    html: Annotated[Path | None, option("Write the trace to FILE.html.", "FILE")] = None
    as_json: AsJson = False

    def __post_init__(self) -> None:
        check_html(self.html, "--html")
        check_outputs([self.html])


@with_options
def explain_verb(
    file: File,
    *,
    true_class: Annotated[
        str | None, option("True class of the item; drawn at random if not given.", None, "--class")
    ] = None,
    answers: Annotated[
        str | None,
        option(
            "Answers so far, such as flies=yes,hunts=no or cap=red; of several sources 'cap "
            "(gpt-x)=red'.",
            "Q=A,...",
        ),
    ] = None,
    policy: PolicyOptions,
    outputs: Outputs,
    seed: Seed = 0,
    reading: ReadingGroups,
) -> None:
    """Show step by step why an item got its label.

    Every step has the question, the answer and the posterior probabilities. Without --answers, a
    simulated crowd replies.

    Examples:

      crowdtree explain example:animals --class cat

      crowdtree explain birds.csv --answers flies=yes,sings=no --html trace.html
    """
    problem, chosen = read_policy(file, policy, reading)
    if answers is not None and true_class is not None:
        raise CrowdtreeError(
            "explain: expected either --answers or --class (for a simulated crowd), got both"
        )
    given = None if answers is None else list(_answers(problem, answers))
    trace = explain(chosen, given, true_class=true_class, rng=seed)
    if outputs.html is not None:
        write_trace_report(outputs.html, trace)

    render.emit(outputs.as_json, trace.to_dict(), list(trace.lines()), [outputs.html])


def _answers(problem: Problem, words: str) -> Iterator[tuple[str, str]]:
    """Read ``flies=yes,cap=red``; names may contain ``,`` and ``=``."""
    entry = ""
    for part in words.split(","):
        entry = f"{entry},{part}" if entry else part.strip()
        pair = _pair(problem, entry) if entry else None
        if pair is not None:
            yield pair
            entry = ""
    if entry:
        _refuse(problem, entry)


def _pair(problem: Problem, entry: str) -> tuple[str, str] | None:
    """Question and answer of ``cap=red``; None where it names none that the problem has."""
    parts = entry.split("=")
    for cut in range(1, len(parts)):
        name, value = ("=".join(some).strip() for some in (parts[:cut], parts[cut:]))
        try:
            names = problem.answers[read_asked(problem, name)[0]]
        except CrowdtreeError:
            continue
        if read_answer(names, value) is not None:
            return name, value
    return None


def _refuse(problem: Problem, entry: str) -> NoReturn:
    entry = entry.split(",")[0]
    name, _, value = (part.strip() for part in entry.partition("="))
    if not name or not value:
        raise CrowdtreeError(f"--answers: expected question=answer, got {entry!r}")
    try:
        question, _ = read_asked(problem, name)
    except CrowdtreeError as error:
        what = str(error).replace("question: ", "question ")
        raise CrowdtreeError(f"--answers: {what}") from None
    names = problem.answers[question]
    known = listing(f"{name}={answer}" for answer in names)
    raise CrowdtreeError(f"--answers: expected {known}, got {entry!r}")
