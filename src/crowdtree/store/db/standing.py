"""The SQL form of the rule by which an answer stands (see :func:`crowdtree.campaign.after_undos`).

A lease is one question of one item for one worker, and its lines of the log alternate between an
answer or skip and an undo. So whatever has a later undo of its lease was taken back.
"""

from __future__ import annotations

__all__ = ["STANDS"]

STANDS = """NOT EXISTS (SELECT 1 FROM answers AS later WHERE later.lease_id = answers.lease_id
    AND later.kind = 'undo' AND later.id > answers.id)"""
