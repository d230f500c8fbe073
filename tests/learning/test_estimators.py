"""Estimators with the interface of scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import crowdtree as ct

RIGHT = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 1, 0]])
NAMES = np.array(["bird", "fish", "frog"])


def answers(items: int, error: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    code = rng.integers(3, size=items)
    wrong = rng.random((items, 4)) < error
    return np.where(wrong, 1 - RIGHT[code], RIGHT[code]), NAMES[code]


@pytest.mark.slow
def test_the_classifier_passes_the_checks_of_scikit_learn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(ct.CrowdClassifier(), on_skip=None)


def test_the_classifier_is_as_good_as_the_questions_allow():
    known, truth = answers(300)
    fresh, other = answers(2000, seed=1)
    model = ct.CrowdClassifier(target_error=0).fit(known, truth)
    problem = ct.Problem(NAMES, None, list("abcd"), RIGHT.T, 0.1)
    codes = np.searchsorted(NAMES, other)
    best = ct.simulate(
        problem,
        ct.AdaptivePolicy(problem, 0, repeats=1),
        items=2000,
        crowd=ct.Recorded(fresh, codes),
    )
    assert model.score(fresh, other) > 1 - best.misclassification - 0.02
    proba = model.predict_proba(fresh)
    assert proba.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(model.classes_[proba.argmax(axis=1)], model.predict(fresh))


def test_a_target_reads_fewer_answers():
    known, truth = answers(300)
    model = ct.CrowdClassifier(target_error=0.2).fit(known, truth)
    assert model.count_answers(known).mean() < 4
    assert set(ct.CrowdClassifier(target_error=0).fit(known, truth).count_answers(known)) == {4}


def test_missing_answers_are_not_read():
    known, truth = answers(200)
    holes = known.astype(float)
    holes[:, 2] = np.nan
    model = ct.CrowdClassifier(target_error=0).fit(known, truth)
    assert set(model.count_answers(holes)) == {3}


def test_a_policy_is_calibrated_on_the_items():
    known, truth = answers(200)
    problem = ct.Problem(NAMES, None, list("abcd"), RIGHT.T, 0.1)
    policy = ct.AdaptivePolicy(problem, 0.05, repeats=1, strict=False)
    model = ct.CrowdClassifier(policy).fit(known, truth)
    assert model.policy_.calibration != policy.calibration
    assert model.score(known, truth) > 0.8
    with pytest.raises(ct.CrowdtreeError, match="the data have"):
        ct.CrowdClassifier(policy).fit(known[:, :3], truth)


def test_cross_validation_works():
    assert cross_val_score(ct.CrowdClassifier(target_error=0), *answers(120), cv=3).mean() > 0.7


def test_labels_of_workers_become_one():
    rng = np.random.default_rng(2)
    truth = rng.choice(["cat", "dog"], 60)
    other = np.where(truth == "cat", "dog", "cat")
    said = np.where(rng.random((60, 7)) < 0.15, other[:, None], truth[:, None]).astype(object)
    said[rng.random(said.shape) < 0.3] = np.nan
    model = ct.CrowdLabeller().fit(said)
    assert (model.labels_ == truth).mean() > 0.9
    assert model.probabilities_.shape == (60, 2)
    with_known = ct.CrowdLabeller().fit(said, np.where(np.arange(60) < 20, truth, ""))
    assert (with_known.labels_[:20] == truth[:20]).all()
    assert np.array_equal(
        ct.CrowdLabeller("majority").fit_predict(said),
        ct.CrowdLabeller("majority").fit(said).labels_,
    )


@pytest.mark.parametrize(
    ("cells", "known", "message"),
    [
        ([1, 2], None, "items x workers"),
        ([[None, None]], None, "missing values only"),
        ([["a", "b"], ["b", "a"]], ["a"], "one label per item"),
    ],
)
def test_bad_labels_are_refused(cells, known, message):
    with pytest.raises(ct.CrowdtreeError, match=message):
        ct.CrowdLabeller().fit(cells, known)


def test_numbers_stay_numbers():
    cells = np.array([[1, 1, 2], [2, 2, 2], [1, np.nan, 1], [2, 2, np.nan]] * 5)
    model = ct.CrowdLabeller("majority").fit(cells, [1, None, None, 2] * 5)
    assert model.labels_.tolist() == [1, 2, 1, 2] * 5
    assert model.classes_.tolist() == [1, 2]


def test_options_of_the_classifier_are_named():
    with pytest.raises(ct.CrowdtreeError, match="options are named"):
        ct.CrowdClassifier(0.05).fit([[0, 1], [1, 0]] * 5, ["a", "b"] * 5)
