"""Delete campaigns with everything that belongs to them, and personal data."""

from __future__ import annotations

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.media import MediaFiles
from crowdtree.server.store import Store
from crowdtree.server.store.db.engine import empty_log
from crowdtree.server.store.owner import deleting
from crowdtree.server.store.owner.deleting import Deleted


def erase_worker(store: Store, number: int, worker: int) -> None:
    """Delete the personal data of a worker, also from the log of the database."""
    store.write(lambda c: deleting.erase_worker(c, number, worker, store.clock()))
    empty_log(store.engine)


def delete_campaign(store: Store, media: MediaFiles | None, number: int, name: str) -> Deleted:
    """Delete a campaign and its uploaded files; `name` must be that of the campaign."""
    gone = store.write_apart(lambda c: deleting.delete_campaign(c, number, name, store.clock()))
    empty_log(store.engine)
    left = "" if media is None else media.remove(number)
    if left:
        raise CrowdtreeError(
            f"campaign {number} is deleted, but not all of its files; delete the folder {left}"
        )
    return gone
