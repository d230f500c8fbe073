"""Threats to links, logins and files."""

from __future__ import annotations

import json
import stat
import tempfile
from pathlib import Path

from benchmarks.threat_lab import Client, Finding, Lab, Refused, Site, rows, threat

PUBLIC = "https://label.example"


def logs_in(site: Site, link: str) -> bool:
    """Whether a link logs an owner in."""
    try:
        site.session(link)
    except Refused:
        return False
    return True


@threat("somebody finds the unused owner link of an earlier start")
def old_owner_link(lab: Lab) -> Finding:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with lab.start(folder=folder, enter=False) as first:
            pass
        with lab.start(folder=folder) as second:
            works = logs_in(second, first.link)
    return Finding(not works, "it logs in" if works else "it is refused")


@threat("the owner makes, lists and revokes links by the command line")
def owner_command(lab: Lab) -> Finding:
    site = lab.shared
    made = site.run("owner", "link", "--json")
    if made.returncode:
        return Finding(False, "no such command")
    kept, gone = json.loads(made.stdout)["link"], None
    before = {row["id"] for row in json.loads(site.run("owner", "list", "--json").stdout)["access"]}
    gone = json.loads(site.run("owner", "link", "--json").stdout)["link"]
    after = {row["id"] for row in json.loads(site.run("owner", "list", "--json").stdout)["access"]}
    site.run("owner", "revoke", *(after - before))
    found = [logs_in(site, link) for link in (kept, gone)]
    return Finding(found == [True, False], f"a link logs in: {found[0]}, when revoked: {found[1]}")


@threat("a new join link is made while people use the one before")
def join_links(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(1))
    first, second = site.open_link(number), site.open_link(number, keep=True)
    found = [site.join(token).status for token in (first, second)]
    return Finding(found == [200, 200], f"join by the first: {found[0]}, by the second: {found[1]}")


@threat("an owner who is logged in follows a link from a mail")
def landing(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(1))
    mine, cookie = site.session(site.made("/api/login-link")["link"])
    same = cookie.lower().partition("samesite=")[2].partition(";")[0]
    followed = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    followed |= {"sec_fetch_dest": "document", "cookie": mine["cookie"]}
    page = Client(site.port).get(f"/c/{number}", **followed).status
    sent = same != "strict"  # a browser keeps the cookie back otherwise
    seen = f"SameSite={same}: {'the page' if sent and page == 200 else 'the login page'}"
    return Finding(sent and page == 200, seen)


@threat("a form is sent through a proxy that replaces the Host, with --url")
def proxy(lab: Lab) -> Finding:
    with lab.start("--url", PUBLIC) as site:
        path = f"/api/campaigns/{site.campaign(rows(1))}/join-link"
        mine, _ = site.session(site.made("/api/login-link")["link"])
        origins = (PUBLIC, "https://evil.example")
        found = [Client(site.port).post(path, origin=one, **mine).status for one in origins]
    return Finding(found == [201, 403], f"own form: {found[0]}, another site's: {found[1]}")


@threat("other users of the machine read the database and media, umask 0")
def modes(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(1), start=False)
    path = f"/api/campaigns/{number}/media?name=a.png"
    site.made(path, b"x", kind="image/png")
    files = [*site.folder.glob("crowdtree.db*"), *site.folder.glob("*-media/*/*.png")]
    found = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}
    seen = ", ".join(f"{name} {mode:o}" for name, mode in sorted(found.items()))
    return Finding(len(found) >= 4 and not any(mode & 0o077 for mode in found.values()), seen)


@threat("somebody has a copy of the database, and looks for the secrets of webhooks")
def secrets(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(1), start=False)
    hook = site.made(f"/api/campaigns/{number}/webhooks", {"url": "https://example.org/"})
    found = [
        file.name
        for file in site.folder.glob("crowdtree.db*")
        if hook["secret"].encode() in file.read_bytes()
    ]
    return Finding(not found, f"readable in {', '.join(found)}" if found else "not in the files")


@threat("the owner discards a draft with media")
def draft_media(lab: Lab) -> Finding:
    site = lab.shared
    number = site.campaign(rows(1), start=False)
    site.made(f"/api/campaigns/{number}/media?name=a.png", b"x", kind="image/png")
    site.post(f"/c/{number}/discard")
    left = list(site.folder.glob(f"*-media/{number}/*"))
    return Finding(not left, f"files left: {len(left)}")
