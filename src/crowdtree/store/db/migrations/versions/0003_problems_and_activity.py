"""Write problems in the form of problem files, and rename the table `audit` to `activity`."""

import json
from collections.abc import Callable

import sqlalchemy as sa
from alembic import op

from crowdtree.store.types import JsonObject

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Move one version up."""
    _rewrite(_file_form)
    _rename("audit", "activity")


def downgrade() -> None:
    """Move one version down."""
    _rewrite(_old_form)
    _rename("activity", "audit")


def _rename(old: str, new: str) -> None:
    op.drop_index(f"ix_{old}_campaign_id_id", old)
    op.rename_table(old, new)
    op.create_index(f"ix_{new}_campaign_id_id", new, ["campaign_id", "id"])
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE {new} RENAME CONSTRAINT pk_{old} TO pk_{new}")
        op.execute(f"ALTER SEQUENCE {old}_id_seq RENAME TO {new}_id_seq")


def _rewrite(convert: Callable[[JsonObject], JsonObject]) -> None:
    connection = op.get_bind()
    campaigns = sa.table("campaigns", sa.column("id"), sa.column("problem"))
    for number in connection.execute(sa.select(campaigns.c.id)).scalars().all():
        mine = campaigns.c.id == number
        text = connection.execute(sa.select(campaigns.c.problem).where(mine)).scalar_one()
        new = json.dumps(convert(json.loads(text)))
        connection.execute(campaigns.update().where(mine).values(problem=new))


def _file_form(old: JsonObject) -> JsonObject:
    classes: list[JsonObject] = [
        {"name": name, "prior": prior}
        for name, prior in zip(old["classes"], old["prior"], strict=True)
    ]
    for place, description in enumerate(old["descriptions"]):
        classes[place]["description"] = description
    rows = zip(old["questions"], old["worker_error"], old["outcome"], strict=True)
    questions: list[JsonObject] = [
        {"name": name, "error": error, "outcome": ["-" if cell < 0 else cell for cell in cells]}
        for name, error, cells in rows
    ]
    for place, text in enumerate(old["texts"]):
        questions[place]["text"] = text
    made = {"crowdtree": 1, "kind": "problem", "classes": classes, "questions": questions}
    return made | _shared(old)


def _old_form(new: JsonObject) -> JsonObject:
    classes, questions = new["classes"], new["questions"]
    return {
        "classes": [entry["name"] for entry in classes],
        "prior": [entry["prior"] for entry in classes],
        "questions": [entry["name"] for entry in questions],
        "outcome": [[-1 if c == "-" else c for c in entry["outcome"]] for entry in questions],
        "worker_error": [entry["error"] for entry in questions],
        "texts": [entry["text"] for entry in questions if "text" in entry],
        "descriptions": [e["description"] for e in classes if "description" in e],
        **_shared(new),
    }


def _shared(problem: JsonObject) -> JsonObject:
    return {name: value for name, value in problem.items() if name in ("dash", "dependence")}
