"""What the tests of this package share."""

from __future__ import annotations

import crowdtree as ct


def table_plan() -> ct.Plan:
    return ct.staff(ct.design(ct.example("table1")), workers=8)
