"""Audits: does the bound hold, how many checks does it take, and what do real crowds show?

``python -m benchmarks.audit [--replays 2000] [--write]`` takes some minutes of processor time;
``--write`` puts the tables into ``docs/measured/audit.md``.

*Settings.* In each replay the wrong items are drawn anew (crowds: fixed) and an audit is played to
the last item. *Held*: share of replays in which the true number of wrong labels was never
rejected, at any check. *Checks*: until the bound is certified, beside uniform sampling with the
same kind of bets and no stated errors. Results come in sheets of ten.

*Crowds.* The answers of each crowd replayed in random order as a campaign of one question; labels
and stated errors of ``learn`` without gold, items with gold, audits without a wanted bound.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.crowds import files, real_names
from benchmarks.learn_docs import put, table
from crowdtree.audit import Audit, kernels
from crowdtree.audit.forecast import ledger_of
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
    checks, held = np.empty(replays), 0
    for number in range(replays):
        wrong = setting.wrong(rng)
        bad = np.bincount(codes, wrong, minlength=len(ledger.left)).astype(float)
        totals = np.array([float(total), float(wrong.sum())])
        crossed = kernels.replay(
            ledger.counts, bad[None], ledger.model, totals, np.zeros(2), ledger.need, BATCH,
            uniform, rng, ledger.size,
        )[0]  # fmt: skip
        checks[number] = crossed[0]
        held += int(crossed[1] < 0)
    return checks, held / replays


def settings_table(made: dict[str, Setting], replays: int) -> str:
    head = ["setting", "items", "wrong", "bound", "held, %", "checks", "10 to 90 %", "uniform",
            "10 to 90 %", "ratio"]  # fmt: skip
    rows = []
    for name, setting in made.items():
        ours, held = play(setting, replays, False)
        plain, plain_held = play(setting, replays, True)
        wrong = setting.wrong(np.random.default_rng(0)).mean()
        share = [f"{100 * wrong:.1f} %", f"{100 * setting.bound:.1f} %"]
        cells = [f"{ours.mean():.0f}", spread(ours), f"{plain.mean():.0f}", spread(plain)]
        ratio = f"{ours.mean() / plain.mean():.2f}"
        size = f"{len(setting.errors):,}"
        rows.append([name, size, *share, f"{100 * held:.1f}", *cells, ratio])
        print(" | ".join(rows[-1]), f"| uniform held {100 * plain_held:.1f}", flush=True)
    return table(head, rows)


def spread(checks: Floats) -> str:
    low, high = np.quantile(checks, [0.1, 0.9])
    return f"{low:.0f} to {high:.0f}"


def crowds_table() -> str:
    head = ["crowd", "items", "answers", "stated", "truth", *(f"bound after {n}" for n in SIZES),
            *(f"estimate after {n}" for n in SIZES), "bound held", "interval held"]  # fmt: skip
    rows = []
    for name, (items, labels, errors, truth, each) in crowd_labels().items():
        wrong = [a != b for a, b in zip(labels, truth, strict=True)]
        share = float(np.mean(wrong))
        held, inside, tries = 0, 0, 0
        shown: list[str] = []
        estimates: list[str] = []
        for seed in range(SEEDS):
            audit = Audit(items, labels, errors.tolist(), seed=seed)
            answer = dict(zip(items, truth, strict=True))
            for size in SIZES:
                while len(audit.history) < min(size, len(items)):
                    for item in audit.next(min(20, size - len(audit.history))):
                        audit.record(item, answer[item])
                found = audit.standing
                if seed == 0:
                    done = "" if found.checks == size else f" (all {found.checks})"
                    shown.append(f"{100 * found.upper:.1f} %{done}")
                    estimates.append(
                        f"{100 * (found.estimate or 0):.1f} ({100 * found.low:.1f} to "
                        f"{100 * found.high:.1f}) %"
                    )
            # the bound only falls, so the last one tells whether it ever failed
            tries += 1
            held += int(audit.standing.upper >= share - 1e-12)
            inside += int(audit.standing.low - 1e-12 <= share <= audit.standing.high + 1e-12)
        rows.append([
            name, f"{len(items):,}", f"{each:.1f}", f"{100 * errors.mean():.1f} %",
            f"{100 * share:.1f} %", *shown,
            *estimates, f"{held} of {tries}", f"{inside} of {tries}",
        ])  # fmt: skip
        print(" | ".join(rows[-1]), flush=True)
    return table(head, rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--replays", type=int, default=2000)
    options.add_argument("--write", action="store_true", help="put the tables into the page")
    options.add_argument("--only", choices=["settings", "crowds"])
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    tables = {}
    if chosen.only != "crowds":
        made = settings() | crowd_settings()
        tables["settings"] = settings_table(made, chosen.replays)
    if chosen.only != "settings" and real_names():
        tables["crowds"] = crowds_table()
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
