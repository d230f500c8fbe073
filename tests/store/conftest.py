"""What the tests of the store share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from weblab import Lab


@pytest.fixture
def app() -> Iterator[Lab]:
    """A whole application: the rules of the store, seen by its users."""
    from weblab import lab  # needs the server, which may not be installed

    with lab() as made:
        yield made
