"""Items and their media."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.web.services.items import MEDIA_TYPES


def test_nothing_that_a_browser_runs_can_be_uploaded():
    assert not {"svg", "html", "htm", "xml", "js", "pdf", "xhtml"} & set(MEDIA_TYPES)
