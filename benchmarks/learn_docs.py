"""Write the tables and figures of ``docs/measured/learning.md`` from the results of the benchmarks.

``python -m benchmarks.learn_docs [--folder out/bench]`` reads ``learn_calibration.json``,
``learn_end_to_end*.json`` and ``learn_speed.json``, as their ``--json`` wrote them. Each table
is between two marks; the text around them is written by hand. A table without a file is
kept.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from benchmarks.learn_end_to_end import summary
from crowdtree.plots.curves import curve_chart
from crowdtree.plots.vega import draw_chart

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "measured" / "learning.md"
FIGURES = ROOT / "docs" / "figures"
TITLES = {
    "leuven": "leuven_animals: 129 animals, the fourth person's answers (4 splits)",
    "apascal": "apascal: 20 classes of objects (5 folds)",
    "soybean": "soybean_large: 19 diseases (5 folds)",
}
DRAWN = {
    "design": ("dashed", "paper"),
    "frontier": ("dotted", "paper"),
    "adaptive": ("dashed", "ours"),
    "adaptive, sub-types": ("plain", "ours"),
    "scikit-learn tree": ("plain", "baseline"),
    "logistic regression": ("dashed", "baseline"),
}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def labels(found: dict[str, Any]) -> str:
    """Stated and observed accuracy, calibration and intervals of every crowd."""
    head = ["crowd", "right, %", "stated, %", "95 % interval", "calibration error", "by chance",
            "log loss", "with 50 known: calibration error", "by chance", "log loss",
            "workers held", "shares held"]  # fmt: skip
    rows = []
    for name, row in found.items():
        gold = row["gold"]
        rows.append([
            name, f"{row['accuracy']:.1f}", f"{row['stated']:.1f}",
            f"{row['low']:.1f} to {row['high']:.1f}", f"{row['calibration']:.1f}",
            f"{row['noise']:.1f}", f"{row['log_loss']:.3f}", f"{gold['calibration']:.1f}",
            f"{gold['noise']:.1f}", f"{gold['log_loss']:.3f}", "{} of {}".format(*row["workers"]),
            "{} of {}".format(*row["shares"]),
        ])  # fmt: skip
    every = list(found.values())
    known = [row["gold"] for row in every]
    held = [row["workers"][0] / row["workers"][1] for row in every if row["workers"][1]]
    shares = [sum(row["shares"][i] for row in every) for i in (0, 1)]
    rows.append([
        "**mean**", mean(every, "accuracy", 1), mean(every, "stated", 1), "",
        mean(every, "calibration", 1), mean(every, "noise", 1), mean(every, "log_loss", 3),
        mean(known, "calibration", 1), mean(known, "noise", 1), mean(known, "log_loss", 3),
        f"{100 * sum(held) / len(held):.1f} %", f"{shares[0]} of {shares[1]}",
    ])  # fmt: skip
    return table(head, rows)


def mean(rows: list[dict[str, Any]], key: str, digits: int) -> str:
    return f"{sum(row[key] for row in rows) / len(rows):.{digits}f}"


def peers(found: dict[str, Any]) -> str:
    """Accuracy and log loss of all methods; the last with a temperature of other crowds."""
    methods = [name for name in next(iter(found.values()))["peers"] if "tempered" not in name]
    rows = []
    for name, row in found.items():
        cells = [f"{row['accuracy']:.2f} / {row['log_loss']:.3f}"]
        for method in methods:
            plain, tempered = (row["peers"][key] for key in (method, f"{method}, tempered"))
            cells.append(
                f"{plain['accuracy']:.2f} / {plain['log_loss']:.3f} / {tempered['log_loss']:.3f}"
            )
        rows.append([name, *cells])
    ranks = [accuracy_ranks(row, methods) for row in found.values()]
    means = [f"{sum(rank[i] for rank in ranks) / len(ranks):.2f}" for i in range(len(ranks[0]))]
    rows.append(["**average rank of the accuracy**", *means])
    return table(["crowd", "crowdtree", *methods], rows)


def accuracy_ranks(row: dict[str, Any], methods: list[str]) -> list[int]:
    accuracy = [row["accuracy"], *(row["peers"][method]["accuracy"] for method in methods)]
    rounded = [round(value, 2) for value in accuracy]
    return [1 + sum(other > value for other in rounded) for value in rounded]


def end_to_end(found: dict[str, Any]) -> str:
    """One table per set: accuracy ± standard error, and the answers taken."""
    parts = []
    for name, result in found.items():
        rows = []
        for method, right in result["right"].items():
            mean, error, answers = summary(right, result["asked"][method])
            cells = [f"{100 * m:.1f} ± {100 * s:.1f} ({a:.1f})"
                     for m, s, a in zip(mean, error, answers, strict=True)]  # fmt: skip
            if method.endswith("all answers"):
                cells = ["", "", "", "", cells[-1]]
            rows.append([method, *cells])
        head = [f"at most, answers per item: {name}", *map(str, result["budgets"])]
        kinds = sum(result["subtypes"]) / len(result["subtypes"])
        parts.append(
            f"**{TITLES[name]}**\n\n{table(head, rows)}\n\n{kinds:.0f} sub-types in all (mean); "
            f"{result['cpu']:.0f} s of processor time.\n\n"
            f"![{TITLES[name]}](../figures/learn-{name}.svg)"
        )
    return "\n\n".join(parts)


def draw(name: str, result: dict[str, Any]) -> None:
    """Error over the answers that were taken, of those who may ask more and more."""
    rows = []
    for method, (dash, kind) in DRAWN.items():
        mean, error, answers = summary(result["right"][method], result["asked"][method])
        for m, s, a in zip(mean, error, answers, strict=True):
            row = {"series": method, "kind": kind, "dash": dash, "x": float(a), "y": float(1 - m)}
            rows.append(row | {"low": float(1 - m - s), "high": float(1 - m + s)})
    FIGURES.mkdir(exist_ok=True)
    chart = curve_chart(
        rows, title=TITLES[name], x="answers per item (mean)", y="wrong labels", log_x=True,
        subtitle=["at most 3, 5, 10, 20 and 40 answers; bands: one standard error over the splits"],
    )  # fmt: skip
    draw_chart(chart, FIGURES / f"learn-{name}.svg")


def speed(found: dict[str, Any]) -> str:
    """Side by side, the ratios, and time against answers."""
    runs = found["runs"]
    rows = [
        [name, f"{run['seconds']:.2f}", f"{run['cpu']:.2f}", f"{run['memory'] / 2**20:.0f} MB",
         f"{100 * run['right']:.3f} %"]
        for name, run in runs.items()
    ]  # fmt: skip
    parts = [table(["method", "seconds", "of processor", "memory above the input", "right"], rows)]
    ratios = []
    for mine, theirs in (("dawid-skene", "DawidSkene"), ("hierarchical", "GLAD")):
        a, b = runs[f"crowdtree {mine}"], runs.get(f"crowd-kit {theirs}", {})
        if "seconds" in b:
            ratios.append([
                f"{mine} against {theirs}", f"{b['seconds'] / a['seconds']:.1f}",
                f"{b['cpu'] / a['cpu']:.1f}", f"{a['memory'] / max(b['memory'], 1):.2f}",
            ])  # fmt: skip
    parts.append(
        table(["comparison", "times faster", "by processor time", "of its memory"], ratios)
    )
    lines = [
        [f"{p['rows']:,}", f"{p['seconds']:.2f}", f"{p['cpu']:.2f}", f"{p['peak'] / 2**20:.0f} MB",
         str(p["steps"]), f"{100 * p['right']:.3f} %"]
        for p in found["slope"]
    ]  # fmt: skip
    head = ["answers, from Parquet", "seconds", "of processor", "peak of memory", "steps", "right"]
    parts.append(table(head, lines))
    if "power" in found:
        parts.append(f"Processor time grows as answers^{found['power']:.2f}.")
    return "\n\n".join(parts)


def put(text: str, mark: str, made: str) -> str:
    """Replace the text between two marks."""
    pattern = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{PAGE.name}: no mark {mark}")
    return pattern.sub(lambda m: m.group(1) + made + "\n" + m.group(2), text)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "bench")
    folder = parser.parse_args().folder
    text = PAGE.read_text()
    if (folder / "learn_calibration.json").exists():
        found = json.loads((folder / "learn_calibration.json").read_text())
        text = put(text, "labels", labels(found))
        if all("peers" in row for row in found.values()):
            text = put(text, "peers", peers(found))
    sets: dict[str, Any] = {}
    for path in sorted(folder.glob("learn_end_to_end*.json")):
        sets |= json.loads(path.read_text())
    if sets:
        sets = {name: sets[name] for name in TITLES if name in sets}
        for name, result in sets.items():
            draw(name, result)
        text = put(text, "end to end", end_to_end(sets))
    if (folder / "learn_speed.json").exists():
        text = put(text, "speed", speed(json.loads((folder / "learn_speed.json").read_text())))
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
