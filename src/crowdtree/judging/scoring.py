"""Scores of models at one question, beside what a single person reaches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crowdtree.judging.agreement import IntArray
from crowdtree.judging.held_out import HeldOut, against_gold, against_people, indicator
from crowdtree.judging.intervals import FloatArray, Interval, bootstrap, mean_difference, share
from crowdtree.judging.result import (
    ANOTHER,
    JOIN,
    PERSON,
    REPLACE,
    UNCLEAR,
    WORSE,
    Against,
    Drift,
    LabelScore,
    PersonTest,
    Reference,
    Together,
    Verdict,
)

GROUPS = 30  # of people that are left out to see how far people matter
MIN_ITEMS = 30
"""Items from which one person is tested against a model (Calderon and others 2025)."""
FALSE_FINDINGS = 0.05
VOTE = 0.5
"""By how much an answer that joins a vote changes the probability of its target, at most."""
_POWER = 1.43  # (z of 97.5 % + z of 80 %) / z of 97.5 %: four in five such studies decide
_MOST_NEEDED = 1_000_000


@dataclass(frozen=True, eq=False)
class Asked:
    """Answers to one question, -1 where there is none.

    `people` and `models` have a row per worker and a column per item; `gold` an entry per item.
    """

    question: str
    labels: tuple[str, ...]
    people: IntArray
    people_names: Sequence[str]
    models: IntArray
    model_names: Sequence[str]
    gold: IntArray

    def counts(self, answers: IntArray) -> NDArray[np.int64]:
        """Answers of some workers by item and label."""
        worker, item = np.nonzero(answers >= 0)
        shape = (answers.shape[1], len(self.labels))
        cell = item * shape[1] + answers[worker, item].astype(np.int64)
        return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)

    @cached_property
    def votes(self) -> NDArray[np.int64]:
        """Answers of all people by item and label."""
        return self.counts(self.people)

    def held_out(self, reference: Reference, votes: IntArray, people: int = 1) -> HeldOut:
        """Leave people out, and compare answers with the others or with gold."""
        if reference == "gold":
            return against_gold(votes, self.gold, people)
        return against_people(votes, people)

    @property
    def usual_reference(self) -> Reference:
        """Gold where people answered known items; otherwise the other people."""
        return "gold" if ((self.gold >= 0) & (self.votes.sum(axis=1) > 0)).any() else "people"


# ---------------------------------------------------------------- accuracy


def compare(asked: Asked, model: int, reference: Reference) -> Against | None:
    """Compare a model with a single person; none where they share no item."""
    made = asked.held_out(reference, asked.votes)
    label = asked.models[model][made.item]
    right = made.by_item(made.right(label), label >= 0)
    accuracy = share(right)
    if accuracy is None:
        return None
    items = len(right)
    difference, gain = _differences(asked, reference, asked.votes, model)
    if not len(difference):
        return Against(reference, items, accuracy)
    ends = mean_difference(difference), mean_difference(gain, VOTE)
    wide = map(_wider, ends, _others(asked, model, reference))
    person = made.by_item(made.right(made.label), (label >= 0) & (made.label >= 0))
    return Against(
        reference, items, accuracy, share(person), *ends, *wide,
    )  # fmt: skip


def _differences(
    asked: Asked, reference: Reference, votes: IntArray, model: int
) -> tuple[FloatArray, FloatArray]:
    """By item: how much more often right the model is than a person, and a vote that it joins.

    A vote gains from anybody's answer where it would else be tied, and loses where the answer makes
    the tie; so the gain is the mean over votes of all others, and of all others but one.
    """
    one, two = (asked.held_out(reference, votes, people) for people in (1, 2))
    labels = asked.models[model]
    label = labels[one.item]
    both = (label >= 0) & (one.label >= 0)
    difference = one.by_item(one.right(label) - one.right(one.label), both)
    gains = np.stack([one.vote_gain(label), two.vote_gain(labels[two.item])])
    met = np.isfinite(gains)
    gain = np.nansum(gains, axis=0)[met.any(axis=0)] / met.sum(axis=0)[met.any(axis=0)]
    return difference, gain


def _others(asked: Asked, model: int, reference: Reference) -> list[float | None]:
    """Half of what other people add to the intervals of both differences, by the jackknife.

    People, or groups of them, are left out one by one.
    """
    from scipy.special import stdtrit

    groups = min(GROUPS, len(asked.people))
    means = []
    for group in range(groups):
        votes = asked.votes - asked.counts(asked.people[group::groups])
        values = _differences(asked, reference, votes, model)
        if not (len(values[0]) and len(values[1])):
            return [None, None]
        means.append([value.mean() for value in values])
    if groups < 3:
        return [None, None]
    spread = np.var(means, axis=0) * (groups - 1)
    half: list[float | None] = (stdtrit(groups - 1, 0.975) * np.sqrt(spread)).tolist()
    return half


def _wider(made: Interval | None, other: float | None) -> Interval | None:
    if made is None or other is None:
        return None
    low = made.value - math.hypot(made.value - made.low, other)
    high = made.value + math.hypot(made.high - made.value, other)
    return Interval(made.value, max(low, -1.0), min(high, 1.0))


def decide(asked: Asked, made: Sequence[Against], margin: float) -> Verdict:
    """Say whether a model may replace a person, or join people."""
    chosen = next((row for row in made if row.reference == asked.usual_reference), None)
    if chosen is None or chosen.difference is None:
        return Verdict(UNCLEAR, False, None)
    answer = _answer(chosen.difference, chosen.vote_gain, margin)
    others = _answer(chosen.difference_others, chosen.vote_gain_others, margin)
    if answer != UNCLEAR:
        return Verdict(answer, others == answer, chosen.reference)
    gap = abs(chosen.difference.value + margin)
    times = (_POWER * chosen.difference.half / max(gap, 1e-9)) ** 2 - 1
    size = asked.votes.sum(axis=1)
    each = float(size[size > 1].mean()) if chosen.reference == "people" else 1.0
    needed = max(1.0, chosen.items * times * each)
    needs = "human labels" if chosen.reference == "people" else "known items"
    return Verdict(
        UNCLEAR, False, chosen.reference, _rounded(needed) if needed < _MOST_NEEDED else None, needs
    )


def _answer(difference: Interval | None, gain: Interval | None, margin: float) -> str:
    if difference is None:
        return UNCLEAR
    if difference.low > -margin:
        return REPLACE
    if gain is not None and gain.low > 0:
        return JOIN
    return WORSE if difference.high < -margin else UNCLEAR


def _rounded(value: float) -> int:
    """Two digits, upwards.

    >>> _rounded(1234.0), _rounded(7.2)
    (1300, 8)
    """
    step = 10.0 ** max(0, math.floor(math.log10(value)) - 1)
    return int(math.ceil(value / step - 1e-9) * step)


# ---------------------------------------------------------------- labels


def label_scores(asked: Asked, made: HeldOut, label: IntArray, who: str) -> list[LabelScore]:
    """Recall and precision of every label that occurs."""
    seen = label >= 0
    found = []
    for k, name in enumerate(asked.labels):
        given = (label == k).astype(float)
        both = made.by_item(made.truth[:, k] * given, seen)
        recall = share(both, made.by_item(made.truth[:, k], seen))
        precision = share(both, made.by_item(given, seen))
        if recall or precision:
            found.append(LabelScore(asked.question, who, name, recall, precision))
    return found


def confusion(made: HeldOut, label: IntArray) -> tuple[tuple[float, ...], ...]:
    """Number of items by reference label (row) and label given (column)."""
    given = indicator(label, made.truth.shape[1])
    table = (made.truth * made.weight[:, None]).T @ given
    return tuple(tuple(row) for row in table.tolist())


# ---------------------------------------------------------------- person by person


def person_tests(asked: Asked, model: int, margin: float) -> list[PersonTest]:
    """Test the model against each person with enough items, by the alternative annotator test.

    References: Calderon, Reichart and Dror (2025); Benjamini and Yekutieli (2001).
    """
    from scipy.stats import false_discovery_control

    votes, given = asked.votes, asked.models[model]
    found = []
    for name, answers in zip(asked.people_names, asked.people, strict=True):
        item = np.flatnonzero((answers >= 0) & (given >= 0) & (votes.sum(axis=1) > 1))
        if len(item) < MIN_ITEMS:
            continue
        own, other = answers[item], given[item]
        person = votes[item, own] - 1  # of the others, how many say the same
        machine = votes[item, other] - (own == other)
        wins, loses = (machine >= person).mean(), (person >= machine).mean()
        behind = np.sign(person - machine)
        found.append((str(name), len(item), float(wins), float(loses), _p_value(behind, margin)))
    if not found:
        return []
    adjusted = false_discovery_control([row[-1] for row in found], method="by")
    return [
        PersonTest(asked.question, asked.model_names[model], *row, bool(p <= FALSE_FINDINGS))
        for row, p in zip(found, adjusted, strict=True)
    ]


def _p_value(behind: FloatArray, margin: float) -> float:
    """Chance of a mean this low if the model were behind by the margin."""
    from scipy.special import stdtr

    n, mean, spread = len(behind), float(behind.mean()), float(behind.std(ddof=1))
    if not spread:
        return float(mean >= margin)
    return float(stdtr(n - 1, (mean - margin) / (spread / math.sqrt(n))))


# ---------------------------------------------------------------- errors together, versions


def errors_together(asked: Asked, rng: np.random.Generator) -> list[Together]:
    """Joint errors of each pair of models, of each model and a person, and of two people."""
    reference, votes = asked.usual_reference, asked.votes
    one = asked.held_out(reference, votes)
    two = asked.held_out(reference, votes, 2)
    given = [labels[one.item] for labels in asked.models]
    names = [*asked.model_names, PERSON]
    given.append(one.label)
    pairs = [
        (one, names[a], names[b], given[a], given[b])
        for a in range(len(names))
        for b in range(a + 1, len(names))
    ]
    pairs.append((two, PERSON, ANOTHER, two.label, two.other))
    made = (_together(asked.question, *pair, rng) for pair in pairs)
    return [row for row in made if row is not None]


def _together(
    question: str,
    made: HeldOut,
    first: str,
    second: str,
    a: IntArray,
    b: IntArray,
    rng: np.random.Generator,
) -> Together | None:
    both = (a >= 0) & (b >= 0)
    right_a, right_b = made.right(a), made.right(b)
    wrong = 1 - right_a - right_b + np.where(a == b, right_a, 0.0)
    columns = np.stack([made.by_item(v, both) for v in (1 - right_a, 1 - right_b, wrong)], axis=1)
    joint = share(columns[:, 2])
    if joint is None:
        return None
    rates = columns.mean(axis=0)
    rows = np.column_stack([np.ones(len(columns)), columns]).round(9)
    return Together(
        question, first, second, len(columns), joint, float(rates[0] * rates[1]),
        bootstrap(rows, _correlation, rng),
    )  # fmt: skip


def _correlation(sums: FloatArray) -> FloatArray:
    """Correlation of two kinds of errors, from their sums over items."""
    a, b, both = (sums[:, i] / sums[:, 0] for i in (1, 2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((both - a * b) / np.sqrt(a * (1 - a) * b * (1 - b)))


def changes(asked: Asked, versions: Sequence[tuple[int, int]]) -> list[Drift]:
    """Compare versions of a model, each pair (old, new) on the items that both answered."""
    made = asked.held_out(asked.usual_reference, asked.votes)
    found = []
    for before, after in versions:
        old, new = asked.models[before][made.item], asked.models[after][made.item]
        both = (old >= 0) & (new >= 0)
        values = made.by_item(made.right(new) - made.right(old), both)
        change = mean_difference(values)
        if change is not None:
            other = float(made.by_item((old != new).astype(float), both).mean())
            names = asked.model_names[before], asked.model_names[after]
            found.append(Drift(asked.question, *names, len(values), change, other))
    return found
