"""Patients of DDXPlus: questions with several answers, asked adaptively.

49 pathologies, 218 questions (10 with several answers), 600 other patients. The table
``P(answer | class)`` was counted on training patients; a patient volunteers one answer, and is
asked at most 30 questions. Published agents, on all test patients: AARLC 98.86 % right after 7.27
questions, BASD 96.65 % after 17.85. With `--wrong` a share of the answers is replaced by another
answer to the same question, drawn evenly, and the table knows it.

``python -m benchmarks.patients [--targets 0.01 0.02] [--wrong 0 0.05 0.1 0.2] [--json FILE]``
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import crowdtree as ct
from benchmarks.realdata import folder
from crowdtree.policy.base import Answer, Ask
from crowdtree.stats import wilson_interval

SMOOTH = 1e-5
MAX_TURNS = 30


def load(wrong: float) -> tuple[ct.Problem, list[dict[str, Any]]]:
    """Read the table, with some wrong answers mixed in, and the patients."""
    data = folder()
    if data is None:
        raise SystemExit("ddxplus_channels is absent; set CROWDTREE_DATA to the folder of the data")
    place = data / "ddxplus_channels"
    rows = list(csv.DictReader((place / "questions.csv").open(encoding="utf-8")))
    classes = list(csv.DictReader((place / "priors.csv").open(encoding="utf-8")))
    names = [row["class"] for row in classes]
    answers = [row["answers"].split("|") for row in rows]
    code = {row["question"]: q for q, row in enumerate(rows)}
    tables = [np.zeros((len(some), len(names))) for some in answers]
    with gzip.open(place / "channels.csv.gz", "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            q = code[row["question"]]
            tables[q][answers[q].index(row["answer"]), names.index(row["class"])] = float(
                row["probability"]
            )
    table = {}
    for row, some, counted in zip(rows, answers, tables, strict=True):
        if some == ["no", "yes"]:
            counted[0] = 1 - counted[1]
        smooth = (counted + SMOOTH) / (counted.sum(axis=0) + SMOOTH * len(some))
        table[row["question"]] = (1 - wrong) * smooth + wrong * (1 - smooth) / (len(some) - 1)
    prior = np.array([float(row["prior"]) for row in classes])
    problem = ct.Problem.from_table(names, prior / prior.sum(), list(code), table, answers)
    defaults = [some.index(row["default"]) for row, some in zip(rows, answers, strict=True)]
    patients = []
    for row in csv.DictReader((place / "patients_dev.csv").open(encoding="utf-8")):
        said = np.array(defaults)
        for pair in row["answers"].split(";"):
            question, answer = pair.split("=")
            if question in code and answer in answers[code[question]]:
                said[code[question]] = answers[code[question]].index(answer)
        first = code.get(row["initial_question"], -1)
        patients.append({"class": names.index(row["class"]), "said": said, "first": first})
    return problem, patients


def ask(
    policy: ct.AdaptivePolicy, patient: dict[str, Any], rng: np.random.Generator, wrong: float
) -> tuple[bool, int, float, list[float]]:
    """Ask one patient; whether the label is right, questions, stated error, seconds per turn."""
    said: NDArray[np.int64] = patient["said"].copy()
    count = policy.problem.n_answers
    off = rng.random(len(said)) < wrong
    said[off] = (said[off] + rng.integers(1, count[off])) % count[off]
    state, asked, seconds = policy.start(), 0, []
    if patient["first"] >= 0:
        state = policy.update(state, Answer(patient["first"], int(said[patient["first"]])))
    while True:
        begin = time.perf_counter()
        step = policy.ask(state) if asked < MAX_TURNS else policy.conclude(state, "budget")
        if not isinstance(step, Ask):
            return step.label == patient["class"], asked, step.posterior_error, seconds
        question = step.questions[0]
        state = policy.update(state, Answer(question, int(said[question])))
        seconds.append(time.perf_counter() - begin)
        asked += 1


def measure(target: float, wrong: float) -> dict[str, Any]:
    """Ask all patients at one target."""
    problem, patients = load(wrong)
    policy = ct.AdaptivePolicy(problem, target, MAX_TURNS + 1, repeats=1, strict=False)
    rng = np.random.default_rng(0)
    rows = [ask(policy, patient, rng, wrong) for patient in patients]
    right = np.array([row[0] for row in rows])
    low, high = wilson_interval(int(right.sum()), len(right))
    return {
        "target": target,
        "wrong": wrong,
        "patients": len(rows),
        "right": float(right.mean()),
        "low": low,
        "high": high,
        "stated": 1 - float(np.mean([row[2] for row in rows])),
        "questions": float(np.mean([row[1] for row in rows])),
        "ms_per_turn": 1000 * float(np.median(np.concatenate([row[3] for row in rows]))),
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=float, nargs="+", default=[0.1, 0.05, 0.02, 0.01, 0.005])
    parser.add_argument("--wrong", type=float, nargs="+", default=[0.0, 0.05, 0.1, 0.2])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for wrong in options.wrong:
        for target in options.targets:
            row = measure(target, wrong)
            found.append(row)
            print(
                f"wrong {wrong:4.0%} target {target:5.3f}: right {row['right']:.4f} "
                f"({row['low']:.4f} to {row['high']:.4f}), stated {row['stated']:.4f}, "
                f"{row['questions']:.2f} questions, {row['ms_per_turn']:.2f} ms per turn",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
