"""The verb `campaign`, one module per action: create, items, start, pause, status and so on."""

from __future__ import annotations

import typer

from crowdtree.cli.campaign.audit import audit_verb
from crowdtree.cli.campaign.create import create_verb
from crowdtree.cli.campaign.export import answers_verb, labels_verb
from crowdtree.cli.campaign.items import items_verb
from crowdtree.cli.campaign.revise import revise_verb
from crowdtree.cli.campaign.status import pause_verb, start_verb, status_verb
from crowdtree.cli.campaign.verify import verify_verb

__all__ = ["campaign_app"]

campaign_app = typer.Typer(
    help="Create and manage live campaigns.", no_args_is_help=True, rich_markup_mode=None
)
for verb in (
    create_verb,
    items_verb,
    start_verb,
    pause_verb,
    status_verb,
    revise_verb,
    labels_verb,
    answers_verb,
    audit_verb,
    verify_verb,
):
    campaign_app.command(verb.__name__.removesuffix("_verb"))(verb)
