"""Audits: does the bound hold, how many checks does it take, and what do real crowds show?

``python -m benchmarks.audit [--replays 2000] [--write]`` takes about half an hour of processor
time; ``--write`` puts the tables into ``docs/measured/audit.md``, ``--only`` makes one of them.

*Planned.* Audits of a planned number of checks, and how many checks a fixed uniform sample needs
for the same mean bound. *Any time*: the same without a plan. *Away*: at other numbers of checks
than the planned one.

*Settings.* In each replay the wrong items are drawn anew (crowds: fixed) and an audit is played to
the last item. *Held*: share of replays in which the true number of wrong labels was never
rejected, at any check. *Checks*: until the bound is certified, beside uniform sampling with the
same kind of bets and no stated errors, and beside fixed samples. Results come in sheets of ten.

*Crowds.* The answers of each crowd replayed in random order as a campaign of one question; labels
and stated errors of ``learn`` without gold, items with gold, audits of planned numbers of checks.

*Speed.* Processor time of audits of 400 checks, read at the end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import hypergeom

from benchmarks.crowds import files, real_names
from benchmarks.learn_docs import put, table
from crowdtree.audit import Audit
from crowdtree.audit.exact import max_found, max_wrong
from crowdtree.audit.forecast import ledger_of
from crowdtree.audit.kernels import replay
from crowdtree.audit.ledger import allowed_wrong
from crowdtree.learning import learn
from crowdtree.learning.answers import read_gold
from crowdtree.learning.model import Learned

PAGE = Path(__file__).resolve().parents[1] / "docs" / "measured" / "audit.md"
N = 2000
WRONG = 22
ALPHA = 0.05
BATCH = 10
SIZES = (100, 200, 400)
SEEDS = 20
RATES = (0.005, 0.02, 0.1, 0.2, 0.33, 0.4)
PLANS = ((300, 50), (300, 150), (2000, 100), (2000, 400), (20_000, 400), (20_000, 1000))
"""Numbers of items and planned checks."""
AWAY = (100, 200, 400, 800, 1600)
STATED = ("informative", "useless", "misleading")
SPEED = """
import time, numpy as np, crowdtree as ct
for items, share, options in %r:
    rng = np.random.default_rng(0)
    stated = np.clip(rng.beta(0.5, 0.5 * (1 - share) / share, items), 1e-6, 1 - 1e-6)
    wrong = rng.random(items) < stated
    for seed in range(-1, %d):
        if not seed:
            start = time.process_time()
        audit = ct.Audit(stated, confidence=0.95, rng=seed + 1, **options)
        for _ in range(400):
            item = audit.draw()
            audit.record(item, wrong=bool(wrong[item]))
        audit.upper, audit.interval
    print((time.process_time() - start) / %d)
"""
SPEEDS = [(800, 0.1, {}), (2000, 0.05, {}), (2000, 0.3, {}), (2000, 0.05, {"bound": 0.08}),
          (20_000, 0.05, {})]  # fmt: skip
TIMED = 5
TARGET = 0.05
"""Stated error at which an item of a crowd gets no more answers."""
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Setting(NamedTuple):
    """Stated errors, which labels are wrong (drawn anew by a generator), and the bound."""

    errors: Floats
    wrong: Callable[[np.random.Generator], Bools]
    bound: float


def exactly(count: int, chance: Floats) -> Callable[[np.random.Generator], Bools]:
    """So many wrong items, drawn by these chances."""

    def made(rng: np.random.Generator) -> Bools:
        found = np.zeros(len(chance), dtype=bool)
        found[rng.choice(len(chance), count, replace=False, p=chance / chance.sum())] = True
        return found

    return made


def settings() -> dict[str, Setting]:
    rng = np.random.default_rng(1)
    beta = rng.beta(0.11, 9.9, N) + 1e-6
    two = np.where(rng.random(N) < 0.1, 0.1, 0.001)
    five = rng.beta(0.3, 5.0, N) + 1e-6
    bad_class = np.zeros(N)
    bad_class[rng.choice(N, WRONG, replace=False)] = 1.0
    low = np.clip(beta, None, 0.2)
    flat = np.full(N, 1.0)
    return {
        "calibrated": Setting(beta, exactly(WRONG, beta), 0.024),
        "two kinds of items": Setting(two, exactly(WRONG, two), 0.024),
        "five times too sure": Setting(beta / 5, exactly(WRONG, beta), 0.024),
        "5.5 % wrong, bound 9 %": Setting(five, exactly(110, five), 0.09),
        "useless (shuffled)": Setting(rng.permutation(beta), exactly(WRONG, beta), 0.024),
        "all equal": Setting(0.011 * flat, exactly(WRONG, flat), 0.024),
        "all zero": Setting(0 * flat, exactly(WRONG, flat), 0.024),
        "reversed": Setting(low.max() - low, exactly(WRONG, low), 0.024),
        "one class all wrong, stated 0": Setting(
            np.where(bad_class > 0, 0.0, beta), lambda _: bad_class > 0, 0.024
        ),
        "all wrong but one": Setting(beta, exactly(N - 1, flat), 0.9999),
    }


def campaign(answers: Path, seed: int = 0) -> Learned:
    """Replay the answers of a crowd as a campaign of one question, in random order.

    An item whose stated error has reached the target gets no more answers. Skills and posteriors
    are updated as answers come in, and learned from all of them at the end.
    """
    rows = pl.read_csv(answers, infer_schema_length=0)
    rows = rows[np.random.default_rng(seed).permutation(len(rows)).tolist()]
    items = rows["task"].n_unique()
    taken = [rows[:items]]
    learned, known = learn(rows[:items]), set(rows["task"][:items].to_list())
    step = max(1, items // 4)
    for start in range(items, len(rows), step):
        new = rows[start : start + step]
        tasks = new["task"].to_list()
        new = new.filter(pl.Series([t not in known or _error(learned, t) > TARGET for t in tasks]))
        if len(new):
            learned.update(new)
            known |= set(new["task"].to_list())
            taken.append(new)
    return learn(pl.concat(taken))


def _error(learned: Learned, task: str) -> float:
    """Stated error of an item."""
    return 1 - float(learned.item(task).max())


class Labelled(NamedTuple):
    """Items with gold, their labels, stated errors and truth, and answers per item."""

    items: list[str]
    labels: list[str]
    errors: Floats
    truth: list[str]
    answers: float


@cache
def crowd_labels() -> dict[str, Labelled]:
    """Labels of every crowd, replayed as a campaign."""
    made = {}
    for name in real_names():
        answers, path = files(name)
        learned, gold = campaign(answers), read_gold(path)
        said = learned.labels
        items = [task for task in said if task in gold]
        errors = np.array([_error(learned, task) for task in items]).clip(0, 1)
        labels = [said[task] for task in items]
        truth = [str(gold[task]) for task in items]
        each = learned.answers.n_answers / learned.answers.n_tasks
        made[name] = Labelled(items, labels, errors, truth, each)
        print(f"  {name}: {each:.1f} answers per item", flush=True)
    return made


def play(setting: Setting, replays: int, uniform: bool) -> tuple[Floats, float]:
    """Checks of every replay, and the share in which the truth was never rejected."""
    errors = setting.errors
    used = np.full(len(errors), errors.mean()) if uniform else errors
    ledger, codes = ledger_of(used, setting.bound, 1 - ALPHA)
    total = allowed_wrong(setting.bound, len(errors)) + 1
    rng = np.random.default_rng(0)
    wrong = np.array([setting.wrong(rng) for _ in range(replays)])
    strata = len(ledger.left)
    bad = np.array([np.bincount(codes, row, minlength=strata) for row in wrong], dtype=float)
    totals = np.column_stack([np.full(replays, float(total)), wrong.sum(axis=1)])
    crossed = replay(
        ledger.counts, bad, ledger.model, totals, np.zeros(2), ledger.need, BATCH, uniform, rng,
        ledger.size, resolution=None,
    )  # fmt: skip
    return crossed[:, 0].astype(float), float((crossed[:, 1] < 0).mean())


@cache
def fixed_bound(items: int, wrong: int, checks: int) -> float:
    """Expected exact bound of a fixed uniform sample."""
    found = np.arange(min(checks, wrong) + 1)
    chance = hypergeom.pmf(found, items, wrong, checks)
    return float(sum(
        p * max_wrong(items, checks, int(x), ALPHA)
        for x, p in zip(found, chance, strict=True) if p > 1e-7
    ))  # fmt: skip


def fixed_checks(items: int, wrong: int, checks: int, bound: float) -> float:
    """Checks of a fixed uniform sample whose expected bound is this one."""
    sizes = np.unique(np.geomspace(max(checks / 8, 2), min(1.6 * checks, items), 50).astype(int))
    bounds = np.minimum.accumulate([fixed_bound(items, wrong, int(n)) for n in sizes])
    return float(np.interp(-bound, -bounds, sizes))


def stated_errors(kind: str, items: int, share: float, rng: np.random.Generator) -> list[Floats]:
    """Stated errors of a kind, and the chances by which items are wrong."""
    a = max(0.15, min(1.0, 6 * share))
    chance = np.clip(rng.beta(a, a * (1 - share) / share, items), 1e-6, 1 - 1e-6)
    stated = {"informative": chance, "useless": rng.permutation(chance)}
    return [stated.get(kind, chance.max() - chance + 1e-6), chance]


def planned_bounds(
    stated: Floats, wrong: Callable[[np.random.Generator], Bools], checks: int, planned: int,
    replays: int,
) -> tuple[float, int]:  # fmt: skip
    """Checks of a fixed sample with the same mean bound, and in how many replays ours held.

    Where draws are uniform (up to the planned number), a fixed sample of the same draws removes
    most of the noise. Held: never too low, until half as many checks again were made.
    """
    bounds, held = [], 0
    items, rng = len(stated), np.random.default_rng(0)
    for seed in range(replays):
        truth = wrong(rng)
        audit = Audit(stated, rng=seed, planned=planned)
        for _ in range(checks):
            item = audit.draw()
            audit.record(item, wrong=bool(truth[item]))
        bound = audit.upper * items
        if checks <= planned:
            bound -= max_wrong(items, checks, audit.standing.wrong, ALPHA)
            bound += fixed_bound(items, int(truth.sum()), checks)
        bounds.append(bound)
        for _ in range(min(checks // 2, items - checks)):
            item = audit.draw()
            audit.record(item, wrong=bool(truth[item]))
        held += min(found.upper for found in audit.history) * items > truth.sum() - 0.5
    return fixed_checks(items, int(truth.sum()), checks, float(np.mean(bounds))), held


def planned_table(replays: int) -> str:
    head = ["stated errors", "mean ratio", "worst ratio", "held, %",
            "any time: mean ratio", "worst ratio", "held, %"]  # fmt: skip
    ratios: dict[str, list[list[float]]] = {kind: [] for kind in STATED}
    counts = {kind: np.zeros(2) for kind in STATED}
    for share, kind in product(RATES, STATED):
        for items, checks in PLANS:
            rng = np.random.default_rng(1)
            stated, chance = stated_errors(kind, items, share, rng)
            wrong = exactly(max(1, round(share * items)), chance)
            made = [planned_bounds(stated, wrong, checks, n, replays) for n in (checks, 0)]
            ratios[kind].append([checks / needs for needs, _ in made])
            counts[kind] += [held for _, held in made]
            print(share, kind, items, checks, np.round(ratios[kind][-1], 3), flush=True)
    audits = replays * len(RATES) * len(PLANS)
    rows = [[kind, *_planned_cells(ratios[kind], counts[kind] / audits)] for kind in STATED]
    every = (
        [one for some in ratios.values() for one in some],
        np.mean(list(counts.values()), axis=0) / audits,
    )
    return table(head, [*rows, ["all", *_planned_cells(*every)]])


def _planned_cells(ratios: list[list[float]], held: Floats) -> list[str]:
    mean, worst = np.mean(ratios, axis=0), np.max(ratios, axis=0)
    return [
        cell
        for kind in (0, 1)
        for cell in (f"{mean[kind]:.2f}", f"{worst[kind]:.2f}", f"{100 * held[kind]:.1f}")
    ]


def away_table(replays: int) -> str:
    """Ratios at other numbers of checks than the planned one."""
    rows = []
    for share in (0.02, 0.1, 0.33):
        items, ratios = 20_000, []
        stated, chance = stated_errors("useless", items, share, np.random.default_rng(1))
        wrong = exactly(round(share * items), chance)
        for checks in AWAY:
            needs, _ = planned_bounds(stated, wrong, checks, 400, replays)
            ratios.append(f"{checks / needs:.2f}")
        rows.append([f"{100 * share:.0f} %", *ratios])
        print(" | ".join(rows[-1]), flush=True)
    return table(["wrong", *(f"ratio at {checks}" for checks in AWAY)], rows)


def speed_table() -> str:
    command = [sys.executable, "-c", SPEED % (SPEEDS, TIMED, TIMED)]
    made = subprocess.run(command, capture_output=True, check=True)
    rows = []
    for (items, share, options), seconds in zip(SPEEDS, made.stdout.split(), strict=True):
        bound = f"{100 * options['bound']:.0f} %" if options else "none"
        rows.append([f"{items:,}", f"{100 * share:.0f} %", bound, f"{float(seconds):.3f}"])
        print(" | ".join(rows[-1]), flush=True)
    return table(["items", "wrong", "bound", "seconds"], rows)


def fixed_sizes(items: int, wrong: int, total: int) -> list[int]:
    """Fixed uniform samples that certify with a chance of 50 and of 90 %."""
    found = []
    for power in (0.5, 0.9):
        low, high = 1, items
        while low < high:
            n = (low + high) // 2
            most = max_found(items, n, total, ALPHA)
            enough = hypergeom.cdf(most, items, wrong, n) >= power
            low, high = (low, n) if enough else (n + 1, high)
        found.append(low)
    return found


def settings_table(made: dict[str, Setting], replays: int) -> str:
    head = ["setting", "items", "wrong", "bound", "held, %", "checks", "uniform",
            "ratio", "fixed, 50 %", "fixed, 90 %"]  # fmt: skip
    rows = []
    for name, setting in made.items():
        ours, held = play(setting, replays, False)
        plain, plain_held = play(setting, replays, True)
        wrong = setting.wrong(np.random.default_rng(0)).mean()
        share = [f"{100 * wrong:.1f} %", f"{100 * setting.bound:.1f} %"]
        cells = [f"{ours.mean():.0f}", f"{plain.mean():.0f}"]
        ratio = f"{ours.mean() / plain.mean():.2f}"
        items = len(setting.errors)
        total = allowed_wrong(setting.bound, items) + 1
        fixed = map(str, fixed_sizes(items, round(wrong * items), total))
        rows.append([name, f"{items:,}", *share, f"{100 * held:.1f}", *cells, ratio, *fixed])
        print(" | ".join(rows[-1]), f"| uniform held {100 * plain_held:.1f}", flush=True)
    return table(head, rows)


def crowds_table() -> str:
    head = ["crowd", "items", "answers", "stated", "truth", *(f"bound after {n}" for n in SIZES),
            "bound held"]  # fmt: skip
    rows = []
    for name, (items, labels, errors, truth, each) in crowd_labels().items():
        wrong = np.array([a != b for a, b in zip(labels, truth, strict=True)])
        share, n = float(wrong.mean()), len(items)
        held, tries = 0, 0
        shown: list[str] = []
        for size in (min(size, n) for size in SIZES):
            for seed in range(SEEDS):
                audit = Audit(errors, rng=seed, planned=size)
                while audit.checked < size:
                    item = audit.draw()
                    audit.record(item, wrong=bool(wrong[item]))
                found = audit.standing
                tries += 1
                held += int(found.upper >= share - 1e-12)
                if seed == 0:
                    done = "" if size < n else f" (all {size})"
                    shown.append(f"{100 * found.upper:.1f} %{done}")
        rows.append([
            name, f"{n:,}", f"{each:.1f}", f"{100 * errors.mean():.1f} %",
            f"{100 * share:.1f} %", *shown,
            f"{held} of {tries}",
        ])  # fmt: skip
        print(" | ".join(rows[-1]), flush=True)
    return table(head, rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--replays", type=int, default=2000)
    options.add_argument("--write", action="store_true", help="put the tables into the page")
    options.add_argument("--only", choices=["planned", "away", "settings", "crowds", "speed"])
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    tables = {}
    if chosen.only in (None, "planned"):
        tables["planned"] = planned_table(max(1, chosen.replays // 100))
    if chosen.only in (None, "away"):
        tables["away"] = away_table(max(1, chosen.replays // 50))
    if chosen.only in (None, "settings"):
        made = settings() | crowd_settings()
        tables["settings"] = settings_table(made, chosen.replays)
    if chosen.only in (None, "crowds") and real_names():
        tables["crowds"] = crowds_table()
    if chosen.only in (None, "speed"):
        tables["speed"] = speed_table()
    if chosen.write:
        text = PAGE.read_text(encoding="utf-8")
        for mark, content in tables.items():
            text = put(text, mark, content)
        PAGE.write_text(text, encoding="utf-8")


def crowd_settings() -> dict[str, Setting]:
    """Real crowds of 700 items or more; the bound is one and a half times the true error."""
    made = {}
    for name, (items, labels, errors, truth, _) in crowd_labels().items():
        if len(items) >= 700:
            wrong = np.array([a != b for a, b in zip(labels, truth, strict=True)])
            made[name] = Setting(
                errors, lambda _, w=wrong: w, min(0.9, 1.5 * wrong.mean())
            )  # fmt: skip
    return made


if __name__ == "__main__":
    main()
