"""The doubt that learning reports, what must not matter, and the work of an update."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from crowdtree import CrowdtreeError, CrowdtreeWarning
from crowdtree.learning import labels, learn
from crowdtree.learning.answers import read_answers
from crowdtree.learning.class_passes import ClassPasses
from tests.learn_crowds import labelled, many_questions, one_question

# ---------------------------------------------------------------- information


def log_likelihood(a, tilt, x, skill, prior):
    """From the definition: sum over items of the log of a sum over classes.

    `x` and `tilt` are those of the answer 1, both 0 in open cells.
    """
    total = 0.0
    for t in range(a.n_tasks):
        like = prior.copy()
        for j in range(a.start[t], a.start[t + 1]):
            q = a.question[j]
            yes = expit(x[q] + tilt[q] * skill[a.worker[j]])
            like = like * np.where(a.label[j] == 1, yes, 1 - yes)
        total += np.log(like.sum())
    return total


@pytest.mark.parametrize("known", ["table", "gold", "open cells"])
def test_observed_information_is_the_curvature_of_the_likelihood(known):
    """Whole less lost, against second differences of the marginal log likelihood."""
    crowd, problem = many_questions(np.random.default_rng(0), 25, 3, 3, 4, 5), None
    if known != "gold":
        outcome = crowd.problem.outcome.copy()
        if known == "open cells":
            outcome[0, 0] = outcome[1, 1] = -1
        problem = crowd.problem.replace(outcome=outcome, dash="either")
    learned = learn(crowd.answers, crowd.gold if known == "gold" else None, problem=problem)
    fit, a = learned.fit, learned.answers
    cells, workers = fit.cell.size, len(fit.skill)
    rng = np.random.default_rng(1)
    side = np.where(fit.definite, np.where(fit.right_answer[1], 1, -1), 0)
    x, tilt = side * fit.cell, side * fit.tilt
    at = np.concatenate([x.ravel(), fit.skill, np.log(fit.prior)])

    def value(x):
        free = np.exp(x[cells + workers :])
        return log_likelihood(
            a, tilt, x[:cells].reshape(tilt.shape), x[cells : cells + workers], free / free.sum()
        )

    second = np.stack([np.zeros(tilt.shape), np.ones(tilt.shape)])
    passes = ClassPasses(a, np.where(fit.definite, second, 0.5))
    unknown = np.full(a.n_tasks, -1, np.int32)
    posterior, total = passes.classify(x, tilt, fit.skill, None, fit.prior, unknown)
    assert total == pytest.approx(value(at))
    whole, lost = passes.information(x, tilt, fit.skill, posterior, fit.prior, 0.0, len(at))
    for _ in range(12):
        way = rng.normal(size=len(at))
        way[:cells] *= fit.definite.ravel()  # open cells are not estimated
        step = 1e-3
        bend = (value(at + step * way) + value(at - step * way) - 2 * value(at)) / step**2
        assert way @ (whole - lost) @ way == pytest.approx(-bend, rel=1e-3)
    assert np.linalg.eigvalsh(lost).min() > -1e-9
    assert not lost[:cells][~fit.definite.ravel()].any()


def test_less_knowledge_means_more_doubt():
    crowd = many_questions(np.random.default_rng(2), 150, 8, 4, 15, 8)
    some = dict(list(crowd.gold.items())[:40])
    known = learn(crowd.answers, crowd.gold, problem=crowd.problem)
    hidden = learn(crowd.answers, problem=crowd.problem)
    untold = learn(crowd.answers, some)
    assert hidden.fit.skill_sd.mean() > known.fit.skill_sd.mean()
    assert untold.fit.skill_sd.mean() > known.fit.skill_sd.mean()
    assert (hidden.fit.prior_size < known.fit.prior_size).all()
    assert known.fit.prior_size == pytest.approx(np.full(4, 150 + 4), rel=1e-6)


def test_signs_near_one_half_stay_open():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 60)
    task = np.repeat(np.arange(60), 6)
    asked = np.tile([0, 0, 0, 1, 1, 1], 60)
    wrong = rng.random(360) < np.where(asked == 0, 0.1, 0.5)
    answers = {
        "task": task,
        "question": np.array(["clear", "coin"])[asked],
        "worker": np.tile([0, 1, 2, 3, 4, 5], 60),
        "label": truth[task] ^ wrong,
    }
    learned = learn(answers, {str(i): "ab"[c] for i, c in enumerate(truth)})
    assert (np.abs(learned.fit.tilt[0]) > 0.999).all()
    assert (np.abs(learned.fit.tilt[1]) < 0.95).any()
    assert learned.problem.outcome[0].tolist() == [0, 1]


# ---------------------------------------------------------------- what must not matter


@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_names_of_workers_and_items_do_not_matter(kind):
    rng = np.random.default_rng(8)
    if kind == "labels":
        crowd = one_question(rng, 120, 15, 5)
        known = {}
    else:
        crowd = many_questions(rng, 80, 6, 4, 12, 8)
        known = {"problem": crowd.problem}
    first = learn(crowd.answers, **known)
    task, worker = rng.permutation(1000), rng.permutation(1000)
    renamed = {
        **crowd.answers,
        "task": task[crowd.answers["task"]],
        "worker": worker[crowd.answers["worker"]],
    }
    second = learn(renamed, **known)
    assert second.problem.worker_error == pytest.approx(first.problem.worker_error, abs=1e-6)
    for name, label in first.labels.items():
        assert second.labels[str(task[int(name)])] == label
    for name, one in first.workers.items():
        other = second.workers[str(worker[int(name)])]
        assert other.skill == pytest.approx(one.skill, abs=1e-5)
        # intervals come from a sample, which depends on the order of the items
        assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.2)


@pytest.mark.parametrize("method", labels.LABEL_METHODS)
def test_names_of_labels_do_not_matter(method):
    crowd = one_question(np.random.default_rng(9), 150, 15, 5)
    first = learn(crowd.answers, method=method)
    turned = {**crowd.answers, "label": 1 - crowd.answers["label"].astype(int)}
    second = learn(turned, method=method)
    assert second.posterior[:, ::-1] == pytest.approx(first.posterior, abs=1e-6)
    assert second.fit.error[:, ::-1] == pytest.approx(first.fit.error, abs=1e-5)


def test_adversaries_do_not_switch_the_labels():
    rng = np.random.default_rng(10)
    crowd = one_question(rng, 300, 20, 8, error=(0.2, 0.2))
    bad = crowd.answers["worker"] < 6
    turned = np.where(bad, 1 - crowd.answers["label"].astype(int), crowd.answers["label"])
    learned = learn({**crowd.answers, "label": turned})
    right = np.mean([learned.labels[task] == label for task, label in crowd.gold.items()])
    assert right > 0.9
    skills = [learned.workers[str(i)].skill for i in range(20)]
    assert max(skills[:6]) < min(skills[6:]) + 0.5
    assert np.mean(skills[:6]) < np.mean(skills[6:]) - 1


def test_same_input_gives_the_same_bits():
    crowd = labelled(np.random.default_rng(11), 100, 12, 5, labels=3)
    one, two = learn(crowd.answers), learn(crowd.answers)
    assert np.array_equal(one.posterior, two.posterior)
    assert np.array_equal(one.fit.skill_sd, two.fit.skill_sd)
    assert one.trace == two.trace


def test_leanings_of_workers_are_not_taken_for_classes():
    """Three answers per item of workers who lean: free classes would follow the leanings."""
    found, vote = [], []
    for seed in range(3):
        rng = np.random.default_rng([12, seed])
        truth, task = rng.integers(0, 2, 800), np.repeat(np.arange(800), 3)
        worker = np.argsort(rng.random((800, 60)), axis=1)[:, :3].ravel()
        lean = rng.normal(0, 1, 60)[worker] * (2 * truth[task] - 1)
        said = truth[task] ^ (rng.random(2400) < expit(logit(0.27) + lean))
        read = read_answers({"task": task, "worker": worker, "label": said})
        none = np.full(800, -1, np.int32)
        found.append(np.mean(labels.fit_labels(read, none).posterior.argmax(axis=1) == truth))
        majority = labels.fit_labels(read, none, "majority").posterior
        vote.append(np.mean(majority.argmax(axis=1) == truth))
    assert np.mean(found) > np.mean(vote) - 0.02


# ---------------------------------------------------------------- updates


def test_an_update_is_the_same_in_one_part_or_in_several():
    frame = pl.DataFrame(one_question(np.random.default_rng(13), 60, 30, 6).answers)
    first, rest = frame.filter(pl.col("task") < 40), frame.filter(pl.col("task") >= 40)
    again = frame.unique("task", maintain_order=True)[:5].with_columns(worker=pl.lit(99))
    rest = pl.concat([rest, again], how="vertical_relaxed")
    whole, parts = learn(first).update(rest), learn(first)
    for row in rest.iter_slices(7):
        parts.update(row)
    assert parts.problem.worker_error == pytest.approx(whole.problem.worker_error)
    for task in whole.labels:
        assert parts.item(task) == pytest.approx(whole.item(task))
    assert parts.workers["99"] == pytest.approx(whole.workers["99"])


def test_many_small_updates_agree_with_one_refit():
    crowd = one_question(np.random.default_rng(14), 500, 30, 8)
    frame = pl.DataFrame(crowd.answers)
    learned = learn(frame.filter(pl.col("task") < 400))
    for start in range(400, 500, 20):
        learned.update(frame.filter(pl.col("task").is_between(start, start + 19)))
    refit = learn(frame)
    assert np.mean([learned.labels[t] == refit.labels[t] for t in refit.labels]) > 0.97
    assert np.abs(learned.problem.worker_error - refit.problem.worker_error).max() < 0.03


# ---------------------------------------------------------------- bad input

GOOD = {"task": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "label": ["x", "x", "y", "x"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            b"task,worker,label\n1,a,x\n1,b,x,more\n",
            "a row has more fields than the header",
        ),
        ("a.csv", b"task,worker,label\n1,a,caf\xe9\n1,b,x\n", "is not UTF-8; save the file"),
        ("a.csv", b"\n\n\n", "it holds no header"),
        ("a.csv", b"\x00\x01\x02", "not a text file"),
        ("a.parquet", b"PAR1xxxxPAR1", "it is not a Parquet file"),
        ("a.csv", b"", "is empty"),
    ],
)
def test_files_that_cannot_be_read_say_why_in_plain_words(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CrowdtreeError) as caught:
        learn(tmp_path / name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    for leak in ("polars", "Schema", "dtype", "numpy"):
        assert leak not in str(caught.value)


@pytest.mark.parametrize(
    ("answers", "gold", "options", "message"),
    [
        ({**GOOD, "worker": ["a"]}, None, {}, "columns of different lengths (task 4, worker 1"),
        ({**GOOD, "label": [["x"]] * 4}, None, {}, "column label holds lists"),
        (GOOD, {"1": None}, {}, "gold: no rows; expected at least one"),
        (GOOD, {"1": float("nan")}, {}, "gold: no rows; expected at least one"),
        (GOOD, None, {"problem": "p"}, "problem: expected a Problem, got the text"),
        (GOOD, None, {"level": "high"}, "level: expected a number"),
        ({**GOOD, "label": ["x"] * 4}, {"1": "x"}, {}, "expected two labels or more, got 'x' only"),
        (GOOD, {"1": "x", "2": "q"}, {}, "gold: class 'q' is not among 'x', 'y'"),
    ],
)
def test_more_bad_input_is_told_in_one_line(answers, gold, options, message):
    with pytest.raises(CrowdtreeError) as caught:
        learn(answers, gold, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(CrowdtreeError, match="is a folder; give the name of a file in it"):
        learn(tmp_path)


def test_blanks_and_late_text_are_read(tmp_path):
    answers = {"task": [1, 1, 2, 2], "worker": ["a", "b"] * 2, "label": [0.0, 1.0, float("nan"), 1]}
    assert learn(answers).answers.n_answers == 3
    without = {**answers, "worker": ["a", "b", "c", None], "label": [0, 1, 1, 1]}
    with pytest.warns(CrowdtreeWarning, match="1 answer left out .*row 4 has no worker"):
        assert learn(without).answers.n_answers == 3
    endless = {
        "task": [1.0, 1.0, float("inf")],
        "worker": ["a", "b", "a"],
        "label": ["x", "y", "x"],
    }
    assert learn(endless).answers.n_tasks == 2
    rows = "".join(f"{i},{'ab'[i % 2]},{'xy'[i % 2]}\n" for i in range(10_500))
    (tmp_path / "late.csv").write_text(f"task,worker,label\n{rows}last,a,x\n")
    assert "last" in learn(tmp_path / "late.csv").labels
