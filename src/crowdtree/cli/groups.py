"""Groups of verbs: `crowdtree` itself, and its `campaign`, `audit`, `owner` and `prolific`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand


def show_help(context: typer.Context) -> None:
    """Print the help of a group that was called without a verb."""
    if context.invoked_subcommand is None:
        print(context.get_help())


class Verb(TyperCommand):
    """A verb whose help lists options of one panel together, after the others."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options, and the options of each panel."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                argument = parameter.param_type_name == "argument"
                panel = getattr(parameter, "rich_help_panel", None) or "Options"
                panels.setdefault("Arguments" if argument else panel, []).append(record)
        for panel, records in panels.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)


def make_group(help: str, *verbs: Callable[..., None], **options: Any) -> typer.Typer:
    """Make a group of verbs; without a verb it prints its help.

    The parser can print that help itself, but as an error with exit code 2 in recent versions.
    """
    options = {"add_completion": False, **options}
    group = typer.Typer(help=help, rich_markup_mode=None, **options)
    group.callback(invoke_without_command=True)(show_help)
    for verb in verbs:
        group.command(verb.__name__.removesuffix("_verb").replace("_", "-"), cls=Verb)(verb)
    return group
