"""Whole questions against their yes/no form, on real patients and plants and on a field guide.

Cases (audiology, dermatology, soybean with its native states): the table ``P(answer | class)`` is
counted on four fifths of the cases, with one pseudo-count of the question's pooled answers, and the
last fifth is asked adaptively, all five ways. The yes/no form asks "is it <answer>?" for every
answer of a question. At each accuracy that the yes/no form reaches, how many answers does the whole
form need? Beside it scikit-learn's tree on the same folds. Field guide (ponerine ants): simulated
people who err with 0.1 on every question; answers per item at equal stated targets.

``python -m benchmarks.whole_questions [--sets audiology dermatology soybean ants] [--json FILE]``
"""

from __future__ import annotations

import argparse
import csv
import json
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import crowdtree as ct
from benchmarks.realdata import folder

FOLDS = 5
BUDGETS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
ANT_ERROR = 0.1
ANT_TARGETS = (0.2, 0.1, 0.05, 0.02)


class Cases(NamedTuple):
    """Answers by number (-1: not known), the answers of each question, and the class of each."""

    answers: list[list[str]]
    values: NDArray[np.int8]
    truth: NDArray[np.int64]
    classes: list[str]


def read_cases(name: str) -> Cases:
    """Read a set of cases; measured numbers are left out."""
    data = folder()
    if data is None:
        raise SystemExit(f"{name} is absent; set CROWDTREE_DATA to the folder of the data")
    if name == "soybean":
        rows = list(csv.DictReader((data / "soybean_large/objects.csv").open(encoding="utf-8")))
        label, left_out, missing = "Class", {"object", "Class"}, ""
    else:
        rows = list(csv.DictReader((data / f"cases_{name}/cases.csv").open(encoding="utf-8")))
        questions = csv.DictReader((data / f"cases_{name}/questions.csv").open(encoding="utf-8"))
        numbers = {row["question"] for row in questions if row["answers"] == "number"}
        label, left_out, missing = "class", numbers | {"class"}, "?"
    names = [column for column in rows[0] if column not in left_out]
    answers, kept, columns = [], [], []
    for column in names:
        words = sorted({row[column] for row in rows} - {missing})
        if len(words) < 2:
            continue
        answers.append(words)
        kept.append(column)
        columns.append([words.index(row[column]) if row[column] != missing else -1 for row in rows])
    classes = sorted({row[label] for row in rows})
    truth = np.array([classes.index(row[label]) for row in rows])
    return Cases(answers, np.array(columns, dtype=np.int8).T, truth, classes)


def yes_no(cases: Cases) -> Cases:
    """The same cases asked by yes/no questions, one per answer (one for two answers)."""
    columns, answers = [], []
    for q, words in enumerate(cases.answers):
        for answer in range(1 if len(words) == 2 else 0, len(words)):
            said = cases.values[:, q]
            columns.append(np.where(said < 0, -1, said == answer))
            answers.append(["no", "yes"])
    return cases._replace(answers=answers, values=np.stack(columns, axis=1).astype(np.int8))


def learn_table(cases: Cases, train: NDArray[np.bool_]) -> ct.Problem:
    """Count the table of the training cases."""
    classes = len(cases.classes)
    truth = cases.truth[train]
    prior = np.bincount(truth, minlength=classes) + 1.0
    table = {}
    for q, words in enumerate(cases.answers):
        said = cases.values[train, q]
        there = said >= 0
        pooled = np.bincount(said[there], minlength=len(words)) + 0.5
        counts = np.zeros((len(words), classes))
        np.add.at(counts, (said[there], truth[there]), 1.0)
        counts += (pooled / pooled.sum())[:, None]
        table[f"q{q}"] = counts / counts.sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.CrowdtreeWarning)
        return ct.Problem.from_table(
            cases.classes, prior / prior.sum(), list(table), table, cases.answers
        )


def folds(cases: Cases) -> NDArray[np.int64]:
    """Number of the fold of each case: every class spread over all folds."""
    order = np.argsort(np.random.default_rng(0).random(len(cases.truth)))
    order = order[np.argsort(cases.truth[order], kind="stable")]
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.arange(len(order)) % FOLDS
    return found


def curve(cases: Cases) -> list[tuple[float, float]]:
    """Mean answers and accuracy at each budget, over all folds."""
    fold = folds(cases)
    found = []
    problems = [learn_table(cases, fold != k) for k in range(FOLDS)]
    for budget in BUDGETS:
        right = answers = 0.0
        for k, problem in enumerate(problems):
            test = fold == k
            recorded = ct.Recorded(cases.values[test], cases.truth[test])
            policy = ct.AdaptivePolicy(problem, 0.0, budget, repeats=1, strict=False)
            run = ct.simulate(problem, policy, items=int(test.sum()), crowd=recorded, rng=0)
            right += float((run.label_index == cases.truth[test]).sum())
            answers += float(run.answers.sum())
        found.append((answers / len(fold), right / len(fold)))
    return found


def cart(cases: Cases) -> tuple[float, float]:
    """Mean answers (depth of the path) and accuracy of scikit-learn's tree on yes/no columns."""
    from sklearn.tree import DecisionTreeClassifier

    fold, form = folds(cases), yes_no(cases)
    right = depth = 0.0
    for k in range(FOLDS):
        model = DecisionTreeClassifier(random_state=0).fit(
            form.values[fold != k], form.truth[fold != k]
        )
        test = form.values[fold == k]
        right += float((model.predict(test) == form.truth[fold == k]).sum())
        depth += float(model.decision_path(test).sum() - len(test))
    return depth / len(fold), right / len(fold)


def needed(points: list[tuple[float, float]], accuracy: float) -> float | None:
    """Answers at which a curve first reaches an accuracy, interpolated."""
    before = (0.0, 0.0)
    for answers, right in points:
        if right >= accuracy:
            share = (accuracy - before[1]) / max(right - before[1], 1e-12)
            return before[0] + share * (answers - before[0])
        before = (answers, right)
    return None


def compare(name: str) -> dict[str, Any]:
    """Compare both forms of a set of cases."""
    cases = read_cases(name)
    whole, detour = curve(cases), curve(yes_no(cases))
    ratios = []
    for answers, right in detour:
        enough = needed(whole, right)
        if enough is not None and right > detour[0][1]:
            ratios.append(enough / answers)
    depth, accuracy = cart(cases)
    return {
        "set": name,
        "cases": len(cases.truth),
        "questions": len(cases.answers),
        "whole": whole,
        "yes_no": detour,
        "ratio": float(np.mean(ratios)),
        "best_whole": max(right for _, right in whole),
        "best_yes_no": max(right for _, right in detour),
        "cart": [depth, accuracy],
    }


def ants() -> dict[str, Any]:
    """Ask about ants whole and by yes/no questions, with people who err."""
    data = folder()
    if data is None:
        raise SystemExit(
            "key_ants_ponerini is absent; set CROWDTREE_DATA to the folder of the data"
        )
    rows = list(csv.reader((data / "key_ants_ponerini/table.csv").open(encoding="utf-8")))
    names, body = rows[0][1:], rows[1:]
    answers = [
        list(dict.fromkeys(w for cell in row[1:] if cell != "-" for w in cell.split("|")))
        for row in body
    ]
    used = [k for k, words in enumerate(answers) if len(words) > 1]
    whole = ct.Problem(
        names, None, [f"q{k}" for k in used], [body[k][1:] for k in used], ANT_ERROR,
        answers=[answers[k] for k in used], dash="either",
    )  # fmt: skip
    questions, outcome = [], []
    for k in used:
        for word in answers[k][len(answers[k]) == 2 :]:
            questions.append(f"q{k} {word}")
            outcome.append(
                [
                    "-" if cell == "-" or (word in cell.split("|") and "|" in cell)
                    else int(cell == word)
                    for cell in body[k][1:]
                ]
            )  # fmt: skip
    detour = ct.Problem(names, None, questions, outcome, ANT_ERROR, dash="either")
    found = []
    for target in ANT_TARGETS:
        runs = [
            ct.simulate(p, ct.AdaptivePolicy(p, target, strict=False), items=4000, rng=0)
            for p in (whole, detour)
        ]
        found.append(
            {
                "target": target,
                "whole": [float(runs[0].answers_per_item), float(runs[0].misclassification)],
                "yes_no": [float(runs[1].answers_per_item), float(runs[1].misclassification)],
            }
        )
    ratio = np.mean([row["whole"][0] / row["yes_no"][0] for row in found])
    return {"set": "ants", "targets": found, "ratio": float(ratio)}


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    sets = ["audiology", "dermatology", "soybean", "ants"]
    parser.add_argument("--sets", nargs="+", choices=sets, default=sets)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for name in options.sets:
        row = ants() if name == "ants" else compare(name)
        found.append(row)
        if name == "ants":
            print(f"ants: {row['ratio']:.2f} times the answers", *row["targets"], sep="\n  ")
        else:
            print(
                f"{name}: {row['ratio']:.2f} times the answers at equal accuracy; best "
                f"{row['best_whole']:.3f} whole, {row['best_yes_no']:.3f} yes/no; tree of "
                f"scikit-learn {row['cart'][1]:.3f} at {row['cart'][0]:.1f} answers",
                flush=True,
            )
            print("  whole ", [(round(a, 1), round(r, 3)) for a, r in row["whole"]])
            print("  yes/no", [(round(a, 1), round(r, 3)) for a, r in row["yes_no"]])
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
