"""Searching for questions and handing them out: what to find, and how leases are written.

The search never waits: rows that another process has locked are left out. On PostgreSQL, where a
statement is a round trip to another process, one query finds candidates for all workers, without
locking them, and one statement writes all leases. Those who get nothing in this way, because others
took what was found, and all workers on SQLite, where a statement is a function call, are served one
by one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.engine import Connection

from crowdtree.server.settings.model import NEVER
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.sql import (
    Pending,
    Query,
    Sql,
    fetch,
    fetch_one,
    is_sqlite,
    run,
    send,
    send_many,
)
from crowdtree.server.store.db.statements import (
    ACTIVE,
    LIVE,
    TAKEN,
    UNFINISHED,
    UNREVISED,
    lease_token,
)
from crowdtree.server.store.types import ItemStatus, LeaseState


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
        return lease_token(self.lease_id, self.nonce)


class Seeker(NamedTuple):
    """A worker who is looking for a question: the preferred one, or with `wide` any."""

    worker_id: int
    campaign_id: int
    question: int
    after: int
    """Id of the open question after which those with the preferred question are searched."""
    after_any: int
    people: int
    known: int
    wide: bool


class Offer(NamedTuple):
    """An open question for a worker: `kind` 0 for the preferred question, 1 for any."""

    worker_id: int
    kind: int
    id: int
    item_id: int
    question: int
    needed: int
    task: str = ""
    payload: str = ""


class NewItem(NamedTuple):
    """An item that was not started yet."""

    campaign_id: int
    item_id: int
    task: str = ""
    payload: str = ""


class NewLease(NamedTuple):
    """A lease to write: of an open question, or without an `offer` of an item that is started."""

    worker_id: int
    campaign_id: int
    item_id: int
    question: int
    nonce: str
    expires_at: float
    people: int
    revision: int
    offer: int = 0
    place: int = 0
    """Which lease of the open question it is, from 1 on."""
    needed: int = 0
    """How many there may be."""
    task: str = ""
    payload: str = ""


class Rest(NamedTuple):
    """A question of an item that is started, which can be handed out `needed` more times."""

    campaign_id: int
    item_id: int
    question: int
    needed: int
    known_only: int = 0


class Grant(NamedTuple):
    """A lease that was written, with its item."""

    lease_id: int
    nonce: str
    worker_id: int
    item_id: int
    question: int
    task: str
    payload: str


class LeaseKey(NamedTuple):
    """The id and the nonce of a lease that was written."""

    id: int
    nonce: str


class ScannedQuestion(NamedTuple):
    """An open question and its item."""

    id: int
    item_id: int


HELD = Query(
    HeldTask,
    f"""SELECT leases.id AS lease_id, leases.nonce, leases.worker_id, leases.question,
    leases.expires_at, items.task, items.payload
    FROM leases JOIN items ON items.id = leases.item_id
    WHERE {ACTIVE} AND leases.worker_id IN
    (SELECT worker_id FROM credentials WHERE token_hash IN :hashes) ORDER BY leases.id""",
)
AGAIN = f"""(leases.question = open_questions.question
    OR (leases.state <> {LeaseState.SKIPPED:d} OR {{people}} = {NEVER})
    AND (SELECT count(DISTINCT other.worker_id) FROM leases AS other
        WHERE other.item_id = leases.item_id AND other.state = {LeaseState.ANSWERED:d}
        AND NOT EXISTS (SELECT 1 FROM exclusions WHERE exclusions.campaign_id = other.campaign_id
            AND exclusions.worker_id = other.worker_id AND exclusions.lifted_revision IS NULL)
        ) < {{people}})"""
"""Whether the worker of a lease must not be asked an open question of the same item: it is the same
question, or fewer people have answered about the item than must before one is asked again
(:attr:`crowdtree.server.settings.model.Settings.min_people_before_repeat`)."""
ANY_FOR_WORKER = Sql(
    f"""SELECT 1 FROM items WHERE campaign_id = :campaign AND {UNFINISHED}
    AND (SELECT count(*) FROM leases WHERE leases.item_id = items.id
        AND leases.worker_id = :worker AND {TAKEN}) < :questions
    UNION ALL {UNREVISED} LIMIT 1"""
)
SCAN_QUESTIONS = Query(
    ScannedQuestion,
    """SELECT id, item_id FROM open_questions WHERE campaign_id = :campaign
    AND id > :after AND known_only <= :known ORDER BY id LIMIT :most""",
)
LOCK_ITEM = Sql("SELECT id FROM items WHERE id = :id AND revision = :revision {skip items}")
GOLD_TAKEN = Sql(
    f"""SELECT 1 FROM leases WHERE item_id = :item AND worker_id = :worker
    AND :question IN (question, -1) AND {TAKEN} LIMIT 1"""
)
"""Whether the worker had a question about an item, or with -1 any question."""
TAKE_BACK = Sql(
    f"""UPDATE leases SET expires_at = :past WHERE id IN (SELECT leases.id FROM leases
    JOIN workers ON workers.id = leases.worker_id WHERE leases.campaign_id = :campaign AND {LIVE}
    AND leases.given_at < :before AND leases.expires_at >= :now
    AND (workers.answers = 0 OR workers.lapses > 0) {{skip leases}})"""
)

# ------------------------------------------------------------------------------ searching

_OFFER = f"""SELECT CAST({{worker_id}} AS BIGINT) AS worker_id, {{kind}} AS kind,
    open_questions.id, open_questions.item_id, open_questions.question, open_questions.needed
    {{more}} WHERE open_questions.campaign_id = {{campaign_id}} AND {{which}}
    AND open_questions.known_only <= {{known}}
    AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.item_id = open_questions.item_id
        AND leases.worker_id = {{worker_id}} AND {TAKEN} AND {AGAIN.format(people="{people}")})
    ORDER BY open_questions.id LIMIT"""
_KINDS = (
    "open_questions.question = {question} AND open_questions.id > {after}",
    "open_questions.id > {after_any}",
)


def _offer(kind: int, more: str, prefix: str) -> str:
    """Write the search for a kind of offers; the seeker's columns are parameters, or those of r."""
    columns = {name: prefix + name for name in Seeker._fields}
    return _OFFER.format(kind=kind, which=_KINDS[kind].format(**columns), more=more, **columns)


_WITH_ITEM = """, items.task, items.payload
    FROM open_questions JOIN items ON items.id = open_questions.item_id"""
OFFER_FOR_ONE = tuple(
    Query(Offer, f"{_offer(kind, _WITH_ITEM, ':')} 1 {{skip open_questions, items}}")
    for kind in (0, 1)
)
NEW_ITEM_FOR_ONE = Query(
    NewItem,
    f"""SELECT campaign_id, id AS item_id, task, payload FROM items
    WHERE campaign_id = :campaign_id AND status = {ItemStatus.NEW:d}
    ORDER BY id LIMIT 1 {{skip items}}""",
)
_ALONE = ", '' AS task, '' AS payload FROM open_questions"
OFFERS = Query(
    Offer,
    f"""WITH r AS MATERIALIZED (SELECT * FROM json_to_recordset(:rows::json) AS
        r(worker_id bigint, campaign_id bigint, question int, after bigint, after_any bigint,
        people int, known int, wide boolean))
    SELECT o.* FROM r CROSS JOIN LATERAL ({_offer(0, _ALONE, "r.")} :most) o
    UNION ALL
    SELECT o.* FROM r CROSS JOIN LATERAL ({_offer(1, _ALONE, "r.")} :most) o WHERE r.wide
    ORDER BY 1, 2, 3""",
)
NEW_ITEMS = Query(
    NewItem,
    f"""SELECT c.id AS campaign_id, i.id AS item_id, '' AS task, '' AS payload FROM campaigns c
    CROSS JOIN LATERAL (SELECT items.id FROM items WHERE items.campaign_id = c.id
        AND items.status = {ItemStatus.NEW:d} ORDER BY items.id LIMIT :most) i
    WHERE c.id IN :ids ORDER BY 1, 2""",
)


def find_for_all(
    connection: Connection, seekers: Sequence[Seeker], most: int
) -> tuple[list[Offer], list[NewItem]]:
    """Find open questions for workers, at most so many for each, and new items (PostgreSQL)."""
    rows = json.dumps([seeker._asdict() for seeker in seekers])
    campaigns = sorted({seeker.campaign_id for seeker in seekers})
    offers = send(connection, OFFERS, rows=rows, most=most)
    items = send(connection, NEW_ITEMS, ids=campaigns, most=most)
    return offers.rows(), items.rows()


def find_for_one(connection: Connection, seeker: Seeker) -> tuple[list[Offer], list[NewItem]]:
    """Find the first open question for a worker, or a new item, and lock it."""
    for statement in OFFER_FOR_ONE[: 1 + seeker.wide]:
        if offers := fetch(connection, statement, **seeker._asdict()):
            return offers, []
    return [], fetch(connection, NEW_ITEM_FOR_ONE, campaign_id=seeker.campaign_id)


# ------------------------------------------------------------------------------ handing out

_LEASE = """INSERT INTO leases (nonce, campaign_id, item_id, worker_id, question, state,
    given_at, expires_at)"""
ADD_LEASE = Query(
    LeaseKey,
    f"""{_LEASE} VALUES (:nonce, :campaign_id, :item_id, :worker_id, :question,
    {LeaseState.ACTIVE:d}, :now, :expires_at) ON CONFLICT (item_id, worker_id, question)
    DO UPDATE SET state = {LeaseState.ACTIVE:d}, given_at = :now, expires_at = :expires_at
    WHERE leases.state = {LeaseState.EXPIRED:d} RETURNING id, nonce""",
)
OPEN_ITEM = Sql(
    f"""UPDATE items SET status = {ItemStatus.OPEN:d}, revision = :revision,
    judged_by = :revision WHERE id = :id"""
)
TAKE_OFFERS = Query(
    Grant,
    f"""WITH r AS MATERIALIZED (SELECT * FROM json_to_recordset(:rows::json) AS
        r(offer bigint, place int, worker_id bigint, campaign_id bigint, nonce text,
        expires_at float8, people int)),
    locked AS MATERIALIZED (SELECT open_questions.id, open_questions.item_id,
        open_questions.question, open_questions.needed, items.task, items.payload
        FROM open_questions JOIN items ON items.id = open_questions.item_id
        WHERE open_questions.id IN :ids ORDER BY open_questions.id
        {{skip open_questions, items}}),
    leased AS ({_LEASE} SELECT r.nonce, r.campaign_id, locked.item_id, r.worker_id,
        locked.question, {LeaseState.ACTIVE:d}, :now, r.expires_at
        FROM r JOIN locked ON locked.id = r.offer
        WHERE r.place <= locked.needed AND NOT EXISTS (SELECT 1 FROM leases
        WHERE leases.item_id = locked.item_id AND leases.worker_id = r.worker_id
        AND {TAKEN} AND {AGAIN.format(people="r.people").replace("open_questions.", "locked.")})
        ON CONFLICT (item_id, worker_id, question)
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
    f"""WITH r AS MATERIALIZED (SELECT * FROM json_to_recordset(:rows::json) AS
        r(item_id bigint, question int, worker_id bigint, campaign_id bigint, nonce text,
        expires_at float8, revision int)),
    locked AS MATERIALIZED (SELECT items.id, items.task, items.payload FROM items
        WHERE items.id IN :ids AND items.status = {ItemStatus.NEW:d}
        ORDER BY items.id {{skip items}}),
    opened AS (UPDATE items SET status = {ItemStatus.OPEN:d}, revision = r.revision,
        judged_by = r.revision
        FROM locked JOIN r ON r.item_id = locked.id WHERE items.id = locked.id),
    leased AS ({_LEASE} SELECT r.nonce, r.campaign_id, r.item_id, r.worker_id, r.question,
        {LeaseState.ACTIVE:d}, :now, r.expires_at
        FROM r JOIN locked ON locked.id = r.item_id
        RETURNING id, nonce, worker_id, item_id, question),
    added AS (INSERT INTO open_questions (campaign_id, item_id, question, needed)
        SELECT r.campaign_id, r.item_id, r.question, r.needed
        FROM json_to_recordset(:rest::json)
        AS r(campaign_id bigint, item_id bigint, question int, needed int)
        JOIN locked ON locked.id = r.item_id)
    SELECT leased.id AS lease_id, leased.nonce, leased.worker_id, leased.item_id, leased.question,
    locked.task, locked.payload FROM leased JOIN locked ON locked.id = leased.item_id""",
)


def hand_out(
    connection: Connection, leases: Sequence[NewLease], rest: Sequence[Rest], now: float
) -> list[Grant]:
    """Write leases and what is left to hand out; those that another process took are left out."""
    if is_sqlite(connection):
        return [grant for lease in leases if (grant := _take(connection, lease, rest, now))]
    taken = [lease for lease in leases if lease.offer]
    started = [lease for lease in leases if not lease.offer]
    pending: list[Pending[Grant]] = []
    if taken:
        ids = sorted({lease.offer for lease in taken})
        rows = json.dumps([lease._asdict() for lease in taken])
        pending.append(send(connection, TAKE_OFFERS, rows=rows, ids=ids, now=now))
    if started:
        ids = sorted({lease.item_id for lease in started})
        rows = json.dumps([lease._asdict() for lease in started])
        left = json.dumps([question._asdict() for question in rest])
        pending.append(send(connection, START_ITEMS, rows=rows, rest=left, ids=ids, now=now))
    return [grant for part in pending for grant in part.rows()]


def _take(
    connection: Connection, lease: NewLease, rest: Sequence[Rest], now: float
) -> Grant | None:
    """Write a lease on SQLite, where nobody else writes meanwhile."""
    if not lease.offer:
        run(connection, OPEN_ITEM, id=lease.item_id, revision=lease.revision)
        send_many(connection, sql.ADD_QUESTION, (question._asdict() for question in rest))
    elif lease.place < lease.needed:
        left = {"id": lease.offer, "needed": lease.needed - lease.place}
        send_many(connection, sql.SAVE_QUESTION, [left])
    else:
        send_many(connection, sql.DROP_QUESTION, [{"id": lease.offer}])
    return add_lease(connection, lease, now)


def add_lease(connection: Connection, lease: NewLease, now: float) -> Grant | None:
    """Write a lease; a worker whose lease on this question has expired gets the same one again."""
    key = fetch_one(connection, ADD_LEASE, **lease._asdict(), now=now)
    if key is None:
        return None
    return Grant(*key, lease.worker_id, lease.item_id, lease.question, lease.task, lease.payload)
