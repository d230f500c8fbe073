"""A whole application in memory, with an owner logged in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from tests.weblab import Lab, lab


@pytest.fixture
def app() -> Iterator[Lab]:
    """The application."""
    with lab(private_webhooks=True) as made:
        yield made
