"""The verb `campaign`, one module per action: create, items, start, pause, status and so on."""

from __future__ import annotations

from crowdtree.cli.campaign.audit import audit_verb
from crowdtree.cli.campaign.corrections import exclude_verb, include_verb, reopen_verb
from crowdtree.cli.campaign.create import create_verb
from crowdtree.cli.campaign.deleting import delete_verb, erase_worker_verb
from crowdtree.cli.campaign.duplicate import duplicate_verb
from crowdtree.cli.campaign.editing import correct_verb, edit_verb, reword_verb, withdraw_verb
from crowdtree.cli.campaign.export import (
    answers_verb,
    labels_verb,
    payments_verb,
    reports_verb,
    workers_verb,
)
from crowdtree.cli.campaign.items import items_verb
from crowdtree.cli.campaign.links import invite_verb, join_link_verb
from crowdtree.cli.campaign.revise import revise_verb
from crowdtree.cli.campaign.sign_link import sign_link_verb
from crowdtree.cli.campaign.status import finish_verb, pause_verb, start_verb, status_verb
from crowdtree.cli.campaign.verify import verify_verb
from crowdtree.cli.groups import make_group

__all__ = ["campaign_app"]

campaign_app = make_group(
    "Create and manage live campaigns.",
    create_verb,
    duplicate_verb,
    items_verb,
    start_verb,
    pause_verb,
    finish_verb,
    status_verb,
    revise_verb,
    exclude_verb,
    include_verb,
    reopen_verb,
    correct_verb,
    withdraw_verb,
    edit_verb,
    reword_verb,
    labels_verb,
    answers_verb,
    workers_verb,
    payments_verb,
    reports_verb,
    join_link_verb,
    invite_verb,
    sign_link_verb,
    audit_verb,
    verify_verb,
    erase_worker_verb,
    delete_verb,
)
