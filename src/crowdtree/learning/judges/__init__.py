"""Judge models by people and known items: may a model replace or join people?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from crowdtree.core.checking import check_call, named_options
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.rng import generator
from crowdtree.learning.judges import scoring
from crowdtree.learning.judges.agreement import agreements
from crowdtree.learning.judges.question import QuestionAnswers
from crowdtree.learning.judges.reading import read_questions
from crowdtree.learning.judges.result import Judgement, ModelScore, PersonTest

__all__ = ["judge"]

_VERSION = re.compile(r"(.+?)[ @:](v?\d+(?:[.-]\d+)+|v\d+)")


@named_options
def judge(
    answers: Any,
    gold: Any = None,
    *,
    models: Any = None,
    margin: float = 0.05,
    columns: Mapping[str, str] | None = None,
    skip: Sequence[str] = (),
    rng: np.random.Generator | int | None = None,
) -> Judgement:
    """Judge whether models may replace or join people, question by question.

    Each person is left out in turn, and the model and the person are both compared with the vote of
    the other people (or with gold), on the same items. Without models, only the agreement of
    people is measured.

    Parameters
    ----------
    answers
        Columns ``task, worker, label``, and ``question`` where there are several, as
        :func:`crowdtree.learn` takes them. A column ``source`` or ``kind`` says who is a person or
        a model, a column ``version`` which version of a model answered.
    gold
        Known truths of items drawn at random: columns ``task, label`` (and ``question`` where
        there are several) or a mapping. Verdicts then rest on them rather than on people.
    models
        Names of the workers that are models, or patterns such as ``gpt-*``; or a table with the
        columns ``worker`` and ``kind``.
        By default as the answers say.
    margin
        How much less accurate than a person a model may be that replaces one.
    columns, skip
        As in :func:`crowdtree.learn`.
    rng
        Seed or generator of the bootstrap.

    Returns
    -------
    Judgement

    References
    ----------
    Calderon, Reichart and Dror (2025), The alternative annotator test; Krippendorff (2011).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.integers(0, 2, 300)
    >>> def answers_of(error):
    ...     return np.where(rng.random(300) < error, 1 - truth, truth)
    >>> who = {"ann": 0.1, "ben": 0.1, "cy": 0.1, "m1": 0.02, "m2": 0.4}
    >>> answers = {"task": np.tile(np.arange(300), 5), "worker": np.repeat(list(who), 300),
    ...            "label": np.concatenate([answers_of(error) for error in who.values()])}
    >>> judgement = judge(answers, models=["m1", "m2"])
    >>> judgement
    <Judgement: 3 people, 2 models, 300 items; m1: may replace a person, m2: worse than a person>
    >>> judgement.scores[0].difference.low > 0
    True
    """
    check_call(judge, locals())
    if not 0 <= margin < 1:
        raise CrowdtreeError(f"margin: expected a share from 0 to below 1, got {margin!r}")
    questions, notes = read_questions(answers, gold, models, columns, skip)
    _check_overlap(questions)
    first, random = questions[0], generator(rng)
    answered = [(np.vstack([data.people, data.models]) >= 0).any(axis=0) for data in questions]
    steps = list(versions(first.model_names))
    tests: list[PersonTest] = []
    scores: list[ModelScore] = []
    for data in questions:
        for model in range(len(data.models)):
            tested = scoring.person_tests(data, model, margin)
            tests += tested
            scores += scoring.judge_model(data, model, margin, tested)
    return Judgement(
        questions=tuple(data.question for data in questions),
        labels=tuple(data.labels for data in questions),
        people=len(first.people),
        models=tuple(first.model_names),
        items=int(np.any(answered, axis=0).sum()),
        margin=margin,
        scores=tuple(scores),
        label_scores=_gather(questions, scoring.label_scores),
        tests=tuple(tests),
        together=_gather(questions, scoring.errors_together, random),
        agreement=_gather(questions, agreements, random),
        drift=_gather(questions, scoring.changes, steps),
        notes=tuple(notes),
    )


def _gather(
    questions: Iterable[QuestionAnswers], part: Callable[..., Iterable[Any]], *more: Any
) -> tuple[Any, ...]:
    return tuple(row for data in questions for row in part(data, *more))


def _check_overlap(questions: Sequence[QuestionAnswers]) -> None:
    """Raise where nothing can be compared: neither two people, nor a model with them or gold."""
    for data in questions:
        people = data.votes.sum(axis=1)
        useful = (people > 1) | (data.gold >= 0)
        if (data.models[:, useful] >= 0).any() or (not len(data.models) and (people > 1).any()):
            return
    who = "a model and two people" if len(questions[0].models) else "two people"
    raise CrowdtreeError(
        f"answers: no item has answers of {who} to the same question; ask some of them about the "
        "same items"
    )


def versions(names: Sequence[str]) -> Iterable[tuple[int, int]]:
    """Pairs of successive versions of a model, as positions in `names`.

    >>> list(versions(["gpt-x 1.10", "gpt-x 1.9", "other", "gpt-x 1.0"]))
    [(3, 1), (1, 0)]
    """
    families: dict[str, list[tuple[list[int], int]]] = {}
    for place, name in enumerate(names):
        if match := _VERSION.fullmatch(name):
            numbers = [int(digits) for digits in re.findall(r"\d+", match[2])]
            families.setdefault(match[1], []).append((numbers, place))
    for members in families.values():
        yield from pairwise(place for _, place in sorted(members))
