"""Answers of people and models from tables, and who is which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crowdtree.columns import Column, Columns, read_columns
from crowdtree.errors import CrowdtreeError, listing, one_line
from crowdtree.judging.agreement import IntArray
from crowdtree.judging.question import QuestionAnswers
from crowdtree.learning.answers import (
    Answers,
    choice_codes,
    gold_codes,
    read_answers,
    read_gold,
    unknown_names,
)
from crowdtree.outcomes import check_answers
from crowdtree.text import plural, squeezed

EXTRA = ("question", "source", "version")
"""Columns that answers may have besides task, worker and label."""
PEOPLE = frozenset(
    ("", "person", "people", "human", "humans", "crowd", "annotator", "expert", "experts")
)
MODELS = frozenset(("model", "models", "llm", "ai", "machine", "classifier", "bot"))
"""Kinds of workers, in lower case."""


def read_questions(
    answers: Any,
    gold: Any,
    models: Any,
    columns: Mapping[str, str] | None,
    skip: Sequence[str],
) -> tuple[list[QuestionAnswers], tuple[str, ...]]:
    """Read the answers to each question, and notes on how they were understood."""
    table = read_columns(answers, ("task", "worker", "label"), EXTRA, "answers", columns)
    gold = table.gold if gold is None else gold
    if hasattr(gold, "truths"):
        raise CrowdtreeError(
            "gold: expected known items drawn at random, got an audit, which draws unsure items "
            "more often; give a table of known items"
        )
    table, base = _with_versions(table)
    machines = _models(table, base, models)
    plain = {role: column for role, column in table.column.items() if role not in EXTRA[1:]}
    names = () if gold is None or "question" in table else read_gold(gold, columns).values()
    read = read_answers(replace(table, column=plain), skip=skip, truths=names)
    workers = list(map(str, read.workers.tolist()))
    machine = np.array([name in machines for name in workers])
    people = int((~machine).sum())
    if not people:
        raise CrowdtreeError(
            f"answers: no people, only models ({listing(workers)}); add the answers of people"
        )
    if people == 1 and gold is None:
        raise CrowdtreeError(
            f"answers: one person only ({workers[int(machine.argmin())]!r}); add the answers of a "
            "second one, or gold"
        )
    notes = list(read.notes)
    truths = {} if gold is None else _gold_by_question(gold, read, columns)
    questions = [_question(read, q, machine, truths, notes) for q in range(len(read.questions))]
    return questions, tuple(notes)


# ---------------------------------------------------------------- who is a model


def _with_versions(table: Columns) -> tuple[Columns, dict[str, str]]:
    """Write versions behind the names of workers; the name without version of each worker."""
    who = [name.strip() for name in table["worker"]]
    if "version" not in table:
        return table, {name: name for name in who}
    version = [name.strip() for name in table["version"]]
    full = [f"{name} {at}" if name and at else name for name, at in zip(who, version, strict=True)]
    names = sorted(set(full))
    place = {name: i for i, name in enumerate(names)}
    code = np.array([place[name] if name else -1 for name in full], np.int32)
    column = {**table.column, "worker": Column(code, names)}
    return replace(table, column=column), dict(zip(full, who, strict=True))


def _models(table: Columns, base: Mapping[str, str], models: Any) -> set[str]:
    """Workers that are models: as `models` says, or else the answers themselves."""
    if models is None:
        return _kinds(table, base) if "source" in table else set()
    if isinstance(models, str) and not models.lower().endswith((".csv", ".tsv", ".parquet")):
        raise CrowdtreeError(
            f"models: expected a list of names, got {models!r}; write [{models!r}]"
        )
    if isinstance(models, list | tuple) and all(isinstance(name, str) for name in models):
        wanted = {name.strip() for name in models}
    else:
        workers = read_columns(models, ("worker", "source"), (), "models")
        wanted = _kinds(workers, {name.strip(): name.strip() for name in workers["worker"]})
    known = set(base) | set(base.values())
    if extra := sorted(wanted - known):
        raise unknown_names(
            "models: worker", extra, tuple(sorted(known)), "name workers as in the answers"
        )
    return {name for name, bare in base.items() if name in wanted or bare in wanted}


def _kinds(table: Columns, base: Mapping[str, str]) -> set[str]:
    """Workers whose kind is that of a model."""
    kind: dict[str, bool] = {}
    for worker, source in zip(table["worker"], table["source"], strict=True):
        name, word = worker.strip(), squeezed(source)
        if word not in PEOPLE | MODELS:
            raise CrowdtreeError(
                f"{table.name}: kind {one_line(source)} of worker {one_line(name)} is neither "
                "person nor model; correct it, or name the models with models=[...] (--models)"
            )
        if word and kind.setdefault(name, word in MODELS) != (word in MODELS):
            raise CrowdtreeError(
                f"{table.name}: worker {one_line(name)} is both a person and a model; give each a "
                "name of its own"
            )
    return {name for name in base if kind.get(name)}


# ---------------------------------------------------------------- questions and gold


def _question(
    read: Answers, q: int, machine: Any, truths: Mapping[str, dict[str, str]], notes: list[str]
) -> QuestionAnswers:
    question = read.questions[q]
    answers = np.full((read.n_workers, read.n_tasks), -1, np.int8)
    rows = read.question_column() == q
    answers[read.worker[rows], read.task[rows]] = read.label[rows]
    labels, gold = _coded(read, q, truths.get(question, {}), notes)
    names = list(map(str, read.workers.tolist()))
    people, models = np.flatnonzero(~machine).tolist(), np.flatnonzero(machine).tolist()
    return QuestionAnswers(
        question, labels, answers[people], [names[w] for w in people], answers[models],
        [names[w] for w in models], gold,
    )  # fmt: skip


def _coded(
    read: Answers, q: int, truths: dict[str, str], notes: list[str]
) -> tuple[tuple[str, ...], IntArray]:
    """Labels of a question, and the known one of each item.

    To the labels of a single question those are added that the gold alone has.
    """
    several = len(read.questions) > 1
    labels = check_answers(read.choices or None, read.questions)[q] if several else read.labels
    place = {name: i for i, name in enumerate(map(str, read.tasks.tolist()))}
    absent = [task for task in truths if task not in place]
    if absent:
        notes.append(f"{plural(len(absent), 'item')} of the gold without answers left out")
    if several:
        names = list(truths.values())
        column = Column(np.arange(len(names), dtype=np.int32), names)
        ask, where = np.zeros(len(names), np.int32), "gold"
        code = choice_codes(column, ask, (read.questions[q],), (labels,), where)
        gold = np.full(read.n_tasks, -1, np.int32)
        for task, label in zip(truths, code.tolist(), strict=True):
            if task in place:
                gold[place[task]] = label
        return labels, gold
    known = {squeezed(name) for name in labels}
    extra = sorted({name for name in truths.values() if squeezed(name) not in known})
    if extra and len(extra) == len(set(truths.values())):
        raise unknown_names("gold: label", extra, labels, "correct it")
    if extra:
        notes.append(f"labels that occur in the gold alone: {listing(map(repr, extra))}")
    return (*labels, *extra), gold_codes(read, truths, (*labels, *extra))


def _gold_by_question(
    gold: Any, read: Answers, columns: Mapping[str, str] | None
) -> dict[str, dict[str, str]]:
    """Known labels of items by question."""
    if len(read.questions) == 1:
        return {read.questions[0]: read_gold(gold, columns)}
    if isinstance(gold, Mapping) and "question" not in gold:
        raise CrowdtreeError(
            f"gold: column question is missing, and there are {len(read.questions)} questions; "
            "give the columns task, question, label"
        )
    table = read_columns(gold, ("task", "question", "label"), (), "gold")
    column = [name.strip() for name in table["question"]]
    if extra := sorted(set(column) - set(read.questions)):
        raise unknown_names("gold: question", extra, read.questions, "correct it")
    return {
        name: read_gold(table.select(np.array([other == name for other in column])), columns)
        for name in dict.fromkeys(column)
    }
