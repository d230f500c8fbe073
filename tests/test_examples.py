"""The examples run, and say what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from crowdtree.cli.rehearsal.example import example_items
from crowdtree.cli.rehearsal.rehearsal import served
from tests.short import nested
from tests.weblab import ALONE

HERE = Path(__file__).parent.parent / "examples"


def run(name: str, *words: str) -> str:
    command = [sys.executable, str(HERE / name), *words]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    assert not found.stderr
    return found.stdout


def test_every_example_is_tested() -> None:
    assert {file.name for file in HERE.glob("*.py")} == {
        "birds.py",
        "from_answers.py",
        "leaves.py",
        "model_worker.py",
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("birds.py", ["adaptive policy: 5.7 answers", "the tree: proven"]),
        ("leaves.py", ["in tufts → pine", "several answers: 4.1 answers", "can't tell"]),
        ("from_answers.py", ["a typical worker errs in", "(95 % credible)"]),
    ],
)
def test_scripts(name: str, words: list[str]) -> None:
    said = run(name)
    for part in words:
        assert part in said


def test_a_model_works_alongside_people(tmp_path: Path) -> None:
    import numpy as np

    import crowdtree as ct

    with served(tmp_path / "x.db") as owner:
        wish = {"name": "x", "policy": {"example": "animals"}, "settings": nested(ALONE)}
        number = owner.post("/api/campaigns", wish)["id"]
        items = example_items(ct.example("animals"), 8, np.random.default_rng(0))
        sent = [{"task": item["task"], "text": item["text"]} for item in items]
        owner.post_lines(f"/api/campaigns/{number}/items", sent)
        owner.post(f"/api/campaigns/{number}/start")
        link = owner.post(f"/api/campaigns/{number}/join-link")["link"]
        said = run("model_worker.py", f"{owner.server}{link}")
        labels = owner.get(f"/api/campaigns/{number}/labels?format=csv").splitlines()
    assert "answers given; there is nothing left" in said
    found = dict(line.split(",")[:2] for line in labels[1:])
    assert found == {item["task"]: item["class"] for item in items}
