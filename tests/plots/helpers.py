"""What the tests of this package share."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

import crowdtree as ct

SVG = "{http://www.w3.org/2000/svg}"


TEXTS = (
    "Does it fly?",
    "Does it live in the water for most of its life?",
    "Is it bigger than a person?",
    "Has it got fur or hair on most of its body, and whiskers around its mouth?",
)


def some_problem(n: int, seed: int = 0, even: bool = False) -> ct.Problem:
    rng = np.random.default_rng(seed)
    m = 40
    return ct.Problem(
        classes=[f"{('Robin', 'Great white shark', 'Cat')[i % 3]} {i}" for i in range(n)],
        prior=None if even else rng.dirichlet(np.full(n, 0.5)) + 1e-5,
        questions=[f"q{i}" for i in range(m)],
        outcome=rng.integers(0, 2, (m, n)),
        worker_error=rng.uniform(0.02, 0.3, m),
        texts=[TEXTS[i % 4] for i in range(m)],
        normalise=True,
    )


def comb_problem(n: int) -> ct.Problem:
    """Each question tells one class from all others: the tree is as deep as can be."""
    return ct.Problem(
        [f"class {i}" for i in range(n)], None, [f"q{i}" for i in range(n)], np.eye(n), 0.1
    )


class Box(NamedTuple):
    name: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def external(page: str) -> list[str]:
    """Addresses that a page would fetch."""
    found = re.findall(r"""(?:src|href)\s*=\s*["']?([^"'#\s>][^"'\s>]*)""", page)
    return found + re.findall(r"url\(|@import|https?://(?!www\.w3\.org)", page)
