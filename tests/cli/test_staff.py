"""The verb staff."""

from __future__ import annotations

import pytest

from crowdtree.designs.staffing import STAFFERS
from tests.cli.helpers import result


@pytest.mark.parametrize("method", list(STAFFERS))
def test_every_method_staffs(method, birds, capsys):
    found = result(capsys, "staff", birds, "--workers", 6, "--method", method)
    assert sum(found["votes"]) >= 3
    assert found["staffing"]["method"] == method
