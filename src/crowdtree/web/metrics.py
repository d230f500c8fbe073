"""Metrics of the campaigns in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.registry import Collector
from sqlalchemy.engine import Connection

from crowdtree.store.db.campaign_row import list_campaigns, tally

__all__ = ["CONTENT_TYPE", "exposition"]

ITEM_STATUSES = ("new", "open", "labelled", "set aside")
FATE = "fate:"
"""Beginning of the tallies that count answers."""


def exposition(connection: Connection, waiting: int, started: float) -> str:
    """Write the metrics, one family at a time."""
    tallies = {row.id: tally(connection, row.id) for row in list_campaigns(connection)}
    registry = CollectorRegistry()
    registry.register(_Families([*_server(waiting, started), _items(tallies), _answers(tallies)]))
    return generate_latest(registry).decode()


class _Families(Collector):
    """Metric families that were read before."""

    def __init__(self, families: list[Metric]) -> None:
        self.families = families

    def collect(self) -> list[Metric]:
        """Return the families."""
        return self.families


def _server(waiting: int, started: float) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "crowdtree_waiting_workers", "Workers who wait for a question.", value=waiting
    )
    yield GaugeMetricFamily(
        "crowdtree_start_time_seconds", "Start of the process, in seconds since 1970.", started
    )


def _items(tallies: dict[int, dict[str, int]]) -> Metric:
    family = GaugeMetricFamily(
        "crowdtree_items", "Items of a campaign, by status.", labels=("campaign", "status")
    )
    for number, counts in tallies.items():
        for status in ITEM_STATUSES:
            family.add_metric((str(number), status.replace(" ", "_")), counts.get(status, 0))
    return family


def _answers(tallies: dict[int, dict[str, int]]) -> Metric:
    family = CounterMetricFamily(
        "crowdtree_answers", "Answers to a campaign, by fate.", labels=("campaign", "fate")
    )
    for number, counts in tallies.items():
        for name, value in sorted(counts.items()):
            if name.startswith(FATE):
                fate = name.removeprefix(FATE).replace(" ", "_")
                family.add_metric((str(number), fate), value)
    return family
