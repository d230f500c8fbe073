"""Questions with several answers: problems, channels, votes, policies and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.core.bounds import blahut_arimoto, capacity
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.likelihood import UNSURE, AnswerModel
from crowdtree.core.plurality import curtailed_race, margin_race, plurality_wins
from crowdtree.core.voting import margin_error, margin_votes
from crowdtree.policies import Answer
from crowdtree.policies.plan import expected_answers

CAP = ["red", "brown", "white"]


def mushrooms(**changes):
    return ct.Problem(
        ["a", "b", "c", "d", "e"],
        [0.1, 0.3, 0.2, 0.2, 0.2],
        ["cap", "ring", "size"],
        [
            ["red", "brown", "white", "brown", "white|red"],
            [1, 1, 1, 0, 0],
            ["s", "m", "l", "l", "s"],
        ],
        [0.1, 0.2, 0.15],
        answers=[CAP, None, ["s", "m", "l"]],
    ).replace(**changes)


def test_a_cell_is_one_answer_several_or_any():
    problem = mushrooms()
    assert problem.answers[1] == ("no", "yes")
    assert problem.n_answers.tolist() == [3, 2, 3]
    assert problem.right[:, 0, 4].tolist() == [True, False, True]
    assert problem.channel[0, :, 0, 0] == pytest.approx([0.9, 0.05, 0.05])
    assert problem.channel[0, :, 0, 4] == pytest.approx([0.45, 0.1, 0.45])
    assert problem.channel.sum(axis=1) == pytest.approx(np.ones((1, 3, 5)))
    assert problem.replace() == problem
    either = ct.Problem(["a", "b"], None, ["q"], [["x", "-"]], 0.1, answers=[list("xyz")])
    assert not either.right[:, 0, 1].any()
    assert either.replace(dash="either").right[:, 0, 1].all()


def test_confusions_and_tables_replace_the_error():
    rows = [[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.3, 0.7]]
    problem = mushrooms(confusion={"cap": rows})
    assert problem.channel[0, :, 0, 0] == pytest.approx(rows[0])
    assert problem.channel[0, :, 0, 4] == pytest.approx((np.array(rows[0]) + rows[2]) / 2)
    assert problem.worker_error[0, 0] == pytest.approx(0.2)
    table = {"ring": [[0.3, 0.2, 0.1, 0.9, 0.8], [0.7, 0.8, 0.9, 0.1, 0.2]]}
    assert mushrooms(table=table).channel[0, 1, 1] == pytest.approx(table["ring"][1])
    made = ct.Problem.from_table(["a", "b"], None, ["q"], {"q": [[0.7, 0.2], [0.3, 0.8]]})
    assert made.outcome.tolist() == [[0, 1]]


@pytest.mark.parametrize("rho", [0.0, 0.3])
@pytest.mark.parametrize("answers", [2, 3, 4])
def test_pluralities_equal_the_enumeration_of_all_votes(answers, rho):
    rng = np.random.default_rng(answers)
    for votes, rest in itertools.product((1, 2, 3, 4, 5), (0, 1)):
        row = rng.dirichlet(np.ones(answers + rest))[:answers]
        shares = [*row, max(0.0, 1 - row.sum())]
        wins = np.zeros(answers)
        for pattern in itertools.product(range(answers + 1), repeat=votes):
            counts, chance = [0] * (answers + 1), 1.0
            for turn, answer in enumerate(pattern):
                chance *= ((1 - rho) * shares[answer] + rho * counts[answer]) / (
                    1 - rho + rho * turn
                )
                counts[answer] += 1
            leaders = [a for a in range(answers) if counts[a] == max(counts[:-1])]
            for leader in leaders:
                wins[leader] += chance / len(leaders)
        np.testing.assert_allclose(plurality_wins(row, votes, rho), wins, atol=1e-12)
        np.testing.assert_allclose(curtailed_race(tuple(row), votes, rho).wins, wins, atol=1e-12)


@pytest.mark.parametrize("margin", [1, 2, 3, 4])
def test_a_margin_of_two_answers_is_the_closed_form(margin):
    race = margin_race((0.7, 0.3), margin)
    assert race.wins[1] == pytest.approx(float(margin_error(0.3, margin)))
    assert race.answers == pytest.approx(float(margin_votes(0.3, margin)))


@pytest.mark.parametrize("margin", [1, 2, 3])
@pytest.mark.parametrize(
    "row", [(0.6, 0.2, 0.2), (0.2, 0.5, 0.2), (0.5, 0.2, 0.0), (0.3, 0.1, 0.3, 0.2), (0.25,) * 4]
)
def test_a_margin_race_solves_the_equations_of_all_distances(row, margin):
    """Answers that are equally likely share states; the equations here tell them all apart."""
    place, rows, wins = {(0,) * len(row): 0}, [], []
    for state in (queue := [(0,) * len(row)]):
        chances, won = np.zeros(0), np.zeros(len(row))
        for answer, share in enumerate(row):
            gaps = list(state)
            if gaps[answer] < margin:
                shift = 1 if gaps[answer] == 0 else 0
                gaps = [min(margin, gap + shift) for gap in gaps]
                gaps[answer] -= 1
            if sum(gap < margin for gap in gaps) == 1:
                won[answer] += share
                continue
            after = tuple(gaps)
            if after not in place:
                place[after] = len(queue)
                queue.append(after)
            chances = np.append(chances, np.zeros(max(0, len(queue) - len(chances))))
            chances[place[after]] += share
        rows.append(chances)
        wins.append(won)
    stays = 1 - sum(row)  # votes that count for nobody
    flow = np.array([np.append(chances, np.zeros(len(queue) - len(chances))) for chances in rows])
    for each in (flow, *wins):
        each[np.abs(each) < 1e-15] = 0.0
    reached = np.linalg.solve((1 - stays) * np.eye(len(queue)) - flow.T, np.eye(len(queue))[0])
    race = margin_race(row, margin)
    np.testing.assert_allclose(race.wins, reached @ np.array(wins), atol=1e-12)
    assert race.answers == pytest.approx(reached.sum(), rel=1e-12)


def test_the_order_of_the_answers_does_not_change_who_wins():
    row = np.array([0.4, 0.1, 0.3, 0.1])
    for order in itertools.permutations(range(4)):
        np.testing.assert_array_equal(
            plurality_wins(row[list(order)], 5)[np.argsort(order)][[0, 2]],
            plurality_wins(row, 5)[[0, 2]],
        )


@pytest.mark.parametrize(
    ("votes", "vote", "unsure"),
    [
        (1, "majority", None),
        (3, "majority", 0.2),
        (2, "margin", 0.2),
        pytest.param(1, "majority", 0.2, marks=pytest.mark.slow),
        pytest.param(3, "majority", None, marks=pytest.mark.slow),
        pytest.param(2, "margin", None, marks=pytest.mark.slow),
    ],
)
def test_simulated_plans_err_as_evaluated(votes, vote, unsure):
    problem = mushrooms(unsure=unsure)
    tree = ct.design(problem)
    plan = Plan(tree, np.full(tree.n_nodes, votes), vote=vote)
    value = ct.evaluate(plan)
    run = ct.simulate(problem, ct.PlanPolicy(plan), items=3000, rng=7)
    spread = 4 * np.sqrt(value.misclassification / 3000)
    assert float(run.misclassification) == pytest.approx(value.misclassification, abs=spread)
    assert float(run.answers_per_item) == pytest.approx(value.expected_answers, rel=0.04)
    assert value.misclassification <= value.additive + 1e-12
    if vote == "majority":
        early = ct.simulate(problem, ct.PlanPolicy(plan, "curtailed"), items=3000, rng=7)
        assert np.array_equal(early.label_index, run.label_index)
        expected = expected_answers(plan, "curtailed")
        assert float(early.answers_per_item) == pytest.approx(expected, rel=0.02)


def test_the_posterior_is_bayes_rule():
    problem = mushrooms(unsure=[[0.1, 0.1, 0.1, 0.5, 0.5], [0.1] * 5, [0.2] * 5])
    policy = ct.AdaptivePolicy(problem, 0.02, criterion="information")
    state = policy.update(policy.start(), Answer(0, UNSURE))
    expected = problem.prior * problem.unsure[0]
    assert policy.posterior(state) == pytest.approx(expected / expected.sum())
    state = policy.update(state, Answer(2, 1))
    expected = expected * problem.channel[0, 1, 2] * 0.8
    assert policy.posterior(state) == pytest.approx(expected / expected.sum())
    assert state.answers == 2
    again = policy.load(policy.dump(state))
    assert np.array_equal(again.counts, state.counts)
    neutral = ct.AdaptivePolicy(mushrooms(), 0.02)
    after = neutral.update(neutral.start(), Answer(0, UNSURE))
    assert neutral.posterior(after) == pytest.approx(problem.prior)
    assert after.answers == 1  # it tells nothing, and is paid for


def test_adaptive_errors_keep_the_target():
    problem = mushrooms()
    run = ct.simulate(problem, ct.AdaptivePolicy(problem, 0.05), items=3000, rng=3)
    assert float(run.misclassification) < 0.05
    stated = float(run.stated_error)
    assert float(run.misclassification) == pytest.approx(stated, abs=0.012)


def test_skill_and_dependence_of_two_answers_are_the_closed_forms():
    two = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2, dependence=0.3)
    many = two.replace(table={"q": two.channel[0][:, 0]})
    one, other = AnswerModel.of(two), AnswerModel.of(many)
    counts = np.array([1, 2, 0])
    for value, skill in itertools.product((0, 1), (0.0, 0.7)):
        np.testing.assert_allclose(
            one.log_likelihood(0, value, skill, counts),
            other.log_likelihood(0, value, skill, counts),
            atol=1e-7,
        )


def test_capacities():
    assert blahut_arimoto(np.eye(3)) == pytest.approx(np.log2(3), abs=1e-5)
    two = ct.Problem(["a", "b", "c"], None, ["q"], [[0, 1, 1]], [[0.1, 0.2, 0.3]])
    many = two.replace(table={"q": two.channel[0][:, 0]})
    assert blahut_arimoto(many.channel[0][:, 0]) == pytest.approx(capacity(two)[0], abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"answers": [["x"], None, None]},
            "answers: question 'cap': expected 2 to 32 answers, got 1",
        ),
        ({"answers": [CAP]}, "answers: expected one per question (3), got 1"),
        ({"answers": {"cup": CAP}}, "answers: 'cup' is not a question"),
        ({"answers": [["a|b", "c"], None, None]}, "answers: question 'cap': 'a|b' contains |"),
        (
            {"answers": [["x", "X"], None, None]},
            "answers: question 'cap': 'x', 'X' occurs more than",
        ),
        ({"table": {"cap": [[1.0] * 5]}}, "table: question 'cap': expected 3 answers x 5 classes"),
        ({"table": {"ring": [[0.5] * 5, [0.6] * 5]}}, "table: question 'ring', class 'a': probab"),
        ({"confusion": {"ring": [[0.9, 0.2], [0, 1]]}}, "confusion: question 'ring', right answer"),
        ({"unsure": 1.0}, "unsure: 1; expected a probability from 0 to below 1"),
        ({"unsure": [0.1]}, "unsure: expected one number, one per question (3)"),
    ],
)
def test_bad_answers_get_one_line(changes, text):
    with pytest.raises(ct.CrowdtreeError) as caught:
        mushrooms(**changes)
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)


def test_a_typo_is_named():
    with pytest.raises(ct.CrowdtreeError, match="did you mean 'brown'"):
        ct.Problem(["a", "b"], None, ["cap"], [["red", "brwon"]], 0.1, answers=[CAP])


def test_words_without_names_of_answers_say_where_the_names_go():
    with pytest.raises(ct.CrowdtreeError, match="write 0, 1 or -, or list the names of the answer"):
        ct.Problem(["a", "b"], None, ["cap"], [["red", "brown"]], 0.1)
