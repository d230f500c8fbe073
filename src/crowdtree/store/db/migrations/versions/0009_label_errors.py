"""Tallies of the stated errors by label, from which the overview estimates precision."""

from collections import Counter

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

LABELLED = 2


def upgrade() -> None:
    """Move one version up."""
    columns = ("campaign_id", "item_id", "label", "posterior_error")
    labels = sa.table("labels", *(sa.column(name) for name in columns))
    items = sa.table("items", sa.column("id"), sa.column("status"))
    connection = op.get_bind()
    found = connection.execute(
        sa.select(labels.c.campaign_id, labels.c.label, labels.c.posterior_error)
        .join_from(labels, items, items.c.id == labels.c.item_id)
        .where(items.c.status == LABELLED, labels.c.posterior_error.is_not(None))
    )
    sums: Counter[tuple[int, str]] = Counter()
    for campaign, label, error in found:
        sums[campaign, f"label_nanos:{label}"] += round(error * 1e9)
    names = ("campaign_id", "name", "shard", "value")
    tallies = sa.table("tallies", *(sa.column(name) for name in names))
    rows = [
        {"campaign_id": campaign, "name": name, "shard": 0, "value": value}
        for (campaign, name), value in sums.items()
    ]
    if rows:
        connection.execute(sa.insert(tallies), rows)


def downgrade() -> None:
    """Move one version down."""
    op.execute("DELETE FROM tallies WHERE name LIKE 'label_nanos:%'")
