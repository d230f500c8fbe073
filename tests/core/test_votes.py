"""The registry of rules of votes, and what a new rule needs: a class and its name."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import get_args

import pytest

from crowdtree import example
from crowdtree.core import votes
from crowdtree.core.votes import STOPPINGS, VOTES, Early, Stopping, Vote
from crowdtree.designs.frontiers.vote_options import kinds_of_votes

RACE = '''
class _Race(VoteRule):
    """Votes until two answers of some: the first with `votes` of them wins."""

    name = "race"
    max_votes = 5

    def wins(self, rows, votes, dependence):
        return plurality_wins(rows, 2 * np.asarray(votes) - 1, dependence)

    def answers(self, rows, votes, dependence):
        return _raced(rows, 2 * np.asarray(votes) - 1, dependence, curtailed_race)[1]

    def is_over(self, votes, given, now):
        return given + now.lead >= 2 * votes

    def most(self, votes):
        return 2 * votes - 1
'''
USE = """
import numpy as np
import crowdtree as ct
from crowdtree.cli.app import main
from crowdtree.designs.frontiers import frontier
from crowdtree.planning.choices import PlanChoice
from crowdtree.planning.trees import best_tree
from crowdtree.designs.frontiers import Goal
from crowdtree.policies import PlanPolicy, expected_answers, with_votes_by
from crowdtree.show.plots.tree_model import Facts
from crowdtree.show.report.summary import about

problem = ct.example("table1")
majority = ct.staff(ct.design(problem), workers=20)
race = with_votes_by(majority, "race")
assert race.votes.tolist() == [(n + 1) // 2 for n in majority.votes.tolist()], race.votes
one, two = ct.evaluate(majority), ct.evaluate(race)
assert np.isclose(one.misclassification, two.misclassification, rtol=1e-9)
assert np.isclose(two.expected_answers, expected_answers(majority, "curtailed"))
assert race.most_answers == majority.most_answers
assert "race of" in repr(race) and "3 to 4 people." in about(two), about(two)
assert Facts(race).votes(0) == "4 votes"

policies = PlanPolicy(majority, "curtailed"), PlanPolicy(majority, "race"), PlanPolicy(race)
runs = [ct.simulate(problem, policy, 500, rng=3) for policy in policies]
for run in runs[1:]:
    assert run.misclassification == runs[0].misclassification
    assert run.answers_per_item == runs[0].answers_per_item
assert PlanPolicy(race).ask(PlanPolicy(race).start()).questions

front = frontier(problem, "race", max_votes=3)
chosen = front.select(error=0.05)
assert chosen.plan.vote == "race" and "race votes" in chosen.proof
best, _ = best_tree(problem, Goal(error=0.03), None, False, 10.0)
assert best.policy.voted.vote in ("margin", "race")

race.save("race.json")
assert ct.load("race.json") == race
for words in (
    ["frontier", "example:table1", "--vote", "race", "--max-votes", "3", "--error", "0.05"],
    ["simulate", "race.json", "--policy", "race", "--items", "50"],
    ["evaluate", "race.json"],
):
    try:
        main(words)
    except SystemExit as end:
        assert end.code == 0, words
print("done")
"""


def test_names_are_those_of_the_registry():
    assert set(get_args(Vote)) == set(VOTES)
    assert {rule.name: rule for rule in VOTES.values()} == dict(VOTES)
    early = {name for name, rule in VOTES.items() if not rule.always_all}
    assert set(get_args(Early)) == {"curtailed", *early}
    assert get_args(Stopping) == STOPPINGS == ("none", *get_args(Early))
    assert {vote for vote in VOTES if VOTES[vote].curtailed} == {"majority"}


def test_searches_try_what_stops_early_first():
    assert kinds_of_votes(example("table1")) == ("margin", "majority")


def test_a_new_rule_is_one_class_and_its_name(tmp_path):
    """A race to some votes is a majority that stops when it is decided, under another name."""
    with open(votes.__file__, encoding="utf-8") as file:
        source = file.read()
    for old, new in (
        ('Vote = Literal["majority", ', 'Vote = Literal["majority", "race", '),
        ('Early = Literal["curtailed", ', 'Early = Literal["curtailed", "race", '),
        ("def _margin_race(", f"{RACE.strip()}\n\n\ndef _margin_race("),
        ("(_Majority(), ", "(_Majority(), _Race(), "),
    ):
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    (tmp_path / "votes.py").write_text(source)
    first = textwrap.dedent(
        """
        import importlib.util, sys
        spec = importlib.util.spec_from_file_location("crowdtree.core.votes", "votes.py")
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        """
    )
    (tmp_path / "use.py").write_text(first + USE)
    done = subprocess.run(
        [sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n"), done.stdout


@pytest.mark.parametrize("vote", sorted(VOTES))
def test_words_differ_from_rule_to_rule(vote):
    rule = VOTES[vote]
    words = rule.kind(False), rule.drawn(3), rule.listed(3, False), rule.people("3", False, False)
    assert len(set(words)) >= 3
    others = [other for other in VOTES.values() if other is not rule]
    assert all(other.kind(False) != words[0] for other in others)
