"""Bonuses: what participants earned beyond the reward of the study, paid once.

Prolific pays again when a payment is sent again. So a payment whose reply was lost is not repeated:
it counts as paid when Prolific lists its bonuses, and otherwise the owner says what became of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural
from crowdtree.server.prolific.client import Client, ProlificError, whole
from crowdtree.server.prolific.ledger import Ledger, Payment, look, put, record
from crowdtree.server.prolific.people import SubmissionRow, chosen, submission_rows
from crowdtree.server.prolific.study import in_cents, written
from crowdtree.server.settings.money import MICRO
from crowdtree.server.store import Store
from crowdtree.server.store.types import JsonObject

Outcome = Literal["paid", "unpaid"]


def pay_bonuses(
    store: Store,
    client: Client,
    number: int,
    names: Sequence[str] | None = None,
    outcome: Outcome | None = None,
    dry_run: bool = False,
) -> JsonObject:
    """Pay what the participants of approved submissions have earned beyond reward and bonuses.

    `names`: submissions; all by default. `outcome`: what the owner found out about a payment whose
    reply was lost. `dry_run`: only compute what is owed.
    """
    campaign, ledger = store.read(lambda c: look(c, number))
    study = ledger.known_study
    if outcome is not None:
        return _settle(store, number, ledger, outcome)
    if ledger.payment is not None:
        ledger = _resolved(store, client, number, ledger.payment, dry_run)
    rows = submission_rows(store, client, number, study, campaign.settings)
    approved = [row for row in rows if row["status"] == "APPROVED" and row["worker"] is not None]
    if names is not None:
        wanted = {row["participant"] for row in chosen(rows, names)}
        approved = [row for row in approved if row["participant"] in wanted]
    before = {row["submission"]: _listed(client, row["submission"]) for row in approved}
    owed = _owed(approved, whole(client.get_study(study).get("reward"), "reward"), before, ledger)
    payment = None
    if owed and not dry_run:
        payment = _pay(store, client, number, study, owed, before, ledger)
    total = written(sum(owed.values()), campaign.settings.money.currency)
    verb = "to pay" if dry_run else "paid"
    return {
        "campaign": number,
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
    number: int,
    study: str,
    owed: Mapping[str, int],
    before: Mapping[str, int],
    ledger: Ledger,
) -> str:
    payment = client.set_up_bonuses(study, owed)  # pays nothing yet
    earlier = {name: before[name] for name in owed}
    amounts = {"amounts": dict(owed), "before": earlier}
    sent = {"call": "bonus", "state": "sent", "payment": payment, **amounts}
    store.write(lambda c: record(c, number, store.clock(), sent, ledger.last))
    try:
        client.pay_bonuses(payment)
    except ProlificError as error:
        if error.uncertain:
            words = "the bonuses may have been paid: they are not sent again before that is known"
            raise error.adding(words) from None
        put(store, number, "bonus", "failed", payment=payment)
        raise
    put(store, number, "bonus", "done", payment=payment)
    return payment


def _resolved(store: Store, client: Client, number: int, payment: Payment, dry_run: bool) -> Ledger:
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
    put(store, number, "bonus", "done", payment=payment.id)
    return store.read(lambda c: look(c, number))[1]


def _settle(store: Store, number: int, ledger: Ledger, outcome: Outcome) -> JsonObject:
    if ledger.payment is None:
        raise CrowdtreeError("prolific: there is no payment without a reply")
    state = "done" if outcome == "paid" else "failed"
    put(store, number, "bonus", state, payment=ledger.payment.id)
    text = f"Payment {ledger.payment.id} counts as {outcome}."
    return {"campaign": number, "payment": ledger.payment.id, "outcome": outcome, "text": text}


def _listed(client: Client, submission: str) -> int:
    """Minor units of the bonuses that Prolific lists for a submission."""
    paid = client.get_submission(submission).get("bonus_payments") or ()
    return sum(whole(cents, "bonus_payments") for cents in paid)
