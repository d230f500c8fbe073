"""Counts and times of requests, by route."""

from __future__ import annotations

import os
from functools import lru_cache

from prometheus_client import Counter, Histogram, disable_created_metrics
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.types import Scope

from crowdtree.server.web.processes import SHARED

BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 30.0)

# the start of the process says the same
disable_created_metrics()  # type: ignore[no-untyped-call]

_seconds = Histogram(
    "crowdtree_request_seconds",
    "Time from a request to the end of its response, by route; next waits for a question.",
    ("route",),
    buckets=BUCKETS,
    registry=None,
)
_requests = Counter(
    "crowdtree_requests",
    "Requests, by route, method and status.",
    ("route", "method", "status"),
    registry=None,
)
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


def observe(scope: Scope, status: int, seconds: float) -> None:
    """Count a request that was served."""
    method = scope["method"] if scope["method"] in METHODS else "other"
    times, count = _series(_route(scope), method, status)
    times.observe(seconds)
    count.inc()


@lru_cache(maxsize=1000)
def _series(route: str, method: str, status: int) -> tuple[Histogram, Counter]:
    """Find the time series of a sort of request."""
    return _seconds.labels(route), _requests.labels(route, method, status)


def _route(scope: Scope) -> str:
    """Name the route, not the path: labels must be few, and paths may hold secrets."""
    if scope["path"].startswith("/static/"):
        return "/static"
    return str(getattr(scope.get("route"), "path", "other"))


def request_collectors() -> list[Collector]:
    """What to collect: the counts of this process, or of all that share a folder."""
    if SHARED in os.environ:
        return [MultiProcessCollector(None)]  # type: ignore[no-untyped-call]
    return [_seconds, _requests]
