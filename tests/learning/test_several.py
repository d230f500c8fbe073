"""Learning from questions with several answers."""

from __future__ import annotations

import warnings
from itertools import compress

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.cli import main
from crowdtree.learning.answers import read_answers
from crowdtree.learning.classes import fit_classes
from crowdtree.learning.pilot import plan_pilot, sensitivity
from tests.answer_writers import write_label_studio, write_zooniverse

CAP = ["red", "orange", "brown", "white"]
GILLS = ["free", "notched", "fused"]
SMELL = ["mild", "sharp", "sweet", "foul", "fruity"]
CLASSES = [f"mushroom {i}" for i in range(10)]
QUESTIONS = ["cap", "gills", "smell", "ring", "spots"]


def key(error=0.2):
    """Ten mushrooms; two questions are plain yes/no, and two cells have two right answers."""
    cells = [
        [CAP[i % 4] for i in range(10)],
        [GILLS[(i // 2) % 3] for i in range(10)],
        ["sharp|foul" if i in (3, 8) else SMELL[(3 * i) % 5] for i in range(10)],
        ["yes" if i % 3 else "no" for i in range(10)],
        ["yes" if i > 4 else "no" for i in range(10)],
    ]
    answers = {"cap": CAP, "gills": GILLS, "smell": SMELL}
    return ct.Problem(CLASSES, None, QUESTIONS, cells, error, answers=answers)


def neighbours(problem, rng, items=200, per_item=4, workers=30):
    """Answers by people and items unlike the model's, classes, and how much people err.

    A wrong answer is the next one of the list, or the one before. People are good or bad (a mixture
    of two), and on one item in five everybody errs twice as often.
    """
    skill = np.where(rng.random(workers) < 0.35, 1.6, 0.55)
    hard = np.where(rng.random(items) < 0.8, 0.8, 1.8)
    truth = rng.integers(problem.n_classes, size=items)
    rows = []
    for item, cls in enumerate(truth.tolist()):
        for person in rng.choice(workers, per_item, replace=False).tolist():
            for q, names in enumerate(problem.answers):
                error = min(0.2 * skill[person] * hard[item], 0.6)
                right = np.flatnonzero(problem.right[:, q, cls])
                said = int(rng.choice(right))
                if rng.random() < error:
                    said = (said + int(rng.choice([-1, 1, 1]))) % len(names)
                rows.append((f"i{item}", problem.questions[q], f"p{person}", names[said]))
    columns = dict(
        zip(["task", "question", "worker", "label"], zip(*rows, strict=True), strict=True)
    )
    return columns, truth, skill


def table_of(problem, skill):
    """What this crowd says of each class on average."""
    error = np.mean([0.8 * min(0.16 * s, 0.6) + 0.2 * min(0.36 * s, 0.6) for s in skill])
    table = np.zeros(problem.channel.shape[1:])
    for q, names in enumerate(problem.answers):
        right = problem.right[: len(names), q] / problem.right[:, q].sum(axis=0)
        wrong = np.roll(right, 1, axis=0) * 2 / 3 + np.roll(right, -1, axis=0) / 3
        table[: len(names), q] = (1 - error) * right + error * wrong
    return table


def right_share(learned, truth, some=slice(None)):
    place = learned.task_index
    best = learned.posterior.argmax(axis=1)
    return np.mean([best[place[f"i{i}"]] == truth[i] for i in np.arange(len(truth))[some]])


def naive_bayes(columns, problem, truth):
    """Labels by the given table."""
    logs = np.log(np.maximum(problem.channel[0], 1e-9))
    score = np.zeros((len(truth), problem.n_classes))
    for task, name, _, label in zip(*columns.values(), strict=True):
        q = problem.question_index(name)
        score[int(task[1:])] += logs[problem.answers[q].index(label), q]
    return score.argmax(axis=1)


def dawid_skene(columns, problem, truth):
    """Labels by the right answers of each question, estimated one question at a time."""
    score = np.zeros((len(truth), problem.n_classes))
    rows = list(zip(*columns.values(), strict=True))
    for q, name in enumerate(problem.questions):
        mine = zip(*((t, w, said) for t, asked, w, said in rows if asked == name), strict=True)
        names = list(problem.answers[q])
        answers = dict(zip(["task", "worker", "label"], mine, strict=True))
        alone = ct.learn(answers, method="dawid-skene", classes=names)
        post = alone.posterior[[alone.task_index[f"i{i}"] for i in range(len(truth))]]
        right = problem.right[: len(names), q]
        score += np.log(post @ np.maximum(right / right.sum(axis=0), 1e-3))
    return score.argmax(axis=1)


def test_tables_and_labels_of_people_unlike_the_model():
    """Errors go to neighbours, people are of two kinds, items differ in difficulty."""
    problem, shares, inside, never, errors = key(), [], [], [], []
    exists = np.broadcast_to(
        np.arange(5)[:, None, None] < problem.n_answers[:, None], problem.channel.shape[1:]
    )
    for seed in range(3):
        rng = np.random.default_rng(seed)
        columns, truth, skill = neighbours(problem, rng, per_item=3)
        table = table_of(problem, skill)
        met = exists & (table > 0)
        for gold in (None, {f"i{i}": problem.classes[truth[i]] for i in range(60)}):
            learned = ct.learn(columns, gold, problem=problem)
            assert learned.converged
            assert np.diff(learned.trace).min(initial=0.0) >= 0
            low, high = learned.intervals.table
            held = (table >= low) & (table <= high)
            inside.append(held[met].mean())
            never.append(held[exists & (table == 0)].mean())
            errors.append(np.abs(learned.problem.table - table)[met].mean())
            found = [learned.workers[f"p{i}"].skill for i in range(len(skill))]
            assert np.corrcoef(found, -skill)[0, 1] > 0.8
        unknown = slice(60, None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            others = [method(columns, problem, truth) for method in (naive_bayes, dawid_skene)]
        peers = [float((label == truth)[unknown].mean()) for label in others]
        shares.append([right_share(learned, truth, unknown), *peers])
        np.testing.assert_allclose(learned.problem.table.sum(axis=0), 1)
        assert np.abs(problem.channel[0] - table)[met].mean() > errors[-1]
    assert np.mean(inside) > 0.93
    assert np.mean(never) > 0.97  # answers that nobody gives
    mine, bayes, dawid = np.mean(shares, axis=0)
    assert mine > bayes + 0.01
    assert mine > dawid + 0.05


def test_a_table_without_a_problem():
    """Gold of some items names the classes; the right answers are found."""
    problem = key()
    rng = np.random.default_rng(1)
    columns, truth, _ = neighbours(problem, rng)
    gold = {f"i{i}": problem.classes[truth[i]] for i in range(80)}
    learned = ct.learn(columns, gold)
    assert right_share(learned, truth, slice(80, None)) > 0.97
    made = learned.problem
    assert set(made.answers[made.question_index("cap")]) == set(CAP)
    assert made.answers[made.question_index("ring")] == ("no", "yes")
    for q, name in enumerate(problem.questions):
        there = made.question_index(name)
        for c in np.flatnonzero(made.outcome[there] >= 0).tolist():
            said = made.answers[there][made.outcome[there, c]]
            assert problem.right[problem.answers[q].index(said), q, c]
    definite = made.outcome >= 0
    assert definite.mean() > 0.8
    assert learned.accuracy.low < right_share(learned, truth, slice(80, None))


def test_two_named_answers_are_yes_and_no():
    """The same answers under other names give the same result, to the bit."""
    plain = ct.Problem(
        ["a", "b", "c"], None, ["p", "q"], [[1, 0, 1], [0, 1, 1]], 0.2, dash="either"
    )
    named = plain.replace(answers=[["absent", "present"], ["dull", "shiny"]])
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=60)
    rows = [
        (f"i{i}", q, f"w{w}", int(plain.outcome[q, cls] ^ (rng.random() < 0.1 + 0.05 * w)))
        for i, cls in enumerate(truth.tolist())
        for w in range(4)
        for q in range(2)
    ]
    task, asked, worker, said = zip(*rows, strict=True)
    names = [named.answers[q][value].upper() for q, value in zip(asked, said, strict=True)]
    base = {"task": task, "question": [plain.questions[q] for q in asked], "worker": worker}
    gold = {f"i{i}": plain.classes[truth[i]] for i in range(20)}
    for known in (None, gold):
        one = ct.learn({**base, "label": said}, known, problem=plain)
        two = ct.learn({**base, "label": names}, known, problem=named)
        np.testing.assert_array_equal(one.posterior, two.posterior)
        np.testing.assert_array_equal(one.problem.worker_error, two.problem.worker_error)
        assert one.workers == two.workers
        assert two.problem.answers == named.answers
    assert two.to_columns()["label"][0].upper() == names[0]
    # the fit of any number of answers has the one of yes and no as its special case
    read = read_answers({**base, "label": said}, questions=plain.questions)
    codes = np.where(np.arange(60) < 20, truth, -1).astype(np.int32)
    codes = codes[[int(name[1:]) for name in read.tasks]]
    closed = fit_classes(read, codes, plain.right, plain.prior)
    general = fit_classes(read, codes, plain.right, plain.prior, channel=plain.channel[0])
    np.testing.assert_allclose(general.posterior, closed.posterior, atol=1e-7)
    np.testing.assert_allclose(general.error, closed.error, atol=1e-7)
    np.testing.assert_allclose(general.skill, closed.skill, atol=1e-6)
    np.testing.assert_allclose(general.wrong, closed.wrong, rtol=1e-5)


def test_names_of_two_answers_do_not_matter_without_a_problem():
    """Tables that are learned from gold alone are the same for no and yes as for other words."""
    rng = np.random.default_rng(5)
    table = rng.integers(0, 2, (4, 3))
    rows = [
        (f"i{i}", f"q{q}", f"w{w}", int(table[q, i % 3] ^ (rng.random() < 0.2)))
        for i in range(45)
        for q in range(4)
        for w in range(3)
    ]
    task, asked, worker, said = zip(*rows, strict=True)
    base = {"task": task, "question": asked, "worker": worker}
    gold = {f"i{i}": "abc"[i % 3] for i in range(30)}
    one = ct.learn({**base, "label": said}, gold)
    two = ct.learn({**base, "label": [("dull", "shiny")[value] for value in said]}, gold)
    np.testing.assert_array_equal(one.posterior, two.posterior)
    np.testing.assert_array_equal(one.problem.worker_error, two.problem.worker_error)
    assert one.problem.outcome.tolist() == two.problem.outcome.tolist()
    assert one.workers == two.workers
    assert set(two.problem.answers) == {("dull", "shiny")}


def test_answers_to_open_cells_neither_agree_nor_disagree():
    """Whoever gives every right answer agrees with the labels, however many cells are open."""
    problem = ct.Problem(
        ["a", "b", "c"], None, ["p", "q", "r"], [[1, 0, "-"], [0, 1, 1], ["-", 0, 1]], 0.1,
        dash="either",
    )  # fmt: skip
    rng = np.random.default_rng(7)
    truth = rng.integers(3, size=60)
    right = problem.outcome
    rows = [
        (f"i{i}", name, worker, int(right[q, c] if right[q, c] >= 0 else rng.integers(2)))
        for i, c in enumerate(truth.tolist())
        for q, name in enumerate(problem.questions)
        for worker in ("ann", "ben")
    ]
    task, asked, who, said = zip(*rows, strict=True)
    columns = {"task": task, "question": asked, "worker": who, "label": said}
    gold = {f"i{i}": problem.classes[c] for i, c in enumerate(truth)}
    learned = ct.learn(columns, gold, problem=problem)
    assert [w.agreement for w in learned.workers.values()] == [1.0, 1.0]


@pytest.mark.parametrize("votes", [1, 3])
@pytest.mark.parametrize("given", ["errors", "table", "correlated"])
def test_sensitivity_is_the_slope_of_the_exact_error(votes, given):
    """One cell at a time: its right answers lose what its wrong ones gain, in their proportions."""
    problem = key(np.random.default_rng(3).uniform(0.1, 0.3, (5, 10)))
    if given == "table":
        noise = np.random.default_rng(4).uniform(0.5, 2, problem.channel[0].shape)
        table = problem.channel[0] * noise
        problem = problem.replace(table=table / table.sum(axis=0))
    elif given == "correlated":
        problem = problem.replace(dependence=0.2)
    tree = ct.design(problem)
    plan = ct.Plan(tree, np.full(tree.n_nodes, votes))
    slope = sensitivity(plan)
    assert slope.max() > 0.01
    channel, right = problem.channel[0], problem.right
    for q, c in ((0, 1), (1, 4), (2, 3), (2, 5), (3, 0), (4, 9)):
        error = []
        for step in (1e-5, -1e-5):
            table = channel.copy()
            mine, there = right[:, q, c], table[:, q, c]
            wrong = there[~mine].sum()
            there[mine] *= (1 - wrong - step) / (1 - wrong)
            there[~mine] *= (wrong + step) / wrong
            moved = ct.Tree(problem.replace(table=table), tree.question, tree.children)
            error.append(ct.evaluate(ct.Plan(moved, plan.votes)).misclassification)
        assert slope[q, c] == pytest.approx((error[0] - error[1]) / 2e-5, abs=1e-6)


def test_kinds_of_items_are_found_in_questions_with_several_answers():
    """Each class holds two kinds, whose answers of three differ; shares and tables are known."""
    rng = np.random.default_rng(11)
    usual = rng.integers(0, 3, (2, 2, 8))  # class, kind, question
    usual[:, 1] = (usual[:, 0] + rng.integers(1, 3, (2, 8))) % 3
    truth, kind = rng.integers(0, 2, (2, 1500))
    other = (usual[truth, kind] + rng.integers(1, 3, (1500, 8))) % 3
    values = np.where(rng.random((1500, 8)) < 0.85, usual[truth, kind], other)
    some = slice(0, 700)
    item, asked = np.indices(values[some].shape).reshape(2, -1)
    words = np.array(["low", "mid", "top"])[values[some].ravel()]
    columns = {
        "task": item, "question": np.array([f"q{q}" for q in range(8)])[asked],
        "worker": ["crowd"] * len(item), "label": words,
    }  # fmt: skip
    learned = ct.learn(columns, {str(i): "ab"[c] for i, c in enumerate(truth[some])})
    found = learned.subtypes(most=2)
    assert found.counts.tolist() == [2, 2]
    assert found.share == pytest.approx(np.full(4, 0.25), abs=0.05)
    for cls, name in enumerate("ab"):
        expected = np.where(np.arange(3)[:, None, None] == usual[cls].T, 0.85, 0.075)
        mine = found.table[:, :, found.label == learned.classes.index(name)]
        gap = min(np.abs(mine[:, :, order] - expected).max() for order in ([0, 1], [1, 0]))
        assert gap < 0.1
    rest = slice(700, 1500)
    options = {"target_error": 0.0, "max_answers": 4, "repeats": 1}
    plain = ct.AdaptivePolicy(learned.problem, strict=False, **options)
    right = []
    for policy in (plain, found.policy(**options)):
        states = policy.replay(values[rest].astype(np.int8)[:, :, None]).last()
        best = states.log_posterior.argmax(axis=1)
        right.append(np.mean(best == truth[rest][states.item]))
    assert right[1] > right[0] + 0.03
    fine = found.as_problem()
    assert fine.n_classes == 4
    assert fine.table == pytest.approx(found.table, abs=1e-6)
    assert ct.design(fine, allow_groups=True).n_leaves >= 2


@pytest.fixture(scope="module")
def campaign():
    problem = key()
    columns, truth, _ = neighbours(problem, np.random.default_rng(2), items=120)
    rng = np.random.default_rng(0)
    label = [
        "can't tell" if asked == "smell" and rng.random() < 0.25 else said
        for asked, said in zip(columns["question"], columns["label"], strict=True)
    ]
    gold = {f"i{i}": problem.classes[truth[i]] for i in range(60)}
    return problem, {**columns, "label": label}, gold


def test_what_follows_from_a_learned_table(campaign, tmp_path):
    problem, columns, gold = campaign
    learned = ct.learn(columns, gold, problem=problem)
    smell = problem.question_index("smell")
    skipped = np.mean([s == "can't tell" for s in columns["label"]][smell::5])
    np.testing.assert_allclose(learned.problem.unsure[smell], skipped)
    assert not np.delete(learned.problem.unsure, smell, axis=0).any()
    for name in ("table.yaml", "table.json"):
        learned.problem.save(tmp_path / name)
        assert ct.load_problem(tmp_path / name) == learned.problem
    policy = learned.policy(target_error=0.1, max_answers=30)
    assert policy.calibration.items == 60
    assert 0 < policy.model.shared_difficulty < 0.15  # people err nearly independently
    known = [task in gold for task in columns["task"]]
    some = {name: [*compress(column, known)] for name, column in columns.items()}
    assert policy.calibrate(some, gold).calibration.items == 60
    run = ct.simulate(learned.problem, policy, items=300, rng=1)
    assert run.misclassification < 0.12
    plan = ct.design(learned.problem)
    error = ct.evaluate(plan).misclassification
    belief = learned.credible_interval(plan)
    assert belief.low < error < belief.high
    assert ct.evaluate(ct.design(learned.upper_problem())).misclassification > error
    assert plan_pilot(plan).answers > 0
    assert learned.subtypes(most=1).table == pytest.approx(learned.table, abs=1e-3)
    document = learned.to_dict()
    assert document["table_low"][0][0][0] < document["table"][0][0][0]
    later = ct.learn(columns, problem=problem).with_loss({"pairs": {CLASSES[0]: {CLASSES[1]: 9}}})
    cost = float(later.expected_loss)
    before = later.calibrate(gold).accuracy
    assert before.known == 60
    new = {"task": ["new"] * 5, "question": QUESTIONS, "worker": list("abcde")}
    said = ["Red", "free", "mild", "no", "no"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names, posterior = later.classify({**new, "label": said})
        later.update({**new, "label": said})
    assert float(later.expected_loss) != cost
    assert later.intervals.table.low.shape == later.problem.table.shape
    assert names == ["new"]
    assert later.labels["new"] == problem.classes[0] == problem.classes[posterior[0].argmax()]
    np.testing.assert_allclose(later.problem.table.sum(axis=0), 1)


def test_flags_name_bad_workers_and_questions(campaign):
    problem, columns, gold = campaign
    rng = np.random.default_rng(4)
    rows = list(zip(*columns.values(), strict=True))
    for i in range(40):
        for q, name in enumerate(problem.questions):
            rows.append((f"i{i}", name, "first", problem.answers[q][0]))
            rows.append((f"i{i}", name, "coin", str(rng.choice(problem.answers[q]))))
    columns = dict(zip(columns, zip(*rows, strict=True), strict=True))
    flags = ct.learn(columns, gold, problem=problem).flags.by_kind()
    assert [flag.subject for flag in flags["constant"]] == ["first"]
    assert "number 1 of the list" in flags["constant"][0].message
    assert [flag.subject for flag in flags["random"]] == ["coin"]


def test_exports_and_the_command(campaign, tmp_path):
    problem, columns, _ = campaign
    plain = ct.learn(columns, problem=problem)
    write_zooniverse(columns, tmp_path / "zooniverse.csv")
    write_label_studio(columns, tmp_path / "studio.json")
    problem.save(tmp_path / "table.yaml")
    for name in ("zooniverse.csv", "studio.json"):
        read = ct.learn(ct.load(tmp_path / name), problem=problem)
        assert read.labels == plain.labels
        out = tmp_path / "learned.yaml"
        given = ["learn", tmp_path / name, "--problem", tmp_path / "table.yaml", "-o", out]
        with pytest.raises(SystemExit, match="0"):
            main(list(map(str, [*given, "--report", tmp_path / "report.html"])))
        np.testing.assert_allclose(ct.load_problem(out).table, plain.problem.table)
    assert "sharp | foul" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_bad_answers_are_named(campaign):
    problem, columns, _ = campaign
    wrong = {**columns, "label": ["brwon", *columns["label"][1:]]}
    with pytest.raises(
        ct.CrowdtreeError, match=r"question 'cap': .* 'brwon' .*did you mean 'brown'"
    ):
        ct.learn(wrong, problem=problem)
    few = {"task": [1, 1, 2, 2], "question": list("pqpq"), "worker": list("abab")}
    with pytest.raises(
        ct.CrowdtreeError, match="question 'p': label 'yess' of 1 answers is neither"
    ):
        ct.learn({**few, "label": ["yes", "red", "yess", "blue"]}, {1: "a", 2: "b"})
    with pytest.raises(ct.CrowdtreeError, match="question 'p': expected 2 to 32 different answers"):
        ct.learn({**few, "label": ["red", "red", "red", "blue"]}, {1: "a", 2: "b"})


def test_classes_that_the_gold_may_lack_are_pointed_out():
    problem = key()
    answers, truth, _ = neighbours(problem, np.random.default_rng(5))
    rare = {f"i{i}": CLASSES[c] for i, c in enumerate(truth.tolist()) if c > 1}
    rare |= {f"i{np.flatnonzero(truth == c)[0]}": CLASSES[c] for c in (0, 1)}
    notes = " ".join(ct.learn(answers, rare).answers.notes)
    share = 100 * 2 / len(rare)
    assert f"one item each of 2 classes, so that about {share:.3g} % of the items" in notes
    assert "one item each" not in " ".join(ct.learn(answers, rare, problem=problem).answers.notes)
    often = {task: name for task, name in rare.items() if name not in CLASSES[:2]}
    assert "one item each" not in " ".join(ct.learn(answers, often).answers.notes)
