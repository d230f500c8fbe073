"""The statements that run per question and per answer, each with the type of its rows.

Locks on PostgreSQL are always taken in one order to avoid deadlocks: budgets, items (by id),
workers (by id), tallies. Choosing a question never waits: it skips rows that are locked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.dialects import postgresql

from crowdtree.campaign import view
from crowdtree.campaign.fold import NO_CLASS
from crowdtree.policies import Label
from crowdtree.server.store.db.sql import Many, Query, Sql
from crowdtree.server.store.db.tables import metadata
from crowdtree.server.store.types import (
    GIVEN_BACK,
    LIVE_LEASES,
    ItemStatus,
    LeaseState,
    in_states,
)

AHEAD_SECONDS = 60.0
"""How much the clocks of two server processes may differ."""

LIVE = f"leases.state {in_states(*LIVE_LEASES)}"
ACTIVE = f"leases.state = {LeaseState.ACTIVE:d}"
TAKEN = f"leases.state <> {LeaseState.EXPIRED:d}"
"""The worker holds, answered or skipped the question; an expired lease can be given again."""
UNFINISHED = f"status {in_states(ItemStatus.NEW, ItemStatus.OPEN)}"


def many(text: str) -> Many:
    """Make a statement for many rows; its values have the types of the columns of their names."""
    found = re.search(r"(?:INTO|UPDATE|FROM) (\w+)", text)
    columns = metadata.tables[found[1] if found else ""].columns
    names = dict.fromkeys(re.findall(r"(?<!:):(\w+)", text))
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    types = {name: columns[name].type.compile(dialect) for name in names if name in columns}
    return Many(text, **{name: types.get(name, "FLOAT") for name in names})


def insert(table: str, row: type[tuple[object, ...]]) -> str:
    """Write an INSERT whose columns are the fields of a NamedTuple.

    >>> insert("t", NamedTuple("P", [("a", int), ("b", int)]))
    'INSERT INTO t (a, b) VALUES (:a, :b)'
    """
    names: tuple[str, ...] = getattr(row, "_fields")  # noqa: B009 - not in the type of a tuple
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES (:{', :'.join(names)})"


# ------------------------------------------------------------------------------ workers, campaigns


class Worker(NamedTuple):
    """The worker behind a token, and the state of the campaign."""

    token_hash: str
    role: str
    expires_at: float | None
    id: int
    campaign_id: int
    status: str
    question: int | None
    last_question: int
    used_skill: float
    known: str
    answers: int
    skips: int
    lapses: int
    consent: str
    trained: int
    campaign_version: int
    campaign_status: str

    @property
    def preferred(self) -> int:
        """The question to ask first: the worker's only one, or the previous one."""
        return self.last_question if self.question is None else self.question

    @property
    def campaign(self) -> CampaignState:
        """What the row says about the campaign."""
        return CampaignState(self.campaign_id, self.campaign_version, self.campaign_status)

    def may_answer(self, question: int) -> bool:
        """Whether the worker can be asked a question: any, or the only one of a dedicated one."""
        return self.question in (None, question)


class CampaignState(NamedTuple):
    """What changes about a campaign while it runs; `version` counts changes of its definition."""

    id: int
    version: int
    status: str


class Exclusion(NamedTuple):
    """Lines of a worker that are excluded, from a revision on until they are included again."""

    worker_id: int
    first_answer_id: int
    last_answer_id: int
    revision: int
    lifted_revision: int | None

    @property
    def lines(self) -> view.Exclusion:
        """The answers and skips that it is about."""
        return view.Exclusion(self.worker_id, self.first_answer_id, self.last_answer_id)

    def holds(self, revision: int) -> bool:
        """Whether it is in effect in a revision."""
        lifted = self.lifted_revision
        return self.revision <= revision and (lifted is None or revision < lifted)


class Reason(NamedTuple):
    """A revision of a campaign, and what is stored about why it was made."""

    number: int
    reason: str


class PolicyRow(NamedTuple):
    """A policy and its problem, as JSON."""

    problem: str
    policy: str


class BudgetRow(NamedTuple):
    """The budget of a campaign, in millionths."""

    campaign_id: int
    cap: int
    spent: int
    reserved: int


WORKERS = Query(
    Worker,
    """SELECT credentials.token_hash, credentials.role, credentials.expires_at,
    workers.id, workers.campaign_id, workers.status, workers.question,
    workers.last_question, workers.used_skill, workers.known, workers.answers, workers.skips,
    workers.lapses, workers.consent, workers.trained,
    campaigns.version AS campaign_version,
    campaigns.status AS campaign_status
    FROM credentials JOIN workers ON workers.id = credentials.worker_id
    JOIN campaigns ON campaigns.id = workers.campaign_id
    WHERE credentials.token_hash IN :hashes AND credentials.revoked_at IS NULL""",
)
CAMPAIGNS = Query(CampaignState, "SELECT id, version, status FROM campaigns WHERE id IN :ids")
EXCLUSIONS = Query(
    Exclusion,
    """SELECT worker_id, first_answer_id, last_answer_id, revision, lifted_revision
    FROM exclusions WHERE campaign_id = :campaign ORDER BY id""",
)
REASONS = Query(
    Reason, "SELECT number, reason FROM revisions WHERE campaign_id = :campaign ORDER BY number"
)
BUDGETS = Query(
    BudgetRow,
    """SELECT campaign_id, cap, spent, reserved FROM budgets WHERE campaign_id IN :ids
    ORDER BY campaign_id {lock budgets}""",
)
SAVE_BUDGET = Sql(
    "UPDATE budgets SET spent = :spent, reserved = :reserved WHERE campaign_id = :campaign_id"
)

# ------------------------------------------------------------------------------ items and leases


class ItemRow(NamedTuple):
    """An item; `gold` is its class where that is known in advance."""

    id: int
    campaign_id: int
    task: str
    status: int
    gold: int | None
    state: str | None
    revision: int
    judged_by: int
    min_answers: int
    reopened_after: int
    corrected: int | None

    def is_behind(self, revision: int) -> bool:
        """Whether the item is to be brought to a later revision; `BEHIND` in Python."""
        ordinary = self.gold is None and self.status != ItemStatus.NEW
        return ordinary and self.revision < revision


BEHIND = f"gold IS NULL AND status <> {ItemStatus.NEW:d} AND revision < :revision"
"""Whether an item is to be brought to a later revision: a new one begins with the present one."""


class ItemEventRow(NamedTuple):
    """Something that happened to an item beside answers and skips."""

    id: int
    item_id: int
    kind: str
    revision: int
    after: int
    value: int | None
    reason: str


class NewItemEvent(NamedTuple):
    """An event to append to the log."""

    campaign_id: int
    item_id: int
    kind: str
    revision: int
    after: int
    value: int | None
    reason: str
    at: float
    activity_id: int


MAX_DIGITS = 18
"""Longest lease number; more digits would not fit a column of the database."""


def lease_token(number: int, nonce: str) -> str:
    """Name a lease as its worker knows it; the nonce cannot be guessed."""
    return f"{number}.{nonce}"


def split_lease(token: str) -> tuple[int, str]:
    """Number and nonce of a lease; -1 where there can be no such number.

    >>> split_lease(lease_token(12, "ab")), split_lease("x.ab")
    ((12, 'ab'), (-1, 'ab'))
    """
    number, _, nonce = token.partition(".")
    usable = number.isascii() and number.isdigit() and len(number) <= MAX_DIGITS
    return int(number) if usable else -1, nonce


@dataclass
class Lease:
    """A question that was handed to a worker."""

    id: int
    nonce: str
    item_id: int
    worker_id: int
    question: int
    state: int
    given_at: float
    expires_at: float
    changed: bool = False

    def overdue(self, now: float) -> bool:
        """Whether it has expired, or lies in the future because the clock was set back."""
        return self.expires_at < now or self.given_at > now + AHEAD_SECONDS

    def become(self, state: LeaseState) -> None:
        """Change the state and mark the lease for writing."""
        self.state, self.changed = state, True


class LogLine(NamedTuple):
    """One line of the log of an item; `fate` is what the worker was told."""

    id: int
    item_id: int
    question: int
    worker_id: int
    value: int | None
    kind: str
    key: str
    lease_id: int
    skill: float
    weight: float
    fate: str
    overdue: int
    price: int
    revised_fate: str | None
    revision: int

    @property
    def current_fate(self) -> str:
        """What became of it, under the policy of the item's revision."""
        return self.revised_fate or self.fate


class OpenQuestion(NamedTuple):
    """A question that can be handed out `needed` more times, maybe to known workers only."""

    id: int
    item_id: int
    question: int
    needed: int
    known_only: int


class Outcome(NamedTuple):
    """What became of an answer."""

    fate: str
    overdue: int


class Item(NamedTuple):
    """An item as workers see it."""

    id: int
    task: str
    payload: str


class GoldItem(NamedTuple):
    """An item whose class is known."""

    id: int
    cls: int


class NewAnswer(NamedTuple):
    """A line to append to the log."""

    campaign_id: int
    item_id: int
    lease_id: int
    worker_id: int
    question: int
    kind: str
    value: int | None
    key: str
    skill: float
    weight: float
    fate: str
    overdue: int
    price: int
    at: float
    revision: int
    report: str = ""
    revised_fate: str | None = None


class LabelLine(NamedTuple):
    """The label of an item; one without a class says why the item was set aside."""

    campaign_id: int
    item_id: int
    label: int | None
    posterior_error: float | None
    reason: str
    answers: int
    path: str
    at: float


class LabelOfItem(NamedTuple):
    """The label of an item that may change; one without a class says why there is none."""

    id: int
    item_id: int
    label: int | None
    posterior_error: float | None
    reason: str
    answers: int
    path: str

    def as_label(self) -> Label:
        """The label as policies give it."""
        if self.label is None or self.posterior_error is None:
            return Label(NO_CLASS, 1.0, self.reason)
        return Label(self.label, self.posterior_error, self.reason)

    def same_as(self, other: LabelLine) -> bool:
        """Whether the other one says the same class, for the same reason."""
        return (self.label, self.reason) == (other.label, other.reason)


class Withdrawal(NamedTuple):
    """A label that a revision took back."""

    campaign_id: int
    item_id: int
    label_id: int
    at: float


ITEMS = Query(
    ItemRow,
    f"""SELECT {", ".join(ItemRow._fields)} FROM items
    WHERE id {{of items}} ORDER BY id {{lock items}}""",
)
ITEM_EVENTS = Query(
    ItemEventRow,
    f"""SELECT {", ".join(ItemEventRow._fields)} FROM item_events WHERE item_id IN :ids
    ORDER BY item_id, id""",
)
POLICY_OF_REVISION = Query(
    PolicyRow,
    "SELECT problem, policy FROM revisions WHERE campaign_id = :campaign AND number = :revision",
)
LABELS_OF_ITEMS = Query(
    LabelOfItem,
    """SELECT id, item_id, label, posterior_error, reason, answers, path FROM labels
    WHERE item_id IN :ids""",
)
LEASES_OF_ITEMS = Query(
    Lease,
    f"""SELECT id, nonce, item_id, worker_id, question, state, given_at, expires_at
    FROM leases WHERE item_id {{of items}} AND ({LIVE} OR id IN :leases)""",
)
_LOG = """SELECT id, item_id, question, worker_id, value, kind, key, lease_id, skill, weight, fate,
    overdue, price, revised_fate, revision FROM answers WHERE item_id {which} ORDER BY id"""
LOG_OF_ITEMS = Query(LogLine, _LOG.replace("{which}", "{of items}"))
LOG = Query(LogLine, _LOG.replace("{which}", "IN :ids"))
QUESTIONS_OF_ITEMS = Query(
    OpenQuestion,
    """SELECT id, item_id, question, needed, known_only FROM open_questions
    WHERE item_id {of items}""",
)
OVERDUE_ITEMS = Sql(
    f"""SELECT items.id FROM items
    WHERE items.id IN (SELECT item_id FROM leases WHERE {LIVE} AND expires_at < :now
        ORDER BY expires_at LIMIT :most)
    OR items.id IN (SELECT item_id FROM leases WHERE {LIVE} AND given_at > :ahead
        ORDER BY given_at DESC LIMIT :most) ORDER BY items.id {{skip items}}"""
)
ANSWER_BY_KEY = Query(
    Outcome, "SELECT fate, overdue FROM answers WHERE lease_id = :lease AND key = :key"
)
ITEM = Query(Item, "SELECT id, task, payload FROM items WHERE id = :id")
GOLD_ITEMS = Query(
    GoldItem,
    f"""SELECT id, gold AS cls FROM items WHERE campaign_id = :campaign
    AND status = {ItemStatus.GOLD:d} ORDER BY id LIMIT 10000""",
)
UNREVISED = "SELECT 1 FROM revisions WHERE campaign_id = :campaign AND finished_at IS NULL"
"""A revision that may still take labels back."""
REVISING = Sql(UNREVISED)
ANY_UNFINISHED = Sql(
    f"""SELECT 1 FROM items WHERE campaign_id = :campaign AND {UNFINISHED}
    UNION ALL {UNREVISED} LIMIT 1"""
)

ADD_ACTIVITY = many(
    """INSERT INTO activity (at, actor, action, campaign_id, detail)
    VALUES (:at, :actor, :action, :campaign_id, :detail)"""
)
ADD_ANSWER = many(insert("answers", NewAnswer))
ADD_ITEM_EVENT = many(insert("item_events", NewItemEvent))
SAVE_LEASE = many(
    """UPDATE leases SET state = :state, given_at = :given_at,
    expires_at = :expires_at WHERE id = :id"""
)
RELEASE_LEASES = Sql(
    f"UPDATE leases SET expires_at = {GIVEN_BACK} WHERE worker_id IN :workers AND {ACTIVE}"
)
"""Gives back what workers hold; ExpireLeases takes it, with the money that is reserved for it."""
SAVE_ITEM = many(
    """UPDATE items SET status = :status, state = COALESCE(:state, items.state),
    revision = :revision, judged_by = :judged_by, min_answers = :min_answers,
    reopened_after = :reopened_after, corrected = :corrected WHERE id = :id"""
)
SAVE_FATE = many("UPDATE answers SET revised_fate = :revised_fate WHERE id = :id")
ADD_QUESTION = many(
    """INSERT INTO open_questions (campaign_id, item_id, question, needed, known_only)
    VALUES (:campaign_id, :item_id, :question, :needed, :known_only)"""
)
SAVE_QUESTION = many("UPDATE open_questions SET needed = :needed WHERE id = :id")
DROP_QUESTION = many("DELETE FROM open_questions WHERE id = :id")
ADD_LABEL = many(insert("labels", LabelLine))
SAVE_LABEL = many(
    """UPDATE labels SET posterior_error = :posterior_error, answers = :answers, path = :path
    WHERE id = :id"""
)
DROP_LABEL = many("DELETE FROM labels WHERE id = :id")
ADD_WITHDRAWAL = many(insert("withdrawals", Withdrawal))
ADD_ITEM = many(
    """INSERT INTO items (campaign_id, task, payload, status, gold)
    VALUES (:campaign_id, :task, :payload, :status, :gold)
    ON CONFLICT (campaign_id, task) DO NOTHING"""
)

# ------------------------------------------------------------------------------ worker records


class Judgement(NamedTuple):
    """An answer to an item whose class is known (`gold`) or was decided with some error."""

    worker_id: int
    question: int
    value: int
    cls: int
    error: float
    gold: int


RELEARN = -1
"""Value of `gold` in a judgement that says: recompute the record from the log."""


def relearn(worker: int) -> Judgement:
    """Make the judgement that has a worker's record recomputed from the log."""
    return Judgement(worker, question=0, value=0, cls=0, error=0.0, gold=RELEARN)


class WorkerRecord(NamedTuple):
    """What has been learned about a worker."""

    id: int
    campaign_id: int
    status: str
    reason: str
    skill: float
    precision: float
    used_skill: float
    gold_right: int
    gold_asked: int
    agreed: int
    judged: int


KNOWN = Sql("SELECT id FROM workers WHERE id IN :ids AND known <> ''")
LOCK_WORKERS = Sql("SELECT id FROM workers WHERE id IN :ids ORDER BY id {lock workers}")
ADD_TO_WORKER = many(
    """UPDATE workers SET answers = workers.answers + :answers, skips = workers.skips + :skips,
    accepted = workers.accepted + :accepted, overdue = workers.overdue + :overdue,
    earned = workers.earned + :earned,
    lapses = CASE WHEN :answers > 0 THEN 0 ELSE workers.lapses END, last_question =
    CASE WHEN :last_question < 0 THEN workers.last_question ELSE :last_question END,
    seen_at = CASE WHEN :now > seen_at THEN :now ELSE seen_at END WHERE id = :id"""
)
ADD_LAPSES = many("UPDATE workers SET lapses = workers.lapses + :lapses WHERE id = :id")
ADD_JUDGEMENT = many(insert("judgements", Judgement))
LOCK_RECORDS = Query(
    WorkerRecord,
    """SELECT id, campaign_id, status, reason, skill, precision, used_skill, gold_right,
    gold_asked, agreed, judged FROM workers WHERE id IN :ids ORDER BY id {lock workers}""",
)
SAVE_RECORD = many(
    """UPDATE workers SET gold_right = :gold_right, gold_asked = :gold_asked, agreed = :agreed,
    judged = :judged, skill = :skill, precision = :precision, used_skill = :used_skill
    WHERE id = :id"""
)
ADD_TALLY = many(
    """INSERT INTO tallies (campaign_id, name, shard, value)
    VALUES (:campaign_id, :name, :shard, :value)
    ON CONFLICT (campaign_id, name, shard) DO UPDATE SET value = tallies.value + excluded.value"""
)
