"""The steps of a new campaign."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.errors import CrowdtreeError
from crowdtree.web.pages.wizard import _pasted


def test_pasted_items_may_be_lines_or_tables():
    assert _pasted("id,text\n1,a\n")[1] == "csv"
    assert _pasted('{"task": "1"}\n')[1] == "jsonl"
    lines, kind = _pasted("one, with a comma\n\n  two ")
    assert kind == "jsonl"
    assert [json.loads(line)["text"] for line in lines.splitlines()] == ["one, with a comma", "two"]
    with pytest.raises(CrowdtreeError, match="paste one item per line"):
        _pasted(" \n ")
