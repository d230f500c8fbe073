"""The study of a campaign: what is sent to create it; publish, pause, resume and stop it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.server.prolific.client import Client, Json, ProlificError, StudyAction, whole
from crowdtree.server.prolific.ledger import Ledger, in_cents, look, put, record, written
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import Store, tokens
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.db.tables import credentials
from crowdtree.server.store.owner import people
from crowdtree.server.store.owner.campaigns import change_settings
from crowdtree.server.store.types import JsonObject

WAIT_SECONDS = 60.0
"""After which a study that Prolific does not list was not created. Longer than a call may take."""
Move = Literal["publish", "pause", "resume", "stop"]
CURRENCIES = ("", "GBP", "USD", "£", "$")
RETURN = "https://app.prolific.com/submissions/complete?cc="
DEVICES = ("desktop", "tablet", "mobile")
MAX_MINUTES = 24 * 60


@dataclass(frozen=True)
class StudyRequest:
    """What an owner chooses for a study; the rest follows from the campaign's settings."""

    places: int
    """Participants."""
    url: str = ""
    """Public address of the server."""
    seconds: float = 20.0
    """Expected time per answer."""
    title: str = ""
    """Title for participants; the campaign's name by default."""
    description: str = ""
    """Description for participants; the campaign's instructions by default."""


def internal_name(campaign: Campaign, attempt: int) -> str:
    """Name a study so that it is found again when the reply to its creation was lost."""
    mark = _derived(campaign.secret, f"study:{attempt}").hex()[:16]
    return f"crowdtree-{campaign.id}-{mark}"


def code_for(campaign: Campaign) -> str:
    """The completion code of the study: the campaign's, or a derived one that nobody can guess."""
    if campaign.settings.money.personal_codes:
        raise CrowdtreeError(
            "prolific: money.personal_codes is on, but all participants of a study need the same "
            "code; switch money.personal_codes off"
        )
    made = base64.b32encode(_derived(campaign.secret, "completion")).decode()[:10]
    return campaign.settings.money.completion_code or made


def study_body(campaign: Campaign, request: StudyRequest, token: str, attempt: int) -> JsonObject:
    """Make the draft that is sent; `token` is that of a join link."""
    settings = campaign.settings
    _check(settings, request)
    title = request.title.strip() or campaign.name
    code = code_for(campaign)
    return {
        "name": title,
        "internal_name": internal_name(campaign, attempt),
        "description": request.description.strip() or settings.tasks.instructions.strip() or title,
        "external_study_url": _address(settings, request.url, token),
        "prolific_id_option": "url_parameters",
        "completion_codes": [
            {"code": code, "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]}
        ],
        "total_available_places": request.places,
        "estimated_completion_time": _minutes(settings, request),
        "reward": _reward(settings),
        "device_compatibility": list(DEVICES),
        "peripheral_requirements": [],
        "filters": [],
    }


def settings_after(campaign: Campaign) -> dict[str, object]:
    """Settings that send participants back to the study with its code, where they are not set."""
    code, now = code_for(campaign), campaign.settings.values()
    wanted = {"money.completion_code": code, "money.return_url": RETURN + code}
    return {name: value for name, value in wanted.items() if not now[name]}


def _check(settings: Settings, request: StudyRequest) -> None:
    if not 1 <= request.places <= settings.people.max_workers:
        raise CrowdtreeError(
            f"places: expected 1 to people.max_workers ({settings.people.max_workers}), "
            f"got {request.places}"
        )
    if not 0 < request.seconds <= 3600:
        raise CrowdtreeError(f"seconds: expected up to 3600 per answer, got {request.seconds:g}")
    if settings.money.currency.upper() not in CURRENCIES:
        raise CrowdtreeError(
            "settings: money.currency: Prolific pays in GBP or USD, got "
            f"{settings.money.currency!r}"
        )
    if settings.people.may_join == "signed":
        raise CrowdtreeError(
            "settings: people.may_join: Prolific does not sign ids; expected named, got signed"
        )


def _reward(settings: Settings) -> int:
    """Minor units for the answers that a participant must give."""
    reward = in_cents(settings.money.price_micros * settings.money.min_answers_for_code)
    if not reward:
        raise CrowdtreeError(
            "settings: money.price: a study needs a reward; set a price, and "
            "money.min_answers_for_code to the accepted answers that it is for"
        )
    return reward


def _minutes(settings: Settings, request: StudyRequest) -> int:
    answers = settings.money.min_answers_for_code
    minutes = max(1, math.ceil(answers * request.seconds / 60))
    if minutes > MAX_MINUTES:
        raise CrowdtreeError(
            f"seconds: {answers} answers (money.min_answers_for_code) would take {minutes} "
            "minutes; a study may take less than a day"
        )
    return minutes


def _address(settings: Settings, url: str, token: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise CrowdtreeError(
            "url: Prolific sends participants to an https address; expected the public one of the "
            f"server, such as https://label.example, got {one_line(url)}"
        )
    name = settings.people.participant_parameter or "participant"
    query = f"{name}={{{{%PROLIFIC_PID%}}}}&STUDY_ID={{{{%STUDY_ID%}}}}"
    return f"{url.rstrip('/')}/join/{token}?{query}&SESSION_ID={{{{%SESSION_ID%}}}}"


def _derived(secret: str, purpose: str) -> bytes:
    return hmac.new(secret.encode(), f"prolific:{purpose}".encode(), hashlib.sha256).digest()


# --------------------------------------------------------------------------------- calls


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
    store: Store, client: Client, campaign_id: int, request: StudyRequest, dry_run: bool = False
) -> JsonObject:
    """Create a draft on Prolific, once per campaign; a repetition returns the same study."""
    campaign, ledger = store.read(lambda c: look(c, campaign_id))
    if ledger.study is not None:
        found = _existing(client, ledger.study)
        if found is not None:
            return _result(campaign, found, changed=False)
        ledger = replace(ledger, study=None, attempts=ledger.attempts + 1)
        if not dry_run:  # so that another one can be created
            put(store, campaign_id, "create", "gone")
            ledger = store.read(lambda c: look(c, campaign_id))[1]
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
    campaign_id, now = campaign.id, store.clock()

    def start(connection: Connection) -> str:
        record(connection, campaign_id, now, {"call": "create", "state": "sent"}, ledger.last)
        return people.join_link(connection, campaign_id, now, keep=True)

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
            record(connection, campaign_id, store.clock(), {"call": "create", "state": "failed"})
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
    store: Store, client: Client, campaign_id: int, move: Move, dry_run: bool = False
) -> JsonObject:
    """Publish, pause, resume or stop the study; nothing happens if it is there already."""
    campaign, ledger = store.read(lambda c: look(c, campaign_id))
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
            f"prolific: campaign {campaign_id} is {campaign.status}: start it before people come"
        )
    if dry_run:
        return _result(campaign, found, changed=False, move=move)
    put(store, campaign_id, move, "sent", study=study)
    try:
        moved = client.move_study(study, step.action)
    except ProlificError as error:
        if not error.uncertain:
            put(store, campaign_id, move, "failed", study=study)
        raise
    put(store, campaign_id, move, "done", study=study)
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
