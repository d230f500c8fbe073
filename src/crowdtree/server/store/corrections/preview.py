"""What an exclusion, or including answers again, would change: items are replayed, not written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np
from sqlalchemy.engine import Connection

from crowdtree.core.text import plural
from crowdtree.policies import Label
from crowdtree.server.store.corrections.excluding import next_table, planned, still_excluded
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign, last_line
from crowdtree.server.store.db.sql import Query, Sql, fetch, fetch_ids
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.reliability import Level, level_of
from crowdtree.server.store.serving.cache import ServingCache
from crowdtree.server.store.serving.item import (
    OUTSIDE_ENGINE,
    ServedCampaign,
    engine_lines,
    fates_to_replay,
)
from crowdtree.server.store.serving.revise import replayed

MOST_ITEMS = 5000
"""Items that are replayed for a preview."""
AT_ONCE = 500
TOUCHED = Sql(
    f"""SELECT DISTINCT item_id AS id FROM answers WHERE worker_id = :worker
    AND id BETWEEN :first AND :last AND fate NOT IN {OUTSIDE_ENGINE} ORDER BY item_id"""
)
ITEMS = Query(
    sql.ItemRow, f"SELECT {', '.join(sql.ItemRow._fields)} FROM items WHERE id IN :ids ORDER BY id"
)


class Preview(TypedDict):
    """What would become of the items that some workers have answered."""

    campaign: int
    workers: list[int]
    answers: int
    """Answers and skips that would no longer count, or count again."""
    items: int
    """Items that they are about."""
    labels: int
    """Labels that these items have."""
    replaced: int
    """Labels that would be others."""
    withdrawn: int
    """Labels that would be withdrawn: their items are asked about again."""
    reopened: int
    """Items set aside that would be asked about again."""
    complete: bool
    """Whether all items were replayed; otherwise the counts are those of the first ones."""
    text: str


def preview(
    connection: Connection,
    number: int,
    workers: Sequence[int],
    since: float | None = None,
    lift: bool = False,
) -> Preview:
    """Replay the items that workers have answered without them, or with `lift` with them again.

    Parameters
    ----------
    since
        Only answers from this time on.
    lift
        Whether to include answers that are excluded now.
    """
    campaign = get_campaign(connection, number)
    new = planned(connection, campaign, workers, since) if not lift else []
    held = [made for made in still_excluded(connection, number) if made.worker_id in workers]
    changed = new if not lift else held
    ids = sorted({item for made in changed for item in _touched(connection, made)})
    cache = ServingCache(lambda: 0.0, np.random.default_rng(0))
    served = cache.campaign(connection, campaign.state)
    after = [*served.exclusions, *changed]
    if lift:
        after = [one for one in served.exclusions if one not in changed]
    table = next_table(connection, campaign)
    following = campaign.revision + 1
    level = Level(following, last_line(connection, number), level_of(table.policy.problem))
    made = replace(
        served,
        revision=following,
        policy=table.policy,
        exclusions=after,
        levels=[*served.levels, level],
    )
    found: Preview = {
        "campaign": number,
        "workers": list(dict.fromkeys(workers)),
        "answers": 0,
        "items": len(ids),
        "labels": 0,
        "replaced": 0,
        "withdrawn": 0,
        "reopened": 0,
        "complete": len(ids) <= MOST_ITEMS,
        "text": "",
    }
    ids = ids[:MOST_ITEMS]
    for start in range(0, len(ids), AT_ONCE):
        _add(connection, served, made, ids[start : start + AT_ONCE], found)
    found["text"] = _words(found, campaign, lift, table.estimated)
    return found


def _touched(connection: Connection, made: sql.Exclusion) -> list[int]:
    first, last = made.first_answer_id, made.last_answer_id
    return fetch_ids(connection, TOUCHED, worker=made.worker_id, first=first, last=last)


def _add(
    connection: Connection,
    served: ServedCampaign,
    made: ServedCampaign,
    ids: list[int],
    found: Preview,
) -> None:
    """Replay some items as they would be `made`, and count what would become of them."""
    labels = {row.item_id: row for row in fetch(connection, sql.LABELS_OF_ITEMS, ids=ids)}
    log: dict[int, list[sql.LogLine]] = {item: [] for item in ids}
    for line in fetch(connection, sql.LOG, ids=ids):
        log[line.item_id].append(line)
    for row in fetch(connection, ITEMS, ids=ids):
        if row.status == ItemStatus.WITHDRAWN:
            continue
        lines, before = log[row.id], labels.get(row.id)
        corrected = row.corrected is not None
        item = replayed(made, row.task, lines, row.reopened_after, before, corrected)
        now = fates_to_replay(served, engine_lines(lines), row.reopened_after)
        found["answers"] += abs(item.fates.count("excluded") - now.count("excluded"))
        _count(found, row, before, item.label)


def _count(
    found: Preview, row: sql.ItemRow, before: sql.LabelOfItem | None, after: Label | None
) -> None:
    if row.status == ItemStatus.SET_ASIDE:
        found["reopened"] += after is None
    elif before is not None:
        found["labels"] += 1
        found["withdrawn"] += after is None
        found["replaced"] += after is not None and after.label != before.label


def _words(found: Preview, campaign: Campaign, lift: bool, estimated: bool) -> str:
    """Say what would change, for people."""
    if not found["answers"]:
        return "Nothing would change: no answer is affected."
    first = "" if found["complete"] else f"Of the first {MOST_ITEMS:,} items: "
    verb = "would count again" if lift else "would no longer count"
    about = f"about {plural(found['items'], 'item')} {verb}."
    said = [f"{first}{plural(found['answers'], 'answer or skip', 'answers and skips')} {about}"]
    kept = found["labels"] - found["replaced"] - found["withdrawn"]
    if found["labels"]:
        said.append(
            f"Of the {plural(found['labels'], 'label')} of these items, {kept:,} would stay, "
            f"{found['replaced']:,} would change and {found['withdrawn']:,} would be withdrawn."
        )
    if found["reopened"]:
        said.append(f"{plural(found['reopened'], 'item')} set aside would be asked about again.")
    if campaign.status == "finished" and found["withdrawn"] + found["reopened"]:
        said.append("The campaign would be paused, with these items open.")
    if estimated:
        said.append("Then the table is estimated again, which may change more labels.")
    said.append("What was paid stays paid.")
    return " ".join(said)
