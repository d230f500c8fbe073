"""${message}"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    """Move one version up."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Move one version down."""
    ${downgrades if downgrades else "pass"}
