"""Answers that come in after a fit: updates of what was learned, and classes of other items.

Incremental EM (Neal and Hinton 1998): items with new answers get the posterior that the fitted
models give to all their answers, and the expected counts follow. A refit differs only in the
parameters of the models and in items without new answers, whose posteriors would move a little.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.errors import CrowdtreeWarning
from crowdtree.learning.answers import Answers, as_yes_no, read_answers, sort_answers
from crowdtree.learning.copies import merge_copies
from crowdtree.learning.learned_problem import (
    crowd_confusion,
    label_numbers,
    quietly_replaced,
    stated,
    with_table,
)
from crowdtree.learning.passes import Votes
from crowdtree.learning.skills import ClassFit
from crowdtree.learning.source_fit import SourceFit
from crowdtree.learning.worker_tracker import SPREAD

if TYPE_CHECKING:
    from crowdtree.learning.label_models import LabelFit
    from crowdtree.learning.model import Learned

Row = tuple[int, int, int]  # question, worker, label


def update(learned: Learned, source: Any) -> None:
    """Add new answers to a result, which changes; no model is fitted again."""
    new, base = _read(learned, source), learned.answers  # a refused update changes nothing
    for note in new.notes:
        warnings.warn(f"update: {note}", CrowdtreeWarning, stacklevel=3)
    answers, touched = _merged(learned, new)
    room = answers.n_tasks - base.n_tasks
    learned.answers = answers
    learned.gold = np.append(learned.gold, np.full(room, -1)).astype(np.int32)
    if learned.labelling is not None:
        _update_labels(learned, learned.labelling, touched[learned.gold[touched] < 0])
    else:
        _update_classes(learned, learned.class_fit, base, touched)
    if learned.checked is not None:
        learned.checked = np.append(learned.checked, np.full(room, -1)).astype(np.int32)


def classify(learned: Learned, source: Any) -> tuple[list[str], FloatArray]:
    """Posteriors of the items of other answers; their workers may be known or new."""
    read = _read(learned, source)
    asked = with_workers_of(learned, read if learned.kind == "classes" else read.one_each())
    if learned.labelling is not None:
        posterior = _average(
            learned.labelling, _model_posteriors(learned, learned.labelling, asked), asked
        )
    else:
        posterior = class_posteriors(learned, asked)
    if learned.discount is not None:
        posterior = learned.discount.stated(posterior, np.diff(asked.start))
    return list(map(str, read.tasks.tolist())), posterior


def with_workers_of(learned: Learned, answers: Answers) -> Answers:
    """Number the workers as those of a result, -1 where they are new."""
    index = learned.worker_index
    code = np.array([index.get(str(name), -1) for name in answers.workers.tolist()], np.int32)
    return answers.by_worker(code, learned.answers.workers)


def _read(learned: Learned, source: Any) -> Answers:
    """Read answers with the questions and labels that were learned."""
    known, labels = learned.answers, learned.kind == "labels"
    read = read_answers(
        source,
        questions=None if labels else known.questions,
        labels=known.labels if labels else None,
        choices=dict(zip(known.questions, known.choices, strict=False)),
        duplicates="all",
    )
    return read if labels else as_yes_no(read)


def _merged(learned: Learned, new: Answers) -> tuple[Answers, NDArray[np.intp]]:
    """All answers, those of a worker that are given again replaced; items with new answers."""
    base, keep_repeats = learned.answers, learned.keep_repeats
    tasks, task = _with_names(base.tasks, learned.task_index, new.tasks)
    workers, worker = _with_names(base.workers, learned.worker_index, new.workers)
    question = None
    if base.question is not None:
        question = np.append(base.question, new.question_column())
    columns = replace(
        base,
        sources=None if base.sources is None else base.sources.with_workers(new.sources),
        tasks=tasks,
        workers=workers,
        worker=np.append(base.worker, worker[new.worker]),
        label=np.append(base.label, new.label),
        question=question,
    )
    of_task = np.append(base.task, task[new.task])
    answers = sort_answers(columns, of_task, "all" if keep_repeats else "last")
    return answers.one_each() if learned.kind == "labels" else answers, np.unique(task)


def _with_names(
    names: NDArray[Any], index: dict[str, int], more: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Names with new ones added, and the place of each of `more`."""
    new = [name for name in map(str, more.tolist()) if name not in index]
    index = index | {name: len(index) + i for i, name in enumerate(new)}
    code = np.array([index[str(name)] for name in more.tolist()], np.int32)
    return (np.append(names.astype(object), new) if new else names), code


# ---------------------------------------------------------------- one question


def _update_labels(learned: Learned, labelling: LabelFit, touched: NDArray[np.intp]) -> None:
    """Move items to their new posteriors; everything else follows from these."""
    answers, asked = learned.answers, learned.answers.items(touched)
    parts = _model_posteriors(learned, labelling, asked)
    average = _average(labelling, parts, asked)
    row = np.append(labelling.row, np.full(answers.n_workers - len(labelling.row), -1))
    labelling = replace(
        labelling,
        posterior=_with_rows(labelling.posterior, answers.n_tasks, touched, average),
        blind=_with_rows(labelling.blind, answers.n_tasks, touched, average),
        models=tuple(
            replace(m, posterior=_with_rows(m.posterior, answers.n_tasks, touched, part))
            for m, part in zip(labelling.models, parts, strict=False)
        ),
        row=row.astype(np.int32) if labelling.models else labelling.row,
    )
    numbers = label_numbers(answers, labelling, learned.gold)
    learned.problem = quietly_replaced(numbers.problem, loss=learned.problem.loss)
    learned.posterior, learned.fit, learned.counts = numbers[1:]
    learned.labelling = labelling


def _with_rows(
    posterior: FloatArray, items: int, rows: NDArray[np.intp], values: FloatArray
) -> FloatArray:
    """Posteriors of more items, with some rows replaced."""
    whole = np.zeros((items, posterior.shape[1]))
    whole[: len(posterior)] = posterior
    whole[rows] = values
    return whole


def _average(labelling: LabelFit, parts: list[FloatArray], asked: Answers) -> FloatArray:
    """Mean of the models' posteriors and of the shares of the votes, as in the fit."""
    shares = [asked.votes.shares()] if labelling.models else []
    return np.asarray(np.mean([*shares, *parts], axis=0))


def _model_posteriors(learned: Learned, labelling: LabelFit, asked: Answers) -> list[FloatArray]:
    """Posteriors of items under each model; a worker it does not know (-1) is a typical one.

    Without models, a worker's table is their expected answers, filled up with the crowd's.
    """
    if isinstance(labelling, SourceFit):
        own = labelling.expected(replace(asked, sources=learned.answers.sources))
        if labelling.crowd is None:
            return [own]
        parts = _model_posteriors(learned, labelling.crowd, asked)
        return [labelling.averaged(own, _average(labelling.crowd, parts, asked))]
    if labelling.models:
        asked = merge_copies(asked, labelling.copies)
        tables = [(m.table, m.typical, m.log_prior) for m in labelling.models]
        row = labelling.row
    else:
        crowd = crowd_confusion(learned.counts)
        filled = learned.counts + crowd
        table = np.log(filled / filled.sum(axis=1, keepdims=True))
        tables = [(table, np.log(crowd), np.log(np.maximum(learned.problem.prior, 1e-300)))]
        row = np.arange(len(table), dtype=np.int32)
    known = (asked.worker >= 0) & (asked.worker < len(row))
    unknown, gold = len(tables[0][0]), np.full(asked.n_tasks, -1, np.int32)
    worker = np.full(asked.n_answers, unknown, np.int32)
    worker[known] = row[asked.worker[known]]
    worker[worker < 0] = unknown
    votes = Votes(asked.start, worker, asked.label, unknown + 1, len(asked.labels))
    posteriors = []
    for table, typical, log_prior in tables:
        posterior = np.empty((asked.n_tasks, len(asked.labels)))
        whole = np.concatenate([table, typical[None]])
        votes.expect(whole, log_prior, gold, posterior, np.empty(whole.shape))
        posteriors.append(posterior)
    return posteriors


# ---------------------------------------------------------------- questions about the classes


def class_posteriors(learned: Learned, asked: Answers) -> FloatArray:
    """Posteriors of items by the table; a new worker (-1) is a typical one."""
    fit = learned.class_fit
    score = np.tile(np.log(np.maximum(learned.problem.prior, 1e-300)), (asked.n_tasks, 1))
    skill = np.append(fit.skill, 0.0)[asked.worker]
    rows = fit.log_likelihood(asked.question_column(), skill, asked.label)
    np.add.at(score, asked.task, rows)
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _update_classes(
    learned: Learned, fit: ClassFit, base: Answers, touched: NDArray[np.intp]
) -> None:
    """Move items to their new posteriors one by one, and the counts of cells and skills along."""
    answers, problem = learned.answers, learned.problem
    new = answers.n_workers - len(fit.skill)
    fit = learned.fit = replace(
        deepcopy(fit),  # results that share it must not change
        skill=np.append(fit.skill, np.zeros(new)),
        skill_sd=np.append(fit.skill_sd, np.full(new, fit.spread or SPREAD)),
        posterior=_with_rows(fit.posterior, answers.n_tasks, touched[:0], fit.posterior[:0]),
    )
    for item in touched:
        before = fit.posterior[item].copy()
        if learned.gold[item] < 0:
            fit.posterior[item] = class_posteriors(learned, answers.items(np.array([item])))[0]
        after = fit.posterior[item]
        old, now = _rows(base, item), _rows(answers, item)
        for row in dict.fromkeys([*old, *now]):
            _shift(fit, row, now.count(row) * after - old.count(row) * before)
    error = fit.error if learned.assumed or not problem.is_yes_no else np.minimum(fit.error, 0.499)
    learned.problem = with_table(problem, fit, error)
    count, discount = np.diff(answers.start), learned.fitted_discount
    learned.posterior = fit.posterior
    if discount is not None:
        learned.posterior = stated(fit.posterior, learned.gold, count, discount)


def _rows(answers: Answers, item: np.intp) -> list[Row]:
    """Answers about an item; none about one that is new."""
    if item >= answers.n_tasks:
        return []
    at = slice(int(answers.start[item]), int(answers.start[item + 1]))
    columns = answers.question_column()[at], answers.worker[at], answers.label[at]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _shift(fit: ClassFit, row: Row, mass: FloatArray) -> None:
    """Count an answer with some mass on each class, in its cells and in the worker's skill."""
    question, worker, label = row
    tilt, right = fit.tilt[question], fit.right_answer[label, question]
    rate = 1 / (1 + np.exp(-fit.cell[question] - tilt * fit.skill[worker]))
    slope, bend = mass * tilt * (right - rate), mass * tilt**2 * rate * (1 - rate)
    before, counted = fit.error[question], mass * fit.definite[question]
    fit.wrong[question] = np.maximum(fit.wrong[question] + counted * ~right, 1e-3)
    fit.right[question] = np.maximum(fit.right[question] + counted * right, 1e-3)
    after = fit.error[question]
    fit.cell[question] -= np.log(after / (1 - after)) - np.log(before / (1 - before))
    fit.count(question, label, mass)
    precision = max(float(fit.skill_sd[worker]) ** -2 + float(bend.sum()), 1e-6)
    fit.skill[worker] += float(np.clip(slope.sum() / precision, -1, 1))
    fit.skill_sd[worker] = precision**-0.5
