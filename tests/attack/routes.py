"""All routes of the application, found by walking it, so that a new one cannot be forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.weblab import Lab

SAFE = ("GET", "HEAD", "OPTIONS")
DOORS = {
    ("POST", "/api/session"),
    ("POST", "/api/worker/session"),
    ("POST", "/api/join"),
    ("GET", "/login"),
    ("GET", "/w/{token}"),
    ("GET", "/a/{token}"),
    ("GET", "/join/{token}"),
}
"""Where a token is exchanged for a session."""
OPEN = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/tokens.css"),
    ("GET", "/api/openapi.json"),
    ("GET", "/static"),
}
BOTH = {("GET", "/media/{campaign_id}/{name}")}
"""For the owner and the campaign's own workers and auditors."""


class Route(NamedTuple):
    """A method and a path with its parameters."""

    method: str
    path: str

    @property
    def role(self) -> str:
        """Who may use it; everything that is not listed is the owner's."""
        if self in DOORS:
            return "door"
        if self in OPEN:
            return "open"
        if self in BOTH:
            return "both"
        if self.path.startswith(("/api/auditor/", "/check")):
            return "auditor"
        worker = self.path.startswith(("/api/worker/", "/work/")) or self.path == "/work"
        return "worker" if worker else "owner"

    def at(self, **values: Any) -> str:
        """Fill in the parameters."""
        verb = "pause" if "{worker}" in self.path else "start"
        known = {"campaign_id": 1, "worker": 1, "item": 1, "hook": 1, "name": "a.png", "verb": verb}
        known |= {"token_id": "0" * 16, "token": "x", "move": "pause", "person": 10**6, **values}
        return self.path.format(**known)


def every_route(app: Any) -> list[Route]:
    """Walk the application."""
    return sorted(set(_walk(app.routes)))


def _walk(routes: Any) -> Iterator[Route]:
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _walk(inner.routes)
        else:
            for method in (getattr(route, "methods", None) or {"GET"}) - {"HEAD"}:
                yield Route(method, route.path)


def beginning(app: Lab, path: str, headers: dict[str, str]) -> tuple[int, str]:
    """Request an endless stream, and disconnect after its first part."""
    import anyio

    path, _, query = path.partition("?")
    sent: list[Any] = []

    async def receive() -> Any:
        await anyio.sleep(0.01)
        gone = len(sent) > 1
        return {"type": "http.disconnect"} if gone else {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    cookies = "; ".join(f"{name}={value}" for name, value in app.client.cookies.items())
    raw = {"host": "testserver", **headers} | ({"cookie": cookies} if cookies else {})
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in raw.items()],
        "client": ("testclient", 1),
        "server": ("testserver", 80),
        "scheme": "http",
        "http_version": "1.1",
    }

    async def ask() -> None:
        with anyio.move_on_after(10):
            await app.client.app(scope, receive, send)  # type: ignore[arg-type]

    app.client.portal.call(ask)  # type: ignore[union-attr]
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return int(sent[0]["status"]), content.decode()
