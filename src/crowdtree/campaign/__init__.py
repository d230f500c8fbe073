"""The pure engine of a campaign: answers in, next questions and labels out.

No clock, database or HTTP. The log of events is append-only, and the state is its replay. Each
item is independent, so a server keeps one :class:`ItemState` per row and calls two pure functions:

- :func:`open_questions` (policy, item, leased questions, worker) -> questions to hand out;
- :func:`advance` (policy, item, event) -> the item after the event, with the event's *fate*.

Fates, in the order in which they are decided:

=============== ==================================================================================
``duplicate``   the event's key, or the worker's same answer to the question, is already in the log
``contradictory`` the worker answered this question otherwise before; the first answer stands
``skipped``     the worker skipped; this question on this item is not offered to them again
``undone``      the worker took back an earlier event; the item is replayed without it
``nothing to undo`` there is no event to take back
``late``        the item has its label already; kept in the log, does not change the label
``surplus``     the policy does not use the answer (its vote is over, or its limit is reached)
``counted``     the policy's state moved on
=============== ==================================================================================

:class:`Campaign` drives the same two functions in memory, for simulations, tests and scripts.
"""

from crowdtree.campaign.item import (
    Event,
    Fate,
    ItemState,
    Kind,
    Rules,
    Step,
    advance,
    after_undos,
    dump_item,
    load_item,
    open_questions,
    path,
    stands,
    start_item,
)
from crowdtree.campaign.memory import Campaign, Lease, Result, replay

__all__ = [
    "Campaign",
    "Event",
    "Fate",
    "ItemState",
    "Kind",
    "Lease",
    "Result",
    "Rules",
    "Step",
    "advance",
    "after_undos",
    "dump_item",
    "load_item",
    "open_questions",
    "path",
    "replay",
    "stands",
    "start_item",
]
