"""Scores of models at one question, beside what a single person reaches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.core.text import rounded_up
from crowdtree.learning.judges.intervals import (
    Interval,
    bootstrap,
    mean_difference,
    share,
)
from crowdtree.learning.judges.question import IntArray, QuestionAnswers
from crowdtree.learning.judges.result import (
    ANOTHER,
    JOIN,
    PERSON,
    REPLACE,
    UNCLEAR,
    WORSE,
    Drift,
    LabelScore,
    ModelScore,
    PersonTest,
    Reference,
    Together,
    Verdict,
)

GROUPS = 30
"""Groups of people that are left out to see how much depends on who the people are."""
MIN_ITEMS = 30
"""Items from which one person is tested against a model (Calderon and others 2025)."""
FALSE_FINDINGS = 0.05
POWER = 1.43  # (z of 97.5 % + z of 80 %) / z of 97.5 %: four in five such studies decide
MAX_NEEDED = 1_000_000
VOTE = 0.5
"""By how much an answer that joins a vote changes the probability of its target, at most."""


# ---------------------------------------------------------------- accuracy


def compare(data: QuestionAnswers, model: int, reference: Reference) -> ModelScore:
    """Compare a model with a single person on the items that both answered."""
    rows = data.leave_out(reference)
    label = data.models[model][rows.item]
    right = rows.by_item(rows.right(label), label >= 0)
    score = ModelScore(data.question, data.model_names[model], reference, len(right), share(right))
    difference, gain = _differences(data, reference, data.votes, model)
    if not len(difference):
        return score
    person = rows.by_item(rows.right(rows.label), (label >= 0) & (rows.label >= 0))
    ends = mean_difference(difference), mean_difference(gain, VOTE)
    wider = [_wider(*pair) for pair in zip(ends, _others(data, model, reference), strict=True)]
    return replace(
        score, person=share(person), difference=ends[0], vote_gain=ends[1],
        difference_others=wider[0], vote_gain_others=wider[1],
    )  # fmt: skip


def judge_model(
    data: QuestionAnswers, model: int, margin: float, tests: Sequence[PersonTest]
) -> Iterator[ModelScore]:
    """Compare a model with people by the other people and by gold, and reach a verdict."""
    for reference in ("people", "gold"):
        score = compare(data, model, reference)
        if reference == data.usual_reference:
            score = replace(score, verdict=decide(score, data, margin))
            if tests:
                wins = np.mean([(row.better, row.model_wins) for row in tests], axis=0).tolist()
                score = replace(score, winning_rate=wins[0], advantage=wins[1])
        if score.items or score.verdict:
            yield score


def decide(score: ModelScore, data: QuestionAnswers, margin: float) -> Verdict:
    """Say whether a model may replace a person, or join people, or how many labels are missing."""
    if score.difference is None:
        return Verdict(UNCLEAR, False)
    answer = _answer(score.difference, score.vote_gain, margin)
    if answer != UNCLEAR:
        others = _answer(score.difference_others, score.vote_gain_others, margin)
        return Verdict(answer, others == answer)
    gold, size = score.reference == "gold", data.votes.sum(axis=1)
    each = 1.0 if gold else float(size[size > 1].mean())
    gap = max(abs(score.difference.value + margin), 1e-9)
    needed = score.items * each * ((POWER * score.difference.half / gap) ** 2 - 1)
    more = math.ceil(rounded_up(max(needed, 1.0))) if needed < MAX_NEEDED else None
    return Verdict(UNCLEAR, False, more, "known items" if gold else "human labels")


def _answer(difference: Interval | None, gain: Interval | None, margin: float) -> str:
    if difference is None:
        return UNCLEAR
    if difference.low > -margin:
        return REPLACE
    if gain is not None and gain.low > 0:
        return JOIN
    return WORSE if difference.high < -margin else UNCLEAR


def _differences(
    data: QuestionAnswers, reference: Reference, votes: IntArray, model: int
) -> tuple[FloatArray, FloatArray]:
    """By item: how much more often right the model is than a person, and a vote that it joins.

    A vote gains from anybody's answer where it would otherwise be tied, and loses where the answer
    makes the tie; so the gain is the mean over votes of all others, and of all others but one.
    """
    one, two = (data.leave_out(reference, votes, people) for people in (1, 2))
    labels = data.models[model]
    label = labels[one.item]
    both = (label >= 0) & (one.label >= 0)
    difference = one.by_item(one.right(label) - one.right(one.label), both)
    gains = np.stack([one.vote_gain(label), two.vote_gain(labels[two.item])])
    count = np.isfinite(gains).sum(axis=0)
    return difference, np.nansum(gains, axis=0)[count > 0] / count[count > 0]


def _others(data: QuestionAnswers, model: int, reference: Reference) -> list[float | None]:
    """Half of what other people add to the intervals of both differences, by the jackknife.

    People, or groups of them, are left out one by one.
    """
    from scipy.special import stdtrit

    groups = min(GROUPS, len(data.people))
    means = []
    for group in range(groups):
        votes = data.votes - data.counts(data.people[group::groups])
        differences = _differences(data, reference, votes, model)
        if groups < 3 or not all(map(len, differences)):
            return [None, None]
        means.append([values.mean() for values in differences])
    spread = np.sqrt(np.var(means, axis=0) * (groups - 1))
    half: list[float | None] = (stdtrit(groups - 1, 0.975) * spread).tolist()
    return half


def _wider(estimate: Interval | None, other: float | None) -> Interval | None:
    if estimate is None or other is None:
        return None
    value = estimate.value
    low = value - math.hypot(value - estimate.low, other)
    high = value + math.hypot(estimate.high - value, other)
    return Interval(value, max(low, -1.0), min(high, 1.0))


# ---------------------------------------------------------------- labels


def label_scores(data: QuestionAnswers) -> Iterator[LabelScore]:
    """Recall and precision of every label that occurs, by a person and by each model."""
    rows = data.leave_out()
    answers = (
        (name, labels[rows.item])
        for name, labels in zip(data.model_names, data.models, strict=True)
    )
    for who, label in ((PERSON, rows.label), *answers):
        for k, name in enumerate(data.labels):
            says = (label == k).astype(float)
            both = rows.by_item(rows.truth[:, k] * says, label >= 0)
            recall = share(both, rows.by_item(rows.truth[:, k], label >= 0))
            precision = share(both, rows.by_item(says, label >= 0))
            if recall or precision:
                yield LabelScore(data.question, who, name, recall, precision)


# ---------------------------------------------------------------- person by person


def person_tests(data: QuestionAnswers, model: int, margin: float) -> list[PersonTest]:
    """Test the model against each person with enough items, by the alternative annotator test.

    References: Calderon, Reichart and Dror (2025); Benjamini and Yekutieli (2001).
    """
    from scipy.stats import false_discovery_control

    votes, labels = data.votes, data.models[model]
    tests = []
    for name, answers in zip(data.people_names, data.people, strict=True):
        item = np.flatnonzero((answers >= 0) & (labels >= 0) & (votes.sum(axis=1) > 1))
        if len(item) < MIN_ITEMS:
            continue
        own, other = answers[item], labels[item]
        person = votes[item, own] - 1  # of the others, how many say the same
        machine = votes[item, other] - (own == other)
        behind = np.sign(person - machine)
        tests.append((name, len(item), float((behind <= 0).mean()), _p_value(behind, margin)))
    if not tests:
        return []
    adjusted = false_discovery_control([row[-1] for row in tests], method="by")
    return [
        PersonTest(data.question, data.model_names[model], *row, bool(p <= FALSE_FINDINGS))
        for row, p in zip(tests, adjusted, strict=True)
    ]


def _p_value(behind: FloatArray, margin: float) -> float:
    """Chance of a mean this low if the model were behind by the margin."""
    from scipy.special import stdtr

    n, mean, spread = len(behind), float(behind.mean()), float(behind.std(ddof=1))
    if not spread:
        return float(mean >= margin)
    return float(stdtr(n - 1, (mean - margin) / (spread / math.sqrt(n))))


# ---------------------------------------------------------------- errors together, versions


def errors_together(data: QuestionAnswers, rng: np.random.Generator) -> Iterator[Together]:
    """Joint errors of each pair of models, of each model and a person, and of two people."""
    one, two = data.leave_out(), data.leave_out(people=2)
    labels = zip(data.model_names, (answers[one.item] for answers in data.models), strict=True)
    pairs = [(one, *pair) for pair in combinations([*labels, (PERSON, one.label)], 2)]
    for rows, (first, a), (second, b) in (*pairs, (two, (PERSON, two.label), (ANOTHER, two.other))):
        both = (a >= 0) & (b >= 0)
        if not both.any():
            continue
        wrong_a, wrong_b = 1 - rows.right(a), 1 - rows.right(b)
        wrong = wrong_a + wrong_b - 1 + np.where(a == b, rows.right(a), 0.0)
        sums = np.stack([rows.by_item(v, both) for v in (wrong_a, wrong_b, wrong)], axis=1)
        joint, rates = share(sums[:, 2]), sums.mean(axis=0)
        if joint is not None:
            values = np.column_stack([np.ones(len(sums)), sums]).round(9)
            yield Together(
                data.question, first, second, len(sums), joint, float(rates[0] * rates[1]),
                bootstrap(values, _correlation, rng, _DOUBT),
            )  # fmt: skip


_DOUBT = np.array([[1.0, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]])
"""One more item about which one of the two errs, the other, or both."""


def _correlation(sums: FloatArray) -> FloatArray:
    """Correlation of two kinds of errors, from their sums over items."""
    a, b, both = (sums[:, i] / sums[:, 0] for i in (1, 2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((both - a * b) / np.sqrt(a * (1 - a) * b * (1 - b)))


def changes(data: QuestionAnswers, versions: Sequence[tuple[int, int]]) -> Iterator[Drift]:
    """Compare versions of a model, each pair (old, new) on the items that both answered."""
    rows = data.leave_out()
    for before, after in versions:
        old, new = data.models[before][rows.item], data.models[after][rows.item]
        both = (old >= 0) & (new >= 0)
        values = rows.by_item(rows.right(new) - rows.right(old), both)
        change = mean_difference(values)
        if change is not None:
            other = float(rows.by_item((old != new).astype(float), both).mean())
            names = data.model_names[before], data.model_names[after]
            yield Drift(data.question, *names, len(values), change, other)
