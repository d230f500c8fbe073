"""People left out one by one, against loops that do it plainly."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import false_discovery_control, ttest_1samp

from crowdtree.core.stats import wilson_interval
from crowdtree.learning.judges import scoring
from crowdtree.learning.judges.intervals import bootstrap, mean_difference, share
from crowdtree.learning.judges.question import QuestionAnswers

LABELS = 3


def drawn(seed: int, items: int = 40, people: int = 5) -> QuestionAnswers:
    """Answers with gaps, one item without people and one with a single person."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, LABELS, items)
    wrong = (truth + rng.integers(1, LABELS, (people + 2, items))) % LABELS
    answers = np.where(rng.random(wrong.shape) < 0.7, truth, wrong)
    answers[rng.random(answers.shape) < 0.25] = -1
    answers[:people, 0] = -1
    answers[1:people, 1] = -1
    gold = np.where(rng.random(items) < 0.5, truth, -1)
    names = [f"p{i}" for i in range(people)]
    return QuestionAnswers(
        "q", ("a", "b", "c"), answers[:people], names, answers[people:], ["m", "n"], gold
    )


def winners(votes: list[int]) -> dict[int, float]:
    """Share of each label that leads a vote."""
    count = [votes.count(k) for k in range(LABELS)]
    best = [k for k in range(LABELS) if count[k] == max(count)]
    return {k: 1 / len(best) for k in best}


def plain(data: QuestionAnswers, reference: str, model: int) -> dict[str, list[Any]]:
    """Scores of each item: the model's, a person's, joint errors, and the gain of a vote."""
    found: dict[str, list[Any]] = {"model": [], "person": [], "both": [], "gain": []}
    for item in range(data.people.shape[1]):
        own = int(data.models[model][item])
        people = [int(a) for a in data.people[:, item] if a >= 0]
        gold = int(data.gold[item])
        if own < 0 or (reference == "gold" and gold < 0):
            continue
        scores = []
        for j, answer in enumerate(people):
            rest = people[:j] + people[j + 1 :]
            right = {gold: 1.0} if reference == "gold" else winners(rest) if rest else None
            if right is not None:
                both = sum(p for k, p in right.items() if own != k and answer != k)
                scores.append((right.get(own, 0.0), right.get(answer, 0.0), both))
        if reference == "gold" and not people:
            found["model"].append(float(own == gold))
        if scores:
            for name, value in zip(
                ("model", "person", "both"), np.mean(scores, axis=0), strict=True
            ):
                found[name].append(value)
        gains = [
            g for g in (gain_of(people, own, reference, gold, n) for n in (1, 2)) if g is not None
        ]
        if gains:
            found["gain"].append(np.mean(gains))
    return found


def gain_of(people: list[int], own: int, reference: str, gold: int, out: int) -> float | None:
    """Mean gain when the model joins votes from which so many people are left out."""
    values = []
    if reference == "gold":
        for left in combinations(range(len(people)), out - 1):
            votes = [a for i, a in enumerate(people) if i not in left]
            if votes:
                values.append(winners([*votes, own]).get(gold, 0) - winners(votes).get(gold, 0))
    else:
        for j, target in enumerate(people):
            others = people[:j] + people[j + 1 :]
            for left in combinations(range(len(others)), out - 1):
                votes = [a for i, a in enumerate(others) if i not in left]
                if votes:
                    values.append(
                        winners([*votes, own]).get(target, 0) - winners(votes).get(target, 0)
                    )
    return float(np.mean(values)) if values else None


@pytest.mark.parametrize("reference", ["people", "gold"])
@pytest.mark.parametrize("seed", range(4))
def test_accuracy_and_gain_equal_plain_loops(seed, reference):
    data = drawn(seed)
    found, expected = scoring.compare(data, 0, reference), plain(data, reference, 0)
    assert found.items == len(expected["model"])
    assert found.accuracy.value == pytest.approx(np.mean(expected["model"]))
    assert found.person.value == pytest.approx(np.mean(expected["person"]))
    assert found.vote_gain.value == pytest.approx(np.mean(expected["gain"]))
    assert found.difference.low < found.difference.value < found.difference.high
    assert found.difference_others.half > found.difference.half


@pytest.mark.parametrize("seed", range(3))
def test_errors_with_a_person_equal_plain_loops(seed):
    data = drawn(seed)
    rows = {(r.first, r.second): r for r in scoring.errors_together(data, np.random.default_rng(0))}
    assert set(rows) == {
        ("m", "n"), ("m", "a person"), ("n", "a person"), ("a person", "another person"),
    }  # fmt: skip
    expected = plain(data, "gold", 0)["both"]  # gold is what is right where there is any
    assert rows["m", "a person"].both_wrong.value == pytest.approx(np.mean(expected))


def test_errors_of_models_have_the_plain_correlation():
    data = drawn(5, items=200)
    row = next(scoring.errors_together(data, np.random.default_rng(0)))
    both = (data.models >= 0).all(axis=0) & (data.gold >= 0)
    wrong = (data.models != data.gold)[:, both]
    assert row.correlation.value == pytest.approx(np.corrcoef(wrong)[0, 1])
    assert row.independent == pytest.approx(wrong.mean(axis=1).prod())


def test_joint_errors_of_two_items_are_no_certainty():
    answers = np.array([[0, 1], [0, 1], [0, 0]])
    data = QuestionAnswers(
        "q", ("a", "b"), answers[:2], ["x", "y"], answers[1:], ["m", "n"], np.zeros(2, int)
    )
    row = next(scoring.errors_together(data, np.random.default_rng(0)))
    assert row.correlation is None  # n never errs
    data = QuestionAnswers(
        "q", ("a", "b"), answers[:2], ["x", "y"], answers[:2], ["m", "n"], np.zeros(2, int)
    )
    row = next(scoring.errors_together(data, np.random.default_rng(0)))
    assert row.correlation.value == pytest.approx(1)
    assert row.correlation.low <= 0.5


def test_recall_and_precision_equal_counts():
    data = drawn(1, items=300)
    given = data.models[0]
    use = (data.gold >= 0) & (given >= 0)
    for k, row in enumerate(row for row in scoring.label_scores(data) if row.who == "m"):
        hit = (use & (data.gold == k) & (given == k)).sum()
        assert row.recall.value == pytest.approx(hit / (use & (data.gold == k)).sum())
        assert row.precision.value == pytest.approx(hit / (use & (given == k)).sum())


def test_people_are_tested_as_published():
    """The alternative annotator test, written with the functions of SciPy."""
    data, margin = drawn(2, items=160), 0.1
    found = scoring.person_tests(data, 0, margin)
    p_values, wins = [], []
    for own in data.people:
        behind = []
        for item in np.flatnonzero((own >= 0) & (data.models[0] >= 0)):
            others = [a for a in data.people[:, item] if a >= 0]
            others.remove(own[item])
            if others:
                machine = np.mean([a == data.models[0][item] for a in others])
                person = np.mean([a == own[item] for a in others])
                behind.append(float(person > machine) - float(machine > person))
        p_values.append(ttest_1samp(behind, margin, alternative="less").pvalue)
        wins.append(np.mean(np.array(behind) <= 0))
    assert [row.p_value for row in found] == pytest.approx(p_values)
    assert [row.model_wins for row in found] == pytest.approx(wins)
    adjusted = false_discovery_control(p_values, method="by")
    assert [row.better for row in found] == (adjusted <= 0.05).tolist()


def test_a_model_that_repeats_the_person_left_out_is_not_behind():
    people = np.tile(np.arange(40) % 2, (3, 1))
    data = QuestionAnswers("q", ("a", "b"), people, list("xyz"), people[:1], ["m"], np.full(40, -1))
    assert all(row.better for row in scoring.person_tests(data, 0, 0.05))
    assert not any(row.better for row in scoring.person_tests(data, 0, 0.0))  # not ahead, either


def test_intervals_of_plain_shares_are_wilsons():
    values = np.array([1.0] * 30 + [0.0] * 10)
    found, (low, high) = share(values), wilson_interval(30 * 39 / 40, 39)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.002)
    assert share(np.zeros(0)) is None
    assert mean_difference(np.zeros(0)) is None
    assert bootstrap(np.zeros((0, 2)), np.sum, np.random.default_rng(0), np.zeros(2)) is None


def test_a_skewed_difference_is_missed_as_often_on_either_side():
    """One model against the mean of five people as good as it is: a model has no easier pass."""
    rng = np.random.default_rng(0)
    wrong = rng.random((6, 3000, 150)) < 0.15
    differences = wrong[:5].mean(axis=0) - wrong[5]
    found = [mean_difference(values) for values in differences]
    above, below = (
        np.mean([one.low > 0 for one in found]),
        np.mean([one.high < 0 for one in found]),
    )
    low, high = wilson_interval(0.025 * 3000, 3000)
    assert low <= above <= high
    assert low <= below <= high


def test_intervals_cover_with_few_items_and_shared_difficulty():
    """Paired differences and joint errors in a crowd that no formula here assumes."""
    rng, inside = np.random.default_rng(0), []
    for _ in range(300):
        hard = rng.random(50) < 0.3
        wrong = rng.random((2, 50)) < np.where(hard, 0.6, 0.05)
        found = mean_difference(wrong[0].astype(float) - wrong[1])
        both = share((wrong[0] & wrong[1]).astype(float))
        inside.append((found.low <= 0 <= found.high,
                       both.low <= 0.3 * 0.36 + 0.7 * 0.0025 <= both.high))  # fmt: skip
    low, high = wilson_interval(0.95 * 300, 300)
    assert (np.mean(inside, axis=0) >= low).all()
    assert (np.mean(inside, axis=0) <= high + 0.02).all()
