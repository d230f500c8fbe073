"""What the handlers share: the store, who waits for a question, limits, templates."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import Request

from crowdtree.policy import Policy
from crowdtree.store import Store
from crowdtree.store.background.maintenance import Maintenance
from crowdtree.store.background.stalled import StalledItems
from crowdtree.store.db.campaign_row import Campaign
from crowdtree.web.limits import RateLimit
from crowdtree.web.plans import Plans

__all__ = ["Options", "Site", "Waiters", "site_of"]

HERE = Path(__file__).parent
FAILURES_A_MINUTE = 20
"""Links that do not work, a minute and address, before the address has to wait."""
POLL_SECONDS = {True: 10.0, False: 3.0}
"""How often a waiting worker looks again without being woken: in one process, and in several,
where another may have opened a question."""

TRIES = 5
"""How many waiting workers may try a question that opened before it is left to whoever looks."""


@dataclass(frozen=True)
class Options:
    """How the server runs."""

    media: Path | None = None
    """Folder of uploaded media; none: uploads are refused."""
    secure_cookies: bool = False
    """Whether cookies are sent over https only; set it behind https."""
    private_webhooks: bool = False
    """Whether webhooks may go to private and loopback addresses."""
    trusted_hosts: tuple[str, ...] = ()
    """Names by which the server may be addressed; none: any."""
    joins_per_minute: int = 600
    """Most people who may join by open links from one address: a lecture hall has only one."""
    session_seconds: float = 7 * 86_400.0
    docs: bool = True
    url: str = ""
    """The address by which people reach the server; none: as the owner's browser does."""


@dataclass
class Waiter:
    """A worker who waits: woken for a question that opened, which others may try after them."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    tries: int = 0


class Waiters:
    """Workers who wait for a question: one is woken for each question that opened.

    Who is woken and cannot take it (they had it before) passes it on, a few times.
    """

    def __init__(self) -> None:
        self.queues: dict[int, deque[Waiter]] = defaultdict(deque)
        self.changes: dict[int, set[asyncio.Event]] = defaultdict(set)

    async def wait(self, campaign: int, seconds: float) -> int:
        """Wait for a question to open, or for some seconds; say how many may try it after us."""
        waiter = Waiter()
        queue = self.queues[campaign]
        queue.append(waiter)
        try:
            await asyncio.wait_for(waiter.event.wait(), seconds)
        except TimeoutError:
            return 0
        finally:
            if not waiter.event.is_set():
                queue.remove(waiter)
        return waiter.tries

    def wake(self, opened: dict[int, int]) -> None:
        """Wake workers of campaigns where questions opened, and everybody who watches."""
        for campaign, count in opened.items():
            for _ in range(min(count, len(self.queues.get(campaign, ())))):
                self.pass_on(campaign, TRIES)
            for watcher in self.changes.get(campaign, ()):
                watcher.set()

    def pass_on(self, campaign: int, tries: int) -> None:
        """Wake the worker who has waited longest; so many may try, this one included."""
        queue = self.queues.get(campaign)
        if queue and tries > 0:
            waiter = queue.popleft()
            waiter.tries = tries - 1
            waiter.event.set()

    def waiting(self) -> int:
        """Count the workers who wait."""
        return sum(len(queue) for queue in self.queues.values())

    def wake_all(self) -> None:
        """Wake everybody who waits or watches."""
        for queue in self.queues.values():
            while queue:
                queue.popleft().event.set()
        for watchers in self.changes.values():
            for watcher in watchers:
                watcher.set()


@dataclass
class Site:
    """One running application."""

    store: Store
    options: Options
    waiters: Waiters = field(default_factory=Waiters)
    login_limit: RateLimit = field(default_factory=lambda: RateLimit(FAILURES_A_MINUTE, 60.0))
    join_limit: RateLimit = field(init=False)
    templates: Any = None
    maintenance: Maintenance = field(init=False)
    stalled: StalledItems = field(init=False)
    plans: Plans = field(default_factory=Plans)
    policies: dict[tuple[int, int], Policy[Any]] = field(default_factory=dict)
    loop: asyncio.AbstractEventLoop | None = None
    stopping: bool = False
    """Whether the server is going away: streams and long polls end."""

    def __post_init__(self) -> None:
        self.join_limit = RateLimit(self.options.joins_per_minute, 60.0)
        self.maintenance = Maintenance(self.store.clock)
        self.stalled = StalledItems(self.store.clock)

    @property
    def poll_seconds(self) -> float:
        """How often a waiting worker looks again, a little different each time."""
        return POLL_SECONDS[self.store.alone] * random.uniform(0.8, 1.2)

    @property
    def now(self) -> float:
        """Seconds since 1970, by the store's clock."""
        return self.store.clock()

    def policy(self, campaign: Campaign) -> Policy[Any]:
        """Make the policy of a campaign, or take it from memory."""
        key = (campaign.id, campaign.version)
        if key not in self.policies:
            if len(self.policies) > 100:
                self.policies.clear()
            self.policies[key] = campaign.make_policy()
        return self.policies[key]

    def stop(self) -> None:
        """Send home everybody who waits; called from a signal handler."""
        self.stopping = True
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.waiters.wake_all)

    def listen(self, loop: asyncio.AbstractEventLoop) -> Callable[[dict[int, int]], None]:
        """Make the listener that brings changes from the store's threads to the event loop."""

        def changed(opened: dict[int, int]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self.waiters.wake, opened)

        return changed


def site_of(request: Request) -> Site:
    """Find the application that serves a request."""
    found: Site = request.app.state.site
    return found


def event_line(name: str, data: Any) -> str:
    """Write one server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
