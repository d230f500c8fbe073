"""From answers of real people to labels of new items, and classifiers of the same answers.

``python -m benchmarks.learn_end_to_end [leuven apascal soybean] --json FILE``; ``learn_docs.py``
writes the page and the figures from the JSON.

``learn`` turns the training answers into a problem; new items are asked by a designed tree, by the
plan of the frontier, and adaptively, with and without sub-types of the classes (found among the
training answers). Trees of classes label by their leaf; trees of sub-types ask, and the likeliest
class given the answers is the label. Items have one answer per question, so nodes have one vote.
Peers on the same answers: a scikit-learn decision tree as deep as the answers it may ask for, and
a logistic regression that is given the answers to its best questions (recursive elimination on the
training items). A missing answer costs nothing: it is left out (ours; a tree guesses it), known as
missing (their tree), or replaced by the mean of its question (the regression).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import crowdtree as ct
from benchmarks.learn_sets import SETS, Split, long
from benchmarks.realdata import folder
from crowdtree.core.problem import check_names
from crowdtree.learning import learn
from crowdtree.learning.subtypes import Subtypes
from crowdtree.policies import AdaptivePolicy, SubtypePolicy

BUDGETS = (3, 5, 10, 20, 40)
TARGET = 0.01  # the adaptive policies stop when their label is this sure, as they do by default
Made = dict[str, tuple[np.ndarray, np.ndarray]]  # (budget, item): the label, the answers it took


def adaptive(policy: AdaptivePolicy, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels after each budget of answers; at most one answer per question.

    All items at once by the policy's own choice: ``policy.ask`` for one item after the other gives
    the same (tests/learning/test_subtypes.py).
    """
    items = np.arange(len(values))
    log_posterior = np.tile(policy.start().log_posterior, (len(values), 1))
    gone = values < 0
    taken = np.zeros(len(values), int)
    labels, answers = [], []
    for step in range(1, max(BUDGETS) + 1):
        posterior = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        asked = policy.choose(posterior, None, max(BUDGETS) - step + 1, gone)
        by_class = np.exp(policy.by_class(np.log(np.maximum(posterior, 1e-300))))
        open_ = (asked >= 0) & (1 - by_class.max(axis=1) > policy.target_error)
        here, question = items[open_], asked[open_]
        log_posterior[here] += policy.model.logs[values[here, question], question]
        gone[here, question] = True
        taken[here] += 1
        if step in BUDGETS:
            labels.append(policy.by_class(log_posterior).argmax(axis=1))
            answers.append(taken.copy())
    return np.array(labels), np.array(answers)


def by_tree(
    tree: ct.Tree, policy: AdaptivePolicy, values: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Labels of a tree with one answer per node.

    By its leaf; where the walk is cut short, or the policy knows sub-types, the likeliest class
    given the answers. A missing answer is replaced by the likelier one under the posterior so far.
    """
    made, taken = [], []
    for row in values:
        node, asked, belief = 0, 0, policy.start().log_posterior.copy()
        while node >= 0 and asked < most:
            question = int(tree.question[node])
            answer = int(row[question])
            if answer >= 0:
                asked += 1
                belief += policy.model.logs[answer, question]
            else:
                chance = np.exp(belief - belief.max())
                answer = int(chance @ policy.model.yes[question] > chance.sum() / 2)
            node = int(tree.children[node, answer])
        taken.append(asked)
        leaf = node < 0 and not isinstance(policy, SubtypePolicy)
        made.append(tree.leaf_label[~node] if leaf else policy.by_class(belief).argmax())
    return np.array(made), np.array(taken)


def trees(problem: ct.Problem, policy: AdaptivePolicy, values: np.ndarray) -> Made:
    """The designed tree, and the frontier's plan of at most the answers, of a problem."""
    tree = ct.design(problem, allow_groups=True)
    front = ct.frontier(problem, max_votes=1, allow_groups=True, time_limit=20)
    cheapest = front[0].expected_answers
    plans = [front.plan_for(answers=max(b, cheapest * 1.0001)) for b in BUDGETS]
    return {
        "design": _stack(by_tree(tree, policy, values, b) for b in BUDGETS),
        "frontier": _stack(
            by_tree(plan.tree, policy, values, b) for plan, b in zip(plans, BUDGETS, strict=True)
        ),
    }


def _stack(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    labels, answers = zip(*parts, strict=True)
    return np.array(labels), np.array(answers)


def ours(split: Split) -> tuple[Made, Subtypes, tuple[str, ...]]:
    """Every method of crowdtree to ask about and label the test items of a split."""
    gold = {str(i): name for i, name in enumerate(split.truth)}
    learned = learn(long(split.train, split.questions, split.workers), gold)
    subtypes = learned.subtypes()
    problem = learned.problem
    asked = check_names(split.questions, "questions", at_least=1)
    values = split.test[:, [asked.index(name) for name in problem.questions]]
    options: dict[str, Any] = {"target_error": TARGET, "max_answers": max(BUDGETS), "endgame": 0}
    plain = AdaptivePolicy(problem, table=learned.table[1], strict=False, **options)
    kinds: SubtypePolicy = subtypes.policy(**options)
    made: Made = trees(problem, plain, values)
    fine = trees(subtypes.as_problem(), kinds, values)
    made |= {f"{name}, sub-types": result for name, result in fine.items()}
    made["adaptive"] = adaptive(plain, values)
    made["adaptive, sub-types"] = adaptive(kinds, values)
    return made, subtypes, problem.classes


def peers(split: Split, classes: tuple[str, ...]) -> Made:
    """Classifiers of scikit-learn, trained on the same answers."""
    from sklearn.feature_selection import RFE
    from sklearn.tree import DecisionTreeClassifier

    code = {name: i for i, name in enumerate(classes)}
    y = np.array([code[name] for name in split.truth])
    made: Made = {}
    holes = [np.where(v < 0, np.nan, v) for v in (split.train, split.test)]
    deep = []
    for budget in BUDGETS:
        tree = DecisionTreeClassifier(max_depth=budget, random_state=0).fit(holes[0], y)
        way = np.asarray(tree.decision_path(holes[1]).sum(axis=1)).ravel() - 1
        deep.append((tree.predict(holes[1]), way))
    made["scikit-learn tree"] = _stack(deep)
    # replace a missing answer by the mean of its question
    mean = np.nanmean(holes[0], axis=0)
    full = [np.where(np.isnan(v), mean, v) for v in holes]
    kept = np.arange(full[0].shape[1])
    found = {}
    for budget in sorted(BUDGETS, reverse=True):
        step = max(1, (len(kept) - budget) // 2)
        best = RFE(_regression(), n_features_to_select=budget, step=step)
        kept = kept[best.fit(full[0][:, kept], y).support_]
        model = _regression().fit(full[0][:, kept], y)
        found[budget] = model.predict(full[1][:, kept]), (split.test[:, kept] >= 0).sum(axis=1)
    made["logistic regression"] = _stack(found[b] for b in BUDGETS)
    label = _regression().fit(full[0], y).predict(full[1])
    asked = (split.test >= 0).sum(axis=1)
    made["logistic regression, all answers"] = _stack([(label, asked)] * len(BUDGETS))
    return made


def _regression() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=2000)


def compare(name: str, splits: Iterable[Split]) -> dict[str, Any]:
    """Accuracy of every method in every fold, and the answers it took."""
    right: dict[str, list[list[float]]] = {}
    asked: dict[str, list[list[float]]] = {}
    sizes = []
    start = time.process_time()
    for split in splits:
        made, subtypes, classes = ours(split)
        sizes.append(len(subtypes.label))
        made |= peers(split, classes)
        wanted = np.array([classes.index(label) for label in split.wanted])
        for method, (label, answers) in made.items():
            right.setdefault(method, []).append((label == wanted).mean(axis=1).tolist())
            asked.setdefault(method, []).append(answers.mean(axis=1).tolist())
    found = {"budgets": BUDGETS, "right": right, "asked": asked, "subtypes": sizes,
             "classes": len(classes), "cpu": time.process_time() - start}  # fmt: skip
    show(name, found)
    return found


def show(name: str, found: dict[str, Any]) -> None:
    print(f"\n{name}: accuracy in % ± standard error over folds (answers taken); "
          f"{np.mean(found['subtypes']):.0f} sub-types, "
          f"{found['cpu']:.0f} s of processor")  # fmt: skip
    print(f"{'answers per item, at most':34}" + "".join(f"{b:>19}" for b in BUDGETS))
    for method, parts in found["right"].items():
        mean, error, answers = summary(parts, found["asked"][method])
        cells = [f"{100 * m:.1f} ± {100 * s:.1f} ({a:.1f})"
                 for m, s, a in zip(mean, error, answers, strict=True)]  # fmt: skip
        print(f"{method:34}" + "".join(f"{cell:>19}" for cell in cells), flush=True)


def summary(
    right: list[list[float]], asked: list[list[float]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean over the folds, its standard error, and the mean of the answers taken."""
    table = np.array(right)
    error = table.std(axis=0, ddof=1) / np.sqrt(len(table))
    return table.mean(axis=0), error, np.array(asked).mean(axis=0)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    place = folder()
    if place is None:
        raise SystemExit("set CROWDTREE_DATA to the folder of the real sets")
    found = {name: compare(name, SETS[name](place)) for name in given.sets}
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
