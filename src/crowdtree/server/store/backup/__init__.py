"""Backups: all tables and uploaded media of a server in one file, taken while it runs.

The file is a ZIP archive. Every table is a member ``tables/NAME.jsonl``, every uploaded file a
member ``media/CAMPAIGN/NAME`` (see ``media``), and ``backup.json`` has the version of the tables
and the SHA-256 of every member. Rows are written as JSON, so that a backup of SQLite restores
into PostgreSQL and the other way round.
"""

from __future__ import annotations

from crowdtree.server.store.backup.restoring import restore
from crowdtree.server.store.backup.writing import back_up

__all__ = ["back_up", "restore"]
