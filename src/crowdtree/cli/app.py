"""The command `crowdtree`: its verbs and its errors (one line on stderr, exit code 2)."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import logging
import math
import os
import re
import sys
import warnings
from collections.abc import Collection
from typing import Any, TextIO

import typer

from crowdtree import __version__
from crowdtree.cli import inputs, options, streams
from crowdtree.cli.groups import make_group, show_help
from crowdtree.cli.wording import option_words
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning, one_line
from crowdtree.io.cells import cell_number

USAGE_FAULT: type[Exception] = typer.BadParameter.__mro__[1]
"""What the parser raises for unknown words; its module differs between versions."""
INTERRUPTED = 130

VERBS = (
    "new", "check", "plan", "simulate", "report", "explain", "learn", "judge", "pilot",
    "design", "staff", "frontier", "evaluate", "reproduce", "demo", "serve", "backup", "restore",
)  # fmt: skip
GROUPS = ("campaign", "audit", "owner", "prolific")
MODULES = {"restore": "backup"}
"""Where a verb is, if not in the module of its name."""


def make_app(names: Collection[str]) -> typer.Typer:
    """Make the command with some of its verbs and groups; importing all takes a while."""

    def found(name: str, kind: str) -> Any:
        module = importlib.import_module(f"crowdtree.cli.{MODULES.get(name, name)}")
        return getattr(module, f"{name}_{kind}")

    made = make_group(
        "Label items with an unreliable crowd: few answers, and an estimate of the error.",
        *(found(name, "verb") for name in VERBS if name in names),
        name="crowdtree",
        epilog="Start with: crowdtree plan example:animals --error 0.01. "
        "Help on a command: crowdtree help COMMAND. Where a file is read, - is standard input.",
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    for name in GROUPS:
        if name in names:
            made.add_typer(found(name, "app"), name=name)
    made.callback(invoke_without_command=True)(_root)
    return made


def __getattr__(name: str) -> typer.Typer:
    """Make `app`, the command with all its verbs, when it is first used."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _app()


@functools.cache
def _app() -> typer.Typer:
    return make_app([*VERBS, *GROUPS])


def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "-V", "--version", help="Print the version and stop."),
) -> None:
    if version:
        print(__version__)
        raise typer.Exit
    show_help(context)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with 0, 2 (a mistake in the input) or 130 (interrupted)."""
    with streams.prepared(), warnings.catch_warnings():
        warnings.showwarning = _show_warning
        warnings.simplefilter("default", CrowdtreeWarning)  # even where the user silenced others
        _show_compilation()
        raise SystemExit(_run(sys.argv[1:] if arguments is None else arguments))


@functools.cache
def _command(first: str) -> Any:
    """Make the parser of the verb or group that comes first, or of all."""
    one = first in VERBS or first in GROUPS
    return typer.main.get_command(make_app([first]) if one else _app())


def _run(arguments: list[str]) -> int:
    inputs.NOTES.clear()
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    options.ARGUMENTS[:] = arguments
    try:
        streams.check_single_use(arguments)
        command = _command(arguments[0] if arguments else "")
        result = command.main(arguments, prog_name="crowdtree", standalone_mode=False)
        sys.stdout.flush()
    except CrowdtreeError as error:
        return _fail(option_words(str(error), inputs.written()))
    except USAGE_FAULT as error:
        context = getattr(error, "ctx", None)
        verb = context.command_path if context else "crowdtree"
        return _fail(f"{_usage_words(error, arguments)} (see {verb} --help)")
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", code=INTERRUPTED)
    except MemoryError:
        return _fail("out of memory: the problem is too large for this machine")
    except SystemExit as left:  # how the libraries leave when a pipe is closed
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        streams.discard_output()
        return 0
    except OSError as error:
        streams.discard_output()
        if streams.is_closed_pipe(error):  # the reader has seen enough: not an error
            return 0
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}")
    if result == INTERRUPTED:  # the parser turns Ctrl-C into this code
        return _fail("interrupted", code=INTERRUPTED)
    inputs.show_notes()
    return result if isinstance(result, int) else 0


def _usage_words(error: Any, arguments: list[str]) -> str:
    """Say what is wrong with an argument; of a number also what was given."""
    words = str(error.format_message())
    kind = re.search(r"Input should be a valid (number|integer)\b[^(]*", words)
    names = getattr(getattr(error, "param", None), "opts", [])
    choice = re.search(r"('[^']*') is not one of (.*)\.", words)
    if kind is None and choice is None:
        return words
    given = [value for name, value in itertools.pairwise(arguments) if name in names]
    given += [word.partition("=")[2] for word in arguments if word.partition("=")[0] in names]
    given = [value for value in given if value]
    variable = str(getattr(error.param, "envvar", "")) if names else ""
    if not given and variable in os.environ:
        names, given = [variable], [os.environ[variable]]
    if choice is not None:
        *most, last = choice[2].replace("'", "").split(", ")
        return f"{(names or [''])[0]}: expected {', '.join(most)} or {last}, got {choice[1]}"
    assert kind is not None
    what = "expected a number" if kind[1] == "number" else "expected a whole number"
    got = f", got {one_line(given[-1])}" if given else ""
    share = cell_number(given[-1]) if given and "%" in given[-1] else math.nan
    if kind[1] == "number" and not math.isnan(share):
        got += f"; write {share:g}"
    return f"{names[0]}: {what}{got}" if names else words.replace(kind[0], what)


def _show_compilation() -> None:
    """Show on stderr when something has to be compiled, so that nobody takes it for a fault."""
    log = logging.getLogger("crowdtree.designs.designers.exact._jit")
    log.setLevel(logging.INFO)
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("crowdtree: %(message)s"))
        log.addHandler(handler)


def _fail(message: str, code: int = 2) -> int:
    with contextlib.suppress(OSError):  # nobody reads standard error
        line = streams.visible(" ".join(message.split()))
        print(f"crowdtree: {line}", file=sys.stderr, flush=True)
    return code


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    del category, filename, lineno, line
    print(
        f"crowdtree: warning: {streams.visible(option_words(str(message), inputs.written()))}",
        file=file or sys.stderr,
    )
