"""Estimators with the interface of scikit-learn, which has to be installed.

:class:`CrowdClassifier` labels items from answers to yes/no questions; :class:`CrowdLabeller` turns
the labels that several workers gave to each item into one.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.arrays import BoolArray, FloatArray
from crowdtree.core.errors import CrowdtreeError, needing, one_line
from crowdtree.learning import learn
from crowdtree.learning.model import Learned
from crowdtree.policies.calibrating import Calibrated

with needing("estimators: scikit-learn", "sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data


class CrowdClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Label items from answers to yes/no questions, reading as few of them as the target takes.

    ``fit`` learns how often each question is answered yes about each class. ``predict`` follows the
    adaptive policy: it looks at the answers of an item one by one, in the order in which the policy
    would ask, and stops at the target error; ``count_answers`` says how many it looks at.

    Parameters
    ----------
    policy
        A policy to use in place of a learned one; ``fit`` then calibrates it on the items.
    target_error
        Error at which an item is labelled; 0 uses all answers.
    max_answers
        Most answers per item.
    threshold
        Values above this are yes. Missing answers are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["bird", "fish", "frog"], 40)
    >>> right = np.repeat([[1, 0, 0], [0, 1, 0], [0, 1, 1]], 40, axis=0)
    >>> X = np.where(rng.random(right.shape) < 0.1, 1 - right, right)  # one answer in ten is wrong
    >>> model = CrowdClassifier(target_error=0).fit(X, y)
    >>> model.predict([[1, 0, 0], [0, 1, 1]]).tolist()
    ['bird', 'frog']
    """

    def __init__(
        self,
        policy: Calibrated | None = None,
        *,
        target_error: float = 0.05,
        max_answers: int = 100,
        threshold: float = 0.5,
    ) -> None:
        self.policy = policy
        self.target_error = target_error
        self.max_answers = max_answers
        self.threshold = threshold

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from the answers (items x questions) about items of known class."""
        X, y = validate_data(self, X, y, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise CrowdtreeError(
                f"y: expected items of two classes or more, got one class ({self.classes_[0]!r})"
            )
        values = self._answers(X)
        if self.policy is not None:
            self._check(self.policy, values.shape[1])
            self.policy_ = self.policy.calibrate(values, codes)
        else:
            learned = _learn_table(values, codes, len(self.classes_))
            self.policy_ = learned.policy(self.target_error, self.max_answers, repeats=1)
        return self

    def _check(self, policy: Any, questions: int) -> None:
        if not isinstance(policy, Calibrated):
            raise CrowdtreeError(
                f"policy: expected a policy such as AdaptivePolicy, got {one_line(policy)}; "
                "options are named, such as target_error=0.05"
            )
        problem = policy.problem
        names = tuple(str(name) for name in self.classes_)
        if problem.classes != names or problem.n_questions != questions:
            raise CrowdtreeError(
                f"policy: is for the classes {problem.classes} and {problem.n_questions} "
                f"questions; the data have {names} and {questions}. Classes must be sorted"
            )

    def _answers(self, X: FloatArray) -> NDArray[np.int8]:
        return np.where(np.isnan(X), -1, self.threshold < X).astype(np.int8)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label each item."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> FloatArray:
        """Stated probability of each class (columns, as in ``classes_``) for each item."""
        end = self._end(X)
        return np.asarray(np.exp(self.policy_.stated(end.log_posterior, end.answers)))

    def count_answers(self, X: Any) -> NDArray[np.int64]:
        """Count the answers that ``predict`` looks at, for each item."""
        return np.asarray(self._end(X).answers)

    def _end(self, X: Any) -> Any:
        """State of each item when it is labelled."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, ensure_all_finite="allow-nan")
        values = self._answers(X)[:, :, None]
        return self.policy_.end(values)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.poor_score = True  # on measurements that are cut into yes and no
        return tags


def _learn_table(values: NDArray[np.int8], codes: NDArray[np.intp], classes: int) -> Learned:
    """Learn the table of yes/no questions, each row of answers taken as one person's."""
    item, question = np.nonzero(values >= 0)
    if not len(item):
        raise CrowdtreeError("X: expected answers, got missing values only")
    answers = {
        "task": item,
        "question": [f"q{place:05}" for place in question],
        "worker": item,
        "label": values[item, question].astype(np.int64),
    }
    names = [f"c{code:05}" for code in range(classes)]
    return learn(answers, {str(i): names[code] for i, code in enumerate(codes)}, classes=names)


class CrowdLabeller(BaseEstimator):  # type: ignore[misc]
    """Turn the labels that several workers gave to each item into one label per item.

    ``X`` has one row per item and one column per worker: a label in each cell, NaN, None or an
    empty text where a worker did not label the item. Known labels may be given as ``y``, with the
    same marks for unknown ones.

    Parameters
    ----------
    method
        ``"ensemble"``, ``"dawid-skene"`` or ``"majority"``, as in :func:`crowdtree.learn`.

    Attributes
    ----------
    labels_
        Label of each item: text or numbers, as in ``X``.
    probabilities_
        Stated probability of each class (columns, as in ``classes_``) for each item.
    learned_
        All that was learned (:class:`crowdtree.Learned`).

    Examples
    --------
    >>> X = [["cat", "cat", "dog"], ["dog", "dog", "dog"], ["cat", "cat", ""], ["dog", "dog", ""]]
    >>> CrowdLabeller().fit_predict(X).tolist()
    ['cat', 'dog', 'cat', 'dog']
    """

    def __init__(self, method: str = "ensemble") -> None:
        self.method = method

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn workers and labels."""
        cells = np.asarray(X, dtype=object)
        if cells.ndim != 2:
            raise CrowdtreeError(f"X: expected items x workers, got {cells.ndim} dimensions")
        given = _given(cells)
        item, worker = np.nonzero(given)
        if not len(item):
            raise CrowdtreeError("X: expected labels, got missing values only")
        answers = {"task": item, "worker": worker, "label": [_name(v) for v in cells[given]]}
        values = {_name(v): v for v in cells[given].tolist()}
        gold = None
        if y is not None:
            known = np.asarray(y, dtype=object)
            if known.shape != (len(cells),):
                raise CrowdtreeError(
                    f"y: expected one label per item ({len(cells)}), got {known.shape}"
                )
            gold = {str(i): _name(known[i]) for i in np.flatnonzero(_given(known)).tolist()}
            values = {_name(v): v for v in known[_given(known)].tolist()} | values
        self.n_features_in_ = cells.shape[1]
        self.learned_ = learn(answers, gold or None, method=self.method)
        self.classes_ = np.array([values[name] for name in self.learned_.classes])
        answered = self.learned_.answers.tasks.astype(np.int64)
        shape = (len(cells), len(self.classes_))
        self.probabilities_ = np.broadcast_to(self.learned_.problem.prior, shape).copy()
        self.probabilities_[answered] = self.learned_.stated_posterior
        self.labels_ = self.classes_[np.argmax(self.probabilities_, axis=1)]
        return self

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[Any]:
        """Learn, and return the label of each item."""
        return np.asarray(self.fit(X, y).labels_)


def _name(label: Any) -> str:
    """Name of a label; numbers that a missing value turned into floats keep their names."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _given(cells: NDArray[Any]) -> BoolArray:
    """Which cells hold a label."""
    flat = [not (v is None or v != v or v == "") for v in cells.ravel().tolist()]
    return np.array(flat, dtype=bool).reshape(cells.shape)
