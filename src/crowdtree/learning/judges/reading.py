"""Answers of people and models from tables, and who is which."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from crowdtree.core.columns import Column, Columns, read_columns
from crowdtree.core.errors import CrowdtreeError, listing, one_line
from crowdtree.core.outcomes import YES_NO as PLAIN
from crowdtree.core.outcomes import check_answers
from crowdtree.core.text import plural, squeezed
from crowdtree.learning.answers import (
    YES_NO,
    Answers,
    gold_codes,
    read_answers,
    read_gold,
    unknown_names,
)
from crowdtree.learning.judges.question import QuestionAnswers
from crowdtree.learning.worker_sources import KINDS

EXTRA = ("question", "source", "version", "kind")
"""Columns that answers may have besides task, worker and label."""


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
    absent = set(chain(*truths.values())) - set(map(str, read.tasks))
    if absent:
        notes.append(f"{plural(len(absent), 'item')} of the gold without answers left out")
    questions = [
        _question(read, q, machine, truths.get(name, {}), notes)
        for q, name in enumerate(read.questions)
    ]
    return questions, tuple(notes)


# ---------------------------------------------------------------- who is a model


def _with_versions(table: Columns) -> tuple[Columns, dict[str, str]]:
    """Write versions behind the names of workers; the name without version of each worker."""
    who = [name.strip() for name in table["worker"]]
    if "version" not in table:
        return table, {name: name for name in who}
    version = [name.strip() for name in table["version"]]
    full = [f"{name} {at}" if name and at else name for name, at in zip(who, version, strict=True)]
    names, code = np.unique(full, return_inverse=True)
    column = {**table.column, "worker": Column(code.astype(np.int32), names.tolist())}
    return replace(table, column=column), dict(zip(full, who, strict=True))


def _models(table: Columns, base: Mapping[str, str], models: Any) -> set[str]:
    """Workers that are models: as `models` says, or else the answers themselves."""
    if models is None:
        return _kinds(table, base) if "kind" in table or "source" in table else set()
    if isinstance(models, str) and not models.lower().endswith((".csv", ".tsv", ".parquet")):
        raise CrowdtreeError(
            f"models: expected a list of names, got {models!r}; write [{models!r}]"
        )
    if isinstance(models, list | tuple) and all(isinstance(name, str) for name in models):
        wanted = {name.strip() for name in models}
    else:
        workers = read_columns(models, ("worker",), EXTRA[1:], "models")
        wanted = _kinds(workers, {name.strip(): name.strip() for name in workers["worker"]})
    known = set(base) | set(base.values())
    for pattern in [name for name in wanted if name not in known]:  # such as gpt-*
        if matches := fnmatch.filter(known, pattern):
            wanted = (wanted - {pattern}).union(matches)
    if extra := sorted(wanted - known):
        raise unknown_names(
            "models: worker", extra, tuple(sorted(known)), "name workers as in the answers"
        )
    return {name for name, bare in base.items() if name in wanted or bare in wanted}


def _kinds(table: Columns, base: Mapping[str, str]) -> set[str]:
    """Workers whose kind is that of a model."""
    kind: dict[str, bool] = {}
    role = "kind" if "kind" in table else "source"
    if role not in table:
        raise CrowdtreeError(f"{table.name}: expected the columns worker and kind; add them")
    for worker, given in zip(table["worker"], table[role], strict=True):
        name, word = worker.strip(), squeezed(given)
        if word and word not in KINDS:
            raise CrowdtreeError(
                f"{table.name}: kind {one_line(given)} of worker {one_line(name)} is neither "
                "person nor model; add a column kind, or name the models with models=[...] "
                "(--models)"
            )
        is_model = KINDS.get(word) == "model"
        if word and kind.setdefault(name, is_model) != is_model:
            raise CrowdtreeError(
                f"{table.name}: worker {one_line(name)} is both a person and a model; give each a "
                "name of its own"
            )
    return {name for name in base if kind.get(name)}


# ---------------------------------------------------------------- questions and gold


def _question(
    read: Answers, q: int, machine: Any, truths: dict[str, str], notes: list[str]
) -> QuestionAnswers:
    """Answers to a question; labels that the gold alone has are added to its own."""
    question, several = read.questions[q], len(read.questions) > 1
    labels = check_answers(read.choices or None, read.questions)[q] if several else read.labels
    if labels == PLAIN:
        truths = {task: PLAIN[YES_NO[w]] if (w := squeezed(label)) in YES_NO else label
                  for task, label in truths.items()}  # fmt: skip
    known = set(map(squeezed, labels))
    extra = sorted({name for name in truths.values() if squeezed(name) not in known})
    where = f"gold: question {one_line(question)}: label" if several else "gold: label"
    if extra and len(extra) == len(set(truths.values())):
        raise unknown_names(where, extra, labels, "correct it")
    if extra:
        notes.append(f"{where}s without an answer: {listing(map(one_line, extra))}")
    labels = (*labels, *extra)
    rows, names = read.question_column() == q, np.array(list(map(str, read.workers)))
    answers = np.full((read.n_workers, read.n_tasks), -1, np.int8)
    answers[read.worker[rows], read.task[rows]] = read.label[rows]
    return QuestionAnswers(
        question, labels, answers[~machine], names[~machine].tolist(), answers[machine],
        names[machine].tolist(), gold_codes(read, truths or None, labels),
    )  # fmt: skip


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
