"""Passes over few answers, without the compiler, give what the compiled ones give."""

import subprocess
import sys

import numpy as np
import pytest

from crowdtree.learning import class_kernels, kernels, passes

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture
def crowd():
    rng = np.random.default_rng(0)
    items, workers, labels, tilts = 40, 7, 3, 5
    votes = rng.integers(0, 6, items)  # some items have no answers
    answers = int(votes.sum())
    return {
        "rng": rng,
        "start": np.concatenate([[0], np.cumsum(votes)]).astype(np.int64),
        "worker": rng.integers(0, workers, answers).astype(np.int32),
        "label": rng.integers(0, labels, answers).astype(np.int8),
        "log_answer": np.log(rng.dirichlet(np.ones(labels), (workers, labels * tilts)))
        .transpose(0, 2, 1)
        .copy(),
        "log_prior": np.log(rng.dirichlet(np.ones(labels * tilts))),
        "gold": np.where(rng.random(items) < 0.3, rng.integers(0, labels, items), -1).astype(
            np.int32
        ),
        "shape": (items, workers, labels, tilts),
    }


def both(call):
    return call(passes.passes(1)), call(kernels)


def test_large_work_is_compiled_and_small_work_is_not():
    assert passes.passes(passes.FEW + 1) is kernels
    assert passes.passes(passes.FEW) is not kernels
    assert passes.class_passes(passes.FEW_IN_TABLES + 1) is class_kernels
    assert passes.class_passes(1).class_pass is not class_kernels.class_pass


def test_states(crowd):
    items, workers, labels, tilts = crowd["shape"]

    def call(module):
        posterior, counts = np.empty((items, labels)), np.empty((workers, labels, labels * tilts))
        total = module.state_pass(
            crowd["start"], crowd["worker"], crowd["label"], crowd["log_answer"],
            crowd["log_prior"], crowd["gold"], posterior, counts,
        )  # fmt: skip
        given, expected = np.empty((2, workers, labels, labels))
        module.told_pass(counts, crowd["log_answer"], given, expected)
        return np.array([total]), posterior, counts, given, expected

    for few, many in zip(*both(call), strict=True):
        np.testing.assert_allclose(few, many, **CLOSE)


def test_draws_are_the_same(crowd):
    items, workers, labels, tilts = crowd["shape"]
    uniform = crowd["rng"].random(items)

    def call(module):
        counts = np.empty((workers, labels, labels * tilts))
        drawn = module.draw_pass(
            crowd["start"], crowd["worker"], crowd["label"], crowd["log_answer"],
            crowd["log_prior"], crowd["gold"], uniform, counts,
        )  # fmt: skip
        return drawn, counts

    for few, many in zip(*both(call), strict=True):
        np.testing.assert_array_equal(few, many)


def test_tables_and_shares(crowd):
    _, workers, labels, tilts = crowd["shape"]
    logits = crowd["rng"].normal(size=(workers, labels, labels))
    tilt = crowd["rng"].normal(size=(tilts, labels))

    def call(module):
        table = np.empty((workers, labels, labels * tilts))
        module.answer_table(logits, tilt, table)
        share = module.vote_shares(crowd["start"], crowd["label"], labels)
        counts = np.empty((workers, labels, labels))
        module.count_pass(crowd["start"], crowd["worker"], crowd["label"], share, counts)
        return table, share, counts

    for few, many in zip(*both(call), strict=True):
        np.testing.assert_allclose(few, many, **CLOSE)


@pytest.mark.parametrize("keep_last", [True, False])
def test_encoding_sorting_and_repeats(crowd, keep_last):
    rng = crowd["rng"]
    values = rng.integers(-5, 40, 100)
    task = rng.integers(0, 12, 100).astype(np.int32)
    worker, question = rng.integers(0, 4, (2, 100)).astype(np.int32)

    def call(module):
        start, order = module.counting_sort(task, 14)
        repeats = module.find_repeats(start, worker[order], question[order], keep_last)
        return *module.encode_range(values, -5, 45), start, order, *map(np.asarray, repeats)

    few, many = both(call)
    for mine, compiled in zip(few, many, strict=True):
        np.testing.assert_array_equal(mine, compiled)
        assert mine.dtype.kind == compiled.dtype.kind


def test_no_repeats_and_no_answers():
    few = passes.passes(1)
    none = np.empty(0, np.int32)
    keep, twice, first = few.find_repeats(np.zeros(3, np.int64), none, none, True)
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
