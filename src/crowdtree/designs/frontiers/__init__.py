"""Co-design: the frontier of error against price (docs/model.md, section 8).

Questions and votes are chosen together: each price of an answer gives the plan that minimises
``additive error + price x expected answers``, and the plans of all prices are the frontier. For a
problem with a loss the additive risk takes the place of the additive error.
"""

from crowdtree.designs.frontiers.build import frontier
from crowdtree.designs.frontiers.choice import Frontier, Goal, Selection
from crowdtree.designs.frontiers.point import Point

__all__ = ["Frontier", "Goal", "Point", "Selection", "frontier"]
