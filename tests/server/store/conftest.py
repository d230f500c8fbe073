"""What the tests of the store share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.storelab import Small
    from tests.weblab import Lab


@pytest.fixture
def app() -> Iterator[Lab]:
    """A whole application: the rules of the store, seen by its users."""
    from tests.weblab import lab  # needs the server, which may not be installed

    with lab() as made:
        yield made


@pytest.fixture
def small() -> Iterator[Callable[..., Small]]:
    """Campaigns in databases of their own."""
    made: list[Small] = []

    def make(**options: Any) -> Small:
        from tests.storelab import Small  # needs the server, which may not be installed

        made.append(Small(**options))
        return made[-1]

    yield make
    for one in made:
        one.store.close()
