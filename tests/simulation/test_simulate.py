"""Simulation: same labels as step by step, calibrated numbers, same result on any engine."""

import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdtree import simulation
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import evaluate
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.problem import Problem
from crowdtree.core.sources import Source
from crowdtree.designs.designers import design
from crowdtree.designs.staffing import staff
from crowdtree.policies import AdaptivePolicy, BatchPolicy, PlanPolicy, expected_answers
from crowdtree.policies.walk import Round
from crowdtree.simulation import Crowd, Recorded, execution, simulate, sweep, tune_target
from crowdtree.simulation.run import Estimate, mean_estimate, share_estimate


def make_problem(seed: int = 0, classes: int = 6, questions: int = 9, dash: float = 0.0) -> Problem:
    rng = np.random.default_rng(seed)
    while True:
        outcome = rng.integers(0, 2, (questions, classes))
        if len(np.unique(outcome, axis=1).T) == classes:
            break
    if dash:
        outcome[rng.random(outcome.shape) < dash] = -1
    return Problem(
        [f"c{i}" for i in range(classes)],
        rng.dirichlet(np.full(classes, 3.0)),
        [f"q{i}" for i in range(questions)],
        outcome,
        rng.uniform(0.1, 0.3, outcome.shape),
        dash="either" if dash else "inapplicable",
    )


PROBLEM = make_problem()
PLAN = staff(design(PROBLEM), workers=14)
EVEN = Plan(PLAN.tree, np.arange(PLAN.tree.n_nodes) % 4 + 1)


def policies(problem, plan):
    return {
        "plan": PlanPolicy(plan),
        "curtailed": PlanPolicy(plan, "curtailed"),
        "margin": PlanPolicy(plan, "margin"),
        "even": PlanPolicy(EVEN, "curtailed"),
        "information": AdaptivePolicy(problem, 0.02, 25),
        "accuracy": AdaptivePolicy(problem, 0.02, 25, criterion="accuracy"),
        "ec2": AdaptivePolicy(problem, 0.02, 25, criterion="ec2", price=np.arange(1, 10)),
        "gbs": AdaptivePolicy(problem, 0.02, 25, criterion="gbs", endgame=3),
        "shared": AdaptivePolicy(problem, 0.02, 25, shared_difficulty=0.2),
        "capped": AdaptivePolicy(problem, 0.02, 25, repeats=1, strict=False),
        "batch": BatchPolicy(problem, 2),
        "batch posterior": BatchPolicy(problem, 3, "posterior"),
    }


POLICIES = policies(PROBLEM, PLAN)
CROWDS = {
    "plain": Crowd(),
    "people": Crowd(workers=30, skill_sd=0.7, spammers=0.1, item_difficulty=0.4),
    "known": Crowd(workers=30, skill_sd=0.7, spammers=0.1, spam="yes", known_skill=True),
    "leaning": Crowd(shared_difficulty=0.3),
    "other": Crowd(problem=PROBLEM.replace(worker_error=0.35)),
}


def alike(one, other):
    np.testing.assert_array_equal(one.truth, other.truth)
    np.testing.assert_array_equal(one.label, other.label)
    np.testing.assert_array_equal(one.answers, other.answers)
    np.testing.assert_array_equal(one.reason, other.reason)
    np.testing.assert_array_equal(one.asked, other.asked)


def identical(one, other):
    alike(one, other)
    np.testing.assert_array_equal(one.posterior_error, other.posterior_error)


# ------------------------------------------------------------------ same as step by step


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_vectorised_gives_the_labels_of_the_steps(policy, crowd):
    fast = simulate(PROBLEM, POLICIES[policy], 150, rng=3, crowd=CROWDS[crowd])
    slow = simulate(PROBLEM, POLICIES[policy], 150, rng=3, crowd=CROWDS[crowd], stepwise=True)
    alike(fast, slow)
    np.testing.assert_allclose(fast.posterior_error, slow.posterior_error, rtol=1e-6, atol=1e-12)
    assert fast.label_index.min() >= 0
    assert fast.asked.sum() == fast.answers.sum()


@pytest.mark.parametrize("stopping", ["none", "curtailed"])
def test_errors_survive_products_that_underflow(stopping):
    """Cells without error and a crowd that errs: every class becomes nearly impossible."""
    rng = np.random.default_rng(0)
    sure = PROBLEM.replace(worker_error=rng.choice([1e-9, 0.4], PROBLEM.outcome.shape))
    tree = design(sure)
    policy = PlanPolicy(Plan(tree, np.full(tree.n_nodes, 51)), stopping)
    crowd = Crowd(problem=PROBLEM.replace(worker_error=0.4))
    fast = simulate(sure, policy, 100, rng=3, crowd=crowd)
    steps = simulate(sure, policy, 100, rng=3, crowd=crowd, stepwise=True)
    alike(fast, steps)
    np.testing.assert_allclose(fast.posterior_error, steps.posterior_error, rtol=1e-6, atol=1e-12)
    assert fast.posterior_error.max() > 0.5  # the label of the tree is not the likeliest class


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["information", "ec2", "accuracy", "gbs"]))
def test_vectorised_equals_steps_on_symmetric_problems(seed, criterion):
    """Equal errors and priors make many exact ties: both must break them alike."""
    problem = make_problem(seed).replace(prior=None, worker_error=0.2)
    policy = AdaptivePolicy(problem, 0.05, 15, criterion=criterion)
    fast = simulate(problem, policy, 60, rng=seed)
    alike(fast, simulate(problem, policy, 60, rng=seed, stepwise=True))


def test_dashes_are_simulated_too():
    problem = make_problem(5, dash=0.2)
    policy = AdaptivePolicy(problem, 0.05, strict=False)
    alike(simulate(problem, policy, 100), simulate(problem, policy, 100, stepwise=True))
    plan = PlanPolicy(design(problem, allow_groups=True))
    run = simulate(problem, plan, 20_000)
    exact = evaluate(plan.plan)
    assert abs(run.misclassification - exact.misclassification) < 0.015
    alike(simulate(problem, plan, 100), simulate(problem, plan, 100, stepwise=True))


def test_several_at_once_costs_little_more_and_labels_as_well():
    one = simulate(PROBLEM, AdaptivePolicy(PROBLEM, 0.02), 600)
    four = simulate(PROBLEM, AdaptivePolicy(PROBLEM, 0.02, width=3), 600)
    assert one.answers_per_item < four.answers_per_item < one.answers_per_item + 3
    assert four.misclassification < 0.05


# ------------------------------------------------------------------ right numbers


@pytest.mark.parametrize("stopping", ["none", "curtailed", "margin"])
def test_plans_cost_and_err_as_theory_says(stopping):
    run = simulate(PROBLEM, PlanPolicy(PLAN, stopping), 100_000, rng=1)
    exact = expected_answers(PLAN, stopping)
    spread = (run.answers_per_item.high - run.answers_per_item.low) / 2
    assert abs(run.answers_per_item - exact) < 2 * spread + 1e-9
    wrong = evaluate(PlanPolicy(PLAN, stopping).voted).misclassification
    assert run.misclassification.low - 0.001 < wrong < run.misclassification.high + 0.001


def test_curtailed_labels_are_those_of_the_full_vote():
    """Same people, same labels, fewer answers: item by item."""
    full = simulate(PROBLEM, PlanPolicy(PLAN), 5000)
    short = simulate(PROBLEM, PlanPolicy(PLAN, "curtailed"), 5000)
    np.testing.assert_array_equal(full.label, short.label)
    assert np.all(short.answers <= full.answers)
    assert short.answers.sum() < full.answers.sum()


@pytest.mark.parametrize("name", ["information", "ec2", "curtailed", "batch"])
def test_stated_errors_are_calibrated(name):
    run = simulate(PROBLEM, POLICIES[name], 40_000, rng=2)
    wrong = run.misclassification
    assert wrong.low - 0.002 < run.stated_error < wrong.high + 0.002
    rows = run.calibration(8)
    assert sum(row.items for row in rows) == run.items
    outside = sum(not row.low - 0.004 <= row.stated <= row.high + 0.004 for row in rows)
    assert outside == 0


def test_shared_difficulty_keeps_posteriors_calibrated_where_independence_does_not():
    crowd = Crowd(shared_difficulty=0.3)
    naive = simulate(PROBLEM, AdaptivePolicy(PROBLEM, 0.02, 60), 8000, crowd=crowd)
    aware = AdaptivePolicy(PROBLEM, 0.02, 60, shared_difficulty=0.3)
    told = simulate(PROBLEM, aware, 8000, crowd=crowd)
    assert naive.misclassification.low > 2 * naive.stated_error
    assert (
        told.misclassification.low - 0.003 < told.stated_error < told.misclassification.high + 0.003
    )


def test_crowds_have_the_given_properties():
    problem = PROBLEM.replace(prior=None)
    policy = AdaptivePolicy(problem, 0.05, 40)
    base = simulate(problem, policy, 8000)
    share = np.bincount(base.truth_index, minlength=6) / 8000
    np.testing.assert_allclose(share, 1 / 6, atol=0.02)
    spam = simulate(problem, policy, 8000, crowd=Crowd(spammers=0.4))
    hard = simulate(problem, policy, 8000, crowd=Crowd(item_difficulty=1.5))
    assert spam.misclassification > 2 * base.misclassification
    assert hard.misclassification > 1.5 * base.misclassification
    mixed = Crowd(workers=50, skill_sd=1.5)
    blind = simulate(problem, policy, 8000, crowd=mixed)
    told = simulate(problem, policy, 8000, crowd=Crowd(workers=50, skill_sd=1.5, known_skill=True))
    assert told.misclassification < blind.misclassification


def test_answers_of_the_crowd_have_the_given_probability():
    block = Crowd().block(PROBLEM, 11, 0, 40_000)
    rows = np.arange(40_000)
    zero = np.zeros(40_000, dtype=np.int64)
    none = np.zeros((3, 40_000), dtype=np.int64)
    said = block.answer(Round(rows, zero + 2, zero, none.copy)).value
    again = block.answer(Round(rows, zero + 2, zero + 1, none.copy)).value
    for cls in range(6):
        mine = block.truth == cls
        share = PROBLEM.worker_error[2, cls]
        share = 1 - share if PROBLEM.outcome[2, cls] else share
        assert said[mine].mean() == pytest.approx(share, abs=0.03)
        if mine.sum() > 2000:
            assert abs(np.corrcoef(said[mine], again[mine])[0, 1]) < 0.06
    lean = Crowd(shared_difficulty=0.5).block(PROBLEM, 11, 0, 40_000)
    first = lean.answer(Round(rows, zero + 2, zero, none.copy)).value
    counts = np.stack([first == 0, first == 1]).astype(np.int64)
    second = lean.answer(Round(rows, zero + 2, zero + 1, counts.copy)).value
    mine = lean.truth == np.bincount(lean.truth).argmax()
    assert np.corrcoef(first[mine], second[mine])[0, 1] == pytest.approx(0.5, abs=0.05)


def test_recorded_answers_are_used_as_they_are():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 6, 300)
    table = PROBLEM.outcome.T[truth]
    policy = AdaptivePolicy(PROBLEM, 0.02, repeats=1, strict=False)
    run = simulate(PROBLEM, policy, 300, crowd=Recorded(table, truth))
    assert run.misclassification == 0
    np.testing.assert_array_equal(run.truth_index, truth)
    with pytest.raises(CrowdtreeError, match="repeats=1"):
        simulate(PROBLEM, AdaptivePolicy(PROBLEM, 1e-6), 300, crowd=Recorded(table, truth))
    with pytest.raises(CrowdtreeError, match="expected at most the 300 recorded"):
        simulate(PROBLEM, policy, 301, crowd=Recorded(table, truth))
    table[0, :] = -1
    run = simulate(PROBLEM, policy, 300, crowd=Recorded(table, truth))
    assert run.answers[0] == 0
    assert run.label_index[0] == np.argmax(PROBLEM.prior)


def test_tuned_target_reaches_the_requested_error():
    target = tune_target(PROBLEM, lambda t: AdaptivePolicy(PROBLEM, t), 0.02, items=4000)
    run = simulate(PROBLEM, AdaptivePolicy(PROBLEM, target), 20_000, rng=9)
    assert run.stated_error < 0.0215
    assert target > 0.02  # stopping at 2 % per item is better than 2 % on average
    with pytest.raises(CrowdtreeError, match="cannot be reached"):
        tune_target(
            PROBLEM, lambda t: AdaptivePolicy(PROBLEM, t, repeats=1, strict=False), 1e-4, items=500
        )


# ------------------------------------------------------------------ the same on any engine


def test_result_depends_on_the_seed_alone(monkeypatch):
    monkeypatch.setattr(simulation, "BLOCK", 100)
    for name in ("information", "margin"):
        one = simulate(PROBLEM, POLICIES[name], 450, rng=5, crowd=CROWDS["people"])
        identical(
            one, simulate(PROBLEM, POLICIES[name], 450, rng=5, crowd=CROWDS["people"], jobs=2)
        )
        longer = simulate(PROBLEM, POLICIES[name], 700, rng=5, crowd=CROWDS["people"])
        np.testing.assert_array_equal(longer.label[:450], one.label)
        other = simulate(PROBLEM, POLICIES[name], 450, rng=6, crowd=CROWDS["people"])
        assert np.any(other.truth != one.truth)
        generator = np.random.default_rng(5)
        identical(one, simulate(PROBLEM, POLICIES[name], 450, generator, crowd=CROWDS["people"]))
    monkeypatch.setattr(simulation, "BLOCK", 333)
    alike(one, simulate(PROBLEM, POLICIES["margin"], 450, rng=5, crowd=CROWDS["people"]))


def test_checkpoints_resume(tmp_path, monkeypatch):
    monkeypatch.setattr(simulation, "BLOCK", 100)
    policy = POLICIES["information"]
    whole = simulate(PROBLEM, policy, 500, rng=1)
    ran = []
    original = execution.Task.run

    def failing(task, *rest):
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(task.start)
        return original(task, *rest)

    monkeypatch.setattr(execution.Task, "run", failing)
    with pytest.raises(KeyboardInterrupt):
        simulate(PROBLEM, policy, 500, rng=1, checkpoint=tmp_path / "run")
    files = sorted((tmp_path / "run").iterdir())
    assert [f.suffix for f in files] == [".npz"] * 3
    files[0].write_bytes(files[0].read_bytes()[:100])  # cut off: must be simulated again
    ran.clear()
    monkeypatch.setattr(
        execution.Task, "run", lambda t, *rest: ran.append(t.start) or original(t, *rest)
    )
    seen = []
    again = simulate(
        PROBLEM,
        policy,
        500,
        rng=1,
        checkpoint=tmp_path / "run",
        progress=lambda done, total: seen.append((done, total)),
    )
    identical(whole, again)
    assert len(ran) == 3
    assert {300, 400} < set(ran)
    assert seen[0] == (200, 500)
    assert seen[-1] == (500, 500)
    ran.clear()
    simulate(PROBLEM, policy, 500, rng=2, checkpoint=tmp_path / "run")
    assert len(ran) == 5, "another seed is another run"
    ran.clear()
    simulate(PROBLEM, policy, 500, rng=1, checkpoint=tmp_path / "run")
    assert ran == []
    (tmp_path / "file").touch()
    with pytest.raises(CrowdtreeError, match="cannot be used as a folder"):
        simulate(PROBLEM, policy, 500, checkpoint=tmp_path / "file")


@pytest.mark.parametrize("name", ["information", "curtailed", "batch"])
def test_a_single_block_reports_how_far_it_is(name):
    seen = []
    simulate(PROBLEM, POLICIES[name], 200, progress=lambda done, total: seen.append((done, total)))
    done = [count for count, _ in seen]
    assert done == sorted(done)
    assert len(set(done)) > 2
    assert (seen[0], seen[-1]) == ((0, 200), (200, 200))


@pytest.mark.parametrize("policy", ["adaptive", design(PROBLEM)])
def test_what_is_no_policy_is_refused_with_the_right_call(policy):
    with pytest.raises(CrowdtreeError, match=r"expected a policy, got .*PlanPolicy\(plan\)"):
        simulate(PROBLEM, policy, 10)
    with pytest.raises(
        CrowdtreeError, match="policies: expected a dictionary from name to a policy"
    ):
        sweep(PROBLEM, policy, items=10)


def test_sweep_is_the_grid_of_single_runs(tmp_path):
    chosen = {name: POLICIES[name] for name in ("information", "margin")}
    people = {name: CROWDS[name] for name in ("plain", "leaning")}
    rows = sweep(PROBLEM, chosen, people, 300, rng=4, jobs=2, checkpoint=tmp_path)
    assert [(r.policy, r.crowd) for r in rows] == [
        ("information", "plain"),
        ("information", "leaning"),
        ("margin", "plain"),
        ("margin", "leaning"),
    ]
    frame = rows.to_frame()
    assert frame["crowd"].to_list() == [r.crowd for r in rows]
    assert frame["answers_per_item"].to_list() == [float(r.run.answers_per_item) for r in rows]
    for row in rows:
        identical(row.run, simulate(PROBLEM, chosen[row.policy], 300, 4, crowd=people[row.crowd]))
    with pytest.raises(CrowdtreeError, match="policies: expected at least one"):
        sweep(PROBLEM, {}, people)


# ------------------------------------------------------------------ a real cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A Dask scheduler and two workers, as processes of their own, on loopback."""
    pytest.importorskip("distributed", reason="crowdtree[dask] is not installed")
    folder = tmp_path_factory.mktemp("dask")
    told = folder / "scheduler.json"
    env = os.environ | {"PYTHONPATH": str(Path(execution.__file__).parents[2])}
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0"]
    worker = ["worker", "--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                f"distributed.cli.dask_{command[0]}",
                *command[1:],
                "--no-dashboard",
                "--scheduler-file",
                str(told),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd=folder,
        )
        for command in (scheduler, worker, worker)
    ]
    try:
        address = _wait_for_workers(told, 2)
        yield address
    finally:
        for process in processes:
            process.kill()  # a worker that is told to end first says goodbye to the scheduler
        for process in processes:
            process.wait()


def _wait_for_workers(told, count):
    from distributed import Client

    deadline = time.monotonic() + 60
    while not told.exists() or not told.read_text().strip():
        assert time.monotonic() < deadline, "the scheduler did not start"
        time.sleep(0.1)
    address = json.loads(told.read_text())["address"].removeprefix("tcp://")
    with Client(f"tcp://{address}", set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)
    return address


POLICIES_FILE = """
import os
from crowdtree.core.errors import MissingExtra
from crowdtree.policies import AdaptivePolicy

class Printing(AdaptivePolicy):
    def start(self):
        print("working")
        return super().start()

class Failing(AdaptivePolicy):
    def start(self):
        raise MissingExtra("policy", "mine")

class Dying(AdaptivePolicy):
    def start(self):
        os._exit(1)
"""
SCRIPT = """
import sys
sys.path.insert(0, "lib")
import policies
import crowdtree as ct
from crowdtree import simulation

class Local(policies.AdaptivePolicy):
    pass

simulation.BLOCK = 20
problem = ct.example("animals")
kind = getattr(policies, sys.argv[1], Local)
policy = kind(problem, 0.1, strict=False)
try:
    one, other = (ct.simulate(problem, policy, 60, jobs=n, stepwise=True) for n in (2, 1))
    print((one.label == other.label).all())
except ct.CrowdtreeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("Local", "True"),
        ("Printing", "True"),
        ("Failing", 'policy: not installed; run: pip install "crowdtree[mine]"'),
        ("Dying", "jobs: a process ended before its result was complete"),
    ],
)
def test_a_script_without_a_guard_uses_processes(policy, expected, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "policies.py").write_text(POLICIES_FILE, encoding="utf-8")
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(Path(simulation.__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "script.py", policy],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1].startswith(expected)
    assert "Traceback" not in done.stderr


def test_dask_gives_identical_results(cluster, monkeypatch):
    monkeypatch.setattr(simulation, "BLOCK", 150)
    for name in ("information", "curtailed"):
        here = simulate(PROBLEM, POLICIES[name], 600, rng=8, crowd=CROWDS["people"])
        there = simulate(
            PROBLEM, POLICIES[name], 600, rng=8, crowd=CROWDS["people"], engine=f"dask://{cluster}"
        )
        identical(here, there)
    rows = sweep(PROBLEM, {"m": POLICIES["margin"]}, None, 300, engine=f"dask://{cluster}")
    identical(rows[0].run, simulate(PROBLEM, POLICIES["margin"], 300))


def test_an_unreachable_scheduler_is_reported(monkeypatch):
    pytest.importorskip("distributed", reason="crowdtree[dask] is not installed")
    monkeypatch.setattr(execution, "CONNECT_SECONDS", 0.5)
    with pytest.raises(
        CrowdtreeError, match=r"no Dask scheduler responds at 127\.0\.0\.1:1 "
    ) as caught:
        simulate(PROBLEM, POLICIES["plan"], 10, engine="dask://127.0.0.1:1")
    assert "\n" not in str(caught.value)


def test_missing_dask_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CrowdtreeError, match=r'pip install "crowdtree\[dask\]"'):
        simulate(PROBLEM, POLICIES["plan"], 10, engine="dask://127.0.0.1:8786")


# ------------------------------------------------------------------ the rest


def test_estimates():
    wrong = share_estimate(5, 100)
    assert wrong == 0.05
    assert wrong.low < 0.05 < wrong.high
    assert share_estimate(0, 50).low == 0 < share_estimate(0, 50).high
    assert pickle.loads(pickle.dumps(wrong)).interval == wrong.interval
    assert isinstance(mean_estimate(np.array([1, 2])), Estimate)
    assert mean_estimate(np.array([3])).interval == (3, 3)


def test_intervals_cover():
    """The 95 % interval of a known error holds it in most of many small runs."""
    wrong = evaluate(PLAN).misclassification
    held = [
        run.misclassification.low <= wrong <= run.misclassification.high
        for run in (simulate(PROBLEM, PlanPolicy(PLAN), 300, rng=s) for s in range(60))
    ]
    assert sum(held) >= 52


def test_summary_is_plain_json():
    run = simulate(PROBLEM, POLICIES["information"], 500)
    told = json.loads(json.dumps(run.to_dict()))
    assert told["items"] == 500
    assert told["misclassification"] == run.misclassification
    assert sum(told["answers_per_question"].values()) == pytest.approx(run.answers_per_item)
    assert sum(told["reasons"].values()) == 500
    np.testing.assert_allclose(np.trace(run.confusion), 1 - run.misclassification)
    assert "500 items" in repr(run)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: simulate(PROBLEM, POLICIES["plan"], 0), "items: expected a whole number"),
        (
            lambda: simulate(PROBLEM, POLICIES["plan"], 10, engine="spark"),
            "engine: 'spark' is unknown",
        ),
        (lambda: simulate(PROBLEM, POLICIES["plan"], 10, engine="dask://"), "is unknown"),
        (lambda: simulate(PROBLEM, POLICIES["plan"], 50_000, jobs=0), "jobs: expected a number"),
        (
            lambda: simulate(make_problem(1, 5), POLICIES["plan"], 10),
            "different classes or questions",
        ),
        (
            lambda: simulate(
                PROBLEM, POLICIES["plan"], 10, crowd=Crowd(problem=make_problem(1, 5))
            ),
            "crowd: its problem has 5 classes",
        ),
        (lambda: Crowd(workers=0), "workers: expected at least 1"),
        (lambda: Crowd(skill_sd=-1), "skill_sd: expected 0 or more"),
        (lambda: Crowd(spammers=2), "spammers: expected a share"),
        (lambda: Crowd(spam="lies"), "spam: expected"),
        (lambda: Crowd(shared_difficulty=1), "shared_difficulty: expected a number"),
        (lambda: Recorded([[0, 1]], [0, 1]), "recorded: expected items x questions"),
        (
            lambda: simulate(PROBLEM, POLICIES["plan"], 1, crowd=Recorded([[0]], [0])),
            "recorded: expected items x 9 questions",
        ),
    ],
)
def test_bad_input_gets_one_line(call, text):
    with pytest.raises(CrowdtreeError, match=text) as caught:
        call()
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------ adapting


def test_adapting_mends_a_wrong_table():
    assumed = make_problem(3).replace(worker_error=0.15)
    truth = assumed.replace(worker_error=0.3)
    policy = AdaptivePolicy(assumed, 0.01, 300, strict=False)
    crowd = Crowd(problem=truth)
    plain = simulate(assumed, policy, 150, rng=1, crowd=crowd)
    adapting = simulate(assumed, policy, 150, rng=1, crowd=crowd, adapt=True)
    told = simulate(assumed, AdaptivePolicy(truth, 0.01, 300), 150, rng=1, crowd=crowd)
    assert plain.misclassification > 0.06
    assert adapting.misclassification <= 0.03
    assert adapting.answers_per_item < 1.3 * told.answers_per_item
    made = adapting.adaptation
    assert made.alarms[0].items <= 30
    assert made.revisions[0].reason == "alarm"
    assert {revision.reason for revision in made.revisions[1:]} == {"answers"}
    assert made.reopened > 0
    assert adapting.asked.sum() == adapting.answers.sum()
    assert json.loads(json.dumps(adapting.to_dict()))["adaptation"]["reopened"] == made.reopened


def test_adapting_changes_nothing_without_an_alarm_and_is_repeatable():
    plain = simulate(PROBLEM, POLICIES["information"], 60, rng=2)
    first, second = (
        simulate(PROBLEM, POLICIES["information"], 60, rng=2, adapt=True) for _ in range(2)
    )
    assert not first.adaptation.alarms
    alike(plain, first)
    assert first.adaptation == second.adaptation


def test_adapting_runs_in_one_process():
    with pytest.raises(CrowdtreeError, match="each item depends on those before it"):
        simulate(PROBLEM, POLICIES["information"], 10, adapt=True, jobs=2)


def test_a_policy_asks_the_sources_of_its_own_problem() -> None:
    plain = PROBLEM
    mixed = plain.replace(
        sources=[Source("people"), Source("m", "model", price=0.1, error_factor=2)]
    )
    for asked, known in ((plain, mixed), (mixed, plain)):
        with pytest.raises(CrowdtreeError, match="make the policy for this problem"):
            simulate(known, AdaptivePolicy(asked, 0.1), 10)
    named = plain.replace(sources=[Source("students")])
    assert simulate(named, AdaptivePolicy(plain, 0.1), 10).items == 10
