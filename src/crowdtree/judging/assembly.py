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
    return ModelScore(
        data.question,
        data.model_names[model],
        decide(data, comparisons, margin),
        comparisons,
        float(np.mean([row.better for row in tests])) if tests else None,
        float(np.mean([row.model_wins for row in tests])) if tests else None,
    )


def _label_scores(data: QuestionAnswers) -> Iterable[LabelScore]:
    rows = data.leave_out()
    yield from scoring.label_scores(data, rows, rows.label, PERSON)
    for name, labels in zip(data.model_names, data.models, strict=True):
        yield from scoring.label_scores(data, rows, labels[rows.item], name)


def _agreement(data: QuestionAnswers, rng: np.random.Generator) -> Iterable[Agreement]:
    """Agreement of people, of models, of people with each model, and of each two workers."""
    groups = {"people": data.people, "models": data.models}
    for name, labels in zip(data.model_names, data.models, strict=True):
        groups[f"people and {name}"] = np.vstack([data.people, labels])
    busiest = np.argsort(-(data.people >= 0).sum(axis=1), kind="stable")
    kept = np.sort(busiest[: max(0, MAX_WORKERS - len(data.models))]).tolist()
    workers = [*zip(data.model_names, data.models, strict=True),
               *((data.people_names[k], data.people[k]) for k in kept)]  # fmt: skip
    for (first, a), (second, b) in combinations(workers, 2):
        groups[f"{first} and {second}"] = np.stack([a, b])
    for name, answers in groups.items():
        answers = answers[(answers >= 0).any(axis=1)]
        counts = data.counts(answers)
        items = int((counts.sum(axis=1) > 1).sum())
        if items:
            alpha, kappa = krippendorff_alpha(counts, rng), None
            if len(answers) == 2:
                kappa = cohen_kappa(answers[:, (answers >= 0).all(axis=0)], rng)
            else:
                kappa = fleiss_kappa(counts, alpha)
            yield Agreement(data.question, name, len(answers), items, alpha, kappa)


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
