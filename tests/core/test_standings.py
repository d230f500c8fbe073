"""How votes stand and when they are over, against all patterns of votes."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from crowdtree import Plan, design
from crowdtree.core.plurality import curtailed_race
from crowdtree.core.votes import VOTES, cast, standing, standings, vote_counts
from crowdtree.policies import BatchPolicy, PlanPolicy
from crowdtree.policies.walk import MISSING, label_items, walk_items
from crowdtree.simulation import Crowd, Recorded
from tests.several_problems import random_problem

CURTAILED = VOTES["majority"].curtailed


def order_of(pattern, answers):
    return tuple(a for a in dict.fromkeys(pattern) if a < answers)


def winner(pattern, answers):
    """The answer with the most votes, the first of those that tie; -1 where no vote counts."""
    counts = Counter(a for a in pattern if a < answers)
    return max(order_of(pattern, answers), key=counts.__getitem__, default=-1)


@pytest.mark.parametrize(("answers", "votes"), [(2, 5), (2, 6), (3, 4), (3, 5)])
def test_a_vote_stops_as_soon_as_its_winner_is_certain(answers, votes):
    """`answers` stands for a vote that counts for no answer."""
    every = range(answers + 1)
    for length in range(1, votes + 1):
        for begun in itertools.product(every, repeat=length):
            rest = list(itertools.product(every, repeat=votes - length))
            winners = {winner((*begun, *more), answers) for more in rest}
            now = standing([begun.count(a) for a in every], order_of(begun, answers))
            assert now.leader == winner(begun, answers)
            over = CURTAILED.is_over(votes, length, now)
            assert over == (len(winners) == 1 or length == votes), begun
            if over:
                assert winners == {now.leader}
                continue
            for sure in range(1, votes - length + 1):  # the fewest more that may end it
                ends = False
                for more in itertools.product(every, repeat=sure):
                    whole = (*begun, *more)
                    then = standing([whole.count(a) for a in every], order_of(whole, answers))
                    ends |= bool(CURTAILED.is_over(votes, len(whole), then))
                if ends:
                    break
            assert CURTAILED.sure_votes(votes, length, now) == sure, begun


@pytest.mark.parametrize("answers", [2, 3])
def test_many_votes_stand_as_each_of_them_does(answers):
    patterns = np.array(list(itertools.product(range(answers + 1), repeat=5))).T
    tally = np.zeros((answers + 1, patterns.shape[1]), dtype=np.int64)
    for turn, value in enumerate(patterns):
        half = np.arange(len(value)) % 2 == 0
        for part in np.flatnonzero(half), np.flatnonzero(~half):
            cast(tally, value[part], turn, part)
    many, counts = standings(tally[:-1]), vote_counts(tally)
    for place, pattern in enumerate(patterns.T.tolist()):
        one = standing([pattern.count(a) for a in range(answers + 1)], order_of(pattern, answers))
        assert tuple(part[place] for part in many) == tuple(one)
        assert counts[:, place].tolist() == [pattern.count(a) for a in range(answers + 1)]


@pytest.mark.parametrize("rho", [0.0, 0.3])
@pytest.mark.parametrize(("row", "votes"), [((0.5, 0.3, 0.2), 4), ((0.6, 0.2, 0.1), 5)])
def test_expected_answers_of_a_vote_that_stops_are_those_of_all_patterns(row, votes, rho):
    shares, expected = (*row, 1 - sum(row)), 0.0
    for pattern in itertools.product(range(len(shares)), repeat=votes):
        chance = 1.0
        for turn, answer in enumerate(pattern):
            seen = pattern[:turn].count(answer)
            chance *= ((1 - rho) * shares[answer] + rho * seen) / (1 - rho + rho * turn)
        for taken in range(1, votes + 1):
            begun = pattern[:taken]
            now = standing([begun.count(a) for a in range(4)], order_of(begun, len(row)))
            if CURTAILED.is_over(votes, taken, now):
                expected += chance * taken
                break
    assert curtailed_race(row, votes, rho).answers == pytest.approx(expected, abs=1e-12)


def policies(problem, votes):
    tree = design(problem, allow_groups=True)
    plan = Plan(tree, np.full(tree.n_nodes, votes))
    for stopping in ("none", "curtailed"):
        yield PlanPolicy(plan, stopping)
        yield PlanPolicy(plan, stopping).at_least(2 * votes + 1)
    yield BatchPolicy(problem, votes)
    yield BatchPolicy(problem, votes, "posterior")


@pytest.mark.parametrize("votes", [1, 3, 4])
@pytest.mark.filterwarnings("ignore::crowdtree.core.errors.CrowdtreeWarning")
@pytest.mark.parametrize("seed", range(4))
def test_many_items_go_the_way_of_each_of_them(seed, votes):
    """Questions with several answers and "can't tell", answers that miss, people who differ."""
    problem = random_problem(seed, unsure=seed % 2 == 0, dependence=0.2 * (seed > 1))
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, problem.n_answers[:, None], (60, problem.n_questions, 20))
    values[:, :, 1:][values[:, :, :1].repeat(19, axis=2) == MISSING] = MISSING
    recorded = Recorded(values, rng.integers(0, problem.n_classes, 60))
    crowds = recorded, Crowd(), Crowd(workers=9, skill_sd=0.7, known_skill=True)
    for policy, crowd in itertools.product(policies(problem, votes), crowds):
        block = crowd.block(problem, 7, 0, 60)
        assert policy.many(block, 60) is not None
        quick, steps = walk_items(policy, block, 60), label_items(policy, block, 60)
        np.testing.assert_allclose(quick.posterior_error, steps.posterior_error, atol=1e-9)
        for name in ("label", "answers", "reason", "asked"):
            np.testing.assert_array_equal(getattr(quick, name), getattr(steps, name), name)
