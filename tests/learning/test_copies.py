"""Crowds that once misled without a word: copies, constant workers, repeats, missing labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from crowdtree import CrowdtreeWarning
from crowdtree.learning import learn
from crowdtree.learning.answers import read_answers
from crowdtree.learning.copies import find_copies, merge_copies
from tests.learn_crowds import labelled, one_question


def right(learned, truth):
    return float(np.mean([learned.labels[str(i)] == str(t) for i, t in enumerate(truth)]))


def asked(seed: int, bad: int, kind: str, k: int = 2, items: int = 300, each: int = 8):
    """20 workers, the first `bad` of whom answer what their leader guesses, or always the same."""
    rng = np.random.default_rng([9, seed])
    truth, task = rng.integers(0, k, items), np.repeat(np.arange(items), each)
    worker = np.argsort(rng.random((items, 20)), axis=1)[:, :each].ravel()
    error = rng.beta(4, 14, 20)[worker]
    said = np.where(rng.random(len(task)) < error, rng.integers(0, k, len(task)), truth[task])
    led = rng.integers(0, k, items)[task] if kind == "guess" else 0
    label = np.where(worker < bad, led, said)
    return {"task": task, "worker": worker, "label": label}, truth


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("seed", range(2))
def test_eight_of_twenty_who_collude_count_as_one(seed, k):
    answers, truth = asked(seed, 8, "guess", k)
    learned = learn(answers)
    assert right(learned, truth) >= 0.85
    flags = learned.flags.by_kind()
    assert [set(flag.subject.split(", ")) for flag in flags["copies"]] == [set("01234567")]
    suspects = {flag.subject for kind in ("random", "constant") for flag in flags.get(kind, [])}
    assert not suspects & {str(w) for w in range(8, 20)}
    found = learned.accuracy
    assert found.low <= right(learned, truth) <= found.high


@pytest.mark.parametrize(
    ("k", "items", "each", "least"),
    [(2, 300, 3, 0.7), (2, 100, 5, 0.7), (4, 300, 3, 0.65), (4, 300, 12, 0.85)],
)
@pytest.mark.parametrize("seed", range(2))
def test_twelve_of_twenty_who_always_say_the_same_are_flagged(seed, k, items, each, least):
    answers, truth = asked(seed, 12, "constant", k, items, each)
    learned = learn(answers)
    flags = learned.flags.by_kind()
    told = {flag.subject for flag in flags.get("constant", [])}
    told |= {name for flag in flags.get("copies", []) for name in flag.subject.split(", ")}
    assert told >= {str(w) for w in range(12)}
    assert not told & {str(w) for w in range(12, 20)}
    assert right(learned, truth) > least


def test_good_workers_who_agree_are_no_copies():
    crowd = one_question(np.random.default_rng(1), 300, 20, 8, error=(0.03, 0.03))
    assert find_copies(read_answers(crowd.answers)) == ()
    rare = one_question(np.random.default_rng(1), 300, 20, 8, error=(0.01, 0.01))
    label = np.where(rare.answers["task"] < 290, 0, 1)  # honest, and nearly always the same
    assert find_copies(read_answers({**rare.answers, "label": label})) == ()
    two = {"task": [1, 1, 2, 2], "worker": ["a", "b"] * 2, "label": [0, 0, 1, 1]}
    assert find_copies(read_answers(two)) == ()


def test_merged_copies_keep_every_item():
    answers, _ = asked(3, 8, "guess")
    read = read_answers(answers)
    merged = merge_copies(read, (tuple(range(8)),))
    assert merge_copies(read, ()) is read
    assert (np.diff(merged.start) > 0).all()
    assert merged.start[-1] == merged.n_answers < read.n_answers
    assert not (merged.worker[merged.worker < 8] > 0).any()
    pairs = merged.task.astype(int) * 20 + merged.worker
    assert len(np.unique(pairs)) == len(pairs)
    kept = read.worker >= 8
    honest = sorted(zip(read.task[kept], read.worker[kept], read.label[kept], strict=True))
    after = merged.worker >= 8
    assert honest == sorted(
        zip(merged.task[after], merged.worker[after], merged.label[after], strict=True)
    )


@pytest.mark.parametrize("labels", [2, 4])
def test_every_answer_given_twice_is_given_once(labels):
    crowd = labelled(np.random.default_rng([10, labels]), 200, 20, 5, labels=labels)
    twice = {key: np.tile(value, 2) for key, value in crowd.answers.items()}
    once, both = learn(crowd.answers), learn(twice, duplicates="all")
    assert both.labels == once.labels
    assert both.accuracy == pytest.approx(once.accuracy, abs=1e-9)
    assert both.fit.skill_sd == pytest.approx(once.fit.skill_sd)


def test_repeats_count_as_the_most_frequent_and_the_latest_of_equals():
    rows = {
        "task": [1, 1, 1, 2, 2, 2, 1],
        "worker": ["a", "a", "a", "a", "a", "b", "b"],
        "label": ["x", "y", "x", "y", "x", "y", "z"],
    }
    read = read_answers(rows, duplicates="all").one_each()
    assert read.to_columns().rows() == [
        ("1", "a", "x"), ("1", "b", "z"), ("2", "a", "x"), ("2", "b", "y"),
    ]  # fmt: skip
    assert read.one_each() is read


@pytest.mark.parametrize("missing", [None, float("nan"), "", "  "])
@pytest.mark.parametrize("frame", [dict, pd.DataFrame])
def test_a_missing_label_is_told(missing, frame):
    crowd = one_question(np.random.default_rng(2), 30, 6, 4)
    label = ["no" if x == 0 else "yes" for x in crowd.answers["label"]]
    label[7] = label[50] = missing
    answers = frame({**crowd.answers, "label": label})
    learned = learn(answers)
    assert learned.answers.notes == ("2 answers are skips, not labels (blank 2)",)
    assert learned.answers.n_answers == 118
    with pytest.warns(CrowdtreeWarning, match="update: 1 answer is a skip"):
        learned.update({"task": [0, 1], "worker": ["x", "y"], "label": ["no", missing]})


def test_rows_without_anything_and_unknown_gold_are_no_missing_answers(tmp_path):
    (tmp_path / "a.csv").write_text("task,worker,label\n1,a,x\n1,b,x\n,,\n2,a,y\n2,b,x\n")
    (tmp_path / "gold.csv").write_text("task,label\n1,x\n2,\n")
    learned = learn(tmp_path / "a.csv", tmp_path / "gold.csv")
    assert learned.answers.n_answers == 4
    assert learned.gold.tolist() == [0, -1]
    (tmp_path / "b.csv").write_text("task,worker,label\n1,a,x\n1,,x\n2,a,y\n2,b,x\n")
    with pytest.warns(CrowdtreeWarning, match=r"first: row 2 has no worker"):
        learn(tmp_path / "b.csv")
