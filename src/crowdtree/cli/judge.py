"""The verb `judge`: whether models may replace or join people, and how far people agree."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from crowdtree.cli import inputs, render
from crowdtree.cli.learn import AnswerTable
from crowdtree.cli.options import (
    AsJson,
    Seed,
    argument,
    check_html,
    check_outputs,
    option,
    with_options,
)
from crowdtree.cli.render.judging import show_judgement
from crowdtree.core.errors import CrowdtreeError
from crowdtree.io.gold import load_gold
from crowdtree.learning.judges import judge
from crowdtree.show.report.judging import write_judgement_report


@with_options
def judge_verb(
    answers: Annotated[
        list[str],
        argument(
            "ANSWERS", "Columns task,worker,label, optionally question, source (or kind), version."
        ),
    ],
    *,
    models: Annotated[
        str | None,
        option(
            "Workers that are models: a,b or gpt-*, or a table with the columns worker and kind.",
            "NAMES",
        ),
    ] = None,
    gold: Annotated[
        str | None, option("Known items, drawn at random (task,label[,question]).", "FILE")
    ] = None,
    margin: Annotated[
        float, option("How much less accurate than a person a model may be, as a share.")
    ] = 0.05,
    output: Annotated[
        Path | None, option("Write a page (.html).", "FILE", "-o", "--output")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    table: AnswerTable,
) -> None:
    """Judge models: may they replace or join people? And how far do people agree?

    Examples:

      crowdtree judge answers.csv

      crowdtree judge answers.csv --models gpt-x,other -o page.html

      crowdtree judge answers.csv --models workers.csv --gold gold.csv --json
    """
    check_html(output, "-o")
    check_outputs([output])
    truth = None if gold is None else load_gold(inputs.source_of(gold), table.columns)
    source = table.read(answers, ("source", "version", "kind"))
    judgement = judge(
        source, truth, models=_models(models), margin=margin, columns=table.columns,
        skip=table.skip or (), rng=seed,
    )  # fmt: skip
    for note in judgement.notes:
        inputs.say(f"{source.name}: {note}")
    if output is not None:
        write_judgement_report(output, judgement)

    then = render.again("-o", "judge.html") if output is None else ""
    show = partial(show_judgement, judgement=judgement)
    render.emit(as_json, judgement.to_dict(), show, [output], then)


def _models(words: str | None) -> Any:
    """Names of models, or the table that lists them."""
    if words is None:
        return None
    if Path(words).suffix.lower() in (".csv", ".tsv", ".parquet"):
        return inputs.source_of(words)
    names = [name.strip() for name in words.split(",") if name.strip()]
    if not names:
        raise CrowdtreeError("--models: expected names of workers, got none; write --models a,b")
    return names
