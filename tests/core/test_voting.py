"""Fusion against sums of binomials, enumeration of votes and a random walk, all in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdtree import CrowdtreeError
from crowdtree.core import voting
from tests.contracts.oracle import binomial_majority, margin_walk, vote_patterns

errors = st.floats(0.0, 1.0)
ERRORS = [0.0, 1e-12, 0.001, 0.05, 0.2, 0.3, 0.45, 0.499, 0.5, 0.6, 1.0]


def fraction(error: float) -> Fraction:
    """The short fraction that is meant: long ones make the exact sums slow."""
    return Fraction(error).limit_denominator(10**12)


def close(found: float, exact: Fraction, rtol: float = 1e-12) -> bool:
    """Relative agreement; near the smallest normal float anything tiny will do."""
    if exact < Fraction(1, 10**290):
        return 0 <= found < 1e-289
    return abs(Fraction(float(found)) - exact) <= Fraction(rtol) * exact


# ------------------------------------------------------------------ majority


@pytest.mark.parametrize("votes", [1, 2, 3, 4, 5, 6, 11, 20, 51])
@pytest.mark.parametrize("error", ERRORS)
def test_majority_is_the_sum_of_the_binomial(error: float, votes: int) -> None:
    assert close(voting.majority_error(error, votes), binomial_majority(fraction(error), votes))


@pytest.mark.parametrize("votes", [1_001, 1_000, 2_501])
@pytest.mark.parametrize("error", ERRORS)
def test_majority_keeps_its_digits_for_many_votes(error: float, votes: int) -> None:
    exact = binomial_majority(fraction(error), votes)
    assert close(voting.majority_error(error, votes), exact, rtol=1e-10)


@given(st.integers(1, 40), errors)
def test_even_votes_equal_one_vote_less(half: int, error: float) -> None:
    assert voting.majority_error(error, 2 * half) == voting.majority_error(error, 2 * half - 1)


def test_majority_broadcasts() -> None:
    found = voting.majority_error(np.array([[0.1], [0.2]]), [1, 3, 5])
    assert found.shape == (2, 3)
    assert found[1].tolist() == [float(voting.majority_error(0.2, n)) for n in (1, 3, 5)]


@pytest.mark.parametrize("votes", [0, -1, [3, 0]])
def test_a_vote_needs_a_worker(votes: object) -> None:
    with pytest.raises(CrowdtreeError, match=r"^votes: expected at least 1 per question, got"):
        voting.majority_error(0.2, votes)


@pytest.mark.parametrize("pairs", [0, 1, 2, 7, 60, 500, 1_200])
@pytest.mark.parametrize("error", ERRORS)
def test_gain_is_the_difference_of_two_majorities(error: float, pairs: int) -> None:
    e = fraction(error)
    exact = binomial_majority(e, 2 * pairs + 1) - binomial_majority(e, 2 * pairs + 3)
    found = float(voting.majority_gain(error, pairs))
    assert close(abs(found), abs(exact), rtol=1e-11)
    assert abs(exact) < Fraction(1, 10**290) or (found > 0) == (exact > 0)


@pytest.mark.parametrize("error", ERRORS)
def test_gains_come_one_by_one(error: float) -> None:
    stream = voting.majority_gains(np.array([error, 0.2]))
    for pairs in range(400):
        found = next(stream)
        expected = voting.majority_gain(np.array([error, 0.2]), pairs)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-300)


@given(st.floats(0.0, 0.5), st.integers(0, 300))
def test_proposition_1_gains_shrink(error: float, pairs: int) -> None:
    now, then = voting.majority_gain(error, [pairs, pairs + 1])
    assert now >= 0
    assert then <= 4 * error * (1 - error) * now * (1 + 1e-9)


# ------------------------------------------------------------------ margin


@pytest.mark.parametrize("margin", [1, 2, 3, 5])
@pytest.mark.parametrize("error", [0.0, 1e-6, 0.05, 0.2, 0.45, 0.4999999, 0.5, 0.7, 1.0])
def test_margin_is_the_random_walk(error: float, margin: int) -> None:
    wrong, votes = margin_walk(Fraction(error), margin)
    assert close(voting.margin_error(error, margin), wrong, rtol=1e-12)
    assert close(voting.margin_votes(error, margin), votes, rtol=1e-8 if margin > 1 else 1e-12)


def test_margin_votes_near_a_fair_coin_keep_their_digits() -> None:
    """For a small bias b the walk takes m^2 (1 - (m^2 - 1) b^2 / 3) votes, up to b^4."""
    margin, error = 1_000, 0.5 - 4e-7
    bias = 1 - 2 * error
    series = margin**2 * (1 - (margin**2 - 1) * bias**2 / 3)
    np.testing.assert_allclose(voting.margin_votes(error, margin), series, rtol=1e-10)
    assert float(voting.margin_votes(0.5, margin)) == margin**2


# ------------------------------------------------------------------ workers of different errors


# ------------------------------------------------------------------ the verdict


# ------------------------------------------------------------------ stopping once it is decided


def decided_after(answers: tuple[int, ...]) -> int:
    """Answers until the verdict is settled; the first answer settles the tie of an even vote."""
    n = len(answers)
    need = {side: n // 2 + (n % 2 or side != answers[0]) for side in (0, 1)}
    seen = {0: 0, 1: 0}
    for count, answer in enumerate(answers, start=1):
        seen[answer] += 1
        if seen[answer] >= need[answer]:
            return count
    raise AssertionError("never decided")


@pytest.mark.parametrize("votes", range(1, 10))
@pytest.mark.parametrize("error", [0.0, 0.1, 0.3, 0.5, 1.0])
def test_curtailed_votes_are_the_enumeration(error: float, votes: int) -> None:
    expected = sum(
        float(chance) * decided_after(answers)
        for answers, chance in vote_patterns([fraction(error)] * votes)
    )
    assert np.isclose(voting.curtailed_votes(error, votes), expected, rtol=1e-12)


def test_curtailed_votes_broadcast_and_refuse() -> None:
    found = voting.curtailed_votes(np.array([[0.1], [0.2]]), [1, 2, 5])
    assert found.shape == (2, 3)
    assert found[1, 2] == voting.curtailed_votes(0.2, 5)
    np.testing.assert_allclose(found[:, :2], 1, rtol=1e-14)
    for votes in (0, [3, 0]):
        with pytest.raises(CrowdtreeError) as caught:
            voting.curtailed_votes(0.2, votes)
        assert str(caught.value) == "votes: expected at least 1 per question, got 0"


def test_curtailed_votes_of_many() -> None:
    """A race to k + 1 among workers who are nearly always right takes k + 1 answers."""
    assert np.isclose(voting.curtailed_votes(1e-9, 2_001), 1_001, rtol=1e-8)
    assert 1_001 < voting.curtailed_votes(0.4, 2_001) < 2_001


# ------------------------------------------------------------------ the ends, and every number type


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        (voting.majority_error, (Fraction(1, 5), 3)),
        (voting.majority_gain, (Fraction(1, 5), Fraction(2))),
        (voting.margin_error, (Fraction(1, 5), 3)),
        (voting.margin_votes, (Fraction(1, 5), Fraction(3))),
        (voting.curtailed_votes, (Fraction(1, 5), 3)),
    ],
)
def test_every_number_type_is_accepted(rule, arguments) -> None:  # type: ignore[no-untyped-def]
    def plain(value):  # type: ignore[no-untyped-def]
        return [float(x) for x in value] if isinstance(value, list) else float(value)

    found = np.asarray(rule(*arguments))
    assert found.dtype == np.float64
    numbers = [plain(a) if not isinstance(a, int) else a for a in arguments]
    assert np.array_equal(found, rule(*numbers))


def test_the_message_names_the_least_votes() -> None:
    with pytest.raises(CrowdtreeError) as caught:
        voting.majority_error(0.2, [3, 0, -2])
    assert str(caught.value) == "votes: expected at least 1 per question, got -2"
