"""Labels, answers, workers and payments of a campaign, for downloads and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from crowdtree.io.exports import COLUMNS, with_times
from crowdtree.io.item_columns import ColumnOrder, free_names
from crowdtree.server.prolific import ledger
from crowdtree.server.prolific.ledger import written
from crowdtree.server.settings.groups import MICRO
from crowdtree.server.store import Store
from crowdtree.server.store.audits.report import Coverage, coverage
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.queries.export import (
    answer_rows,
    item_rows,
    label_payloads,
    label_rows,
    payment_rows,
    pieces,
    report_rows,
)
from crowdtree.server.store.types import JsonObject

Export = Literal["labels", "answers", "log", "workers", "payments", "reports"]
"""What is exported: labels, answers that stand, every line of the log, workers, payments, or
reports."""


class Exported(NamedTuple):
    """What is exported: names of columns, and the rows piece by piece."""

    columns: list[str]
    pieces: Iterator[list[JsonObject]]
    renamed: dict[str, str]
    """Columns of the item file whose names have another meaning in the export."""

    @property
    def note(self) -> str:
        """A sentence about columns that were renamed; empty where there are none."""
        pairs = (f"{old!r} is {new!r}" for old, new in self.renamed.items())
        return f"columns of the items were renamed: {', '.join(pairs)}" if self.renamed else ""


def certified_labels(store: Store, campaign_id: int) -> Coverage | None:
    """What is certified about the labels of a campaign."""
    return store.read(lambda c: coverage(c, campaign_id))


def export(store: Store, campaign_id: int, what: Export, columns: bool = True) -> Exported:
    """Export a part of a campaign; labels with the columns of the items, if `columns` is set."""
    campaign = store.read(lambda c: get_campaign(c, campaign_id))
    if what == "labels":
        return _labels(store, campaign, columns)
    rows = {"workers": _workers, "payments": _payments, "reports": _reports}.get(what)
    found = rows(store, campaign) if rows else _answers(store, campaign, what == "answers")
    return Exported(COLUMNS[what], found, {})


def _labels(store: Store, campaign: Campaign, columns: bool) -> Exported:
    campaign_id = campaign.id
    audited = certified_labels(store, campaign_id)
    names = _item_columns(store, campaign_id) if columns else {}

    def read(after: int) -> list[JsonObject]:
        found, payloads = store.read(
            lambda c: (
                label_rows(c, campaign_id, campaign.classes, after),
                label_payloads(c, campaign_id, after) if names else None,
            )
        )
        return [
            with_times({**row, "certified": None if audited is None else audited.of(row)})
            | {new: payload.get(old) for old, new in names.items()}
            for row, payload in zip(found, payloads or [{}] * len(found), strict=True)
        ]

    renamed = {old: new for old, new in names.items() if old != new}
    return Exported([*COLUMNS["labels"], *names.values()], pieces(read), renamed)


def _item_columns(store: Store, campaign_id: int) -> dict[str, str]:
    """Columns of the items in the order of the file, and what they are called in the export."""
    order = ColumnOrder()
    for rows in pieces(lambda after: store.read(lambda c: item_rows(c, campaign_id, after))):
        for row in rows:
            order.add(row["payload"])
    return free_names(order.names(), COLUMNS["labels"])


def _answers(store: Store, campaign: Campaign, standing: bool) -> Iterator[list[JsonObject]]:
    def read(after: int) -> list[JsonObject]:
        found = store.read(
            lambda c: answer_rows(c, campaign.id, campaign.questions, after, standing=standing)
        )
        return [with_times(dict(row)) for row in found]

    return pieces(read)


def _workers(store: Store, campaign: Campaign) -> Iterator[list[JsonObject]]:
    def read(after: int) -> list[JsonObject]:
        found = store.read(lambda c: payment_rows(c, campaign, after))
        return [with_times(dict(row)) for row in found]

    return pieces(read)


def _reports(store: Store, campaign: Campaign) -> Iterator[list[JsonObject]]:
    def read(after: int) -> list[JsonObject]:
        found = store.read(lambda c: report_rows(c, campaign.id, campaign.questions, after))
        return [with_times(dict(row)) for row in found]

    return pieces(read)


def _payments(store: Store, campaign: Campaign) -> Iterator[list[JsonObject]]:
    """Read what each worker earned; bonuses of submissions without a worker come last."""
    bonuses = store.read(lambda c: ledger.look(c, campaign.id))[1].paid
    currency = campaign.settings.money.currency
    for rows in _workers(store, campaign):
        yield [
            row
            | {
                "amount": exact(row["micros"]),
                "currency": currency,
                "bonus": written(bonuses.pop(row["submission"], 0)),
            }
            for row in rows
        ]
    yield [
        dict.fromkeys(COLUMNS["payments"], "")
        | {"submission": name, "accepted": 0, "amount": exact(0), "complete": False}
        | {"currency": currency, "bonus": written(cents)}
        for name, cents in bonuses.items()
    ]


def exact(micros: int) -> str:
    """Write an amount without rounding it, with two decimals at least.

    >>> exact(1_500_000), exact(35_000), exact(0)
    ('1.50', '0.035', '0.00')
    """
    whole, part = divmod(micros, MICRO)
    text = f"{part:06d}"
    return f"{whole}.{text[:2]}{text[2:].rstrip('0')}"
