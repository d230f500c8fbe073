"""Shared Hypothesis strategies: small problems that cover what the model allows.

>>> from hypothesis import given
>>> @given(problems(separable=True))
... def test_design_works(problem): ...

Everything shrinks towards two classes, one question, equal priors, no ``-`` and no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from crowdtree import Problem

__all__ = ["errors_of", "is_separable", "nasty_names", "outcomes", "priors", "problems"]

# A short grid makes ties, which floats alone would hardly ever make.
GRID = (0.0, 0.05, 0.1, 0.2, 0.3, 0.45)


def is_separable(outcome: NDArray[np.int8], dash: str = "inapplicable") -> bool:
    """Whether every order of questions ends with one class per leaf (independent of the designers).

    `either`: every pair needs a question on which both are definite and differ, for otherwise a
    copy of the one follows the other all the way. `inapplicable`: split by whatever splits; the
    final partition does not depend on the order (docs/model.md, section 1).
    """
    n = outcome.shape[1]
    if dash == "either":
        # 0 and 1 sum to 1 with a product of 0; a dash (-1) makes neither so
        total, product = (
            outcome[:, :, None] + outcome[:, None],
            outcome[:, :, None] * outcome[:, None],
        )
        differ = ((total == 1) & (product == 0)).any(axis=0)
        return bool((differ | np.eye(n, dtype=bool)).all())
    stack = [list(range(n))]
    while stack:
        members = stack.pop()
        if len(members) == 1:
            continue
        splitting = [row for row in outcome[:, members].tolist() if set(row) == {0, 1}]
        if not splitting:
            return False
        pairs = list(zip(members, splitting[0], strict=True))
        stack += [[c for c, answer in pairs if answer == side] for side in (0, 1)]
    return True


def priors(n: int) -> st.SearchStrategy[NDArray[np.float64]]:
    """Positive shares that sum to 1: equal, with ties, or quite unequal."""
    small = st.lists(st.integers(1, 4), min_size=n, max_size=n)
    wide = st.lists(st.floats(0.001, 1.0), min_size=n, max_size=n)
    return st.one_of(st.just([1] * n), small, wide).map(
        lambda weights: np.array(weights, dtype=float) / np.sum(weights)
    )


@st.composite
def outcomes(
    draw: st.DrawFn, m: int, n: int, *, dashes: bool = True, separable_in: str | None = None
) -> NDArray[np.int8]:
    """Tables of 0, 1 and ``-``; with `separable_in` (a dash mode) they tell all classes apart.

    A table that does not is mended with the binary digits of different numbers on as many
    questions as that takes, at places of Hypothesis' choice.
    """
    cells = st.sampled_from((0, 1, 0, 1, -1) if dashes else (0, 1))
    rows = st.lists(cells, min_size=n, max_size=n)
    table = np.array(draw(st.lists(rows, min_size=m, max_size=m)), dtype=np.int8)
    if separable_in is None or is_separable(table, separable_in):
        return table
    digits = (n - 1).bit_length()
    code = draw(st.permutations(range(2**digits)))[:n]
    places = draw(st.permutations(range(m)))[:digits]
    for digit, place in enumerate(places):
        table[place] = [(number >> digit) & 1 for number in code]
    return table


def errors_of(
    m: int, n: int, *, kinds: Sequence[str] = ("one", "question", "cell"), most: float = 0.45
) -> st.SearchStrategy[Any]:
    """Worker errors: one number, one per question or one per cell; zeros, ties and plain floats."""
    one = st.one_of(st.sampled_from([e for e in GRID if e <= most]), st.floats(0.001, most))
    row = st.lists(one, min_size=n, max_size=n)
    ways = {
        "one": one,
        "question": st.lists(one, min_size=m, max_size=m),
        "cell": st.lists(row, min_size=m, max_size=m),
    }
    return st.one_of(*(ways[kind] for kind in kinds))


def nasty_names(count: int) -> st.SearchStrategy[list[str]]:
    """Names that break careless readers: commas, quotes, line breaks, numbers, words of YAML."""
    traps = [
        "a,b", 'say "hi"', "two\nlines", "a;b", "tab\there", "007", "1e5", "-", "null", "true",
        "no", "prior", "error", "text", "question", "=1+1", "#x", "- x", "{a: b}", "naïve",
        "鳥", "🐦", "'", "%", "1,5", "~", "\ufeffbom", "description", "&a", "*a", "nan", "inf",
    ]  # fmt: skip
    anything = st.text(
        st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Cn")), min_size=1, max_size=8
    )
    name = st.one_of(st.sampled_from(traps), anything).map(str.strip).filter(bool)
    return st.lists(name, min_size=count, max_size=count, unique=True)


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    classes: tuple[int, int] = (2, 7),
    questions: tuple[int, int] = (1, 8),
    dash: str | None = None,
    dashes: bool = True,
    errors: Sequence[str] = ("one", "question", "cell"),
    most_error: float = 0.45,
    separable: bool = False,
    nasty: bool = False,
    texts: bool = False,
) -> Problem:
    """Small problems.

    Parameters
    ----------
    classes, questions
        The fewest and the most.
    dash
        ``"inapplicable"`` or ``"either"``; both occur if not given.
    dashes
        Whether ``-`` occurs in the table.
    errors
        Which kinds of worker error occur: ``"one"``, ``"question"``, ``"cell"``.
    most_error
        The largest error of a worker, at most 0.45 (no warnings).
    separable
        All classes can be separated, so every designer makes a tree.
        (More questions than asked for may be drawn where fewer cannot do.)
    nasty
        Names, texts and descriptions that are hard to write to a file.
    texts
        Texts and descriptions of any kind, with plain names.
    """
    n = draw(st.integers(*classes))
    low, high = questions
    if separable:
        low = max(low, (n - 1).bit_length())
    m = draw(st.integers(low, max(low, high)))
    mode = dash or draw(st.sampled_from(("inapplicable", "either")))
    table = draw(outcomes(m, n, dashes=dashes, separable_in=mode if separable else None))
    error = draw(errors_of(m, n, kinds=errors, most=most_error))
    words: dict[str, Any] = {}
    if nasty or texts:
        words = {
            "texts": draw(st.none() | nasty_names(m)),
            "descriptions": draw(st.none() | nasty_names(n)),
        }
    return Problem(
        draw(nasty_names(n)) if nasty else [f"c{i + 1}" for i in range(n)],
        draw(priors(n)),
        draw(nasty_names(m)) if nasty else [f"q{i + 1}" for i in range(m)],
        table,
        error,
        dash=mode,
        **words,
    )
