"""What comes before a worker's first question: consent, and practice with feedback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crowdtree.core.problem import DASH
from crowdtree.server.store.db.statements import GoldItem, Worker
from crowdtree.server.store.serving.campaign import ServedCampaign
from crowdtree.server.store.types import AnyPolicy


class Lesson(NamedTuple):
    """A training item: a question about an item of known class, and the right answer."""

    item: int
    cls: int
    question: int
    right: int


def lessons(policy: AnyPolicy, items: Sequence[GoldItem], only: int | None = None) -> list[Lesson]:
    """The training: items in order, each with the next question that has a right answer.

    A worker who answers one question (`only`) practises that one.
    """
    outcome = policy.problem.outcome
    questions = policy.questions_used() if only is None else [only]
    found: list[Lesson] = []
    for item in items:
        definite = [q for q in questions if outcome[q, item.cls] != DASH]
        if definite:
            question = definite[len(found) % len(definite)]
            found.append(Lesson(item.id, item.cls, question, int(outcome[question, item.cls])))
    return found


def preparation(campaign: ServedCampaign, worker: Worker) -> str:
    """What the worker has to do before the next question: consent, training or nothing."""
    mark = campaign.settings.tasks.consent_mark
    if mark and worker.consent != mark:
        return "consent"
    if worker.answers or worker.trained >= len(campaign.training):
        return ""
    wanted = lessons(campaign.policy, campaign.training, worker.question)
    return "training" if worker.trained < len(wanted) else ""
