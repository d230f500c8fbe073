"""Flags: suspicious workers, questions that do not split, dependent errors, uncertain cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import listing
from crowdtree.core.problem import DASH
from crowdtree.core.result_methods import HtmlShown
from crowdtree.core.stats import normal_quantile
from crowdtree.core.text import plural
from crowdtree.learning.compare import confused_pairs
from crowdtree.learning.copies import MAX_WORKERS, SAME_SHARE, agreement

if TYPE_CHECKING:
    from crowdtree.learning.model import Learned


LEAST_ANSWERS = 10
"""Workers with fewer answers are not flagged."""
COIN = 0.25
"""A worker who is right this much more often than chance (of 0 to 1) at most answers at random."""
TWIN_AGREEMENT = 0.98
TWIN_CHANCE = 1e-3
LEAST_SPREAD = 0.2
CONFUSED = 0.1
AFFECTED = 0.3
"""Share of items that mislead everybody, for a flag."""
RARE_ITEM = 0.001
"""Probability of so many wrong answers below which an item counts as misleading."""
LEAST_ODD = 3
ODD_CHANCE = 1e-3
"""Probability of so many such items below which the errors are not independent."""
LEAST_VOTES = 0.02
COLLAPSED = 0.25
"""A class is flagged when its share of the labels is below this part of its share of answers."""
THIN = 0.1
"""Half width of an interval above which a cell is thin."""


class Flag(NamedTuple):
    """One finding that should be checked.

    `kind` is ``constant``, ``random``, ``twins``, ``copies`` (workers who count as one), ``blunt``
    (a question that splits nothing), ``unasked`` (without answers, or about one class only),
    ``reversed`` (answers contradict the table), ``confused``, ``thin``, ``together`` (people err
    together), ``collapsed`` (a class that is named, but hardly ever the label) or ``unsettled``
    (the fit did not converge); `value` is the number behind it, `more` how many more answers would
    settle it, if known.
    """

    kind: str
    subject: str
    message: str
    value: float
    more: int = 0


class Flags(tuple[Flag, ...], HtmlShown):
    """All flags. There may be thousands, so the printed form counts them by kind.

    >>> Flags([Flag("thin", "q / a", "few answers", 0.2, 9), Flag("random", "ann", "a coin", 0.0)])
    2 points to check: 1 random (ann: a coin); 1 thin (q / a: few answers)
    """

    def by_kind(self) -> dict[str, list[Flag]]:
        """Flags of each kind; kinds in the order of their importance, thin cells last."""
        kinds: dict[str, list[Flag]] = {}
        for flag in sorted(self, key=lambda flag: flag.kind == "thin"):
            kinds.setdefault(flag.kind, []).append(flag)
        return kinds

    def worst(self, most: int) -> list[Flag]:
        """Some flags: those of workers, questions and classes first, then the thinnest cells."""
        thin = sorted((flag for flag in self if flag.kind == "thin"), key=lambda f: -f.value)
        return [*(flag for flag in self if flag.kind != "thin"), *thin][:most]

    def __str__(self) -> str:
        if not self:
            return "nothing to check"
        kinds = (
            f"{len(found):,} {kind} ({found[0].subject}: {found[0].message})"
            for kind, found in self.by_kind().items()
        )
        return f"{plural(len(self), 'point')} to check: {'; '.join(kinds)}"

    __repr__ = __str__


def find_flags(learned: Learned) -> Flags:
    """List all flags: workers first, then questions, classes and cells."""
    finders = (_fit, _constant_or_random, _twins, _questions, _confused, _thin)
    return Flags(flag for find in finders for flag in find(learned))


def _fit(learned: Learned) -> Iterator[Flag]:
    """Flags of the fit: not converged, people who err together, classes that vanish."""
    if not learned.converged:
        subject, message = "skills", "did not converge and are withheld; workers count as alike"
        if learned.labelling is not None:
            subject = listing(learned.labelling.left_out)
            message = "did not converge and is not used"
        yield Flag("unsettled", subject, message, 0.0)
    if learned.labelling is None or not learned.labelling.models:
        return
    names = learned.answers.workers
    for group in learned.labelling.copies:
        who = ", ".join(str(names[w]) for w in group)
        message = f"{len(group)} workers copy each other; their answers count as those of one"
        yield Flag("copies", who, message, float(len(group)))
    affected = _affected(learned)
    if affected >= AFFECTED:
        message = (
            f"people err together: about {_share(affected)} of the items draw everybody to one "
            "answer, so more answers about the same item help little"
        )
        yield Flag("together", "items", message, affected)
    else:
        yield from _misleading(learned)
    votes, label = (
        np.bincount(chosen, minlength=len(learned.classes)) / max(len(chosen), 1)
        for chosen in (learned.answers.label, learned.posterior.argmax(axis=1))
    )
    for k in np.flatnonzero((votes >= LEAST_VOTES) & (label < COLLAPSED * votes)).tolist():
        message = (
            f"named in {_share(votes[k])} of answers, but the label of {_share(label[k])} only"
        )
        yield Flag("collapsed", learned.classes[k], message, float(label[k] / votes[k]))


def _affected(learned: Learned) -> float:
    """Share of the items that draw everybody to one answer; known of two labels only."""
    if learned.labelling is None or len(learned.classes) > 2 or learned.answers.n_tasks < 20:
        return 0.0
    return max((model.affected for model in learned.labelling.models), default=0.0)


def _misleading(learned: Learned) -> Iterator[Flag]:
    """Items with more wrong answers than independent errors of their workers explain.

    The number of wrong answers about an item is taken as binomial, with the mean error of its
    workers for the label's class. A label follows its answers, so without gold few are found.
    """
    from scipy.stats import binom

    a, label = learned.answers, learned.fit.posterior.argmax(axis=1)
    chance = 1 / (1 + np.exp(learned.fit.cell[0, label[a.task]] + learned.fit.skill[a.worker]))
    count = np.diff(a.start)
    wrong = np.bincount(a.task, weights=a.label != label[a.task], minlength=len(count))
    expected = np.bincount(a.task, weights=chance, minlength=len(count)) / np.maximum(count, 1)
    odd = (count >= 3) & (binom.sf(wrong - 1, count, expected) < RARE_ITEM)
    items = int((count >= 3).sum())
    if odd.sum() >= LEAST_ODD and binom.sf(odd.sum() - 1, items, RARE_ITEM) < ODD_CHANCE:
        message = (
            f"{odd.sum()} of {items} items have more wrong answers than independent errors "
            "explain: they mislead most people, so more answers about them help little"
        )
        yield Flag("together", "items", message, float(odd.sum() / items))


def _answer_table(learned: Learned) -> FloatArray:
    """Expected answers (worker, answer, what would have been right)."""
    if learned.kind == "labels":
        return learned.counts
    a, fit = learned.answers, learned.fit
    table = np.zeros((len(fit.skill), len(a.labels), len(a.labels)))
    task, asked, definite = a.task, a.question_column(), fit.definite
    for c in range(learned.problem.n_classes):
        mass, known = fit.posterior[task, c], definite[asked, c]
        rights = fit.right_answer[:, asked, c]  # the first right answer, where it is not this one
        right = np.where(rights[a.label, np.arange(len(asked))], a.label, rights.argmax(axis=0))
        np.add.at(table, (a.worker[known], a.label[known], right[known]), mass[known])
    return table


def _constant_or_random(learned: Learned) -> Iterator[Flag]:
    table = _answer_table(learned)
    by_luck = _lucky(learned)
    names = [str(name) for name in learned.answers.workers.tolist()]
    total = table.sum(axis=(1, 2))
    labels = table.shape[1]
    for w in np.flatnonzero(total >= LEAST_ANSWERS):
        said, was = table[w].sum(axis=1), table[w].sum(axis=0)
        top = int(np.argmax(said))
        if said[top] >= SAME_SHARE * total[w] and was[top] < 0.9 * total[w]:
            label = repr(learned.answers.labels[top])
            if learned.answers.choices:
                label = f"number {top + 1} of the list"
            others = f"{abs(total[w] - said[top]):.0f}"
            most = "all" if others == "0" else f"all but {others}"
            message = f"answers {label} to {most} of {total[w]:.0f}"
            yield Flag("constant", names[w], message, float(said[top] / total[w]))
            continue
        met = was >= 1
        if met.sum() < 2:
            continue
        hit = np.diagonal(table[w])[met] / was[met]
        chance = 1 / labels
        if by_luck is not None:  # answers of different questions: right or wrong alone
            hit, was = np.array([np.trace(table[w]) / total[w]]), total[[w]]
            met, chance = np.ones(1, bool), float(by_luck[w] / total[w])
        score = (hit.mean() - chance) / (1 - chance)
        spread = math.sqrt(float(np.sum((hit * (1 - hit) + 0.25 / was[met]) / was[met])))
        high = score + normal_quantile(0.9) * spread / met.sum() / (1 - chance)
        if high < COIN:
            often = f"right {_share(hit.mean())} of the time over {total[w]:.0f} answers"
            message = f"{often}, no better than chance"
            yield Flag("random", names[w], message, float(score))


def _lucky(learned: Learned) -> FloatArray | None:
    """Right answers that each worker would give by chance, where questions have several answers."""
    a = learned.answers
    if learned.kind == "labels" or not a.choices:
        return None
    fit = learned.fit
    chance = fit.right_answer.sum(axis=0) / learned.problem.n_answers[:, None]
    expected = (fit.posterior[a.task] * chance[a.question_column()]).sum(axis=1)
    return np.bincount(a.worker, expected, len(fit.skill)).astype(np.float64)


def _twins(learned: Learned) -> Iterator[Flag]:
    """Pairs of ids that agree more than independent workers of their accuracy would."""
    from scipy.stats import binom

    a, workers = learned.answers, learned.answers.n_workers
    if not 2 <= workers <= MAX_WORKERS or _affected(learned) >= AFFECTED:
        return  # where workers err together, shared mistakes are no sign of a copy
    same, both = agreement(a, workers)
    for group in learned.labelling.copies if learned.labelling else ():
        both[np.ix_(group, group)] = 0  # they have a flag of their own
    right = np.array([w.agreement for w in learned.workers.values()])
    expected = np.outer(right, right) + np.outer(1 - right, 1 - right) / max(1, len(a.labels) - 1)
    first, second = np.nonzero(np.triu((both >= 20) & (same >= TWIN_AGREEMENT * both), 1))
    pairs = max(1, int(np.count_nonzero(np.triu(both >= 20, 1))))
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        chance = float(binom.sf(same[i, j] - 1, both[i, j], min(expected[i, j], 0.999)))
        if chance * pairs < TWIN_CHANCE:
            pair = f"{a.workers[i]!s} and {a.workers[j]!s}"
            message = f"agree on {same[i, j]:.0f} of {both[i, j]:.0f}; one person, or a copy?"
            yield Flag("twins", pair, message, float(same[i, j] / both[i, j]))


def _questions(learned: Learned) -> Iterator[Flag]:
    if learned.kind == "labels":
        return
    problem = learned.problem
    rates = learned.table
    # an error of guessing: beyond it, most answers contradict the table
    guessed = 1 - np.maximum(problem.right.sum(axis=0), 1) / problem.n_answers[:, None]
    asked = learned.fit.answers >= 1
    low = learned.intervals.worker_error.low
    for q, name in enumerate(problem.questions):
        here = rates[:, q, asked[q]]
        if not here.size:
            yield Flag("unasked", name, "no answers; its errors are a guess", 0.0)
        elif here.shape[1] < 2:
            cls = problem.classes[int(np.flatnonzero(asked[q])[0])]
            message = f"answered about {cls} only; ask it about items of other classes, too"
            yield Flag("unasked", name, message, 0.0)
        elif (spread := float(np.ptp(here, axis=1).max())) < LEAST_SPREAD:
            within = f"the classes lie within {_share(spread)}: it splits nothing"
            message = f"rates of each answer of {within}"
            yield Flag("blunt", name, message, spread)
        for c in np.flatnonzero((low[q] > guessed[q]) & (problem.outcome[q] != DASH)).tolist():
            message = f"{_share(learned.fit.error[q, c])} of answers contradict the table"
            subject = f"{name} / {problem.classes[c]}"
            yield Flag("reversed", subject, message, float(learned.fit.error[q, c]))


def _confused(learned: Learned) -> Iterator[Flag]:
    for pair in confused_pairs(learned, CONFUSED):
        message = f"stay confused: {_share(pair.shared)} of one's probability lies with the other"
        yield Flag("confused", f"{pair.first} and {pair.second}", message, pair.shared)


def _thin(learned: Learned) -> Iterator[Flag]:
    problem = learned.problem
    low, high = learned.intervals.worker_error
    half = np.asarray((high - low) / 2)
    wrong, right = learned.error_posterior
    error = wrong / (wrong + right)
    held = wrong + right
    z = normal_quantile(learned.level)
    need = np.ceil(z**2 * np.maximum(error * (1 - error), 0.01) / THIN**2 - held)
    thin = (half > THIN) & (problem.outcome != DASH)
    # of one question most of the doubt is about the labels, which more answers do not remove
    unchecked = learned.kind == "labels" and not learned.accuracy.known
    for q, c in np.argwhere(thin).tolist():
        more = 0 if unchecked else int(max(1, need[q, c]))
        remedy = f"about {more} more answers settle it to ±{_share(THIN)}"
        message = (
            f"error {_share(error[q, c])} is known to ±{_share(half[q, c])} only; "
            f"{'items of known class narrow it' if unchecked else remedy}"
        )
        subject = f"{problem.questions[q]} / {problem.classes[c]}"
        yield Flag("thin", subject, message, float(half[q, c]), more)


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"
