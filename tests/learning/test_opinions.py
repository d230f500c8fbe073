"""Opinions: exponents recovered, useless ones ignored, shared errors not counted twice, reading."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.learning.opinions.exponents import fit_exponents

PROBLEM = ct.Problem(
    ["a", "b", "c", "d", "e"], [0.4, 0.3, 0.1, 0.1, 0.1], ["q"], [[0, 1, 0, 1, 0]], 0.1
)


def crowd(items, seed, power=1.0, signal=1.5):
    """Items, and exact posteriors of a classifier, whose log ratios are divided by a power."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(5, items, p=PROBLEM.prior)
    seen = rng.normal(size=(items, 5))
    seen[np.arange(items), truth] += signal
    return truth, stated(signal * seen / power)


def stated(log_ratio):
    score = PROBLEM.prior * np.exp(log_ratio)
    return score / score.sum(axis=1, keepdims=True)


def log_loss(priors, truth):
    return float(-np.log(priors[np.arange(len(truth)), truth]).mean())


@pytest.mark.parametrize("power", [0.4, 1.0])
def test_the_exponent_of_overstated_probabilities_is_recovered(power):
    values, inside = [], 0
    for seed in range(30):
        truth, rows = crowd(200, seed, power)
        found = ct.Opinions.fit(rows, truth, PROBLEM).exponents[0]
        values.append(found.value)
        inside += found.low <= power <= found.high
    assert np.mean(values) == pytest.approx(power, rel=0.05)
    assert inside >= 26  # 28.5 expected; fewer has a chance of 2 %


def test_shuffled_probabilities_are_ignored_at_next_to_no_cost():
    ignored = 0
    for seed in range(10):
        truth, rows = crowd(2000, seed, 0.5)
        mixed = np.random.default_rng(seed).permutation(rows)
        for known in (50, 200):
            found = ct.Opinions.fit(mixed[:known], truth[:known], PROBLEM)
            exponent = found.exponents[0]
            ignored += exponent.ignored
            assert exponent.value < 0.15
            assert exponent.low == 0
            priors = found.priors(mixed[known:])
            if exponent.ignored:
                assert priors.tolist() == [PROBLEM.prior.tolist()] * len(priors)
            blind = float(-np.log(PROBLEM.prior[truth[known:]]).mean())
            assert log_loss(priors, truth[known:]) < 1.03 * blind
    assert ignored >= 18  # each of 20 passes with a chance of at least 97.5 %


def test_priors_are_the_formula():
    truth, rows = crowd(100, 1, 0.5)
    found = ct.Opinions.fit(rows, truth, PROBLEM)
    assert found.exponents[0].ignored is False
    expected = PROBLEM.prior * (rows / PROBLEM.prior) ** found.exponents[0].value
    expected /= expected.sum(axis=1, keepdims=True)
    assert found.priors(rows) == pytest.approx(expected)


def test_the_exponent_is_the_likeliest_by_brute_force():
    truth, rows = crowd(80, 2, 0.6)
    ratio = np.log(rows / PROBLEM.prior)
    grid = np.linspace(0, 2, 2001)
    value = [np.log(stated(w * ratio)[np.arange(80), truth]).sum() - w for w in grid]
    powers, top = fit_exponents(np.log(PROBLEM.prior), [ratio], truth)
    assert powers[0] == pytest.approx(grid[np.argmax(value)], abs=0.001)
    assert top == pytest.approx(max(value), abs=1e-3)
    found = ct.Opinions.fit(rows, truth, PROBLEM).exponents[0]
    inside = grid[np.array(value) >= max(value) - 1.9207]
    assert (found.low, found.high) == pytest.approx((inside[0], inside[-1]), abs=0.002)


def test_two_copies_of_a_source_count_once():
    truth, rows = crowd(300, 3)
    alone = ct.Opinions.fit(rows, truth, PROBLEM)
    both = ct.Opinions.fit({"one": rows, "two": rows}, truth, PROBLEM)
    total = sum(row.value for row in both.exponents)
    assert total == pytest.approx(alone.exponents[0].value, abs=0.01)
    fresh = crowd(50, 4)[1]
    expected = alone.priors(fresh)
    assert both.priors({"two": fresh, "one": fresh}) == pytest.approx(expected, abs=0.01)


def test_two_independent_sources_are_multiplied():
    rng = np.random.default_rng(5)
    truth = rng.choice(5, 1000, p=PROBLEM.prior)
    tables = {}
    for name in ("one", "two"):
        seen = rng.normal(size=(1000, 5))
        seen[np.arange(1000), truth] += 1.2
        tables[name] = stated(1.2 * seen)
    found = ct.Opinions.fit(tables, truth, PROBLEM)
    assert [row.value for row in found.exponents] == pytest.approx([1, 1], abs=0.15)


def test_known_priors_do_not_know_the_class_of_their_own_item():
    truth, rows = crowd(60, 6)
    noisy = {"plain": rows, "hard": np.eye(5)[rows.argmax(axis=1)]}
    before = ct.Opinions.fit(noisy, truth, PROBLEM)
    for item in range(3):
        other = truth.copy()
        other[item] = (truth[item] + 1) % 5
        after = ct.Opinions.fit(noisy, other, PROBLEM)
        kinds = [[row.ignored for row in made.exponents] for made in (before, after)]
        assert kinds[0] == kinds[1]
        assert after.known_priors[item].tolist() == before.known_priors[item].tolist()
        assert after.priors(noisy)[item].tolist() != before.priors(noisy)[item].tolist()


def test_items_without_an_opinion_start_from_the_prior():
    truth, rows = crowd(100, 9)
    rows[::3] = np.nan
    found = ct.Opinions.fit(rows, truth, PROBLEM)
    priors = found.priors(rows)
    assert priors[::3].tolist() == [PROBLEM.prior.tolist()] * 34
    assert np.isfinite(priors).all()
    # they do not change the exponent, either
    there = ~np.isnan(rows[:, 0])
    alone = ct.Opinions.fit(rows[there], truth[there], PROBLEM)
    assert alone.exponents[0].value == pytest.approx(found.exponents[0].value, abs=1e-4)
    nothing = ct.Opinions.fit(np.full((100, 5), np.nan), truth, PROBLEM)
    assert nothing.priors(np.full((2, 5), np.nan)).tolist() == [PROBLEM.prior.tolist()] * 2


def test_a_class_that_a_model_does_not_know_keeps_its_odds_without_evidence():
    truth, rows = crowd(100, 10)
    part = rows.copy()
    part[:, 4] = np.nan
    part /= np.nansum(part, axis=1, keepdims=True)
    found = ct.Opinions.fit(part, truth, PROBLEM)
    filled = part * 0.9
    filled[:, 4] = PROBLEM.prior[4]
    assert ct.Opinions.fit(filled, truth, PROBLEM).priors(filled) == pytest.approx(
        found.priors(part)
    )


def test_an_adapter_orders_the_columns():
    class Model:
        classes_ = np.array(["dog", "cat"])

        def predict_proba(self, items):
            return np.tile([0.3, 0.7], (len(items), 1))

    found = ct.opinions_of(Model(), [1, 2], ["cat", "cow", "dog"])
    assert found[:, [0, 2]].tolist() == [[0.7, 0.3]] * 2
    assert np.isnan(found[:, 1]).all()
    for wrong, message in (
        (lambda: ct.opinions_of(3, [1], ["cat"]), "model: expected a fitted model with predict_pr"),
        (lambda: ct.opinions_of(Model(), [1], ["cat"]), "model: 'dog' is not one of the classes"),
    ):
        with pytest.raises(ct.CrowdtreeError) as caught:
            wrong()
        assert str(caught.value).startswith(message)


def test_learned_opinions_make_a_policy_keep_its_target_with_fewer_answers():
    truth, rows = crowd(4200, 11, 0.5)
    rng = np.random.default_rng(11)
    problem = ct.Problem(PROBLEM.classes, PROBLEM.prior, list("pqr"), [
        [0, 1, 0, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]], 0.2)  # fmt: skip
    right = problem.outcome[:, truth].T[:, :, None]
    said = np.where(rng.random((4200, 3, 20)) < 0.2, 1 - right, right)
    opinions = ct.Opinions.fit(rows[:200], truth[:200], problem)
    policy = ct.AdaptivePolicy(problem, 0.05, 20)
    runs = [
        ct.simulate(problem, policy, 4000, crowd=ct.Recorded(said[200:], truth[200:], prior))
        for prior in (None, opinions.priors(rows[200:]))
    ]
    assert runs[1].answers_per_item < 0.85 * runs[0].answers_per_item
    assert runs[1].misclassification.low < 0.05


# ---------------------------------------------------------------- reading

CLASSES = ["cat", "dog", "cow"]


def read(text, kind="csv", classes=CLASSES):
    return ct.load_opinions(text.encode(), classes, kind)


def test_columns_and_cells_say_the_same():
    columns = read("task,text,dog,cow,cat\n1,hello,0.2,0.1,0.7\n2,there,,,\n3,x,50%,20%,30%\n")
    expected = [[0.7, 0.2, 0.1], [np.nan] * 3, [0.3, 0.5, 0.2]]
    assert columns.tasks == ("1", "2", "3")
    assert columns.notes == ()
    np.testing.assert_allclose(columns.probabilities["opinion"], expected)
    cells = [{"dog": 0.2, "cow": 0.1, "cat": 0.7}, None, {"cat": 0.3, "dog": 0.5, "cow": 0.2}]
    lines = [{"task": str(i + 1), "opinion": cell} for i, cell in enumerate(cells)]
    found = read("\n".join(map(json.dumps, lines)), "jsonl")
    np.testing.assert_allclose(found.probabilities["opinion"], expected)
    text = 'task;opinion_cnn;opinion_llm\n1;"{""cat"": 0.8}";"{""dog"": 1}"\n'
    two = read(text).probabilities
    assert sorted(two) == ["cnn", "llm"]
    assert two["cnn"][0] == pytest.approx([0.8, 0.1, 0.1])
    assert two["llm"][0].tolist() == [0, 1, 0]


def test_rows_are_found_by_the_names_of_items():
    table = read("task,cat,dog,cow\nx,1,0,0\ny,0,1,0\n")
    found = table.of(["y", "z", "x"])["opinion"]
    np.testing.assert_array_equal(found, [[0, 1, 0], [np.nan] * 3, [1, 0, 0]])


def test_rows_are_scaled_with_a_note():
    table = read("task,cat,dog,cow\nx,2,1,1\ny,0.333,0.333,0.333\n")
    np.testing.assert_allclose(table.probabilities["opinion"], [[0.5, 0.25, 0.25], [1 / 3] * 3])
    assert table.notes == (
        "opinion: 1 row does not sum to 1 and was scaled, the first one row 0 (sum 4)",
    )
    truth, rows = crowd(30, 1)
    with pytest.warns(ct.CrowdtreeWarning, match="30 rows do not sum to 1 and were scaled"):
        found = ct.Opinions.fit(rows * 100, truth, PROBLEM)
    plain = ct.Opinions.fit(rows, truth, PROBLEM)
    assert found.exponents[0].value == pytest.approx(plain.exponents[0].value)
    assert len(found.notes) == 1
    assert plain.notes == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,text\n1,a\n", "items: expected a column per class (cat, dog, cow), or"),
        ("task,cat,dog\n1,0.5,0.5\n", "items: expected a column per class, but 'cow' has none"),
        ("task,cat,dog,cow\n1,0.5,,0.5\n2,0,1,0\n", "items: row 2: 'dog' is blank beside other"),
        ("task,cat,dog,cow\n1,0.5,-1,0.5\n", "items: row 2: 'dog': expected a probability, got '-"),
        (
            "task,cat,dog,cow\n1,0.5,nan,0.5\n",
            "items: row 2: 'dog': expected a probability, got 'n",
        ),
        ("task,cat,dog,cow\n1,0.5,x,0.5\n", "items: row 2: 'dog': expected a probability, got 'x'"),
        (
            "task,cat,dog,cow\n1,0.5,inf,0.5\n",
            "items: row 2: 'dog': expected a probability, got 'i",
        ),
        ("task,cat,dog,cow\n1,0,0,0\n", "items: row 2: opinion: every class has 0; leave it blank"),
        ("task,cat,dog,cow\n1,1,0,0\n1,1,0,0\n", "items: '1' occurs twice; keep one row of it"),
        ('task;opinion\n1;"{""cot"": 1}"\n', "items: row 2: opinion: 'cot' is not a class; expec"),
        ("task,opinion\n1,cat\n", 'items: row 2: opinion: expected a JSON object such as {"cat'),
        ("task,opinion\n1,[1]\n", 'items: row 2: opinion: expected a JSON object such as {"cat'),
        ("task,cat,dog,cow\n", "items: expected items with opinions, got none"),
    ],
)
def test_bad_files_get_one_line(text, message):
    with pytest.raises(ct.CrowdtreeError) as caught:
        read(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "truth", "message"),
    [
        ([[0.5, 0.5]], ["a"], "probabilities: expected items x 5 classes, got shape (1, 2)"),
        ([["x"] * 5], ["a"], "probabilities: expected probabilities, items x classes"),
        ([[-1, 1, 1, 0, 0]], ["a"], "probabilities: row 0, class 'a': expected a probability, g"),
        ([[np.inf, 1, 1, 0, 0]], ["a"], "probabilities: row 0, class 'a': expected a probabil"),
        ([[0, 0, 0, 0, 0]], ["a"], "probabilities: row 0 is 0 throughout; leave it blank"),
        ([[0.2] * 5], ["a", "b"], "truth: expected one class per item (1), got 2"),
        ([[0.2] * 5], ["x"], "truth: 'x' is not a class of the problem"),
        (np.zeros((0, 5)), [], "truth: expected items of known class, got none"),
        ({}, ["a"], "probabilities: expected one source or more, got none"),
        ({"x": [[0.2] * 5], "y": [[0.2] * 5] * 2}, ["a"], "probabilities: expected as many item"),
    ],
)
def test_bad_probabilities_get_one_line(rows, truth, message):
    with pytest.raises(ct.CrowdtreeError) as caught:
        ct.Opinions.fit(rows, truth, PROBLEM)
    assert str(caught.value).startswith(message)


def test_few_items_are_warned_of_and_sources_must_be_the_same():
    truth, rows = crowd(10, 1)
    with pytest.warns(ct.CrowdtreeWarning, match="opinions: 10 items of known class; below 20"):
        found = ct.Opinions.fit({"cnn": rows}, truth, PROBLEM)
    with pytest.raises(ct.CrowdtreeError, match="expected the sources cnn, got opinion"):
        found.priors(rows)
    assert found.to_dict()["items"] == 10
    assert repr(found).startswith("Opinions(10 known items; cnn: ")


def test_a_stream_is_read():
    stream = io.BytesIO(b"task,cat,dog,cow\nx,1,0,0\n")
    assert ct.load_opinions(stream, CLASSES, "csv").tasks == ("x",)
