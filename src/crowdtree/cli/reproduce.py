"""The verb `reproduce`: every figure and number of the paper, recomputed."""

from __future__ import annotations

from typing import Any

from crowdtree.cli import render
from crowdtree.cli.options import AsJson, Folder, check_folder
from crowdtree.paper import reproduce


def reproduce_verb(out: Folder, as_json: AsJson = False) -> None:
    """Recompute the paper's figures and numbers, and show its errors.

    Example:

      crowdtree reproduce --out paper
    """
    check_folder(out)
    result = reproduce(out)

    def show(console: Any) -> None:
        console.print(f"[bold]{out / 'index.html'}[/] shows all of it.\n")
        for line in result.lines():
            console.print(line, soft_wrap=True)

    render.emit(as_json, result.to_dict(), show)
