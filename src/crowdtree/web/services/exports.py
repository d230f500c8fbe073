"""Labels, answers and workers of a campaign, for downloads and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from crowdtree.store import Store
from crowdtree.store.audits.report import Coverage, coverage
from crowdtree.store.db.campaign_row import get_campaign
from crowdtree.store.queries.export import answer_rows, label_rows, pieces
from crowdtree.store.queries.payments import payment_rows
from crowdtree.store.queries.reports import report_rows
from crowdtree.store.types import JsonObject

__all__ = ["Export", "certified_labels", "rows_of"]

Export = Literal["labels", "answers", "log", "workers", "reports"]
"""What is exported: labels, answers that stand, every line of the log, workers, or reports."""


def certified_labels(store: Store, number: int) -> Coverage | None:
    """What is certified about the labels of a campaign."""
    return store.read(lambda c: coverage(c, number))


def rows_of(store: Store, number: int, what: Export) -> Iterator[list[JsonObject]]:
    """Read what is exported of a campaign, piece by piece."""
    campaign = store.read(lambda c: get_campaign(c, number))
    audited = certified_labels(store, number) if what == "labels" else None

    def read(after: int) -> list[JsonObject]:
        if what == "labels":
            found = store.read(lambda c: label_rows(c, number, campaign.classes, after))
            return [
                {**row, "certified": None if audited is None else audited.of(row)} for row in found
            ]
        if what == "workers":
            return [dict(row) for row in store.read(lambda c: payment_rows(c, campaign, after))]
        if what == "reports":
            reports = store.read(lambda c: report_rows(c, number, campaign.questions, after))
            return [dict(row) for row in reports]
        standing = what == "answers"
        lines = store.read(
            lambda c: answer_rows(c, number, campaign.questions, after, standing=standing)
        )
        return [dict(row) for row in lines]

    return pieces(read)
