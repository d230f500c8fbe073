"""The verb `new`: a commented table to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from crowdtree.cli import render
from crowdtree.cli.options import AsJson, argument, check_outputs
from crowdtree.io.template import check_template, write_template


def new_verb(
    file: Annotated[Path, argument("FILE", "A new file: .xlsx, .csv or .yaml.")],
    as_json: AsJson = False,
) -> None:
    """Write a commented table to start from.

    Replace its classes, questions and errors with your own.

    Examples:

      crowdtree new birds.xlsx

      crowdtree new birds.csv
    """
    check_template(file)
    check_outputs([file])
    write_template(file)

    words = "Edit the table: replace the classes and questions with your own."
    render.emit(as_json, {"written": str(file)}, words, [file], render.command("check", str(file)))
