"""Who did what, when, and from where: for pages, for programs, and as a file."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.engine import Connection

from crowdtree.core.text import iso_time
from crowdtree.io import exports
from crowdtree.server.store.db.activity import MAX_LISTED, ActivityEntry, list_activity
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.queries.export import pieces
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.state import AppState


class Query:
    """Which entries of the activity log somebody asks for.

    Parameters
    ----------
    addresses
        Whether addresses are shown, which only admins see.
    """

    def __init__(self, number: int | None, person: str, addresses: bool) -> None:
        self.number, self.person, self.addresses = number, person, addresses

    def read(
        self, connection: Connection, before: int | None = None, most: int = MAX_LISTED
    ) -> list[ActivityEntry]:
        """Read the last entries, the newest first."""
        if self.number is not None:
            get_campaign(connection, self.number)
        person = self.person.replace("\x00", "")
        rows = list_activity(connection, self.number, person=person, before=before, most=most)
        if not self.addresses:
            return [{**row, "address": ""} for row in rows]
        return rows


async def entries(state: AppState, query: Query, before: int | None = None) -> list[ActivityEntry]:
    """The last entries, the newest first."""
    return await state.store.aread(lambda c: query.read(c, before))


def who(entry: ActivityEntry) -> str:
    """Who acted, as far as is known.

    >>> entry = {"actor": "owner", "person": "Ann"}
    >>> who(entry), who({**entry, "person": ""}), who({"actor": "server", "person": ""})
    ('Ann', 'owner', 'server')
    """
    return entry["person"] or entry["actor"]


def file_of(state: AppState, query: Query) -> Iterator[bytes]:
    """The entries as CSV, the newest first, piece by piece."""

    def read(after: int) -> list[JsonObject]:
        rows = state.store.read(lambda c: query.read(c, after or None))
        return [
            {
                **row,
                "time": iso_time(row["at"]),
                "person": who(row),
                "campaign": row["campaign_id"],
            }
            for row in rows
        ]

    return exports.csv_lines(pieces(read), exports.COLUMNS["activity"])
