"""Routing of the application."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from tests.weblab import Lab


def test_a_trailing_slash_is_not_found(app: Lab) -> None:
    number = app.campaign()
    headers = {**app.owner, "host": "evil.example"}
    found = app.client.get(f"/c/{number}/", headers=headers, follow_redirects=False)
    assert found.status_code == 404
