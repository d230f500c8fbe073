"""Patients of DDXPlus: questions with several answers, asked adaptively.

49 pathologies, 218 questions (10 with several answers), 600 other patients. The table ``P(answer |
class)`` is estimated from counts of 1,025,602 training patients: a cell borrows from the mean of
its question, as much as makes the training patients likeliest, each left out in turn. Who has no
pain is not asked how strong it is; a class in which some have pain and others not is two sub-types.
A patient volunteers one answer, and is asked at most 30 questions. Published agents, on all test
patients: AARLC 98.86 % right after 7.27 questions, BASD 96.65 % after 17.85. With `--wrong` a share
of the answers is replaced by another answer to the same question, drawn evenly, and the table knows
it.

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
from crowdtree.core.stats import wilson_interval
from crowdtree.policies import SubtypePolicy
from crowdtree.policies.base import Answer, Ask

TRAINING = 1_025_602
BORROWED = np.geomspace(0.01, 30, 20)
GATES = {"E_53": ["E_56", "E_58", "E_59"], "E_129": [f"E_{n}" for n in range(130, 137) if n != 133]}
"""Questions that apply only after yes to another: about a pain, about a rash."""
MAX_TURNS = 30


def estimate(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(answer | class) from counts (answer, class), by leaving out each patient in turn."""
    size = counts.sum(axis=0)
    mean = (counts / np.maximum(size, 1)).sum(axis=1) + 0.5 / len(counts)
    mean = (mean / mean.sum())[:, None]
    left_out = np.maximum(counts - 1, 0)
    fit = [
        (counts * np.log((left_out + b * mean) / np.maximum(size - 1 + b, b))).sum()
        for b in BORROWED
    ]
    borrowed = BORROWED[int(np.argmax(fit))]
    return np.asarray((counts + borrowed * mean) / (size + borrowed))


def split(
    counts: dict[str, NDArray[np.float64]], default: dict[str, int]
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.intp], NDArray[np.float64]]:
    """Counts of sub-types that say no or yes to each gate; their classes, and how many patients."""
    size = next(iter(counts.values())).sum(axis=0)
    label = np.arange(len(size))
    for gate, about in GATES.items():
        no, yes = (part[label] for part in counts[gate])
        mixed = np.flatnonzero((no > 0) & (yes > 0))
        share = no[mixed] / (no + yes)[mixed]
        one = np.delete(np.arange(len(label)), mixed)
        order = np.concatenate([one, mixed, mixed])
        weight = np.concatenate([np.ones(len(one)), share, 1 - share])
        counts = {name: part[:, order] * weight for name, part in counts.items()}
        first, second = slice(len(one), len(one) + len(mixed)), slice(len(one) + len(mixed), None)
        for name in [gate, *about]:
            part, base = counts[name], 0 if name == gate else default[name]
            whole = part[:, first] + part[:, second]
            never = np.zeros_like(whole)
            never[base] = np.minimum(no[mixed] * size[mixed] / (no + yes)[mixed], whole[base])
            part[:, first], part[:, second] = never, whole - never
        label, size = label[order], size[order] * weight
    return counts, label, size


def load(wrong: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read the sub-types, with some wrong answers mixed in, and the patients."""
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
    prior = np.array([float(row["prior"]) for row in classes])
    counts, default = {}, {}
    for row, some, shares in zip(rows, answers, tables, strict=True):
        if some == ["no", "yes"]:
            shares[0] = 1 - shares[1]
        counts[row["question"]] = np.rint(shares * np.rint(prior * TRAINING))
        default[row["question"]] = some.index(row["default"])

    def noisy(counted: NDArray[np.float64]) -> NDArray[np.float64]:
        made = estimate(counted)
        return (1 - wrong) * made + wrong * (1 - made) / (len(made) - 1)

    whole = {name: noisy(part) for name, part in counts.items()}
    problem = ct.Problem.from_table(names, prior / prior.sum(), list(code), whole, answers)
    parts, label, size = split(counts, default)
    table = np.zeros((max(map(len, answers)), len(code), len(label)))
    gated = {name for gate, about in GATES.items() for name in (gate, *about)}
    for q, (name, part) in enumerate(parts.items()):
        table[: len(part), q] = noisy(part) if name in gated else whole[name][:, label]
    subtypes = {"problem": problem, "label": label, "share": size / size.sum(), "table": table}
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
    return subtypes, patients


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
    subtypes, patients = load(wrong)
    policy = SubtypePolicy(**subtypes, target_error=target, max_answers=MAX_TURNS + 1, repeats=1)
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
