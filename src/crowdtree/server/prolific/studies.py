"""Create the study of a campaign; publish, pause, resume and stop it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.prolific.client import Client, Json, ProlificError, StudyAction, whole
from crowdtree.server.prolific.ledger import Ledger, look, put, record
from crowdtree.server.prolific.study import StudyRequest, settings_after, study_body, written
from crowdtree.server.store import Store, tokens
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.db.tables import credentials
from crowdtree.server.store.owner import people
from crowdtree.server.store.owner.campaigns import change_settings
from crowdtree.server.store.types import JsonObject

WAIT_SECONDS = 60.0
"""After which a study that Prolific does not list was not created. Longer than a call may take."""
Move = Literal["publish", "pause", "resume", "stop"]


class Step(NamedTuple):
    """A move: the action of the API, the statuses it starts from and those it has led to."""

    action: StudyAction
    before: tuple[str, ...]
    after: tuple[str, ...]


MOVES: dict[Move, Step] = {
    "publish": Step("PUBLISH", ("UNPUBLISHED",), ("ACTIVE", "PUBLISHING", "SCHEDULED")),
    "pause": Step("PAUSE", ("ACTIVE",), ("PAUSED",)),
    "resume": Step("START", ("PAUSED",), ("ACTIVE",)),
    "stop": Step("STOP", ("ACTIVE", "PAUSED"), ("AWAITING REVIEW", "COMPLETED")),
}


def status_of(found: Json) -> str:
    """The status of a study or a submission, in one spelling.

    >>> status_of({"status": "AWAITING_REVIEW"})
    'AWAITING REVIEW'
    """
    return str(found.get("status", "")).upper().replace("_", " ")


def create_study(
    store: Store, client: Client, number: int, request: StudyRequest, dry_run: bool = False
) -> JsonObject:
    """Create a draft on Prolific, once per campaign; a repetition returns the same study."""
    campaign, ledger = store.read(lambda c: look(c, number))
    if ledger.study is not None:
        found = _existing(client, ledger.study)
        if found is not None:
            return _result(campaign, found, changed=False)
        ledger = replace(ledger, study=None, attempts=ledger.attempts + 1)
        if not dry_run:  # so that another one can be created
            put(store, number, "create", "gone")
            ledger = store.read(lambda c: look(c, number))[1]
    body = study_body(campaign, request, "TOKEN", ledger.attempts)  # checks the settings
    if dry_run:
        return _result(campaign, {**body, "status": ""}, changed=False) | {"study": body}
    if ledger.creating is not None:
        found = _find(client, body["internal_name"])
        if found is not None:
            return _finish(store, campaign, found)
        if store.clock() < ledger.creating + WAIT_SECONDS:
            raise CrowdtreeError(
                "prolific: the creation of the study was sent less than a minute ago and has no "
                "reply yet; try again in a minute"
            )
    return _send(store, client, campaign, ledger, request)


def _send(
    store: Store, client: Client, campaign: Campaign, ledger: Ledger, request: StudyRequest
) -> JsonObject:
    number, now = campaign.id, store.clock()

    def start(connection: Connection) -> str:
        record(connection, number, now, {"call": "create", "state": "sent"}, ledger.last)
        return people.join_link(connection, number, now, keep=True)

    token = store.write(start)
    try:
        body = study_body(campaign, request, token, ledger.attempts)
        found = {**body, **client.create_study(body)}
        _id_of(found)
    except ProlificError as error:
        if error.uncertain:
            words = "the study may exist: run the same again, which looks for it first"
            raise error.adding(words) from None

        def undo(connection: Connection) -> None:
            record(connection, number, store.clock(), {"call": "create", "state": "failed"})
            mine = credentials.c.token_hash == tokens.hashed(token)
            tokens.revoke(connection, store.clock(), mine)

        store.write(undo)
        raise
    return _finish(store, campaign, found)


def _finish(store: Store, campaign: Campaign, found: Json) -> JsonObject:
    detail = {"call": "create", "state": "done", "study": _id_of(found)}
    changes = settings_after(campaign)

    def finish(connection: Connection) -> None:
        record(connection, campaign.id, store.clock(), detail)
        if changes:
            policy = campaign.make_policy()
            change_settings(connection, campaign.id, policy, changes, store.clock())

    store.write(finish)
    return _result(campaign, found, changed=True)


def _id_of(found: Json) -> str:
    made = found.get("id")
    if not isinstance(made, str) or not made:
        raise ProlificError("prolific: expected a study with an id in the reply", uncertain=True)
    return made


def _existing(client: Client, study: str) -> Json | None:
    try:
        return client.get_study(study)
    except ProlificError as error:
        if error.status != 404:
            raise
        return None


def _find(client: Client, name: str) -> Json | None:
    for row in client.list_studies():
        full = row if "internal_name" in row else client.get_study(_id_of(row))
        if full.get("internal_name") == name:
            return client.get_study(_id_of(row))
    return None


def move_study(
    store: Store, client: Client, number: int, move: Move, dry_run: bool = False
) -> JsonObject:
    """Publish, pause, resume or stop the study; nothing happens if it is there already."""
    campaign, ledger = store.read(lambda c: look(c, number))
    step, study = MOVES[move], ledger.known_study
    found = client.get_study(study)
    status = status_of(found)
    if status in step.after:
        return _result(campaign, found, changed=False)
    if status not in step.before:
        hint = "; resume it instead" if (move, status) == ("publish", "PAUSED") else ""
        raise CrowdtreeError(f"prolific: cannot {move} the study: it is {status.lower()}{hint}")
    if move == "publish" and campaign.status != "running":
        raise CrowdtreeError(
            f"prolific: campaign {number} is {campaign.status}: start it before people come"
        )
    if dry_run:
        return _result(campaign, found, changed=False, move=move)
    put(store, number, move, "sent", study=study)
    try:
        moved = client.move_study(study, step.action)
    except ProlificError as error:
        if not error.uncertain:
            put(store, number, move, "failed", study=study)
        raise
    put(store, number, move, "done", study=study)
    return _result(campaign, {**found, **moved}, changed=True)


def _result(campaign: Campaign, found: Json, changed: bool, move: Move | None = None) -> JsonObject:
    names = ("total_available_places", "reward", "estimated_completion_time")
    places, cents, minutes = (whole(found.get(name), name) for name in names)
    currency = campaign.settings.money.currency
    hourly = written(round(cents * 60 / max(minutes, 1)), currency)
    text = (
        f"{places} participants, {written(cents, currency)} each for about {minutes} min "
        f"({hourly} per hour): {written(places * cents, currency)} and Prolific's fees."
    )
    return {
        "campaign": campaign.id,
        "study": found.get("id"),
        "status": status_of(found),
        "changed": changed,
        "places": places,
        "reward": cents,
        "minutes": minutes,
        "text": f"{move.capitalize()} the study: {text}" if move else text,
    }
