"""Notice that a table is wrong while the answers come in, and revise it.

Before an answer comes, its probability under the table is known. The monitor bets against the
table: for each way in which the table may be wrong it keeps the likelihood ratio of all answers so
far, each item's answers taken together because its class is unknown. If the table is right, the
weighted mean of these ratios exceeds ``1 / alpha`` at any time in the campaign with a probability
of at most ``alpha`` (Ville's inequality). It is an e-process (docs/model.md, section 13.5).

Everything is a function of the ordered answers, so that a replay of a campaign gives the same
alarms and the same tables. `bets` holds the alternatives and the likelihood ratios of one item,
`watch` their sums over the campaign, `past` the answers so far, `findings` what they say, `records`
the alarms and revisions.
"""

from crowdtree.policies.monitor.past import PEOPLE, Past, PastItem, Remembered, Said
from crowdtree.policies.monitor.records import Alarm, Finding, Revision, Score, Subject
from crowdtree.policies.monitor.watch import GROWTH, Monitor

__all__ = [
    "GROWTH",
    "PEOPLE",
    "Alarm",
    "Finding",
    "Monitor",
    "Past",
    "PastItem",
    "Remembered",
    "Revision",
    "Said",
    "Score",
    "Subject",
]
