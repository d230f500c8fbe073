"""Certificates of campaigns: start audits, correct labels found wrong, ask again where needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.audit.words import sum_up
from crowdtree.campaign.events import Cause, Checked, Reason
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import percent, plural
from crowdtree.policies.adaptive import asking_until
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.rules.rule import Note, Overview
from crowdtree.server.store.audits import checking
from crowdtree.server.store.audits.checking import calibrated, checked_truths
from crowdtree.server.store.audits.report import audit_summary
from crowdtree.server.store.audits.stored import AuditCache, AuditRow, certified, latest_audit
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign, tally
from crowdtree.server.store.db.tables import budgets, checks, items, labels
from crowdtree.server.store.owner.revisions import revise
from crowdtree.server.store.queries.progress import list_revisions
from crowdtree.server.store.serving.campaign import ServingCache
from crowdtree.server.store.serving.unit_of_work import change_items
from crowdtree.server.store.types import AnyPolicy, ItemStatus, JsonObject

MOST_ROUNDS = 3
"""How often a campaign asks again because an audit found too many wrong labels."""
AIM = 0.5
"""Stated error that is asked for then, as a part of the bound: an audit needs some distance."""
FAR = 1.5
"""How many times the bound an estimate is from which on asking again costs less than checking."""
FEW_CHECKS = 20
"""Checks before that estimate is looked at."""
AT_ONCE = 200


class FinishCheck(NamedTuple):
    """Why a campaign whose items are all labelled does not finish; no reason if it may."""

    reason: CampaignReason = CampaignReason.NONE
    detail: str = ""
    claims: JsonObject | None = None
    """What is certified, for those who are told."""


class Certifying:
    """Brings campaigns with the setting `finish.max_wrong_labels` to their certificate."""

    def __init__(self, cache: ServingCache) -> None:
        self.cache = cache
        self.audits = AuditCache()

    def step(self, connection: Connection, campaign_id: int) -> FinishCheck:
        """Do what is due in a campaign whose items are all labelled."""
        campaign = get_campaign(connection, campaign_id, lock=True)
        wanted = campaign.settings.finish.max_wrong_labels
        labelled = tally(connection, campaign_id).get(ItemStatus.LABELLED.label, 0)
        if wanted is None or not labelled:
            return FinishCheck()
        row = latest_audit(connection, campaign_id)  # what it certifies is corrected afterwards
        if self._correct(connection, campaign_id):
            return FinishCheck(CampaignReason.WAITING_FOR_CHECKS)
        if row is None or self._is_outdated(connection, row, labelled, wanted):
            now = self.cache.clock()
            row = checking.start(connection, campaign_id, wanted, now, actor="server")
        if certified(row) <= wanted:
            return FinishCheck(claims={"text": sum_up(row.claims), **_told(row, wanted)})
        if self._may_be_reached(connection, campaign, row, wanted):
            return FinishCheck(CampaignReason.WAITING_FOR_CHECKS)
        return self._ask_again(connection, campaign, row, wanted)

    def _may_be_reached(
        self, connection: Connection, campaign: Campaign, row: AuditRow, wanted: float
    ) -> bool:
        """Whether checks alone may certify the labels as they are, at a bearable number."""
        claims, most = row.claims, campaign.settings.finish.max_checks
        if claims["checks"] >= FEW_CHECKS and claims["estimate"] > FAR * wanted:
            return False
        done = sum(checking.results_of(connection, campaign.id).values())
        return bool(claims["state"] == "open") and (most is None or done < most)

    def _is_outdated(
        self, connection: Connection, row: AuditRow, labelled: int, wanted: float
    ) -> bool:
        """Whether an audit does not cover all labels as they are, or is for another bound."""
        if row.claims["items"] < labelled or audit_summary(connection, row.campaign_id)["changed"]:
            return True
        if certified(row) <= wanted:
            return False
        # an audit for a lower bound goes on as long as that can be reached
        return row.bound > wanted or (row.bound < wanted and row.claims["state"] != "open")

    # ---------------------------------------------------------------- correcting

    def _correct(self, connection: Connection, campaign_id: int) -> bool:
        """Give checked items their true class; nobody is asked about them again.

        Returns whether there may be more of them.
        """
        rows = connection.execute(
            sa.select(checks.c.item_id, checks.c.truth)
            .join(labels, labels.c.item_id == checks.c.item_id)
            .join(items, items.c.id == checks.c.item_id)
            .where(
                checks.c.campaign_id == campaign_id,
                checks.c.truth.is_not(None),
                items.c.status == ItemStatus.LABELLED,
                labels.c.reason != Reason.CHECKED,
            )
            .order_by(checks.c.item_id, checks.c.id)
            .limit(AT_ONCE)
        )
        truths = dict(rows.all())
        if not truths:
            return False
        now = self.cache.clock()
        change_items(connection, self.cache, now, truths, lambda item: Checked(truths[item.id]))
        return len(truths) == AT_ONCE

    # ---------------------------------------------------------------- asking again

    def _ask_again(
        self, connection: Connection, campaign: Campaign, row: AuditRow, wanted: float
    ) -> FinishCheck:
        """Calibrate by the checks and ask more about items above a lower error, or say why not."""
        number = campaign.id
        causes = [revision["cause"] for revision in list_revisions(connection, number)]
        rounds = causes.count(Cause.AUDIT)
        why = self._why_not(connection, campaign, rounds)
        if why:
            return _out_of_reach(wanted, why, row)
        present = campaign.make_policy()
        target = min(getattr(present, "target_error", 1.0), 2 * AIM * wanted) * AIM
        try:
            made: AnyPolicy = asking_until(present, target)
            if checked_truths(connection, number):
                made, _ = calibrated(connection, self.audits, number, made)
            reason = {"text": _reason(row, wanted, target), "audit": row.id, "target": target}
            now = self.cache.clock()
            revised = revise(connection, number, made, reason, now, "server", Cause.AUDIT)
        except CrowdtreeError as error:
            return _out_of_reach(wanted, str(error), row)
        if revised == campaign.revision:
            return _out_of_reach(wanted, "no question is left that would tell more", row)
        return FinishCheck(CampaignReason.ASKING_AGAIN)

    def _why_not(self, connection: Connection, campaign: Campaign, rounds: int) -> str:
        """Why more answers cannot help; empty if they may."""
        if campaign.settings.tasks.one_question_per_worker:
            return "each worker answers only one question"
        budget = connection.execute(
            sa.select(budgets).where(budgets.c.campaign_id == campaign.id)
        ).one_or_none()
        if budget is not None and budget.spent + campaign.settings.money.price_micros > budget.cap:
            return "the budget is spent"
        if rounds < MOST_ROUNDS:
            return ""
        counts = tally(connection, campaign.id)
        stated = counts.get("error_nanos", 0) / 1e9 / max(counts.get("estimated", 0), 1)
        return (
            f"after asking again {plural(rounds, 'time')} the answers leave an estimated "
            f"{percent(stated)} of the labels wrong"
        )


def _reason(row: AuditRow, wanted: float, target: float) -> str:
    claims = row.claims
    return (
        f"of {plural(claims['checks'] + claims['known'], 'checked label')} {claims['wrong']:,} "
        f"were wrong, too many for at most {percent(wanted)}: errors are calibrated by the "
        f"checks, and items above an error of {percent(target)} are asked about again"
    )


def _out_of_reach(wanted: float, why: str, row: AuditRow) -> FinishCheck:
    now = percent(certified(row))
    text = (
        f"at most {percent(wanted)} wrong labels cannot be reached with these people and "
        f"questions: {why}; certified so far: at most {now}"
    )
    return FinishCheck(CampaignReason.OUT_OF_REACH, text, _told(row, wanted))


def _told(row: AuditRow, wanted: float) -> JsonObject:
    """Numbers of an audit for webhooks."""
    names = ("items", "checks", "known", "wrong", "estimate", "low", "high", "confidence")
    numbers = {name: row.claims[name] for name in names}
    return {"audit": row.id, "wanted": wanted, "certified": certified(row), **numbers}


def notes_on_certificate(overview: Overview) -> Iterator[Note]:
    """Labels that are to be certified before the campaign finishes."""
    campaign, bound = overview.campaign, overview.campaign.settings.finish.max_wrong_labels
    if campaign.status != "running" or not campaign.reason or bound is None:
        return
    text = f"{campaign.status_reason[:1].upper()}{campaign.status_reason[1:]}"
    if campaign.reason is CampaignReason.WAITING_FOR_CHECKS:
        text += (
            f": the campaign finishes when an audit certifies at most {percent(bound)} wrong "
            "labels."
        )
    elif campaign.reason is CampaignReason.OUT_OF_REACH:
        text += (
            ". Go on checking (every wrong label that is found is corrected). Change that "
            "setting, or finish now and use the labels as they are."
        )
    yield Note(text, f"{overview.link}/audit", "Open the audit")
