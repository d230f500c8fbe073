"""The verb `audit`: plan, start, next, record, show, verify."""

from __future__ import annotations

from crowdtree.cli.audit.next import next_verb
from crowdtree.cli.audit.plan import plan_verb
from crowdtree.cli.audit.record import record_verb
from crowdtree.cli.audit.show import show_verb
from crowdtree.cli.audit.start import start_verb
from crowdtree.cli.audit.verify import verify_verb
from crowdtree.cli.groups import make_group

__all__ = ["audit_app"]

audit_app = make_group(
    "Check a sample of the labels, and certify how many of all labels are wrong.",
    plan_verb,
    start_verb,
    next_verb,
    record_verb,
    show_verb,
    verify_verb,
)
