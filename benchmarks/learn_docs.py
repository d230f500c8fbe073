"""Write the tables and figures of ``docs/measured/learning.md`` from the results of the benchmarks.

``python -m benchmarks.learn_docs [--folder out/bench]`` reads ``learn_labels.json``,
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

from benchmarks import learn_end_to_end
from benchmarks.learn_labels import standing, summary
from crowdtree.show.plots.curves import curve_chart
from crowdtree.show.plots.vega import draw_chart

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
SHOWN = (5, 10, 40)
"""Budgets in the table; the figure has all."""
LAST_ROWS = {"accuracy": "mean", "rank": "average rank", "gap": "mean gap to the best peer",
             "worst": "worst gap"}  # fmt: skip


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def labels(found: dict[str, Any]) -> str:
    """What the default of ``learn`` states, and what is right; of simulated crowds the summary."""
    head = ["crowd", "right, %", "stated, %", "95 % interval", "calibration error", "by chance",
            "workers held", "bias"]  # fmt: skip
    parts = []
    for title, some in kinds(found):
        ours = {name: row["methods"]["learn"] for name, row in some.items()}
        rows = []
        for name, row in ours.items():
            rows.append([
                name, f"{row['accuracy']:.1f}", f"{row['stated']:.1f}",
                f"{row['low']:.1f} to {row['high']:.1f}", f"{row['calibration']:.1f}",
                f"{row['chance']:.1f}",
                f"{row['workers_held']} of {row['workers']}", f"{row['workers_bias']:+.1f}",
            ])  # fmt: skip
        lines = "\n".join(f"- {line.strip()}" for line in summary(some, "learn"))
        every = "" if any(row["simulated"] for row in some.values()) else f"{table(head, rows)}\n\n"
        parts.append(f"**{title}**, mean and worst\n\n{every}{lines}")
    return "\n\n".join(parts)


def kinds(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Real and simulated crowds, each with its title; a kind without crowds is left out."""
    chosen = {"Real crowds": False, "Simulated crowds": True}
    parts = [(title, {n: r for n, r in found.items() if r["simulated"] == simulated})
             for title, simulated in chosen.items()]  # fmt: skip
    return [part for part in parts if part[1]]


def peers(found: dict[str, Any]) -> str:
    """Accuracy of all methods on real crowds, and their ranks and gaps to the best peer on all."""
    methods = list(next(iter(found.values()))["methods"])
    parts = []
    for title, some in kinds(found):
        rows = [[name, *(f"{row['methods'][m]['accuracy']:.1f}" for m in methods)]
                for name, row in some.items() if not row["simulated"]]  # fmt: skip
        final = standing(some, methods)
        for key, text in LAST_ROWS.items():
            rows.append([f"**{text}**", *(f"{final[m][key]:.2f}" for m in methods)])
        parts.append(
            f"**{title}**\n\n{table(['accuracy, %', *methods], rows)}\n\n"
            f"`learn` is furthest behind on {final['learn']['where']}."
        )
    return "\n\n".join(parts)


def end_to_end(found: dict[str, Any]) -> str:
    """One table per set: accuracy ± standard error, and the answers taken."""
    parts = []
    for name, result in found.items():
        rows = []
        shown = [b for b, budget in enumerate(result["budgets"]) if budget in SHOWN]
        for method, right in result["right"].items():
            mean, error, answers = learn_end_to_end.summary(right, result["asked"][method])
            cells = [f"{100 * m:.1f} ± {100 * s:.1f} ({a:.1f})"
                     for m, s, a in zip(mean, error, answers, strict=True)]  # fmt: skip
            if method.endswith("all answers"):
                cells = ["" for _ in cells[1:]] + cells[-1:]
            rows.append([method, *(cells[b] for b in shown)])
        head = [f"at most, answers per item: {name}", *(str(result["budgets"][b]) for b in shown)]
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
        mean, error, answers = learn_end_to_end.summary(
            result["right"][method], result["asked"][method]
        )
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
    """Time and memory of every run, and how time grows."""
    rows = [
        [name, "fails", "", "", "", ""] if "failed" in run else
        [name, f"{run['cpu']:.2f}", f"{run['seconds']:.2f}", f"{run['peak'] / 2**20:.0f} MB",
         f"{run['memory'] / 2**20:.0f} MB", f"{100 * run['right']:.2f} %"]
        for name, run in found["runs"].items()
    ]  # fmt: skip
    head = ["run", "s of processor", "s", "peak of memory", "above the input", "right"]
    power = f"\n\nProcessor time grows as answers^{found['power']:.2f}." if "power" in found else ""
    return table(head, rows) + power


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
    if (folder / "learn_labels.json").exists():
        found = json.loads((folder / "learn_labels.json").read_text())
        text = put(put(text, "labels", labels(found)), "peers", peers(found))
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
