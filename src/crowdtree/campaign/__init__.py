"""The pure engine of a campaign: answers in, next questions and labels out.

No clock, database or HTTP. The log of events is append-only, and the state is its replay. Each
item stands alone, so a server keeps one :class:`ItemState` a row and calls two pure functions:

- :func:`open_questions` (policy, item, what is leased out, who asks) -> questions to hand out;
- :func:`advance` (policy, item, event) -> the item after the event, with the event's *fate*.

Fates, in the order in which they are decided:

=============== ==================================================================================
``duplicate``   the event's key, or the worker's same answer to the question, is there already
``contradictory`` the worker answered this question otherwise before; the first answer stands
``skipped``     the worker passed; will not be asked this question on this item again
``undone``      the worker took back an earlier event; the item is replayed without it
``nothing to undo`` the event to take back is not there
``late``        the item has its label already; kept in the log, does not change the label
``surplus``     the policy has no use for the answer (its vote is over, or its limit is reached)
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
    revise_item,
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
    "revise_item",
    "stands",
    "start_item",
]
