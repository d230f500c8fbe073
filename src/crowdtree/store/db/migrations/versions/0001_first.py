"""The first tables."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = {
    "audit": """
        id {id}, at FLOAT DEFAULT '0' NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,
        campaign_id {big}, detail TEXT DEFAULT '{}' NOT NULL""",
    "campaigns": """
        id {id}, name TEXT DEFAULT '' NOT NULL, status TEXT DEFAULT 'draft' NOT NULL,
        status_reason TEXT DEFAULT '' NOT NULL, problem TEXT DEFAULT '' NOT NULL,
        policy TEXT DEFAULT '' NOT NULL, settings TEXT DEFAULT '{}' NOT NULL,
        version INTEGER DEFAULT '0' NOT NULL, created_at FLOAT DEFAULT '0' NOT NULL,
        started_at FLOAT, finished_at FLOAT""",
    "judgements": """
        id {id}, worker_id {big} NOT NULL, question INTEGER NOT NULL, value SMALLINT NOT NULL,
        cls INTEGER NOT NULL, error FLOAT DEFAULT '0' NOT NULL,
        gold SMALLINT DEFAULT '0' NOT NULL""",
    "budgets": """
        campaign_id {big} NOT NULL, cap BIGINT NOT NULL, spent BIGINT DEFAULT '0' NOT NULL,
        reserved BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_budgets PRIMARY KEY (campaign_id),
        CONSTRAINT fk_budgets_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id)""",
    "items": """
        id {id}, campaign_id {big} NOT NULL, task {text} NOT NULL,
        payload TEXT DEFAULT '{}' NOT NULL, status SMALLINT DEFAULT '0' NOT NULL, gold SMALLINT,
        state TEXT,
        CONSTRAINT fk_items_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id),
        CONSTRAINT uq_items_campaign_id_task UNIQUE (campaign_id, task)""",
    "tallies": """
        campaign_id {big} NOT NULL, name TEXT NOT NULL, shard INTEGER NOT NULL,
        value BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_tallies PRIMARY KEY (campaign_id, name, shard),
        CONSTRAINT fk_tallies_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id)""",
    "webhooks": """
        id {id}, campaign_id {big} NOT NULL, url TEXT NOT NULL, secret TEXT NOT NULL,
        sent_label_id {big} DEFAULT '0' NOT NULL, finish_sent SMALLINT DEFAULT '0' NOT NULL,
        failures INTEGER DEFAULT '0' NOT NULL, next_try_at FLOAT DEFAULT '0' NOT NULL,
        status TEXT DEFAULT 'active' NOT NULL, last_error TEXT DEFAULT '' NOT NULL,
        CONSTRAINT fk_webhooks_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id)""",
    "deliveries": """
        id {id}, webhook_id {big} NOT NULL, at FLOAT DEFAULT '0' NOT NULL, message TEXT NOT NULL,
        event TEXT NOT NULL, labels INTEGER DEFAULT '0' NOT NULL, error TEXT DEFAULT '' NOT NULL,
        CONSTRAINT fk_deliveries_webhook_id FOREIGN KEY(webhook_id) REFERENCES webhooks (id)""",
    "workers": """
        id {id}, campaign_id {big} NOT NULL, name TEXT DEFAULT '' NOT NULL, external_id TEXT,
        status TEXT DEFAULT 'active' NOT NULL, status_reason TEXT DEFAULT '' NOT NULL,
        question INTEGER, last_question INTEGER DEFAULT '0' NOT NULL,
        skill FLOAT DEFAULT '0' NOT NULL, precision FLOAT DEFAULT '0' NOT NULL,
        gold_right INTEGER DEFAULT '0' NOT NULL, gold_asked INTEGER DEFAULT '0' NOT NULL,
        agreed INTEGER DEFAULT '0' NOT NULL, judged INTEGER DEFAULT '0' NOT NULL,
        answers INTEGER DEFAULT '0' NOT NULL, skips INTEGER DEFAULT '0' NOT NULL,
        overdue INTEGER DEFAULT '0' NOT NULL, earned BIGINT DEFAULT '0' NOT NULL,
        joined_at FLOAT DEFAULT '0' NOT NULL, seen_at FLOAT DEFAULT '0' NOT NULL,
        details TEXT DEFAULT '{}' NOT NULL,
        CONSTRAINT fk_workers_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id),
        CONSTRAINT uq_workers_campaign_id_external_id UNIQUE (campaign_id, external_id)""",
    "credentials": """
        token_hash TEXT NOT NULL, role TEXT NOT NULL, campaign_id {big}, worker_id {big},
        name TEXT DEFAULT '' NOT NULL, created_at FLOAT DEFAULT '0' NOT NULL, expires_at FLOAT,
        revoked_at FLOAT,
        CONSTRAINT pk_credentials PRIMARY KEY (token_hash),
        CONSTRAINT fk_credentials_campaign_id FOREIGN KEY(campaign_id) REFERENCES campaigns (id),
        CONSTRAINT fk_credentials_worker_id FOREIGN KEY(worker_id) REFERENCES workers (id)""",
    "labels": """
        id {id}, campaign_id {big} NOT NULL, item_id {big} NOT NULL, label INTEGER,
        posterior_error FLOAT, reason TEXT NOT NULL, answers INTEGER DEFAULT '0' NOT NULL,
        path TEXT DEFAULT '[]' NOT NULL, at FLOAT DEFAULT '0' NOT NULL,
        CONSTRAINT fk_labels_item_id FOREIGN KEY(item_id) REFERENCES items (id),
        CONSTRAINT uq_labels_item_id UNIQUE (item_id)""",
    "leases": """
        id {id}, nonce TEXT NOT NULL, campaign_id {big} NOT NULL, item_id {big} NOT NULL,
        worker_id {big} NOT NULL, question INTEGER NOT NULL, state SMALLINT DEFAULT '0' NOT NULL,
        attempts INTEGER DEFAULT '0' NOT NULL, given_at FLOAT DEFAULT '0' NOT NULL,
        expires_at FLOAT DEFAULT '0' NOT NULL,
        CONSTRAINT fk_leases_item_id FOREIGN KEY(item_id) REFERENCES items (id),
        CONSTRAINT fk_leases_worker_id FOREIGN KEY(worker_id) REFERENCES workers (id),
        CONSTRAINT uq_leases_item_id_worker_id_question UNIQUE (item_id, worker_id, question)""",
    "waiting": """
        item_id {big} NOT NULL, campaign_id {big} NOT NULL, since FLOAT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_waiting PRIMARY KEY (item_id),
        CONSTRAINT fk_waiting_item_id FOREIGN KEY(item_id) REFERENCES items (id)""",
    "wanted": """
        id {id}, campaign_id {big} NOT NULL, item_id {big} NOT NULL, question INTEGER NOT NULL,
        open INTEGER NOT NULL,
        CONSTRAINT fk_wanted_item_id FOREIGN KEY(item_id) REFERENCES items (id),
        CONSTRAINT uq_wanted_item_id_question UNIQUE (item_id, question)""",
    "answers": """
        id {id}, campaign_id {big} NOT NULL, item_id {big} NOT NULL, lease_id {big} NOT NULL,
        worker_id {big} NOT NULL, question INTEGER NOT NULL, kind TEXT NOT NULL, value SMALLINT,
        "key" TEXT NOT NULL, skill FLOAT DEFAULT '0' NOT NULL, fate TEXT NOT NULL,
        overdue SMALLINT DEFAULT '0' NOT NULL, price BIGINT DEFAULT '0' NOT NULL,
        at FLOAT DEFAULT '0' NOT NULL,
        CONSTRAINT fk_answers_lease_id FOREIGN KEY(lease_id) REFERENCES leases (id),
        CONSTRAINT uq_answers_lease_id_key UNIQUE (lease_id, "key")""",
}
"""Columns and constraints, by table; a table comes after those that it refers to."""
INDEXES = {
    "ix_audit_campaign_id_id": "audit (campaign_id, id)",
    "ix_items_campaign_id_status_id": "items (campaign_id, status, id)",
    "ix_deliveries_webhook_id_id": "deliveries (webhook_id, id)",
    "ix_credentials_role_campaign_id": "credentials (role, campaign_id)",
    "ix_credentials_worker_id": "credentials (worker_id)",
    "ix_labels_campaign_id_id": "labels (campaign_id, id)",
    "ix_leases_expires_at": "leases (expires_at) WHERE state IN (0, 4)",
    "ix_leases_given_at": "leases (given_at) WHERE state IN (0, 4)",
    "ix_leases_worker_id": "leases (worker_id) WHERE state = 0",
    "ix_waiting_campaign_id_item_id": "waiting (campaign_id, item_id)",
    "ix_wanted_campaign_id_id": "wanted (campaign_id, id)",
    "ix_wanted_campaign_id_question_id": "wanted (campaign_id, question, id)",
    "ix_answers_campaign_id_id": "answers (campaign_id, id)",
    "ix_answers_item_id_id": "answers (item_id, id)",
    "ix_answers_worker_id_id": "answers (worker_id, id)",
}

TYPES = {
    "sqlite": {
        "id": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        "big": "INTEGER",
        "text": "TEXT",
    },
    "postgresql": {
        "id": "BIGSERIAL NOT NULL CONSTRAINT pk_{table} PRIMARY KEY",
        "big": "BIGINT",
        "text": 'TEXT COLLATE "C"',  # ordered by its bytes, so that the index serves prefixes
    },
}


def upgrade() -> None:
    """Move one version up."""
    types = TYPES[op.get_bind().dialect.name]
    for table, columns in TABLES.items():
        for name, kind in types.items():
            columns = columns.replace(f"{{{name}}}", kind.replace("{table}", table))
        op.execute(f"CREATE TABLE {table} ({columns})")
    for name, columns in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON {columns}")


def downgrade() -> None:
    """Move one version down."""
    for table in reversed(TABLES):
        op.drop_table(table)
