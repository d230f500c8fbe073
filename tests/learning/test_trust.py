"""Whom to trust: who is known, and who is suspected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.core.likelihood import AnswerModel
from crowdtree.learning.trust import Answered, assess, speaks_for

PROBLEM = ct.example("table1").replace(worker_error=0.15)
YES = AnswerModel.of(PROBLEM).yes
Say = Callable[[np.random.Generator, int, int, bool], bool]


def honest(errors: float = 1.0) -> Say:
    def say(rng: np.random.Generator, question: int, cls: int, right: bool) -> bool:
        error = min(YES[question, cls], 1 - YES[question, cls])
        return right ^ bool(rng.random() < errors * error)

    return say


def wrong(_rng: np.random.Generator, _question: int, _cls: int, right: bool) -> bool:
    return not right


def crowd(
    seed: int, people: list[tuple[Say, float]], gold: float = 0.0, n_items: int = 200
) -> list[Answered]:
    """Five people answer a random question about each item, each at their own pace."""
    rng = np.random.default_rng(seed)
    found = []

    def answer(item: int, worker: int, cls: int, known: int | None = None) -> Answered:
        say, pace = people[worker]
        question = int(rng.integers(PROBLEM.n_questions))
        value = say(rng, question, cls, bool(YES[question, cls] > 0.5))
        seconds = pace * float(np.exp(rng.normal(np.log(4.0), 0.6)))
        return Answered(item, question, worker, int(value), seconds, known)

    for item in range(n_items):
        cls = int(rng.choice(PROBLEM.n_classes, p=PROBLEM.prior))
        for worker in rng.choice(len(people), 5, replace=False).tolist():
            found.append(answer(item, worker, cls))
            if rng.random() < gold:
                true = int(rng.integers(PROBLEM.n_classes))
                found.append(answer(n_items + true, worker, true, true))
    return found


MIXED = [(honest(), 1.0)] * 9 + [(honest(2.0), 1.0)] * 8 + [(honest(), 0.5)] * 8


def test_few_honest_people_are_suspected() -> None:
    """Fast ones and those who err twice as often included: at most 2 % of 1,000 people."""
    crowds = [crowd(seed, MIXED, gold) for seed in range(20) for gold in (0.0, 0.1)]
    assert sum(len(assess(PROBLEM, said).suspected) for said in crowds) <= 20


@pytest.mark.parametrize("gold", [0.0, 0.1])
def test_people_who_answer_wrongly_are_suspected_and_never_known(gold: float) -> None:
    found = assess(PROBLEM, crowd(1, [(honest(), 1.0)] * 20 + [(wrong, 1.0)] * 5, gold))
    assert len({w for w in found.suspected if w >= 20}) >= 4
    assert {w for w in found.suspected if w < 20} == set()
    assert {w for w in found.known if w >= 20} == set()
    assert len(found.known) >= 3


def coins(rng: np.random.Generator, _question: int, _cls: int, _right: bool) -> bool:
    return bool(rng.random() < 0.5)


def test_a_table_in_which_attackers_have_a_part_does_not_protect_them() -> None:
    said = crowd(5, [(honest(), 1.0)] * 20 + [(coins, 1.0)] * 5, gold=0.1, n_items=1200)
    estimated = PROBLEM.replace(worker_error=0.8 * 0.15 + 0.2 * 0.5)
    assert not assess(estimated, said).suspected
    found = assess(estimated, said, assumed=PROBLEM)
    assert len({w for w in found.suspected if w >= 20}) >= 2
    assert {w for w in found.suspected if w < 20} == set()


def test_nobody_is_suspected_because_everybody_errs_more_than_was_assumed() -> None:
    """People who err three times as often as the table says: at most 2 % of 500."""
    estimated = PROBLEM.replace(worker_error=0.3)
    assumed = PROBLEM.replace(worker_error=0.1)
    crowds = [crowd(seed, [(honest(2.0), 1.0)] * 25) for seed in range(20)]
    paused = [len(assess(estimated, said, assumed=assumed).suspected) for said in crowds]
    assert sum(paused) <= 10


def test_somebody_who_turns_hostile_is_found() -> None:
    said = crowd(2, [(honest(), 1.0)] * 10)
    right = [a for a in said if a.worker == 0]
    place = {id(a): k for k, a in enumerate(right)}
    late = [
        a._replace(value=1 - a.value) if a.worker == 0 and place[id(a)] >= 40 else a for a in said
    ]
    assert 0 not in assess(PROBLEM, said).suspected
    assert assess(PROBLEM, late).suspected[0].rule == "wrong"


def test_a_person_who_does_not_read_is_fast() -> None:
    found = assess(PROBLEM, crowd(3, [(honest(), 1.0)] * 9 + [(honest(), 0.03)]))
    assert {worker: why.rule for worker, why in found.suspected.items()} == {9: "fast"}
    assert "faster than a person can read" in found.suspected[9].text


def test_machines_for_which_the_owner_vouches_may_be_fast() -> None:
    said = crowd(3, [(honest(), 1.0)] * 9 + [(honest(), 0.03)])
    assert assess(PROBLEM, said, vouched=[9]).suspected == {}


def test_questions_with_several_answers() -> None:
    """Honest people, one who is always wrong, and two who give the same random answers."""
    names = ["a", "b", "c", "d"]
    outcome = [["a", "b", "c", "d"], ["a|b", "b", "d", "d"], ["c", "d", "-", "a"]]
    problem = ct.Problem(
        list("wxyz"), None, list("pqr"), outcome, 0.2, answers=[names] * 3, dash="either"
    )
    rng = np.random.default_rng(9)
    table, said = problem.channel[0], []
    for item in range(250):
        cls = int(rng.integers(4))
        asked = int(rng.integers(3))
        copied = int(rng.integers(4))
        for worker in [*rng.choice(12, 4, replace=False).tolist(), 12, 13, 14]:
            value = int(rng.choice(4, p=table[:, asked, cls]))
            if worker == 12:
                value = int(np.argmin(table[:, asked, cls]))
            elif worker > 12:
                value = copied
            said.append(Answered(item, asked, worker, value, 5.0))
    found = assess(problem, said)
    assert set(found.suspected) == {12, 13, 14}
    assert set(found.known) <= set(range(12))
    assert len(found.known) >= 10
    alone = assess(problem, [a for a in said if a.worker < 12 or a.worker > 12])
    assert {alone.suspected[w].rule for w in (13, 14)} <= {"wrong", "alike"}
    unsure = [a._replace(value=-2) if a.worker == 3 else a for a in said]
    assert 3 not in assess(problem, unsure).known
    log = np.log(table[2, 0]) + np.log(table[1, 1])
    for label in range(4):
        likelier = log[label] > np.log(problem.prior @ np.exp(log))
        assert speaks_for(problem, [(0, 2), (1, 1), (2, -2)], label) == likelier


def test_the_same_coins_are_alike() -> None:
    """Two accounts of one person who does not look at the items, beside people who do."""
    rng = np.random.default_rng(4)
    said = crowd(4, [(honest(), 1.0)] * 10)
    for item in range(60):
        value = int(rng.integers(2))
        said += [Answered(item, 0, worker, value, 4.0) for worker in (10, 11)]
    found = assess(PROBLEM, said).suspected
    assert set(found) == {10, 11}


def test_with_gold_a_burst_of_strangers_who_agree_is_not_known() -> None:
    """Without gold they are the whole crowd: only that they never differ gives them away."""
    same: list[tuple[Say, float]] = [(wrong, 1.0)] * 5
    assert assess(PROBLEM, crowd(5, same, gold=0.1)).known == {}
    rules = {why.rule for why in assess(PROBLEM, crowd(5, same)).suspected.values()}
    assert rules == {"alike"}


def test_two_honest_strangers_become_known_by_each_other() -> None:
    problem = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
    said = [Answered(k, 0, w, k % 2, 4.0) for k in range(8) for w in (1, 2)]
    assert assess(problem, said).known == {1: "majority", 2: "majority"}
    assert assess(problem, said[:4]).known == {}


def test_whom_only_the_majority_knows_is_known_so_until_somebody_else_confirms_it() -> None:
    """An invited person who has not answered confirms nobody; newcomers do not change that."""
    problem = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)

    def answered(*workers: int, items: range = range(8)) -> list[Answered]:
        return [Answered(k, 0, worker, k % 2, 4.0) for k in items for worker in workers]

    before = assess(problem, answered(1, 2)).known
    said = answered(1, 2, 3)
    for more, why in ([], "majority"), (answered(9), "agreement"):
        found = assess(problem, said + more, [9], before).known
        assert found == {9: "vouched", **dict.fromkeys((1, 2, 3), why)}


def test_gold_answers_of_long_ago_keep_the_majority_from_deciding() -> None:
    """Only the last answers are looked at; with `gold_first` alone none of them is about gold."""
    problem = ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
    said = [Answered(k, 0, w, k % 2, 4.0) for k in range(8) for w in (1, 2)]
    said += [Answered(k, 0, w, 1 - k % 2, 4.0) for k in range(8, 30) for w in (3, 4, 5)]
    before = {1: "gold", 2: "agreement"}
    assert assess(problem, said, (), before).known == before
    assert assess(problem, said[16:], (), before).known == {}


def test_an_answer_speaks_for_a_label_that_it_makes_likelier() -> None:
    problem = ct.Problem(["a", "b", "c"], None, ["q", "r"], [[0, 1, 1], [0, 0, 1]], 0.1)
    assert speaks_for(problem, [(0, 1)], 2)
    assert not speaks_for(problem, [(0, 1)], 0)
    assert not speaks_for(problem, [], 0)


@pytest.mark.parametrize("people", [2, 5])
def test_people_who_are_always_right_are_not_suspected(people: int) -> None:
    """They agree more often than the table says, as accomplices do; but they are right."""
    right = [(int(YES[q, cls] > 0.5), q, cls) for cls in range(5) for q in range(len(YES))]
    said = [
        Answered(10 * turn + cls, q, worker, value, 5.0)
        for turn in range(8)
        for value, q, cls in right
        for worker in range(people)
    ]
    assert assess(PROBLEM, said).suspected == {}
