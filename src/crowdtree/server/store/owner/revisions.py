"""Revise a running campaign: another policy over the same classes and questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Cause
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies import Label
from crowdtree.policies.spec import check_same_problem
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, definition_of, get_campaign, last_line
from crowdtree.server.store.db.tables import campaigns, revisions
from crowdtree.server.store.owner.campaigns import check_policy
from crowdtree.server.store.reliability import level_of
from crowdtree.server.store.types import AnyPolicy

MAX_REASON = 20_000


def revise(
    connection: Connection,
    campaign_id: int,
    policy: AnyPolicy,
    reason: Mapping[str, object],
    now: float,
    actor: Literal["owner", "server"] = "owner",
    cause: Cause = Cause.OWNER,
) -> int:
    """Replace the policy of a running or paused campaign; returns the number of the revision.

    The server itself may revise a finished one, after answers to it were excluded.

    Answers from now on are taken under the new policy. Items that were asked about are replayed
    under it in the background (:mod:`crowdtree.server.rules.revised_items`), or before their
    next answer: labels are kept, corrected, replaced or withdrawn. The present policy again is no
    new revision, so that the call can be repeated.

    Parameters
    ----------
    policy
        The new policy, with its problem: the same classes, questions and right answers.
    reason
        Why, as plain JSON; its ``"text"`` is shown to the owner. Nothing depends on it but
        what the rule that made the revision reads again.
    """
    found = get_campaign(connection, campaign_id, lock=True)
    allowed = ("running", "paused") if actor == "owner" else ("running", "paused", "finished")
    if found.status not in allowed:
        raise CrowdtreeError(
            f"campaign {campaign_id} is {found.status}: only a running or paused one can be revised"
        )
    present = found.make_policy()
    _check(found, present, policy)
    if definition_of(policy) == definition_of(present):
        return found.revision
    revision = add_revision(connection, found, policy, reason, now, actor, cause)
    note(connection, now, "revise", campaign_id, {"revision": revision, **reason}, actor)
    return revision


def add_revision(
    connection: Connection,
    campaign: Campaign,
    policy: AnyPolicy,
    reason: Mapping[str, object],
    now: float,
    actor: Literal["owner", "server"],
    cause: Cause,
    after: int | None = None,
) -> int:
    """Begin another revision of a campaign whose row is locked; returns its number.

    Its table is tested with items that were first asked about after the line `after` of the log,
    by default after all that there are.
    """
    number = campaign.id
    definition = definition_of(policy)
    last = last_line(connection, number)
    text = json.dumps({**reason, "level": [last, level_of(policy.problem)]})
    if len(text) > MAX_REASON:
        raise CrowdtreeError(f"reason: expected at most {MAX_REASON} characters, got {len(text)}")
    if campaign.revision == 0:
        _add_first(connection, campaign)
    mine = revisions.c.campaign_id == number
    connection.execute(
        revisions.update().where(mine, revisions.c.finished_at.is_(None)).values(finished_at=now)
    )
    revision = campaign.revision + 1
    connection.execute(
        revisions.insert().values(
            campaign_id=number,
            number=revision,
            at=now,
            actor=actor,
            cause=cause,
            reason=text,
            after_answer_id=last if after is None else after,
            **definition,
        )
    )
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == number)
        .values(**definition, revision=revision, version=campaigns.c.version + 1)
    )
    return revision


def _add_first(connection: Connection, campaign: Campaign) -> None:
    """Keep the policy with which the campaign started, as revision 0."""
    at = campaign.started_at or campaign.created_at
    connection.execute(
        revisions.insert().values(
            campaign_id=campaign.id,
            number=0,
            at=at,
            actor="owner",
            cause=Cause.START,
            reason=json.dumps({"level": [0, level_of(campaign.make_policy().problem)]}),
            problem=json.dumps(campaign.problem),
            policy=json.dumps(campaign.policy),
            finished_at=at,
        )
    )


def _check(campaign: Campaign, present: AnyPolicy, policy: AnyPolicy) -> None:
    check_same_problem(present.problem, policy.problem)
    check_policy(policy, campaign.settings)
    if isinstance(policy.ask(policy.start()), Label):
        raise CrowdtreeError("policy: it would label every item without asking anybody")
    if campaign.settings.tasks.one_question_per_worker:
        new = sorted({*policy.questions_used()} - {*present.questions_used()})
        if new:
            name = policy.problem.questions[new[0]]
            raise CrowdtreeError(
                f"policy: it asks {name!r}, but each worker answers one question of the present "
                "plan; revise to a plan with the same questions"
            )
