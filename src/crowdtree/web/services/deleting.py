"""Delete campaigns with everything that belongs to them."""

from __future__ import annotations

from pathlib import Path

from crowdtree.errors import CrowdtreeError
from crowdtree.store import Store
from crowdtree.store.owner import deleting
from crowdtree.store.owner.deleting import Deleted
from crowdtree.web.services.items import delete_media

__all__ = ["delete_campaign"]


def delete_campaign(store: Store, media: Path | None, number: int, name: str) -> Deleted:
    """Delete a campaign and its uploaded files; `name` must be that of the campaign."""
    gone = store.write_apart(lambda c: deleting.delete_campaign(c, number, name, store.clock()))
    delete_media(media, number)
    if media is not None and (media / str(number)).exists():
        raise CrowdtreeError(
            f"campaign {number} is deleted, but not all of its files; delete the folder "
            f"{media / str(number)}"
        )
    return gone
