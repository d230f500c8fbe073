"""Schemathesis over the OpenAPI schema: no input by any role causes a server error."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")
pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from crowdtree.server.store import tokens
from crowdtree.server.web.rate_limit import RateLimit
from tests.attack.routes import Route, beginning
from tests.weblab import Lab, lab

ENDLESS = ("/api/campaigns/{campaign_id}/events",)
"""Streams that never end by themselves."""
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
ROLES = ("owner", "worker", "auditor", "nobody")


@pytest.mark.parametrize(
    "examples", [2, pytest.param(30, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_never_a_server_error(examples: int, tmp_path: Path) -> None:
    with lab(media=tmp_path) as app:
        fuzz = Fuzz(app, examples)
        schema = schemathesis.openapi.from_asgi("/api/openapi.json", app.client.app)
        operations = [found.ok() for found in schema.get_all_operations()]
        for operation in operations:
            for mode in MODES:
                fuzz.attack(operation, mode)
        assert len(operations) >= 33
        assert app.client.get("/healthz").status_code == 200
        # Otherwise only refusals would be tested: most operations must succeed with real ids.
        well = {label for label, status in fuzz.seen if status < 300}
        assert len(well) >= 20, sorted({op.label for op in operations} - well)
        assert not [key for key in fuzz.seen if key[1] >= 500]


class Fuzz:
    """Sends valid and invalid input in every role."""

    def __init__(self, app: Lab, examples: int) -> None:
        self.app = app
        self.examples = examples
        self.number = app.campaign()
        self.owner = ""
        self.worker = app.worker(self.number)
        link = app.post(f"/api/campaigns/{self.number}/audit/links", {"name": "Max"}).json()
        self.auditor = {"authorization": f"Bearer {link['token']}"}
        self.seen: Counter[tuple[str, int]] = Counter()
        site: Any = app.client.app.state.crowdtree  # type: ignore[attr-defined]
        site.login_limit = site.join_limit = RateLimit("all", 10**6, 1.0)

    def headers(self, role: str) -> dict[str, str]:
        """Make a new token after the last one was revoked, to keep later requests authorised."""
        if role == "nobody":
            return {}
        if role == "auditor":
            return self.auditor
        if role == "worker":
            return {"authorization": f"Bearer {self.worker.token}"}
        good = self.app.store.read(lambda c: tokens.find(c, self.owner, self.app.clock()))
        if good is None:
            self.owner = self.app.store.write(lambda c: tokens.issue(c, "owner", self.app.clock()))
        return {"authorization": f"Bearer {self.owner}"}

    def attack(self, operation: Any, mode: GenerationMode) -> None:
        self.worker = self.app.worker(self.number)

        @settings(
            max_examples=self.examples,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def run(case: Any) -> None:
            if isinstance(case.body, dict) and isinstance(case.body.get("wait"), int | float):
                case.body["wait"] = 0
            right = Route(operation.method.upper(), operation.path).role
            for role in ROLES if mode is MODES[0] else (right if right in ROLES else "nobody",):
                for real in (False, True) if "{" in operation.path else (False,):
                    self.send(operation, case, role, real)

        try:
            run()
        except Exception as error:
            if type(error).__name__ not in ("Unsatisfiable", "InvalidArgument"):
                raise  # an operation without input has nothing that is wrong

    def send(self, operation: Any, case: Any, role: str, real: bool) -> None:
        route = Route(operation.method.upper(), operation.path)
        arguments = case.as_transport_kwargs(base_url="http://testserver")
        url = arguments["url"]
        if real:
            things = {
                "campaign_id": self.number,
                "item": 1,
                "worker": 1,
                "hook": 1,
                "verb": "resume",
            }
            url = f"http://testserver{route.at(**things)}"
        headers = {**dict(arguments["headers"] or {}), **self.headers(role)}
        if operation.path in ENDLESS:
            path = url.removeprefix("http://testserver")
            status, text = beginning(self.app, path, {**self.headers(role)})
        else:
            content = {k: arguments[k] for k in ("json", "data", "params") if k in arguments}
            if isinstance(content.get("data"), str | bytes):
                content["content"] = content.pop("data")
            found = self.app.client.request(route.method, url, headers=headers, **content)
            status, text = found.status_code, found.text
        self.app.client.cookies.clear()
        assert status < 500, (operation.label, role, url, case.body, text)
        if route.role in ROLES and role != route.role:
            assert status >= 400, (operation.label, role, url, text)
        self.seen[operation.label, status] += 1
