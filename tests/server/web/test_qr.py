"""QR codes of links."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

pytest.importorskip("segno", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.web.handlers.workers import MAX_LINK, qr_svg


def test_a_code_is_a_picture_with_a_border_and_nothing_else():
    found = ET.fromstring(qr_svg("https://label.example/join/abc"))
    tags = [element.tag.rpartition("}")[2] for element in found.iter()]
    assert tags == ["svg", "path", "path"]
    _, _, width, height = found.attrib["viewBox"].split()
    assert width == height
    assert (int(width) - 8 - 17) % 4 == 0  # the size of a version, and four modules on each side


def test_links_that_are_too_long_have_no_code():
    assert qr_svg("x" * MAX_LINK)
    assert qr_svg("x" * (MAX_LINK + 1)) == ""
