"""What a worker may do next: agree and practise, then hold some questions for some time.

A newcomer has no record: their skips weigh nothing, and they hold one question at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from typing_extensions import TypedDict

from crowdtree.core.problem import DASH
from crowdtree.server.settings.model import Settings
from crowdtree.server.store import tokens
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign
from crowdtree.server.store.db.sql import fetch
from crowdtree.server.store.db.statements import GoldItem, Worker
from crowdtree.server.store.db.tables import items, workers
from crowdtree.server.store.errors import NotFound, Refused
from crowdtree.server.store.serving.campaign import ServedCampaign
from crowdtree.server.store.serving.commands import QuestionText, shown_item
from crowdtree.server.store.types import AnyPolicy, JsonObject

LEAST_SECONDS = 30.0
"""A lease never shrinks below this, unless the time for a question is shorter."""
MAX_HALVINGS = 10
WAIT_SHARE = 0.1
"""Share of a lease after which it is taken back from a newcomer when others wait."""


def leases_allowed(settings: Settings, answers: int, lapses: int) -> int:
    """How many questions a worker may hold: one before the first answer, and after a lapse.

    >>> leases_allowed(Settings(), 0, 0), leases_allowed(Settings(), 1, 0)
    (1, 3)
    """
    return settings.tasks.max_open_questions if answers and not lapses else 1


def lease_seconds(settings: Settings, lapses: int) -> float:
    """How long a worker may hold a question: half as long after each lease that they let expire.

    >>> [lease_seconds(Settings(), lapses) for lapses in (0, 1, 2, 9)]
    [600.0, 300.0, 150.0, 30.0]
    """
    if not lapses:
        return settings.tasks.max_seconds_per_question
    least = min(LEAST_SECONDS, settings.tasks.max_seconds_per_question)
    return max(least, settings.tasks.max_seconds_per_question / 2.0 ** min(lapses, MAX_HALVINGS))


def take_back_after(settings: Settings) -> float:
    """Seconds after which a newcomer's lease is taken back when others wait.

    >>> take_back_after(Settings())
    60.0
    """
    return max(
        min(LEAST_SECONDS, settings.tasks.max_seconds_per_question),
        WAIT_SHARE * settings.tasks.max_seconds_per_question,
    )


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
    of_class: bool
    """Whether it is that of the class, for which there may be a text in the worker's language."""


def agree(connection: Connection, token_hash: str, mark: str, now: float) -> None:
    """Record that a worker agrees to the text that `mark` identifies, if it still applies."""
    number, worker = tokens.worker_of(connection, token_hash, now)
    if mark != get_campaign(connection, number).settings.tasks.consent_mark or not mark:
        raise Refused("consent")
    new = (workers.c.id == worker, workers.c.consent != mark)
    connection.execute(workers.update().where(*new).values(consent=mark, consented_at=now))


class Learner(NamedTuple):
    """Somebody in training; an owner who previews it has no `id`."""

    id: int | None
    trained: int
    campaign: Campaign
    policy: AnyPolicy
    lessons: list[Lesson]


def learner(
    connection: Connection,
    campaign: Campaign,
    trained: int,
    only: int | None = None,
    worker: int | None = None,
) -> Learner:
    """Somebody who has practised with some of the training items of a campaign."""
    gold = fetch(connection, sql.GOLD_ITEMS, campaign=campaign.id)[
        : campaign.settings.checks.practice_items
    ]
    policy = campaign.make_policy()
    return Learner(worker, trained, campaign, policy, lessons(policy, gold, only))


def _learner(connection: Connection, token_hash: str, now: float) -> Learner:
    number, worker = tokens.worker_of(connection, token_hash, now)
    campaign = get_campaign(connection, number)
    columns = (workers.c.question, workers.c.trained, workers.c.answers, workers.c.consent)
    row = connection.execute(sa.select(*columns).where(workers.c.id == worker)).one()
    if row.consent != campaign.settings.tasks.consent_mark and campaign.settings.tasks.consent_mark:
        raise Refused("consent")
    found = learner(connection, campaign, row.trained, row.question, worker)
    return found._replace(lessons=[]) if row.answers else found


def training_of(connection: Connection, token_hash: str, now: float) -> Training:
    """The next training item of a worker, and how many there are."""
    return next_lesson(connection, _learner(connection, token_hash, now))


def next_lesson(connection: Connection, me: Learner) -> Training:
    """The next training item of somebody, and how many there are."""
    total = len(me.lessons)
    done = min(me.trained, total)
    if done == total:
        return {"total": total, "done": done, "task": None}
    lesson = me.lessons[done]
    task, payload = _lesson_item(connection, lesson)
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
    found = feedback(connection, me, number, answer)
    mine = (workers.c.id == me.id, workers.c.trained == number - 1)
    connection.execute(workers.update().where(*mine).values(trained=number, seen_at=now))
    return found


def feedback(connection: Connection, me: Learner, number: int, answer: str | None) -> Feedback:
    """The right answer to a training item, which was practised before or comes next."""
    if not 1 <= number <= min(me.trained + 1, len(me.lessons)):
        raise Refused("training")
    lesson = me.lessons[number - 1]
    _, payload = _lesson_item(connection, lesson)
    problem = me.policy.problem
    described = problem.descriptions[lesson.cls] if problem.descriptions else ""
    right = ANSWERS[lesson.right]
    explanation = str(json.loads(payload).get("explanation") or "")
    return {
        "right": right,
        "correct": None if answer is None else answer == right,
        "truth": problem.classes[lesson.cls],
        "explanation": explanation or described,
        "of_class": not explanation,
    }


def _lesson_item(connection: Connection, lesson: Lesson) -> tuple[str, str]:
    row = connection.execute(
        sa.select(items.c.task, items.c.payload).where(items.c.id == lesson.item)
    ).one_or_none()
    if row is None:
        raise NotFound("this training item does not exist any more")
    return row.task, row.payload
