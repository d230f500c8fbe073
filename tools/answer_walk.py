"""The walk of one answer: modules of crowdtree that run for one `POST /api/worker/answer`.

    python tools/answer_walk.py

Prints them in the order in which they are first entered. A test keeps the list in
docs/internals/architecture.md in line with it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import crowdtree

PACKAGE = Path(crowdtree.__file__).parent


class Walk:
    """Notes the modules that are entered while it is on, in all threads."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}
        self.on = False

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Note the module of a call; for `sys.setprofile`."""
        if self.on and event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                self.modules[".".join(path.relative_to(PACKAGE).with_suffix("").parts)] = None

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note while the block runs."""
        self.on = True
        try:
            yield
        finally:
            self.on = False


def walk() -> list[str]:
    """Answer the last question about an item over HTTP, in this process."""
    import sqlalchemy as sa
    from starlette.testclient import TestClient

    import crowdtree as ct
    from crowdtree.policies import PlanPolicy
    from crowdtree.server.settings.presets import settings_for
    from crowdtree.server.store import Store
    from crowdtree.server.store.owner import campaigns, people
    from crowdtree.server.web.app import create_app

    found = Walk()
    threading.setprofile(found.note)
    sys.setprofile(found.note)
    try:
        with Store("sqlite://", rng=0).opened() as store:
            policy = PlanPolicy(ct.staff(ct.design(ct.example("table1")), workers=8), "curtailed")
            now = store.clock()

            def made(connection: sa.Connection) -> list[str]:
                number = campaigns.create(
                    connection, "Birds", policy, settings_for("colleagues"), now
                )
                rows = [{"task": str(k), "payload": "{}", "gold": None} for k in range(3)]
                campaigns.add_items(connection, number, rows)
                campaigns.set_status(connection, number, "running", now)
                return [people.invite(connection, number, "", policy, False, now)[1] for _ in "ab"]

            client = TestClient(create_app(store))  # without its background tasks
            for count, token in enumerate(store.write(made) * 3):
                headers = {"authorization": f"Bearer {token}"}
                task = client.post("/api/worker/next", json={}, headers=headers).json()["task"]
                body = {"lease": task["lease"], "answer": "yes", "key": f"k{count}"}
                found.modules.clear()
                with found.noting():
                    sent = client.post("/api/worker/answer", json=body, headers=headers)
                assert sent.json()["fate"] == "counted", sent.text
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return list(found.modules)


if __name__ == "__main__":
    for number, module in enumerate(walk(), 1):
        print(f"{number:3} crowdtree.{module}")
