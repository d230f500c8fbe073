"""Attacks on the API; what each shows is listed in docs/security.md."""

from __future__ import annotations

import csv
import gzip
import io
import logging
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import aside

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store import tokens
from crowdtree.server.store.db.tables import credentials, webhooks
from crowdtree.server.web.plans import problem_from_bytes
from crowdtree.server.webhooks.delivery import check_url, public_address
from tests.short import nested
from tests.weblab import Lab, lab


@pytest.fixture(scope="module")
def app() -> Iterator[Lab]:
    with lab() as made:
        yield made


@pytest.fixture
def fresh() -> Iterator[Lab]:
    with lab() as made:
        yield made


def logged_in(app: Lab) -> str:
    """Log in by cookie; returns the CSRF token."""
    token = app.store.write(lambda c: tokens.issue(c, "once", app.clock()))
    found = app.client.post("/api/session", json={"token": token})
    assert found.status_code == 200
    return str(found.json()["csrf"])


# ------------------------------------------------------------------------------ roles and tokens


def test_owner_tokens_are_rejected_as_worker_tokens(app: Lab) -> None:
    found = app.client.post("/api/worker/next", json={}, headers=app.owner)
    assert found.status_code == 401


def test_revoked_expired_and_blocked_tokens_stop_working(fresh: Lab) -> None:
    app = fresh
    number = app.campaign()
    worker = app.worker(number)
    assert worker.call("next").status_code == 200
    old = worker.token
    new = app.post(f"/api/campaigns/{number}/workers/{worker.id}/link").json()["token"]
    assert worker.call("next").status_code == 401
    assert app.post("/api/worker/session", {"token": old}).status_code == 401
    assert app.post("/api/worker/session", {"token": new}).status_code == 200
    app.post(f"/api/campaigns/{number}/workers/{worker.id}/block")
    assert app.post("/api/worker/session", {"token": new}).status_code == 401
    made = app.post("/api/tokens", {"name": "script"}).json()
    script = {"authorization": f"Bearer {made['token']}"}
    assert app.get("/api/campaigns", headers=script).status_code == 200
    gone = app.client.delete(f"/api/tokens/{made['id']}", headers=app.owner)
    assert gone.json() == {"revoked": 1}
    assert app.get("/api/campaigns", headers=script).status_code == 401
    csrf = logged_in(app)
    app.clock.now += 8 * 86_400
    assert app.client.get("/api/campaigns").status_code == 401
    assert csrf


def test_logging_out_ends_the_session_everywhere(fresh: Lab) -> None:
    csrf = logged_in(fresh)
    cookie = dict(fresh.client.cookies)
    assert fresh.client.get("/api/campaigns").status_code == 200
    fresh.client.delete("/api/session", headers={"x-csrf-token": csrf})
    fresh.client.cookies.update(cookie)  # a stolen copy
    assert fresh.client.get("/api/campaigns").status_code == 401


def test_no_token_is_stored_or_logged(fresh: Lab, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    number = fresh.campaign()
    worker = fresh.worker(number)
    join = fresh.post(f"/api/campaigns/{number}/join-link").json()["token"]
    once = fresh.store.write(lambda c: tokens.issue(c, "once", fresh.clock()))
    fresh.client.get(f"/login?token={once}", follow_redirects=False)
    fresh.client.get(f"/w/{worker.token}", follow_redirects=False)
    fresh.client.get(f"/join/{join}", follow_redirects=False)
    stored = fresh.store.read(lambda c: str(c.execute(credentials.select()).all()))
    ours = "\n".join(r.getMessage() for r in caplog.records if r.name.startswith("crowdtree"))
    assert "/login" in ours
    for secret in (worker.token, join, once, fresh.owner["authorization"].split()[1]):
        assert secret not in stored
        assert secret not in ours


# ------------------------------------------------------------------------------ IDOR


def test_campaigns_and_workers_do_not_mix(fresh: Lab) -> None:
    app = fresh
    one, two = app.campaign(), app.campaign()
    ann, bob, eve = app.worker(one), app.worker(one), app.worker(two)
    lease = ann.next()["task"]["lease"]
    for thief in (bob, eve):
        assert thief.answer(lease).status_code == 410
        assert thief.call("skip", lease=lease, key="s").status_code == 410
    assert ann.answer(lease).json()["fate"] == "counted"
    for verb in ("pause", "block", "link"):
        assert app.post(f"/api/campaigns/{two}/workers/{ann.id}/{verb}").status_code == 404
    item = app.get(f"/api/campaigns/{one}/items/1")
    assert item.status_code == 200
    assert app.get(f"/api/campaigns/{two}/items/1").status_code == 404
    hook = app.post(f"/api/campaigns/{one}/webhooks", {"url": "https://example.org/"}).json()
    gone = app.client.delete(f"/api/campaigns/{two}/webhooks/{hook['id']}", headers=app.owner)
    assert gone.status_code == 404


# ------------------------------------------------------------------------------ CSRF


def test_a_cookie_alone_changes_nothing(fresh: Lab) -> None:
    csrf = logged_in(fresh)
    client = fresh.client
    body = {"policy": {"example": "table1"}}
    assert client.post("/api/campaigns", json=body).status_code == 403
    for headers in (
        {"x-csrf-token": "0" * 64},
        {"x-csrf-token": csrf, "origin": "https://evil.example"},
        {"x-csrf-token": csrf, "origin": "null"},
        {"x-csrf-token": csrf, "sec-fetch-site": "cross-site"},
    ):
        assert client.post("/api/campaigns", json=body, headers=headers).status_code == 403
    form = client.post("/api/campaigns", data={"csrf": "0" * 64})
    assert form.status_code == 403
    assert (
        client.post("/api/campaigns", json=body, headers={"x-csrf-token": csrf}).status_code == 201
    )


def test_security_headers(app: Lab) -> None:
    for path in ("/", "/api/campaigns", "/healthz", "/nowhere"):
        headers = app.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in headers


# ------------------------------------------------------------------------------ uploads


def test_large_and_compressed_bodies_are_refused(app: Lab) -> None:
    number = app.campaign(start=False)
    worker = app.worker(number)
    big = app.client.post("/api/worker/next", content=b" " * 70_000, headers=worker.headers)
    assert big.status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(200):
            yield b" " * 1000

    streamed = app.client.post("/api/worker/next", content=endless(), headers=worker.headers)
    assert streamed.status_code == 413
    bomb = gzip.compress(b"task\n" + b"a\n" * 1_000_000)
    packed = app.client.post(
        f"/api/campaigns/{number}/items",
        content=bomb,
        headers={**app.owner, "content-type": "text/csv", "content-encoding": "gzip"},
    )
    assert packed.status_code == 415


def test_a_zip_bomb_is_refused_as_workbook() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * (80 * 2**20))
    assert len(content.getvalue()) < 2**20
    with pytest.raises(ValueError, match="too large when unpacked"):
        problem_from_bytes(content.getvalue(), "bomb.xlsx")
    with pytest.raises(ValueError, match="cannot be read"):
        problem_from_bytes(b"PK no", "bomb.xlsx")


def test_a_very_long_line_is_refused(app: Lab) -> None:
    number = app.campaign(start=False)
    found = app.client.post(
        f"/api/campaigns/{number}/items",
        content=b"task,text\na," + b"x" * 1_100_000,
        headers={**app.owner, "content-type": "text/csv"},
    )
    assert found.status_code == 422


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/media/1/..%2f..%2fetc%2fpasswd",
        "/media/1/../../../etc/passwd",
    ],
)
def test_paths_cannot_leave_their_folders(app: Lab, path: str) -> None:
    assert app.client.get(path, headers=app.owner).status_code in (401, 404)


# ------------------------------------------------------------------------------ input


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/worker/next", {"extra": 1}),
        ("/api/worker/next", {"wait": 1e9}),
        ("/api/worker/next", {"wait": -1}),
        ("/api/worker/next", {"holding": ["1.a"] * 101}),
        ("/api/worker/answer", {"lease": "1.aa", "answer": "maybe", "key": "k"}),
        ("/api/worker/answer", {"lease": "1.aa", "answer": 1, "key": "k"}),
        ("/api/worker/answer", {"lease": "1.aa", "answer": "yes", "key": "k", "skill": 9}),
        ("/api/worker/answer", {"lease": "1.aa", "answer": "yes", "key": "k" * 101}),
        ("/api/worker/answer", {"lease": "1;drop", "answer": "yes", "key": "k"}),
    ],
)
def test_extra_and_wrong_fields_are_refused(app: Lab, path: str, body: Any) -> None:
    worker = app.worker(app.campaign())
    found = app.client.post(path, json=body, headers=worker.headers)
    assert found.status_code == 422, found.text


@pytest.mark.parametrize(
    "settings",
    [
        {"unknown": 1},
        {"return_url": "javascript:alert(1)"},
        {"return_url": "http://example.org"},
        {"return_url": "https://user@example.org"},
        {"return_url": "//example.org"},
        {"return_url": "https://exa mple.org"},
        {"gold_rate": 2},
        {"price": -1},
        {"budget": 1},
        {"examples": {"no such question": "x"}},
    ],
)
def test_bad_settings_are_refused(app: Lab, settings: Any) -> None:
    body = {"policy": {"example": "table1"}, "settings": nested(settings)}
    assert app.post("/api/campaigns", body).status_code == 422


def test_exports_contain_no_formulas(fresh: Lab) -> None:
    evil = ['=HYPERLINK("http://x")', "+1+1", "-1+1", "@SUM(A1)", "\tx"]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["task", "text"])
    writer.writerows([[name, name] for name in evil])
    number = fresh.campaign(text.getvalue(), example="table1", workers=0)
    worker = fresh.worker(number, "=cmd()")
    while worker.work("yes"):
        pass
    for what in ("labels", "answers"):
        table = csv.reader(io.StringIO(fresh.get(f"/api/campaigns/{number}/{what}").text))
        cells = [cell for row in table for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))]


# ------------------------------------------------------------------------------ webhooks


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "https://user:pass@example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "https:///x",
        "https://example.org:0/",
        "https://example.org/\r\nhost: evil",
    ],
)
def test_webhooks_go_to_https_only(app: Lab, url: str) -> None:
    with pytest.raises(ValueError, match="webhook"):
        check_url(url, private=False)
    number = app.campaign(start=False)
    assert app.post(f"/api/campaigns/{number}/webhooks", {"url": url}).status_code == 422


PRIVATE = (
    *("127.0.0.1", "127.1", "2130706433", "0.0.0.0", "10.1.2.3", "100.64.0.1", "169.254.169.254"),
    *("172.16.0.1", "192.0.0.8", "192.88.99.1", "192.168.0.1", "198.18.0.1", "224.0.0.1"),
    *("240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1"),
    *("::ffff:8.8.8.8", "64:ff9b::127.0.0.1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1"),
    *("2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "fc00::1", "fe80::1", "fec0::1"),
    "ff02::1",
)


@pytest.mark.parametrize("host", PRIVATE)
def test_webhooks_never_reach_private_addresses(app: Lab, host: str) -> None:
    with pytest.raises(OSError, match="not public"):
        aside.run(public_address(host, 443, private=False))
    number = 1 if app.get("/api/campaigns").json() else app.campaign(start=False)
    written = f"[{host}]" if ":" in host else host
    url = {"url": f"https://{written}/hook"}
    found = app.post(f"/api/campaigns/{number}/webhooks", url)
    assert (found.status_code, "not public" in found.json()["message"]) == (422, True), found.text


def test_public_and_allowed_addresses_are_accepted() -> None:
    for host in ("8.8.8.8", "2606:4700::1111"):
        assert aside.run(public_address(host, 443, private=False)) == host
    assert aside.run(public_address("127.0.0.1", 443, private=True)) == "127.0.0.1"


def test_webhook_secrets_are_shown_once(fresh: Lab) -> None:
    number = fresh.campaign(start=False)
    made = fresh.post(f"/api/campaigns/{number}/webhooks", {"url": "https://example.org/"}).json()
    kept = fresh.store.read(lambda c: c.execute(webhooks.select()).one())
    assert kept.secret == made["secret"]
    for path in ("webhooks", "activity", "definition"):
        assert made["secret"] not in fresh.get(f"/api/campaigns/{number}/{path}").text


# ------------------------------------------------------------------------------ the page itself


def test_tests_named_in_the_security_page_exist() -> None:
    """The tests that docs/security.md names must exist."""
    here = Path(__file__).parents[1]
    page = (here.parent / "docs" / "security.md").read_text(encoding="utf-8")
    tests = "\n".join(path.read_text(encoding="utf-8") for path in here.rglob("test_*.py"))
    files = {path.name for path in here.rglob("test_*.py")}
    named = set(re.findall(r"\btest_\w+(?:\.py)?", page))
    assert len(named) > 30
    missing = [n for n in named if n not in files and f"def {n.removesuffix('.py')}(" not in tests]
    assert missing == []
