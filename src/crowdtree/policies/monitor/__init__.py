"""Notice that a table is wrong while answers come in, and revise it (docs/model.md, section 13.5).

For each way in which the table may be wrong the monitor keeps the likelihood ratio of all answers
so far, each item's answers taken together because its class is unknown. If the table is right,
their weighted mean exceeds ``1 / alpha`` at any time with a probability of at most ``alpha``.
Everything is a function of the ordered answers, so that a replay gives the same alarms and tables.
`table_tests` holds the alternatives and the likelihood ratios of one item, `watch` their sums and
what they say, `past` the answers so far, `records` the alarms and revisions.
"""

from crowdtree.policies.monitor.past import PEOPLE, InMemoryHistory, Past, PastItem, Said
from crowdtree.policies.monitor.records import Alarm, Finding, Occasion, Revision, Subject
from crowdtree.policies.monitor.watch import GROWTH, Monitor

__all__ = [
    "GROWTH",
    "PEOPLE",
    "Alarm",
    "Finding",
    "InMemoryHistory",
    "Monitor",
    "Occasion",
    "Past",
    "PastItem",
    "Revision",
    "Said",
    "Subject",
]
