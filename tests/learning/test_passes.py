"""Passes over answers give what their definitions give."""

import subprocess
import sys

import numpy as np
import pytest

from crowdtree.learning import passes

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture
def crowd():
    rng = np.random.default_rng(0)
    items, workers, labels, effects = 40, 7, 3, 5
    votes = rng.integers(0, 6, items)  # some items have no answers
    answers = int(votes.sum())
    return {
        "rng": rng,
        "start": np.concatenate([[0], np.cumsum(votes)]).astype(np.int64),
        "worker": rng.integers(0, workers, answers).astype(np.int32),
        "label": rng.integers(0, labels, answers).astype(np.int8),
        "table": 5 * rng.normal(size=(workers, labels, labels * effects)),
        "log_prior": np.log(rng.dirichlet(np.ones(labels * effects))),
        "gold": np.where(rng.random(items) < 0.3, rng.integers(0, labels, items), -1).astype(
            np.int32
        ),
        "shape": (items, workers, labels, effects),
    }


def weights(crowd, item):
    """Weight of every state of an item, by the definition."""
    score = crowd["log_prior"].copy()
    for j in range(crowd["start"][item], crowd["start"][item + 1]):
        score += crowd["table"][crowd["worker"][j], crowd["label"][j]]
    effects = crowd["shape"][3]
    if crowd["gold"][item] >= 0:
        score[np.arange(len(score)) // effects != crowd["gold"][item]] = -np.inf
    return np.exp(score)


def votes_of(crowd):
    _, workers, labels, _ = crowd["shape"]
    return passes.Votes(crowd["start"], crowd["worker"], crowd["label"], workers, labels)


@pytest.fixture(params=[1, passes.BLOCK])
def block(request, monkeypatch):
    """All items together, and a few at a time."""
    monkeypatch.setattr(passes, "BLOCK", request.param)


@pytest.mark.usefixtures("block")
def test_states_are_weighed_as_defined(crowd):
    items, _, labels, effects = crowd["shape"]
    posterior, counts = np.empty((items, labels)), np.empty(crowd["table"].shape)
    total, mass = votes_of(crowd).expect(
        crowd["table"], crowd["log_prior"], crowd["gold"], posterior, counts
    )
    likelihood, expected, in_state = 0.0, np.zeros(counts.shape), np.zeros(len(mass))
    for item in range(items):
        weight = weights(crowd, item)
        likelihood += np.log(weight.sum())
        weight /= weight.sum()
        in_state += weight
        np.testing.assert_allclose(posterior[item], weight.reshape(labels, effects).sum(1), **CLOSE)
        for j in range(crowd["start"][item], crowd["start"][item + 1]):
            expected[crowd["worker"][j], crowd["label"][j]] += weight
    np.testing.assert_allclose(counts, expected, **CLOSE)
    np.testing.assert_allclose(mass, in_state, **CLOSE)
    np.testing.assert_allclose(total, likelihood, **CLOSE)


def test_shares_and_counts(crowd):
    items, workers, labels, _ = crowd["shape"]
    votes = votes_of(crowd)
    share = votes.shares()
    wanted = np.zeros((workers, labels, labels))
    for item in range(items):
        given = crowd["label"][crowd["start"][item] : crowd["start"][item + 1]]
        expected = np.bincount(given, minlength=labels) / len(given) if len(given) else 1 / labels
        np.testing.assert_allclose(share[item], expected, **CLOSE)
        for j in range(crowd["start"][item], crowd["start"][item + 1]):
            wanted[crowd["worker"][j], crowd["label"][j]] += share[item]
    np.testing.assert_allclose(votes.counts(share), wanted, **CLOSE)


@pytest.mark.parametrize("keep_last", [True, False])
@pytest.mark.parametrize("far", [0, 2**30])  # numbers of workers that fit into no common key
def test_sorting_and_repeats(crowd, keep_last, far):
    task = crowd["rng"].integers(0, 12, 100).astype(np.int32)
    worker, question = crowd["rng"].integers(0, 4, (2, 100)).astype(np.int32)
    start, order = passes.counting_sort(task, 14)
    assert order.tolist() == sorted(range(100), key=lambda j: task[j])
    assert start.tolist() == [int((task < k).sum()) for k in range(15)]
    worker, question = worker[order] + np.int32(far), question[order] + np.int32(far)
    keep, twice, first = passes.find_repeats(start, worker, question, keep_last)
    rows = list(zip(task[order].tolist(), question.tolist(), worker.tolist(), strict=True))
    again = [j for j in range(100) if rows[j] in rows[:j]]
    kept = [j for j in range(100) if rows[j] not in (rows[j + 1 :] if keep_last else rows[:j])]
    assert (np.flatnonzero(keep).tolist(), twice) == (kept, len(again))
    assert first in again
    assert task[order][first] == min(task[order][again])


def test_no_repeats_and_no_answers():
    none = np.empty(0, np.int32)
    keep, twice, first = passes.find_repeats(np.zeros(3, np.int64), none, none, True)
    assert (len(keep), twice, first) == (0, 0, -1)


@pytest.mark.parametrize("gold", ["None", "{'task': [0, 1], 'label': ['a', 'b']}"])
def test_little_is_learned_without_the_compiler(gold):
    code = f"""
import sys, crowdtree as ct
answers = {{'task': [0, 0, 1, 1, 2, 2], 'worker': ['v', 'w'] * 3}}
gold = {gold}
if gold:
    answers |= {{'question': ['q'] * 6, 'label': [1, 1, 0, 0, 1, 0]}}
else:
    answers['label'] = ['a', 'a', 'b', 'b', 'a', 'b']
learned = ct.learn(answers, gold=gold)
learned.accuracy, learned.flags
print('numba' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
