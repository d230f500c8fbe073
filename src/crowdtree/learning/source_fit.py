"""Items about which several sources answer that err together (docs/model.md, section 9.5).

Every worker and every source has tables (:mod:`crowdtree.learning.source_tables`). The answers of a
group (models, experts, the people of one source) share errors, so each group counts less the more
it has, and the less the more the others have (:class:`Dependence`). What is left out (an answer of
a person, then the class of known items) tells how much less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.problem import Problem
from crowdtree.learning.answers import Answers
from crowdtree.learning.copies import find_copies, merge_copies
from crowdtree.learning.label_models import LabelFit
from crowdtree.learning.passes import Votes, with_gold
from crowdtree.learning.source_dependence import Dependence, LeftOut, fit_dependence
from crowdtree.learning.source_problem import CommonCauses, KnownAnswers, count_answers, fit_causes
from crowdtree.learning.source_tables import Layout, Tables, drawn_to, tables_of_kinds

IntArray = NDArray[np.int32]


class Usual(NamedTuple):
    """Dependence before any answer is seen: within people, within models, between groups, ..."""

    people: float
    models: float
    between: float
    across: float = 0.0


ONE_QUESTION, SEVERAL = Usual(0.15, 0.5, 0.3), Usual(0.1, 0.3, 0.05, 0.02)
"""One question may be hard about an item; several are rarely all so."""
MAX_OWN_CELLS = 1_000_000
"""Cells of the tables of all workers; of more, every worker has the table of the source."""
_OPEN_WEIGHT = 0.1  # of an item of unknown class in the tables of one question, at most
_STEPS = 2  # of expectation maximisation; with discounts, more of them let classes collapse
_FOLDS = 5
_ROUNDS = 2  # dependence and tables in turn
_LEAST_PEOPLE, _MAX_PEOPLE = 20, 2000  # their answers that are left out for the dependence


class Refit(NamedTuple):
    """Tables that did not use the class of some items, and what they say of these."""

    left_out: LeftOut
    tables: Tables


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceFit(LabelFit):
    """Items that several sources answered about, with what their classes rest on.

    `base` is the problem of questions about the classes, before anything was learned; None of one
    question whose answers name the classes. `crowd` is the fit that takes workers for independent
    given the class, whatever their source, and `crowd_share` its share in the posteriors.
    """

    layout: Layout
    tables: Tables
    dependence: Dependence
    causes: CommonCauses
    held_out: tuple[Refit, ...]
    base: Problem | None = None
    crowd: LabelFit | None = None
    crowd_share: float = 0.0

    def averaged(self, own: FloatArray, of_crowd: FloatArray) -> FloatArray:
        """Average posteriors by the sources with those by the crowd."""
        return (1 - self.crowd_share) * own + self.crowd_share * of_crowd

    def expected(self, asked: Answers) -> FloatArray:
        """Posteriors of other items by the sources; a worker that is not known is typical."""
        sources = asked.sources
        assert sources is not None
        asked = merge_copies(asked, self.copies)
        first = len(self.tables.chance) - self.tables.sources
        row = first + np.append(sources.codes(asked.workers), sources.usual).astype(np.int32)
        row[: len(self.row)] = self.row
        evidence = self.tables.evidence(asked, row, np.arange(asked.n_tasks))
        return np.exp(evidence.posterior(np.log(self.tables.share), self.dependence))


def fit_sources(
    answers: Answers, gold: IntArray, layout: Layout, base: Problem | None = None
) -> SourceFit:
    """Fit tables, dependence and posteriors; `gold` is -1 where the class is unknown."""
    copies = find_copies(answers) if len(answers.questions) == 1 else ()
    crowd = _Crowd(merge_copies(answers, copies), layout)
    known = np.flatnonzero(gold >= 0)
    folds = min(_FOLDS, len(known))
    fold = np.random.default_rng(0).permutation(len(known)) % max(folds, 1)
    usual = dependence = crowd.dependence_of_people()
    blind, causes = np.zeros((len(gold), len(layout.prior))), CommonCauses()
    parts: list[Refit] = []
    for _ in range(_ROUNDS if folds else 0):
        parts = [crowd.refit_without(known[fold == f], gold, dependence) for f in range(folds)]
        every = LeftOut.joined([part.left_out for part in parts])
        dependence = fit_dependence(every, usual, start=dependence)
    for part in parts:  # nothing that the posterior rests on used the class
        others = ~np.isin(every.items, part.left_out.items)
        near = fit_dependence(every, usual, others, dependence) if others.any() else usual
        blind[part.left_out.items] = np.exp(part.left_out.posterior(near))
    if parts:
        causes = fit_causes([crowd.answers_to(part, gold) for part in parts])
    posterior, tables = crowd.learn(gold, dependence)
    blind[gold < 0] = posterior[gold < 0]
    return SourceFit(
        with_gold(posterior, gold),
        blind,
        row=crowd.row,
        copies=copies,
        layout=layout,
        tables=tables,
        dependence=dependence,
        causes=causes,
        held_out=tuple(parts),
        base=base,
    )


def tables_by(answers: Answers, fit: SourceFit, stated: FloatArray) -> Tables:
    """Tables by the stated probabilities of the classes."""
    crowd = _Crowd(merge_copies(answers, fit.copies), fit.layout)
    return crowd.tables(stated, bool(fit.held_out))


class _Crowd:
    """Answers with the row of every worker, and the source and group of every row."""

    def __init__(self, answers: Answers, layout: Layout) -> None:
        sources = answers.sources
        assert sources is not None
        self.answers, self.sources, self.layout = answers, sources, layout
        self.source = sources.codes(answers.workers)
        own = answers.n_workers * layout.right.size <= MAX_OWN_CELLS
        self.row = np.arange(answers.n_workers, dtype=np.int32) if own else self.source
        rows = self.source if own else np.zeros(0, np.int32)
        self.source_of_row = np.append(rows, np.arange(len(sources.names), dtype=np.int32))
        self.alone = np.bincount(self.source, minlength=len(sources.names)) == 1

    @cached_property
    def votes(self) -> Votes:
        """The answers by row and question."""
        answers, width = self.answers, len(self.answers.questions)
        cell = (self.row[answers.worker] * width + answers.question_column()).astype(np.int32)
        cells = len(self.source_of_row) * width
        return Votes(answers.start, cell, answers.label, cells, len(self.layout.right))

    @property
    def usual_dependence(self) -> Dependence:
        """Dependence before any answer is seen."""
        groups = self.sources.groups
        usual = SEVERAL if self.layout.several else ONE_QUESTION
        within = np.full(len(np.unique(groups)), usual.people)
        within[groups[np.array(self.sources.kinds) == "model"]] = usual.models
        return Dependence(within, usual.between, usual.across)

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
        others, dependence = _Crowd(rest, self.layout), usual
        items = answers.task[chosen].astype(np.intp)
        source, question = self.source[answers.worker[chosen]], answers.question_column()[chosen]
        unknown = np.full(answers.n_tasks, -1, np.int32)
        for _ in range(_ROUNDS):
            _, tables = others.learn(unknown, dependence)
            evidence = tables.evidence(rest, others.row, items)
            seen = tables.of_sources[source, answers.label[chosen], question]
            left_out = LeftOut(items, evidence, tables.log_shares(len(items)), seen)
            dependence = fit_dependence(left_out, usual)
        return dependence

    def refit_without(
        self, items: NDArray[np.intp], gold: IntArray, dependence: Dependence
    ) -> Refit:
        """Learn without the class of some known items."""
        rest = gold.copy()
        rest[items] = -1
        _, tables = self.learn(rest, dependence)
        seen = np.eye(len(tables.share))[gold[items]]
        evidence = tables.evidence(self.answers, self.row, items)
        return Refit(LeftOut(items, evidence, tables.log_shares(len(items)), seen), tables)

    def answers_to(self, part: Refit, gold: IntArray) -> KnownAnswers:
        """The answers about known items, for the model of common causes."""
        tables, items = part.tables, part.left_out.items
        counts = count_answers(self.answers.items(items), self.source, tables.sources)
        share = np.log(tables.share)
        return KnownAnswers(
            counts, tables.of_sources, ~self.layout.right, share, ~self.alone, gold[items]
        )

    def learn(self, gold: IntArray, dependence: Dependence) -> tuple[FloatArray, Tables]:
        """Posteriors of all items and tables, with the classes that are given."""
        known, everything = gold >= 0, np.arange(len(gold))
        count = int(np.count_nonzero(known))
        weight = 1.0
        if count and not self.layout.several:
            weight = min(_OPEN_WEIGHT, count / max(len(gold) - count, 1))
        posterior = self.start(dependence) * (not count)
        with_gold(posterior, gold)
        for _ in range(_STEPS + 1):
            tables = self.tables(posterior * np.where(known, 1.0, weight)[:, None], count > 0)
            evidence = tables.evidence(self.answers, self.row, everything)
            posterior = np.exp(evidence.posterior(np.log(tables.share), dependence))
            with_gold(posterior, gold)
        return posterior, tables

    def start(self, dependence: Dependence) -> FloatArray:
        """Posteriors by the table that is assumed, each answer as far as its group counts."""
        answers, share = self.answers, self.layout.prior
        assumed = self.layout.start(share)
        nobody, every = np.zeros(answers.n_workers, np.int32), np.arange(answers.n_tasks)
        evidence = assumed.evidence(answers, nobody, every)
        group = self.sources.groups[self.source][answers.worker]
        return np.exp(replace(evidence, group=group).posterior(np.log(share), dependence))

    def tables(self, weight: FloatArray, known: bool) -> Tables:
        """Tables from the weight of each class for each item."""
        layout, sources = self.layout, len(self.sources.names)
        shape = len(self.source_of_row), len(self.answers.questions), *layout.right[:, 0].shape
        given = np.moveaxis(self.votes.counts(weight).reshape(shape), 1, 2)
        of_source = np.zeros((sources, *given.shape[1:]))
        np.add.at(of_source, self.source_of_row, given)
        chance = np.zeros_like(given)
        typical = tables_of_kinds(of_source, np.array(self.sources.kinds), layout, known)
        for code, table in enumerate(typical):
            mine = self.source_of_row == code
            if self.alone[code]:
                chance[mine] = table
            else:
                chance[mine] = drawn_to(given[mine], table, layout.right)
        chance[len(chance) - sources :] = typical
        items, size = weight.sum(axis=0), len(layout.prior)
        share = (items + size * layout.prior) / (items.sum() + size)
        group = self.sources.groups[self.source_of_row]
        return Tables(chance, group, share, sources, known)
