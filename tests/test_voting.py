"""Fusion against sums of binomials, enumeration of votes and a random walk, all in fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.oracle import binomial_majority, majority, margin_walk, vote_patterns
from crowdtree import CrowdtreeError, voting

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


@given(st.lists(errors, min_size=1, max_size=7))
@settings(max_examples=60)
def test_mixed_majority_is_the_enumeration(workers: list[float]) -> None:
    exact = majority([Fraction(e) for e in workers])
    assert abs(voting.mixed_majority_error(workers) - float(exact)) < 1e-14


def test_mixed_majority_is_a_probability() -> None:
    """The plain sum of these exceeds 1 by its rounding."""
    almost = 0.9999999999999999
    workers = [0.9999863113543698, almost, 1.0, 1.0, 1.0, almost, 0.9994419306175342]
    assert voting.mixed_majority_error([*workers, 0.9339587185748652, 0.9995234886690987]) == 1


def test_mixed_majority_of_alike_workers_is_the_majority() -> None:
    for votes in (1, 2, 5, 8):
        found = voting.mixed_majority_error([0.3] * votes)
        np.testing.assert_allclose(found, voting.majority_error(0.3, votes), rtol=1e-13)


@given(st.lists(errors | st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=1, max_size=7))
@settings(max_examples=150)
def test_weighted_vote_is_the_enumeration(workers: list[float]) -> None:
    e = [Fraction(x) for x in workers]
    exact = Fraction(0)
    opposite = dict(vote_patterns([1 - x for x in e]))
    for answers, chance in vote_patterns(e):
        exact += Fraction(1, 2) * min(chance, opposite[answers])
    assert abs(voting.weighted_vote_error(workers) - float(exact)) < 1e-12


def test_an_error_free_worker_decides_the_weighted_vote() -> None:
    assert voting.weighted_vote_error([0.0, 0.3]) == 0
    assert voting.weighted_vote_error([0.4, 1.0, 0.3]) == 0  # always wrong is as good


def test_weighted_vote_of_many_alike_workers_is_their_majority() -> None:
    found = voting.weighted_vote_error([0.3] * 101)
    np.testing.assert_allclose(found, voting.majority_error(0.3, 101), rtol=1e-10)


def test_weighted_vote_refuses_what_it_cannot_enumerate() -> None:
    with pytest.raises(CrowdtreeError, match=r"^worker_errors: 40 workers .* too many"):
        voting.weighted_vote_error(np.sqrt(np.arange(2, 42)) / 13)


@pytest.mark.parametrize("rule", [voting.mixed_majority_error, voting.weighted_vote_error])
@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ([], "worker_errors: expected at least one worker, got none"),
        ([0.1, 1.1], "worker_errors: every error must lie in [0, 1]"),
        ([-0.1], "worker_errors: every error must lie in [0, 1]"),
        ([float("nan")], "worker_errors: every error must lie in [0, 1]"),
    ],
)
def test_bad_workers(rule, workers: list[float], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CrowdtreeError) as caught:
        rule(workers)
    assert str(caught.value) == message


# ------------------------------------------------------------------ the verdict


@given(st.lists(errors, min_size=1, max_size=6))
@settings(max_examples=60)
def test_decide_is_wrong_as_often_as_the_theory_says(workers: list[float]) -> None:
    e = [Fraction(x) for x in workers]
    plain = sum(float(p) * (1 - voting.decide(answers)) for answers, p in vote_patterns(e))
    assert abs(plain - voting.mixed_majority_error(workers)) < 1e-13
    weights = voting.vote_weights(workers)
    best = 0.0
    for outcome in (0, 1):  # the weighted vote is best on average over both outcomes
        asked = e if outcome else [1 - x for x in e]
        for answers, p in vote_patterns(asked):
            best += 0.5 * float(p) * abs(outcome - voting.decide(answers, weights))
    assert abs(best - voting.weighted_vote_error(workers)) < 1e-9


@pytest.mark.parametrize(
    ("answers", "weights", "verdict"),
    [
        ([1], None, 1.0),
        ([0], None, 0.0),
        ([1, 0], None, 0.5),
        ([1, 0, 0], None, 0.0),
        ([1, 0, 0], [3.0, 1.0, 1.0], 1.0),
        ([1, 0, 0], [2.0, 1.0, 1.0], 0.5),
        ([1, 0, 0], [0.3, 0.1, 0.2], 0.5),  # a tie but for rounding
        ([1, 0, 0], [np.inf, 5.0, 9.0], 1.0),
        ([0, 1, 1], [np.inf, 5.0, 9.0], 0.0),
        ([1, 0], [np.inf, np.inf], 0.5),
        ([1, 1], [-1.0, 0.5], 0.0),  # a worker who is mostly wrong
    ],
)
def test_decide(answers: list[int], weights: list[float] | None, verdict: float) -> None:
    assert voting.decide(answers, weights) == verdict


def test_weights_are_log_odds() -> None:
    for error in (0.1, 0.3, 0.5, 0.8):
        assert np.isclose(voting.vote_weights([error])[0], np.log((1 - error) / error))
    assert voting.vote_weights([0.0])[0] == np.inf


def test_no_other_rule_beats_the_weighted_vote() -> None:
    """Enumerate all 2^8 deterministic rules of three workers."""
    workers = [0.1, 0.3, 0.35]
    e = [Fraction(x) for x in workers]
    patterns = [answers for answers, _ in vote_patterns(e)]
    yes = [float(p) for _, p in vote_patterns(e)]
    no = [float(p) for _, p in vote_patterns([1 - x for x in e])]
    best = min(
        0.5 * sum(yes[i] if not said else no[i] for i, said in enumerate(rule))
        for rule in itertools.product((0, 1), repeat=len(patterns))
    )
    assert abs(best - voting.weighted_vote_error(workers)) < 1e-15


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


def test_verdicts_without_weight() -> None:
    assert voting.decide([]) == 0.5
    assert voting.decide([1, 1], [0.0, 0.0]) == 0.5
    assert voting.decide(np.array([0, 0], dtype=np.uint8)) == 0.0


def test_two_error_free_workers() -> None:
    assert voting.weighted_vote_error([0.0, 0.0]) == 0
    assert voting.weighted_vote_error([0.0, 1.0, 0.0]) == 0


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        (voting.majority_error, (Fraction(1, 5), 3)),
        (voting.majority_gain, (Fraction(1, 5), Fraction(2))),
        (voting.margin_error, (Fraction(1, 5), 3)),
        (voting.margin_votes, (Fraction(1, 5), Fraction(3))),
        (voting.curtailed_votes, (Fraction(1, 5), 3)),
        (voting.vote_weights, ([Fraction(1, 5)],)),
        (voting.mixed_majority_error, ([Fraction(1, 5)] * 2,)),
        (voting.weighted_vote_error, ([Fraction(1, 5)] * 2,)),
        (voting.decide, ([Fraction(1), Fraction(0)], [Fraction(1, 5), Fraction(1, 3)])),
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
    with pytest.raises(CrowdtreeError) as caught:
        voting.weighted_vote_error(np.sqrt(np.arange(2, 42)) / 13)
    assert str(caught.value) == (
        "worker_errors: 40 workers of that many different errors are too many for the exact "
        "weighted vote; round the errors or use mixed_majority_error"
    )
