"""Labels by hand, withdrawn items and edits: everything else is the replay of the answers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

from crowdtree.errors import CrowdtreeError
from crowdtree.store.corrections import withdrawing
from crowdtree.store.corrections.editing import edit_item, edit_texts
from crowdtree.store.corrections.labelling import correct
from crowdtree.store.db.states import ItemStatus
from crowdtree.store.db.tables import (
    items,
)
from crowdtree.store.owner import campaigns as owner
from crowdtree.store.queries.export import label_rows
from crowdtree.store.queries.progress import progress
from store.test_excluding import Court, slowly
from store.test_revising import TABLE, policies

__all__ = ["slowly"]
NAMES = list(TABLE.classes)


class Desk(Court):
    """A campaign whose owner also labels, withdraws and edits."""

    def correct(self, wanted: dict[str, str | None], reason: str = "") -> Any:
        return self.write(lambda c: correct(c, self.number, wanted, self.clock(), reason))

    def withdraw(self, *tasks: str, reason: str = "") -> int:
        rows = self.read(sa.select(items.c.id).where(items.c.task.in_(tasks)))
        ids = [row.id for row in rows]
        now = self.clock()
        return int(self.write(lambda c: withdrawing.withdraw(c, self.number, ids, now, reason)))

    def edit(self, task: str, **columns: Any) -> Any:
        [(item,)] = self.read(sa.select(items.c.id).where(items.c.task == task))
        return self.write(lambda c: edit_item(c, self.number, item, columns, self.clock()))

    def status(self, task: str) -> str:
        [(found,)] = self.read(sa.select(items.c.status).where(items.c.task == task))
        return ItemStatus(found).label

    def tasks(self) -> list[str]:
        return [row.task for row in self.read(sa.select(items.c.task).order_by(items.c.id))]

    def rows(self) -> dict[str, Any]:
        """The labels as they are exported, by item."""
        found = self.store.read(lambda c: label_rows(c, self.number, NAMES))
        return {row["task"]: row for row in found}

    def progress(self) -> Any:
        return self.store.read(lambda c: progress(c, self.number, self.clock()))

    def disturb(self) -> str:
        """Let something happen, corrections of items included."""
        if self.rng.random() > 0.15:
            return super().disturb()
        what = self.rng.choice(["correct", "take back", "withdraw", "reopen", "edit", "texts"])
        task = self.rng.choice(self.tasks())
        try:
            if what == "correct":
                self.correct({task: self.rng.choice(NAMES)})
            elif what == "take back":
                held = self.read(sa.select(items.c.task).where(items.c.corrected.is_not(None)))
                self.correct(dict.fromkeys([row.task for row in held], None))
            elif what == "withdraw":
                self.withdraw(task, self.rng.choice(self.tasks()))
            elif what == "reopen":
                gone = sa.select(items.c.task).where(items.c.status == ItemStatus.WITHDRAWN)
                self.reopen(*([row.task for row in self.read(gone)] or [task]))
            elif what == "edit":
                self.edit(task, text=f"text {self.clock()}")
            else:
                texts = {TABLE.questions[0]: f"Is it? {self.clock()}"}
                self.write(lambda c: edit_texts(c, self.number, texts, {}, self.clock()))
        except CrowdtreeError:
            return "refused"
        return what


@pytest.mark.usefixtures("slowly", "full_skips")
@pytest.mark.parametrize("seed", range(4))
def test_anything_can_happen_between_corrections_of_items(seed: int, url: str) -> None:
    game = Desk(url, policies()[(2 * seed + 1) % len(policies())], seed, n=10, most_skips=1)
    with game.store.opened():
        happened = []
        for turn in range(120):
            happened.append(game.disturb())
            if turn % 5 == 0:
                assert game.differences() == [], (turn, happened[-10:])
        assert {"correct", "withdraw", "edit", "texts"} <= set(happened)
        game.settle()
        game.write(lambda c: owner.set_status(c, game.number, "finishing", game.clock()))
        game.settle()
        gone = sa.select(items.c.task).where(items.c.status == ItemStatus.WITHDRAWN)
        for row in game.read(gone):
            assert game.reopen(row.task) == 1
        game.settle()
