"""How the table of errors is used."""

from __future__ import annotations

from crowdtree.server.settings.group import Group, setting

ADAPTIVE = ("adaptive", "subtypes")
"""Policies that choose questions and stop by the table, as their documents name them."""


class Table(Group):
    """What the table of errors is worth."""

    revise: bool | None = setting(
        None,
        "Revise the table when the answers contradict it",
        "Labels may be taken back; by default on for adaptive policies and off for plans.",
        "More answers per item where the table was too hopeful.",
    )
    person_dependence: float = setting(
        0.2,
        "Dependence of one person's answers",
        "Correlation of a worker's answers to different questions about one item: n of them count "
        "as n / (1 + (n - 1) x) answers; 0 is independent.",
        "A high value takes more answers per item; a low one states too small an error.",
        where="program",
        fixed=True,
        ge=0,
        lt=1,
    )

    def revises(self, policy: str) -> bool:
        """Whether a campaign with this sort of policy revises its table.

        >>> Table().revises("adaptive"), Table().revises("plan")
        (True, False)
        """
        return policy in ADAPTIVE if self.revise is None else self.revise
