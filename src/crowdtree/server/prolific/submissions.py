"""Submissions of a study and the workers of the campaign: approve, reject, pay bonuses once.

Prolific pays again when a payment is sent again. So a payment whose reply was lost is not repeated:
it counts as paid when Prolific lists its bonuses, and otherwise the owner says what became of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, get_args

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError, listing, one_line
from crowdtree.core.text import plural
from crowdtree.server.prolific.client import Client, Json, ProlificError, whole
from crowdtree.server.prolific.ledger import (
    Ledger,
    Payment,
    in_cents,
    look,
    put,
    record,
    written,
)
from crowdtree.server.prolific.studies import status_of
from crowdtree.server.settings.groups import MICRO
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import Store
from crowdtree.server.store.db.tables import workers
from crowdtree.server.store.queries.export import worker_name
from crowdtree.server.store.types import JsonObject

Outcome = Literal["paid", "unpaid"]
MIN_MESSAGE = 100
"""Characters of a message that explains a rejection."""
Category = Literal[
    "TOO_QUICKLY",
    "TOO_SLOWLY",
    "FAILED_INSTRUCTIONS",
    "INCOMP_LONGITUDINAL",
    "FAILED_CHECK",
    "LOW_EFFORT",
    "MALINGERING",
    "NO_CODE",
    "BAD_CODE",
    "NO_DATA",
    "UNSUPP_DEVICE",
    "OTHER",
]
WAITING = "AWAITING REVIEW"
UNDERWAY = "PROCESSING"
"""Status of a submission for a moment after it was approved or rejected."""


class SubmissionRow(TypedDict):
    """A submission with the worker of the campaign who has its participant id, if there is one."""

    submission: str
    participant: str
    status: str
    started_at: str | None
    code_matches: bool | None
    worker: int | None
    name: str
    worker_status: str
    accepted: int
    earned: float
    complete: bool


def list_submissions(store: Store, client: Client, campaign_id: int) -> JsonObject:
    """List submissions with their workers, and participants whom Prolific does not list."""
    campaign, ledger = store.read(lambda c: look(c, campaign_id))
    study = client.get_study(ledger.known_study)
    rows = submission_rows(store, client, campaign_id, ledger.known_study, campaign.settings)
    listed = {row["participant"] for row in rows}
    people = store.read(lambda c: _workers(c, campaign_id))
    unlisted = [
        {"participant": name, "worker": row.id}
        for name, row in people.items()
        if name not in listed
    ]
    return {
        "campaign": campaign_id,
        "study": ledger.known_study,
        "status": status_of(study),
        "submissions": [dict(row) for row in rows],
        "unlisted": unlisted,
    }


def submission_rows(
    store: Store, client: Client, campaign_id: int, study: str, settings: Settings
) -> list[SubmissionRow]:
    """Read the submissions of a study, each with its worker."""
    people = store.read(lambda c: _workers(c, campaign_id))
    return [_row(found, people, settings) for found in client.list_submissions(study)]


def _workers(connection: Connection, campaign_id: int) -> dict[str, sa.Row[tuple[object, ...]]]:
    columns = ("id", "external_id", "name", "status", "accepted", "earned")
    found = connection.execute(
        sa.select(*(workers.c[name] for name in columns))
        .where(workers.c.campaign_id == campaign_id, workers.c.external_id.is_not(None))
        .order_by(workers.c.id)
    )
    return {row.external_id: row for row in found}


def _row(
    found: Json, people: Mapping[str, sa.Row[tuple[object, ...]]], settings: Settings
) -> SubmissionRow:
    participant = str(found.get("participant_id") or found.get("participant") or "")
    worker = people.get(participant)
    code = found.get("study_code")
    return {
        "submission": str(found.get("id", "")),
        "participant": participant,
        "status": status_of(found),
        "started_at": found.get("started_at"),
        "code_matches": code == settings.money.completion_code if code else None,
        "worker": None if worker is None else worker.id,
        "name": "" if worker is None else worker_name(worker.id, worker.name),
        "worker_status": "" if worker is None else worker.status,
        "accepted": 0 if worker is None else worker.accepted,
        "earned": 0.0 if worker is None else worker.earned / MICRO,
        "complete": worker is not None and worker.accepted >= settings.money.min_answers_for_code,
    }


def chosen(rows: Sequence[SubmissionRow], names: Sequence[str]) -> list[SubmissionRow]:
    """Find submissions by their ids, each once, or raise."""
    known = {row["submission"]: row for row in rows}
    unknown = [one_line(name) for name in names if name not in known]
    if unknown:
        raise CrowdtreeError(f"prolific: the study has no submission {listing(unknown)}")
    return [known[name] for name in dict.fromkeys(names)]


def approve(
    store: Store,
    client: Client,
    campaign_id: int,
    names: Sequence[str] | None = None,
    dry_run: bool = False,
) -> JsonObject:
    """Approve submissions by id; without ids, those that await review and are complete."""
    return _decide(store, client, campaign_id, names, {"action": "APPROVE"}, dry_run)


def reject(
    store: Store,
    client: Client,
    campaign_id: int,
    names: Sequence[str],
    category: str,
    message: str,
    dry_run: bool = False,
) -> JsonObject:
    """Reject submissions by id, with a category and a message to the participants."""
    category = category.strip().upper()
    if category not in get_args(Category):
        raise CrowdtreeError(
            f"category: expected one of {', '.join(get_args(Category))}, got {one_line(category)}"
        )
    message = message.strip()
    if len(message) < MIN_MESSAGE:
        raise CrowdtreeError(
            f"message: Prolific expects at least {MIN_MESSAGE} characters that explain the "
            f"rejection to the participant, got {len(message)}"
        )
    body = {"action": "REJECT", "message": message, "rejection_category": category}
    return _decide(store, client, campaign_id, names, body, dry_run)


def _decide(
    store: Store,
    client: Client,
    campaign_id: int,
    names: Sequence[str] | None,
    body: Mapping[str, str],
    dry_run: bool,
) -> JsonObject:
    campaign, ledger = store.read(lambda c: look(c, campaign_id))
    rows = submission_rows(store, client, campaign_id, ledger.known_study, campaign.settings)
    verb, wanted = (
        ("approve", "APPROVED") if body["action"] == "APPROVE" else ("reject", "REJECTED")
    )
    mine = [row for row in rows if is_due(row)] if names is None else chosen(rows, names)
    there = [row["submission"] for row in mine if row["status"] in (wanted, UNDERWAY)]
    todo = [row for row in mine if row["submission"] not in there]
    for row in todo:
        if row["status"] != WAITING:
            raise CrowdtreeError(
                f"prolific: cannot {verb} submission {row['submission']}: it is "
                f"{row['status'].lower()}"
            )
    ids = [row["submission"] for row in todo]
    if ids and not dry_run:
        _send(store, client, campaign_id, verb, ids, body)
    words = f"{plural(len(ids), 'submission')} to {verb}" if dry_run else ""
    said = words or f"{plural(len(ids), 'submission')} {wanted.lower()}"
    already = f"; {len(there)} {wanted.lower()} already" if there else ""
    return {
        "campaign": campaign_id,
        "study": ledger.known_study,
        wanted.lower(): [] if dry_run else ids,
        "due": ids if dry_run else [],
        "already": there,
        "text": f"{said}{already}.",
    }


def is_due(row: SubmissionRow) -> bool:
    """Whether a submission awaits review with enough accepted answers."""
    return row["status"] == WAITING and row["complete"] and row["worker_status"] != "blocked"


def _send(
    store: Store,
    client: Client,
    campaign_id: int,
    verb: str,
    ids: Sequence[str],
    body: Mapping[str, str],
) -> None:
    """Send one call per submission. Prolific ignores repetitions, so all may be sent again."""

    why = {key: value for key, value in body.items() if key != "action"}
    put(store, campaign_id, verb, "sent", submissions=ids, **why)
    for count, name in enumerate(ids):
        try:
            client.move_submission(name, body)
        except ProlificError as error:
            put(store, campaign_id, verb, "done", submissions=ids[:count])
            words = f"{count} of {len(ids)} submissions done: run the same again for the rest"
            raise error.adding(words) from None
    put(store, campaign_id, verb, "done", submissions=ids)


# ------------------------------------------------------------------------------- bonuses


def pay_bonuses(
    store: Store,
    client: Client,
    campaign_id: int,
    names: Sequence[str] | None = None,
    outcome: Outcome | None = None,
    dry_run: bool = False,
) -> JsonObject:
    """Pay what the participants of approved submissions have earned beyond reward and bonuses.

    `names`: submissions; all by default. `outcome`: what the owner found out about a payment whose
    reply was lost. `dry_run`: only compute what is owed.
    """
    campaign, ledger = store.read(lambda c: look(c, campaign_id))
    study = ledger.known_study
    if outcome is not None:
        return _settle(store, campaign_id, ledger, outcome)
    if ledger.payment is not None:
        ledger = _resolved(store, client, campaign_id, ledger.payment, dry_run)
    rows = submission_rows(store, client, campaign_id, study, campaign.settings)
    approved = [row for row in rows if row["status"] == "APPROVED" and row["worker"] is not None]
    if names is not None:
        wanted = {row["participant"] for row in chosen(rows, names)}
        approved = [row for row in approved if row["participant"] in wanted]
    before = {row["submission"]: _listed(client, row["submission"]) for row in approved}
    owed = _owed(approved, whole(client.get_study(study).get("reward"), "reward"), before, ledger)
    payment = None
    if owed and not dry_run:
        payment = _pay(store, client, campaign_id, study, owed, before, ledger)
    total = written(sum(owed.values()), campaign.settings.money.currency)
    verb = "to pay" if dry_run else "paid"
    return {
        "campaign": campaign_id,
        "study": study,
        "payment": payment,
        "bonuses": owed,
        "total": sum(owed.values()),
        "paid": payment is not None,
        "text": f"{plural(len(owed), 'bonus', 'bonuses')} {verb}, {total} and Prolific's fees."
        if owed
        else "No bonus is owed.",
    }


def _owed(
    rows: Sequence[SubmissionRow], reward: int, before: Mapping[str, int], ledger: Ledger
) -> dict[str, int]:
    """Minor units owed per submission; a participant with several gets them for the first one."""
    mine: dict[str, list[str]] = {}
    earned: dict[str, int] = {}
    for row in rows:
        mine.setdefault(row["participant"], []).append(row["submission"])
        earned[row["participant"]] = in_cents(round(row["earned"] * MICRO))
    owed = {}
    for participant, ids in mine.items():
        # Prolific lists bonuses minutes later, and those that were paid on its site as well
        paid = sum(max(before[name], ledger.paid.get(name, 0)) for name in ids)
        cents = earned[participant] - reward * len(ids) - paid
        if cents > 0:
            owed[ids[0]] = cents
    return owed


def _pay(
    store: Store,
    client: Client,
    campaign_id: int,
    study: str,
    owed: Mapping[str, int],
    before: Mapping[str, int],
    ledger: Ledger,
) -> str:
    payment = client.set_up_bonuses(study, owed)  # pays nothing yet
    earlier = {name: before[name] for name in owed}
    amounts = {"amounts": dict(owed), "before": earlier}
    sent = {"call": "bonus", "state": "sent", "payment": payment, **amounts}
    store.write(lambda c: record(c, campaign_id, store.clock(), sent, ledger.last))
    try:
        client.pay_bonuses(payment)
    except ProlificError as error:
        if error.uncertain:
            words = "the bonuses may have been paid: they are not sent again before that is known"
            raise error.adding(words) from None
        put(store, campaign_id, "bonus", "failed", payment=payment)
        raise
    put(store, campaign_id, "bonus", "done", payment=payment)
    return payment


def _resolved(
    store: Store, client: Client, campaign_id: int, payment: Payment, dry_run: bool
) -> Ledger:
    """Find out whether a payment without a reply arrived, or raise."""
    late = any(
        _listed(client, name) < payment.before[name] + cents
        for name, cents in payment.amounts.items()
    )
    where = f"prolific: payment {payment.id} was sent without a reply"
    if late:
        raise CrowdtreeError(
            f"{where}, and Prolific does not list all its bonuses; wait some minutes, look at the "
            "study on Prolific, then record the outcome: paid or unpaid"
        )
    if dry_run:
        raise CrowdtreeError(f"{where}, but Prolific lists its bonuses; a real run records that")
    put(store, campaign_id, "bonus", "done", payment=payment.id)
    return store.read(lambda c: look(c, campaign_id))[1]


def _settle(store: Store, campaign_id: int, ledger: Ledger, outcome: Outcome) -> JsonObject:
    if ledger.payment is None:
        raise CrowdtreeError("prolific: there is no payment without a reply")
    state = "done" if outcome == "paid" else "failed"
    put(store, campaign_id, "bonus", state, payment=ledger.payment.id)
    text = f"Payment {ledger.payment.id} counts as {outcome}."
    return {"campaign": campaign_id, "payment": ledger.payment.id, "outcome": outcome, "text": text}


def _listed(client: Client, submission: str) -> int:
    """Minor units of the bonuses that Prolific lists for a submission."""
    paid = client.get_submission(submission).get("bonus_payments") or ()
    return sum(whole(cents, "bonus_payments") for cents in paid)
