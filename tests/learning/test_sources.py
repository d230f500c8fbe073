"""Several sources of answers: reading, tables, dependence, honest labels, and policies."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import crowdtree as ct
from crowdtree import CrowdtreeError
from crowdtree.core.common_causes import Causes
from crowdtree.learning.answers import read_answers
from crowdtree.learning.source_dependence import Dependence
from crowdtree.learning.source_fit import SourceFit
from crowdtree.learning.source_policy import recorded_answers
from crowdtree.learning.worker_sources import sources_of
from crowdtree.simulation import Recorded
from tests.learning.test_source_dependence import best_weights

LABELS = ("a", "b", "c")


def mixed(
    seed: int, items: int = 300, models: int = 4, together: float = 0.8, error: float = 0.2
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Six people, three of whom answer each item, and models that share most of their errors."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, items)
    decoy = (truth + rng.integers(1, 3, items)) % 3
    trap = rng.random(items) < error * together
    rows = []
    for w in range(6 + models):
        own = rng.random(items) < (error if w < 6 else error * (1 - together))
        said = np.where(own, (truth + rng.integers(1, 3, items)) % 3, truth)
        if w >= 6:
            said = np.where(trap, decoy, said)
        asked = rng.permutation(items)[: items // 2] if w < 6 else np.arange(items)
        source = "people" if w < 6 else f"model {w}"
        rows += [(i, f"w{w}", LABELS[said[i]], source) for i in asked.tolist()]
    names = ("task", "worker", "label", "source")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)), truth


def gold_of(truth: np.ndarray, known: int) -> dict[str, str]:
    return {str(i): LABELS[truth[i]] for i in range(known)}


def gap(learned: ct.Learned, truth: np.ndarray, posterior: np.ndarray) -> float:
    """How much more is stated than is right, over the items of unknown class."""
    open_ = learned.gold < 0
    right = posterior.argmax(axis=1) == truth[learned.answers.tasks.astype(int)]
    return float((posterior.max(axis=1) - right)[open_].mean())


def taken_as_independent(learned: ct.Learned) -> np.ndarray:
    fit = learned.labelling
    assert isinstance(fit, SourceFit)
    evidence = fit.tables.evidence(learned.answers, fit.row, np.arange(len(learned.gold)))
    none = Dependence(np.zeros(len(fit.dependence.within)), 0.0)
    return np.exp(evidence.posterior(np.log(fit.tables.share), none))


# ---------------------------------------------------------------- reading


def test_one_source_changes_nothing():
    answers, truth = mixed(0)
    answers["source"][:] = "people"
    alone = {name: column for name, column in answers.items() if name != "source"}
    for gold in (None, gold_of(truth, 40)):
        one, none = ct.learn(answers, gold), ct.learn(alone, gold)
        assert one == none
        assert one.to_dict() == none.to_dict()
        assert not one.sources


def test_a_table_of_workers_says_what_a_column_says():
    answers, truth = mixed(1)
    pairs = sorted(set(zip(answers["worker"].tolist(), answers["source"].tolist(), strict=True)))
    alone = {name: column for name, column in answers.items() if name != "source"}
    table = {"worker": [w for w, _ in pairs], "source": [s for _, s in pairs]}
    by_column = ct.learn(answers, gold_of(truth, 30))
    for given in (dict(pairs), table):
        assert ct.learn(alone, gold_of(truth, 30), sources=given) == by_column
    named = {"task": "task", "source": "who"}
    renamed = {**alone, "who": answers["source"]}
    assert ct.learn(renamed, gold_of(truth, 30), columns=named) == by_column


def test_a_column_that_is_not_who_answers_is_left_out():
    answers, _ = mixed(2)
    answers["source"] = np.where(answers["task"] % 2 == 0, "news", "web")
    learned = ct.learn(answers)
    assert not learned.sources
    assert "column source left out" in " ".join(learned.answers.notes)
    with pytest.raises(
        CrowdtreeError, match="worker 'w0' has several sources; give each worker one"
    ):
        ct.learn(answers, columns={"source": "source"})


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"ann": "people"}, "worker 'ben' has no source"),
        ({"worker": ["ann", "ann"], "source": ["x", "y"]}, "worker 'ann' has two sources"),
        (
            {"worker": ["ann", "ben"], "source": ["x", "y"], "kind": ["robot", "model"]},
            "expected the kind people, expert or model, got 'robot'",
        ),
        (
            {"worker": ["ann", "ben"], "source": ["x", "y"], "price": ["free", "1"]},
            "expected a price above 0, got 'free'",
        ),
        (
            {"worker": ["ann", "ben"], "source": ["x", "x"], "price": ["2", "1"]},
            "source 'x' is both '2' and '1'",
        ),
    ],
)
def test_a_malformed_table_of_workers_is_refused(table, words):
    with pytest.raises(CrowdtreeError, match=words):
        sources_of(np.array(["ann", "ben"]), table)


# ---------------------------------------------------------------- the model


def test_evidence_is_the_weighted_sum_of_logs():
    answers, truth = mixed(3, items=60)
    learned = ct.learn(answers, gold_of(truth, 20))
    fit, read = learned.labelling, learned.answers
    assert isinstance(fit, SourceFit)
    assert not fit.copies
    tables, rho, by_source = fit.tables, fit.dependence, fit.expected(read)
    for item in (25, 40, 59):
        rows = np.arange(int(read.start[item]), int(read.start[item + 1]))
        who, whole, part = read.worker[rows], np.zeros(2), []
        logs = np.log(tables.chance[who, read.label[rows], 0])
        for g in (0, 1):
            strength = tables.strength[who[tables.group[who] == g], 0]
            weight = best_weights(strength, rho.within[g])
            whole[g] = np.sqrt(weight @ strength**2)
            part.append(weight @ logs[tables.group[who] == g])
        score = np.log(tables.share) + best_weights(whole, rho.between) @ np.array(part)
        chance = np.exp(score - score.max())
        np.testing.assert_allclose(by_source[item], chance / chance.sum(), atol=1e-9)


def test_joint_probabilities_of_causes_sum_to_those_of_the_answers():
    rng = np.random.default_rng(4)
    table = rng.dirichlet([4, 1, 1], (2, 3)).transpose(0, 2, 1)  # source, answer, class
    wrong = ~np.eye(3, dtype=bool)
    causes = Causes.of(table, wrong, 0.6)
    total = np.zeros(3)
    for first, second in product(range(3), repeat=2):
        counts = np.zeros((2, 3, 1), dtype=np.int64)
        counts[0, first], counts[1, second] = 1, 1
        total += np.exp(causes.joint(counts, np.zeros(2))).sum(axis=(0, 1))
    np.testing.assert_allclose(total, 1.0)


def test_labels_stay_honest_however_many_alike_models_are_added():
    gaps, independent = [], []
    for models in (1, 3, 8):
        found, plain = [], []
        for seed in range(4):
            answers, truth = mixed(seed, models=models, together=0.9, error=0.25)
            learned = ct.learn(answers, gold_of(truth, 100))
            found.append(gap(learned, truth, learned.stated_posterior))
            plain.append(gap(learned, truth, taken_as_independent(learned)))
        gaps.append(np.mean(found))
        independent.append(np.mean(plain))
    assert np.abs(gaps).max() < 0.05
    assert independent[-1] > 0.12


def test_a_model_that_guesses_takes_nothing_from_the_others():
    right = []
    for useless in (0, 6):
        answers, truth = mixed(5, models=2, together=0.0)
        rng = np.random.default_rng(6)
        for m in range(useless):
            more = {
                "task": np.arange(300),
                "worker": np.repeat(f"g{m}", 300),
                "label": np.array(LABELS)[rng.integers(0, 3, 300)],
                "source": np.repeat(f"guess {m}", 300),
            }
            answers = {k: np.concatenate([answers[k], more[k]]) for k in answers}
        learned = ct.learn(answers, gold_of(truth, 100))
        items = learned.answers.tasks.astype(int)
        right.append(np.mean(learned.posterior.argmax(axis=1) == truth[items]))
    assert right[1] > right[0] - 0.02


def test_known_items_say_how_much_sources_err_together():
    alike, apart = (
        ct.learn(answers, gold_of(truth, 250)).problem.source_dependence
        for answers, truth in (mixed(7, together=0.95), mixed(7, together=0.0))
    )
    assert apart < 0.5 < alike


# ---------------------------------------------------------------- errors of sources


def test_agreement_alone_makes_no_source_stronger_than_the_median():
    answers, truth = mixed(5, items=200)
    for gold in (None, gold_of(truth, 60)):
        tables = ct.learn(answers, gold).labelling.tables
        parts = [tables.strength[tables.group == code] for code in np.unique(tables.group)]
        capped = [np.isclose(part, part.max()).mean() >= 0.5 for part in parts]
        assert all(capped) == (gold is None)


@pytest.mark.parametrize("known", [50, 200])
def test_one_good_model_is_not_outvoted_by_many_poor_ones(known):
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 3, 500)
    trap, misled = (truth + 1) % 3, rng.random(500) < 0.4
    said = {"good": np.where(rng.random(500) < 0.03, trap, truth)}
    for m in range(9):
        own = rng.random(500) < 0.15
        said[f"poor {m}"] = np.where(misled ^ own, trap, truth)
    rows = [(i, who, LABELS[row[i]], who) for who, row in said.items() for i in range(500)]
    names = ("task", "worker", "label", "source")
    answers = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    learned = ct.learn(answers, gold_of(truth, known))
    labels = np.array([learned.labels[str(i)] for i in range(known, 500)])
    right = np.mean(labels == np.array(LABELS)[truth[known:]])
    assert right >= 0.955
    assert learned.accuracy.low <= right <= learned.accuracy.high


@pytest.mark.parametrize("models", [2, 8])
def test_without_known_items_the_interval_allows_for_errors_that_all_share(models):
    rng = np.random.default_rng(models)
    truth = rng.integers(0, 3, 400)
    seen = np.where(rng.random(400) < 0.2, (truth + 1) % 3, truth)  # what everybody takes it for
    rows = []
    for w in range(3 + models):
        own = np.where(rng.random(400) < 0.03, (seen + 1) % 3, seen)
        source = "people" if w < 3 else f"model {w}"
        rows += [(i, f"w{w}", LABELS[own[i]], source) for i in range(400)]
    names = ("task", "worker", "label", "source")
    learned = ct.learn(dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)))
    right = np.mean(np.array(list(learned.labels.values())) == np.array(LABELS)[truth])
    assert right < 0.85
    assert learned.accuracy.low <= right <= learned.accuracy.high


def test_an_expert_is_not_drawn_to_laymen():
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 3, 60)
    rows = [(i, "expert", LABELS[truth[i]]) for i in range(60)]
    for w in range(20):
        said = np.where(rng.random(60) < 0.4, rng.integers(0, 3, 60), truth)
        rows += [(i, f"lay {w}", LABELS[said[i]]) for i in range(60)]
    answers = dict(
        zip(("task", "worker", "label"), map(list, zip(*rows, strict=True)), strict=True)
    )
    sources = {who: "expert" if who == "expert" else "people" for who in answers["worker"]}
    learned = ct.learn(answers, gold_of(truth, 60), sources=sources)
    source, worker = learned.sources["expert"], learned.workers["expert"]
    assert (source.kind, source.answers) == ("expert", 60)
    # Jeffreys' interval of none wrong in 60
    from scipy.stats import beta

    assert source.high == pytest.approx(beta.ppf(0.975, 0.5, 60.5), rel=0.05)
    assert (worker.error_low, worker.error_high) == (source.low, source.high)
    assert learned.sources["people"].low > source.high


def test_intervals_of_sources_hold():
    held = []
    for seed in range(12):
        answers, truth = mixed(seed, items=200, together=0.0)
        learned = ct.learn(answers, gold_of(truth, 60))
        held += [source.low <= 0.2 <= source.high for source in learned.sources.values()]
    assert np.mean(held) >= 0.88  # 60 intervals of 95 %: below with a chance of 2 %


# ---------------------------------------------------------------- going on


def test_new_answers_are_taken_in_as_by_the_fit():
    answers, truth = mixed(9)
    first = {k: v[answers["task"] < 280] for k, v in answers.items()}
    later = {k: v[answers["task"] >= 280] for k, v in answers.items()}
    learned = ct.learn(first, gold_of(truth, 80))
    names, posterior = learned.classify(later)
    updated = ct.learn(first, gold_of(truth, 80)).update(later)
    assert updated.labelling is not None
    places = [updated.task_index[name] for name in names]
    np.testing.assert_allclose(updated.stated_posterior[places], posterior, atol=1e-9)
    with pytest.raises(CrowdtreeError, match="source 'other' is not among"):
        learned.update(
            {**{k: v[:1] for k, v in later.items()}, "worker": ["z"], "source": ["other"]}
        )


def test_a_result_is_saved_with_its_sources(tmp_path):
    answers, truth = mixed(10, items=120)
    learned = ct.learn(answers, gold_of(truth, 30))
    learned.save(tmp_path / "learned.json")
    again = ct.load(tmp_path / "learned.json")
    assert again == learned
    assert again.sources == learned.sources
    assert again.answers.to_columns()["source"] == learned.answers.to_columns()["source"]


@pytest.mark.parametrize("known", [1, 3, 60])
def test_few_known_items_are_enough(known):
    answers, truth = mixed(16, items=60)
    learned = ct.learn(answers, gold_of(truth, known))
    assert learned.accuracy.known == known
    assert list(learned.labels.values())[:known] == [LABELS[t] for t in truth[:known]]


def test_models_alone_are_learned_from():
    answers, truth = mixed(17, together=0.0)
    alone = {k: v[np.char.startswith(answers["source"], "model")] for k, v in answers.items()}
    learned = ct.learn(alone)
    items = learned.answers.tasks.astype(int)
    assert np.mean(learned.posterior.argmax(axis=1) == truth[items]) > 0.9
    assert {source.kind for source in learned.sources.values()} == {"model"}


def test_more_known_items_narrow_the_interval():
    answers, truth = mixed(11)
    blind = ct.learn(answers)
    calibrated = blind.calibrate(gold_of(truth, 100))
    widths = [made.accuracy.high - made.accuracy.low for made in (blind, calibrated)]
    assert widths[1] < widths[0] / 2
    assert calibrated.problem.has_sources


# ---------------------------------------------------------------- policies


def test_the_problem_has_the_tables_of_the_sources():
    answers, truth = mixed(12, items=600)
    learned = ct.learn(answers, gold_of(truth, 300))
    problem = learned.problem
    assert [source.name for source in problem.sources] == list(learned.sources)
    assert [source.may_repeat for source in problem.sources] == [True, *[False] * 4]
    error = 1 - np.array([[problem.channel[s, c, 0, c] for c in range(3)] for s in range(5)])
    np.testing.assert_allclose(error.mean(axis=1), 0.2, atol=0.05)


def test_upper_errors_are_the_upper_ends_of_the_sources():
    answers, truth = mixed(18)
    learned = ct.learn(answers, gold_of(truth, 100))
    upper = learned.upper_problem(0.9)
    assert learned.fit.source_rates is not None
    wrong, right = learned.fit.source_rates
    from scipy.stats import beta

    factor = beta.ppf(0.9, wrong, right) * (wrong + right) / wrong
    for place, times in enumerate(factor):
        old, new = (1 - np.diagonal(p.channel[place, :, 0]) for p in (learned.problem, upper))
        np.testing.assert_allclose(new, np.minimum(old * times, 1), atol=1e-9)
    with pytest.raises(CrowdtreeError, match="expected one source of answers"):
        learned.credible_interval(ct.design(ct.example("table1")))


def test_a_policy_of_people_and_models_costs_less_than_people_alone():
    answers, truth = mixed(13, items=600, together=0.5, error=0.15)
    workers = sorted(set(zip(answers["worker"].tolist(), answers["source"].tolist(), strict=True)))
    table = {
        "worker": [w for w, _ in workers],
        "source": [s for _, s in workers],
        "price": [1.0 if s == "people" else 0.05 for _, s in workers],
    }
    learned = ct.learn(answers, gold_of(truth, 200), sources=table)
    values, known = recorded_answers(learned.answers), learned.gold >= 0
    crowd = Recorded(values[~known], truth[learned.answers.tasks.astype(int)][~known])
    cost = {}
    for name, asked in (("people", ["people"]), ("mix", None)):
        policy = learned.policy(0.08, 8, undecided=False, sources=asked)
        run = ct.simulate(policy.problem, policy, 400, crowd=crowd)
        cost[name] = sum(run.cost_per_source().values())
        assert abs(float(run.stated_error) - float(run.misclassification)) < 0.05
    assert cost["mix"] < 0.6 * cost["people"]


def test_a_policy_of_one_question_needs_several_sources():
    answers, _ = mixed(14, items=60)
    answers.pop("source")
    with pytest.raises(CrowdtreeError, match="expected questions about the classes, or several"):
        ct.learn(answers).policy()


def test_recorded_answers_are_those_given():
    answers, _ = mixed(15, items=40)
    read = read_answers(answers)
    values = recorded_answers(read)
    assert values.shape[:3] == (40, 5, 1)
    assert (values >= 0).sum() == read.n_answers
    assert read.sources is not None
    code = read.sources.codes(read.workers)[read.worker]
    for source, label in product(range(5), range(3)):
        said = (code == source) & (read.label == label)
        counted = (values[:, source] == label).sum(axis=(1, 2))
        np.testing.assert_array_equal(counted, np.bincount(read.task[said], minlength=40))


def skilled_people(seed: int, items: int = 120) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Thirty people, a third of whom know the classes, answer every item; three are sources."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, items)
    rows = []
    for w in range(30):
        right = rng.random(items) < (0.9 if w % 3 == 0 else 0.5)
        said = np.where(right, truth, 1 - truth)
        source = f"model {w}" if w in (1, 2, 3) else "people"
        rows += [(i, f"w{w}", LABELS[said[i]], source) for i in range(items)]
    names = ("task", "worker", "label", "source")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)), truth


@pytest.mark.parametrize("known", [0, 20])
def test_sources_are_averaged_with_a_crowd_of_different_skills(known):
    answers, truth = skilled_people(1)
    learned = ct.learn(answers, gold_of(truth, known) or None)
    fit = learned.labelling
    assert isinstance(fit, SourceFit)
    assert fit.crowd is not None
    if not known:
        assert fit.crowd_share == pytest.approx(0.9)
    own = fit.expected(learned.answers)
    open_ = learned.gold < 0
    order = learned.answers.tasks.astype(int)
    right = [
        (posterior.argmax(axis=1) == truth[order])[open_].mean()
        for posterior in (fit.posterior, own, fit.crowd.posterior)
    ]
    assert right[0] >= right[2] - 0.02 > 0.9
    assert right[0] >= right[1] - 0.02
    with pytest.warns(ct.CrowdtreeWarning, match="given twice"):
        learned.update({name: column[:30] for name, column in answers.items()})
    assert learned.labelling is not None
    np.testing.assert_allclose(learned.labelling.posterior[open_], fit.posterior[open_], atol=0.05)
