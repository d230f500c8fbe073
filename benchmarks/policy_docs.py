"""Write the tables of ``docs/measured/policies.md`` from the results of the benchmarks.

Each table is between two marks; the text around them is written by hand. The numbers come from
``--json`` files: ``policy_compare``, ``policy_honesty``, ``real_people``, ``throughput``, each
``python -m benchmarks.NAME --json out/bench/NAME.json``, and ``real_targets``
(``python -m benchmarks.real_people --targets --repeats 1 3 --json ...``); then
``python -m benchmarks.policy_docs``.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.policy_compare import interval

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "measured" / "policies.md"
NAMES = ("policy_compare", "policy_honesty", "real_people", "real_targets", "throughput")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def comparison(found: dict[str, Any]) -> str:
    rows = found["random"]
    ours = np.array([row["information"] for row in rows])
    names = {
        "floor": "Fano floor (no policy goes below)",
        "information": "**adaptive, information**",
        "ec2": "adaptive, EC2",
        "accuracy": "adaptive, accuracy",
        "gbs": "adaptive, generalised binary search",
        "frontier margin": "frontier plan, margin votes",
        "frontier": "frontier plan, majority votes",
        "paper margin": "paper's tree + paper-fm, margin",
        "paper curtailed": "paper's tree + paper-fm, curtailed",
        "paper": "paper's tree + paper-fm",
        "batch posterior": "batch, posterior",
        "batch": "batch, majority and nearest codeword",
        "Dawid-Skene posterior": "batch, Dawid-Skene and posterior",
        "Dawid-Skene": "batch, Dawid-Skene and nearest codeword",
    }
    lines = []
    for key, name in names.items():
        other = np.array([row.get(key) or np.nan for row in rows], dtype=float)
        there = np.isfinite(other)
        lines.append([name, f"{np.median(other[there]):.1f}", interval(ours[there] / other[there])])
    wrong = np.array([row["wrong"] for row in rows])
    proven = sum(bool(row["proven"]) for row in rows)
    return (
        table(["policy", "answers per item (median)", "adaptive / this (median, 95 %)"], lines)
        + f"\n\n{len(rows)} problems; {proven} of their majority frontiers proven around 1 %. "
        f"Observed error of the adaptive policy: median {np.median(wrong):.4f}, "
        f"from {wrong.min():.4f} to {wrong.max():.4f}."
    )


def awa2(found: dict[str, Any]) -> str:
    """The criterion of the policy by default, and how far the worst other one is from the floor."""
    worst = max(found["awa2"], key=lambda row: row["ratio"])
    text = f"Asked by {worst['criterion']} it is up to {worst['ratio']:.2f} times the floor."
    rows = table(
        ["awa2: worker error", "answers", "floor at 1 %", "wrong", "times the floor"],
        [
            [
                f"{row['error']:g}",
                f"{row['answers']:.2f}",
                f"{row['floor']:.2f}",
                f"{row['wrong']:.4f}",
                f"{row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f})",
            ]
            for row in found["awa2"]
            if row["criterion"] == "information"
        ],
    )
    return f"{rows}\n\n{text}"


def calibration(found: dict[str, Any]) -> str:
    return table(
        ["stated", "observed (95 %)", "items"],
        [
            [
                f"{row['stated']:.4f}",
                f"{row['observed']:.4f} ({row['low']:.4f} to {row['high']:.4f})",
                f"{row['items']:,}",
            ]
            for row in found["groups"]
        ],
    )


def people(found: dict[str, Any]) -> str:
    return table(
        ["the crowd is", "stated", "observed (95 %)", "answers"],
        [
            [
                str(row["people"]),
                f"{row['stated']:.4f}",
                f"{row['observed']:.4f} ({row['low']:.4f} to {row['high']:.4f})",
                f"{row['answers']:.2f}",
            ]
            for row in found["people"]
        ],
    )


def wrong_errors(found: dict[str, Any]) -> str:
    return table(
        ["true / assumed errors", "adaptive: median", "worst", "answers", "tree: median", "worst"],
        [
            [
                f"{row['factor']:g}",
                f"{row['median']:.4f}",
                f"{row['worst']:.4f}",
                f"{row['answers']:.1f}",
                f"{row['tree median']:.4f}",
                f"{row['tree worst']:.4f}",
            ]
            for row in found["wrong errors"]
        ],
    )


def real_targets(found: dict[str, Any]) -> str:
    return table(
        [
            "set",
            "target",
            "stop at it",
            "stated",
            "observed (95 %)",
            "answers per item",
            "undecided",
        ],
        [
            [
                name,
                f"{row['target']:.0%}",
                f"{row['stopped']:.1%}",
                "" if row["stated"] is None else f"{row['stated']:.3f}",
                f"{row['observed']:.3f} ({row['low']:.3f} to {row['high']:.3f})",
                f"{row['answers']:.1f}",
                f"{row['undecided']:.1%}",
            ]
            for name, part in found.items()
            for row in part["targets"]
            if row.get("repeats", 1) == 1
        ],
    )


def real_budgets(found: dict[str, Any]) -> str:
    def row(name: str, part: dict[str, Any], paired: dict[str, Any]) -> list[str]:
        ours, private = (
            next(r for r in part["budgets"] if (r["who"], r["budget"]) == (who, paired["budget"]))
            for who in ("learned.policy", "private rule")
        )
        return [
            name,
            f"{ours['questions']:.1f}",
            f"{ours['right']:.3f} ({ours['low']:.3f} to {ours['high']:.3f})",
            f"{ours['stated']:.3f}",
            f"{private['right']:.3f}",
            f"{paired['more']:+.3f} ({paired['low']:+.3f} to {paired['high']:+.3f})",
        ]

    return table(
        ["set", "answers", "right (95 %)", "stated", "private rule", "difference (95 %, paired)"],
        [row(name, part, paired) for name, part in found.items() for paired in part["paired"]],
    )


def real_promises(found: dict[str, Any]) -> str:
    return table(
        [
            "set",
            "error of",
            "by the table alone",
            "stated (95 %)",
            "observed (95 %)",
            "splits inside",
            "splits that agree",
        ],
        [
            [
                name,
                row["what"],
                "" if row["by table"] is None else f"{row['by table']:.3f}",
                f"{row['stated']:.3f} ({row['low']:.3f} to {row['high']:.3f})",
                f"{row['observed']:.3f} ({row['observed low']:.3f} to {row['observed high']:.3f})",
                f"{row['inside']} of {row['splits']}",
                f"{row['agree']} of {row['splits']}",
            ]
            for name, part in found.items()
            for row in part["promises"]
        ],
    )


def speed(found: dict[str, Any]) -> str:
    return table(
        [
            "policy",
            "items",
            "classes",
            "questions",
            "items per second",
            "loop by hand",
            "ratio",
        ],
        [
            [
                str(row["policy"]),
                f"{row['items']:,}",
                f"{row['classes']}",
                f"{row['questions']}",
                f"{row['items per second']:,.0f}",
                f"{row['by hand']:,.0f}",
                f"{row['ratio']:.2f}",
            ]
            for row in found["rows"]
            if row["items"] >= 100_000 or row["classes"] == 100 or row["questions"] == 300
        ],
    )


def steps(found: dict[str, Any]) -> str:
    return table(
        ["criterion", "median, ms", "95 % of steps below, ms"],
        [
            [str(row["criterion"]), f"{row['median ms']:.3f}", f"{row['95 % ms']:.3f}"]
            for row in found["steps"]
        ],
    )


def written(page: str, name: str, content: str) -> str:
    """Put a table between its marks."""
    pattern = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?\n?<!-- end -->", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{PAGE.name}: no place for the table {name!r}")
    return pattern.sub(lambda m: f"{m[1]}{content}\n<!-- end -->", page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "bench")
    folder = parser.parse_args().folder
    found = {
        name: json.loads((folder / f"{name}.json").read_text())
        for name in NAMES
        if (folder / f"{name}.json").exists()
    }
    makers = {
        "policy_compare": {"comparison": comparison, "awa2": awa2},
        "policy_honesty": {
            "calibration": calibration,
            "people": people,
            "wrong errors": wrong_errors,
        },
        "real_targets": {"real targets": real_targets},
        "real_people": {
            "real budgets": real_budgets,
            "real promises": real_promises,
        },
        "throughput": {"speed": speed, "steps": steps},
    }
    page = PAGE.read_text()
    for name, tables in makers.items():
        if name not in found:
            print(f"{name}: no {folder / name}.json, its tables stay as they are")
            continue
        for title, make in tables.items():
            page = written(page, title, make(found[name]))
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
