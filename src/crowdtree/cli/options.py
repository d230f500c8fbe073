"""The options that verbs share, and dataclasses that group them.

A verb takes a group as one parameter (``reading: Reading``); :func:`with_options` turns its fields
into options of the command line. Groups of outputs check the names of files when they are made,
which is before the verb runs: a wrong extension is refused before minutes of work, not after.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

from crowdtree.core.errors import CrowdtreeError
from crowdtree.designs.designers import DESIGNERS
from crowdtree.io.cells import cell_number
from crowdtree.show.plots.save import check_ending

ARGUMENTS: list[str] = []
"""The words of the running command."""


def argument(metavar: str | None, help: str, show_default: bool = False, **settings: Any) -> Any:
    """Describe an argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=show_default, **settings)


def option(help: str, metavar: str | None = None, *names: str, **settings: Any) -> Any:
    """Describe an option, which has the name of its parameter unless others are given."""
    return typer.Option(*names, metavar=metavar, help=help, **settings)


def flag(name: str, help: str, **settings: Any) -> Any:
    """Describe an option without a value."""
    return typer.Option(name, help=help, **settings)


def _share(text: str | float) -> float:
    """Read a share: 0.02, or 2%.

    >>> _share("2%"), _share("0.02")
    (0.02, 0.02)
    """
    value = cell_number(str(text))
    if math.isnan(value):
        raise typer.BadParameter("Input should be a valid number")
    return value


def share_option(*names: str, **settings: Any) -> Any:
    """Make an option for a share, which may be written in percent."""
    return typer.Option(*names, parser=_share, **{"metavar": "E", **settings})


def _table_option(*names: str, **settings: Any) -> Any:
    """Make an option for how a table is read; they are listed together, after the others."""
    return typer.Option(*names, rich_help_panel="Table options", **settings)


File = Annotated[
    str,
    argument(
        "FILE", "A problem (.csv .xlsx .yaml .json), a plan (.json), example:NAME, or - for stdin."
    ),
]
ProblemFile = Annotated[
    str, argument("FILE", "A problem (.csv .xlsx .yaml .json), example:NAME, or - for stdin.")
]
PlanFile = Annotated[str, argument("FILE", "A plan (.json), or - for stdin.")]
AsJson = Annotated[bool, flag("--json", "Print one JSON object.")]
Output = Annotated[Path | None, option("Write the plan to FILE.json.", "FILE", "-o", "--output")]
Draw = Annotated[Path | None, option("Draw to FILE.svg, .png or .html.", "FILE", "--draw")]
Folder = Annotated[
    Path, option("Folder to write to; created if missing.", "DIR", "-o", "--output", "--out")
]
Full = Annotated[bool, flag("--full", "Print and draw large trees without folding.")]
AllowGroups = Annotated[
    bool, _table_option("--allow-groups", help="Accept classes that no question separates.")
]
ExtraWorkers = Annotated[
    int | None, option("Extra workers for the tree, beyond one per node.", "N", "--workers")
]
Seed = Annotated[int, option("Random seed.", None, "--seed", min=0)]


def one_of(names: Iterable[str], *options: str) -> Any:
    """Make an option for one of some names, which a shell completes."""
    known = list(names)
    words = f"One of: {', '.join(known)}."
    return typer.Option(*options, help=words, metavar="NAME", autocompletion=lambda: known)


Design = Annotated[str, one_of(DESIGNERS, "--design")]


Prices = Annotated[
    list[str] | None, option("Price per answer, or QUESTION=PRICE; repeatable.", "[Q=]P", "--price")
]
LossFile = Annotated[
    Path | None, option("What mistakes cost (.csv .xlsx .yaml .json).", "FILE", "--loss")
]


@dataclass(frozen=True)
class Reading:
    """How a problem file is read."""

    worker_error: Annotated[
        float | None,
        _table_option(
            "--worker-error",
            metavar="E",
            parser=_share,
            help="Error rate of all questions, 0 to 1.",
        ),
    ] = None
    errors: Annotated[
        Path | None,
        _table_option("--errors", metavar="FILE", help="Table of error rates, one per cell."),
    ] = None
    dash: Annotated[
        Literal["inapplicable", "either"] | None,
        _table_option(
            "--dash",
            help="Meaning of - in the table: does not apply, or either answer.",
            show_default=False,
        ),
    ] = None
    normalise: Annotated[
        bool, _table_option("--normalise", help="Scale the prior so that it sums to 1.")
    ] = False
    strengths: Annotated[
        bool, _table_option("--strengths", help="Cells hold the share of people who say yes.")
    ] = False
    dependence: Annotated[
        float | None,
        _table_option(
            "--dependence",
            metavar="R",
            help="Correlation of people's answers to a question about an item.",
            show_default=False,
        ),
    ] = None
    rows: Annotated[
        Literal["questions", "classes"] | None,
        _table_option("--rows", help="What the rows of the table are.", show_default=False),
    ] = None
    loss: Annotated[
        Path | None,
        _table_option(
            "--loss", metavar="FILE", help="What mistakes cost (.csv .xlsx .yaml .json)."
        ),
    ] = None
    sources: Annotated[
        Path | None,
        _table_option(
            "--sources",
            metavar="FILE",
            help="People, models and experts who answer (.csv .xlsx .yaml .json).",
        ),
    ] = None

    def without_groups(self) -> dict[str, Any]:
        """The arguments of :func:`crowdtree.io.load_problem`."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(Reading)}


@dataclass(frozen=True)
class ReadingGroups(Reading):
    """How a problem file is read, where a tree is designed from it."""

    allow_groups: AllowGroups = False


@dataclass(frozen=True)
class PlanOutputs:
    """Output options of a verb that makes a plan."""

    as_json: AsJson = False
    output: Output = None
    draw: Annotated[Path | None, option("Draw the tree to FILE.svg, .png or .html.", "FILE")] = None
    price: Prices = None
    levels: Annotated[bool, flag("--levels", "Print the level table too.")] = False
    full: Full = False

    @property
    def price_words(self) -> list[object]:
        """The prices as arguments of a command."""
        return [word for entry in self.price or () for word in ("--price", entry)]

    def __post_init__(self) -> None:
        check_plan(self.output)
        check_draw(self.draw)
        check_outputs([self.output, self.draw])


def given(group: Any) -> list[tuple[str, object]]:
    """Options of a group that differ from their defaults, as written on the command line.

    >>> given(Reading(worker_error=0.1, normalise=True))
    [('--worker-error', 0.1), ('--normalise', True)]
    """
    values = [(field, getattr(group, field.name)) for field in dataclasses.fields(group)]
    return [
        (f"--{field.name.replace('_', '-')}", value)
        for field, value in values
        if value != field.default
    ]


def check_price(price: float | None) -> None:
    """Raise unless a price is a number of 0 or more."""
    if price is not None and not 0 <= price < float("inf"):
        raise CrowdtreeError(f"--price: expected 0 or more, got {price:g}")


def check_plan(path: Path | None) -> None:
    """Raise unless a plan can be written under this name."""
    if path is not None and path.suffix != ".json" and not path.is_dir():
        raise CrowdtreeError(
            f"{path}: expected the extension .json for a plan; use -o {path.stem}.json"
        )


def check_draw(path: Path | None) -> None:
    """Raise unless a picture can be written under this name."""
    if path is not None:
        check_ending(path)


def check_html(path: Path | None, option: str) -> None:
    """Raise unless a page can be written under this name."""
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise CrowdtreeError(
            f"{path}: expected the extension .html for a page; use {option} {path.stem}.html"
        )


def check_folder(path: Path) -> None:
    """Raise where a folder cannot be written to because something else has its name."""
    if path.exists() and not path.is_dir():
        raise CrowdtreeError(f"{path}: is not a folder; give the name of one")


def check_outputs(paths: Iterable[Path | None]) -> None:
    """Raise where a file cannot be written, would hold two results, or is read by the command."""
    made = [path for path in paths if path is not None]
    for path in made:
        if not path.parent.is_dir():
            raise CrowdtreeError(
                f"{path}: the folder {path.parent} does not exist; create it first"
            )
        if path.is_dir():
            raise CrowdtreeError(f"{path}: is a folder; give the name of a file")
        if not os.access(path.parent, os.W_OK):
            raise CrowdtreeError(f"{path}: cannot be written (folder {path.parent} is read-only)")
    if len({os.path.realpath(path) for path in made}) < len(made):
        raise CrowdtreeError(
            f"{made[0]}: two results would be written to one file; use different names"
        )
    words = (word.partition("=")[2] if word.startswith("--") else word for word in ARGUMENTS)
    named = [os.path.realpath(word) for word in words]
    for path in made:
        if named.count(os.path.realpath(path)) > 1:
            raise CrowdtreeError(f"{path}: is read by this command; write to another file")


def with_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Let a verb take groups of options: the fields of a dataclass become options.

    >>> @with_options
    ... def verb(file: File, reading: Reading) -> None:
    ...     print(file, reading.worker_error)
    >>> verb(file="birds.csv", worker_error=0.1)
    birds.csv 0.1
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        kind = hints[name]
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            parameters.append(
                parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY)
            )
            continue
        groups[name] = kind
        types = get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=types[field.name],
            )
            for field in dataclasses.fields(kind)
        ]

    @functools.wraps(verb)
    def wrapped(**given: Any) -> None:
        made = {
            name: kind(
                **{
                    field.name: given.pop(field.name)
                    for field in dataclasses.fields(kind)
                    if field.name in given
                }
            )
            for name, kind in groups.items()
        }
        verb(**given, **made)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped


def from_environment(verb: Callable[..., None]) -> Callable[..., None]:
    """Let variables of the environment give the options of a verb: ``--media`` CROWDTREE_MEDIA.

    >>> @from_environment
    ... @with_options
    ... def verb(as_json: AsJson = False) -> None: ...
    >>> inspect.signature(verb).parameters["as_json"].annotation.__metadata__[0].envvar
    'CROWDTREE_JSON'
    """
    signature = inspect.signature(verb)
    parameters = []
    for parameter in signature.parameters.values():
        kind, given = get_args(parameter.annotation)
        described = copy.copy(given)  # other verbs share it
        words = (described.default, *described.param_decls)  # the first name is stored as a default
        names = [str(word)[2:] for word in words if str(word).startswith("--")]
        name = (names or [parameter.name])[0].replace("-", "_")
        described.envvar = f"CROWDTREE_{name.upper()}"
        parameters.append(parameter.replace(annotation=Annotated[kind, described]))
    verb.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    verb.__annotations__ = {p.name: p.annotation for p in parameters}
    return verb
