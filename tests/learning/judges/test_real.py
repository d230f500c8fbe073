"""Intervals on real people and models: what one half of the items gives, the other half gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.judge import REAL
from benchmarks.realdata import ABSENT, folder
from crowdtree.learning.judges import scoring
from crowdtree.learning.judges.reading import read_questions

pytestmark = pytest.mark.realdata


@pytest.mark.parametrize("name", REAL)
def test_halves_of_the_items_agree_within_their_intervals(name):
    place = folder()
    if place is None or not (place / name).is_dir():
        pytest.skip(ABSENT)
    whole = read_questions(place / name / "answers.csv", None, None, None, ())[0][0]
    rng, apart = np.random.default_rng(0), []
    for _ in range(30):
        order = rng.permutation(whole.people.shape[1])
        halves = [
            scoring.compare(
                replace(whole, people=whole.people[:, half], models=whole.models[:, half],
                        gold=whole.gold[half]),
                0, "people",
            ).difference
            for half in np.array_split(order, 2)
        ]  # fmt: skip
        apart.append((halves[0].value - halves[1].value) / np.hypot(*(h.half for h in halves)))
    assert np.mean(np.abs(apart) <= 1) >= 0.8  # 95 % of 30, less than 3.5 standard errors
    assert np.std(apart) > 0.25  # intervals that are not far too wide
