"""From answers of real people to labels of new items, beside classifiers of the same answers.

``python benchmarks/learn_end_to_end.py DATA_FOLDER [leuven apascal soybean] [--items N]``

``learn`` turns the training answers into a problem; the adaptive policy asks a held-out item one
question at a time. Peers: a scikit-learn decision tree whose depth is the number of answers it may
ask for, and a logistic regression that is given all answers.
"""

import argparse
import csv
import gzip
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import crowdtree as ct
from crowdtree.learn import learn
from crowdtree.policy import AdaptivePolicy, Answer, Ask

BUDGETS = (3, 5, 10, 20, 40)


def long(values: np.ndarray, questions: list[str], workers: np.ndarray) -> pl.DataFrame:
    """Rows of (item, question, worker, answer); a missing answer is left out."""
    item, question = np.nonzero(values >= 0)
    return pl.DataFrame(
        {
            "task": item,
            "question": np.array(questions)[question],
            "worker": workers[item],
            "label": values[item, question],
        }
    )


def adaptive(learned, names: list[str], values: np.ndarray, budgets: tuple[int, ...]) -> np.ndarray:
    """Labels after each budget of answers, (budget, item); at most one answer a question."""
    problem = learned.problem
    policy = AdaptivePolicy(
        problem, target_error=0.0, max_answers=max(budgets), repeats=1, strict=False,
        yes_probability=learned.yes_rate, endgame=0,
    )  # fmt: skip
    place = [names.index(name) for name in problem.questions]
    made = np.full((len(budgets), len(values)), -1)
    for i, row in enumerate(values[:, place]):
        state, given = policy.start(), 0
        missing = set(np.flatnonzero(row < 0).tolist())
        marks = dict.fromkeys(budgets, None)
        while given < max(budgets):
            ask = policy.ask(state, exclude=missing)
            if not isinstance(ask, Ask) or not ask.questions:
                break
            state = policy.update(state, Answer(ask.questions[0], int(row[ask.questions[0]])))
            given += 1
            if given in marks:
                marks[given] = int(np.argmax(policy.posterior(state)))
        last = int(np.argmax(policy.posterior(state)))
        made[:, i] = [last if marks[b] is None else marks[b] for b in budgets]
    return made


def tree_walk(learned, names: list[str], values: np.ndarray) -> tuple[np.ndarray, float]:
    """Labels of the designed tree with one answer a node, and the answers it took."""
    problem = learned.problem
    tree = ct.design(problem, allow_groups=True)
    place = [names.index(name) for name in problem.questions]
    made, asked = [], 0
    for row in values[:, place]:
        node = 0
        while node >= 0:
            answer = row[tree.question[node]]
            asked += 1
            node = int(tree.children[node, max(0, int(answer))])
        made.append(int(tree.leaf_label[~node]))
    return np.array(made), asked / len(values)


def folds(truth: np.ndarray, count: int, seed: int = 0) -> list[np.ndarray]:
    """Folds that keep the shares of the classes."""
    rng = np.random.default_rng(seed)
    fold = np.empty(len(truth), int)
    for cls in np.unique(truth):
        mine = rng.permutation(np.flatnonzero(truth == cls))
        fold[mine] = np.arange(len(mine)) % count
    return [np.flatnonzero(fold == k) for k in range(count)]


def compare(title: str, splits, budgets: tuple[int, ...] = BUDGETS) -> None:
    """Print accuracy against answers; `splits` yields train and test parts."""
    rows: dict[str, list[np.ndarray]] = {}
    tree_answers = []
    for names, train, workers, truth, test, wanted in splits:
        classes = sorted(set(truth))
        gold = {str(i): name for i, name in enumerate(truth)}
        learned = learn(long(train, names, workers), gold)
        code = {name: i for i, name in enumerate(learned.classes)}
        target = np.array([code[name] for name in wanted])
        made = adaptive(learned, names, test, budgets)
        rows.setdefault("crowdtree adaptive", []).append(made == target)
        posterior = learned.classify(long(test, names, np.full(len(test), "new")))[1]
        rows.setdefault("crowdtree, all answers", []).append(
            np.tile(posterior.argmax(axis=1) == target, (len(budgets), 1))
        )
        label, answers = tree_walk(learned, names, test)
        tree_answers.append(answers)
        rows.setdefault("crowdtree tree", []).append(np.tile(label == target, (len(budgets), 1)))
        filled, filled_test = np.maximum(train, 0), np.maximum(test, 0)
        y = np.array([classes.index(name) for name in truth])
        t = np.array([classes.index(name) for name in wanted])
        by_depth = [
            DecisionTreeClassifier(max_depth=b, random_state=0).fit(filled, y).predict(filled_test)
            for b in budgets
        ]
        rows.setdefault("scikit-learn tree", []).append(np.array(by_depth) == t)
        model = LogisticRegression(max_iter=2000).fit(filled, y)
        rows.setdefault("logistic, all answers", []).append(
            np.tile(model.predict(filled_test) == t, (len(budgets), 1))
        )
    print(f"\n{title}: accuracy in % (tree of crowdtree: {np.mean(tree_answers):.1f} answers)")
    print(f"{'answers an item, at most':28}" + "".join(f"{b:>8}" for b in budgets))
    for name, parts in rows.items():
        share = 100 * np.concatenate(parts, axis=1).mean(axis=1)
        print(f"{name:28}" + "".join(f"{v:8.1f}" for v in share), flush=True)


def leuven(folder: Path, _items: int):
    with gzip.open(folder / "leuven_animals" / "answers_wide.csv.gz", "rt") as file:
        rows = list(csv.reader(file))
    animals = rows[0][2:]
    questions = list(dict.fromkeys(row[0] for row in rows[1:]))
    people = sorted({row[1] for row in rows[1:]})
    values = np.zeros((len(people), len(animals), len(questions)), np.int8)
    at = {name: i for i, name in enumerate(questions)}
    for row in rows[1:]:
        values[people.index(row[1]), :, at[row[0]]] = np.array(row[2:], int) > 0
    for held in range(len(people)):
        others = [p for p in range(len(people)) if p != held]
        train = np.concatenate([values[p] for p in others])
        workers = np.repeat([people[p] for p in others], len(animals))
        yield questions, train, workers, animals * len(others), values[held], animals


def apascal(folder: Path, items: int):
    table = pl.read_csv(folder / "apascal" / "objects_wide.csv.gz")
    questions = table.columns[3:]
    values = table.select(questions).to_numpy().astype(np.int8)
    yield from cross_validated(values, questions, table["class"].to_list(), items)


def soybean(folder: Path, items: int):
    here = folder / "soybean_large"
    table = pl.read_csv(here / "objects.csv", infer_schema=False)
    questions = pl.read_csv(here / "table.csv", infer_schema=False)["test"].to_list()
    columns = []
    for name in questions:
        symptom, state = name.split("==")
        cell = table[symptom].fill_null("").to_numpy()
        columns.append(np.where(cell == "", -1, cell == state))
    values = np.array(columns).T.astype(np.int8)
    yield from cross_validated(values, questions, table["Class"].to_list(), items)


def cross_validated(values: np.ndarray, questions: list[str], truth: list[str], items: int):
    names = np.array(truth)
    for test in folds(names, 5):
        train = np.setdiff1d(np.arange(len(names)), test)
        test = test[: items // 5] if items else test
        workers = np.full(len(train), "crowd")
        yield questions, values[train], workers, names[train].tolist(), values[test], names[test]


SETS = {"leuven": leuven, "apascal": apascal, "soybean": soybean}


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--items", type=int, default=0)
    given = parser.parse_args()
    for name in given.sets:
        compare(name, SETS[name](given.folder, given.items))


if __name__ == "__main__":
    main()
