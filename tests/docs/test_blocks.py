"""Every Python block of the documentation runs, or says here why it cannot."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.policies import Answer
from crowdtree.webhooks import new_secret, sign
from tests.docs.pages import ROOT, written_pages

NOT_RUN = {'engine="dask://10.0.0.5:8786"': "needs a Dask cluster"}
"""Parts of blocks that cannot run, and why."""


def blocks() -> Iterator[tuple[str, str]]:
    """Python blocks that neither doctest (``>>>``) nor the build of the site (cells) runs."""
    pages = written_pages()
    pages |= {f"examples/{p.name}": p.read_text() for p in (ROOT / "examples").glob("*.md")}
    for name, text in pages.items():
        for block in re.finditer(r"^ *(```+)([^\n]*)\n(.*?)^ *\1", text, re.M | re.S):
            language, body = block[2].strip(), block[3]
            python = language in ("python", "py") or (
                not language and re.search(r"^(from \w+ )?import \w|\bct\.\w+\(", body, re.M)
            )
            if python and ">>>" not in body:
                yield name, body


def binary_items(rng: np.random.Generator, items: int) -> tuple[Any, np.ndarray]:
    """Answers with few errors about items of the classes a and b, and the class of each."""
    truth = np.arange(items) % 2
    wrong = rng.random((items, 6)) < 0.05
    return np.where(wrong, 1 - truth[:, None], truth[:, None]), np.array(["a", "b"])[truth]


def monitored() -> dict[str, Any]:
    """Answers that contradict a table, since people err far more often than it says."""
    problem = ct.example("table1")
    policy = ct.AdaptivePolicy(problem, strict=False)
    rng = np.random.default_rng(0)
    answers = [
        (str(item), Answer(q, int(truth[q]) ^ int(rng.random() < 0.4)))
        for item, truth in enumerate(problem.outcome.T[rng.integers(5, size=150)])
        for q in np.flatnonzero(truth >= 0).tolist()
    ]
    return {"policy": policy, "answers": answers}


def calibrated() -> dict[str, Any]:
    """Answers to six questions of items of known class, and more items for the calibration."""
    rng = np.random.default_rng(1)
    values, truth = binary_items(rng, 120)
    names = [f"q{q}" for q in range(6)]
    rows = [
        (f"t{i}", names[q], f"w{(i + q) % 7}", values[i, q]) for i in range(120) for q in range(6)
    ]
    keys = ("task", "question", "worker", "label")
    columns = {key: [row[k] for row in rows] for k, key in enumerate(keys)}
    found = {"answers": columns, "gold": {f"t{i}": str(truth[i]) for i in range(120)}}
    found["recorded_answers"], found["truth"] = binary_items(rng, 60)
    found["more_answers"], found["more_truth"] = binary_items(rng, 400)
    return found


def delivered() -> dict[str, Any]:
    """A request that a receiver of webhooks gets."""
    secret, body, now = new_secret(), b"{}", int(time.time())
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(now)}
    headers["webhook-signature"] = sign(secret, "msg_1", now, body)
    return {"secret": secret, "headers": headers, "body": body, "seen": set()}


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "ct.Monitor(": monitored,
    "learned.policy(": calibrated,
    "verify_signature(": delivered,
}
"""What the page leaves to its reader, by a part of the block."""


def test_plain_blocks_are_few():
    assert 3 < len(list(blocks())) < 12  # write examples as >>> wherever they can run


@pytest.mark.parametrize(("page", "block"), list(blocks()))
def test_plain_blocks_run(page, block, tmp_path, monkeypatch):
    if any(part in block for part in NOT_RUN):
        return
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"ct": ct, "my_model": lambda *_: True}
    for part, make in GIVEN.items():
        if part in block:
            names |= make()
    with (
        mock.patch("crowdtree.client.Client.of_link", autospec=True),
        mock.patch("crowdtree.client.work", autospec=True) as work,
    ):
        exec(compile(block, page, "exec"), names)
    if "work(" in block:
        assert work.call_args.args[1]({"text": "a sparrow"}, {"text": "Can it fly?"}) is True


def test_what_is_not_run_occurs():
    texts = [block for _, block in blocks()]
    assert all(any(part in text for text in texts) for part in NOT_RUN)
