"""Answers of real people, small slices: the policies on what people really said."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.simulate import Recorded, simulate

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def real_people():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import real_people
    finally:
        sys.path.remove(str(BENCHMARKS))
    if real_people.apascal_people() is None or real_people.leuven_people() is None:
        pytest.skip("no data folder: set CROWDTREE_DATA, or put it at ../shared/data")
    return real_people


def slices(people, part: int, most: int):
    """A training part and some of what is left out, with nothing in common."""
    held = people.part == part
    place = np.flatnonzero(held)
    few = np.zeros(len(held), dtype=bool)
    few[place[:: max(1, len(place) // most)]] = True
    return people.rows(~held), people.rows(few)


def right(run) -> float:
    return 1 - float(run.misclassification)


def trial(real_people, people, budget: int, way):
    train, held = people
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.CrowdtreeWarning)
        problem, yes = train.learnt()
        crowd = Recorded(held.answers, held.truth)
        policy = real_people.maker(way, budget)(problem, yes)
        tree = ct.PlanPolicy(ct.design(problem, "fm", allow_groups=True))
        items = len(held.truth)
        return simulate(problem, policy, items, crowd=crowd), simulate(
            problem, tree, items, crowd=crowd
        )


def test_objects_are_named_as_well_as_by_the_tree_with_no_more_questions(real_people):
    people = slices(real_people.apascal_people(), 0, 400)
    adaptive, tree = trial(real_people, people, 7, ("information", None))
    assert adaptive.answers.max() <= 7 < tree.answers_per_item
    assert right(adaptive) >= right(tree) - 0.03
    assert right(adaptive) > 0.7


def test_animals_are_named_better_than_by_the_tree_with_no_more_questions(real_people):
    people = slices(real_people.leuven_people(), 0, 129)
    adaptive, tree = trial(real_people, people, 11, ("information", 1))
    assert adaptive.answers.max() <= 11 < tree.answers_per_item
    assert right(adaptive) > right(tree) - 0.05
    assert right(adaptive) > 0.35


def test_live_steps_give_the_labels_of_the_matrix(real_people):
    train, held = slices(real_people.leuven_people(), 1, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.CrowdtreeWarning)
        problem, yes = train.learnt()
    crowd = Recorded(held.answers, held.truth)
    policy = real_people.maker(("information", 4), 10)(problem, yes)
    fast = simulate(problem, policy, len(held.truth), crowd=crowd)
    slow = simulate(problem, policy, len(held.truth), crowd=crowd, stepwise=True)
    np.testing.assert_array_equal(fast.label, slow.label)
    np.testing.assert_array_equal(fast.asked, slow.asked)


def test_the_way_is_picked_without_a_look_at_what_is_tried(real_people):
    """Turning every answer that is tried round changes nothing that was learnt or picked."""
    people = real_people.leuven_people()
    train, held = people.rows(people.part != 0), people.rows(people.part == 0)
    few = np.isin(train.truth, np.arange(12))
    small = train.rows(few)
    before = real_people.picked(small, 4)
    yes = small.learnt()[1].copy()
    held.answers[:] = 1 - held.answers
    assert real_people.picked(small, 4) == before
    np.testing.assert_array_equal(small.learnt()[1], yes)


def test_shares_shrink_to_the_question_where_people_are_few(real_people):
    yes = np.array([[3, 3, 0, 0], [3, 2, 3, 2]])
    table = real_people.shares(yes, np.array([3, 3, 3, 3]))
    assert np.all((table > 0) & (table < 1))
    # all agree within a class: nearly sure; all classes alike: close to the question's own share
    assert table[0, 0] > 0.9 > table[1, 1]
    assert abs(table[1, 0] - table[1, 1]) < 1 / 3
    many = real_people.shares(yes * 1000, np.array([3000] * 4))
    np.testing.assert_allclose(many[1], [0.998, 2 / 3, 0.998, 2 / 3], atol=0.01)
