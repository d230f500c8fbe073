"""Load and save problems in every format."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning, listing, named, one_line
from crowdtree.core.problem import DASH, Dash, Problem
from crowdtree.core.reading import Source, has_content, open_source, shown
from crowdtree.io.documents import (
    as_shares,
    chosen_prior,
    problem_from_dict,
    problem_to_dict,
    with_notes,
)
from crowdtree.io.formats import DOCUMENTS, beside, ending_of
from crowdtree.io.grids import (
    delimited_grid,
    frame_grid,
    workbook_grids,
    write_delimited,
    write_workbook,
)
from crowdtree.io.layouts import Grid, Rows
from crowdtree.io.losses import loss_rows, read_loss
from crowdtree.io.sources import has_sources, loss_of_file, read_sources, source_rows
from crowdtree.io.table_reader import Kind, Table, read_table
from crowdtree.io.table_writer import error_rows, problem_rows
from crowdtree.io.words import join_rows
from crowdtree.io.yaml_json import parse_document, write_document

EXAMPLES: Mapping[str, str] = {
    "table1": "table1.csv",
    "animals": "animals.yaml",
    "mushrooms": "mushrooms.yaml",
    "leaves": "leaves.yaml",
    "triage": "triage.yaml",
}
"""Names of the example problems, and their files."""


def load_problem(
    source: str | os.PathLike[str] | Any,
    *,
    name: str | None = None,
    errors: str | os.PathLike[str] | Any | None = None,
    worker_error: ArrayLike | None = None,
    prior: ArrayLike | Mapping[str, float] | str | None = None,
    dash: Dash | None = None,
    normalise: bool = False,
    strengths: bool | str | os.PathLike[str] | Any = False,
    unclear: tuple[float, float] = (0.5, 0.5),
    least_error: float = 0.01,
    missing_error: float = 0.25,
    dependence: float | None = None,
    rows: Rows | None = None,
    loss: str | os.PathLike[str] | Any | None = None,
    sources: str | os.PathLike[str] | Any | None = None,
) -> Problem:
    """Load a problem from a file or a data frame.

    Parameters
    ----------
    source
        A ``.csv``, ``.tsv``, ``.csv.gz``, ``.xlsx``, ``.yaml``, ``.yml`` or ``.json`` file (its
        path, its bytes, or a binary stream), a pandas or polars data frame laid out like the CSV
        file, or a folder with a field guide in the DELTA format (``specs``, ``chars``, ``items``).
    name
        File name of bytes or of a stream that has none: its extension determines the format.
    errors
        Per-cell errors: a file or frame of the same layout with a number in each cell, blank where
        ``-`` is. Found automatically as the sheet ``errors`` of the workbook, or if it is called
        ``birds.errors.csv`` beside ``birds.csv`` whose own column ``error`` is blank.
    worker_error
        Probability that a worker errs, in place of what the file says: one number, one per
        question or one per cell.
    prior
        How often each class occurs, in place of what the file says: numbers in the order of the
        classes, a mapping from their names, or ``"uniform"``.
    dash
        What ``-`` means, if other than the file says: ``"inapplicable"`` or ``"either"``.
    normalise
        Scale a prior that does not sum to 1, such as counts.
    strengths
        True: the cells are the shares of people who say yes. Or a second file or frame with these
        shares, blank where unknown, for the outcomes of the first. See
        :meth:`Problem.from_strength`, also for `unclear`, `least_error` and `missing_error`.
    dependence
        Correlation of two people's answers to one question on one item, in place of what the file
        says.
    rows
        What the rows of a table are: ``"questions"`` or ``"classes"``. By default the name of the
        first column tells.
    loss
        What mistakes cost, in place of what the file says: a file (see
        :func:`crowdtree.io.losses.read_loss`), a matrix, or fields as in
        :func:`crowdtree.core.loss.make_loss`. Found automatically as the sheet ``loss`` of the
        workbook, as ``birds.loss.csv`` beside ``birds.csv``, and as the field ``loss`` of YAML and
        JSON.
    sources
        Who answers, in place of what the file says: a file (see
        :func:`crowdtree.io.sources.read_sources`), or a list as in :class:`Problem`. Found
        automatically as the sheet ``sources`` of the workbook, as ``birds.sources.csv`` beside
        ``birds.csv``, and as the fields ``sources`` and ``source_dependence`` of YAML and JSON.

    Notes
    -----
    A table has the header ``question,error,<class>,<class>,...`` (``test`` is accepted for
    ``question``), one row ``prior`` and one row per question with 0, 1 or ``-``::

        question,error,text,robin,eagle,trout
        prior,,,0.5,0.2,0.3
        description,,,a small bird,a bird of prey,a fish
        flies,0.05,Can it fly?,1,1,0
        hunts,0.1,Does it hunt?,0,1,-

    Without the row ``prior`` all classes are equally likely; ``text`` and ``description`` may be
    left out; a row ``dash`` with ``either`` under the first class sets the meaning of ``-``, a row
    ``dependence`` with a number there sets the correlation of people's answers.
    Columns may be in any order, separated by commas, semicolons or tabs, and have a title above.
    Outcomes may be yes and no, y and n, true and false and ``n/a``; numbers may be percentages and
    have decimal commas; columns called notes and rows that begin with ``#`` are left out. A table
    with one class per row begins with the column ``class`` and has a column ``prior`` and a row
    ``error``. ``problem.notes`` says how a file was understood. docs/files.md lists everything.
    The same as YAML (JSON has the same fields)::

        dash: inapplicable
        classes:
          - {name: robin, prior: 0.5, description: a small bird}
          - {name: eagle, prior: 0.2}
          - {name: trout, prior: 0.3}
        questions:
          - name: flies
            text: Can it fly?
            error: 0.05
            outcome: [1, 1, 0]
          - name: hunts
            error: {robin: 0.1, eagle: 0.05}
            outcome: {robin: 0, eagle: 1, trout: "-"}

    There `error` and `outcome` list the cells in the order of the classes, or name the classes;
    ``worker_error: 0.1`` at the top serves all questions without an error of their own.

    Returns
    -------
    Problem

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"question": ["q1", "q2"], "a": [0, 1], "b": [1, 1], "c": [0, 0]})
    >>> load_problem(frame, worker_error=0.1)
    Problem(3 classes x 2 questions, worker error 0.1)
    """
    options: dict[str, Any] = {"dash": dash, "normalise": normalise, "dependence": dependence}
    if has_content(source):
        source = open_source(source, name)
    if isinstance(source, Source) and ending_of(source.name) in DOCUMENTS:
        for what, given in (("errors", errors), ("strengths", strengths or None)):
            if given is not None:
                raise CrowdtreeError(
                    f"{what}: expected a table (.csv, .xlsx, a frame), got {source.name}"
                )
        data = parse_document(source)
        if loss is not None:
            options["loss"] = lambda classes: read_loss(loss, classes)
        if sources is not None:
            options["sources"] = lambda *names: read_sources(sources, *names)
        return problem_from_dict(data, source.name, prior, worker_error, **options)
    if isinstance(source, Source) and ending_of(source.name) == ".delta":
        if errors is not None or strengths:
            raise CrowdtreeError(
                f"{'strengths' if strengths else 'errors'}: expected a table (.csv, .xlsx, a "
                f"frame), got the field guide {source.name}"
            )
        return _field_guide(source, prior, worker_error, loss, sources, options)
    kind: Kind = "strength" if strengths is True else "outcome"
    table, near = _read(source, kind, "frame", rows)
    if prior is None:
        table.prior, said = as_shares(table.prior, normalise)
        table.notes += said
    loss = near.loss if loss is None else loss
    if loss is not None:
        options["loss"] = read_loss(loss, table.classes)
    sources = near.sources if sources is None else sources
    table.notes += _put_sources(options, sources, table.classes, table.questions)
    options |= {"texts": table.texts, "descriptions": table.descriptions}
    options["dash"] = dash or table.dash or "inapplicable"
    options["dependence"] = table.dependence if dependence is None else dependence
    shares = named(table.grid.source, chosen_prior, table.classes, table.prior, prior)
    parts = (table.classes, shares, table.questions)
    if strengths is False:
        if worker_error is None:
            worker_error = _errors_of(table, errors, near.errors)
        body, options["answers"] = join_rows(table.body, table.words, len(table.questions))
        made = named(table.grid.source, Problem, *parts, body, worker_error, **options)
        return with_notes(made, table.notes)
    if table.words:
        raise CrowdtreeError(
            f"strengths: expected yes/no questions only, but question "
            f"{one_line(table.questions[next(iter(table.words))])} has named answers"
        )
    options |= {"unclear": unclear, "least_error": least_error, "missing_error": missing_error}
    strength = table.body
    if strengths is not True:
        strength, options["outcome"] = _aligned(table, strengths, "strengths"), table.body
    made = named(table.grid.source, Problem.from_strength, *parts, strength, **options)
    return with_notes(made, table.notes)


def _field_guide(
    source: Source,
    prior: Any,
    worker_error: Any,
    loss: Any,
    sources: Any,
    options: dict[str, Any],
) -> Problem:
    """Make a problem of a field guide, which says nothing about priors and errors."""
    from crowdtree.io.delta import read_delta

    guide = read_delta(source)
    if worker_error is None:
        raise CrowdtreeError(
            f"{guide.source}: a field guide has no errors; expected worker_error=0.1 "
            "(--worker-error 0.1), how often a worker errs"
        )
    notes = list(guide.notes)
    if prior is None:
        notes.append("equal shares of the classes are assumed")
    if options["dash"] is None:
        notes.append('where a state is missing or variable, every answer is right (dash="either")')
    options |= {
        "dash": options["dash"] or "either",
        "dependence": options["dependence"] or 0.0,
        "loss": None if loss is None else read_loss(loss, guide.classes),
    }
    notes += _put_sources(options, sources, guide.classes, guide.questions)
    shares = named(guide.source, chosen_prior, guide.classes, None, prior)
    parts = (guide.classes, shares, guide.questions, guide.right, worker_error)
    made = named(guide.source, Problem, *parts, answers=guide.answers, **options)
    return with_notes(made, notes)


def _put_sources(
    options: dict[str, Any], sources: Any, classes: Sequence[str], questions: Sequence[str]
) -> tuple[str, ...]:
    """Add sources to the options of a problem; return what there is to say about them."""
    found = read_sources(sources, classes, questions)
    options |= {"sources": found.sources, "source_dependence": found.dependence or 0.0}
    return found.notes


class _Near(NamedTuple):
    """What was found next to a table: its per-cell errors, its losses, and its sources."""

    errors: Any = None
    loss: Any = None
    sources: Any = None


def _read(source: Any, kind: Kind, what: str, rows: Rows | None = None) -> tuple[Table, _Near]:
    """Read a table, and what is next to it."""
    if rows not in (None, *get_args(Rows)):
        raise CrowdtreeError(f'rows: expected "questions" or "classes", got {rows!r}')
    if isinstance(source, Grid):
        return read_table(source, kind, rows), _Near()
    if not isinstance(source, Source):
        if not has_content(source):
            return read_table(frame_grid(source, what), kind, rows), _Near()
        source = open_source(source, what)
    ending = ending_of(source.name)
    if ending in DOCUMENTS:
        raise CrowdtreeError(f"{what}: expected a table (.csv, .tsv, .xlsx), got {source.name}")
    if ending == ".xlsx":
        sheets = workbook_grids(source)
        return read_table(sheets.main, kind, rows), _Near(
            sheets.errors, sheets.loss, sheets.sources
        )
    with delimited_grid(source) as grid:
        table = read_table(grid, kind, rows)
    if source.path is None:
        return table, _Near()
    paths = (beside(source.path, part) for part in _Near._fields)
    return table, _Near(*(path if path.is_file() else None for path in paths))


def _errors_of(table: Table, errors: Any, near: Any) -> NDArray[np.float64]:
    """Errors of a table: given ones, else its own column, else those found next to it."""
    own = table.error
    blank = own is None or bool(np.isnan(own).any())
    if errors is None and near is not None:
        if own is not None and not np.isnan(own).all():
            name = near.source if isinstance(near, Grid) else shown(near)
            warnings.warn(
                f"{table.grid.source}: {name} is ignored because the column error is filled in; "
                "empty that column, or pass errors=",
                CrowdtreeWarning,
                stacklevel=3,
            )
        else:
            errors = near
    if errors is None:
        if own is not None and not blank:
            return own
        line = "row" if table.grid.unit == "column" else "column"
        if own is None:
            number, what = None, f"has no {line} error"
        else:
            place = int(np.argmax(np.isnan(own)))
            number, what = (
                table.lines[place],
                f"question {one_line(table.questions[place])} has no error",
            )
        table.grid.refuse(
            number,
            f"{what}; fill in a {line} error (how often a worker errs, such as 0.1), or pass "
            "worker_error=0.1 (--worker-error 0.1), or errors= with a table of one per cell",
        )
    cells = _aligned(table, errors, "errors")
    if np.isin(cells[~np.isnan(cells)], (0, 1)).all() and np.any(cells == 1):
        raise CrowdtreeError(
            "errors: every cell is 0 or 1; write how often a worker errs, such as 0.1 (is this the "
            "table of right answers?)"
        )
    if own is not None:
        cells = np.where(np.isnan(cells), own[:, None], cells)
    missing = np.argwhere(np.isnan(cells) & (table.body != DASH))
    if len(missing):
        q, c = missing[0]
        raise CrowdtreeError(
            f"errors: question {one_line(table.questions[q])}, class {one_line(table.classes[c])} "
            "is blank; write a number from 0 to 1 (only cells with - need none)"
        )
    return cells


def _aligned(table: Table, source: Any, what: str) -> NDArray[np.float64]:
    """Read a second table of numbers; put its rows and columns in the order of the first."""
    other, _ = _read(source, "errors", what)
    table.notes += [f"{other.grid.source}: {note}" for note in other.notes]
    order = []
    for mine, theirs, thing in (
        (table.questions, other.questions, "question"),
        (table.classes, other.classes, "class"),
    ):
        places = {name: place for place, name in enumerate(theirs)}
        missing = [name for name in mine if name not in places]
        extra = sorted(n for n in set(theirs) - set(mine) if not n.startswith("#"))
        if missing or extra:
            wrong = f"lacks the {thing} {one_line((missing or extra)[0])}"
            if not missing:
                wrong = f"has the {thing} {one_line(extra[0])}"
            other.grid.refuse(
                None, f"{wrong}, unlike {table.grid.source}; use the same names in both"
            )
        order.append([places[name] for name in mine])
    if order == [list(range(len(part))) for part in order]:
        return other.body
    return other.body[np.ix_(*order)]


def save_problem(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Save a problem in the format of the path's extension; it loads exactly as saved.

    Per-cell errors of a CSV file go to a second file next to it (``birds.csv`` and
    ``birds.errors.csv``, which together are one document: saving a problem without per-cell
    errors removes the second), those of a workbook to a sheet ``errors``; losses likewise to
    ``birds.loss.csv`` and a sheet ``loss``, sources to ``birds.sources.csv`` and a sheet
    ``sources``. Each file is written wholly or not at all.

    >>> import tempfile
    >>> problem = example("table1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_problem(problem, Path(folder) / "table1.yaml")
    ...     load_problem(Path(folder) / "table1.yaml") == problem
    True
    """
    path = Path(path)
    ending = ending_of(path)
    if ending == ".delta":
        raise CrowdtreeError(f"{shown(path)}: field guides are read only; save a .csv or .yaml")
    if ending in DOCUMENTS:
        write_document(path, problem_to_dict(problem))
    elif ending == ".xlsx":
        write_workbook(path, {"problem": problem_rows(problem)} | _tables_beside(problem, path))
    else:
        tables = _tables_beside(problem, path)
        for part, rows in tables.items():
            write_delimited(beside(path, part), rows)
        write_delimited(path, problem_rows(problem))
        for part in set(_Near._fields) - set(tables):
            beside(path, part).unlink(missing_ok=True)


def _tables_beside(problem: Problem, path: Path) -> dict[str, Iterable[list[Any]]]:
    """Rows of the tables that are kept next to that of the outcomes."""
    for what, values in (("a table of answers", problem.table), ("unsure", problem.unsure)):
        if values is not None:
            raise CrowdtreeError(
                f"{shown(path)}: cannot hold {what}; save the problem as .yaml or .json"
            )
    found: dict[str, Iterable[list[Any]]] = {}
    if not problem.error_per_question:
        found["errors"] = error_rows(problem)
    if loss_of_file(problem) is not None:
        found["loss"] = list(loss_rows(problem))  # what cannot be written is refused first
    if has_sources(problem) or problem.source_dependence:
        found["sources"] = named(shown(path), list, source_rows(problem))
    return found


def table_columns(problem: Problem, part: str) -> dict[str, list[str]]:
    """Columns of the table of a problem as text, like the CSV file."""
    makers = {"outcome": problem_rows, "errors": error_rows}
    if part not in makers:
        raise CrowdtreeError(f'part: must be "outcome" or "errors", got {part!r}')
    header, *rows = makers[part](problem)
    twins = [name for place, name in enumerate(header) if name in header[:place]]
    if twins:
        raise CrowdtreeError(
            f"to_frame: a frame cannot have two columns {one_line(twins[0])}; rename the class"
        )
    columns = zip(*rows, strict=True)
    return {
        name: [str(cell) for cell in cells] for name, cells in zip(header, columns, strict=True)
    }


def example(name: str) -> Problem:
    """Load a problem of the package.

    ``"table1"`` is the paper's, ``"animals"`` has yes/no questions too; ``"mushrooms"`` says what
    mistakes cost, the questions of ``"leaves"`` have two to five answers, and those of ``"triage"``
    are answered by people and models.

    >>> example("table1")
    Problem(5 classes x 5 questions, worker error 0.05)
    """
    if name not in EXAMPLES:
        raise CrowdtreeError(f"example: there is no {name!r}; choose from {listing(EXAMPLES)}")
    with resources.as_file(resources.files("crowdtree") / "data" / EXAMPLES[name]) as path:
        return load_problem(path)
