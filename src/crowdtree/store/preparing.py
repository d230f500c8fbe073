"""Before the first question: workers agree to what the owner asks for, and practise."""

from __future__ import annotations

import json
from typing import NamedTuple, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.store.db import statements as sql
from crowdtree.store.db.campaign_row import Campaign, get_campaign
from crowdtree.store.db.sql import fetch
from crowdtree.store.db.tables import items, workers
from crowdtree.store.errors import NotFound, Refused
from crowdtree.store.owner import tokens
from crowdtree.store.serving.commands import QuestionText
from crowdtree.store.serving.item import shown_item
from crowdtree.store.serving.training import Lesson, lessons
from crowdtree.store.types import AnyPolicy, JsonObject

__all__ = ["Feedback", "Practice", "Training", "agree", "practise", "training_of"]

ANSWERS = ("no", "yes")


class Practice(TypedDict):
    """A training item as the worker sees it; `number` counts from 1."""

    number: int
    item: JsonObject
    question: QuestionText


class Training(TypedDict):
    """How far the training of a worker is; without a `task` it is over."""

    total: int
    done: int
    task: Practice | None


class Feedback(TypedDict):
    """The right answer to a training item."""

    right: str
    correct: bool | None
    """Whether the worker's answer is right; none for "can't tell"."""
    truth: str
    """Class of the item."""
    explanation: str
    """What the owner wrote about the item, or else about its class."""


def agree(connection: Connection, token_hash: str, mark: str, now: float) -> None:
    """Record that a worker agrees to the text that `mark` identifies, if it still applies."""
    number, worker = tokens.worker_of(connection, token_hash, now)
    if mark != get_campaign(connection, number).settings.consent_mark or not mark:
        raise Refused("consent")
    new = (workers.c.id == worker, workers.c.consent != mark)
    connection.execute(workers.update().where(*new).values(consent=mark, consented_at=now))


class _Learner(NamedTuple):
    """A worker in training."""

    id: int
    trained: int
    campaign: Campaign
    policy: AnyPolicy
    lessons: list[Lesson]


def _learner(connection: Connection, token_hash: str, now: float) -> _Learner:
    number, worker = tokens.worker_of(connection, token_hash, now)
    campaign = get_campaign(connection, number)
    columns = (workers.c.question, workers.c.trained, workers.c.answers, workers.c.consent)
    row = connection.execute(sa.select(*columns).where(workers.c.id == worker)).one()
    if row.consent != campaign.settings.consent_mark and campaign.settings.consent_mark:
        raise Refused("consent")
    gold = fetch(connection, sql.GOLD_ITEMS, campaign=number)[: campaign.settings.training]
    policy = campaign.make_policy()
    wanted = [] if row.answers else lessons(policy, gold, row.question)
    return _Learner(worker, row.trained, campaign, policy, wanted)


def training_of(connection: Connection, token_hash: str, now: float) -> Training:
    """The next training item of a worker, and how many there are."""
    me = _learner(connection, token_hash, now)
    total = len(me.lessons)
    done = min(me.trained, total)
    if done == total:
        return {"total": total, "done": done, "task": None}
    lesson = me.lessons[done]
    task, payload = _item(connection, lesson)
    problem, question = me.policy.problem, lesson.question
    made: Practice = {
        "number": done + 1,
        "item": shown_item(me.campaign, task, payload),
        "question": {"name": problem.questions[question], "text": problem.text(question)},
    }
    return {"total": total, "done": done, "task": made}


def practise(
    connection: Connection, token_hash: str, number: int, answer: str | None, now: float
) -> Feedback:
    """Take an answer to a training item; sent again, it gets the same feedback."""
    me = _learner(connection, token_hash, now)
    if not 1 <= number <= min(me.trained + 1, len(me.lessons)):
        raise Refused("training")
    lesson = me.lessons[number - 1]
    mine = (workers.c.id == me.id, workers.c.trained == number - 1)
    connection.execute(workers.update().where(*mine).values(trained=number, seen_at=now))
    _, payload = _item(connection, lesson)
    problem = me.policy.problem
    described = problem.descriptions[lesson.cls] if problem.descriptions else ""
    right = ANSWERS[lesson.right]
    return {
        "right": right,
        "correct": None if answer is None else answer == right,
        "truth": problem.classes[lesson.cls],
        "explanation": str(json.loads(payload).get("explanation") or described),
    }


def _item(connection: Connection, lesson: Lesson) -> tuple[str, str]:
    row = connection.execute(
        sa.select(items.c.task, items.c.payload).where(items.c.id == lesson.item)
    ).one_or_none()
    if row is None:
        raise NotFound("this training item does not exist any more")
    return row.task, row.payload
