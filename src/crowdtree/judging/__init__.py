"""Judge models by people and known items: may a model replace or join people?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crowdtree.checking import check_call, named_options
from crowdtree.errors import CrowdtreeError
from crowdtree.judging.result import Judgement
from crowdtree.rng import generator

__all__ = ["judge"]


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
        Names of the workers that are models; or a table with the columns ``worker`` and ``kind``.
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
    <Judgement: 3 people, 2 models, 300 items; m1: may replace a person; m2: worse than a person>
    >>> judgement.scores[0].main.difference.low > 0
    True
    """
    check_call(judge, locals())
    if not 0 <= margin < 1:
        raise CrowdtreeError(f"margin: expected a share from 0 to below 1, got {margin!r}")
    from crowdtree.judging.assembly import judge_questions
    from crowdtree.judging.reading import read_questions

    questions, notes = read_questions(answers, gold, models, columns, skip)
    return judge_questions(questions, margin, notes, generator(rng))
