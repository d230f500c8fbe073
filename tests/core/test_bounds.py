"""The information floor and the guide line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdtree.core.bounds import burnashev_guide, capacity, fano_bits, fano_floor
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.likelihood import AnswerModel, binary_entropy, skilled
from crowdtree.core.problem import Problem


def two_classes(low: float, high: float) -> Problem:
    """One question that class a answers yes with `low`, class b with `high`."""
    return Problem(["a", "b"], None, ["q"], [[0, 1]], [[low, 1 - high]])


@settings(max_examples=60, deadline=None)
@given(st.floats(0.001, 0.45), st.floats(0.55, 0.999))
def test_capacity_is_the_largest_mutual_information(low, high):
    share = np.linspace(1e-6, 1 - 1e-6, 20_001)
    heard = share * high + (1 - share) * low
    noise = share * binary_entropy(high) + (1 - share) * binary_entropy(low)
    best = float((binary_entropy(heard) - noise).max())
    assert capacity(two_classes(low, high))[0] == pytest.approx(best, abs=1e-6)


def test_classes_between_the_extremes_add_no_capacity():
    three = Problem(["a", "b", "c"], None, ["q"], [[0, 1, 0]], [[0.1, 0.2, 0.4]])
    assert capacity(three)[0] == pytest.approx(float(capacity(two_classes(0.1, 0.8))[0]))


def test_symmetric_channel_and_useless_question():
    assert capacity(two_classes(0.2, 0.8))[0] == pytest.approx(1 - float(binary_entropy(0.2)))
    same = Problem(["a", "b"], None, ["q"], [[1, 1]], 0.2)
    assert capacity(same)[0] == 0
    assert fano_floor(same, 0.01) == float("inf")


def test_floor_with_prices_uses_the_best_capacity_per_price():
    problem = Problem(list("abcd"), None, ["q", "r"], [[0, 0, 1, 1], [0, 1, 0, 1]], [0.1, 0.2])
    rate = capacity(problem)
    needed = fano_bits(problem, 0.01)
    assert fano_floor(problem, 0.01) == pytest.approx(needed / rate[0])
    assert fano_floor(problem, 0.01, price=[10, 1]) == pytest.approx(needed / rate[1])


def test_no_answers_are_needed_to_guess():
    problem = two_classes(0.2, 0.8)
    assert fano_floor(problem, 0.5) == 0
    assert fano_floor(problem, 0.9) == 0


def test_guide_is_above_the_floor_for_rare_errors():
    problem = Problem(list("abcd"), None, ["q", "r"], [[0, 0, 1, 1], [0, 1, 0, 1]], 0.2)
    for error in (0.05, 0.01, 1e-4):
        assert burnashev_guide(problem, error) > fano_floor(problem, error)


def test_error_free_workers_have_the_noise_free_floor():
    problem = Problem(list("abcd"), None, ["q", "r"], [[0, 0, 1, 1], [0, 1, 0, 1]], 0.0)
    assert fano_floor(problem, 0.0) == pytest.approx(2.0)
    assert burnashev_guide(problem, 0.01) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda p: fano_floor(p, 1.0), "error: expected a number between 0 and 1"),
        (lambda p: burnashev_guide(p, 0.0), "error: expected a number between 0 and 1"),
        (lambda p: fano_floor(p, 0.1, price=[0.0]), "price: question 'q' costs 0"),
        (
            lambda p: fano_floor(p, 0.1, price=[1, 2, 3]),
            "price: expected one number, or one per question",
        ),
        (lambda p: AnswerModel.of(p, [[2, 0]]), "table: expected shares from 0 to 1"),
        (
            lambda p: AnswerModel.of(p, [[0.5]]),
            "table: expected 2 answers x 1 questions",
        ),
        (
            lambda p: AnswerModel.of(p, shared_difficulty=1.0),
            "shared_difficulty: expected a number",
        ),
    ],
)
def test_bad_input_gets_one_line(call, text):
    with pytest.raises(CrowdtreeError, match=text) as caught:
        call(two_classes(0.2, 0.8))
    assert "\n" not in str(caught.value)


def test_given_table_can_reverse_the_right_answer():
    problem = two_classes(0.2, 0.8)
    model = AnswerModel.of(problem, [[0.9, np.nan]])
    assert model.yes.tolist() == [[0.9, 0.8]]
    assert model.sign.tolist() == [[1, 1]]


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 0.99), st.floats(-3, 3))
def test_skill_moves_the_logit_of_the_error(error, skill):
    logit = np.log(error / (1 - error)) - skill
    worse = 1 / (1 + np.exp(-logit))
    assert skilled(np.array([1 - error]), 1, skill)[0] == pytest.approx(1 - worse)
    assert skilled(np.array([error]), -1, skill)[0] == pytest.approx(worse)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=2, max_size=6), st.floats(0.05, 0.9), st.randoms())
def test_shared_difficulty_does_not_depend_on_the_order(values, rho, random):
    model = AnswerModel.of(two_classes(0.2, 0.7), shared_difficulty=rho)

    def evidence(order):
        total, counts = np.zeros(2), np.zeros(3, dtype=np.int64)
        for value in order:
            total = total + model.log_likelihood(0, value, counts=counts)
            counts[value] += 1
        return total

    mixed = list(values)
    random.shuffle(mixed)
    np.testing.assert_allclose(evidence(values), evidence(mixed), atol=1e-12)


def test_shared_difficulty_is_the_correlation_of_two_answers():
    rho, model = 0.3, AnswerModel.of(two_classes(0.2, 0.7), shared_difficulty=0.3)
    for cls, share in enumerate((0.2, 0.7)):
        both = share * model.yes_given(0, yes=1, asked=1)[cls]
        assert (both - share**2) / (share * (1 - share)) == pytest.approx(rho)
