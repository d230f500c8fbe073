"""Learn a problem, the reliability of workers and labels from answers (docs/model.md, section 9).

``learn`` takes answers with or without known classes. Its result holds a problem for design, can be
updated with new answers, and states how uncertain its numbers are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_call, named_options
from crowdtree.core.columns import Columns
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.problem import Problem
from crowdtree.core.text import percent, plural, squeezed
from crowdtree.learning import answers as reading
from crowdtree.learning.answers import Answers, Duplicates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crowdtree.learning.label_models import LabelFit
    from crowdtree.learning.model import Learned
    from crowdtree.learning.skills import ClassFit

__all__ = ["learn"]


@named_options
def learn(
    answers: Any,
    gold: Any = None,
    *,
    problem: Problem | None = None,
    classes: Sequence[str] | None = None,
    method: str = "ensemble",
    level: float = 0.95,
    certain: float = 0.95,
    duplicates: Duplicates = "last",
    loss: Any = None,
    columns: Mapping[str, str] | None = None,
    skip: Sequence[str] = (),
    sources: Any = None,
) -> Learned:
    """Learn prior, outcomes, tables of answers, skills and labels from answers.

    Parameters
    ----------
    answers
        Columns ``task, question, worker, label`` (``task, worker, label`` for one question): a
        frame (polars, pandas, pyarrow), a mapping of columns, the path of a CSV or Parquet file, or
        a list of them. Other layouts: :func:`crowdtree.load`.
    gold
        Known classes: columns ``task, label``, a mapping from task to class, a path, or a
        :class:`crowdtree.Audit`, whose checks are weighted by the chances with which they were
        drawn. May cover some of the items only. By default what the answers mark as known.
    problem
        Known classes, questions, answers and outcomes. Gold is then optional. Without it, answers
        other than yes and no are those that occur.
    classes
        Names of the classes in their order; otherwise those of the gold or of the labels, sorted.
    method
        For one question: ``"ensemble"`` (the average of several models), ``"dawid-skene"``
        or ``"majority"``.
    level
        Level of the credible intervals.
    certain
        A learned outcome is ``-`` unless its answer is the likelier one with this probability.
    duplicates
        Which answer counts when a worker answers the same thing twice (with a warning):
        ``"last"``, ``"first"``, ``"all"``, or ``"error"``. Of one question whose answers name the
        classes, ``"all"`` answers of a worker about an item count as one, the most frequent (the
        latest of equals): who repeats an answer tells nothing new.
    loss
        What mistakes cost, in any spelling of :func:`crowdtree.core.loss.make_loss`; by default
        what the problem says. Labels then minimise the expected loss.
    columns
        What columns are called, such as ``{"task": "ticket", "worker": "who"}``; usual names are
        recognised. ``learned.answers.notes`` says how the answers were read.
    skip
        Answers that say nothing, besides those that always do (``"?"``, ``"unsure"``, ...).
    sources
        Who belongs to which source of answers (people, an expert, a model): a mapping from workers
        to sources, or a table ``worker, source`` and, as far as known, ``kind`` and ``price``.
        By default a column ``source`` of the answers. Every source has a table of its own, and
        sources that err together count less (:mod:`crowdtree.learning.source_fit`).

    Returns
    -------
    Learned

    References
    ----------
    Dawid and Skene (1979); Hovy and others (2013).

    Examples
    --------
    Three workers, the last of whom answers by coin:

    >>> answers = {"task": [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4],
    ...            "worker": ["ann", "ben", "cy"] * 4,
    ...            "label": ["cat", "cat", "dog", "dog", "dog", "dog",
    ...                      "cat", "cat", "cat", "dog", "dog", "cat"]}
    >>> learned = learn(answers)
    >>> learned.labels
    {'1': 'cat', '2': 'dog', '3': 'cat', '4': 'dog'}
    >>> learned.workers["ann"].skill > learned.workers["cy"].skill
    True
    """
    check_call(learn, locals())
    for name, value in (("level", level), ("certain", certain)):
        if not 0.5 <= value < 1:
            raise CrowdtreeError(
                f"{name}: expected a probability from 0.5 to below 1, got {value!r}"
            )
    if problem is not None and classes is not None:
        raise CrowdtreeError("classes: the problem names them already; give one of the two")
    if gold is None and isinstance(answers, Columns):
        gold = answers.gold
    truths = None if gold is None else reading.read_gold(gold, columns)
    read = reading.read_answers(
        answers,
        questions=problem.questions if problem else None,
        choices=dict(zip(problem.questions, problem.answers, strict=True)) if problem else None,
        duplicates=duplicates,
        columns=columns,
        skip=skip,
        classes=list(map(str, (problem.classes if problem else classes) or ())),
        truths=(truths or {}).values(),
        sources=sources,
    )
    if read.sources is not None and len(read.sources.names) == 1:
        read = replace(read, sources=None)
    absent = len(set(truths or ()) - set(map(str, read.tasks.tolist())))
    if absent:
        note = f"{plural(absent, 'item')} of the gold without answers left out"
        read = replace(read, notes=(*read.notes, note))
    options: dict[str, Any] = {"method": method, "level": level, "certain": certain}
    weight = reading.gold_weights(read, gold)
    learned = _learned(read, truths, problem, classes, duplicates == "all", weight, **options)
    return learned if loss is None else learned.with_loss(loss)


def _learned(
    read: Answers,
    truths: dict[str, str] | None,
    problem: Problem | None = None,
    classes: Sequence[str] | None = None,
    keep_repeats: bool = True,
    weight: FloatArray | None = None,
    *,
    method: str,
    level: float,
    certain: float,
) -> Learned:
    """Learn from answers that were read; of other ones, repeats were resolved before."""
    from crowdtree.learning import model

    if problem is None and len(read.questions) == 1 and _answers_are_classes(read, truths, classes):
        read = _relabelled(read.one_each() if keep_repeats else read, classes)
        fields = _learn_labels(read, truths, method, weight)
    elif method == "ensemble":
        if problem is None and truths:
            read = replace(read, notes=(*read.notes, *_unseen_classes(read, truths)))
        read = reading.as_yes_no(read)
        fields = _learn_classes(read, truths, problem, classes, certain, weight)
    else:
        raise CrowdtreeError(
            f"method: {method!r} is for one question whose answers name the classes; leave it out"
        )
    options: dict[str, Any] = {"method": method, "level": level, "certain": certain}
    if problem is None:
        options["classes"] = fields["problem"].classes
    return model.Learned(
        **fields,
        refit=partial(_learned, problem=problem, **options),
        level=level,
        keep_repeats=keep_repeats,
        assumed=problem,
        gold_weight=weight,
    )


def _unseen_classes(read: Answers, truths: dict[str, str]) -> list[str]:
    """Say how many items may be of classes that the gold lacks (Good 1953).

    Items drawn at random are of such classes about as often as the gold has classes with one item.
    """
    answered = set(map(str, read.tasks.tolist()))
    known = Counter(str(truth) for task, truth in truths.items() if task in answered)
    once = list(known.values()).count(1)
    if not once:
        return []
    return [
        f"the gold has one item each of {plural(once, 'class', 'classes')}, so that about "
        f"{percent(once / known.total())} of the items may be of classes that it lacks; their "
        "labels are wrong, which no estimate shows (a problem names all classes)"
    ]


def _answers_are_classes(
    read: Answers, truths: dict[str, str] | None, classes: Sequence[str] | None
) -> bool:
    """Whether the answers name classes, rather than say yes or no about a class."""
    names = map(str, classes) if classes is not None else (truths or {}).values()
    keys = set(map(squeezed, names))
    return not keys or bool(keys & set(map(squeezed, read.labels)))


def _learn_labels(
    read: Answers, truths: dict[str, str] | None, method: str, weight: FloatArray | None
) -> dict[str, Any]:
    """Fields of a result from one question whose answers name the classes."""
    from crowdtree.learning import labels

    if len(read.labels) < 2:
        raise CrowdtreeError(
            f"answers: expected two labels or more, got {read.labels[0]!r} only; name both with "
            'classes=["...", "..."] (--class) if the other one exists'
        )
    gold = reading.gold_codes(read, truths, read.labels)
    if read.n_workers < 2 and not (gold >= 0).any():
        raise CrowdtreeError(
            f"answers: one worker only ({read.workers[0]!s}); nothing tells how often a single "
            "worker errs, add workers or give gold"
        )
    return _with_labelling(read, labels.fit_labels(read, gold, method, weight), gold, "labels")


def _with_labelling(read: Answers, fit: LabelFit, gold: Any, kind: str) -> dict[str, Any]:
    """Fields of a result whose classes are stated through what is known of crowds."""
    from crowdtree.learning import learned_problem

    return {
        **learned_problem.label_numbers(read, fit, gold)._asdict(),
        "kind": kind,
        "answers": read,
        "trace": fit.trace,
        "gold": gold,
        "labelling": fit,
        "fitted_discount": fit.crowd_map,
        "converged": fit.converged,
    }


def _relabelled(read: Answers, classes: Sequence[str] | None) -> Answers:
    if classes is None:
        return read
    names = tuple(map(str, classes))
    if len(names) > reading.MAX_LABELS:
        raise CrowdtreeError(f"classes: expected at most {reading.MAX_LABELS}, got {len(names)}")
    extra = [name for name in read.labels if name not in names]
    if extra:
        raise reading.unknown_names("answers: label", extra, names, "add it to classes")
    code = np.array([names.index(name) for name in read.labels], np.int8)
    return replace(read, labels=names, label=code[read.label])


def _learn_classes(
    read: Answers,
    truths: dict[str, str] | None,
    problem: Problem | None,
    classes: Sequence[str] | None,
    certain: float,
    weight: FloatArray | None,
) -> dict[str, Any]:
    """Fields of a result from questions about the classes."""
    from crowdtree.learning import classes as classing
    from crowdtree.learning import labels, learned_problem
    from crowdtree.learning.source_fit import fit_sources
    from crowdtree.learning.source_tables import Layout

    names = _class_names(truths, problem, classes)
    gold = reading.gold_codes(read, truths, names)
    if problem is None and (missing := [n for i, n in enumerate(names) if not (gold == i).any()]):
        raise CrowdtreeError(
            f"gold: no answered item of {listing(map(repr, missing))}; give one of each class, "
            "or the table of outcomes"
        )
    if read.sources is not None:
        if problem is None:
            problem = learned_problem.problem_of_gold(names, read, gold, certain)
        layout = Layout.of_problem(problem)
        sources = labels.with_map(fit_sources(read, gold, layout, problem), read, gold, weight)
        return _with_labelling(read, sources, gold, "classes")
    fit: ClassFit
    if problem is not None:
        channel = None if problem.is_yes_no else problem.channel[0]
        fit = classing.fit_classes(
            read, gold, problem.right, problem.prior, channel=channel, error=problem.worker_error
        )
        skips = None if problem.is_yes_no else learned_problem.share_of_skips(read)
        changes = {} if skips is None else {"unsure": skips}
        learned = learned_problem.with_table(
            problem, fit, prior=fit.prior, normalise=True, **changes
        )
    else:
        fit = classing.fit_open(read, gold, np.full(len(names), 1 / len(names)), certain)
        learned = learned_problem.open_problem(names, read, fit, certain)
    return {
        "problem": learned,
        "kind": "classes",
        "answers": read,
        "posterior": fit.posterior,
        "fit": fit,
        "trace": fit.trace,
        "gold": gold,
        "converged": fit.converged,
    }


def _class_names(
    truths: dict[str, str] | None, problem: Problem | None, classes: Sequence[str] | None
) -> tuple[str, ...]:
    if problem is not None:
        return problem.classes
    if classes is not None:
        return tuple(map(str, classes))
    if not truths:
        raise CrowdtreeError(
            "learn: several questions and neither gold nor problem; nothing names the classes, "
            "give the gold of some items or the table of outcomes"
        )
    reading.warn_of_typos(truths)
    names = tuple(sorted(set(truths.values())))
    if len(names) < 2:
        raise CrowdtreeError(
            f"gold: expected items of two classes or more, got {names[0]!r} only; give gold of "
            "each class, or the table of outcomes"
        )
    return names
