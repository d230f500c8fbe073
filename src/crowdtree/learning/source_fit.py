"""Labels of one question from several sources that err together (docs/model.md, section 9.5).

Every worker has a table that borrows from that of the source, and this from all sources of its
kind. The answers of a group (models, experts, the people of one source) share errors, so each group
counts less the more it has, and the less the more the others have (:class:`Dependence`). What is
left out (an answer of a person, then the class of known items) tells how much less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp

from crowdtree.core.arrays import FloatArray
from crowdtree.learning.answers import Answers
from crowdtree.learning.copies import find_copies, merge_copies
from crowdtree.learning.label_models import MAX_CELLS, LabelFit
from crowdtree.learning.passes import with_gold
from crowdtree.learning.source_problem import CommonCauses, Told, count_answers, fit_causes
from crowdtree.learning.worker_sources import Kind

IntArray = NDArray[np.int32]

WITHIN: dict[Kind, float] = {"people": 0.15, "expert": 0.15, "model": 0.5}
"""Dependence within a group before any answer is seen."""
BETWEEN = 0.3
"""Dependence between groups before any answer is seen."""
_SPREAD = 1.0  # standard deviation of a dependence before anything is seen, in logits
_PSEUDO = 10.0  # answers per class that a table has of the one above it
_OWN_PSEUDO = 20.0  # those of a worker among several of a source
_OPEN_WEIGHT = 0.1  # of an item of unknown class in the tables, at most
_STEPS = 3  # of expectation maximisation; with discounts, more of them let classes collapse
_FOLDS = 5
_ROUNDS = 2  # dependence and tables in turn
_LEAST_PEOPLE = 20  # answers of people from which the dependence is learned without known items


class Dependence(NamedTuple):
    """How far the answers of each group hang together, and those of different groups."""

    within: FloatArray
    between: float

    def weights(self, answers: FloatArray) -> FloatArray:
        """Weight of the evidence of each group; `answers` is (item, group).

        >>> Dependence(np.array([0.5, 0.0]), 0.0).weights(np.array([[3.0, 4.0]])).tolist()
        [[0.5, 1.0]]
        """
        among = 1 + (np.maximum(answers, 1) - 1) * self.within
        effective = answers / among
        others = effective.sum(axis=1, keepdims=True) - effective
        return np.asarray(1 / (among * (1 + self.between * np.minimum(1, others))))


class Evidence(NamedTuple):
    """What the answers of each group say about each item, and how many they count for.

    `logs` are log likelihoods (item, group, class), `answers` is (item, group).
    """

    logs: FloatArray
    answers: FloatArray

    def of(self, items: NDArray[np.integer]) -> Evidence:
        """Of some of the items."""
        return Evidence(self.logs[items], self.answers[items])

    def posterior(self, log_prior: FloatArray, dependence: Dependence) -> FloatArray:
        """Log posteriors of the classes of the items."""
        score = log_prior + np.einsum("ig,igc->ic", dependence.weights(self.answers), self.logs)
        return np.asarray(score - logsumexp(score, axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of workers and what follows from them.

    `chance` is P(label | class) of every worker, then of a typical worker of every source (row,
    label, class), `telling` how much an answer of each row counts in its group, `share` that of
    the classes.
    """

    chance: FloatArray
    telling: FloatArray
    group: IntArray
    share: FloatArray
    sources: int

    @property
    def of_sources(self) -> FloatArray:
        """Tables of typical workers of the sources (source, label, class)."""
        return self.chance[len(self.chance) - self.sources :]

    def evidence(self, answers: Answers, row: IntArray, items: NDArray[np.intp]) -> Evidence:
        """What the answers about some items say; `row` is that of each worker."""
        asked = answers.items(items)
        rows, groups = row[asked.worker], int(self.group.max()) + 1
        cell = asked.task.astype(np.int64) * groups + self.group[rows]
        given, size = np.log(self.chance[rows, asked.label]), len(items) * groups
        logs = [np.bincount(cell, part, size) for part in given.T]
        answered = np.bincount(cell, self.telling[rows], size)
        shape = (len(items), groups)
        log = np.asarray(np.stack(logs, axis=1), np.float64)
        return Evidence(
            log.reshape(*shape, len(logs)), np.asarray(answered, np.float64).reshape(shape)
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceFit(LabelFit):
    """Labels from several sources, with what they rest on."""

    tables: Tables
    dependence: Dependence
    causes: CommonCauses
    held_out: tuple[HeldOut, ...]

    def expected(self, asked: Answers) -> FloatArray:
        """Posteriors of the items of other answers; a worker that is not known is typical."""
        sources = asked.sources
        assert sources is not None
        asked = merge_copies(asked, self.copies)
        first = len(self.tables.chance) - self.tables.sources
        row = first + np.append(sources.codes(asked.workers), sources.usual).astype(np.int32)
        row[: len(self.row)] = self.row
        evidence = self.tables.evidence(asked, row, np.arange(asked.n_tasks))
        return np.exp(evidence.posterior(np.log(self.tables.share), self.dependence))


def fit_sources(answers: Answers, gold: IntArray) -> SourceFit:
    """Fit tables, dependence and posteriors; `gold` is -1 where the class is unknown."""
    copies = find_copies(answers)
    crowd = _Crowd(merge_copies(answers, copies))
    known = np.flatnonzero(gold >= 0)
    folds = min(_FOLDS, len(known))
    fold = np.random.default_rng(0).permutation(len(known)) % max(folds, 1)
    usual = dependence = crowd.told_by_people()
    blind, causes = np.zeros((len(gold), len(answers.labels))), CommonCauses()
    parts: list[HeldOut] = []
    for _ in range(_ROUNDS if folds else 0):
        parts = [crowd.held_out(gold, known[fold == f], dependence) for f in range(folds)]
        dependence = fit_dependence(parts, usual)
        for part in parts:
            blind[part.items] = np.exp(part.posterior(dependence))
    if parts:
        causes = fit_causes([crowd.told(part, gold) for part in parts])
    posterior, tables = crowd.learned(gold, dependence)
    blind[gold < 0] = posterior[gold < 0]
    return SourceFit(
        with_gold(posterior, gold),
        blind,
        row=crowd.row,
        copies=copies,
        tables=tables,
        dependence=dependence,
        causes=causes,
        held_out=tuple(parts),
    )


class HeldOut(NamedTuple):
    """Items, what is said of them, and what was left out of that: their class, or an answer.

    `seen` is the probability of what was left out under each class (item, class).
    """

    items: NDArray[np.intp]
    evidence: Evidence
    tables: Tables
    seen: FloatArray

    def posterior(self, dependence: Dependence) -> FloatArray:
        """Log posteriors of the items."""
        return self.evidence.posterior(np.log(self.tables.share), dependence)

    def loss(self, dependence: Dependence) -> float:
        """Log loss of what was left out."""
        return -float(logsumexp(self.posterior(dependence), axis=1, b=self.seen).sum())


def fit_dependence(parts: list[HeldOut], usual: Dependence) -> Dependence:
    """Find the dependence by which what was left out is told best."""
    from scipy.optimize import minimize

    centre = logit(np.append(*usual))

    def loss(point: FloatArray) -> float:
        score = ((point - centre) ** 2).sum() / (2 * _SPREAD**2)
        return float(score + sum(part.loss(_dependence(point)) for part in parts))

    corners = np.vstack([centre, centre - np.eye(len(centre))])
    options: Any = {"initial_simplex": corners, "xatol": 0.02, "fatol": 0.01, "maxiter": 500}
    return _dependence(minimize(loss, centre, method="Nelder-Mead", options=options).x)


def _dependence(point: FloatArray) -> Dependence:
    share = expit(np.clip(point, -8, 8))
    return Dependence(share[:-1], float(share[-1]))


def tables_by(answers: Answers, fit: SourceFit, stated: FloatArray) -> Tables:
    """Tables by the stated probabilities of the classes."""
    return _Crowd(merge_copies(answers, fit.copies)).tables(stated)


class _Crowd:
    """Answers with the row of every worker, and the source and group of every row."""

    def __init__(self, answers: Answers) -> None:
        sources = answers.sources
        assert sources is not None
        self.answers, self.sources = answers, sources
        self.source = sources.codes(answers.workers)
        own = answers.n_workers * len(answers.labels) ** 2 <= MAX_CELLS
        self.row = np.arange(answers.n_workers, dtype=np.int32) if own else self.source
        rows = self.source if own else np.zeros(0, np.int32)
        self.source_of_row = np.append(rows, np.arange(len(sources.names), dtype=np.int32))
        self.alone = np.bincount(self.source, minlength=len(sources.names)) == 1
        self.votes = answers.by_worker(self.row, self.source_of_row).votes

    @property
    def usual_dependence(self) -> Dependence:
        """Dependence before any answer is seen."""
        groups = self.sources.groups
        kind = {int(g): k for g, k in zip(groups, self.sources.kinds, strict=True)}
        return Dependence(np.array([WITHIN[kind[g]] for g in sorted(kind)]), BETWEEN)

    def told_by_people(self) -> Dependence:
        """Dependence by which an answer of a person about each item is told best by the others."""
        answers, usual = self.answers, self.usual_dependence
        is_person = np.array(self.sources.kinds)[self.source[answers.worker]] == "people"
        mixed = np.random.default_rng(0).permutation(np.flatnonzero(is_person))
        _, first = np.unique(answers.task[mixed], return_index=True)
        chosen = mixed[first]
        rest = answers.rows(~np.isin(np.arange(answers.n_answers), chosen))
        chosen = chosen[np.diff(rest.start)[answers.task[chosen]] > 0]
        if len(chosen) < _LEAST_PEOPLE:
            return usual
        others, found = _Crowd(rest), usual
        nothing = np.full(answers.n_tasks, -1, np.int32)
        for _ in range(_ROUNDS):
            _, tables = others.learned(nothing, found)
            items = answers.task[chosen]
            evidence = tables.evidence(rest, others.row, np.arange(answers.n_tasks)).of(items)
            seen = tables.of_sources[self.source[answers.worker[chosen]], answers.label[chosen]]
            found = fit_dependence([HeldOut(items, evidence, tables, seen)], usual)
        return found

    def held_out(self, gold: IntArray, items: NDArray[np.intp], dependence: Dependence) -> HeldOut:
        """Learn without the class of some known items."""
        rest = gold.copy()
        rest[items] = -1
        _, tables = self.learned(rest, dependence)
        seen = np.eye(len(self.answers.labels))[gold[items]]
        return HeldOut(items, tables.evidence(self.answers, self.row, items), tables, seen)

    def told(self, part: HeldOut, gold: IntArray) -> Told:
        """The answers about known items, for the model of common causes."""
        counts = count_answers(self.answers.items(part.items), self.source, part.tables.sources)
        share, truth = np.log(part.tables.share), gold[part.items]
        return Told(counts, part.tables.of_sources, share, ~self.alone, truth)

    def learned(self, gold: IntArray, dependence: Dependence) -> tuple[FloatArray, Tables]:
        """Posteriors of all items and tables, with the classes that are given."""
        known, everything = gold >= 0, np.arange(len(gold))
        count = int(np.count_nonzero(known))
        weight = min(_OPEN_WEIGHT, count / max(len(gold) - count, 1)) if count else 1.0
        posterior = self.shares(dependence) * (not count)
        with_gold(posterior, gold)
        for _ in range(_STEPS + 1):
            tables = self.tables(posterior * np.where(known, 1.0, weight)[:, None])
            evidence = tables.evidence(self.answers, self.row, everything)
            posterior = np.exp(evidence.posterior(np.log(tables.share), dependence))
            with_gold(posterior, gold)
        return posterior, tables

    def shares(self, dependence: Dependence) -> FloatArray:
        """Shares of the labels about each item, each answer as far as its group counts."""
        answers, groups = self.answers, self.sources.groups[self.source]
        labels, size = len(answers.labels), int(groups.max()) + 1
        cell = answers.task.astype(np.int64) * size + groups[answers.worker]
        count = np.bincount(cell, minlength=answers.n_tasks * size).astype(np.float64)
        weight = dependence.weights(count.reshape(-1, size)).ravel()[cell]
        label = answers.task.astype(np.int64) * labels + answers.label
        votes = np.bincount(label, weight, answers.n_tasks * labels).reshape(-1, labels)
        total = votes.sum(axis=1, keepdims=True)
        return np.where(total > 0, votes / np.maximum(total, 1e-12), 1 / labels)

    def tables(self, weight: FloatArray) -> Tables:
        """Tables from the weight of each class for each item."""
        given = self.votes.counts(weight)
        labels, sources = len(self.answers.labels), len(self.sources.names)
        of_source = np.zeros((sources, labels, labels))
        np.add.at(of_source, self.source_of_row, given)
        chance = np.zeros_like(given)
        typical = _pooled(of_source, np.array(self.sources.kinds))
        for code, table in enumerate(typical):
            mine = self.source_of_row == code
            own = _filled(given[mine], table, _OWN_PSEUDO)
            chance[mine] = table if self.alone[code] else own
        chance[len(chance) - sources :] = typical
        asked = weight.sum(axis=0)
        share = (asked + 1) / (asked.sum() + labels)
        group = self.sources.groups[self.source_of_row]
        return Tables(chance, _telling(chance, share, group), group, share, sources)


def _pooled(given: FloatArray, kinds: NDArray[Any]) -> FloatArray:
    """Tables of typical workers of the sources, from counts (source, label, class)."""
    table = np.zeros_like(given)
    for kind in np.unique(kinds):
        mine = kinds == kind
        whole = given[mine].sum(axis=0)
        labels = len(whole)
        right = (np.trace(whole) + 1.5) / (whole.sum() + 2)
        coin = np.where(np.eye(labels, dtype=bool), right, (1 - right) / (labels - 1))
        table[mine] = _filled(given[mine], _filled(whole, coin, _PSEUDO), _PSEUDO)
    return table


def _filled(given: FloatArray, table: FloatArray, pseudo: float) -> FloatArray:
    """Shares of the labels, with some answers per class as another table has them."""
    return np.asarray((given + pseudo * table) / (given.sum(axis=-2, keepdims=True) + pseudo))


def _telling(chance: FloatArray, share: FloatArray, group: IntArray) -> FloatArray:
    """Information in an answer of each row about the class, over the most in its group."""
    mean = chance @ share
    told = (share * chance * np.log(chance / mean[..., None])).sum(axis=(1, 2))
    most = np.zeros(int(group.max()) + 1)
    np.maximum.at(most, group, told)
    return np.asarray(told / np.maximum(most, 1e-9)[group])
