"""Metrics of the campaigns in the text format of Prometheus."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version

import sqlalchemy as sa
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.engine import Connection

from crowdtree.server.store.db.campaign_row import list_campaigns, tally
from crowdtree.server.store.db.tables import labels, leases, webhooks
from crowdtree.server.store.types import LeaseState
from crowdtree.server.web.middleware import request_collectors

ITEM_STATUSES = ("new", "open", "labelled", "set aside")
FATE = "fate:"
"""Beginning of the tallies that count answers."""


def exposition(
    connection: Connection, waiting: int, started: float, queues: Mapping[str, int] | None = None
) -> str:
    """Write the metrics, one family at a time; `queues` are the commands that wait, by writer."""
    tallies = {row.id: tally(connection, row.id) for row in list_campaigns(connection)}
    families = [
        *_server(waiting, started),
        _build(connection),
        _queues(queues or {}),
        _pool(connection.engine.pool),
        _items(tallies),
        _answers(tallies),
        _by_campaign(
            connection, "crowdtree_open_leases", "Questions that workers have open.", _LEASES
        ),
        _by_campaign(
            connection,
            "crowdtree_webhook_backlog",
            "Labels that webhooks have not sent yet, one count per webhook.",
            _BACKLOG,
        ),
        _by_campaign(
            connection,
            "crowdtree_webhook_failures",
            "Attempts in a row at which webhooks failed.",
            _FAILURES,
        ),
    ]
    registry = CollectorRegistry()
    for collector in (_Families(families), *request_collectors()):
        registry.register(collector)
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
        "crowdtree_waiting_workers",
        "Workers who wait for a question, of the process that is asked.",
        value=waiting,
    )
    yield GaugeMetricFamily(
        "crowdtree_start_time_seconds", "Start of the process, in seconds since 1970.", started
    )


def _build(connection: Connection) -> Metric:
    named = {
        "version": version("crowdtree"),
        "python": platform.python_version(),
        "database": connection.dialect.name,
    }
    family = GaugeMetricFamily(
        "crowdtree_build_info", "Versions of the program; always 1.", labels=list(named)
    )
    family.add_metric(list(named.values()), 1)
    return family


def _queues(queues: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(
        "crowdtree_queue_depth",
        "Commands that wait for the database, of the process that is asked.",
        labels=("writer",),
    )
    for writer, depth in queues.items():
        family.add_metric((writer,), depth)
    return family


def _pool(pool: sa.Pool) -> Metric:
    family = GaugeMetricFamily(
        "crowdtree_pool_connections",
        "Connections to the database, of the process that is asked.",
        labels=("state",),
    )
    if isinstance(pool, sa.QueuePool):
        family.add_metric(("in_use",), pool.checkedout())
        family.add_metric(("idle",), pool.checkedin())
    return family


_active = webhooks.c.status == "active"
_LEASES = (
    sa.select(leases.c.campaign_id, sa.func.count())
    .where(leases.c.state == LeaseState.ACTIVE)
    .group_by(leases.c.campaign_id)
)
_BACKLOG = (
    sa.select(webhooks.c.campaign_id, sa.func.count(labels.c.id))
    .outerjoin(
        labels,
        (labels.c.campaign_id == webhooks.c.campaign_id) & (labels.c.id > webhooks.c.sent_label_id),
    )
    .where(_active)
    .group_by(webhooks.c.campaign_id)
)
_FAILURES = (
    sa.select(webhooks.c.campaign_id, sa.func.sum(webhooks.c.failures))
    .where(_active)
    .group_by(webhooks.c.campaign_id)
)


def _by_campaign(
    connection: Connection, name: str, words: str, query: sa.Select[int, int]
) -> Metric:
    family = GaugeMetricFamily(name, words, labels=("campaign",))
    for campaign_id, value in connection.execute(query):
        family.add_metric((str(campaign_id),), value)
    return family


def _items(tallies: dict[int, dict[str, int]]) -> Metric:
    family = GaugeMetricFamily(
        "crowdtree_items", "Items of a campaign, by status.", labels=("campaign", "status")
    )
    for campaign_id, counts in tallies.items():
        for status in ITEM_STATUSES:
            family.add_metric((str(campaign_id), status.replace(" ", "_")), counts.get(status, 0))
    return family


def _answers(tallies: dict[int, dict[str, int]]) -> Metric:
    family = CounterMetricFamily(
        "crowdtree_answers", "Answers to a campaign, by fate.", labels=("campaign", "fate")
    )
    for campaign_id, counts in tallies.items():
        for name, value in sorted(counts.items()):
            if name.startswith(FATE):
                fate = name.removeprefix(FATE).replace(" ", "_")
                family.add_metric((str(campaign_id), fate), value)
    return family
