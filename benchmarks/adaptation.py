"""What campaigns gain that watch their table, and what it costs when the table is right.

``python -m benchmarks.adaptation --out docs/measured/adaptation.md`` writes that page's tables;
with ``--json FILE`` the numbers are kept, too.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import crowdtree as ct
from benchmarks.policy_compare import random_problem
from benchmarks.policy_docs import table, written
from crowdtree.core.stats import wilson_interval
from crowdtree.policies.monitor import Monitor
from crowdtree.policies.revising import Gathered, table_of
from crowdtree.policies.walk import Walk
from crowdtree.simulation import Crowd, simulate

TARGET, MOST_ANSWERS = 0.01, 300
MAIN = "errors twice as large"
MOST_ERROR = 0.49
Rows = list[dict[str, Any]]
FloatArray = NDArray[np.float64]


class Setting(NamedTuple):
    """What is true, where it differs from the table."""

    truth: Callable[[ct.Problem], ct.Problem]
    options: tuple[tuple[str, float], ...] = ()


def problems() -> dict[str, ct.Problem]:
    """Two examples and four random problems."""
    examples = {"animals": ct.example("animals"), "table1": ct.example("table1")}
    return examples | {f"random {n}": random_problem(n) for n in (0, 6, 12, 18)}


def times(problem: ct.Problem, factor: float) -> ct.Problem:
    """The same with other errors."""
    return problem.replace(worker_error=np.clip(problem.worker_error * factor, 0, MOST_ERROR))


def one_question(problem: ct.Problem) -> ct.Problem:
    """Three times the errors of the question that is asked most, and no others."""
    run = simulate(problem, policy(problem), 300, rng=99)
    error = problem.worker_error.copy()
    asked = int(np.argmax(run.asked))
    error[asked] = np.clip(3 * error[asked], 0, MOST_ERROR)
    return problem.replace(worker_error=error)


def other_prior(problem: ct.Problem) -> ct.Problem:
    """The class shares in reverse order of size, and more unequal."""
    order = np.argsort(np.argsort(-problem.prior, kind="stable"), kind="stable")
    share = 0.7 ** order[::-1]
    return problem.replace(prior=share / share.sum())


SETTINGS = {
    MAIN: Setting(lambda p: times(p, 2)),
    "errors half as large": Setting(lambda p: times(p, 0.5)),
    "one question, three times": Setting(one_question),
    "other class shares": Setting(other_prior),
    "dependence 0.2": Setting(lambda p: p.replace(dependence=0.2)),
    "15 % guess": Setting(lambda p: p, (("spammers", 0.15),)),
    "people differ (0.7)": Setting(lambda p: p, (("skill_sd", 0.7),)),
    "items differ (0.7)": Setting(lambda p: p, (("item_difficulty", 0.7),)),
}


def policy(problem: ct.Problem) -> ct.AdaptivePolicy:
    return ct.AdaptivePolicy(problem, TARGET, MOST_ANSWERS, strict=False)


def mended(items: int, most: int) -> Rows:
    """Campaigns with wrong tables: with adaptation, without, and told the truth."""
    rows: Rows = []
    for what, setting in SETTINGS.items():
        runs = most if what == MAIN else max(1, most // 3)
        for name, assumed in problems().items():
            truth = setting.truth(assumed)
            crowd = Crowd(problem=truth, **dict(setting.options))  # type: ignore[arg-type]
            ways = {
                "adapting": (policy(assumed), True),
                "as it is": (policy(assumed), False),
                "told": (policy(truth), False),
            }
            found: dict[str, Any] = {"setting": what, "problem": name}
            alarms = []
            for way, (asked, adapt) in ways.items():
                # the same items for all three
                done = [
                    simulate(assumed, asked, items, seed, crowd=crowd, adapt=adapt)
                    for seed in range(runs)
                ]
                wrong = sum(int((run.label != run.truth).sum()) for run in done)
                found[way] = wrong / (items * runs)
                found[f"{way} interval"] = list(wilson_interval(wrong, items * runs))
                found[f"{way} answers"] = float(np.mean([run.answers.mean() for run in done]))
                alarms += [run.adaptation.alarms for run in done if run.adaptation is not None]
            found["alarms"] = sum(map(bool, alarms))
            found["runs"] = runs
            rows.append(found)
            print(f"  {found}", flush=True)
    return rows


def key(seed: int) -> int:
    return int(np.random.default_rng((2026, seed)).integers(2**63))


def watched(
    assumed: ct.Problem, truth: ct.Problem, items: int, seed: int
) -> tuple[Monitor, list[list[Any]]]:
    """Let a monitor watch a campaign, up to the first alarm."""
    asked = policy(assumed)
    block = Crowd(problem=truth).block(assumed, key(seed), 0, items)
    monitor, said = Monitor(asked, adapt=False), []
    for row in range(items):
        walk = Walk(asked, block, row)
        while walk.label is None and not monitor.alarms:
            answer = walk.step()
            if answer is not None:
                monitor.observe(str(row), answer)
        said.append(walk.history)
        if monitor.alarms:
            break
    return monitor, said


def knowing(
    assumed: ct.Problem, truth: ct.Problem, items: int, seed: int, real: ct.Problem
) -> FloatArray:
    """Log likelihood ratio of the true table, after each item; `real` makes the answers."""
    asked = policy(assumed)
    block = Crowd(problem=real).block(assumed, key(seed), 0, items)
    said = []
    for row in range(items):
        walk = Walk(asked, block, row)
        while walk.label is None:
            walk.step()
        said.append([answer for answer in walk.history if answer is not None])
    gathered = Gathered.of(said)
    logs = [
        np.logaddexp.reduce(np.log(t.prior) + gathered.log_likelihood(t.model), axis=1)
        for t in (table_of(policy(truth)), table_of(asked))
    ]
    return np.asarray(np.cumsum(logs[0] - logs[1]))


def alarms(runs: int, items: int = 30) -> Rows:
    """How soon errors twice as large are noticed."""
    rows: Rows = []
    for name, assumed in problems().items():
        truth = times(assumed, 2)
        found = [watched(assumed, truth, 4 * items, seed)[0].alarms for seed in range(runs)]
        at = np.array([alarm[0].items if alarm else 4 * items + 1 for alarm in found])
        told, null = (
            np.array([knowing(assumed, truth, items, seed, real) for seed in seeds])
            for real, seeds in ((truth, range(runs)), (assumed, range(10_000, 10_000 + 3 * runs)))
        )
        # Neyman and Pearson: no test of level 5 % that looks once, after the last item, is better
        level = np.quantile(null[:, -1], 0.95)
        rows.append(
            {
                "problem": name,
                "runs": runs,
                "within": float((at <= items).mean()),
                "median": float(np.median(at)),
                "95 %": float(np.quantile(at, 0.95)),
                "most": 4 * items,
                "told": float((told >= -np.log(0.05)).any(axis=1).mean()),
                "best": float((told[:, -1] > level).mean()),
            }
        )
        print(f"  {rows[-1]}", flush=True)
    return rows


def false_alarms(runs: int, items: int) -> Rows:
    """How often a right table is doubted, at any time in a campaign."""
    rows: Rows = []
    for name, assumed in problems().items():
        alarmed = sum(bool(watched(assumed, assumed, items, s)[0].alarms) for s in range(runs))
        low, high = wilson_interval(alarmed, runs)
        rows.append(
            {"problem": name, "runs": runs, "items": items, "alarmed": alarmed,
             "low": low, "high": high}
        )  # fmt: skip
        print(f"  {rows[-1]}", flush=True)
    return rows


def right_table(items: int, runs: int) -> Rows:
    """What watching costs when the table is right."""
    rows: Rows = []
    for name, assumed in problems().items():
        plain, adapting = (
            [simulate(assumed, policy(assumed), items, seed, adapt=adapt) for seed in range(runs)]
            for adapt in (False, True)
        )
        answers = [
            float(np.mean([run.answers.mean() for run in done])) for done in (plain, adapting)
        ]
        wrong = [
            float(np.mean([run.label != run.truth for run in done])) for done in (plain, adapting)
        ]
        rows.append(
            {"problem": name, "runs": runs, "items": items, "plain": wrong[0],
             "plain answers": answers[0], "adapting": wrong[1], "adapting answers": answers[1]}
        )  # fmt: skip
        print(f"  {rows[-1]}", flush=True)
    return rows


def points(value: float) -> str:
    return f"{100 * value:.2f} %"


def mended_table(rows: Rows, what: str) -> str:
    return table(
        ["problem", "as it is", "adapting (95 %)", "told the truth", "answers: as it is",
         "adapting", "told", "adapting / told", "alarms"],
        [
            [
                row["problem"],
                points(row["as it is"]),
                f"**{points(row['adapting'])}** ({points(row['adapting interval'][0])} to "
                f"{points(row['adapting interval'][1])})",
                points(row["told"]),
                f"{row['as it is answers']:.1f}",
                f"{row['adapting answers']:.1f}",
                f"{row['told answers']:.1f}",
                f"{row['adapting answers'] / row['told answers']:.2f}",
                f"{row['alarms']} of {row['runs']}",
            ]
            for row in rows
            if row["setting"] == what
        ],
    )  # fmt: skip


def other_settings(rows: Rows) -> str:
    lines = []
    for what in list(SETTINGS)[1:]:
        mine = [row for row in rows if row["setting"] == what]
        ways = ("as it is", "adapting", "told")
        lines.append(
            [what]
            + [points(float(np.mean([row[way] for row in mine]))) for way in ways]
            + [points(max(row["adapting"] for row in mine))]
            + [f"{np.mean([row[f'{way} answers'] for row in mine]):.1f}" for way in ways]
            + [f"{sum(r['alarms'] for r in mine)} of {sum(r['runs'] for r in mine)}"]
        )
    return table(
        ["what is true", "error: as it is", "adapting", "told", "adapting, worst problem",
         "answers: as it is", "adapting", "told", "alarms"],
        lines,
    )  # fmt: skip


def alarm_table(rows: Rows) -> str:
    return table(
        ["problem", "within 30 items", "told the truth", "best test", "median", "95 % of the runs"],
        [
            [
                row["problem"],
                f"{row['within']:.0%}",
                f"{row['told']:.0%}",
                f"{row['best']:.0%}",
                f"{row['median']:.0f}",
                f"{row['95 %']:.0f}" if row["95 %"] <= row["most"] else f"> {row['most']}",
            ]
            for row in rows
        ],
    )  # fmt: skip


def false_text(rows: Rows) -> str:
    """One sentence about all campaigns."""
    runs, alarmed = sum(r["runs"] for r in rows), sum(r["alarmed"] for r in rows)
    low, high = wilson_interval(alarmed, runs)
    worst = max(rows, key=lambda row: row["alarmed"] / row["runs"])
    return (
        f"{alarmed} of {runs} campaigns of {rows[0]['items']} items: {alarmed / runs:.1%} "
        f"({low:.1%} to {high:.1%}); most on `{worst['problem']}`, {worst['alarmed']} of "
        f"{worst['runs']}."
    )


def costs(rows: Rows) -> str:
    """What watching costs when the table is right, in one sentence."""
    most = max(row["adapting answers"] / row["plain answers"] for row in rows)
    plain, adapting = (
        points(float(np.mean([row[k] for row in rows]))) for k in ("plain", "adapting")
    )
    return (
        f"At most {most:.3f} times the answers, over {len(rows)} problems; mean error {plain} "
        f"without watching and {adapting} with it, campaigns with a false alarm included."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--alarms", type=int, default=100, help="runs per problem")
    parser.add_argument("--parts", nargs="*", default=["alarms", "false", "mended", "right"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ct.CrowdtreeWarning)
    found: dict[str, Rows] = {}
    if args.json and args.json.exists():
        found = json.loads(args.json.read_text())
    makers: dict[str, Callable[[], Rows]] = {
        "alarms": lambda: alarms(args.alarms),
        "false": lambda: false_alarms(args.alarms, 40),
        "mended": lambda: mended(args.items, args.runs),
        "right": lambda: right_table(args.items, args.runs),
    }
    for part in args.parts:
        print(part, flush=True)
        found[part] = makers[part]()
        if args.json:
            args.json.parent.mkdir(parents=True, exist_ok=True)
            args.json.write_text(json.dumps(found, indent=1))
    if args.out:
        page = args.out.read_text()
        for name, content in {
            "twice": mended_table(found["mended"], MAIN),
            "others": other_settings(found["mended"]),
            "alarms": alarm_table(found["alarms"]),
            "false alarms": false_text(found["false"]),
            "right table": costs(found["right"]),
        }.items():
            page = written(page, name, content)
        args.out.write_text(page)


if __name__ == "__main__":
    main()
