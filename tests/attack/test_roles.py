"""Every route of owners, asked for by everybody: its role, and what the server does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.store.owner import owners
from crowdtree.server.store.owner.owners import ROLES
from crowdtree.server.web.handlers import owner_roles
from tests.attack.routes import SAFE, Route
from tests.attack.test_routes import House
from tests.weblab import Lab, lab

CALLERS = ("nobody", "worker", "read-only", *ROLES)
WHY = ("This takes the role", "This token only reads.")
ROLE_OF = owner_roles()
NOWHERE = 10**6
"""A campaign that there is not, so that whoever may do something changes nothing by it."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    media: Path = tmp_path_factory.mktemp("media")
    with lab(media=media) as app:
        yield House(app)


def token(app: Lab, owner: int | None, read_only: bool = False) -> dict[str, str]:
    made = app.store.write(
        lambda c: owners.make_token(c, owner, "test", app.clock(), read_only=read_only)
    )
    return {"authorization": f"Bearer {made}"}


def test_every_route_of_owners_declares_its_role(house: House) -> None:
    found = {f"{route.method} {route.path}" for route in house.of("owner")}
    missing = sorted(found - set(ROLE_OF))
    assert not missing, f"declare the least role of each: {missing}"
    assert set(ROLE_OF) <= found, "routes of others have a role of owners"


@pytest.mark.parametrize("caller", CALLERS)
def test_every_route_does_what_its_role_says(house: House, caller: str) -> None:
    app = house.app
    app.client.cookies.clear()
    person = None
    if caller in ROLES:
        name = f"the {caller}"
        person = app.store.write(lambda c: owners.add(c, name, caller, app.clock()))
    is_owner = caller in ROLES or caller == "read-only"
    headers: dict[str, str] = {"worker": house.ann.headers}.get(caller, {})
    if is_owner:
        headers = token(app, person, caller == "read-only")
    routes = house.of("owner")
    before = house.rows()
    for route in routes:
        if not allowed(caller, route):
            found = house.call(route, headers, campaign_id=NOWHERE)
            assert found.status_code == (403 if is_owner else 401), (route, found.text[:200])
            assert not is_owner or WHY[caller == "read-only"] in found.text, route
    assert house.rows() == before
    for route in routes:
        if allowed(caller, route):
            mine = token(app, person, caller == "read-only")  # a route may end the session
            found = house.call(route, mine, campaign_id=NOWHERE)
            assert found.status_code not in (401, 403), (route, found.text[:200])


def allowed(caller: str, route: Route) -> bool:
    """What the table says."""
    if caller in ("nobody", "worker"):
        return False
    least = ROLES.index(ROLE_OF[f"{route.method} {route.path}"])
    if caller == "read-only":
        return route.method in SAFE and least == 0
    return ROLES.index(caller) >= least  # type: ignore[arg-type]


def said(found: Any) -> tuple[str, str]:
    return found.json()["error"], found.json()["message"]


def test_a_refusal_is_one_line_for_programs_and_for_people(house: House) -> None:
    app = house.app
    viewer = app.store.write(lambda c: owners.add(c, "Vic", "viewer", app.clock()))
    headers = token(app, viewer)
    found = app.post(f"/api/campaigns/{house.one}/pause", headers=headers)
    sentence = "This takes the role editor; yours is viewer. Ask an admin of this server."
    assert (found.status_code, *said(found)) == (403, "role", sentence)
    page = app.get("/new", headers=headers)
    assert page.status_code == 403
    assert sentence in page.text
    read = token(app, None, read_only=True)
    found = app.post(f"/api/campaigns/{house.one}/pause", headers=read)
    assert said(found) == ("role", "This token only reads. Use one that is not read-only.")
    assert app.get("/metrics", headers=read).status_code == 200
