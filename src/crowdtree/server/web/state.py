"""The state of a running application: the store, waiting workers, limits and caches."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import Request

from crowdtree.server.media import MediaFiles, open_media
from crowdtree.server.store import Store, Unavailable
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.types import AnyPolicy
from crowdtree.server.web.plans import Plans
from crowdtree.server.web.rate_limit import RateLimit
from crowdtree.server.web.secret_key import SecretKey

FAILURES_PER_MINUTE = 20
"""Failed logins allowed per address per minute."""
RELEASES_PER_HOUR = 30
"""How often per hour a worker can give questions back: pages do so when they are closed."""
POLL_SECONDS = 3.0
"""Between polls of a waiting worker: another process may have opened a question."""
KEPT_SECONDS = 1.0
"""How long a result holds, so that nobody can make the server write without end."""
PATIENCE = 5.0
"""Seconds after which a database that does not respond counts as down."""
TRIES = 5
"""Waiting workers that are offered a new question in turn, before it is left to the next poll."""


@dataclass(frozen=True)
class Options:
    """How the server runs."""

    media: str | Path | None = None
    """Folder or bucket (``s3://NAME/PREFIX``) of uploaded media; without one, uploads are
    refused."""
    secure_cookies: bool = False
    """Send cookies over https only; set it behind https."""
    private_webhooks: bool = False
    """Allow webhooks to private and loopback addresses."""
    trusted_hosts: tuple[str, ...] = ()
    """Host names the server answers to; empty for any."""
    joins_per_minute: int = 600
    """People who may join by open links per address; a lecture hall shares one address."""
    session_seconds: float = 7 * 86_400.0
    docs: bool = True
    url: str = ""
    """Public address of the server; empty for the one that the owner's browser uses."""
    key_file: Path | None = None
    """File of the key that encrypts secrets of webhooks, unless the environment has one."""


@dataclass
class Waiter:
    """A waiting worker; `tries` more may be offered the question if this one cannot take it."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    tries: int = 0


class Waiters:
    """Workers who wait for a question: one is woken per question that opens.

    A worker who cannot take it (they answered it before) passes it on, a few times.
    """

    def __init__(self) -> None:
        self.queues: dict[int, deque[Waiter]] = defaultdict(deque)
        self.changes: dict[int, set[asyncio.Event]] = defaultdict(set)

    async def wait(self, campaign: int, seconds: float) -> int:
        """Wait for a question to open, or for some seconds; return how many may try it next."""
        waiter = Waiter()
        queue = self.queues[campaign]
        queue.append(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter.event.wait()
        except TimeoutError:
            return 0
        except asyncio.CancelledError:  # the client has disconnected
            if waiter.event.is_set():
                self.pass_on(campaign, waiter.tries)
            raise
        finally:
            if not waiter.event.is_set():
                queue.remove(waiter)
        return waiter.tries

    def wake(self, opened: dict[int, int]) -> None:
        """Wake workers of campaigns where questions opened, and all watchers."""
        for campaign, count in opened.items():
            for _ in range(min(count, len(self.queues.get(campaign, ())))):
                self.pass_on(campaign, TRIES)
            for watcher in self.changes.get(campaign, ()):
                watcher.set()

    def pass_on(self, campaign: int, tries: int) -> None:
        """Wake the worker who has waited longest; `tries` counts this one."""
        queue = self.queues.get(campaign)
        if queue and tries > 0:
            waiter = queue.popleft()
            waiter.tries = tries - 1
            waiter.event.set()

    def waiting(self) -> int:
        """Count the waiting workers."""
        return sum(len(queue) for queue in self.queues.values())

    def wake_all(self) -> None:
        """Wake all waiting workers and watchers."""
        for queue in self.queues.values():
            while queue:
                queue.popleft().event.set()
        for watchers in self.changes.values():
            for watcher in watchers:
                watcher.set()


class Readiness:
    """The last attempt to write; requests at the same time share one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = asyncio.Lock()
        self._problem: Unavailable | None = None
        self._until = 0.0

    async def problem(self) -> Unavailable | None:
        """Why nothing can be written, or ``None``."""
        async with self._lock:
            if time.monotonic() >= self._until:
                self._problem = await self._look()
                self._until = time.monotonic() + KEPT_SECONDS
            return self._problem

    async def _look(self) -> Unavailable | None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self.store.check_writable()
        except TimeoutError:
            return Unavailable(f"the database did not respond within {PATIENCE:.0f} s")
        except Unavailable as error:
            return error
        return None


@dataclass
class AppState:
    """One running application."""

    store: Store
    options: Options
    waiters: Waiters = field(default_factory=Waiters)
    login_limit: RateLimit = field(init=False)
    release_limit: RateLimit = field(init=False)
    join_limit: RateLimit = field(init=False)
    secret_key: SecretKey = field(init=False)
    readiness: Readiness = field(init=False)
    plans: Plans = field(default_factory=Plans)
    policies: dict[tuple[int, int], AnyPolicy] = field(default_factory=dict)
    charts: dict[tuple[int, float, int], str] = field(default_factory=dict)
    """Charts of audits: by campaign, start and number of checks."""
    media: MediaFiles | None = field(init=False)
    loop: asyncio.AbstractEventLoop | None = None
    stopping: bool = False
    """The server is shutting down: streams and long polls end."""

    def __post_init__(self) -> None:
        self.login_limit = RateLimit("logins", FAILURES_PER_MINUTE, 60.0)
        self.release_limit = RateLimit("releases", RELEASES_PER_HOUR, 3600.0)
        self.join_limit = RateLimit("joins", self.options.joins_per_minute, 60.0)
        self.secret_key = SecretKey(self.options.key_file)
        self.media = open_media(self.options.media)
        self.readiness = Readiness(self.store)

    @property
    def poll_seconds(self) -> float:
        """Seconds until a waiting worker polls again, with jitter."""
        return POLL_SECONDS * random.uniform(0.8, 1.2)

    @property
    def now(self) -> float:
        """Seconds since 1970, by the store's clock."""
        return self.store.clock()

    def policy(self, campaign: Campaign) -> AnyPolicy:
        """Make the policy of a campaign, or take it from the cache."""
        key = (campaign.id, campaign.version)
        if key not in self.policies:
            if len(self.policies) > 100:
                self.policies.clear()
            self.policies[key] = campaign.make_policy()
        return self.policies[key]

    def stop(self) -> None:
        """End all waits; called from a signal handler."""
        self.stopping = True
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.waiters.wake_all)

    def wake(self, campaign_id: int, opened: int) -> None:
        """Wake workers for whom questions of a campaign opened; from any thread."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.waiters.wake, {campaign_id: opened})

    def listen(self, loop: asyncio.AbstractEventLoop) -> Callable[[dict[int, int]], None]:
        """Make the listener that passes changes from the store's threads to the event loop."""

        def changed(opened: dict[int, int]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self.waiters.wake, opened)

        return changed


def state_of(request: Request) -> AppState:
    """The state of the application that serves a request."""
    state: AppState = request.app.state.crowdtree
    return state
