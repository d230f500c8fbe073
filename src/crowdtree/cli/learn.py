"""The verb `learn`: the table, the workers and the labels from answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from crowdtree import io as files
from crowdtree.audit import Audit
from crowdtree.cli import inputs, render
from crowdtree.cli.options import (
    AsJson,
    LossFile,
    argument,
    check_html,
    check_outputs,
    option,
    with_options,
)
from crowdtree.cli.plan import default_goal
from crowdtree.cli.render.learned import show_learned
from crowdtree.cli.render.progress import progress, stage_words
from crowdtree.core.columns import Columns
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.text import percent
from crowdtree.io import interchange
from crowdtree.io.formats import ending_of
from crowdtree.io.gold import load_gold
from crowdtree.io.grids import write_delimited
from crowdtree.learning import learn
from crowdtree.show.report.learned import write_learned_report

TOOLS = {"label-studio": "Label Studio", "zooniverse": "Zooniverse"}


@dataclass(frozen=True)
class Outputs:
    """Output options."""

    output: Annotated[
        Path | None, option("Write the learned problem.", "FILE", "-o", "--output")
    ] = None
    upper: Annotated[
        Path | None,
        option(
            "Write the problem with the upper limits of its errors, for a cautious plan.", "FILE"
        ),
    ] = None
    labels: Annotated[Path | None, option("Write the labels (.csv).", "FILE")] = None
    report: Annotated[Path | None, option("Write a report (.html).", "FILE")] = None
    as_json: AsJson = False

    @property
    def files(self) -> list[Path | None]:
        """What is asked for."""
        return [self.output, self.upper, self.labels, self.report]

    def __post_init__(self) -> None:
        for problem in (self.output, self.upper):
            if problem is not None:
                ending_of(problem)
        if self.labels is not None and self.labels.suffix.lower() != ".csv":
            raise CrowdtreeError(
                f"{self.labels}: expected the extension .csv for labels; use {self.labels.stem}.csv"
            )
        check_html(self.report, "--report")
        check_outputs(self.files)

    def write(self, learned: Any, audit: Audit | None) -> None:
        """Write every file that was asked for."""
        if self.output is not None:
            files.save_problem(learned.problem, self.output)
        if self.upper is not None:
            files.save_problem(learned.upper_problem(), self.upper)
        if self.labels is not None:
            columns = learned.label_columns()
            write_delimited(
                self.labels, [list(columns), *map(list, zip(*columns.values(), strict=True))]
            )
        if self.report is not None:
            write_learned_report(self.report, learned, audit=audit)


@dataclass(frozen=True)
class AnswerTable:
    """How the files of answers are laid out."""

    task: Annotated[str | None, option("Column that names the items.", "COLUMN")] = None
    worker: Annotated[str | None, option("Column that names the workers.", "COLUMN")] = None
    label: Annotated[
        str | None, option("Column of the answers; in an export, the question to read.", "COLUMN")
    ] = None
    question: Annotated[
        str | None,
        option("Column that names the question; or columns of one question each: a,b,c.", "COLUMN"),
    ] = None
    source: Annotated[
        str | None,
        option("Column of who answers: people, an expert, a version of a model.", "COLUMN"),
    ] = None
    workers: Annotated[
        str | None,
        option("Columns of one worker each (a wide table): anna,ben or 'rater_*'.", "COLUMNS"),
    ] = None
    form: Annotated[
        Literal["plain", "crowd-kit", "label-studio", "zooniverse", "json", "wide"] | None,
        option(
            "Format of the answers; recognised by default.", None, "--format", show_default=False
        ),
    ] = None
    skip: Annotated[
        list[str] | None,
        option("Answer to treat as a skip, as ?, n/a and unsure are; repeatable.", "WORD"),
    ] = None

    @property
    def columns(self) -> dict[str, str]:
        """Names of columns that are given."""
        names = {
            "task": self.task,
            "worker": self.worker,
            "label": self.label,
            "question": self.question,
            "source": self.source,
        }
        return {role: name for role, name in names.items() if name is not None}

    def read(self, paths: Sequence[str], extra: tuple[str, ...] = ()) -> Columns:
        """Read the answers of one or several files, and say how they were understood."""
        sources = [inputs.source_of(path) for path in paths]
        for path, source in zip(paths, sources, strict=True):
            guessed = interchange.guess_format(source) if self.form is None else None
            if guessed in TOOLS:
                inputs.say(
                    f"{path}: recognised as an export of {TOOLS[guessed]} (--format {guessed})"
                )
        form = "crowdkit" if self.form in ("plain", "crowd-kit") else self.form
        read = interchange.load_answers(
            sources,
            form,
            columns=self.columns,
            workers=[name for name in (self.workers or "").split(",") if name.strip()],
            extra=extra,
        )
        if len(paths) == 1 and read.notes:
            inputs.say(f"{paths[0]}: {'; '.join(read.notes)}")
        else:
            for note in read.notes:
                inputs.say(note)
        return replace(read, notes=())


@with_options
def learn_verb(
    answers: Annotated[
        list[str],
        argument(
            "ANSWERS",
            "Columns task,worker,label, optionally question (.csv .tsv .xlsx .parquet .json).",
        ),
    ],
    *,
    gold: Annotated[
        str | None,
        option(
            "Items of known class (task,label), in any format of the answers, or the certificate "
            "of an audit.",
            "FILE",
        ),
    ] = None,
    problem: Annotated[
        str | None, option("The table of classes and questions, if it is known.", "FILE")
    ] = None,
    classes: Annotated[
        list[str] | None,
        option("Name of a class; give all of them if some occur in no answer.", "NAME", "--class"),
    ] = None,
    level: Annotated[float, option("Level of the credible intervals.")] = 0.95,
    plan: Annotated[
        str | None, option("Also estimate the error of this plan, with its interval.", "FILE")
    ] = None,
    sources: Annotated[
        str | None, option("Source of each worker (worker,source, optionally kind,price).", "FILE")
    ] = None,
    loss: LossFile = None,
    table: AnswerTable,
    outputs: Outputs,
) -> None:
    """Learn the table, the workers and the labels from answers.

    Examples:

      crowdtree learn answers.csv

      crowdtree learn april.csv may.csv --task ticket --worker who --labels labels.csv

      crowdtree learn sheet.csv --workers anna,ben,carla

      crowdtree learn answers.csv --gold gold.csv -o problem.yaml --report learned.html

      crowdtree learn answers.csv --gold audit.json --labels labels.csv

      crowdtree learn export.json --labels labels.csv

      crowdtree learn answers.csv --gold gold.csv --upper careful.yaml --plan plan.json

      crowdtree learn answers.csv --loss costs.csv --labels labels.csv

      crowdtree learn answers.csv --source kind --gold gold.csv
    """
    known = None if problem is None else inputs.read_problem(problem)
    truth = None if gold is None else load_gold(inputs.source_of(gold), table.columns)
    made = None if plan is None else _plan(plan)
    with progress(stage_words) as watch:
        watch(f"reading {listing(answers)}")
        source = table.read(answers)
        watch(f"learning from {source.n_rows:,} answers")
        learned = learn(
            source,
            truth,
            problem=known,
            classes=classes or None,
            level=level,
            columns=table.columns,
            skip=table.skip or (),
            sources=None if sources is None else inputs.source_of(sources),
        )
        if loss is not None:
            learned = learned.with_loss(files.read_loss(loss, learned.classes))
        if made:
            watch("estimating the error of the plan")
        credible = None if made is None else learned.credible_interval(made)
    if learned.answers.notes:
        inputs.say(f"{source.name}: {'; '.join(learned.answers.notes)}")
    outputs.write(learned, truth if isinstance(truth, Audit) else None)

    def show(console: Any) -> None:
        show_learned(console, learned)
        if credible is not None:
            console.print(
                f"The plan misclassifies [bold]{percent(credible.mean)}[/] of items, "
                f"{percent(credible.low)} to {percent(credible.high)} "
                f"[dim](estimate, {percent(level)} interval)[/].\n"
            )

    written = outputs.upper or outputs.output
    then = ""
    if written is not None and learned.problem.has_sources:
        then = render.command("simulate", str(written), "--policy", "adaptive")
    elif written is not None:
        then = render.command("plan", str(written), default_goal(learned.problem))
    elif outputs.labels is not None:
        then = render.command("audit start", str(outputs.labels), "-o", "audit.json")
    found = learned.to_dict() | ({} if credible is None else {"credible": asdict(credible)})
    render.emit(outputs.as_json, found, show, outputs.files, then)


def _plan(path: str) -> Plan:
    made = inputs.read_plan(path)
    if made is None:
        raise CrowdtreeError(
            f"{path}: expected a plan; write one with crowdtree plan ... --tree -o plan.json"
        )
    return made
