"""The command `crowdtree`: its verbs and its errors (one line on stderr, exit code 2)."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import TextIO

import typer

from crowdtree import __version__
from crowdtree.cli.audit import audit_app
from crowdtree.cli.campaign import campaign_app
from crowdtree.cli.check import check_verb
from crowdtree.cli.demo import demo_verb
from crowdtree.cli.design import design_verb
from crowdtree.cli.evaluate import evaluate_verb
from crowdtree.cli.explain import explain_verb
from crowdtree.cli.frontier import frontier_verb
from crowdtree.cli.learn import learn_verb
from crowdtree.cli.pilot import pilot_verb
from crowdtree.cli.report import report_verb
from crowdtree.cli.reproduce import reproduce_verb
from crowdtree.cli.serve import serve_verb
from crowdtree.cli.simulate import simulate_verb
from crowdtree.cli.staff import staff_verb
from crowdtree.errors import CrowdtreeError

__all__ = ["app", "main"]

USAGE_FAULT: type[Exception] = typer.BadParameter.__mro__[1]
"""What the parser raises for unknown words; its module differs between versions."""
INTERRUPTED = 130

app = typer.Typer(
    name="crowdtree",
    help="Labels from an unreliable crowd for few answers, with their estimated error.",
    epilog="Start with: crowdtree design example:animals",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for verb in (
    design_verb,
    staff_verb,
    frontier_verb,
    simulate_verb,
    explain_verb,
    learn_verb,
    pilot_verb,
    evaluate_verb,
    check_verb,
    report_verb,
    reproduce_verb,
    demo_verb,
    serve_verb,
):
    app.command(verb.__name__.removesuffix("_verb"))(verb)
app.add_typer(campaign_app, name="campaign")
app.add_typer(audit_app, name="audit")


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with 0, 2 (a mistake in the input) or 130 (interrupted)."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        _show_compilation()
        raise SystemExit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        result = app(arguments, prog_name="crowdtree", standalone_mode=False)
    except CrowdtreeError as error:
        return _fail(str(error))
    except USAGE_FAULT as error:
        context = getattr(error, "ctx", None)
        verb = context.command_path if context else "crowdtree"
        return _fail(f"{error.format_message()} (see {verb} --help)")  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", code=INTERRUPTED)
    except MemoryError:
        return _fail("out of memory: the problem is too large for this machine")
    except BrokenPipeError:  # the reader of a pipe closed it: not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}")
    if result == INTERRUPTED:  # the parser turns Ctrl-C into this code
        return _fail("interrupted", code=INTERRUPTED)
    return result if isinstance(result, int) else 0


def _show_compilation() -> None:
    """Show on stderr when something has to be compiled, so that nobody takes it for a fault."""
    log = logging.getLogger("crowdtree.jit")
    log.setLevel(logging.INFO)
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("crowdtree: %(message)s"))
        log.addHandler(handler)


def _fail(message: str, code: int = 2) -> int:
    print(f"crowdtree: {' '.join(message.split())}", file=sys.stderr)
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
    print(f"crowdtree: warning: {message}", file=file or sys.stderr)
