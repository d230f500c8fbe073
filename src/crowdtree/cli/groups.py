"""Groups of verbs: `crowdtree` itself, and its `campaign`, `audit`, `owner` and `prolific`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

__all__ = ["make_group", "show_help"]


def show_help(context: typer.Context) -> None:
    """Print the help of a group that was called without a verb."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def make_group(help: str, *verbs: Callable[..., None], **options: Any) -> typer.Typer:
    """Make a group of verbs; without a verb it prints its help.

    The parser can print that help itself, but as an error with exit code 2 in recent versions.
    """
    options = {"add_completion": False, **options}
    group = typer.Typer(help=help, rich_markup_mode=None, **options)
    group.callback(invoke_without_command=True)(show_help)
    for verb in verbs:
        group.command(verb.__name__.removesuffix("_verb").replace("_", "-"))(verb)
    return group
