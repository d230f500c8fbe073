"""The verbs `campaign exclude`, `include` and `reopen`."""

from __future__ import annotations

import datetime as dt
import re
from functools import partial
from typing import Annotated, Any

from crowdtree.cli import render
from crowdtree.cli.campaign.database import (
    HERE,
    MAX_NUMBER,
    Database,
    Number,
    import_server,
    next_step,
    opened,
)
from crowdtree.cli.options import AsJson, argument, flag, option
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural

Workers = Annotated[
    list[str], option("A worker's number, such as 7 or w7; repeatable.", "W", "--worker")
]
Reason = Annotated[str, option("Why, for the record.", None, "--reason")]
DryRun = Annotated[bool, flag("--dry-run", "Say what would change, and change nothing.")]


def exclude_verb(
    number: Number,
    workers: Workers,
    since: Annotated[
        str | None, option("Only answers from this time on (ISO 8601; UTC).", "TIME")
    ] = None,
    block: Annotated[bool, flag("--block", "Block the workers as well.")] = False,
    reason: Reason = "",
    dry_run: DryRun = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Exclude workers' answers: labels are decided without them.

    The server replays the items in the background: labels are kept, replaced or withdrawn, and
    items whose label no longer stands are asked about again. What was paid stays paid. Answers
    that the workers give later count, unless they are blocked. `campaign include` undoes it.

    Example:

      crowdtree campaign exclude 1 --worker 7 --since 2026-05-01T12:00 --dry-run
    """
    people, start = [worker_number(text) for text in workers], _time(since)
    with opened(database) as store:
        if dry_run:
            preview = import_server("crowdtree.server.store.corrections.exclusions").preview
            found = store.read(partial(preview, campaign_id=number, workers=people, since=start))
            return render.emit(as_json, found, found["text"])
        exclude = import_server("crowdtree.server.store.corrections.exclusions").exclude
        options = {"since": start, "reason": reason.strip(), "block": block}
        made = store.write(
            partial(exclude, campaign_id=number, workers=people, now=store.clock(), **options)
        )
    return _show(as_json, made, "excluded", database)


def include_verb(
    number: Number,
    workers: Workers,
    reason: Reason = "",
    dry_run: DryRun = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Count excluded answers of workers again.

    Labels are decided by these answers and by those that came in the meantime. Workers who are
    blocked or paused stay so.

    Example:

      crowdtree campaign include 1 --worker 7
    """
    people = [worker_number(text) for text in workers]
    with opened(database) as store:
        if dry_run:
            preview = import_server("crowdtree.server.store.corrections.exclusions").preview
            found = store.read(partial(preview, campaign_id=number, workers=people, lift=True))
            return render.emit(as_json, found, found["text"])
        include = import_server("crowdtree.server.store.corrections.exclusions").include
        made = store.write(
            partial(
                include,
                campaign_id=number,
                workers=people,
                now=store.clock(),
                reason=reason.strip(),
            )
        )
    return _show(as_json, made, "included", database)


def reopen_verb(
    number: Number,
    tasks: Annotated[
        list[str] | None,
        argument("TASKS", "Names of items set aside or withdrawn.", show_default=True),
    ] = None,
    everything: Annotated[bool, flag("--all", "Reopen all items that were set aside.")] = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Reopen items that were set aside or withdrawn: people are asked about them again.

    Skips so far no longer count, but nobody is asked a question again that they have skipped. A
    finished campaign is paused then: start it to ask about the items.

    Example:

      crowdtree campaign reopen 1 --all
    """
    if bool(tasks) == everything:
        raise CrowdtreeError("reopen: expected names of items, or --all")
    reopen = import_server("crowdtree.server.web.services.campaigns").reopen_items
    with opened(database) as store:
        found = reopen(store, number, None if everything else tasks)

    def show(console: Any) -> None:
        console.print(f"[bold]{plural(found['reopened'], 'item')} reopened.[/]")
        if found["status"] == "paused":
            console.print(f"Campaign {number} is paused: {found['status_reason']}.")

    verb = "start" if found["status"] == "paused" else "status"
    render.emit(as_json, found, show, then=next_step(database, "campaign", verb, number))


def worker_number(text: str) -> int:
    """Read the number of a worker.

    >>> worker_number("7"), worker_number("w7")
    (7, 7)
    """
    found = re.fullmatch(r"w?(\d{1,16})", text.strip())
    if found is None or not 0 < int(found[1]) <= MAX_NUMBER:
        raise CrowdtreeError(f"--worker: expected a worker's number, such as 7 or w7, got {text!r}")
    return int(found[1])


def _time(text: str | None) -> float | None:
    """Read a time, in UTC where it has no zone, as seconds since 1970.

    >>> _time("1970-01-02"), _time("1970-01-01T01:00+01:00")
    (86400.0, 0.0)
    """
    if text is None:
        return None
    try:
        found = dt.datetime.fromisoformat(text.strip())
        return (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp()
    except (ValueError, OverflowError):
        raise CrowdtreeError(
            f"--since: expected a time such as 2026-05-01T12:00, got {text!r}"
        ) from None


def _show(as_json: bool, made: dict[str, Any], what: str, database: str) -> None:
    number = made["campaign"]

    def show(console: Any) -> None:
        if not made["changed"]:
            console.print(f"Nothing to do: these answers are {what} already.")
            return
        people = plural(len(made["workers"]), "worker")
        console.print(f"[bold]Answers of {people} {what}.[/]")
        console.print(
            f"Campaign {number} is at revision {made['revision']}; the server replays its items."
        )

    render.emit(as_json, made, show, then=next_step(database, "campaign", "status", number))
