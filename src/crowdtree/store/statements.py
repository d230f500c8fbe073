"""The statements that run for every question and every answer.

Locks on PostgreSQL are always taken in one order, so that server processes cannot block each
other for good: budgets, items (by id), workers, tallies. Choosing a question never waits:
it skips what somebody else holds.
"""

from __future__ import annotations

import re

from sqlalchemy.dialects import postgresql

from crowdtree.store.database import Many, Sql
from crowdtree.store.tables import metadata


def many(text: str) -> Many:
    """Make a statement for many rows; its values have the types of the columns of their names."""
    found = re.search(r"(?:INTO|UPDATE|FROM) (\w+)", text)
    columns = metadata.tables[found[1] if found else ""].columns
    names = dict.fromkeys(re.findall(r"(?<!:):(\w+)", text))
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    types = {name: columns[name].type.compile(dialect) for name in names if name in columns}
    return Many(text, **{name: types.get(name, "FLOAT") for name in names})


WORKERS = Sql(
    """SELECT credentials.token_hash, credentials.role, credentials.expires_at,
    workers.id, workers.campaign_id, workers.status, workers.status_reason, workers.question,
    workers.last_question, workers.skill, workers.answers,
    campaigns.version, campaigns.status, campaigns.status_reason
    FROM credentials JOIN workers ON workers.id = credentials.worker_id
    JOIN campaigns ON campaigns.id = workers.campaign_id
    WHERE credentials.token_hash IN :hashes AND credentials.revoked_at IS NULL"""
)
CAMPAIGNS = Sql("SELECT id, version, status, status_reason FROM campaigns WHERE id IN :ids")
CAMPAIGN = Sql("SELECT problem, policy, settings FROM campaigns WHERE id = :id")
BUDGETS = Sql(
    """SELECT campaign_id, cap, spent, reserved FROM budgets WHERE campaign_id IN :ids
    ORDER BY campaign_id {lock budgets}"""
)
SAVE_BUDGET = Sql(
    "UPDATE budgets SET spent = :spent, reserved = :reserved WHERE campaign_id = :campaign_id"
)

# ------------------------------------------------------------------------------ items and leases
ITEMS = Sql(
    """SELECT id, campaign_id, task, status, gold, state FROM items WHERE id {of items}
    ORDER BY id {lock items}"""
)
LEASES_OF_ITEMS = Sql(
    """SELECT id, nonce, item_id, worker_id, question, state, attempts, given_at, expires_at
    FROM leases WHERE item_id {of items} AND (state IN (0, 4) OR id IN :leases)"""
)
EVENTS_OF_ITEMS = Sql(
    """SELECT item_id, question, worker_id, value, kind, key, lease_id, skill, fate FROM answers
    WHERE item_id {of items} ORDER BY id"""
)
WANTED_OF_ITEMS = Sql("SELECT id, item_id, question, open FROM wanted WHERE item_id {of items}")
OVERDUE_ITEMS = Sql(
    """SELECT items.id FROM items
    WHERE items.id IN (SELECT item_id FROM leases WHERE state IN (0, 4) AND expires_at < :now
        ORDER BY expires_at LIMIT :most)
    OR items.id IN (SELECT item_id FROM leases WHERE state IN (0, 4) AND given_at > :ahead
        ORDER BY given_at DESC LIMIT :most) ORDER BY items.id {skip items}"""
)
ANSWER_BY_KEY = Sql(
    "SELECT fate, overdue, kind FROM answers WHERE lease_id = :lease AND key = :key"
)
LAST_ANSWER = Sql(
    """SELECT id, item_id, lease_id, question, kind, key, fate, price, value, overdue FROM answers
    WHERE worker_id = :worker ORDER BY id DESC LIMIT 1"""
)

ADD_ANSWER = many(
    """INSERT INTO answers (campaign_id, item_id, lease_id, worker_id, question, kind, value, key,
    skill, fate, overdue, price, at) VALUES (:campaign_id, :item_id, :lease_id, :worker_id,
    :question, :kind, :value, :key, :skill, :fate, :overdue, :price, :at)"""
)
SAVE_LEASE = many(
    """UPDATE leases SET state = :state, attempts = :attempts, given_at = :given_at,
    expires_at = :expires_at WHERE id = :id"""
)
SAVE_ITEM = many("UPDATE items SET status = :status, state = :state WHERE id = :id")
ADD_WANTED = many(
    """INSERT INTO wanted (campaign_id, item_id, question, open)
    VALUES (:campaign_id, :item_id, :question, :open)"""
)
SAVE_WANTED = many("UPDATE wanted SET open = :open WHERE id = :id")
DROP_WANTED = many("DELETE FROM wanted WHERE id = :id")
ADD_LABEL = many(
    """INSERT INTO labels (campaign_id, item_id, label, posterior_error, reason, answers, path, at)
    VALUES (:campaign_id, :item_id, :label, :posterior_error, :reason, :answers, :path, :at)"""
)

ADD_ITEM = many(
    """INSERT INTO items (campaign_id, task, payload, status, gold)
    VALUES (:campaign_id, :task, :payload, :status, :gold)
    ON CONFLICT (campaign_id, task) DO NOTHING"""
)

# ------------------------------------------------------------------------------ people and counts
IN_ORDER = Sql("SELECT id FROM workers WHERE id IN :ids ORDER BY id {lock workers}")
SEEN_WORKER = many(
    """UPDATE workers SET answers = workers.answers + :answers, skips = workers.skips + :skips,
    overdue = workers.overdue + :overdue, earned = workers.earned + :earned, last_question =
    CASE WHEN :last_question < 0 THEN workers.last_question ELSE :last_question END,
    seen_at = CASE WHEN :now > seen_at THEN :now ELSE seen_at END WHERE id = :id"""
)
ADD_JUDGEMENT = many(
    """INSERT INTO judgements (worker_id, question, value, cls, error, gold)
    VALUES (:worker_id, :question, :value, :cls, :error, :gold)"""
)
TAKE_JUDGEMENTS = Sql(
    """DELETE FROM judgements WHERE id IN (SELECT id FROM judgements ORDER BY id LIMIT :most
    {skip judgements}) RETURNING worker_id, question, value, cls, error, gold"""
)
LOCK_WORKERS = Sql(
    """SELECT id, campaign_id, status, status_reason, skill, precision, gold_right, gold_asked,
    agreed, judged FROM workers WHERE id IN :ids ORDER BY id {lock workers}"""
)
SAVE_WORKER = many(
    """UPDATE workers SET gold_right = :gold_right, gold_asked = :gold_asked, agreed = :agreed,
    judged = :judged, skill = :skill, precision = :precision, status = :status,
    status_reason = :status_reason WHERE id = :id"""
)
ADD_TALLY = many(
    """INSERT INTO tallies (campaign_id, name, shard, value)
    VALUES (:campaign_id, :name, :shard, :value)
    ON CONFLICT (campaign_id, name, shard) DO UPDATE SET value = tallies.value + excluded.value"""
)

# ------------------------------------------------------------------------------ choosing
HELD = Sql(
    """SELECT leases.id, leases.nonce, leases.worker_id, leases.question, leases.expires_at,
    items.task, items.payload
    FROM leases JOIN items ON items.id = leases.item_id
    WHERE leases.state = 0 AND leases.worker_id IN
    (SELECT worker_id FROM credentials WHERE token_hash IN :hashes) ORDER BY leases.id"""
)
_FRESH = """NOT EXISTS (SELECT 1 FROM leases WHERE leases.item_id = wanted.item_id
    AND leases.worker_id = :worker AND leases.question = wanted.question
    AND leases.state <> 3)"""
_FRESH_ITEM = """NOT EXISTS (SELECT 1 FROM leases WHERE leases.item_id = wanted.item_id
    AND leases.worker_id = :worker AND leases.state <> 3)"""
_CHOOSE = """SELECT wanted.id, wanted.item_id, wanted.question, wanted.open, items.task,
    items.payload FROM wanted JOIN items ON items.id = wanted.item_id
    WHERE wanted.campaign_id = :campaign {question} AND wanted.id > :after AND {fresh}
    ORDER BY wanted.id LIMIT 1"""


def _choose(question: int, once: int) -> Sql:
    made = _CHOOSE.replace("{question}", "AND wanted.question = :question" if question else "")
    made = made.replace("{fresh}", _FRESH_ITEM if once else _FRESH)
    return Sql(made + " {skip wanted, items}")


CHOOSE = {(question, once): _choose(question, once) for question in (0, 1) for once in (0, 1)}
NEW_ITEM = Sql(
    """SELECT id, task, payload FROM items WHERE campaign_id = :campaign AND status = 0
    ORDER BY id LIMIT 1 {skip items}"""
)
ANY_OPEN = Sql("SELECT 1 FROM items WHERE campaign_id = :campaign AND status IN (0, 1) LIMIT 1")
ANY_FOR_WORKER = Sql(
    """SELECT 1 FROM items WHERE campaign_id = :campaign AND status IN (0, 1)
    AND (SELECT count(*) FROM leases WHERE leases.item_id = items.id
        AND leases.worker_id = :worker AND leases.state <> 3) < :questions LIMIT 1"""
)
BLOCKED_ITEMS = Sql(
    """SELECT wanted.item_id, wanted.id FROM wanted WHERE wanted.campaign_id = :campaign
    AND wanted.id > :after ORDER BY wanted.id LIMIT :most"""
)
LOCK_ITEM = Sql("SELECT id FROM items WHERE id = :id {skip items}")
ITEM_FACE = Sql("SELECT task, payload FROM items WHERE id = :id")
ADD_LEASE = Sql(
    """INSERT INTO leases (nonce, campaign_id, item_id, worker_id, question, state, attempts,
    given_at, expires_at) VALUES (:nonce, :campaign, :item, :worker, :question, 0, 0, :now,
    :expires) ON CONFLICT (item_id, worker_id, question)
    DO UPDATE SET state = 0, given_at = :now, expires_at = :expires
    WHERE leases.state = 3 RETURNING id, nonce"""
)
OPEN_ITEM = Sql("UPDATE items SET status = 1 WHERE id = :id")
GOLD_ITEMS = Sql(
    """SELECT id, gold FROM items WHERE campaign_id = :campaign AND status = 4
    ORDER BY id LIMIT 10000"""
)
GOLD_TOUCHED = Sql(
    """SELECT 1 FROM leases WHERE item_id = :item AND worker_id = :worker
    AND question = :question AND state <> 3"""
)

# ------------------------------------------------------------- choosing for many, PostgreSQL only
OFFERED = ("worker_id", "campaign_id", "question", "after", "after_any", "once", "wide")
_OFFER = """SELECT wanted.id, wanted.question, wanted.open FROM wanted
    WHERE wanted.campaign_id = r.campaign_id {question} AND NOT EXISTS (SELECT 1 FROM leases
        WHERE leases.item_id = wanted.item_id AND leases.worker_id = r.worker_id
        AND (r.once OR leases.question = wanted.question) AND leases.state <> 3)
    ORDER BY wanted.id LIMIT :most"""
_MINE = _OFFER.replace("{question}", "AND wanted.question = r.question AND wanted.id > r.after")
_ANYS = _OFFER.replace("{question}", "AND wanted.id > r.after_any AND r.wide")
OFFERS = Sql(
    f"""WITH r AS MATERIALIZED (SELECT * FROM json_to_recordset(:rows::json) AS
        r(worker_id bigint, campaign_id bigint, question int, after bigint, after_any bigint,
        once boolean, wide boolean))
    SELECT r.worker_id, 0 AS kind, o.id, o.question, o.open FROM r CROSS JOIN LATERAL ({_MINE}) o
    UNION ALL
    SELECT r.worker_id, 1 AS kind, o.id, o.question, o.open FROM r CROSS JOIN LATERAL ({_ANYS}) o
    ORDER BY 1, 2, 3"""
)
NEW_ITEMS = Sql(
    """SELECT c.id, i.id FROM campaigns c CROSS JOIN LATERAL (SELECT items.id FROM items
    WHERE items.campaign_id = c.id AND items.status = 0 ORDER BY items.id LIMIT :most) i
    WHERE c.id IN :ids ORDER BY 1, 2"""
)
_LEASE = """INSERT INTO leases (nonce, campaign_id, item_id, worker_id, question, state, attempts,
    given_at, expires_at)"""
TAKE_OFFERS = Sql(
    f"""WITH r AS MATERIALIZED (SELECT * FROM json_to_recordset(:rows::json) AS
        r(wanted bigint, place int, worker_id bigint, campaign_id bigint, nonce text,
        expires_at float8, once boolean)),
    locked AS MATERIALIZED (SELECT wanted.id, wanted.item_id, wanted.question, wanted.open,
        items.task, items.payload FROM wanted JOIN items ON items.id = wanted.item_id
        WHERE wanted.id IN :ids ORDER BY wanted.id {{skip wanted, items}}),
    leased AS ({_LEASE} SELECT r.nonce, r.campaign_id, locked.item_id, r.worker_id,
        locked.question, 0, 0, :now, r.expires_at FROM r JOIN locked ON locked.id = r.wanted
        WHERE r.place <= locked.open AND NOT (r.once AND EXISTS (SELECT 1 FROM leases
        WHERE leases.item_id = locked.item_id AND leases.worker_id = r.worker_id
        AND leases.state <> 3)) ON CONFLICT (item_id, worker_id, question)
        DO UPDATE SET state = 0, given_at = excluded.given_at, expires_at = excluded.expires_at
        WHERE leases.state = 3 RETURNING id, nonce, worker_id, item_id, question),
    used AS MATERIALIZED (SELECT locked.id, count(*) AS n FROM leased JOIN locked
        USING (item_id, question) GROUP BY locked.id),
    less AS (UPDATE wanted SET open = wanted.open - used.n FROM used
        WHERE wanted.id = used.id AND wanted.open > used.n),
    gone AS (DELETE FROM wanted USING used WHERE wanted.id = used.id AND wanted.open <= used.n)
    SELECT leased.id, leased.nonce, leased.worker_id, leased.item_id, leased.question,
    locked.task, locked.payload FROM leased JOIN locked USING (item_id, question)"""
)
START_ITEMS = Sql(
    f"""WITH locked AS MATERIALIZED (SELECT items.id, items.task, items.payload FROM items
        WHERE items.id IN :ids AND items.status = 0 ORDER BY items.id {{skip items}}),
    opened AS (UPDATE items SET status = 1 FROM locked WHERE items.id = locked.id),
    leased AS ({_LEASE} SELECT r.nonce, r.campaign_id, r.item_id, r.worker_id, r.question, 0, 0,
        :now, r.expires_at FROM json_to_recordset(:rows::json) AS r(item_id bigint, question int,
        worker_id bigint, campaign_id bigint, nonce text, expires_at float8)
        JOIN locked ON locked.id = r.item_id
        RETURNING id, nonce, worker_id, item_id, question),
    added AS (INSERT INTO wanted (campaign_id, item_id, question, open)
        SELECT r.campaign_id, r.item_id, r.question, r.open FROM json_to_recordset(:rest::json)
        AS r(campaign_id bigint, item_id bigint, question int, open int)
        JOIN locked ON locked.id = r.item_id)
    SELECT leased.id, leased.nonce, leased.worker_id, leased.item_id, leased.question,
    locked.task, locked.payload FROM leased JOIN locked ON locked.id = leased.item_id"""
)
