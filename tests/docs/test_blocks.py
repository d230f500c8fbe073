"""Python blocks of the pages run: those with prompts as doctests, the others here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import crowdtree as ct
from tests.docs.pages import written_pages

BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.M | re.S)
Names = dict[str, Any]


def blocks() -> dict[tuple[str, int], str]:
    """Blocks without prompts, by page and place in it."""
    return {
        (page, place): block
        for page, text in written_pages().items()
        for place, block in enumerate(
            found[1] for found in BLOCK.findall(text) if ">>>" not in found[1]
        )
    }


class _Offers:
    """A client that is offered one question."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def post(self, path: str, body: Any = None) -> Any:
        if path != "/api/worker/next":
            self.sent.append((path, body["answer"]))
            return {}
        if self.sent:
            return {"task": None, "reason": "finished"}
        item, question = {"text": "a sparrow"}, {"name": "flies", "text": "Can it fly?"}
        return {"task": {"lease": "1", "item": item, "question": question}}

    def close(self) -> None:
        """Nothing is open."""


def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    from crowdtree.client import Client

    client = _Offers()
    monkeypatch.setattr(Client, "of_link", lambda *_, **__: client)
    yield {"my_model": lambda text, _: "sparrow" in text}
    assert client.sent == [("/api/worker/answer", "yes")]


def sweep(_: pytest.MonkeyPatch) -> Iterator[Names]:
    problem = ct.example("table1")
    run = ct.sweep

    def small(*given: Any, **options: Any) -> Any:
        assert options["items"] == 1_000_000
        return run(*given, items=40, jobs=1, checkpoint=options["checkpoint"])

    names = {
        "ct": SimpleNamespace(sweep=small),
        "problem": problem,
        "policies": {"one": ct.AdaptivePolicy(problem)},
        "crowds": {"as in the table": ct.Crowd()},
    }
    yield names
    assert len(names["rows"]) == 1
    assert list(Path("runs").iterdir())


def monitor(_: pytest.MonkeyPatch) -> Iterator[Names]:
    from crowdtree.policy import Answer

    problem = ct.example("table1")
    rng = np.random.default_rng(0)
    question = 0
    right = problem.outcome[question, 0]
    answers = [
        (f"item {i}", Answer(question, int(right ^ (rng.random() < 0.4)))) for i in range(300)
    ]
    first = ct.AdaptivePolicy(problem, strict=False)
    names = {"ct": ct, "policy": first, "answers": answers}
    yield names
    assert names["monitor"].alarms
    assert names["policy"] is not first


def calibrated(_: pytest.MonkeyPatch) -> Iterator[Names]:
    rng = np.random.default_rng(0)
    table = rng.integers(2, size=(8, 3))

    def recorded(items: int) -> tuple[np.ndarray, list[str]]:
        truth = rng.integers(3, size=items)
        said = table[:, truth].T ^ (rng.random((items, 8)) < 0.05)
        return said, [f"c{c}" for c in truth]

    said, truth = recorded(120)
    rows = [(i, q, w) for i in range(120) for q in range(8) for w in range(2)]
    answers = {
        "task": [i for i, _, _ in rows],
        "question": [f"q{q}" for _, q, _ in rows],
        "worker": [f"w{(i + w) % 6}" for i, _, w in rows],
        "label": [int(said[i, q]) for i, q, _ in rows],
    }
    names = {"ct": ct, "answers": answers, "gold": dict(enumerate(truth))}
    names["recorded_answers"], names["truth"] = recorded(200)
    names["more_answers"], names["more_truth"] = recorded(400)
    yield names
    assert names["policy"].calibration is not None


def signed(_: pytest.MonkeyPatch) -> Iterator[Names]:
    names: Names = {}
    yield names
    from crowdtree.participants import sign_link

    now = int(names["expires"]) - 3600
    link = sign_link("https://a.example/join/x", "KEY", "ann", seconds=3600, now=now)
    assert set(link.partition("?")[2].split("&")) == set(names["query"].split("&"))


PREPARED = {
    ("docs/howto/models.md", 0): model,
    ("docs/howto/sweeps.md", 0): sweep,
    ("docs/howto/sweeps.md", 1): sweep,
    ("docs/policies.md", 0): monitor,
    ("docs/policies.md", 1): calibrated,
    ("docs/serving.md", 0): signed,
}
"""What each block takes for granted, and what must follow from it."""


def test_every_block_is_known() -> None:
    assert set(blocks()) == set(PREPARED)


@pytest.mark.parametrize("where", PREPARED, ids=lambda where: f"{where[0]}-{where[1]}")
@pytest.mark.filterwarnings("ignore::crowdtree.CrowdtreeWarning")
def test_block_runs(
    where: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepared = PREPARED[where](monkeypatch)
    names = next(prepared)
    exec(compile(blocks()[where], where[0], "exec"), names)
    with pytest.raises(StopIteration):
        next(prepared)
