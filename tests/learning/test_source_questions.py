"""Several sources that answer several questions about the classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

import crowdtree as ct
from crowdtree import CrowdtreeError
from crowdtree.learning.source_fit import SourceFit
from crowdtree.learning.source_policy import recorded_answers
from crowdtree.simulation import Recorded

ITEMS, CLASSES, QUESTIONS = 160, 5, 6
Columns = dict[str, np.ndarray]


def problem_of(seed: int, answers: int = 3, dashes: int = 0) -> ct.Problem:
    """A table in which every two classes differ."""
    rng = np.random.default_rng(seed)
    names = [[f"a{k}" for k in range(answers)]] * QUESTIONS
    outcome = rng.integers(0, answers, (QUESTIONS, CLASSES))
    for c in range(CLASSES):
        outcome[c, c] = (outcome[c, (c + 1) % CLASSES] + 1) % answers
    cells = [[names[0][a] for a in row] for row in outcome.tolist()]
    for q in range(dashes):
        cells[q][q] = "-"
    return ct.Problem(
        [f"c{c}" for c in range(CLASSES)], None, [f"q{q}" for q in range(QUESTIONS)], cells, 0.2,
        answers=names, dash="either" if dashes else "inapplicable",
    )  # fmt: skip


def answered(
    seed: int, problem: ct.Problem, shared: float = 1.5, misread: float = 0.0, expert: bool = False
) -> tuple[Columns, np.ndarray, dict[str, float]]:
    """Eight people, one or two about each item, and three models that find the same things hard.

    Models may take an item for another class altogether (`misread`). The errors of the models.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, CLASSES, ITEMS)
    seen = np.where(
        rng.random(ITEMS) < misread, (truth + rng.integers(1, CLASSES, ITEMS)) % CLASSES, truth
    )
    hard = shared * rng.standard_normal((ITEMS, QUESTIONS))
    number, asked = int(problem.n_answers[0]), np.arange(QUESTIONS)
    rows: list[tuple[int, str, str, str, str]] = []
    wrong: dict[str, float] = {}

    def answer(cls: np.ndarray, error: float, effect: np.ndarray | float) -> np.ndarray:
        right = problem.outcome[:, cls].T
        right = np.where(right < 0, rng.integers(0, number, right.shape), right)
        chance = expit(logit(error) + effect * np.ones_like(right))
        errs = rng.random(right.shape) < chance
        return np.where(errs, (right + 1) % number, right)

    def say(who: str, source: str, items: np.ndarray, given: np.ndarray) -> None:
        rows.extend(
            (int(i), f"q{q}", who, problem.answers[q][given[i, q]], source)
            for i in items for q in asked
        )  # fmt: skip

    for w in range(8):
        chosen = np.flatnonzero(rng.random(ITEMS) < 0.2)
        say(f"p{w}", "people", chosen, answer(truth, rng.uniform(0.1, 0.35), 0.0))
    for m in range(3):
        given = answer(seen, rng.uniform(0.08, 0.3), hard)
        say(f"m{m}", f"model {m}", np.arange(ITEMS), given)
        known = problem.outcome[:, truth].T
        wrong[f"model {m}"] = float((given != known)[known >= 0].mean())
    if expert:
        chosen = np.arange(0, ITEMS, 3)
        say("ex", "expert", chosen, answer(truth, 0.02, 0.0))
        wrong["expert"] = 0.02
    names = ("task", "question", "worker", "label", "source")
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    return columns, truth, wrong


def gold_of(truth: np.ndarray, known: int) -> dict[str, str]:
    return {str(i): f"c{truth[i]}" for i in range(known)}


def right_of(learned: ct.Learned, truth: np.ndarray) -> float:
    """Share of right labels of items of unknown class."""
    labels = np.array([int(name[1:]) for name in learned.labels.values()])
    right = labels == truth[learned.answers.tasks.astype(int)]
    return float(right[learned.gold < 0].mean())


def without_sources(columns: Columns) -> Columns:
    return {name: column for name, column in columns.items() if name != "source"}


@pytest.mark.parametrize("known", [0, 60])
@pytest.mark.parametrize("answers", [2, 3])
def test_labels_are_as_good_as_without_sources_and_stated_honestly(known, answers):
    right, alone, held, sources = [], [], [], []
    for seed in range(3):
        problem = problem_of(seed, answers)
        columns, truth, wrong = answered(seed + 10, problem)
        gold = gold_of(truth, known) or None
        learned = ct.learn(columns, gold, problem=problem)
        right.append(right_of(learned, truth))
        alone.append(right_of(ct.learn(without_sources(columns), gold, problem=problem), truth))
        held.append(learned.accuracy.low <= right[-1] <= learned.accuracy.high)
        for name, error in wrong.items():
            source = learned.sources[name]
            sources.append(source.low <= error <= source.high)
    assert np.mean(right) > np.mean(alone) - 0.02
    assert sum(held) >= 2
    assert np.mean(sources) >= 0.75


def test_models_that_misread_items_count_less_the_more_questions_they_answer():
    problem, gaps, across = problem_of(1), [], []
    for misread in (0.0, 0.25):
        columns, truth, _ = answered(3, problem, shared=0.0, misread=misread)
        learned = ct.learn(columns, gold_of(truth, 120), problem=problem)
        plain = ct.learn(without_sources(columns), gold_of(truth, 120), problem=problem)
        assert learned.accuracy.low <= right_of(learned, truth) <= learned.accuracy.high
        gaps.append(right_of(learned, truth) - right_of(plain, truth))
        across.append(learned.labelling.dependence.across)
    assert gaps[1] > 0.03 > -gaps[0]
    assert across[1] > 3 * across[0]


def test_an_expert_keeps_a_table_of_its_own():
    problem = problem_of(2)
    columns, truth, _ = answered(5, problem, expert=True)
    learned = ct.learn(columns, gold_of(truth, 80), problem=problem)
    expert = learned.sources["expert"]
    assert expert.kind == "expert"
    assert expert.high < 0.08 < learned.sources["people"].low
    tables = learned.problem.channel[[s.name for s in learned.problem.sources].index("expert")]
    assert np.where(problem.right, tables, 0).sum(axis=0).mean() > 0.95


def test_known_items_alone_give_tables_of_sources():
    problem = problem_of(3)
    columns, truth, wrong = answered(6, problem)
    learned = ct.learn(columns, gold_of(truth, 110))
    assert np.mean(learned.problem.outcome == problem.outcome) > 0.95
    assert right_of(learned, truth) > 0.9
    for name, error in wrong.items():
        assert learned.sources[name].error == pytest.approx(error, abs=0.05)
    with pytest.raises(CrowdtreeError, match="no answered item of 'c2'"):
        ct.learn(columns, {"0": "c0", "1": "c1"}, classes=problem.classes)


def test_open_cells_are_learned_and_count_as_neither_right_nor_wrong():
    problem = problem_of(4, dashes=2)
    columns, truth, _ = answered(7, problem)
    learned = ct.learn(columns, gold_of(truth, 80), problem=problem)
    channel = learned.problem.channel
    np.testing.assert_allclose(channel.sum(axis=1), 1)
    assert not learned.fit.definite[0, 0]
    assert learned.fit.answers[0, 0] == 0


def test_sources_of_the_problem_keep_their_price_and_limits():
    sources = [
        ct.Source("people", price=2.0, most_per_item=4),
        ct.Source("model 1", "model", price=0.1, worker_error=0.4),
        ct.Source("chief", "expert", price=9.0, worker_error=0.01),
    ]
    problem = problem_of(5).replace(sources=sources)
    columns, truth, _ = answered(8, problem_of(5))
    learned = ct.learn(columns, gold_of(truth, 40), problem=problem)
    named = {source.name: source for source in learned.problem.sources}
    assert list(named) == ["people", "model 0", "model 1", "model 2", "chief"]
    assert (named["people"].price, named["people"].most_per_item) == (2.0, 4)
    assert named["model 1"].price == 0.1
    assert named["model 1"].table is not None
    assert named["chief"].worker_error == 0.01  # it has not answered


def test_a_policy_of_the_sources_is_calibrated_and_keeps_its_target():
    problem = problem_of(6)
    columns, truth, _ = answered(9, problem)
    table = {
        "worker": [f"p{w}" for w in range(8)] + [f"m{m}" for m in range(3)],
        "source": ["people"] * 8 + [f"model {m}" for m in range(3)],
        "price": [1.0] * 8 + [0.05] * 3,
    }
    learned = ct.learn(without_sources(columns), gold_of(truth, 90), problem=problem,
                       sources=table)  # fmt: skip
    policy = learned.policy(0.1, 20)
    assert policy.calibration.items == 90
    items = learned.answers.tasks.astype(int)
    values, open_ = recorded_answers(learned.answers), learned.gold < 0
    crowd = Recorded(values[open_], truth[items[open_]])
    run = ct.simulate(policy.problem, policy, int(open_.sum()), crowd=crowd)
    paid = run.cost_per_source()
    assert paid["people"] < 6  # all of them are about ten answers
    assert abs(run.misclassification - run.stated_error) < 0.08
    assert policy.guarantee(crowd, target_error=0.2).target_error <= 0.4


def test_new_answers_are_taken_in_and_a_result_is_saved(tmp_path):
    problem = problem_of(7)
    columns, truth, _ = answered(10, problem)
    first = {name: column[columns["task"] < 150] for name, column in columns.items()}
    later = {name: column[columns["task"] >= 150] for name, column in columns.items()}
    learned = ct.learn(first, gold_of(truth, 60), problem=problem)
    assert isinstance(learned.labelling, SourceFit)
    calibrated = learned.calibrate({str(i): f"c{truth[i]}" for i in range(60, 110)})
    assert calibrated.accuracy.known == 110
    learned.save(tmp_path / "learned.json")
    assert ct.load(tmp_path / "learned.json") == learned
    names, posterior = learned.classify(later)
    learned.update(later)
    places = [learned.task_index[name] for name in names]
    np.testing.assert_allclose(learned.stated_posterior[places], posterior, atol=1e-9)
    for refused in (learned.subtypes, lambda: learned.credible_interval(ct.design(problem))):
        with pytest.raises(CrowdtreeError, match="expected one source of answers"):
            refused()
