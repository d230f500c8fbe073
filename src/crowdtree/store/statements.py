"""The statements that run for every question and every answer.

Locks on PostgreSQL are always taken in one order, so that server processes cannot block each
other for good: budgets, items (by id), workers, tallies. Choosing a question never waits:
it skips what somebody else holds.
"""

from __future__ import annotations

from crowdtree.store.database import Sql

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
_MEANT = "(id IN :ids OR id IN (SELECT item_id FROM leases WHERE id IN :leases))"
_ITS = "(item_id IN :ids OR item_id IN (SELECT item_id FROM leases WHERE id IN :leases))"
ITEMS = Sql(
    f"""SELECT id, campaign_id, task, status, gold, state FROM items WHERE {_MEANT}
    ORDER BY id {{lock items}}"""
)
LEASES_OF_ITEMS = Sql(
    f"""SELECT id, nonce, item_id, worker_id, question, state, attempts, given_at, expires_at
    FROM leases WHERE {_ITS} AND (state IN (0, 4) OR id IN :leases)"""
)
EVENTS_OF_ITEMS = Sql(
    f"""SELECT item_id, question, worker_id, value, kind, key, lease_id, skill, fate FROM answers
    WHERE {_ITS} ORDER BY id"""
)
WANTED_OF_ITEMS = Sql(f"SELECT id, item_id, question, open FROM wanted WHERE {_ITS}")
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

ADD_ANSWER = Sql(
    """INSERT INTO answers (campaign_id, item_id, lease_id, worker_id, question, kind, value, key,
    skill, fate, overdue, price, at) VALUES (:campaign_id, :item_id, :lease_id, :worker_id,
    :question, :kind, :value, :key, :skill, :fate, :overdue, :price, :at)"""
)
SAVE_LEASE = Sql(
    """UPDATE leases SET state = :state, attempts = :attempts, given_at = :given_at,
    expires_at = :expires_at WHERE id = :id"""
)
SAVE_ITEM = Sql("UPDATE items SET status = :status, state = :state WHERE id = :id")
ADD_WANTED = Sql(
    """INSERT INTO wanted (campaign_id, item_id, question, open)
    VALUES (:campaign_id, :item_id, :question, :open)"""
)
SAVE_WANTED = Sql("UPDATE wanted SET open = :open WHERE id = :id")
DROP_WANTED = Sql("DELETE FROM wanted WHERE id = :id")
ADD_LABEL = Sql(
    """INSERT INTO labels (campaign_id, item_id, label, posterior_error, reason, answers, path, at)
    VALUES (:campaign_id, :item_id, :label, :posterior_error, :reason, :answers, :path, :at)"""
)

ADD_ITEM = Sql(
    """INSERT INTO items (campaign_id, task, payload, status, gold)
    VALUES (:campaign_id, :task, :payload, :status, :gold)
    ON CONFLICT (campaign_id, task) DO NOTHING"""
)

# ------------------------------------------------------------------------------ people and counts
SEEN_WORKER = Sql(
    """UPDATE workers SET answers = answers + :answers, skips = skips + :skips,
    overdue = overdue + :overdue, earned = earned + :earned,
    last_question = CASE WHEN :last_question < 0 THEN last_question ELSE :last_question END,
    seen_at = CASE WHEN :now > seen_at THEN :now ELSE seen_at END WHERE id = :id"""
)
ADD_JUDGEMENT = Sql(
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
SAVE_WORKER = Sql(
    """UPDATE workers SET gold_right = :gold_right, gold_asked = :gold_asked, agreed = :agreed,
    judged = :judged, skill = :skill, precision = :precision, status = :status,
    status_reason = :status_reason WHERE id = :id"""
)
ADD_TALLY = Sql(
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
