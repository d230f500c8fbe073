"""The walk of one answer on the page of the architecture is the one that the server takes."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from tests.docs.pages import ROOT

MAX_MODULES = 23
"""Modules that may run for one answer; lower it when there are fewer."""


def test_the_page_names_modules_that_run_for_an_answer() -> None:
    spec = importlib.util.spec_from_file_location("answer_walk", ROOT / "tools" / "answer_walk.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    profiler = sys.getprofile()
    spec.loader.exec_module(tool)
    try:
        walked = [f"crowdtree.{module}" for module in tool.walk()]
    finally:
        sys.setprofile(profiler)
    page = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## One answer")[2].partition("## Where")[0]
    named = re.findall(r"`(crowdtree\.[\w.]+)`", table.partition("\n\nThe ")[0])
    assert len(named) >= 8
    assert set(named) <= set(walked)
    assert len(walked) <= MAX_MODULES, "\n".join(walked)
