"""Options that the verbs of audits share, and how the standing of an audit is shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from crowdtree.audit import Audit, Forecast, Labels
from crowdtree.audit.words import next_step
from crowdtree.cli import inputs, streams
from crowdtree.cli.options import argument, option, share_option
from crowdtree.cli.render.tables import make_table, short_text
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem
from crowdtree.core.text import number, percent, plural
from crowdtree.io.audits import load_audit
from crowdtree.io.losses import loss_classes, read_loss

KEY_VARIABLE = "CROWDTREE_AUDIT_KEY"
LEAST_KEY, MOST_KEY = 16, 1_000_000
MOST_LABELS = 12
FORECAST_REPLAYS = 100

AuditFile = Annotated[Path, argument("AUDIT", "A file of audit start (.json).")]
LabelsFile = Annotated[
    str,
    argument("LABELS", "Columns item (or task), label, error (.csv .tsv .json .jsonl .parquet)."),
]
Key = Annotated[
    Path | None,
    option(f"Sign, or check the signature, with this secret (or {KEY_VARIABLE}).", "FILE", "--key"),
]
Confidence = Annotated[float, option("Confidence of the bound.", None, "--confidence")]
LossTable = Annotated[
    str | None,
    option("What mistakes cost: a table of losses, or a problem that has one.", "FILE", "--loss"),
]
LossBound = Annotated[float | None, option("Mean loss per label to certify.", "L", "--loss-bound")]
Bound = Annotated[
    float | None, share_option("--bound", help="Share of wrong labels to certify, 0 to 1.")
]


def key_words(key: Path | None) -> list[object]:
    """The key as arguments of the next command."""
    return [] if key is None else ["--key", key]


def read_costs(path: str | None, labels: Labels) -> dict[str, Any]:
    """Arguments of an audit about what mistakes cost: of a table of losses, or of a problem."""
    if path is None:
        return {}
    if path.startswith(inputs.EXAMPLE):
        return _costs_of(inputs.read_problem(path), path)
    names = loss_classes(path)
    if names is None:
        return _costs_of(inputs.read_problem(path), path)
    classes = [*names, *sorted(set(labels.labels) - set(names))]
    return {"loss": read_loss(path, classes), "classes": classes}


def _costs_of(problem: Problem, path: str) -> dict[str, Any]:
    if problem.loss is None:
        raise CrowdtreeError(f"--loss: {path} does not say what mistakes cost; give a loss")
    return {"loss": problem.loss, "classes": problem.classes}


def read_key(path: Path | None) -> bytes | None:
    """Read the secret from a file, or from the environment."""
    if path is None:
        key, where = os.environ.get(KEY_VARIABLE, "").encode().strip(), KEY_VARIABLE
        if not key:
            return None
    else:
        source = inputs.source_of(path)
        with source.open() as file:
            key, where = file.read(MOST_KEY).strip(), source.name
    if len(key) < LEAST_KEY:
        raise CrowdtreeError(
            f"{where}: holds {len(key)} bytes; expected at least {LEAST_KEY}, such as what "
            "openssl rand -hex 32 prints"
        )
    return key


def open_audit(path: Path, key: bytes | None) -> Audit:
    """Load an audit that will be saved again, which standard input cannot be."""
    if str(path) == streams.STANDARD_INPUT:
        raise CrowdtreeError("-: the audit is changed in its file; give the name of the file")
    return load_audit(path, key=key)


def forecast_of(audit: Audit) -> Forecast | None:
    """Forecast of what is missing, as the verbs show it."""
    return audit.forecast(FORECAST_REPLAYS)


def show_standing(console: Any, audit: Audit, forecast: Forecast | None) -> None:
    """Print what is certified, what is estimated and what is missing."""
    found, known_wrong = audit.standing, audit.known_wrong.total()
    known = f" and {plural(len(audit.known), 'known item')} with {known_wrong:,} wrong"
    console.print(
        f"Certified: at most [bold]{percent(found.upper)}[/] of {plural(found.items, 'label')} are "
        f"wrong ({percent(audit.confidence)} confidence), after {plural(found.checks, 'check')} "
        f"with {found.wrong - known_wrong:,} wrong{known if audit.known else ''}."
    )
    if audit.replaced:
        console.print(f"{plural(audit.replaced, 'earlier result')} replaced; the audit keeps both.")
    if found.estimate is not None:
        console.print(
            f"Estimate: {percent(found.estimate)}, {percent(found.low)} to {percent(found.high)}."
        )
    if found.checks < audit.planned:
        checks = plural(audit.planned, "check")
        console.print(f"Planned: {checks}; the bound is much lower from there on.")
    cost = audit.mean_loss
    if cost is not None:
        console.print(f"Mean loss: certified at most [bold]{number(cost.upper)}[/] per label.")
        if cost.estimate is not None:
            ends = f"{number(cost.low)} to {number(cost.high)}"
            console.print(f"Estimate: {number(cost.estimate)}, {ends}.")
    waiting = len(audit.pending)
    if waiting:
        wait = "waits" if waiting == 1 else "wait"
        console.print(f"{plural(waiting, 'drawn item')} {wait} for a result.")
    if audit.bound is not None:
        state = audit.state if cost is None else audit.error_state
        console.print(f"Wanted: {percent(audit.bound)}. {next_step(state, forecast)}")
    if cost is not None and cost.wanted is not None:
        step = next_step(cost.state, audit.forecast_loss(FORECAST_REPLAYS))
        console.print(f"Wanted mean loss: {number(cost.wanted)}. {step}")


def show_labels(console: Any, audit: Audit) -> None:
    """Print what is known of each label, the largest first."""
    rows = sorted(audit.by_label.items(), key=lambda row: -row[1].items)
    table = make_table("label", "items", "checks", "wrong", "at most", "estimate")
    for name, found in rows[:MOST_LABELS]:
        table.add_row(
            short_text(name, 30),
            f"{found.items:,}",
            f"{found.checks:,}",
            f"{found.wrong - audit.known_wrong[name]:,}",
            percent(found.upper) if found.checks or not found.upper else "–",
            "–" if found.estimate is None else percent(found.estimate),
        )
    console.print(table)
    if len(rows) > MOST_LABELS:
        console.print(f"[dim]{len(rows) - MOST_LABELS} more labels: --json[/]")


def show_forecast(console: Any, found: Forecast, bound: float, condition: str = "") -> None:
    """Print how many checks certify a bound, under the condition named."""
    if found.median is None:
        console.print(
            f"More than {percent(bound)} of the labels are wrong{condition}: no audit can certify "
            "it. Correct labels, or ask for a higher bound."
        )
        return
    console.print(
        f"About [bold]{plural(found.median, 'check')}[/] ({found.low:,} to {found.high:,}) "
        f"certify that at most {percent(bound)} of the labels are wrong{condition}."
    )
    if found.reached < 1:
        console.print(f"The chance that so few are wrong is {percent(found.reached)}.")
