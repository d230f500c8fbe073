"""The statements that run per question and per answer, each with the type of its rows.

Locks on PostgreSQL are always taken in one order to avoid deadlocks: budgets, items (by id),
workers (by id), tallies. Choosing a question never waits: it skips rows that are locked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.dialects import postgresql

from crowdtree.store.db.sql import Many, Query, Sql
from crowdtree.store.db.states import LIVE_LEASES, ItemStatus, LeaseState, in_states
from crowdtree.store.db.tables import metadata

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
    status_reason: str
    question: int | None
    last_question: int
    skill: float
    answers: int
    campaign_version: int
    campaign_status: str
    campaign_reason: str

    @property
    def preferred(self) -> int:
        """The question to ask first: the worker's only one, or the previous one."""
        return self.last_question if self.question is None else self.question

    @property
    def campaign(self) -> CampaignState:
        """What the row says about the campaign."""
        return CampaignState(
            self.campaign_id, self.campaign_version, self.campaign_status, self.campaign_reason
        )

    def may_answer(self, question: int) -> bool:
        """Whether the worker can be asked a question: any, or the only one of a dedicated one."""
        return self.question in (None, question)


class CampaignState(NamedTuple):
    """What changes about a campaign while it runs; `version` counts changes of its definition."""

    id: int
    version: int
    status: str
    status_reason: str


class Definition(NamedTuple):
    """The JSON documents of a campaign."""

    problem: str
    policy: str
    settings: str


class BudgetRow(NamedTuple):
    """The budget of a campaign, in millionths."""

    campaign_id: int
    cap: int
    spent: int
    reserved: int


WORKERS = Query(
    Worker,
    """SELECT credentials.token_hash, credentials.role, credentials.expires_at,
    workers.id, workers.campaign_id, workers.status, workers.status_reason, workers.question,
    workers.last_question, workers.skill, workers.answers, campaigns.version AS campaign_version,
    campaigns.status AS campaign_status, campaigns.status_reason AS campaign_reason
    FROM credentials JOIN workers ON workers.id = credentials.worker_id
    JOIN campaigns ON campaigns.id = workers.campaign_id
    WHERE credentials.token_hash IN :hashes AND credentials.revoked_at IS NULL""",
)
CAMPAIGNS = Query(
    CampaignState, "SELECT id, version, status, status_reason FROM campaigns WHERE id IN :ids"
)
DEFINITION = Query(Definition, "SELECT problem, policy, settings FROM campaigns WHERE id = :id")
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


@dataclass
class Lease:
    """A question that was handed to a worker."""

    id: int
    nonce: str
    item_id: int
    worker_id: int
    question: int
    state: int
    attempts: int
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
    """One line of the log of an item."""

    item_id: int
    question: int
    worker_id: int
    value: int | None
    kind: str
    key: str
    lease_id: int
    skill: float
    fate: str
    overdue: int
    price: int


class OpenQuestion(NamedTuple):
    """A question that can be handed out `needed` more times."""

    id: int
    item_id: int
    question: int
    needed: int


class Outcome(NamedTuple):
    """What became of an answer."""

    fate: str
    overdue: int


class LastAnswer(NamedTuple):
    """A worker's last line of the log."""

    item_id: int
    lease_id: int
    question: int
    kind: str
    key: str
    fate: str
    price: int
    value: int | None
    overdue: int


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
    fate: str
    overdue: int
    price: int
    at: float


class NewLabel(NamedTuple):
    """A label to write; one without a class says why the item was set aside."""

    campaign_id: int
    item_id: int
    label: int | None
    posterior_error: float | None
    reason: str
    answers: int
    path: str
    at: float


ITEMS = Query(
    ItemRow,
    """SELECT id, campaign_id, task, status, gold, state FROM items WHERE id {of items}
    ORDER BY id {lock items}""",
)
LEASES_OF_ITEMS = Query(
    Lease,
    f"""SELECT id, nonce, item_id, worker_id, question, state, attempts, given_at, expires_at
    FROM leases WHERE item_id {{of items}} AND ({LIVE} OR id IN :leases)""",
)
_LOG = """SELECT item_id, question, worker_id, value, kind, key, lease_id, skill, fate, overdue,
    price FROM answers WHERE item_id {which} ORDER BY id"""
LOG_OF_ITEMS = Query(LogLine, _LOG.replace("{which}", "{of items}"))
LOG = Query(LogLine, _LOG.replace("{which}", "IN :ids"))
QUESTIONS_OF_ITEMS = Query(
    OpenQuestion,
    "SELECT id, item_id, question, needed FROM open_questions WHERE item_id {of items}",
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
LAST_ANSWER = Query(
    LastAnswer,
    """SELECT item_id, lease_id, question, kind, key, fate, price, value, overdue FROM answers
    WHERE worker_id = :worker ORDER BY id DESC LIMIT 1""",
)

ADD_ANSWER = many(insert("answers", NewAnswer))
SAVE_LEASE = many(
    """UPDATE leases SET state = :state, attempts = :attempts, given_at = :given_at,
    expires_at = :expires_at WHERE id = :id"""
)
SAVE_ITEM = many("UPDATE items SET status = :status, state = :state WHERE id = :id")
ADD_QUESTION = many(
    """INSERT INTO open_questions (campaign_id, item_id, question, needed)
    VALUES (:campaign_id, :item_id, :question, :needed)"""
)
SAVE_QUESTION = many("UPDATE open_questions SET needed = :needed WHERE id = :id")
DROP_QUESTION = many("DELETE FROM open_questions WHERE id = :id")
ADD_LABEL = many(insert("labels", NewLabel))
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
"""Value of `gold` in a judgement that was taken back: learn the worker anew from the log."""


class WorkerRecord(NamedTuple):
    """What has been learned about a worker."""

    id: int
    campaign_id: int
    status: str
    status_reason: str
    skill: float
    precision: float
    gold_right: int
    gold_asked: int
    agreed: int
    judged: int


LOCK_WORKERS = Sql("SELECT id FROM workers WHERE id IN :ids ORDER BY id {lock workers}")
ADD_TO_WORKER = many(
    """UPDATE workers SET answers = workers.answers + :answers, skips = workers.skips + :skips,
    overdue = workers.overdue + :overdue, earned = workers.earned + :earned, last_question =
    CASE WHEN :last_question < 0 THEN workers.last_question ELSE :last_question END,
    seen_at = CASE WHEN :now > seen_at THEN :now ELSE seen_at END WHERE id = :id"""
)
ADD_JUDGEMENT = many(insert("judgements", Judgement))
TAKE_JUDGEMENTS = Query(
    Judgement,
    """DELETE FROM judgements WHERE id IN (SELECT id FROM judgements ORDER BY id LIMIT :most
    {skip judgements}) RETURNING worker_id, question, value, cls, error, gold""",
)
LOCK_RECORDS = Query(
    WorkerRecord,
    """SELECT id, campaign_id, status, status_reason, skill, precision, gold_right, gold_asked,
    agreed, judged FROM workers WHERE id IN :ids ORDER BY id {lock workers}""",
)
SAVE_RECORD = many(
    """UPDATE workers SET gold_right = :gold_right, gold_asked = :gold_asked, agreed = :agreed,
    judged = :judged, skill = :skill, precision = :precision, status = :status,
    status_reason = :status_reason WHERE id = :id"""
)
ADD_TALLY = many(
    """INSERT INTO tallies (campaign_id, name, shard, value)
    VALUES (:campaign_id, :name, :shard, :value)
    ON CONFLICT (campaign_id, name, shard) DO UPDATE SET value = tallies.value + excluded.value"""
)

# ------------------------------------------------------------------------------ assignment


class HeldTask(NamedTuple):
    """A question that a worker holds, with its item."""

    lease_id: int
    nonce: str
    worker_id: int
    question: int
    expires_at: float
    task: str
    payload: str

    @property
    def token(self) -> str:
        """The lease as the worker knows it."""
        return f"{self.lease_id}.{self.nonce}"


class Choice(NamedTuple):
    """An open question that a worker can be given, with its item."""

    id: int
    item_id: int
    question: int
    needed: int
    task: str
    payload: str


class Item(NamedTuple):
    """An item as workers see it."""

    id: int
    task: str
    payload: str


class ScannedQuestion(NamedTuple):
    """An open question and its item."""

    id: int
    item_id: int


class LeaseKey(NamedTuple):
    """A lease that was written."""

    id: int
    nonce: str


class GoldItem(NamedTuple):
    """An item whose class is known."""

    id: int
    cls: int


HELD = Query(
    HeldTask,
    f"""SELECT leases.id AS lease_id, leases.nonce, leases.worker_id, leases.question,
    leases.expires_at, items.task, items.payload
    FROM leases JOIN items ON items.id = leases.item_id
    WHERE {ACTIVE} AND leases.worker_id IN
    (SELECT worker_id FROM credentials WHERE token_hash IN :hashes) ORDER BY leases.id""",
)
_UNTOUCHED_ITEM = f"""NOT EXISTS (SELECT 1 FROM leases
    WHERE leases.item_id = open_questions.item_id AND leases.worker_id = :worker AND {TAKEN})"""
_UNTOUCHED = _UNTOUCHED_ITEM.replace(
    f"AND {TAKEN}", f"AND leases.question = open_questions.question AND {TAKEN}"
)
_CHOOSE = """SELECT open_questions.id, open_questions.item_id, open_questions.question,
    open_questions.needed, items.task, items.payload
    FROM open_questions JOIN items ON items.id = open_questions.item_id
    WHERE open_questions.campaign_id = :campaign {question} AND open_questions.id > :after
    AND {untouched} ORDER BY open_questions.id LIMIT 1"""


def _choose(one_question: bool, once_per_item: bool) -> Query[Choice]:
    question = "AND open_questions.question = :question" if one_question else ""
    made = _CHOOSE.replace("{question}", question)
    made = made.replace("{untouched}", _UNTOUCHED_ITEM if once_per_item else _UNTOUCHED)
    return Query(Choice, made + " {skip open_questions, items}")


CHOOSE = {(one, once): _choose(one, once) for one in (False, True) for once in (False, True)}
"""By whether one question is searched for, and whether a worker sees an item only once."""
NEW_ITEM = Query(
    Item,
    f"""SELECT id, task, payload FROM items WHERE campaign_id = :campaign
    AND status = {ItemStatus.NEW:d} ORDER BY id LIMIT 1 {{skip items}}""",
)
ANY_UNFINISHED = Sql(f"SELECT 1 FROM items WHERE campaign_id = :campaign AND {UNFINISHED} LIMIT 1")
ANY_FOR_WORKER = Sql(
    f"""SELECT 1 FROM items WHERE campaign_id = :campaign AND {UNFINISHED}
    AND (SELECT count(*) FROM leases WHERE leases.item_id = items.id
        AND leases.worker_id = :worker AND {TAKEN}) < :questions LIMIT 1"""
)
SCAN_QUESTIONS = Query(
    ScannedQuestion,
    """SELECT id, item_id FROM open_questions WHERE campaign_id = :campaign
    AND id > :after ORDER BY id LIMIT :most""",
)
LOCK_ITEM = Sql("SELECT id FROM items WHERE id = :id {skip items}")
ITEM = Query(Item, "SELECT id, task, payload FROM items WHERE id = :id")
ADD_LEASE = Query(
    LeaseKey,
    f"""INSERT INTO leases (nonce, campaign_id, item_id, worker_id, question, state, attempts,
    given_at, expires_at) VALUES (:nonce, :campaign, :item, :worker, :question,
    {LeaseState.ACTIVE:d}, 0, :now, :expires) ON CONFLICT (item_id, worker_id, question)
    DO UPDATE SET state = {LeaseState.ACTIVE:d}, given_at = :now, expires_at = :expires
    WHERE leases.state = {LeaseState.EXPIRED:d} RETURNING id, nonce""",
)
OPEN_ITEM = Sql(f"UPDATE items SET status = {ItemStatus.OPEN:d} WHERE id = :id")
GOLD_ITEMS = Query(
    GoldItem,
    f"""SELECT id, gold AS cls FROM items WHERE campaign_id = :campaign
    AND status = {ItemStatus.GOLD:d} ORDER BY id LIMIT 10000""",
)
GOLD_TAKEN = Sql(
    f"""SELECT 1 FROM leases WHERE item_id = :item AND worker_id = :worker
    AND question = :question AND {TAKEN}"""
)

# ------------------------------------------------------------- assignment in batches, PostgreSQL


class Seeker(NamedTuple):
    """A worker who is looking for a question, and from which positions on."""

    worker_id: int
    campaign_id: int
    question: int
    after: int
    after_any: int
    once: bool
    wide: bool


class Offer(NamedTuple):
    """An open question for a worker: `kind` 0 for the preferred question, 1 for any."""

    worker_id: int
    kind: int
    id: int
    question: int
    needed: int


class NewItemOffer(NamedTuple):
    """An item that was not started yet."""

    campaign_id: int
    item_id: int


class Grant(NamedTuple):
    """A lease that was written for a worker, with its item."""

    lease_id: int
    nonce: str
    worker_id: int
    item_id: int
    question: int
    task: str
    payload: str


_OFFER = f"""SELECT open_questions.id, open_questions.question, open_questions.needed
    FROM open_questions WHERE open_questions.campaign_id = r.campaign_id {{question}}
    AND NOT EXISTS (SELECT 1 FROM leases
        WHERE leases.item_id = open_questions.item_id AND leases.worker_id = r.worker_id
        AND (r.once OR leases.question = open_questions.question) AND {TAKEN})
    ORDER BY open_questions.id LIMIT :most"""
_PREFERRED = _OFFER.replace(
    "{question}", "AND open_questions.question = r.question AND open_questions.id > r.after"
)
_ANY = _OFFER.replace("{question}", "AND open_questions.id > r.after_any AND r.wide")
OFFERS = Query(
    Offer,
    f"""WITH r AS MATERIALIZED (SELECT * FROM json_to_recordset(:rows::json) AS
        r(worker_id bigint, campaign_id bigint, question int, after bigint, after_any bigint,
        once boolean, wide boolean))
    SELECT r.worker_id, 0 AS kind, o.id, o.question, o.needed
    FROM r CROSS JOIN LATERAL ({_PREFERRED}) o
    UNION ALL
    SELECT r.worker_id, 1 AS kind, o.id, o.question, o.needed
    FROM r CROSS JOIN LATERAL ({_ANY}) o
    ORDER BY 1, 2, 3""",
)
NEW_ITEMS = Query(
    NewItemOffer,
    f"""SELECT c.id AS campaign_id, i.id AS item_id FROM campaigns c
    CROSS JOIN LATERAL (SELECT items.id FROM items WHERE items.campaign_id = c.id
        AND items.status = {ItemStatus.NEW:d} ORDER BY items.id LIMIT :most) i
    WHERE c.id IN :ids ORDER BY 1, 2""",
)
_LEASE = """INSERT INTO leases (nonce, campaign_id, item_id, worker_id, question, state, attempts,
    given_at, expires_at)"""
TAKE_OFFERS = Query(
    Grant,
    f"""WITH r AS MATERIALIZED (SELECT * FROM json_to_recordset(:rows::json) AS
        r(offer bigint, place int, worker_id bigint, campaign_id bigint, nonce text,
        expires_at float8, once boolean)),
    locked AS MATERIALIZED (SELECT open_questions.id, open_questions.item_id,
        open_questions.question, open_questions.needed, items.task, items.payload
        FROM open_questions JOIN items ON items.id = open_questions.item_id
        WHERE open_questions.id IN :ids ORDER BY open_questions.id
        {{skip open_questions, items}}),
    leased AS ({_LEASE} SELECT r.nonce, r.campaign_id, locked.item_id, r.worker_id,
        locked.question, {LeaseState.ACTIVE:d}, 0, :now, r.expires_at
        FROM r JOIN locked ON locked.id = r.offer
        WHERE r.place <= locked.needed AND NOT (r.once AND EXISTS (SELECT 1 FROM leases
        WHERE leases.item_id = locked.item_id AND leases.worker_id = r.worker_id
        AND {TAKEN})) ON CONFLICT (item_id, worker_id, question)
        DO UPDATE SET state = {LeaseState.ACTIVE:d}, given_at = excluded.given_at,
        expires_at = excluded.expires_at
        WHERE leases.state = {LeaseState.EXPIRED:d}
        RETURNING id, nonce, worker_id, item_id, question),
    used AS MATERIALIZED (SELECT locked.id, count(*) AS n FROM leased JOIN locked
        USING (item_id, question) GROUP BY locked.id),
    less AS (UPDATE open_questions SET needed = open_questions.needed - used.n FROM used
        WHERE open_questions.id = used.id AND open_questions.needed > used.n),
    gone AS (DELETE FROM open_questions USING used
        WHERE open_questions.id = used.id AND open_questions.needed <= used.n)
    SELECT leased.id AS lease_id, leased.nonce, leased.worker_id, leased.item_id, leased.question,
    locked.task, locked.payload FROM leased JOIN locked USING (item_id, question)""",
)
START_ITEMS = Query(
    Grant,
    f"""WITH locked AS MATERIALIZED (SELECT items.id, items.task, items.payload FROM items
        WHERE items.id IN :ids AND items.status = {ItemStatus.NEW:d}
        ORDER BY items.id {{skip items}}),
    opened AS (UPDATE items SET status = {ItemStatus.OPEN:d} FROM locked
        WHERE items.id = locked.id),
    leased AS ({_LEASE} SELECT r.nonce, r.campaign_id, r.item_id, r.worker_id, r.question,
        {LeaseState.ACTIVE:d}, 0, :now, r.expires_at
        FROM json_to_recordset(:rows::json) AS r(item_id bigint, question int,
        worker_id bigint, campaign_id bigint, nonce text, expires_at float8)
        JOIN locked ON locked.id = r.item_id
        RETURNING id, nonce, worker_id, item_id, question),
    added AS (INSERT INTO open_questions (campaign_id, item_id, question, needed)
        SELECT r.campaign_id, r.item_id, r.question, r.needed
        FROM json_to_recordset(:rest::json)
        AS r(campaign_id bigint, item_id bigint, question int, needed int)
        JOIN locked ON locked.id = r.item_id)
    SELECT leased.id AS lease_id, leased.nonce, leased.worker_id, leased.item_id, leased.question,
    locked.task, locked.payload FROM leased JOIN locked ON locked.id = leased.item_id""",
)
