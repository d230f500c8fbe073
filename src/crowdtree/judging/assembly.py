"""All parts of a judgement, question by question."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, combinations, pairwise
from typing import Any

import numpy as np

from crowdtree.errors import CrowdtreeError
from crowdtree.judging import scoring
from crowdtree.judging.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from crowdtree.judging.question import QuestionAnswers
from crowdtree.judging.result import (
    PERSON,
    Agreement,
    Judgement,
    LabelScore,
    ModelScore,
    Pair,
    PersonTest,
)
from crowdtree.judging.verdict import decide

MAX_WORKERS = 20
"""Workers among whom pairs are compared: models, and the people with the most answers."""
_VERSION = re.compile(r"(.+?)[ @:](v?\d+(?:[.-]\d+)+|v\d+)")


def judge_questions(
    questions: Sequence[QuestionAnswers],
    margin: float,
    notes: Sequence[str],
    rng: np.random.Generator,
) -> Judgement:
    """Judge the models at each question."""
    _check_overlap(questions)
    first = questions[0]
    tests = [scoring.person_tests(*place, margin) for place in _each_model(questions)]
    scores = [_score(*row, margin) for row in zip(_each_model(questions), tests, strict=True)]
    answered = [(np.vstack([data.people, data.models]) >= 0).any(axis=0) for data in questions]
    steps = list(versions(first.model_names))

    def gather(part: Callable[..., Iterable[Any]], *more: Any) -> tuple[Any, ...]:
        return tuple(row for data in questions for row in part(data, *more))

    return Judgement(
        questions=tuple(data.question for data in questions),
        labels=tuple(data.labels for data in questions),
        people=len(first.people),
        models=tuple(first.model_names),
        items=int(np.any(answered, axis=0).sum()),
        margin=margin,
        scores=tuple(scores),
        label_scores=gather(_label_scores),
        tests=tuple(chain.from_iterable(tests)),
        together=gather(scoring.errors_together, rng),
        pairs=gather(_pairs, rng),
        agreement=gather(_agreement, rng),
        drift=gather(scoring.changes, steps),
        notes=tuple(notes),
    )


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


def _each_model(questions: Sequence[QuestionAnswers]) -> Iterable[tuple[QuestionAnswers, int]]:
    return ((data, model) for data in questions for model in range(len(data.models)))


def _score(
    place: tuple[QuestionAnswers, int], tests: Sequence[PersonTest], margin: float
) -> ModelScore:
    data, model = place
    both = (scoring.compare(data, model, reference) for reference in ("people", "gold"))
    comparisons = tuple(row for row in both if row is not None)
    rows = data.leave_out()
    return ModelScore(
        data.question,
        data.model_names[model],
        decide(data, comparisons, margin),
        comparisons,
        float(np.mean([row.better for row in tests])) if tests else None,
        float(np.mean([row.model_wins for row in tests])) if tests else None,
        scoring.confusion(rows, data.models[model][rows.item]),
    )


def _label_scores(data: QuestionAnswers) -> Iterable[LabelScore]:
    rows = data.leave_out()
    yield from scoring.label_scores(data, rows, rows.label, PERSON)
    for name, labels in zip(data.model_names, data.models, strict=True):
        yield from scoring.label_scores(data, rows, labels[rows.item], name)


def _pairs(data: QuestionAnswers, rng: np.random.Generator) -> Iterable[Pair]:
    """Kappa of each two workers who answered the same items."""
    busiest = np.argsort(-(data.people >= 0).sum(axis=1), kind="stable")
    people = np.sort(busiest[: max(0, MAX_WORKERS - len(data.models))]).tolist()
    names = [*data.model_names, *(data.people_names[k] for k in people)]
    answers = np.vstack([data.models, data.people[people]])
    for a, b in combinations(range(len(names)), 2):
        both = (answers[a] >= 0) & (answers[b] >= 0)
        if both.any():
            one, two = answers[a][both], answers[b][both]
            same, kappa = float((one == two).mean()), cohen_kappa(one, two, rng)
            yield Pair(data.question, names[a], names[b], len(one), same, kappa)


def _agreement(data: QuestionAnswers, rng: np.random.Generator) -> Iterable[Agreement]:
    """Agreement of people, of models, and of people with each model."""
    groups = [("people", data.people), ("models", data.models)]
    for name, labels in zip(data.model_names, data.models, strict=True):
        groups.append((f"people and {name}", np.vstack([data.people, labels[None]])))
    for name, answers in groups:
        workers = int((answers >= 0).any(axis=1).sum())
        if workers > 1:
            counts = data.counts(answers)
            items = int((counts.sum(axis=1) > 1).sum())
            alpha, fleiss = krippendorff_alpha(counts, rng), fleiss_kappa(counts)
            yield Agreement(data.question, name, workers, items, alpha, fleiss)


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
