"""Edit items and texts of a campaign that has started, with a record of before and after.

Answers do not depend on what is edited here as far as the replay is concerned: neither the columns
of an item nor the wording of a question is part of it. The record says which answers were given to
which wording.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypedDict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import short
from crowdtree.io.items import KEYS, MOST_COLUMNS, make_item
from crowdtree.server.store.corrections.items import EVER_ASKED, check_reason
from crowdtree.server.store.db.activity import note
from crowdtree.server.store.db.campaign_row import Campaign, add_to_tallies, get_campaign, touch
from crowdtree.server.store.db.sql import exists
from crowdtree.server.store.db.tables import campaigns, items, revisions
from crowdtree.server.store.errors import NotFound
from crowdtree.server.store.types import ItemStatus, JsonObject

MAX_TEXT = 2000
"""Characters of a question's text or of a class's explanation."""
PLACES = {"questions": "text", "classes": "description"}
"""Where the texts of a problem file are."""


class Edited(TypedDict):
    """What was edited: values before and after, by name; nothing where all is as it was."""

    campaign: int
    before: JsonObject
    after: JsonObject


def edit_item(
    connection: Connection,
    campaign_id: int,
    item: int,
    columns: Mapping[str, object],
    now: float,
    reason: str = "",
) -> Edited:
    """Change some columns of an item; an empty value removes a column.

    Answers so far stay. The class in the column ``gold`` can change until somebody is asked.
    """
    check_reason(reason)
    campaign = get_campaign(connection, campaign_id, lock=True)
    mine = (items.c.id == item, items.c.campaign_id == campaign_id)
    row = connection.execute(
        sa.select(items).where(*mine).with_for_update(key_share=True)
    ).one_or_none()
    if row is None:
        raise NotFound(f"item {item} is not in campaign {campaign_id}")
    where = f"item {short(row.task)!r}"
    old = _columns(row.payload, row.gold, campaign)
    for name in KEYS:
        if name in columns and (name == "task" or name not in old):
            raise CrowdtreeError(
                f"{where}: {name}: the name of an item cannot change; withdraw the item and add "
                "another one"
            )
    if len({*old, *columns}) > MOST_COLUMNS:
        raise CrowdtreeError(f"{where}: expected at most {MOST_COLUMNS} columns")
    wished = {**old, **{name: "" if v is None else v for name, v in columns.items()}}
    places = {name: place for place, name in enumerate(campaign.classes)}
    made = make_item({**wished, "task": row.task}, where, places)
    new = _columns(made["payload"], made["gold"], campaign)
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    edited: Edited = {
        "campaign": campaign_id,
        "before": {name: old.get(name) for name in changed},
        "after": {name: new.get(name) for name in changed},
    }
    if not changed:
        return edited
    values: dict[str, Any] = {"payload": made["payload"]}
    if made["gold"] != row.gold:
        values |= _regild(connection, campaign_id, row, made["gold"], where)
    connection.execute(items.update().where(*mine).values(**values))
    said = {"item": item, "task": row.task, **edited, "reason": reason}
    del said["campaign"]
    note(connection, now, "edit item", campaign_id, said)
    return edited


def _columns(payload: str, gold: int | None, campaign: Campaign) -> JsonObject:
    """The columns of an item, the class of a gold item among them."""
    known = {} if gold is None else {"gold": campaign.classes[gold]}
    return {**json.loads(payload), **known}


def _regild(
    connection: Connection, campaign_id: int, row: sa.Row[Any], gold: int | None, where: str
) -> dict[str, Any]:
    """Make an item gold, or give it another class, or make it an ordinary one."""
    fixed = row.status not in (ItemStatus.NEW, ItemStatus.GOLD)
    if fixed or exists(connection, EVER_ASKED, item=row.id):
        raise CrowdtreeError(
            f"{where}: gold: people were asked about it, so its class stays; withdraw the item "
            "and add another one"
        )
    status = ItemStatus.NEW if gold is None else ItemStatus.GOLD
    if status != row.status:
        add_to_tallies(connection, campaign_id, {ItemStatus(row.status).label: -1, status.label: 1})
    touch(connection, campaign_id)
    return {"gold": gold, "status": int(status)}


def edit_texts(
    connection: Connection,
    campaign_id: int,
    questions: Mapping[str, str],
    classes: Mapping[str, str],
    now: float,
    reason: str = "",
) -> Edited:
    """Change texts of questions and explanations of classes, by their names.

    Workers see a new text from their next question on. The texts of earlier revisions change as
    well: a revision may go back to their tables, but not to their wording.
    """
    check_reason(reason)
    campaign = get_campaign(connection, campaign_id, lock=True)
    wished = {"questions": questions, "classes": classes}
    before, after = _texts(campaign.problem), _texts(campaign.problem)
    for kind, texts in wished.items():
        for name, text in texts.items():
            if name not in after[kind]:
                raise CrowdtreeError(
                    f"{kind}: {short(name)!r} is not in campaign {campaign_id}; its questions and "
                    "classes are fixed, only their texts can change"
                )
            if len(text) > MAX_TEXT or "\x00" in text:
                raise CrowdtreeError(
                    f"{kind}: {short(name)!r}: expected at most {MAX_TEXT} characters without NUL"
                )
            after[kind][name] = text.strip()
    edited: Edited = {"campaign": campaign_id, "before": {}, "after": {}}
    for kind in PLACES:
        changed = [name for name, text in after[kind].items() if text != before[kind][name]]
        if changed:
            edited["before"][kind] = {name: before[kind][name] for name in changed}
            edited["after"][kind] = {name: after[kind][name] for name in changed}
    if not edited["after"]:
        return edited
    _rewrite(connection, campaign, edited["after"])
    touch(connection, campaign_id)
    said = {"before": edited["before"], "after": edited["after"], "reason": reason}
    note(connection, now, "edit texts", campaign_id, said)
    return edited


def _texts(problem: JsonObject) -> dict[str, dict[str, str]]:
    return {
        kind: {entry["name"]: entry.get(key) or "" for entry in problem[kind]}
        for kind, key in PLACES.items()
    }


def _rewrite(connection: Connection, campaign: Campaign, after: JsonObject) -> None:
    """Write texts into the problem of a campaign and of all its revisions."""
    mine = revisions.c.campaign_id == campaign.id
    rows = connection.execute(sa.select(revisions.c.number, revisions.c.problem).where(mine)).all()
    for row in rows:
        made = json.dumps(_with_texts(json.loads(row.problem), after))
        this = revisions.c.number == row.number
        connection.execute(revisions.update().where(mine, this).values(problem=made))
    made = json.dumps(_with_texts(campaign.problem, after))
    connection.execute(campaigns.update().where(campaigns.c.id == campaign.id).values(problem=made))


def _with_texts(problem: JsonObject, after: JsonObject) -> JsonObject:
    made = dict(problem)
    for kind, texts in after.items():
        key = PLACES[kind]
        made[kind] = [
            {**entry, key: texts[entry["name"]]} if entry["name"] in texts else entry
            for entry in problem[kind]
        ]
    return made
