"""What the sources of a problem cost, how often they err, and which of them nobody needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import listing
from crowdtree.core.problem import Problem
from crowdtree.core.text import number, percent

ROUNDING = 1e-12


class SourceFacts(NamedTuple):
    """A source of a problem, its mean error over questions, and what speaks against it."""

    source: str
    kind: str
    price: float
    error: float
    remark: str = ""


def source_facts(problem: Problem) -> list[SourceFacts]:
    """Facts about each source, the expert to whom items are referred included.

    The mean error is over questions, and over the classes by how often they occur; cells with
    ``-`` are left out. An expert is right.

    >>> from crowdtree.core.sources import Source
    >>> sources = [Source("people"), Source("coin", "model", price=0.01, worker_error=0.5)]
    >>> coin = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1, sources=sources)
    >>> [(row.source, round(row.error, 3), row.remark) for row in source_facts(coin)]
    [('people', 0.1, ''), ('coin', 0.5, 'useless: no better than guessing at any question')]
    """
    by_question = _errors(problem)
    useless = _useless(problem)
    facts = []
    for place, source in enumerate(problem.sources):
        error = float(np.nanmean(by_question[place])) if (~np.isnan(by_question)).any() else 0.0
        remark = "useless: no better than guessing at any question"
        if not useless[place]:
            remark = _dominated(problem, by_question, place, useless)
        facts.append(SourceFacts(source.name, source.kind, float(source.price), error, remark))
    if problem.expert is not None:
        expert = problem.expert
        facts.append(SourceFacts(expert.name, expert.kind, float(expert.price), 0.0))
    return facts


def _errors(problem: Problem) -> FloatArray:
    """Error of each source at each question, over the classes; NaN where all cells are ``-``."""
    right = problem.right
    some = _definite(problem)
    wrong = 1 - np.where(right, problem.channel, 0.0).sum(axis=1)  # [source, question, class]
    weight = np.where(some, problem.prior, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray((wrong * weight).sum(axis=2) / weight.sum(axis=1))


def _definite(problem: Problem) -> NDArray[np.bool_]:
    """Cells in which some answers are right and some are wrong."""
    count = problem.right.sum(axis=0)
    return np.asarray((count > 0) & (count < problem.n_answers[:, None]))


def _useless(problem: Problem) -> NDArray[np.bool_]:
    """Whether the answers of each source have the same chances whatever the class is, or worse.

    Guessing is right as often as the share of answers that are right.
    """
    right = problem.right
    guessing = 1 - right.sum(axis=0) / problem.n_answers[:, None]
    wrong = 1 - np.where(right, problem.channel, 0.0).sum(axis=1)
    worse = (wrong >= guessing - ROUNDING) | ~_definite(problem)
    return np.asarray(worse.all(axis=(1, 2)))


def _dominated(problem: Problem, errors: FloatArray, place: int, useless: NDArray[np.bool_]) -> str:
    """Say which other source is cheaper and errs less at every question."""
    source, mine = problem.sources[place], errors[place]
    better = [
        other
        for index, other in enumerate(problem.sources)
        if not useless[index]
        and other.price < source.price
        and bool((np.isnan(mine) | (errors[index] < mine)).all())
    ]
    if not better:
        return ""
    names = listing(other.name for other in better)
    words = f"dearer than {names} and errs more at every question"
    if any(other.may_repeat and other.most_per_item is None for other in better):
        return words
    return f"{words}; helps only where {names} may not be asked again"


def answered_once(problem: Problem) -> NDArray[np.bool_] | None:
    """Which questions of which source give no new answer when asked again; None for none."""
    if all(source.may_repeat for source in problem.sources):
        return None
    once = [not source.may_repeat for source in problem.sources]
    return np.repeat(once, problem.n_questions)


def source_lines(problem: Problem) -> Iterator[str]:
    """Lines of a report, one per source; none where one source answers."""
    if not problem.has_sources:
        return
    people = next((s.name for s in problem.sources if s.kind == "people"), None)
    facts = {row.source: row for row in source_facts(problem)}
    for row in facts.values():
        beside = ""
        if people not in (None, row.source):
            beside = f", {people} in {percent(facts[people].error)}"
        errs = f"errs in {percent(row.error)} of the answers{beside}"
        if problem.expert is not None and row.source == problem.expert.name:
            errs = "names the class of an item, and is right"
        remark = f". {row.remark[0].upper()}{row.remark[1:]}" if row.remark else ""
        kind = "" if row.kind == row.source else f" ({row.kind})"
        yield f"Source {row.source}{kind}: costs {number(row.price)}, {errs}{remark}"
    if problem.source_dependence:
        yield f"Sources err together: {percent(problem.source_dependence)} of the errors are common"
