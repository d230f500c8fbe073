"""Updates, the tracker of workers, flags, pilot planning, robust numbers and foreign formats."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import crowdtree as ct
from crowdtree import CrowdtreeError, CrowdtreeWarning
from crowdtree.core.columns import Columns
from crowdtree.core.problem import Problem
from crowdtree.core.tree import Tree
from crowdtree.io import interchange
from crowdtree.learning import learn
from crowdtree.learning.pilot import credible_interval, plan_pilot, sensitivity, upper_problem
from crowdtree.learning.worker_tracker import WorkerTracker
from tests import answer_writers
from tests.learn_crowds import many_questions, one_question

# ---------------------------------------------------------------- updates


def split(crowd, at):
    frame = pl.DataFrame(crowd.answers)
    return frame, frame.filter(pl.col("task") < at), frame.filter(pl.col("task") >= at)


def test_update_agrees_with_a_refit_for_one_question():
    crowd = one_question(np.random.default_rng(0), 1000, 40, 8)
    whole, first, rest = split(crowd, 900)
    updated, refit = learn(first).update(rest), learn(whole)
    agree = np.mean([updated.labels[t] == refit.labels[t] for t in refit.labels])
    assert set(updated.labels) == set(refit.labels)
    assert agree > 0.985
    assert np.abs(updated.problem.worker_error - refit.problem.worker_error).max() < 0.02
    assert np.abs(updated.fit.skill - refit.fit.skill).max() < 0.1
    # better than not updating
    stale = learn(first)
    assert (
        np.abs(updated.fit.skill - refit.fit.skill).mean()
        < np.abs(stale.fit.skill - refit.fit.skill).mean()
    )


def test_update_agrees_with_a_refit_for_many_questions():
    crowd = many_questions(np.random.default_rng(1), 800, 15, 6, 25, 15)
    whole, first, rest = split(crowd, 700)
    updated = learn(first, problem=crowd.problem).update(rest)
    refit = learn(whole, problem=crowd.problem)
    assert np.mean([updated.labels[t] == refit.labels[t] for t in refit.labels]) > 0.98
    assert np.abs(updated.fit.error - refit.fit.error).max() < 0.03
    assert np.abs(updated.fit.skill - refit.fit.skill).max() < 0.2


def test_update_of_a_known_item_changes_that_item_and_counts_answers_once():
    crowd = one_question(np.random.default_rng(2), 100, 12, 3)
    learned = learn(crowd.answers)
    before, counted = learned.item(5).copy(), learned.counts.sum()
    other = 1 - int(learned.labels["5"])
    learned.update({"task": [5] * 6, "worker": ["n1", "n2", "n3", "n4", "n5", "n6"],
                    "label": [other] * 6})  # fmt: skip
    assert learned.item(5)[other] > before[other]
    assert learned.counts.sum() == pytest.approx(counted + 6)
    assert learned.workers["n1"].answers == 1
    assert learned.item(6) == pytest.approx(learned.posterior[6])


def test_update_refuses_what_was_never_learned():
    learned = learn(one_question(np.random.default_rng(3), 50, 8, 4).answers)
    with pytest.raises(CrowdtreeError, match="label 'maybe' is unknown; expected 0, 1"):
        learned.update({"task": [1], "worker": ["a"], "label": ["maybe"]})
    with pytest.raises(CrowdtreeError, match="task nowhere is unknown"):
        learned.item("nowhere")


def test_posterior_uses_each_workers_own_error():
    crowd = one_question(np.random.default_rng(4), 600, 15, 6)
    learned = learn(crowd.answers)
    ranked = sorted(learned.workers.values(), key=lambda w: w.skill)
    answers = {"task": ["x", "x"], "worker": [ranked[0].name, ranked[-1].name], "label": ["0", "1"]}
    assert learned.classify(answers)[1][0].argmax() == 1
    answers["label"] = ["1", "0"]
    assert learned.classify(answers)[1][0].argmax() == 0


# ---------------------------------------------------------------- the tracker of workers


def test_tracker_finds_the_error_of_workers_it_watches():
    rng = np.random.default_rng(5)
    problem = Problem(["a", "b", "c"], None, ["q", "r"], [[0, 1, 1], [0, 0, 1]], 0.2)
    tracker = WorkerTracker(problem)
    error = np.array([0.05, 0.2, 0.5])
    for _ in range(300):
        cls, asked = int(rng.integers(3)), rng.integers(2, size=3)
        answers = problem.outcome[asked, cls] ^ (rng.random(3) < error)
        tracker.update(["good", "plain", "coin"], asked, answers, np.tile(np.eye(3)[cls], (3, 1)))
    found = [tracker.error(name)[0, 0] for name in ("good", "plain", "coin")]
    assert found == pytest.approx(error, abs=0.06)


def test_tracker_of_questions_with_several_answers():
    """An error is any wrong answer; a cell may have two right ones, or be open."""
    names = ["x", "y", "z"]
    cells = [["x", "y|z", "z"], ["y", "-", "x"]]
    problem = Problem(["a", "b", "c"], None, ["q", "r"], cells, 0.2, answers=[names] * 2)
    rng = np.random.default_rng(6)
    tracker, error = WorkerTracker(problem), np.array([0.05, 0.2, 0.5])
    for _ in range(400):
        cls, asked = int(rng.integers(3)), rng.integers(2, size=3)
        right = problem.right[:, asked, cls].T ^ (rng.random(3) < error)[:, None]
        said = [int(rng.choice(np.flatnonzero(row) if row.any() else 3)) for row in right]
        tracker.update(["good", "plain", "poor"], asked, said, np.tile(np.eye(3)[cls], (3, 1)))
    found = [tracker.error(name)[0, 0] for name in ("good", "plain", "poor")]
    assert found == pytest.approx(error, abs=0.06)
    assert tracker.error("good")[1, 1] == 0.5


def test_tracker_learns_less_from_an_item_that_is_unsure():
    problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    sure, unsure = WorkerTracker(problem), WorkerTracker(problem)
    for _ in range(30):
        sure.update(["w"], [0], [1], np.array([[0.0, 1.0]]))
        unsure.update(["w"], [0], [1], np.array([[0.5, 0.5]]))
    assert unsure.entry("w").precision < sure.entry("w").precision
    assert sure.entry("w").skill > 0


# ---------------------------------------------------------------- flags


def test_spammers_are_found_and_nobody_else():
    rng = np.random.default_rng(7)
    crowd = one_question(rng, 300, 20, 8, error=(0.12, 0.15))
    frame = pl.DataFrame(crowd.answers).with_columns(pl.col("worker").cast(pl.String))
    tasks = np.arange(300)
    # two who never err agree as well: a copy shows in shared mistakes
    source = str(int(np.argmin(crowd.skill)))
    copied = frame.filter(pl.col("worker") == source).with_columns(worker=pl.lit("twin"))
    extra = [
        pl.DataFrame({"task": tasks, "worker": "constant", "label": 1}),
        pl.DataFrame({"task": tasks, "worker": "random", "label": rng.integers(0, 2, 300)}),
        copied,
    ]
    learned = learn(pl.concat([frame, *extra], how="vertical_relaxed"))
    found = {(flag.kind, flag.subject) for flag in learned.flags}
    assert ("constant", "constant") in found
    assert ("random", "random") in found
    assert ("twins", f"{source} and twin") in found
    assert {kind for kind, who in found if kind in ("constant", "random", "twins")
            and who not in ("constant", "random", f"{source} and twin")} == set()  # fmt: skip


def test_blunt_questions_and_confused_classes_and_thin_cells():
    rng = np.random.default_rng(8)
    crowd = many_questions(rng, 240, 6, 4, 12, 8)
    frame = pl.DataFrame(crowd.answers)
    blunt = pl.DataFrame(
        {"task": np.arange(240), "question": "blunt", "worker": 1, "label": rng.integers(0, 2, 240)}
    )
    learned = learn(pl.concat([frame, blunt], how="vertical_relaxed"), crowd.gold)
    kinds = {}
    for flag in learned.flags:
        kinds.setdefault(flag.kind, []).append(flag)
    assert "blunt" in [flag.subject for flag in kinds["blunt"]]
    small = learn(frame.filter(pl.col("task") < 40), problem=crowd.problem)
    thin = [flag for flag in small.flags if flag.kind == "thin"]
    assert thin
    assert all(flag.more >= 1 for flag in thin)
    low, high = small.intervals.worker_error
    worst = max(thin, key=lambda flag: flag.value)
    assert worst.value == pytest.approx(float(np.max((high - low) / 2)))


def test_classes_that_no_question_tells_apart_are_called_confused():
    problem = Problem(["a", "b", "c"], None, ["q"], [[0, 1, 1]], 0.1)
    rng = np.random.default_rng(9)
    truth = rng.integers(0, 3, 60)
    task = np.repeat(np.arange(60), 5)
    label = problem.outcome[0][truth[task]] ^ (rng.random(300) < 0.1)
    answers = {"task": task, "question": ["q"] * 300, "worker": np.tile(np.arange(5), 60),
               "label": label}  # fmt: skip
    learned = learn(answers, problem=problem)
    assert [f.subject for f in learned.flags if f.kind == "confused"] == ["b and c"]


def test_answers_that_contradict_the_table_are_told():
    problem = Problem(["a", "b"], None, ["q", "r"], [[0, 1], [0, 1]], 0.1)
    task = np.repeat(np.arange(60), 2)
    truth = task % 2
    question = np.tile([0, 1], 60)
    label = np.where(question == 0, truth, 1 - truth)  # the second row of the table is wrong
    answers = {"task": task, "question": np.array(["q", "r"])[question], "worker": ["w"] * 120,
               "label": label}  # fmt: skip
    gold = {str(t): "ab"[t % 2] for t in range(60)}
    found = {f.subject for f in learn(answers, gold, problem=problem).flags if f.kind == "reversed"}
    assert found == {"r / a", "r / b"}


# ---------------------------------------------------------------- pilot and doubt


@pytest.mark.parametrize(("vote", "votes"), [("majority", 1), ("majority", 5), ("margin", 3)])
def test_sensitivity_is_the_slope_of_the_exact_error(vote, votes):
    rng = np.random.default_rng(10)
    outcome = np.array([[0, 0, 1, 1, 1], [0, 1, 0, 1, 1], [1, 1, 0, 0, 1], [0, 1, 1, 0, 1]])
    problem = Problem(list("abcde"), [0.1, 0.3, 0.2, 0.25, 0.15], list("wxyz"), outcome,
                      rng.uniform(0.05, 0.3, (4, 5)))  # fmt: skip
    tree = ct.design(problem)
    plan = ct.Plan(tree, np.full(tree.n_nodes, votes), vote=vote)
    slope = sensitivity(plan)
    for q, c in np.ndindex(4, 5):
        up, down = (_moved(plan, q, c, step) for step in (1e-6, -1e-6))
        assert slope[q, c] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def _moved(plan, q, c, step):
    error = plan.tree.problem.worker_error.copy()
    error[q, c] += step
    tree = Tree(
        plan.tree.problem.replace(worker_error=error), plan.tree.question, plan.tree.children
    )
    return ct.evaluate(ct.Plan(tree, plan.votes, vote=plan.vote)).misclassification


def test_sensitivity_with_dashes_that_follow_both_branches():
    problem = Problem(list("abc"), None, list("xyz"), [[0, 1, "-"], [0, 1, 1], [0, 0, 1]], 0.1,
                      dash="either")  # fmt: skip
    plan = ct.Plan(ct.design(problem), np.ones(ct.design(problem).n_nodes, int))
    slope = sensitivity(plan)
    for q, c in np.ndindex(3, 3):
        if problem.outcome[q, c] != -1:
            rate = (_moved(plan, q, c, 1e-6) - _moved(plan, q, c, -1e-6)) / 2e-6
            assert slope[q, c] == pytest.approx(rate, abs=1e-6)


def test_pilot_of_the_planned_size_reaches_the_planned_width():
    problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.2)
    pilot = plan_pilot(problem, half_width=0.06, answers_per_item=5)
    crowd = one_question(np.random.default_rng(11), pilot.gold_items, 400, 5, error=(0.2, 0.2))
    learned = learn(crowd.answers, crowd.gold)
    low, high = learned.intervals.worker_error
    assert np.mean(high - low) / 2 == pytest.approx(0.06, rel=0.35)
    tree = ct.design(ct.example("table1"))
    of_tree = plan_pilot(tree)
    assert of_tree.sensitivity is not None
    assert (of_tree.answers_per_cell > 0).sum() <= tree.problem.outcome.size
    assert plan_pilot(tree.problem).answers >= of_tree.answers


@pytest.mark.parametrize("bad", [{"half_width": 0}, {"half_width": 0.7}, {"answers_per_item": 0}])
def test_pilot_refuses_nonsense(bad):
    with pytest.raises(CrowdtreeError, match=next(iter(bad))):
        plan_pilot(ct.example("table1"), **bad)


def test_upper_problem_and_credible_interval():
    crowd = many_questions(np.random.default_rng(12), 200, 10, 4, 12, 10)
    learned = learn(crowd.answers, crowd.gold, problem=crowd.problem)
    upper = upper_problem(learned)
    assert (upper.worker_error >= learned.problem.worker_error).all()
    assert (upper.worker_error > learned.problem.worker_error + 0.01).any()
    plan = ct.staff(ct.design(learned.problem), workers=10)
    first = credible_interval(plan, learned, draws=400)
    value = ct.evaluate(plan).misclassification
    assert first.low < value < first.high
    assert first == credible_interval(plan, learned, draws=400)
    half = credible_interval(plan, learned, draws=400, level=0.5)
    assert first.low < half.low < half.high < first.high
    # one draw evaluated by the oracle agrees with the vectorised walk
    from crowdtree.learning.pilot import _correct

    error = np.clip(learned.problem.worker_error * 1.1, 0, 0.49)
    tree = Tree(learned.problem.replace(worker_error=error), plan.tree.question, plan.tree.children)
    exact = ct.evaluate(ct.Plan(tree, plan.votes)).misclassification
    assert 1 - _correct(plan, error[None])[0] == pytest.approx(exact)


# ---------------------------------------------------------------- formats of other tools

ROWS = {
    "task": ["t1", "t1", "t1", "t2", "t2"],
    "question": ["wings", "legs", "wings", "wings", "legs"],
    "worker": ["ann", "ann", "ben", "ann", "ben"],
    "label": ["yes", "no", "no", "yes", "yes"],
}


def as_set(frame):
    names = sorted(frame if isinstance(frame, Columns) else frame.columns)
    return set(zip(*(frame[name] for name in names), strict=True))


@pytest.mark.parametrize("kind", answer_writers.WRITERS)
@pytest.mark.parametrize("questions", [1, 2])
def test_what_is_written_is_read_back(kind, questions, tmp_path):
    frame = pl.DataFrame(ROWS)
    if questions == 1:
        frame = frame.filter(pl.col("question") == "wings").drop("question")
    path = tmp_path / "answers.file"
    answer_writers.WRITERS[kind](frame, path)
    assert as_set(interchange.READERS[kind](path)) == as_set(frame)
    assert [p.name for p in tmp_path.iterdir()] == ["answers.file"]


def test_wide_tables_of_three_shapes(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("question,worker,cat,cow\nbig,ann,0,1\nbig,ben,,1\n")
    assert as_set(interchange.read_wide(path)) == {
        ("0", "big", "cat", "ann"), ("1", "big", "cow", "ann"), ("1", "big", "cow", "ben"),
    }  # fmt: skip
    path.write_text("task,ann,ben\n1,x,y\n2,,x\n")
    assert interchange.read_wide(path).n_rows == 3
    path.write_text("a,b\n1,2\n")
    with pytest.raises(CrowdtreeError, match="a wide table starts with"):
        interchange.read_wide(path)


def test_label_studio_skips_cancelled_and_other_controls(tmp_path):
    path = tmp_path / "export.json"
    choice = {"type": "choices", "from_name": "kind", "value": {"choices": ["cat"]}}
    box = {"type": "rectanglelabels", "from_name": "box", "value": {}}
    notes = [
        {"completed_by": {"id": 7, "email": "a@b.c"}, "result": [box, choice]},
        {"completed_by": 8, "was_cancelled": True, "result": [choice]},
    ]
    path.write_text(json.dumps([{"id": 5, "annotations": notes}]))
    assert interchange.read_label_studio(path).rows() == [("5", "kind", "a@b.c", "cat")]
    path.write_text("{}")
    with pytest.raises(CrowdtreeError, match="contains no choices of a single label"):
        interchange.read_label_studio(path)
    path.write_text("[")
    with pytest.raises(CrowdtreeError, match="is not JSON"):
        interchange.read_label_studio(path)


def test_zooniverse_names_who_was_not_logged_in(tmp_path):
    path = tmp_path / "export.csv"
    note = json.dumps([{"task": "T0", "task_label": "Any?", "value": "Yes"},
                       {"task": "T1", "value": [{"x": 1}]}]).replace('"', '""')  # fmt: skip
    path.write_text(
        f'classification_id,user_name,annotations,subject_ids\n1,not-logged-in-ab,"{note}",99\n'
    )
    assert interchange.read_zooniverse(path).rows() == [("99", "Any?", "not-logged-in-ab", "Yes")]
    path.write_text("a,b\n1,2\n")
    with pytest.raises(CrowdtreeError, match="Zooniverse classification export"):
        interchange.read_zooniverse(path)


def test_names_of_questions_are_on_one_line_as_in_a_problem():
    problem = ct.Problem(["a", "b"], None, ["is it\nred", "big"], [[0, 1], [1, 0]], 0.2)
    answers = {
        "task": [1, 1, 2, 2],
        "question": ["is it\nred", "big"] * 2,
        "worker": ["x", "y", "y", "x"],
        "label": [0, 1, 1, 0],
    }
    assert learn(answers, problem=problem).problem.questions == ("is it red", "big")
    gold = {"1": "a", "2": "b"}
    assert set(learn(answers, gold).problem.questions) == {"is it red", "big"}


@pytest.mark.parametrize("known", [True, False])
def test_a_hundred_right_answers_do_not_prove_perfection(known):
    task = np.repeat(np.arange(20), 5)
    answers = {"task": task, "worker": np.tile(range(5), 20), "label": task % 2}
    gold = {str(t): str(t % 2) for t in range(20)} if known else None
    learned = learn(answers, gold)
    low, high = learned.intervals.worker_error
    assert np.all(low < learned.problem.worker_error)
    assert np.all(learned.problem.worker_error < high)
    assert np.all(high > 0.01)  # of 100 answers one in a hundred may well be wrong
    # without known items all may have erred together
    assert np.all(learned.problem.worker_error < (0.02 if known else 0.1))


def test_a_few_known_items_do_not_change_how_answers_are_read():
    """Look-alikes split a class; with one item of known class the rest is labelled as before."""
    rng = np.random.default_rng(4)
    kinds = rng.integers(0, 3, 240)  # class 0, class 1, and those of class 1 that look like 0
    yes = np.array([0.1, 0.95, 0.3])
    workers = np.argsort(rng.random((240, 30)), axis=1)[:, :12]
    label = (rng.random(workers.shape) < yes[kinds][:, None]).astype(int)
    answers = {
        "task": np.repeat(np.arange(240), 12),
        "worker": workers.ravel(),
        "label": label.ravel(),
    }
    truth = str(int(kinds[0] > 0))
    alone, helped = learn(answers), learn(answers, {"0": truth}, classes=["0", "1"])
    same = [alone.labels[t] == helped.labels[t] for t in alone.labels if t != "0"]
    assert np.mean(same) > 0.98
    assert helped.labels["0"] == truth


def test_one_yes_no_question_reads_yes_as_yes_whatever_else_is_asked():
    answers = {
        "task": [t for t in range(8) for _ in range(3)],
        "worker": ["a", "b", "c"] * 8,
        "label": ["yes" if t % 2 else "no" for t in range(8) for _ in range(3)],
    }
    gold = {str(t): "dog" if t % 2 else "cat" for t in range(8)}
    learned = learn(answers, gold)
    _, posterior = learned.classify({"task": [9] * 3, "worker": list("abc"), "label": ["yes"] * 3})
    assert learned.classes[int(posterior[0].argmax())] == "dog"
    with pytest.warns(CrowdtreeWarning, match="calibrate: 8 items of known class; below 20"):
        calibrated = learned.calibrate({"1": "dog"})  # its gold was learned from
    assert calibrated.workers["a"] == learned.workers["a"]


def yes_no_crowd(seed=3, items=40, workers=6):
    """Three questions about two classes, every worker answers everything; 20 items of gold."""
    rng = np.random.default_rng(seed)
    task, q, worker = np.indices((items, 3, workers)).reshape(3, -1)
    said = (task % 2) ^ (rng.random(task.size) < 0.15)
    answers = {"task": task, "question": np.array(list("pqr"))[q], "worker": worker, "label": said}
    return answers, {str(t): "ab"[t % 2] for t in range(20)}


def test_updates_count_in_answers_agreement_and_accuracy_of_a_table():
    answers, gold = yes_no_crowd()
    frame = pl.DataFrame(answers)
    learned = learn(frame.filter(pl.col("task") < 30), gold)
    before = learned.accuracy
    later = frame.filter(pl.col("task") >= 30).with_columns(label=1 - pl.col("label"))
    rounds = later.filter(pl.col("worker") == 0)
    learned.update(frame.filter((pl.col("task") >= 30) & (pl.col("worker") > 0)))
    learned.update(rounds)  # the opposite of what the others say
    whole = learn(pl.concat([frame.filter((pl.col("task") < 30) | (pl.col("worker") > 0)),
                             rounds]), gold)  # fmt: skip
    for name in "05":
        assert learned.workers[name].answers == whole.workers[name].answers == 120
        assert learned.workers[name].agreement == pytest.approx(
            whole.workers[name].agreement, abs=0.02
        )
    assert learned.accuracy.value == pytest.approx(whole.accuracy.value, abs=0.02)
    assert learned.accuracy != before


@pytest.mark.parametrize("questions", [True, False])
def test_an_answer_that_is_given_again_replaces_the_earlier_one(questions):
    answers, gold = yes_no_crowd()
    frame = pl.DataFrame(answers)
    if not questions:
        frame = frame.filter(pl.col("question") == "p").drop("question")
        gold = None
    learned, twice = learn(frame, gold), learn(frame, gold)
    again = frame.filter(pl.col("task") == 35)
    with pytest.warns(CrowdtreeWarning, match=f"answers: {len(again)} answers given twice"):
        twice.update(again)
    assert twice.item(35) == pytest.approx(learned.item(35), abs=0.02)
    assert {n: w.answers for n, w in twice.workers.items()} == {
        n: w.answers for n, w in learned.workers.items()
    }
    other = again.with_columns(label=1 - pl.col("label"))
    with pytest.warns(CrowdtreeWarning, match="given twice"):
        twice.update(other)
    assert np.argmax(twice.item(35)) != np.argmax(learned.item(35))


def test_all_repeats_count_where_all_were_learned():
    answers, gold = yes_no_crowd()
    learned = learn(answers, gold, duplicates="all")
    learned.update({"task": [35], "question": ["p"], "worker": [0], "label": [1]})
    assert learned.workers["0"].answers == 121


def test_repeats_of_one_question_count_as_the_most_frequent_of_them():
    crowd = one_question(np.random.default_rng(2), 60, 8, 4)
    task, worker = 7, int(crowd.answers["worker"][crowd.answers["task"] == 7][0])
    said = int(crowd.answers["label"][crowd.answers["task"] == 7][0])
    learned = learn(crowd.answers, duplicates="all")
    before, counted = learned.item(task).copy(), learned.workers[str(worker)].answers
    again = {"task": [task] * 3, "worker": [worker] * 3, "label": [said, 1 - said, said]}
    learned.update(again)
    assert learned.item(task) == pytest.approx(before, abs=1e-6)
    assert learned.workers[str(worker)].answers == counted
    both = learned.classify({key: np.tile(v, 2) for key, v in crowd.answers.items()})[1]
    assert both == pytest.approx(learned.classify(crowd.answers)[1])


def test_one_more_answer_keeps_what_skills_rest_on():
    crowd = one_question(np.random.default_rng(3), 300, 12, 5)
    learned, before = learn(crowd.answers), learn(crowd.answers)
    learned.update({"task": [0], "worker": ["new"], "label": [1]})
    assert learned.fit.skill[:-1] == pytest.approx(before.fit.skill, abs=0.04)
    assert learned.fit.skill_sd[:-1] == pytest.approx(before.fit.skill_sd, rel=0.05)


def test_the_error_of_a_single_worker_has_an_interval():
    answers, gold = yes_no_crowd(workers=1)
    only = learn(answers, gold).workers["0"]
    assert only.error_low + 0.05 < only.error < only.error_high - 0.05
    assert only.skill == 0


def test_accuracy_of_a_table_knows_its_gold():
    learned = learn(*yes_no_crowd())
    assert learned.accuracy.known == 20
    calibrated = learned.calibrate({str(t): "ab"[t % 2] for t in range(40)})
    assert calibrated.accuracy.known == 40


def test_a_question_about_one_class_only_is_not_called_blunt():
    answers, _ = yes_no_crowd()
    frame = pl.DataFrame(answers).filter((pl.col("question") != "r") | (pl.col("task") % 2 == 0))
    learned = learn(frame, {str(t): "ab"[t % 2] for t in range(40)})
    kinds = {(flag.kind, flag.subject): flag.message for flag in learned.flags}
    assert ("blunt", "r") not in kinds
    assert kinds["unasked", "r"].startswith("answered about a only")


@pytest.mark.parametrize("seed", range(3))
def test_a_few_items_that_mislead_everybody_are_told(seed):
    rng = np.random.default_rng([5, seed])
    items, each = 400, 10
    truth, task = rng.integers(0, 2, items), np.repeat(np.arange(items), each)
    worker = np.argsort(rng.random((items, 30)), axis=1)[:, :each].ravel()
    error = np.where(rng.random(items) < 0.06, 0.9, 0.08)
    for wrong, told in ((error, True), (np.full(items, 0.12), False)):
        said = truth[task] ^ (rng.random(task.size) < wrong[task])
        answers = {"task": task, "worker": worker, "label": said}
        gold = {str(i): str(c) for i, c in enumerate(truth[:200])}
        flags = [flag.kind for flag in learn(answers, gold).flags]
        assert ("together" in flags) == told


def test_calibrating_by_few_items_warns():
    crowd = one_question(np.random.default_rng(8), 60, 10, 5)
    few = dict(list(crowd.gold.items())[:5])
    with pytest.warns(CrowdtreeWarning, match="calibrate: 5 items of known class; below 20"):
        learn(crowd.answers).calibrate(few)


def test_a_crowd_of_one_worker_can_be_updated():
    answers = {
        "task": [t for t in range(20) for _ in range(2)],
        "question": ["flies", "swims"] * 20,
        "worker": ["only"] * 40,
        "label": [int(t % 2 == q) for t in range(20) for q in range(2)],
    }
    learned = learn(answers, {str(t): "ab"[t % 2] for t in range(20)})
    assert learned.worker_error("only")[0, 0] < 0.5
    learned.update({"task": [50], "question": ["flies"], "worker": ["new"], "label": [1]})
    assert np.isfinite(learned.workers["new"].skill)
