"""What is stated: maps of crowds, intervals of the accuracy, and the difference estimator."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, norm

from crowdtree.learning import learn
from crowdtree.learning.judging import Judge, difference_interval, interval_of_mean
from crowdtree.learning.stating import PRIOR, CrowdMap, split_labels
from tests.learn_crowds import labelled, one_question

COUNT = np.zeros(1)  # maps do not look at the number of answers


def posterior_of(x, k=2):
    top = expit(x)
    return np.column_stack([top, *[(1 - top) / (k - 1)] * (k - 1)])


@pytest.mark.parametrize("pairs", [0, 1, 500])
@pytest.mark.parametrize("known", [0, 3, 400])
def test_weights_of_the_grid_are_a_distribution(pairs, known):
    rng = np.random.default_rng(0)
    crowd = CrowdMap(3, pairs).updated(
        posterior_of(rng.normal(1, 2, known), 3), COUNT, rng.integers(0, 3, known)
    )
    assert crowd.grid.weight.sum() == pytest.approx(1)
    assert (crowd.grid.weight >= 0).all()
    assert (crowd.grid.b >= 0).all()
    stated = crowd.stated(posterior_of(np.linspace(-1, 12, 40), 3), COUNT)
    assert stated.sum(axis=1) == pytest.approx(1)
    assert (np.diff(crowd.stated_right(np.linspace(-8, 8, 50))) >= -1e-12).all()


def test_the_grid_holds_the_whole_of_the_prior():
    """Its mean and covariance are those of a grid that is wider and finer."""
    crowd = CrowdMap(2, 1e9)
    a, log_b = crowd.grid.a, np.log(crowd.grid.b)
    points = np.random.default_rng(1).multivariate_normal([0, 0], PRIOR.scale, 200_000)
    free = np.random.default_rng(2).chisquare(PRIOR.freedom, 200_000) / PRIOR.freedom
    draws = np.array(PRIOR.mean) + points / np.sqrt(free)[:, None]
    for node, drawn in ((a, draws[:, 0]), (log_b, draws[:, 1])):
        mean = crowd.grid.weight @ node
        assert mean == pytest.approx(drawn.mean(), abs=0.02)
        variance = crowd.grid.weight @ (node - mean) ** 2
        assert variance == pytest.approx(drawn.var(), rel=0.06)


@pytest.mark.parametrize(("a", "b"), [(-1.0, 0.3), (0.5, 1.0), (2.0, 0.2)])
def test_many_known_items_lead_to_the_observed_shares(a, b):
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 6, 5000)
    truth = (rng.random(5000) > expit(a + b * x)).astype(int)
    crowd = CrowdMap(2, 100).updated(posterior_of(x), COUNT, truth)
    for low in range(6):
        here = (x >= low) & (x < low + 1)
        share = np.mean(truth[here] == 0)
        assert crowd.stated_right(x[here]).mean() == pytest.approx(share, abs=0.05)


SLOW = pytest.mark.slow


@pytest.mark.parametrize("known", [pytest.param(0, marks=SLOW), 20, pytest.param(200, marks=SLOW)])
def test_intervals_of_the_accuracy_hold_on_crowds_of_the_prior(known):
    rng = np.random.default_rng([4, known])
    held, widths, draws = 0, [], 200
    for _ in range(draws):
        free = rng.chisquare(PRIOR.freedom) / PRIOR.freedom
        a, log_b = PRIOR.mean + rng.multivariate_normal([0, 0], PRIOR.scale) / np.sqrt(free)
        x = np.clip(rng.gamma(2, 1.2, 600), 0, 8)
        right = rng.random(600) < expit(a + np.exp(log_b) * x)
        posterior = posterior_of(x)
        crowd = CrowdMap(2, 1e6).updated(
            posterior[:known], COUNT, (~right[:known]).astype(np.int64)
        )
        rest = posterior[known:]
        made = Judge().decide(rest, rest)
        value, low, high = crowd.judged(rest, COUNT, 0.95, Judge(), made)
        assert low <= value <= high
        held += low <= right[known:].mean() <= high
        widths.append(high - low)
    least, most = binom.ppf([0.0005, 0.9995], draws, [0.94, 0.985])
    assert least <= held <= most
    assert np.mean(widths) < {0: 0.8, 20: 0.4, 200: 0.15}[known]


@pytest.mark.parametrize("gold", [0, 1, 40])
@pytest.mark.parametrize("labels", [2, 4])
def test_the_accuracy_is_the_mean_of_what_items_state(gold, labels):
    crowd = labelled(np.random.default_rng([5, labels]), 150, 20, 5, labels=labels)
    known = dict(list(crowd.gold.items())[:gold]) or None
    learned = learn(crowd.answers, known, classes=[str(k) for k in range(labels)])
    asked = [task for task in learned.labels if task not in (known or {})]
    place = {name: i for i, name in enumerate(learned.classes)}
    stated = [learned.item(task)[place[learned.labels[task]]] for task in asked]
    assert learned.accuracy.value == pytest.approx(np.mean(stated), abs=1e-9)
    assert learned.label_columns()["probability"] == pytest.approx(
        [learned.item(t)[place[label]] for t, label in learned.labels.items()]
    )


def test_the_accuracy_after_calibration_and_updates_is_that_of_the_items():
    crowd = one_question(np.random.default_rng(6), 120, 15, 5)
    learned = learn(crowd.answers).calibrate(dict(list(crowd.gold.items())[:30]))
    learned.update({"task": ["0", "new"], "worker": ["x", "x"], "label": [1, 0]})
    stated = [learned.item(task)[int(label)] for task, label in learned.labels.items()]
    assert learned.accuracy.value == pytest.approx(np.mean(stated), abs=1e-9)


def test_the_difference_interval_by_hand():
    gap, weight = np.array([0.1, -0.3, 0.2, 0.2]), np.array([1.0, 2.0, 1.0, 1.0])
    mean, low, high = difference_interval(0.7, gap, weight, 0.02, 0.9, 1.0)
    shift = (0.1 - 0.6 + 0.2 + 0.2) / 5
    square = 0.01 + 0.18 + 0.04 + 0.04
    half = norm.ppf(0.95) * np.sqrt((square + 0.25) / 6 / 5 + 0.02**2)
    assert mean == pytest.approx(0.7 + shift)
    assert (low, high) == pytest.approx((0.7 + shift - half, 0.7 + shift + half))
    assert difference_interval(0.95, np.full(9, 0.2), np.ones(9), 0.0, 0.95, 1.0)[0] == 1


def test_the_interval_of_a_mean_under_one_belief_is_that_of_its_noise():
    value, low, high = interval_of_mean(np.array([0.6]), 0.1, np.ones(1), 0.9)
    assert value == 0.6
    assert (low, high) == pytest.approx((0.6 - 0.1645, 0.6 + 0.1645), abs=0.04)


def test_labels_are_split_and_joined_again():
    posterior = np.random.default_rng(7).dirichlet(np.ones(5), 40)
    split = split_labels(posterior)
    again = split.joined(posterior.max(axis=1))
    assert again == pytest.approx(posterior, abs=1e-9)
    assert split.rest.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("labels", [2, 4, 10])
def test_one_answer_per_item_is_from_chance_to_certain(labels):
    rng = np.random.default_rng(8)
    answers = {"task": np.arange(400), "worker": rng.integers(0, 20, 400),
               "label": rng.integers(0, labels, 400)}  # fmt: skip
    learned = learn(answers)
    found, chance = learned.accuracy, 1 / labels
    assert found.value == pytest.approx(PRIOR.answer, abs=0.01)
    assert found.low < chance + 0.08
    assert found.high > 0.95
    truth = np.where(rng.random(400) < 0.8, answers["label"], (answers["label"] + 1) % labels)
    checked = learned.calibrate({str(i): str(truth[i]) for i in range(100)}).accuracy
    right = np.mean(truth == answers["label"])
    assert checked.low <= right <= checked.high
    assert checked.high - checked.low < 0.25
