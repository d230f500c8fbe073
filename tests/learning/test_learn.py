"""Learning from answers: recovery, monotone objectives, order, gold, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit, logit
from scipy.stats import binom

from benchmarks.realdata import ABSENT, folder
from crowdtree import CrowdtreeError, CrowdtreeWarning, Problem
from crowdtree.learning import learn
from crowdtree.learning.answers import read_answers
from crowdtree.learning.labels import LABEL_METHODS
from tests.learn_crowds import crowd_error, labelled, many_questions, one_question


def accuracy(learned, gold):
    labels = learned.labels
    return np.mean([labels[task] == label for task, label in gold.items() if task in labels])


# ---------------------------------------------------------------- objectives


@pytest.mark.parametrize("gold_share", [0.0, 0.3])
def test_label_objective_never_falls(gold_share):
    crowd = one_question(np.random.default_rng(3), 200, 20, 5)
    gold = dict(list(crowd.gold.items())[: int(gold_share * 200)]) or None
    trace = np.array(learn(crowd.answers, gold, method="dawid-skene").trace)
    assert len(trace) > 3
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])
    assert trace[-1] > trace[0]


@pytest.mark.parametrize("known", ["table", "some gold", "all gold"])
def test_class_objective_settles(known):
    crowd = many_questions(np.random.default_rng(4), 150, 8, 5, 12, 10)
    gold = {"table": None, "some gold": dict(list(crowd.gold.items())[:60]), "all gold": crowd.gold}
    problem = crowd.problem if known == "table" else None
    learned = learn(crowd.answers, gold[known], problem=problem)
    trace = np.array(learned.trace)
    assert learned.converged
    assert len(trace) > 3
    assert trace[-1] > trace[0]
    assert abs(trace[-1] - trace[-2]) < 1e-4 * abs(trace[-1])


# ---------------------------------------------------------------- recovery


def binomial_range(count: int, chance: float = 1e-3) -> tuple[float, float]:
    """Where a share lies when the truth is from 0.93 to 0.97, but for once in a thousand."""
    low, high = binom.ppf(chance / 2, count, 0.93), binom.ppf(1 - chance / 2, count, 0.97)
    return low / count, high / count


COVERED = {
    "gold and table": lambda c: learn(c.answers, c.gold, problem=c.problem),
    "table": lambda c: learn(c.answers, problem=c.problem),
    "gold": lambda c: learn(c.answers, c.gold),
    "quarter gold": lambda c: learn(c.answers, dict(list(c.gold.items())[: len(c.gold) // 4])),
}


@pytest.mark.parametrize("known", COVERED)
def test_intervals_of_many_questions_cover(known):
    cells, skills = [], []
    for seed in range(8):
        crowd = many_questions(np.random.default_rng([1, seed]), 250, 12, 5, 40, 14)
        learned = COVERED[known](crowd)
        low, high = learned.intervals.worker_error
        told = learned.problem.outcome == crowd.problem.outcome
        actual = crowd_error(crowd)
        cells.append(((low <= actual) & (actual <= high))[told])
        order = [int(name) for name in learned.answers.workers]
        z = (learned.fit.skill - crowd.skill[order]) / learned.fit.skill_sd
        skills.append(np.abs(z) < 1.96)
    for parts in (cells, skills):
        hit = np.concatenate(parts)
        low, high = binomial_range(len(hit))
        assert low <= hit.mean() <= high


def actual_errors(crowd, learned):
    """Error of each class over all answers, and of each worker over all classes."""
    a, miss = learned.answers, crowd.error[0]
    truth = np.array([int(crowd.gold[str(t)]) for t in a.tasks.tolist()])[a.task]
    order = np.array([int(name) for name in a.workers])
    chance = expit(logit(miss[truth]) - crowd.skill[order[a.worker]])
    count = np.bincount(truth, minlength=2), np.bincount(a.worker)
    return (
        np.bincount(truth, weights=chance, minlength=2) / count[0],
        np.bincount(a.worker, weights=chance) / count[1],
    )


@pytest.mark.parametrize(
    "share",
    [pytest.param(0.0, marks=pytest.mark.slow), 0.25, pytest.param(1.0, marks=pytest.mark.slow)],
)
def test_intervals_of_one_question_cover(share):
    """Answers are independent here; without all gold intervals allow for shared errors as well."""
    hits = {"cell": [], "worker": [], "prior": []}
    for seed in range(12):
        crowd = labelled(np.random.default_rng([2, seed]), 300, 40, 6)
        gold = dict(list(crowd.gold.items())[: int(300 * share)]) or None
        learned = learn(crowd.answers, gold)
        by_class, by_worker = actual_errors(crowd, learned)
        low, high = learned.intervals.worker_error
        hits["cell"].append(((low <= by_class) & (by_class <= high)).ravel())
        ends = np.array([(w.error_low, w.error_high) for w in learned.workers.values()])
        hits["worker"].append((ends[:, 0] <= by_worker) & (by_worker <= ends[:, 1]))
        low, high = learned.intervals.prior
        hits["prior"].append(
            (low[:1] <= crowd.problem.prior[:1]) & (crowd.problem.prior[:1] <= high[:1])
        )
    for parts in hits.values():
        hit = np.concatenate(parts)
        low, high = binomial_range(len(hit)) if share == 1 else (0.85, 1.0)
        assert low <= hit.mean() <= high


def test_errors_shrink_as_the_root_of_the_answers():
    miss = {}
    for items in (800, 3200):
        square = []
        for seed in range(4):
            crowd = many_questions(np.random.default_rng(seed), items, 12, 5, 40, 12)
            learned = learn(crowd.answers, crowd.gold, problem=crowd.problem)
            # against these workers: 40 never tell the mean of a population
            square.append(np.mean((learned.fit.error - crowd_error(crowd)) ** 2))
        miss[items] = np.sqrt(np.mean(square))
    slope = np.log(miss[3200] / miss[800]) / np.log(4)
    assert slope == pytest.approx(-0.5, abs=0.1)


def test_one_question_recovers_errors_and_skills_without_gold():
    crowd = one_question(np.random.default_rng(0), 1500, 40, 8)
    learned = learn(crowd.answers)
    assert accuracy(learned, crowd.gold) > 0.93
    # without known items errors allow for those that the whole crowd shares
    low, high = learned.intervals.worker_error
    assert np.all((low <= crowd.error) & (crowd.error <= high))
    checked = learned.calibrate(dict(list(crowd.gold.items())[:300]))
    assert np.abs(checked.problem.worker_error - crowd.error).max() < 0.06
    order = [int(name) for name in learned.answers.workers]
    assert np.corrcoef(learned.fit.skill, crowd.skill[order])[0, 1] > 0.95


def test_full_gold_gives_the_class_shares_and_the_known_labels():
    crowd = one_question(np.random.default_rng(1), 400, 15, 4)
    learned = learn(crowd.answers, crowd.gold)
    assert learned.labels == crowd.gold
    share = np.mean([label == "1" for label in crowd.gold.values()])
    assert learned.problem.prior[1] == pytest.approx((400 * share + 1) / 402)


def test_table_is_found_from_gold_and_left_open_where_it_cannot_tell():
    crowd = many_questions(np.random.default_rng(2), 600, 8, 4, 15, 12)
    outcome = learn(crowd.answers, crowd.gold).problem.outcome
    told = outcome != -1
    assert told.mean() > 0.75
    assert (outcome == crowd.problem.outcome)[told].mean() > 0.97
    few = {str(i): crowd.gold[str(i)] for i in range(12)}
    small = pl.DataFrame(crowd.answers).filter(pl.col("task") < 12)
    assert (learn(small, few).problem.outcome == -1).mean() > (outcome == -1).mean()


def test_partly_gold_beats_its_own_gold_alone():
    right, missed = [], []
    for seed in (5, 6, 7, 8):
        crowd = many_questions(np.random.default_rng(seed), 500, 10, 5, 15, 10)
        some = dict(list(crowd.gold.items())[:100])
        part = learn(crowd.answers, some)
        alone = learn(pl.DataFrame(crowd.answers).filter(pl.col("task") < 100), some)
        rate = np.where(crowd.problem.outcome, 1 - crowd.error, crowd.error)
        missed.append([np.abs(x.table[1] - rate).mean() for x in (part, alone)])
        given = learn(crowd.answers, some, problem=crowd.problem)
        right.append([accuracy(x, crowd.gold) for x in (part, given)])
    assert all(with_rest < gold_only for with_rest, gold_only in missed)
    learned, table_known = np.mean(right, axis=0)
    assert learned > table_known - 0.02


def test_few_answers_borrow_from_the_crowd():
    crowd = one_question(np.random.default_rng(7), 300, 10, 5)
    frame = pl.DataFrame(crowd.answers)
    extra = pl.DataFrame({"task": [0], "worker": [99], "label": [1 - int(crowd.gold["0"])]})
    learned = learn(pl.concat([frame, extra], how="vertical_relaxed"))
    newcomer = learned.workers["99"]
    assert newcomer.answers == 1
    assert abs(newcomer.skill) < 0.5
    sd = learned.fit.skill_sd
    assert sd[learned.worker_index["99"]] > 1.5 * np.median(sd)


def test_labels_do_not_switch_when_most_are_better_than_chance():
    crowd = one_question(np.random.default_rng(8), 500, 20, 7, error=(0.35, 0.35))
    assert accuracy(learn(crowd.answers), crowd.gold) > 0.8


# ---------------------------------------------------------------- same answer, any input


def test_row_order_and_kind_of_frame_do_not_matter(tmp_path):
    crowd = one_question(np.random.default_rng(10), 80, 12, 5)
    frame = pl.DataFrame(crowd.answers)
    first = learn(frame)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    others = [
        shuffled,
        pd.DataFrame(crowd.answers),
        frame.to_arrow(),
        tmp_path / "a.csv",
        str(tmp_path / "a.parquet"),
        frame.cast(pl.String),
    ]
    for other in others:
        again = learn(other)
        assert again.labels == first.labels
        assert again.problem.worker_error == pytest.approx(first.problem.worker_error, abs=1e-9)


def test_same_input_gives_the_same_numbers():
    crowd = many_questions(np.random.default_rng(11), 60, 5, 4, 8, 6)
    one, two = (learn(crowd.answers, problem=crowd.problem) for _ in range(2))
    assert one.problem == two.problem
    assert np.array_equal(one.fit.skill, two.fit.skill)


def test_many_labels_become_one_question_a_label():
    rng = np.random.default_rng(12)
    truth = rng.integers(0, 3, 200)
    task = np.repeat(np.arange(200), 6)
    label = np.where(rng.random(1200) < 0.75, truth[task], rng.integers(0, 3, 1200))
    answers = {"task": task, "worker": np.tile(np.arange(6), 200), "label": label}
    learned = learn(answers)
    assert learned.problem.outcome.tolist() == np.eye(3, dtype=int).tolist()
    assert learned.problem.questions == ("label is 0", "label is 1", "label is 2")
    assert accuracy(learned, {str(i): str(c) for i, c in enumerate(truth)}) > 0.9
    # what misses a class is what alarms the other two
    error = learned.problem.worker_error
    off = error * (1 - np.eye(3))
    assert off.sum(axis=0) == pytest.approx(np.diagonal(error))


def test_one_yes_no_question_about_more_classes():
    answers = {"task": [1, 1, 2, 2, 3, 3], "worker": ["a", "b"] * 3, "label": [1, 1, 0, 0, 1, 1]}
    gold = {"1": "mallard", "2": "goose", "3": "teal"}
    learned = learn(answers, gold)
    assert learned.kind == "classes"
    assert learned.problem.classes == ("goose", "mallard", "teal")


def test_crowdkit_frame_round_trip():
    crowd = one_question(np.random.default_rng(13), 40, 8, 3)
    learned = learn(crowd.answers)
    frame = learned.to_frame("answers")
    assert frame.columns == ["task", "worker", "label"]
    assert learn(frame).labels == learned.labels
    assert learn(learned).labels == learned.labels


# ---------------------------------------------------------------- bad input

GOOD = {"task": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "label": ["x", "x", "y", "x"]}


@pytest.mark.parametrize(
    ("answers", "gold", "options", "message"),
    [
        (GOOD, {"1": "z"}, {"classes": ["x", "y"]}, "gold: class 'z' is not among 'x', 'y'"),
        (GOOD, {"1": "x", "2": "z"}, {}, "gold: class 'z' is not among 'x', 'y'"),
        (GOOD, {"task": [1, 1], "label": ["x", "y"]}, {}, "task '1' is both 'x' and 'y'"),
        (GOOD, {"77": "x"}, {}, "none of its items"),
        ({k: v[:1] for k, v in GOOD.items()}, None, {}, "two labels or more, got 'x' only"),
        ({**GOOD, "worker": ["a"] * 4, "task": [1, 2, 3, 4]}, None, {}, "one worker only"),
        ({"task": [], "worker": [], "label": []}, None, {}, "answers: no rows"),
        ({"task": [1], "label": ["x"]}, None, {}, "column worker is missing"),
        (GOOD, None, {"method": "magic"}, "method: 'magic' is unknown"),
        (GOOD, None, {"level": 1.5}, "level: expected a probability"),
        (GOOD, None, {"duplicates": "any"}, "duplicates: expected"),
        ([1, 2], None, {}, "a frame"),
        ("nowhere.csv", None, {}, "nowhere.csv: no such file"),
        ({**GOOD, "question": ["q", "r"] * 2}, {"1": "c", "2": "d"}, {}, "neither yes nor no"),
        (
            {**GOOD, "label": [0, 1, 0, 1], "question": ["q", "r", "q", "r"]},
            {"1": "c", "2": "c"}, {}, "expected items of two classes or more, got 'c' only",
        ),
        ({**GOOD, "label": [0, 1, 0, 1], "question": ["q", "r"] * 2}, None, {}, "neither gold nor"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_one_line(answers, gold, options, message):
    with pytest.raises(CrowdtreeError) as caught:
        learn(answers, gold, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_empty_and_unreadable_files(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(CrowdtreeError, match="is empty"):
        learn(tmp_path / "empty.csv")
    (tmp_path / "header.csv").write_text("task,worker,label\n")
    with pytest.raises(CrowdtreeError, match="no rows"):
        learn(tmp_path / "header.csv")
    (tmp_path / "bad.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(CrowdtreeError, match=r"bad\.parquet: cannot be read"):
        learn(tmp_path / "bad.parquet")


def test_a_file_that_cannot_fit_says_so_before_reading(tmp_path, monkeypatch):
    from crowdtree.core import columns as reading

    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.write(b"task,worker,label\n" + b"100000,1000,1\n" * 5000)
        file.truncate(5 * 2**30)  # sparse: 5 GB on paper
    monkeypatch.setattr(reading, "_free_memory", lambda: 2.0 * 2**30)
    with pytest.raises(CrowdtreeError, match=r"need about .* GB of memory and 2\.0 GB are free"):
        learn(path)


def test_repeated_answers_are_told_and_the_last_counts():
    twice = {k: [*v, v[0]] for k, v in GOOD.items()} | {"label": ["x", "x", "y", "x", "y"]}
    with pytest.warns(
        CrowdtreeWarning, match=r"1 answer given twice \(first: worker a on task 1\)"
    ):
        read = read_answers(twice)
    assert read.n_answers == 4
    assert sorted(x for t, _, x in read.to_columns().rows() if t == "1") == ["x", "y"]
    with pytest.warns(CrowdtreeWarning, match="the first one counts"):
        first = read_answers(twice, duplicates="first")
    assert [x for t, _, x in first.to_columns().rows() if t == "1"] == ["x", "x"]
    assert read_answers(twice, duplicates="all").n_answers == 5
    with pytest.raises(CrowdtreeError, match="remove the repeats"):
        read_answers(twice, duplicates="error")


def test_question_of_another_problem_is_refused():
    problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1)
    answers = {"task": [1], "question": ["other"], "worker": ["w"], "label": [1]}
    with pytest.raises(CrowdtreeError, match="question 'other' is unknown; expected q"):
        learn(answers, problem=problem)


# ---------------------------------------------------------------- real people

# accuracy in percent of the best of crowd-kit 1.4.2's, as benchmarks/learn_calibration.py prints it
BEST_OF_PEERS = {
    "bluebird": 88.89,
    "rte": 92.75,
    "temporal": 94.16,
    "dog": 84.26,
    "weather_amt": 86.0,
    "trec": 70.15,
    "ducks": 69.17,
}
LARGE = ("dog", "weather_amt", "trec")
"""Crowds that take seconds each."""


@pytest.mark.realdata
@pytest.mark.filterwarnings("ignore:answers:crowdtree.CrowdtreeWarning")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else [])
        for name in BEST_OF_PEERS
    ],
)
def test_real_crowds_within_two_points_of_the_best(name):
    data = folder()
    if data is None:
        pytest.skip(ABSENT)
    place = data / f"crowd_{name}"
    if not place.exists():
        pytest.skip(f"the data folder has no crowd_{name}")
    path = next(p for p in (place / "answers.csv", place / "answers.csv.gz") if p.exists())
    learned = learn(path)
    gold = {str(t): str(x) for t, x in pd.read_csv(place / "gold.csv").itertuples(index=False)}
    assert 100 * accuracy(learned, gold) >= BEST_OF_PEERS[name] - 2
    right, found = accuracy(learned, gold), learned.accuracy
    if name != "ducks":  # one of eleven: most people are wrong, and the labels are not
        assert found.low <= right <= found.high  # in-sample: the prior saw this crowd
    checked = learned.calibrate(dict(list(gold.items())[::3])).accuracy
    assert checked.low <= right <= checked.high
    assert checked.high - checked.low < found.high - found.low


def test_every_method_is_listed_and_runs():
    crowd = one_question(np.random.default_rng(14), 60, 10, 5)
    for method in LABEL_METHODS:
        assert accuracy(learn(crowd.answers, method=method), crowd.gold) > 0.7
