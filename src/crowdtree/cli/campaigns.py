"""The verb `campaign`: create, items, start, pause, status, labels, answers, verify."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from crowdtree.cli import common
from crowdtree.cli.common import AsJson, File, Seed
from crowdtree.cli.server import HERE, Database, import_server, opened
from crowdtree.cli.status import status_lines
from crowdtree.errors import CrowdtreeError
from crowdtree.files.atomic import write_atomically

__all__ = ["campaign_app"]


campaign_app = typer.Typer(
    help="Make and look after live campaigns.", no_args_is_help=True, rich_markup_mode=None
)
MOST_NUMBER = 2**53
Number = Annotated[
    int, typer.Argument(metavar="CAMPAIGN", max=MOST_NUMBER, help="The campaign's number.")
]
Format = Annotated[
    Literal["csv", "jsonl", "parquet"] | None,
    typer.Option("--format", help="By the ending of FILE where not given.", show_default=False),
]
Out = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to FILE.")]


@campaign_app.command("create")
def create_verb(
    file: File,
    name: Annotated[str, typer.Option("--name", help="What the campaign is called.")] = "",
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Choose each question by what is known.")
    ] = False,
    target_error: Annotated[
        float, typer.Option("--target-error", help="Adaptive: stop at this error.")
    ] = 0.05,
    max_answers: Annotated[
        int, typer.Option("--max-answers", help="Adaptive: most answers an item.")
    ] = 50,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Plan: extra workers beyond one a node.")
    ] = None,
    answers: Annotated[
        float | None, typer.Option("--answers", help="Plan: expected answers an item.")
    ] = None,
    stopping: Annotated[
        Literal["none", "curtailed", "margin"], typer.Option("--stopping", help="When votes end.")
    ] = "curtailed",
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting, such as gold_rate=0.1."),
    ] = None,
    allow_groups: common.AllowGroups = False,
    database: Database = HERE,
    as_json: AsJson = False,
    seed: Seed = 0,
) -> None:
    """Create a campaign from a problem or a plan.

    Examples:

      crowdtree campaign create example:animals --workers 20 --name Birds

      crowdtree campaign create plan.json --set price=0.05 --set budget=100
    """
    store_module = import_server("crowdtree.store")
    from crowdtree.store.owner import campaigns

    policy = _policy(
        file, adaptive, target_error, max_answers, workers, answers, stopping, allow_groups, seed
    )
    settings = store_module.checked_settings(_settings(setting or []))
    with opened(database, new=True) as store:
        number = store.write(
            lambda c: campaigns.create(c, name or file, policy, settings, store.clock())
        )

    def tell(console: Any) -> None:
        console.print(f"[bold]Campaign {number} is made.[/]")
        console.print(f"[dim]Next: crowdtree campaign items {number} items.csv[/]")

    common.emit(as_json, {"campaign": number}, tell)


def _policy(
    file: str,
    adaptive: bool,
    target_error: float,
    max_answers: int,
    workers: int | None,
    answers: float | None,
    stopping: Any,
    allow_groups: bool,
    seed: int,
) -> Any:
    from crowdtree.cli.designing import make_tree
    from crowdtree.policy import AdaptivePolicy, PlanPolicy
    from crowdtree.staffing import staff

    plan = common.read_plan(file)
    if plan is not None and not adaptive:
        return PlanPolicy(plan, stopping)
    problem = common.read_problem(file) if plan is None else plan.tree.problem
    if adaptive:
        return AdaptivePolicy(problem, target_error, max_answers, strict=False)
    tree = make_tree(problem, "fm", allow_groups, seed)
    if workers is None and answers is None:
        return PlanPolicy(tree, stopping)  # type: ignore[arg-type]
    return PlanPolicy(staff(tree, workers, answers=answers, rng=seed), stopping)


def _settings(pairs: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise CrowdtreeError(f"--set {pair}: write it as NAME=VALUE")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found


@campaign_app.command("items")
def items_verb(
    number: Number,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Items: .csv or .jsonl.")],
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Add items to a campaign from a CSV or JSON-lines file.

    Example:

      crowdtree campaign items 1 birds.csv
    """
    import_server("crowdtree.web")
    from crowdtree.web.api.transfer import add_from_file

    kind = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}.get(file.suffix.lower())
    if kind is None:
        raise CrowdtreeError(f"{file}: items are read from .csv or .jsonl")
    with opened(database) as store, file.open("rb") as content:
        found = add_from_file(store, number, content, kind)

    def tell(console: Any) -> None:
        console.print(f"[bold]{found['added']:,} items added[/] of {found['read']:,} in the file.")
        console.print(f"[dim]Next: crowdtree campaign start {number}[/]")

    common.emit(as_json, found, tell)


@campaign_app.command("start")
def start_verb(number: Number, database: Database = HERE, as_json: AsJson = False) -> None:
    """Start or resume a campaign: workers get questions.

    Example:

      crowdtree campaign start 1
    """
    _move(number, "running", database, as_json)


@campaign_app.command("pause")
def pause_verb(number: Number, database: Database = HERE, as_json: AsJson = False) -> None:
    """Pause a campaign: nobody gets a new question.

    Example:

      crowdtree campaign pause 1
    """
    _move(number, "paused", database, as_json)


def _move(number: int, status: Literal["running", "paused"], database: str, as_json: bool) -> None:
    import_server("crowdtree.store")
    from crowdtree.store.owner import campaigns

    with opened(database) as store:
        store.write(lambda c: campaigns.set_status(c, number, status, store.clock()))

    def tell(console: Any) -> None:
        console.print(f"[bold]Campaign {number} is {status}.[/]")

    common.emit(as_json, {"campaign": number, "status": status}, tell)


@campaign_app.command("status")
def status_verb(
    number: Annotated[
        int | None,
        typer.Argument(metavar="[CAMPAIGN]", max=MOST_NUMBER, help="All where not given."),
    ] = None,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Say how a campaign is going, or list all.

    Example:

      crowdtree campaign status 1
    """
    import_server("crowdtree.store")
    from crowdtree.store.db.campaign_row import list_campaigns
    from crowdtree.store.queries.progress import progress

    with opened(database) as store:
        rows = store.read(list_campaigns) if number is None else []
        numbers = [row.id for row in rows] if number is None else [number]
        found = [dict(store.read(partial(progress, number=n, now=store.clock()))) for n in numbers]

    def tell(console: Any) -> None:
        for row in found:
            for line in status_lines(row):
                console.print(line, markup=False, soft_wrap=True)
        if not found:
            console.print("No campaigns yet.")
            console.print("[dim]Next: crowdtree campaign create example:animals[/]")

    common.emit(as_json, found[0] if number is not None else {"campaigns": found}, tell)


@campaign_app.command("labels")
def labels_verb(
    number: Number, output: Out = None, format: Format = None, database: Database = HERE
) -> None:
    """Write the labels so far: task, label, posterior error, reason, path.

    Example:

      crowdtree campaign labels 1 -o labels.csv
    """
    import_server("crowdtree.web")
    from crowdtree.store.queries.export import label_rows
    from crowdtree.web.api.transfer import LABELS

    _export(number, output, format, database, label_rows, "classes", LABELS)


@campaign_app.command("answers")
def answers_verb(
    number: Number,
    output: Out = None,
    format: Format = None,
    log: Annotated[bool, typer.Option("--log", help="Everything: skips and undos too.")] = False,
    database: Database = HERE,
) -> None:
    """Write the answers as crowd-kit reads them: task, question, worker, label.

    Example:

      crowdtree campaign answers 1 -o answers.csv
    """
    import_server("crowdtree.web")
    from crowdtree.store.queries.export import answer_rows
    from crowdtree.web.api.transfer import ANSWERS, CROWD_KIT, standing_answers

    read, columns = (answer_rows, ANSWERS) if log else (standing_answers, CROWD_KIT)
    _export(number, output, format, database, read, "questions", columns)


def _export(
    number: int,
    output: Path | None,
    format: str | None,
    database: str,
    read: Any,
    names: Literal["classes", "questions"],
    columns: list[str],
) -> None:
    from crowdtree.store.db.campaign_row import get_campaign
    from crowdtree.store.queries.export import pieces
    from crowdtree.web import tables

    kind = format or (output.suffix.lstrip(".").lower() if output else "csv")
    writers = {"csv": tables.csv_lines, "jsonl": tables.json_lines}
    if kind not in (*writers, "parquet"):
        raise CrowdtreeError(f"{output}: end the name with .csv, .jsonl or .parquet")
    if output is not None and not output.parent.is_dir():
        raise CrowdtreeError(f"{output}: folder {output.parent} does not exist; make it first")
    with opened(database) as store:
        known = store.read(lambda c: get_campaign(c, number)).problem[names]
        rows = pieces(lambda after: store.read(lambda c: read(c, number, known, after)))
        if kind == "parquet":
            chunks: Iterator[bytes] = iter([tables.parquet(rows, columns)])
        else:
            chunks = writers[kind](rows, columns)
        _write(chunks, output)


def _write(chunks: Iterator[bytes], output: Path | None) -> None:
    """Write to a file that appears whole or not at all, or to standard output."""
    if output is not None:
        write_atomically(output, lambda file: file.writelines(chunks))
        return
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.flush()


@campaign_app.command("verify")
def verify_verb(number: Number, database: Database = HERE, as_json: AsJson = False) -> None:
    """Replay the log of a campaign and compare it with everything that the database says.

    Leaves with 1 where they differ.

    Example:

      crowdtree campaign verify 1
    """
    import_server("crowdtree.store")
    from crowdtree.store.replay.verify import verify

    with opened(database) as store:
        found: dict[str, Any] = dict(store.read(lambda c: verify(c, number)))

    def tell(console: Any) -> None:
        if found["agrees"]:
            console.print(
                f"[bold]All is well:[/] {found['answers']:,} answers replayed, "
                f"{found['labelled']:,} labels agree."
            )
        for text in found["differences"]:
            console.print(text, markup=False)

    common.emit(as_json, found, tell)
    if not found["agrees"]:
        raise typer.Exit(1)
