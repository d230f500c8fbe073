"""Colours that can be told apart."""

from __future__ import annotations

import re
from dataclasses import asdict

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.show.plots import style, tree_svg


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("tokens", [style.LIGHT, style.DARK])
def test_text_is_readable(tokens: style.Tokens) -> None:
    for word in ("text", "muted", "accent", "orange_text", "error"):
        for ground in ("background", "surface"):
            assert contrast(getattr(tokens, word), getattr(tokens, ground)) >= 4.5, (word, ground)
    assert contrast(tokens.text, tokens.accent_soft) >= 4.5
    assert len(set(asdict(tokens).values())) == len(asdict(tokens))


def test_no_and_yes_differ_in_grey_print() -> None:
    assert contrast(style.LIGHT.orange, style.LIGHT.accent) >= 2


def test_dark_and_light_differ_in_colour_only() -> None:
    tree = ct.design(ct.example("table1"))
    light, dark = tree_svg(tree), tree_svg(tree, tokens=style.DARK)
    assert light != dark
    assert re.sub("<style>.*</style>", "", light) == re.sub("<style>.*</style>", "", dark)
