"""What an exclusion, or including answers again, would change: items are replayed, not written."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypedDict, cast

from sqlalchemy.engine import Connection

from crowdtree.campaign.events import PolicyChanged
from crowdtree.campaign.fold import extend
from crowdtree.campaign.reasons import Outcome
from crowdtree.campaign.view import Revision, Status
from crowdtree.core.text import plural
from crowdtree.server.store.corrections.excluding import next_table, planned, still_excluded
from crowdtree.server.store.db import statements as sql
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign, last_line
from crowdtree.server.store.db.sql import Query, Sql, fetch, fetch_ids
from crowdtree.server.store.db.states import ItemStatus
from crowdtree.server.store.reliability import Level, level_of
from crowdtree.server.store.serving.cache import load_campaign
from crowdtree.server.store.serving.campaign import Revisions, ServedCampaign
from crowdtree.server.store.serving.item import lines_of, load_view
from crowdtree.server.store.serving.unit_of_work import policy_of_revision

MAX_ITEMS = 5000
"""Items that are replayed for a preview."""
AT_ONCE = 500
TOUCHED = Sql(
    f"""SELECT DISTINCT item_id AS id FROM answers WHERE worker_id = :worker
    AND id BETWEEN :first AND :last
    AND fate NOT IN ('{Outcome.GOLD}', '{Outcome.OVER_BUDGET}') ORDER BY item_id"""
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
    revisions = _Supposed(connection, load_campaign(connection, number), changed, lift)
    found: Preview = {
        "campaign": number,
        "workers": list(dict.fromkeys(workers)),
        "answers": 0,
        "items": len(ids),
        "labels": 0,
        "replaced": 0,
        "withdrawn": 0,
        "reopened": 0,
        "complete": len(ids) <= MAX_ITEMS,
        "text": "",
    }
    ids = ids[:MAX_ITEMS]
    for start in range(0, len(ids), AT_ONCE):
        _add(connection, revisions, ids[start : start + AT_ONCE], found)
    found["text"] = _words(found, campaign, lift, revisions.table.estimated)
    return found


def _touched(connection: Connection, made: sql.Exclusion) -> list[int]:
    first, last = made.first_answer_id, made.last_answer_id
    return fetch_ids(connection, TOUCHED, worker=made.worker_id, first=first, last=last)


class _Supposed:
    """The revisions of a campaign, and one more that did not happen."""

    def __init__(
        self,
        connection: Connection,
        served: ServedCampaign,
        changed: Sequence[sql.Exclusion],
        lift: bool,
    ) -> None:
        campaign = get_campaign(connection, served.id)
        self.table = next_table(connection, campaign)
        self.served, self.number = served, served.revision + 1
        after = [*served.exclusions, *changed]
        if lift:
            after = [one for one in served.exclusions if one not in changed]
        level = level_of(self.table.policy.problem)
        levels = [*served.levels, Level(self.number, last_line(connection, served.id), level)]
        policy = self.table.policy.at_least(served.rules.people)
        made = replace(served, revision=self.number, policy=policy, exclusions=after, levels=levels)
        past = Revisions(served, partial(policy_of_revision, connection, served.id))
        self.all = ChainMap({self.number: made.present}, cast(dict[int, Revision], past))


def _add(connection: Connection, revisions: _Supposed, ids: list[int], found: Preview) -> None:
    """Fold one more event into the views of some items, and count what would become of them."""
    labels = {row.item_id: row for row in fetch(connection, sql.LABELS_OF_ITEMS, ids=ids)}
    log: dict[int, list[sql.LogLine]] = {item: [] for item in ids}
    for line in fetch(connection, sql.LOG, ids=ids):
        log[line.item_id].append(line)
    for row in fetch(connection, ITEMS, ids=ids):
        if row.status == ItemStatus.WITHDRAWN or row.gold is not None:
            continue
        before = load_view(revisions.served, row, lines_of(row, log[row.id]), labels.get(row.id))
        for number in range(row.revision + 1, revisions.number):
            before = extend(revisions.all, before, PolicyChanged(number))
        after = extend(revisions.all, before, PolicyChanged(revisions.number))
        gone = [view.outcomes.count(Outcome.EXCLUDED) for view in (before, after)]
        found["answers"] += abs(gone[1] - gone[0])
        if before.status is Status.SET_ASIDE:
            found["reopened"] += after.label is None
        elif before.label is not None:
            found["labels"] += 1
            found["withdrawn"] += after.label is None
            found["replaced"] += after.label is not None and after.label[0] != before.label[0]


def _words(found: Preview, campaign: Campaign, lift: bool, estimated: bool) -> str:
    """Say what would change, for people."""
    if not found["answers"]:
        return "Nothing would change: no answer is affected."
    first = "" if found["complete"] else f"Of the first {MAX_ITEMS:,} items: "
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
