"""The verb `prolific`: the study of a campaign, its submissions and bonuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from crowdtree.cli import render
from crowdtree.cli.campaign.database import (
    HERE,
    Database,
    Number,
    base_url,
    import_server,
    next_step,
    opened,
)
from crowdtree.cli.groups import make_group
from crowdtree.cli.options import AsJson, flag, option
from crowdtree.core.errors import CrowdtreeError

if TYPE_CHECKING:
    from crowdtree.server.prolific.client import Client

DryRun = Annotated[bool, flag("--dry-run", "Say what would be sent; only read from Prolific.")]
Submissions = Annotated[
    list[str] | None, option("A submission's id; repeatable.", "ID", "--submission")
]


def create_verb(
    number: Number,
    places: Annotated[int, option("Number of participants.", min=1)],
    url: Annotated[str, option("Public https address of the server.", "URL")],
    seconds: Annotated[float, option("Expected time per answer, in seconds.")] = 20.0,
    title: Annotated[str, option("Title for participants.", show_default="the name")] = "",
    description: Annotated[
        str, option("Text for participants.", show_default="the instructions")
    ] = "",
    dry_run: DryRun = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Create a draft study for a campaign; if run again, find the same study.

    Reward and time are for `money.min_answers_for_code` answers at `money.price` each. Answers
    beyond them are paid by bonuses. Settings `money.completion_code` and `money.return_url` are
    filled in where they are empty.

    Example:

      crowdtree prolific create 1 --places 50 --url https://label.example --dry-run
    """
    studies = import_server("crowdtree.server.prolific.studies")
    request = studies.StudyRequest(places, base_url(url), seconds, title, description)
    with opened(database) as store:
        found = studies.create_study(store, _client(), number, request, dry_run)
    before = "Would create a draft" if dry_run else "Created a draft"
    said = before if dry_run or found["changed"] else "The campaign has a study"
    then = next_step(database, "prolific", "publish", number)
    render.emit(as_json, found, f"{said}: {found['text']}", then="" if dry_run else then)


def _move_verb(move: str, help: str) -> Callable[..., None]:
    """Make the verb that changes the state of the study."""

    def verb(
        number: Number, dry_run: DryRun = False, database: Database = HERE, as_json: AsJson = False
    ) -> None:
        studies = import_server("crowdtree.server.prolific.studies")
        with opened(database) as store:
            found = studies.move_study(store, _client(), number, move, dry_run)
        now = f"The study is {found['status'].lower()}"
        text = found["text"] if dry_run else f"{now}. {found['text']}"
        then = next_step(database, "prolific", "submissions", number)
        render.emit(as_json, found, text, then=then)

    verb.__name__ = move
    verb.__doc__ = f"{help}\n\nExample:\n\n  crowdtree prolific {move} 1"
    return verb


def submissions_verb(number: Number, database: Database = HERE, as_json: AsJson = False) -> None:
    """List submissions with the campaign's workers, and workers unknown to Prolific.

    Example:

      crowdtree prolific submissions 1
    """
    service = import_server("crowdtree.server.prolific.submissions")
    with opened(database) as store:
        found = service.list_submissions(store, _client(), number)

    lines = [f"The study is {found['status'].lower()}.", *map(_line, found["submissions"])]
    lines += [
        f"not on Prolific: participant {row['participant']}, worker w{row['worker']}"
        for row in found["unlisted"]
    ]
    waiting = any(service.is_due(row) for row in found["submissions"])
    approve = next_step(database, "prolific", "approve", number, "--complete", "--dry-run")
    render.emit(as_json, found, lines, then=approve if waiting else "")


def approve_verb(
    number: Number,
    submissions: Submissions = None,
    complete: Annotated[
        bool, flag("--complete", "All that await review, with enough accepted answers.")
    ] = False,
    dry_run: DryRun = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Approve submissions: Prolific pays the reward. It cannot be taken back.

    Example:

      crowdtree prolific approve 1 --complete --dry-run
    """
    if bool(submissions) == complete:
        raise CrowdtreeError("prolific approve: expected --submission ID, or --complete")
    service = import_server("crowdtree.server.prolific.submissions")
    with opened(database) as store:
        names = None if complete else submissions
        found = service.approve(store, _client(), number, names, dry_run)
    then = next_step(database, "prolific", "bonus", number)
    render.emit(as_json, found, found["text"], then=then)


def reject_verb(
    number: Number,
    submissions: Annotated[
        list[str], option("A submission's id; repeatable.", "ID", "--submission")
    ],
    category: Annotated[str, option("Such as LOW_EFFORT, NO_DATA, FAILED_CHECK, OTHER.")],
    message: Annotated[str, option("Why, for the participant; at least 100 characters.")],
    dry_run: DryRun = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Reject submissions: participants are not paid, and are sent the message.

    Example:

      crowdtree prolific reject 1 --submission ID --category NO_DATA --message "We found ..."
    """
    service = import_server("crowdtree.server.prolific.submissions")
    with opened(database) as store:
        found = service.reject(store, _client(), number, submissions, category, message, dry_run)
    render.emit(as_json, found, found["text"])


def bonus_verb(
    number: Number,
    submissions: Submissions = None,
    outcome: Annotated[
        Literal["paid", "unpaid"] | None, option("What became of a payment whose reply was lost.")
    ] = None,
    dry_run: DryRun = False,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Pay, once, what participants of approved submissions earned beyond the reward.

    Example:

      crowdtree prolific bonus 1 --dry-run
    """
    if outcome is not None and (submissions or dry_run):
        raise CrowdtreeError("prolific bonus: expected --outcome without other options")
    service = import_server("crowdtree.server.prolific.submissions")
    with opened(database) as store:
        found = service.pay_bonuses(store, _client(), number, submissions or None, outcome, dry_run)
    render.emit(as_json, found, found["text"])


def _client() -> Client:
    made: Client = import_server("crowdtree.server.prolific.client").Client.from_environment()
    return made


def _line(row: dict[str, Any]) -> str:
    who = f"{row['name']}, {row['accepted']} accepted" if row["worker"] else "no worker"
    complete = ", complete" if row["complete"] else ""
    code = ", wrong code" if row["code_matches"] is False else ""
    return f"{row['submission']}  {row['status'].lower():<15}  {who}{complete}{code}"


prolific_app = make_group(
    "Recruit workers on Prolific: run a study, review submissions, pay bonuses.",
    create_verb,
    _move_verb("publish", "Publish the study: Prolific reserves the money and sends people."),
    _move_verb("pause", "Pause the study: nobody can join until it is resumed."),
    _move_verb("resume", "Resume a paused study."),
    _move_verb("stop", "Stop the study for good; submissions can still be reviewed and paid."),
    submissions_verb,
    approve_verb,
    reject_verb,
    bonus_verb,
)
