"""Labels of one question from several sources that err together (docs/model.md, section 9.5).

Every worker has a table that borrows from that of the source, and this from all sources of its
kind. The answers of a group (models, experts, the people of one source) share errors, so each group
counts less the more it has, and the less the more the others have (:class:`Dependence`). What is
left out (an answer of a person, then the class of known items) tells how much less.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.learning.answers import Answers
from crowdtree.learning.copies import find_copies, merge_copies
from crowdtree.learning.label_models import MAX_CELLS, LabelFit
from crowdtree.learning.passes import with_gold
from crowdtree.learning.source_dependence import Dependence, Evidence, LeftOut, fit_dependence
from crowdtree.learning.source_problem import CommonCauses, KnownAnswers, count_answers, fit_causes
from crowdtree.learning.worker_sources import Kind

IntArray = NDArray[np.int32]

WITHIN: dict[Kind, float] = {"people": 0.15, "expert": 0.15, "model": 0.5}
"""Dependence within a group before any answer is seen."""
BETWEEN = 0.3
"""Dependence between groups before any answer is seen."""
_STRENGTHS = np.array([1.0, 3.0, 10.0, 30.0, 100.0])
"""Answers per class that tables may have of the one above them: as they differ from it."""
_OPEN_WEIGHT = 0.1  # of an item of unknown class in the tables, at most
_STEPS = 3  # of expectation maximisation; with discounts, more of them let classes collapse
_FOLDS = 5
_ROUNDS = 2  # dependence and tables in turn
_LEAST_PEOPLE, _MAX_PEOPLE = 20, 2000  # their answers that are left out for the dependence


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables of workers and what follows from them.

    `chance` is P(label | class) of every worker, then of a typical worker of every source (row,
    label, class), `share` that of the classes.
    """

    chance: FloatArray
    group: IntArray
    share: FloatArray
    sources: int
    known: bool

    @property
    def of_sources(self) -> FloatArray:
        """Tables of typical workers of the sources (source, label, class)."""
        return self.chance[len(self.chance) - self.sources :]

    @cached_property
    def strength(self) -> FloatArray:
        """Square root of the information in an answer of each row about the class.

        Without known items nobody is stronger than the median of the group: agreement does not tell
        a good source from one that others copy.
        """
        mean = self.chance @ self.share
        gain = self.share * self.chance * np.log(self.chance / mean[..., None])
        strength = np.asarray(np.sqrt(np.maximum(gain.sum(axis=(1, 2)), 0)))
        if not self.known:
            for code in np.unique(self.group):
                mine = self.group == code
                strength[mine] = np.minimum(strength[mine], np.median(strength[mine]))
        return strength

    def evidence(self, answers: Answers, row: IntArray, items: NDArray[np.intp]) -> Evidence:
        """What the answers about some items say; `row` is that of each worker."""
        asked = answers.items(items)
        rows = row[asked.worker]
        logs = np.log(self.chance[rows, asked.label])
        return Evidence(len(items), asked.task, self.group[rows], logs, self.strength[rows])


class Refit(NamedTuple):
    """Tables that did not use the class of some items, and what they say of these."""

    left_out: LeftOut
    tables: Tables


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceFit(LabelFit):
    """Labels from several sources, with what they rest on."""

    tables: Tables
    dependence: Dependence
    causes: CommonCauses
    held_out: tuple[Refit, ...]

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
    usual = dependence = crowd.dependence_of_people()
    blind, causes = np.zeros((len(gold), len(answers.labels))), CommonCauses()
    parts: list[Refit] = []
    for _ in range(_ROUNDS if folds else 0):
        parts = [crowd.refit_without(known[fold == f], gold, dependence) for f in range(folds)]
        dependence = fit_dependence([part.left_out for part in parts], usual)
    for part in parts:  # nothing that the posterior rests on used the class
        others = fit_dependence([other.left_out for other in parts if other is not part], usual)
        blind[part.left_out.items] = np.exp(part.left_out.posterior(others))
    if parts:
        causes = fit_causes([crowd.answers_to(part, gold) for part in parts])
    posterior, tables = crowd.learn(gold, dependence)
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


def tables_by(answers: Answers, fit: SourceFit, stated: FloatArray) -> Tables:
    """Tables by the stated probabilities of the classes."""
    return _Crowd(merge_copies(answers, fit.copies)).tables(stated, bool(fit.held_out))


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

    def dependence_of_people(self) -> Dependence:
        """Dependence by which the other answers best predict one of a person about each item."""
        answers, usual, rng = self.answers, self.usual_dependence, np.random.default_rng(0)
        is_person = np.array(self.sources.kinds)[self.source[answers.worker]] == "people"
        mixed = rng.permutation(np.flatnonzero(is_person))
        _, first = np.unique(answers.task[mixed], return_index=True)
        chosen = rng.permutation(mixed[first])[:_MAX_PEOPLE]
        rest = answers.rows(~np.isin(np.arange(answers.n_answers), chosen))
        chosen = chosen[np.diff(rest.start)[answers.task[chosen]] > 0]
        if len(chosen) < _LEAST_PEOPLE:
            return usual
        others, dependence, items = _Crowd(rest), usual, answers.task[chosen].astype(np.intp)
        unknown = np.full(answers.n_tasks, -1, np.int32)
        for _ in range(_ROUNDS):
            _, tables = others.learn(unknown, dependence)
            evidence = tables.evidence(rest, others.row, items)
            seen = tables.of_sources[self.source[answers.worker[chosen]], answers.label[chosen]]
            left_out = LeftOut(items, evidence, np.log(tables.share), seen)
            dependence = fit_dependence([left_out], usual)
        return dependence

    def refit_without(
        self, items: NDArray[np.intp], gold: IntArray, dependence: Dependence
    ) -> Refit:
        """Learn without the class of some known items."""
        rest = gold.copy()
        rest[items] = -1
        _, tables = self.learn(rest, dependence)
        seen = np.eye(len(self.answers.labels))[gold[items]]
        evidence = tables.evidence(self.answers, self.row, items)
        return Refit(LeftOut(items, evidence, np.log(tables.share), seen), tables)

    def answers_to(self, part: Refit, gold: IntArray) -> KnownAnswers:
        """The answers about known items, for the model of common causes."""
        tables, items = part.tables, part.left_out.items
        counts = count_answers(self.answers.items(items), self.source, tables.sources)
        share = np.log(tables.share)
        return KnownAnswers(counts, tables.of_sources, share, ~self.alone, gold[items])

    def learn(self, gold: IntArray, dependence: Dependence) -> tuple[FloatArray, Tables]:
        """Posteriors of all items and tables, with the classes that are given."""
        known, everything = gold >= 0, np.arange(len(gold))
        count = int(np.count_nonzero(known))
        weight = min(_OPEN_WEIGHT, count / max(len(gold) - count, 1)) if count else 1.0
        posterior = self.shares(dependence) * (not count)
        with_gold(posterior, gold)
        for _ in range(_STEPS + 1):
            tables = self.tables(posterior * np.where(known, 1.0, weight)[:, None], count > 0)
            evidence = tables.evidence(self.answers, self.row, everything)
            posterior = np.exp(evidence.posterior(np.log(tables.share), dependence))
            with_gold(posterior, gold)
        return posterior, tables

    def shares(self, dependence: Dependence) -> FloatArray:
        """Shares of the labels about each item, each answer as far as its group counts."""
        answers = self.answers
        group, given = self.sources.groups[self.source][answers.worker], np.eye(len(answers.labels))
        alike = np.ones(answers.n_answers)
        votes = Evidence(answers.n_tasks, answers.task, group, given[answers.label], alike)
        share = votes.combined(dependence) + 1e-12
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    def tables(self, weight: FloatArray, known: bool) -> Tables:
        """Tables from the weight of each class for each item."""
        given = self.votes.counts(weight)
        labels, sources = len(self.answers.labels), len(self.sources.names)
        of_source = np.zeros((sources, labels, labels))
        np.add.at(of_source, self.source_of_row, given)
        chance = np.zeros_like(given)
        typical = _pooled(of_source, np.array(self.sources.kinds))
        for code, table in enumerate(typical):
            mine = self.source_of_row == code
            own = _borrowed(given[mine], table)
            chance[mine] = table if self.alone[code] else own
        chance[len(chance) - sources :] = typical
        items = weight.sum(axis=0)
        share = (items + 1) / (items.sum() + labels)
        group = self.sources.groups[self.source_of_row]
        return Tables(chance, group, share, sources, known)


def _pooled(given: FloatArray, kinds: NDArray[Any]) -> FloatArray:
    """Tables of typical workers of the sources, from counts (source, label, class)."""
    table = np.zeros_like(given)
    for kind in np.unique(kinds):
        mine = kinds == kind
        whole = given[mine].sum(axis=0)
        labels = len(whole)
        right = (np.trace(whole) + 1.5) / (whole.sum() + 2)
        coin = np.where(np.eye(labels, dtype=bool), right, (1 - right) / (labels - 1))
        table[mine] = _borrowed(given[mine], _borrowed(whole[None], coin)[0])
    return table


def _borrowed(given: FloatArray, table: FloatArray) -> FloatArray:
    """Shares of the labels in counts (row, label, class), drawn to a table.

    The columns of a row are taken for draws from Dirichlet distributions around the table, whose
    strength is averaged over what it may be: less for a row that differs from the table.
    """
    from scipy.special import gammaln

    count = given.sum(axis=1)
    score = np.empty((len(_STRENGTHS), len(given)))
    for row, size in zip(score, _STRENGTHS, strict=True):
        cells = gammaln(given + size * table) - gammaln(size * table)
        row[:] = (cells.sum(axis=1) + gammaln(size) - gammaln(count + size)).sum(axis=1)
    weight = np.exp(score - score.max(axis=0))
    weight /= weight.sum(axis=0)
    share = np.zeros_like(given)
    for part, size in zip(weight, _STRENGTHS, strict=True):
        share += part[:, None, None] * (given + size * table) / (count[:, None] + size)
    return share
