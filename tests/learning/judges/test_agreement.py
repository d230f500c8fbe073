"""Kappa and alpha: published examples, scikit-learn, and pairs counted one by one."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from crowdtree.learning.judges.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from crowdtree.learning.judges.question import indicator

OBSERVERS = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
"""Krippendorff (2011): four observers, twelve units, five labels; a dot is a missing answer."""
PSYCHIATRY = [[0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0],
              [2, 2, 8, 1, 1], [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2],
              [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]]  # fmt: skip
"""The usual worked example of Fleiss' kappa: fourteen raters, ten subjects, five categories."""


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def counted(answers: np.ndarray, labels: int) -> np.ndarray:
    return sum(indicator(row, labels) for row in answers)


def test_alpha_of_the_published_example():
    answers = np.array([[-1 if c == "." else int(c) - 1 for c in row] for row in OBSERVERS])
    assert krippendorff_alpha(counted(answers, 5), rng()).value == pytest.approx(0.743, abs=5e-4)


def test_fleiss_kappa_of_the_worked_example():
    counts = np.array(PSYCHIATRY)
    found = fleiss_kappa(counts, krippendorff_alpha(counts, rng()))
    assert found.value == pytest.approx(0.210, abs=5e-4)
    assert found.low < found.value < found.high
    uneven = np.array([[2, 1], [1, 1]])
    assert fleiss_kappa(uneven, krippendorff_alpha(uneven, rng())) is None
    assert fleiss_kappa(counts, None) is None


@pytest.mark.parametrize("seed", range(3))
def test_fleiss_kappa_equals_its_formula(seed):
    counts = np.random.default_rng(seed).multinomial(4, [0.5, 0.3, 0.2], 25)
    agree = ((counts**2).sum(axis=1) - 4).mean() / 12
    chance = ((counts.sum(axis=0) / counts.sum()) ** 2).sum()
    found = fleiss_kappa(counts, krippendorff_alpha(counts, rng()))
    assert found.value == pytest.approx((agree - chance) / (1 - chance))


def test_cohen_kappa_of_the_textbook_example():
    """Two readers of fifty proposals: both yes 20, both no 15, 5 and 10 apart."""
    first = np.repeat([1, 1, 0, 0], [20, 5, 10, 15])
    second = np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
    assert cohen_kappa(np.stack([first, second]), rng()).value == pytest.approx(0.4)


@pytest.mark.parametrize("seed", range(5))
def test_kappa_equals_scikit_learn(seed):
    drawn = np.random.default_rng(seed)
    names = np.array([3, 17, 90, 126])  # of some labels there is no answer
    first = names[drawn.integers(0, 4, 60)]
    second = np.where(drawn.random(60) < 0.6, first, names[drawn.integers(0, 4, 60)])
    found = cohen_kappa(np.stack([first, second]).astype(np.int8), drawn)
    assert found.value == pytest.approx(cohen_kappa_score(first, second))
    assert found.low < found.value < found.high


@pytest.mark.parametrize("seed", range(5))
def test_alpha_equals_pairs_counted_one_by_one(seed):
    drawn = np.random.default_rng(seed)
    answers = drawn.integers(-1, 3, (4, 15))
    within, pool = [], []
    for item in answers.T:
        given = item[item >= 0]
        if len(given) > 1:
            pool.extend(given)
            within += [(a != b) / (len(given) - 1) for a, b in permutations(given, 2)]
    by_chance = np.mean([a != b for a, b in permutations(pool, 2)])
    expected = 1 - np.sum(within) / len(pool) / by_chance
    assert krippendorff_alpha(counted(answers, 3), drawn).value == pytest.approx(expected)


def test_full_agreement_is_no_certainty_and_one_label_shows_nothing():
    same = np.array([0, 1] * 10)
    for found in (
        cohen_kappa(np.stack([same, same]), rng()),
        krippendorff_alpha(2 * indicator(same, 2), rng()),
    ):
        assert found.value == found.high == 1
        assert 0.8 < found.low < 1
    assert cohen_kappa(np.zeros((2, 20), int), rng()) is None
    assert krippendorff_alpha(np.array([[2, 0], [3, 0]]), rng()) is None
