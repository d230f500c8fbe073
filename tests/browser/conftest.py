"""A real server on a free port, and a real browser; skipped with a reason where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="browser tests need the package playwright")
pytest.importorskip("fastapi", reason="browser tests need the server's packages")

from playwright.sync_api import APIRequestContext, Browser, Page, Playwright

from tests.serving import chromium
from tests.short import nested
from tests.weblab import ALONE

ROOT = Path(__file__).parents[2]
SHOTS = ROOT / "out" / "browser"
SERVER = """
import sys
from crowdtree.server.web.serve import Serving, run
serving = Serving(sys.argv[1], port=0, media=sys.argv[1] + "-media", private_webhooks=True)
run(serving, lambda link: print(link, flush=True))
"""
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the server; its one-time owner link."""
    chromium()
    database = tmp_path_factory.mktemp("server") / "crowdtree.db"
    log = (database.parent / "server.log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(database)],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait(20)
        server.stdout.close()
        log.close()


@pytest.fixture(scope="session")
def base(link: str) -> str:
    return link.partition("/login")[0]


@pytest.fixture(scope="session")
def session(browser: Browser, link: str) -> dict[str, Any]:
    """Log in once by the link, which waits for the server by itself; the cookies."""
    context = browser.new_context()
    context.new_page().goto(link)
    state: dict[str, Any] = context.storage_state()
    context.close()
    return state


@pytest.fixture(scope="session")
def api(
    play: Playwright, browser: Browser, session: dict[str, Any], base: str
) -> Iterator[APIRequestContext]:
    """The owner's API, with a token of its own."""
    context = browser.new_context(storage_state=session, base_url=base)
    page = context.new_page()
    page.goto("/new")
    csrf = page.get_attribute('meta[name="csrf"]', "content")
    made = page.request.post(
        "/api/tokens", data={"name": "tests"}, headers={"x-csrf-token": csrf or ""}
    )
    token = made.json()["token"]
    context.close()
    found = play.request.new_context(
        base_url=base, extra_http_headers={"authorization": f"Bearer {token}"}
    )
    yield found
    found.dispose()


class Faults(list[str]):
    """Errors reported by the browser: failed scripts and violations of the security policy."""

    def watch(self, page: Page) -> Page:
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on(
            "console",
            lambda message: (
                self.append(message.text)
                if message.type == "error" and "Failed to load resource" not in message.text
                else None
            ),
        )
        page.on("dialog", lambda dialog: (self.append(dialog.message), dialog.dismiss()))
        return page


@pytest.fixture
def faults() -> Iterator[Faults]:
    found = Faults()
    yield found
    assert not found


@pytest.fixture
def open_page(
    browser: Browser, base: str, session: dict[str, Any], faults: Faults
) -> Iterator[Callable[..., Page]]:
    """Open a page: the owner's by default, somebody else's with ``owner=False``."""
    contexts = []

    def made(owner: bool = True, phone: bool = False, **options: Any) -> Page:
        context = browser.new_context(
            base_url=base,
            viewport=PHONE if phone else DESK,
            has_touch=phone,
            is_mobile=phone,
            storage_state=session if owner else None,
            **options,
        )
        context.set_default_timeout(60_000)
        contexts.append(context)
        return faults.watch(context.new_page())

    yield made
    for context in contexts:
        context.close()


@pytest.fixture
def shot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Keep a screenshot as an artefact."""

    def made(page: Page, name: str, full: bool = False) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / f"{name}.png", full_page=full)

    del request
    return made


class Campaign:
    """A running campaign, made through the API."""

    def __init__(self, api: APIRequestContext, number: int) -> None:
        self.api, self.number = api, number

    def progress(self) -> dict[str, Any]:
        found: dict[str, Any] = self.api.get(f"/api/campaigns/{self.number}").json()
        return found

    def answers(self) -> list[str]:
        found = self.api.get(f"/api/campaigns/{self.number}/answers?format=csv")
        return found.text().splitlines()[1:]

    def join(self) -> str:
        found: str = self.api.post(f"/api/campaigns/{self.number}/join-link").json()["link"]
        return found

    def audit(self, bound: float = 0.3, name: str = "Max") -> str:
        """Label everything with "no", start an audit, and make a link for checking."""
        path = f"/api/campaigns/{self.number}"
        token = self.api.post(f"{path}/workers/invite", data={"name": "Ann"}).json()["token"]
        who = {"authorization": f"Bearer {token}"}
        count = 0
        while task := self.api.post("/api/worker/next", data={}, headers=who).json()["task"]:
            sent = {"lease": task["lease"], "answer": "no", "key": f"k{count}"}
            assert self.api.post("/api/worker/answer", data=sent, headers=who).ok
            count += 1
        assert self.api.post(f"{path}/audit", data={"bound": bound}).ok
        found: str = self.api.post(f"{path}/audit/links", data={"name": name}).json()["link"]
        return found

    def settings(self, **changes: Any) -> None:
        made = self.api.patch(f"/api/campaigns/{self.number}/settings", data=nested(changes))
        assert made.ok, made.text()


@pytest.fixture
def campaign(api: APIRequestContext) -> Callable[..., Campaign]:
    """Make and start a campaign on the small example."""

    def made(items: int = 12, rows: str | None = None, **options: Any) -> Campaign:
        policy = {"example": "table1", "workers": 8, **options.pop("policy", {})}
        number = api.post(
            "/api/campaigns",
            data={"name": "Birds", "policy": policy, "settings": nested(ALONE | options)},
        ).json()["id"]
        text = rows or "task,text\n" + "".join(f"{k},This is item {k}\n" for k in range(items))
        path = f"/api/campaigns/{number}"
        added = api.post(f"{path}/items", data=text.encode(), headers={"content-type": "text/csv"})
        assert added.ok, added.text()
        assert api.post(f"{path}/start").ok
        return Campaign(api, number)

    return made
