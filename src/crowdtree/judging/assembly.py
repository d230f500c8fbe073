"""All parts of a judgement, question by question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, combinations, pairwise

import numpy as np

from crowdtree.errors import CrowdtreeError
from crowdtree.judging import scoring
from crowdtree.judging.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from crowdtree.judging.result import (
    PERSON,
    Agreement,
    Judgement,
    LabelScore,
    ModelScore,
    Pair,
    PersonTest,
)
from crowdtree.judging.scoring import Asked

MOST_WORKERS = 20
"""Workers among whom pairs are compared: models, and the people with the most answers."""
_VERSION = re.compile(r"(.+?)[ @:](v?\d+(?:[.-]\d+)+|v\d+)")


def judge_asked(
    questions: Sequence[Asked], margin: float, notes: Sequence[str], rng: np.random.Generator
) -> Judgement:
    """Judge the models at each question."""
    first = questions[0]
    _check_overlap(questions)
    tests = [
        scoring.person_tests(asked, model, margin)
        for asked in questions
        for model in range(len(asked.models))
    ]
    asked_models = [(asked, model) for asked in questions for model in range(len(asked.models))]
    scores = [
        _score(asked, model, people, margin)
        for (asked, model), people in zip(asked_models, tests, strict=True)
    ]
    answered = [(np.vstack([asked.people, asked.models]) >= 0).any(axis=0) for asked in questions]
    return Judgement(
        questions=tuple(asked.question for asked in questions),
        labels=tuple(asked.labels for asked in questions),
        people=len(first.people),
        models=tuple(first.model_names),
        items=int(np.any(answered, axis=0).sum()),
        margin=margin,
        scores=tuple(scores),
        label_scores=tuple(chain.from_iterable(map(_label_scores, questions))),
        tests=tuple(chain.from_iterable(tests)),
        together=tuple(row for asked in questions for row in scoring.errors_together(asked, rng)),
        pairs=tuple(row for asked in questions for row in _pairs(asked, rng)),
        agreement=tuple(row for asked in questions for row in _agreement(asked, rng)),
        drift=tuple(
            row
            for asked in questions
            for row in scoring.changes(asked, list(versions(asked.model_names)))
        ),
        notes=tuple(notes),
    )


def _check_overlap(questions: Sequence[Asked]) -> None:
    """Raise where nothing can be compared: neither two people, nor a model with them or gold."""
    for asked in questions:
        people = asked.votes.sum(axis=1)
        use = (people > 1) | (asked.gold >= 0)
        if (asked.models[:, use] >= 0).any() or (not len(asked.models) and (people > 1).any()):
            return
    who = "a model and two people" if len(questions[0].models) else "two people"
    raise CrowdtreeError(
        f"answers: no item has answers of {who} to the same question; ask some of them about the "
        "same items"
    )


def _score(asked: Asked, model: int, tests: Sequence[PersonTest], margin: float) -> ModelScore:
    made = asked.held_out(asked.usual_reference, asked.votes)
    both = (scoring.compare(asked, model, reference) for reference in ("people", "gold"))
    against = tuple(row for row in both if row is not None)
    return ModelScore(
        asked.question,
        asked.model_names[model],
        scoring.decide(asked, against, margin),
        against,
        float(np.mean([row.better for row in tests])) if tests else None,
        float(np.mean([row.model_wins for row in tests])) if tests else None,
        scoring.confusion(made, asked.models[model][made.item]),
    )


def _label_scores(asked: Asked) -> Iterable[LabelScore]:
    made = asked.held_out(asked.usual_reference, asked.votes)
    yield from scoring.label_scores(asked, made, made.label, PERSON)
    for name, labels in zip(asked.model_names, asked.models, strict=True):
        yield from scoring.label_scores(asked, made, labels[made.item], name)


def _pairs(asked: Asked, rng: np.random.Generator) -> Iterable[Pair]:
    """Kappa of each two workers who answered the same items."""
    busiest = np.argsort(-(asked.people >= 0).sum(axis=1), kind="stable")
    people = np.sort(busiest[: max(0, MOST_WORKERS - len(asked.models))]).tolist()
    names = [*asked.model_names, *(asked.people_names[k] for k in people)]
    answers = np.vstack([asked.models, asked.people[people]])
    for a, b in combinations(range(len(names)), 2):
        both = (answers[a] >= 0) & (answers[b] >= 0)
        if both.any():
            one, two = answers[a][both], answers[b][both]
            kappa = cohen_kappa(one, two, len(asked.labels), rng)
            same = float((one == two).mean())
            yield Pair(asked.question, names[a], names[b], int(both.sum()), same, kappa)


def _agreement(asked: Asked, rng: np.random.Generator) -> Iterable[Agreement]:
    """Agreement of people, of models, and of people with each model."""
    groups = [("people", asked.people), ("models", asked.models)]
    for name, labels in zip(asked.model_names, asked.models, strict=True):
        groups.append((f"people and {name}", np.vstack([asked.people, labels[None]])))
    for name, answers in groups:
        workers = int((answers >= 0).any(axis=1).sum())
        if workers > 1:
            counts = asked.counts(answers)
            items = int((counts.sum(axis=1) > 1).sum())
            alpha, fleiss = krippendorff_alpha(counts, rng), fleiss_kappa(counts)
            yield Agreement(asked.question, name, workers, items, alpha, fleiss)


def versions(names: Sequence[str]) -> Iterable[tuple[int, int]]:
    """Pairs of successive versions of a model, as positions in `names`.

    >>> list(versions(["gpt-x 1.10", "gpt-x 1.9", "other", "gpt-x 1.0"]))
    [(3, 1), (1, 0)]
    """
    families: dict[str, list[tuple[list[int], int]]] = {}
    for place, name in enumerate(names):
        if found := _VERSION.fullmatch(name):
            numbers = [int(digits) for digits in re.findall(r"\d+", found[2])]
            families.setdefault(found[1], []).append((numbers, place))
    for members in families.values():
        yield from pairwise(place for _, place in sorted(members))
