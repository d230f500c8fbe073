"""Owners with names and roles, read-only tokens, and who did what from where.

Existing tokens, sessions and links name no owner: they keep the rights of an admin.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")
REFERENCE = "fk_credentials_owner_id"


def upgrade() -> None:
    """Move one version up."""
    op.create_table(
        "owners",
        sa.Column("id", BIG, autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), server_default="0", nullable=False),
        sa.Column("revoked_at", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_owners"),
        sa.UniqueConstraint("name", name="uq_owners_name"),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("credentials") as table:
        table.add_column(sa.Column("owner_id", BIG, nullable=True))
        table.add_column(
            sa.Column("read_only", sa.SmallInteger(), server_default="0", nullable=False)
        )
        table.create_foreign_key(REFERENCE, "owners", ["owner_id"], ["id"])
    for name in ("person", "address"):
        op.add_column("activity", sa.Column(name, sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    """Move one version down; tokens, sessions and links that would gain rights are deleted."""
    op.execute("DELETE FROM credentials WHERE owner_id IS NOT NULL OR read_only = 1")
    for name in ("address", "person"):
        op.drop_column("activity", name)
    with op.batch_alter_table("credentials") as table:
        table.drop_constraint(REFERENCE, type_="foreignkey")
        table.drop_column("read_only")
        table.drop_column("owner_id")
    op.drop_table("owners")
