"""Widths of words, without a browser."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from crowdtree.core.text import percent
from crowdtree.show.plots.text import clean, distinct, text_width, wrap


def test_text_width_is_at_least_that_of_helvetica() -> None:
    # advance widths of Helvetica in thousandths, summed by hand from its published metrics
    for text, thousandths in {"Hello": 2278, "Does it fly?": 4946, "8.23 %": 3113}.items():
        assert text_width(text, 10) >= thousandths / 100
        assert text_width(text, 10) <= 1.25 * thousandths / 100  # the margin, and a little
    assert text_width("象", 10) >= 10
    assert text_width("e\u0301", 10) == text_width("e", 10)


@pytest.mark.parametrize("text", ["", "a", "word " * 30, "x" * 200, "一" * 50, "a" * 40 + " b"])
def test_wrapped_lines_fit(text: str) -> None:
    lines = wrap(text, 100, 13)
    assert 1 <= len(lines) <= 4
    assert all(text_width(line, 13) <= 100 for line in lines)


def test_wrap_loses_nothing_that_fits() -> None:
    assert " ".join(wrap("Does it have a long trunk and big ears?", 120, 13)) == (
        "Does it have a long trunk and big ears?"
    )
    assert "".join(wrap("x" * 30, 100, 13)) == "x" * 30


def test_clean_keeps_what_xml_allows() -> None:
    dirty = "a\x00\x08\x1b\ud800\ufffe\tb\u200bc"
    ET.fromstring(f"<a>{clean(dirty)}</a>")
    assert clean("  two\n words ") == "two words"


def test_percent_never_rounds_to_0_or_100() -> None:
    assert percent(1 - 1e-4) == "99.99 %"
    assert percent(1e-7) == "0.00001 %"
    assert percent(1e-12) == "< 0.0000001 %"
    assert percent(1 - 1e-16) == "100 %"
    assert percent(0.082311) == "8.23 %"


def test_classes_with_long_or_like_names_keep_their_own_row() -> None:
    names = distinct(["x" * 40 + "a", "x" * 40 + "b", "short"], 28)
    assert len(set(names)) == 3
    assert max(map(len, names)) < 40
