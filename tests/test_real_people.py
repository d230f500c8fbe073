"""Answers of real people, small subsets: stated and observed errors of learned policies agree."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import crowdtree as ct
from benchmarks import learn_sets, real_people
from benchmarks.realdata import ABSENT, folder
from crowdtree.simulation import simulate

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def data():
    place = folder()
    if place is None:
        pytest.skip(ABSENT)
    warnings.simplefilter("ignore", ct.CrowdtreeWarning)
    return place


@pytest.fixture(scope="module")
def soybean(data):
    split = few(next(learn_sets.soybean(data)), 12)
    return split, real_people.taught(split)


def few(split, classes: int):
    """The first classes of a split."""
    names = sorted(set(split.truth))[:classes]
    train, test = np.isin(split.truth, names), np.isin(split.wanted, names)
    return split._replace(
        train=split.train[train],
        workers=split.workers[train],
        truth=np.array(split.truth)[train].tolist(),
        test=split.test[test],
        wanted=np.array(split.wanted)[test].tolist(),
    )


def test_items_that_stop_have_about_the_requested_error(soybean):
    split, learned = soybean
    policy = learned.policy(0.2, 40)
    crowd = real_people.recorded(policy.problem, split)
    assert np.any(crowd.values == -1)  # symptoms that nobody recorded
    for target in (0.2, 0.1, 0.05):
        run = real_people.tried(policy.changed(target_error=target), crowd)
        row = real_people.target_row(target, [run])
        assert row["stopped"] > 0.4
        assert row["low"] <= 1.3 * target  # the interval of some 80 items
        assert row["undecided"] < 0.5


def test_reachable_error_is_stated(soybean):
    split, learned = soybean
    policy = learned.policy(0.0, 40)
    mean, half = policy.reachable_error()
    run = real_people.tried(policy, real_people.recorded(policy.problem, split))
    wrong = run.misclassification
    assert wrong.low < mean + half
    assert mean - half < wrong.high
    with pytest.raises(ct.CrowdtreeError, match="out of reach on average"):
        learned.policy(mean / 4, 40, strict=True)


def test_the_interval_of_a_designed_tree_agrees_with_what_happens(soybean):
    split, learned = soybean
    tree = ct.design(learned.problem, allow_groups=True)
    crowd = real_people.recorded(learned.problem, split)
    promise, by_table = real_people.promised(learned, tree, crowd)
    assert by_table < promise[0]  # symptoms are missing, and a tree is optimistic
    row = real_people.promise_row("tree", [promise])
    assert (row["splits"], row["agree"]) == (1, 1)


@pytest.mark.slow
def test_people_are_left_out_where_each_item_is_one_persons(data):
    split = few(next(learn_sets.leuven(data)), 15)
    learned = real_people.taught(split)
    policy = learned.policy(0.2, 20)
    assert policy.calibration.items == 45  # three respondents, fifteen animals
    assert policy.calibration.spread > 0.1
    crowd = real_people.recorded(policy.problem, split)
    fast = simulate(policy.problem, policy, 15, crowd=crowd)
    slow = simulate(policy.problem, policy, 15, crowd=crowd, stepwise=True)
    np.testing.assert_array_equal(fast.label, slow.label)
    np.testing.assert_array_equal(fast.reason, slow.reason)
    assert float(fast.misclassification) < 0.6


@pytest.mark.slow
def test_nothing_is_learned_from_the_test_part(soybean):
    """Inverting every answer of the test part changes neither policy nor baseline."""
    split, learned = soybean
    turned = split._replace(test=np.where(split.test < 0, -1, 1 - split.test))
    again = real_people.taught(turned)
    assert again.policy(0.2, 10).to_dict() == learned.policy(0.2, 10).to_dict()
    assert real_people.picked(real_people.private_folds(turned), 3) == real_people.picked(
        real_people.private_folds(split), 3
    )


def test_shares_shrink_to_the_question_where_people_are_few():
    yes = np.array([[3, 3, 0, 0], [3, 2, 3, 2]])
    table = real_people.shares(yes, np.full((2, 4), 3))
    assert np.all((table > 0) & (table < 1))
    # all agree within a class: nearly sure; all classes alike: close to the question's own share
    assert table[0, 0] > 0.9 > table[1, 1]
    assert abs(table[1, 0] - table[1, 1]) < 1 / 3
    many = real_people.shares(yes * 1000, np.full((2, 4), 3000))
    np.testing.assert_allclose(many[1], [0.998, 2 / 3, 0.998, 2 / 3], atol=0.01)
