"""The statements that search for questions and hand them out, each with the type of its rows.

They never wait: rows that another process has locked are skipped. The second half serves many
workers at once and runs on PostgreSQL only.
"""

from __future__ import annotations

from typing import NamedTuple

from crowdtree.server.settings.model import NEVER
from crowdtree.server.store.db.sql import Query, Sql
from crowdtree.server.store.db.statements import ACTIVE, LIVE, TAKEN, UNFINISHED, UNREVISED, Item
from crowdtree.server.store.types import ItemStatus, LeaseState, lease_token


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


class Choice(NamedTuple):
    """An open question that a worker can be given, with its item."""

    id: int
    item_id: int
    question: int
    needed: int
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
_UNTOUCHED = f"""NOT EXISTS (SELECT 1 FROM leases
    WHERE leases.item_id = open_questions.item_id AND leases.worker_id = :worker AND {TAKEN}
    AND {AGAIN.format(people=":people")})"""
_CHOOSE = f"""SELECT open_questions.id, open_questions.item_id, open_questions.question,
    open_questions.needed, items.task, items.payload
    FROM open_questions JOIN items ON items.id = open_questions.item_id
    WHERE open_questions.campaign_id = :campaign {{question}} AND open_questions.id > :after
    AND open_questions.known_only <= :known
    AND {_UNTOUCHED} ORDER BY open_questions.id LIMIT 1"""


def _choose(one_question: bool) -> Query[Choice]:
    question = "AND open_questions.question = :question" if one_question else ""
    return Query(Choice, _CHOOSE.replace("{question}", question) + " {skip open_questions, items}")


CHOOSE = {one: _choose(one) for one in (False, True)}
"""By whether one question is searched for."""
NEW_ITEM = Query(
    Item,
    f"""SELECT id, task, payload FROM items WHERE campaign_id = :campaign
    AND status = {ItemStatus.NEW:d} ORDER BY id LIMIT 1 {{skip items}}""",
)
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
ADD_LEASE = Query(
    LeaseKey,
    f"""INSERT INTO leases (nonce, campaign_id, item_id, worker_id, question, state,
    given_at, expires_at) VALUES (:nonce, :campaign, :item, :worker, :question,
    {LeaseState.ACTIVE:d}, :now, :expires) ON CONFLICT (item_id, worker_id, question)
    DO UPDATE SET state = {LeaseState.ACTIVE:d}, given_at = :now, expires_at = :expires
    WHERE leases.state = {LeaseState.EXPIRED:d} RETURNING id, nonce""",
)
OPEN_ITEM = Sql(
    f"""UPDATE items SET status = {ItemStatus.OPEN:d}, revision = :revision,
    judged_by = :revision WHERE id = :id"""
)
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

# ------------------------------------------------------------- assignment in batches, PostgreSQL


class Seeker(NamedTuple):
    """A worker who is looking for a question, and from which positions on."""

    worker_id: int
    campaign_id: int
    question: int
    after: int
    after_any: int
    people: int
    known: int
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
    AND open_questions.known_only <= r.known
    AND NOT EXISTS (SELECT 1 FROM leases
        WHERE leases.item_id = open_questions.item_id AND leases.worker_id = r.worker_id
        AND {TAKEN} AND {AGAIN.format(people="r.people")})
    ORDER BY open_questions.id LIMIT :most"""
_PREFERRED = _OFFER.replace(
    "{question}", "AND open_questions.question = r.question AND open_questions.id > r.after"
)
_ANY = _OFFER.replace("{question}", "AND open_questions.id > r.after_any AND r.wide")
OFFERS = Query(
    Offer,
    f"""WITH r AS MATERIALIZED (SELECT * FROM json_to_recordset(:rows::json) AS
        r(worker_id bigint, campaign_id bigint, question int, after bigint, after_any bigint,
        people int, known int, wide boolean))
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
_LEASE = """INSERT INTO leases (nonce, campaign_id, item_id, worker_id, question, state,
    given_at, expires_at)"""
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
