"""Links and logins: what gives access, who can read what is stored, and what other sites can do."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.store import Store, tokens
from crowdtree.server.store.db.tables import webhooks
from crowdtree.server.store.owner.campaigns import set_status
from crowdtree.server.web import serve
from crowdtree.server.web.secret_key import SEALED, VARIABLE, SecretKey
from crowdtree.server.webhooks import delivery
from crowdtree.server.webhooks.delivery import Deliveries
from crowdtree.server.webhooks.hooks import add_hook, listed_hooks, retry_hook
from crowdtree.server.webhooks.outbox import Message
from tests import aside
from tests.storelab import filled
from tests.weblab import CSV, Lab, lab

PUBLIC = "https://label.example"
posix = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Start a server on a database, up to where it would wait for requests; its link."""
    monkeypatch.setattr(serve, "_serve", lambda _serving, _address, announce: announce())
    monkeypatch.setenv(serve.VARIABLE, "")

    def begin(**options: Any) -> str:
        said: list[str] = []
        serve.run(serve.Serving(str(tmp_path / "c.db"), port=0, **options), said.append)
        return said[0].partition("?token=")[2]

    return begin


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Everybody may read new files, unless the program says otherwise."""
    before = os.umask(0o000)
    yield
    os.umask(before)


@pytest.fixture
def app() -> Iterator[Lab]:
    with lab() as made:
        yield made


def log_in(app: Lab) -> str:
    """Log in with a cookie; the CSRF token."""
    token = app.store.write(lambda c: tokens.issue(c, "once", app.clock()))
    return str(app.client.post("/api/session", json={"token": token}).json()["csrf"])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# ---------------------------------------------------------------- links


def test_a_new_start_retires_owner_links_that_were_not_used(tmp_path: Path, start: Any) -> None:
    first, second = start(), start()
    with Store(str(tmp_path / "c.db")).opened() as store:
        now = store.clock()
        found = [store.read(lambda c, t=t: tokens.find(c, t, now)) for t in (first, second)]
        assert found[0] is None
        assert found[1] is not None
        listed = store.read(lambda c: tokens.listed(c, now))
        assert [row["kind"] for row in listed] == ["link"]
        assert store.write(lambda c: tokens.take_once(c, second, now))
        session = store.write(lambda c: tokens.issue(c, "owner", now, seconds=60.0))
    start()
    with Store(str(tmp_path / "c.db")).opened() as store:  # who is logged in stays so
        assert store.read(lambda c: tokens.find(c, session, store.clock())) is not None


def test_unused_links_can_be_seen_and_revoked(app: Lab) -> None:
    link = app.post("/api/login-link").json()["link"]
    (row,) = (row for row in app.get("/api/tokens").json() if row["kind"] == "link")
    assert row["id"] in app.get("/access").text
    app.client.delete(f"/api/tokens/{row['id']}", headers=app.owner)
    assert app.client.get(link, follow_redirects=False).status_code == 401


def test_a_new_join_link_can_leave_the_old_one_alive(app: Lab) -> None:
    number = app.campaign()
    path = f"/api/campaigns/{number}/join-link"
    ask = 'data-ask="Replace the join link'
    assert ask not in app.get(f"/c/{number}/share").text
    first = app.post(path).json()["token"]
    assert ask in app.get(f"/c/{number}/share").text
    second = app.post(path, {"keep": True}).json()["token"]
    assert [app.post("/api/join", {"token": t}).status_code for t in (first, second)] == [200, 200]
    assert "2 join links work now" in app.get(f"/c/{number}/share").text
    third = app.post(path, {"keep": False}).json()["token"]
    codes = [app.post("/api/join", {"token": t}).status_code for t in (first, second, third)]
    assert codes == [401, 401, 200]
    assert app.post(path, {"keep": "perhaps"}).status_code == 422


# ---------------------------------------------------------------- other sites


def test_an_owner_who_follows_a_link_from_elsewhere_lands_there(app: Lab) -> None:
    number = app.campaign()
    token = app.store.write(lambda c: tokens.issue(c, "once", app.clock()))
    cookie = app.client.get(f"/login?token={token}", follow_redirects=False).headers["set-cookie"]
    assert "samesite=lax" in cookie.lower()  # a browser sends it with links that are followed
    assert "httponly" in cookie.lower()
    followed = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    for site in ("cross-site", "same-site", "none", "same-origin"):
        found = app.client.get(f"/c/{number}", headers={"sec-fetch-site": site, **followed})
        assert (site, found.status_code) == (site, 200)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_cannot_load_what_the_owner_sees(app: Lab, site: str) -> None:
    number = app.campaign()
    log_in(app)
    for path in (f"/c/{number}", f"/api/campaigns/{number}", f"/api/campaigns/{number}/labels"):
        for how in ("cors empty", "no-cors image", "no-cors script", "navigate iframe", "cors"):
            words = [*how.split(), ""]
            headers = {"sec-fetch-site": site, "sec-fetch-mode": words[0]}
            headers |= {"sec-fetch-dest": words[1]} if words[1] else {}
            assert app.client.get(path, headers=headers).status_code == 401, (path, how)
        assert app.client.get(path).status_code == 200  # a browser that does not tell


@pytest.mark.parametrize("public", ["", PUBLIC, f"{PUBLIC}:443", "https://LABEL.example"])
def test_a_proxy_may_replace_the_host_if_the_public_address_is_known(public: str) -> None:
    with lab(url=public) as app:
        number = app.campaign()
        csrf = log_in(app)
        path = f"/api/campaigns/{number}/join-link"

        def sent(origin: str, host: str = "127.0.0.1:8321") -> int:
            headers = {"origin": origin, "host": host, "x-csrf-token": csrf}
            return int(app.client.post(path, json={}, headers=headers).status_code)

        assert sent(PUBLIC) == (201 if public else 403)
        assert sent("http://127.0.0.1:8321") == 201  # without the proxy
        for origin in (
            *("https://evil.example", "http://label.example", f"{PUBLIC}.evil.example"),
            *(f"{PUBLIC}:8443", "https://evil.example@label.example.evil", "null", "", "https://"),
            *("https://label.example:x", "label.example"),
        ):
            assert sent(origin) == 403, origin
        headers = {"origin": PUBLIC, "host": "127.0.0.1:8321"}
        assert app.client.post(path, json={}, headers=headers).status_code == 403  # no token


# ---------------------------------------------------------------- files


@posix
@pytest.mark.usefixtures("open_umask")
def test_databases_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    files = [path.with_name(path.name + end) for end in ("", "-wal", "-shm")]
    for _ in range(2):
        with Store(str(path)).opened() as store:
            store.write(lambda c: tokens.issue(c, "owner", store.clock()))
            assert [mode(file) for file in files] == [0o600] * 3
        path.chmod(0o644)  # as earlier versions have made it
    with Store(str(path)).opened() as store:
        for file in files[1:]:
            file.chmod(0o644)
        with Store(str(path)).opened():
            assert [mode(file) for file in files] == [0o600] * 3


@posix
@pytest.mark.usefixtures("open_umask")
def test_media_are_readable_by_their_owner_only(tmp_path: Path, start: Any) -> None:
    media = tmp_path / "media"
    with lab(str(tmp_path / "c.db"), media=media) as app:
        number = app.campaign(start=False)
        name = f"/api/campaigns/{number}/media?name=a.png"
        assert app.client.post(name, content=b"x", headers=app.owner).status_code == 201
    folder = media / str(number)
    (file,) = folder.iterdir()
    assert [mode(path) for path in (media, folder, file)] == [0o700, 0o700, 0o600]
    other = media / "mine"
    other.mkdir()
    for path in (folder, other):
        path.chmod(0o755)
    file.chmod(0o644)
    start(media=str(media))
    assert [mode(path) for path in (folder, file)] == [0o700, 0o600]
    assert mode(other) == 0o755  # not of a campaign


def test_media_of_a_discarded_draft_are_deleted(tmp_path: Path) -> None:
    with lab(media=tmp_path) as app:
        kept, gone = app.campaign(start=False), app.campaign(start=False)
        for number in (kept, gone):
            path = f"/api/campaigns/{number}/media?name=a.png"
            assert app.client.post(path, content=b"x", headers=app.owner).status_code == 201
        assert app.post(f"/c/{gone}/discard", follow_redirects=False).status_code in (200, 303)
        assert [path.name for path in tmp_path.iterdir()] == [str(kept)]
        started = app.campaign(CSV)
        path = f"/api/campaigns/{started}/media?name=a.png"
        app.client.post(path, content=b"x", headers=app.owner)
        assert app.post(f"/c/{started}/discard").status_code == 422  # it is no draft
        assert len(list((tmp_path / str(started)).iterdir())) == 1


# ---------------------------------------------------------------- secrets of webhooks


def stored(app: Lab) -> str:
    return str(app.store.read(lambda c: c.execute(webhooks.select()).one()).secret)


def test_secrets_of_webhooks_are_not_in_the_database(tmp_path: Path) -> None:
    path, key = tmp_path / "c.db", tmp_path / "c.key"
    with lab(str(path), key_file=key) as app:
        number = app.campaign(start=False)
        made = app.post(f"/api/campaigns/{number}/webhooks", {"url": "https://example.org/"})
        secret = made.json()["secret"]
        assert stored(app).startswith(SEALED)
        assert app.client.app.state.crowdtree.secret_key.open(stored(app)) == secret
        for file in tmp_path.iterdir():
            assert secret.encode() not in file.read_bytes(), file
    if os.name == "posix":
        assert mode(key) == 0o600


def test_another_key_is_noticed_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    async def post(found: Message, *_: object) -> str:
        sent.append(found.secret)
        return ""

    async def send_due(store: Store, key: SecretKey) -> None:
        deliveries = Deliveries(store, key.open, private=True)
        await deliveries.start_due()
        await asyncio.gather(*deliveries.tasks)

    monkeypatch.setattr(delivery, "post", post)
    key, other = SecretKey(tmp_path / "c.key"), SecretKey(tmp_path / "other.key")
    other.seal("so that there is a key")
    with Store("sqlite://").opened() as store:
        number, _ = filled(store, 1)
        add = partial(add_hook, campaign_id=number, url="https://x.example", now=0.0, seal=key.seal)
        made = store.write(add)
        store.write(lambda c: set_status(c, number, "finished", store.clock()))
        aside.run(send_due(store, other))
        assert sent == []
        (hook,) = store.read(lambda c: listed_hooks(c, number))
        assert "another key" in hook["last_error"]
        store.write(lambda c: retry_hook(c, number, made["id"], store.clock()))
        aside.run(send_due(store, key))
    assert sent == [made["secret"]]


def test_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "c.key"
    sealed = SecretKey(file).seal("secret")
    assert sealed != SecretKey(file).seal("secret")  # never the same pad
    changed = sealed[:-6] + ("A" if sealed[-6] != "A" else "B") + sealed[-5:]
    for wrong in (changed, SEALED, f"{SEALED}%", sealed[:20]):
        with pytest.raises(CrowdtreeError, match="stored with another key"):
            SecretKey(file).open(wrong)
    with pytest.raises(CrowdtreeError, match=f"cannot be written.*set {VARIABLE}"):
        SecretKey(tmp_path / "no" / "c.key").seal("x")
    file.write_text("short")
    with pytest.raises(CrowdtreeError, match=r"at least 32 characters.*got 5"):
        SecretKey(file).seal("x")
    monkeypatch.setenv(VARIABLE, "short")
    with pytest.raises(CrowdtreeError, match=f"{VARIABLE}: expected at least 32"):
        SecretKey(file)
    monkeypatch.setenv(VARIABLE, "k" * 32)
    assert SecretKey(None).open(SecretKey(file).seal("secret")) == "secret"  # before the file
    monkeypatch.delenv(VARIABLE)
    assert SecretKey(None).seal("secret") == "secret"
