"""The page about a trace."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import crowdtree as ct
from crowdtree.campaign.trace import explain
from crowdtree.show.report.trace import trace_page, write_trace_report
from tests.tracelab import POLICIES


class Texts(HTMLParser):
    """Tags and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):  # noqa: ARG002
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_the_page_escapes_what_people_wrote(tmp_path: Path):
    nasty = "<script>alert('x')</script> & \"co\""
    problem = ct.Problem(
        [f"cat {nasty}", "dog"], None, ["q"], [[0, 1]], 0.1, texts=[f"Is it {nasty}?"]
    )
    policy = ct.AdaptivePolicy(problem, 0.05)
    trace = explain(policy, [(0, 0), (0, 0), (0, 1)])
    page = trace_page(trace)
    found = Texts()
    found.feed(page)
    assert "script" not in found.tags
    assert any(nasty in text for text in found.texts)
    assert found.tags.count("li") == 1 + len(trace.steps) + len(trace.ignored)
    assert "viewport" in page
    assert not re.search(r"https?:|src=|@import", page)
    write_trace_report(tmp_path / "trace.html", trace)
    assert (tmp_path / "trace.html").read_text() == page
    with pytest.raises(ct.CrowdtreeError, match=r"use \.html"):
        write_trace_report(tmp_path / "trace.pdf", trace)


def test_bars_are_as_long_as_the_probability():
    trace = explain(POLICIES["adaptive"], [(0, 1)])
    widths = [float(w) for w in re.findall(r'class=bar style="width:([\d.]+)%"', trace_page(trace))]
    shares = [
        share
        for belief in (trace.prior, trace.steps[0].posterior)
        for _, share in trace.top(belief)
    ]
    assert widths == pytest.approx([max(100 * share, 0.3) for share in shares], abs=0.051)
