"""pytest plugin for mutation testing: mutmut 3.8 reads a name that pytest 9.2 has dropped."""

from __future__ import annotations

import pytest

if not hasattr(pytest.Item, "_nodeid"):
    pytest.Item._nodeid = property(lambda self: self.nodeid)  # type: ignore[attr-defined]
