"""Delete campaigns with everything that belongs to them."""

from __future__ import annotations

from crowdtree.errors import CrowdtreeError
from crowdtree.store import Store
from crowdtree.store.owner import deleting
from crowdtree.store.owner.deleting import Deleted
from crowdtree.web.media_files import MediaFiles

__all__ = ["delete_campaign"]


def delete_campaign(store: Store, media: MediaFiles | None, number: int, name: str) -> Deleted:
    """Delete a campaign and its uploaded files; `name` must be that of the campaign."""
    gone = store.write_apart(lambda c: deleting.delete_campaign(c, number, name, store.clock()))
    left = "" if media is None else media.remove(number)
    if left:
        raise CrowdtreeError(
            f"campaign {number} is deleted, but not all of its files; delete the folder {left}"
        )
    return gone
