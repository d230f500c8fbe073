"""People and models answering together: what ``learn`` states of them, and what asking them costs.

``python -m benchmarks.mixes [--draws 20] [--write]`` prints the tables of
``docs/measured/mixes.md``, or writes them between their marks there. Needs the data folder.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import crowdtree as ct
from benchmarks.mixed_sets import REAL, Mix, load
from benchmarks.simulated_mixes import MECHANISMS, OTHERS, drawn, simulate
from crowdtree.core.calibration import INDEPENDENT
from crowdtree.learning.dawid_skene import fit_dawid_skene
from crowdtree.learning.source_dependence import Dependence
from crowdtree.learning.source_policy import recorded_answers
from crowdtree.simulation import Recorded

PAGE = Path(__file__).resolve().parents[1] / "docs" / "measured" / "mixes.md"
PEOPLE = {"cebab_aspects": 2, "lesion": 3, "cifar10h": 3}
"""Most people per item: of cebab two of four are held out."""
TARGETS = (0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01)
Row = list[str]


def gold_of(mix: Mix, known: int, rng: np.random.Generator) -> dict[str, str] | None:
    """Class of some items, drawn at random."""
    drawn = rng.permutation(len(mix.truth))[:known]
    return {str(i): f"c{mix.truth[i]}" for i in drawn} or None


def learned_from(mix: Mix, gold: Any, chosen: np.ndarray | None = None, **options: Any) -> Any:
    names = [f"c{c}" for c in range(mix.classes)]
    return ct.learn(mix.columns(chosen), gold, classes=names, **options)


def scores(posterior: np.ndarray, label: np.ndarray, truth: np.ndarray) -> list[float]:
    """Share right, share stated, log loss and calibration error over ten bins."""
    right, stated = label == truth, posterior[np.arange(len(label)), label]
    edge = np.minimum((stated * 10).astype(int), 9)
    gaps = np.bincount(edge, stated - right.astype(float), 10)
    chance = np.maximum(posterior[np.arange(len(truth)), truth], 1e-12)
    return [
        right.mean(), stated.mean(), -np.log(chance).mean(), np.abs(gaps).sum() / len(right)
    ]  # fmt: skip


def judged(learned: Any, mix: Mix, independent: bool = False) -> list[float]:
    """Scores on the items of unknown class; whether the interval holds, and its width."""
    items = learned.answers.tasks.astype(int)
    open_, truth = learned.gold < 0, mix.truth[items]
    stated = learned.stated_posterior
    if independent:
        fit = learned.labelling
        rows = np.arange(len(items))
        evidence = fit.tables.evidence(learned.answers, fit.row, rows)
        none = Dependence(np.zeros(len(fit.dependence.within)), 0.0)
        stated = np.exp(evidence.posterior(np.log(fit.tables.share), none))
        label = stated.argmax(axis=1)
    else:
        place = {name: c for c, name in enumerate(learned.classes)}
        label = np.array([place[name] for name in learned.labels.values()])
    made = scores(stated[open_], label[open_], truth[open_])
    accuracy = learned.accuracy
    return [*made, accuracy.low <= made[0] <= accuracy.high, accuracy.high - accuracy.low]


WAYS = ("sources", "independent sources")


def both_ways(
    draw: Callable[[np.random.Generator], Mix],
    known: int,
    draws: int,
    chosen: Callable[[Mix], np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """Scores of each way to learn from the same draws (draw, score)."""
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for seed in range(draws):
        rng = np.random.default_rng([seed, known])
        mix = draw(rng)
        gold, workers = gold_of(mix, known, rng), None if chosen is None else chosen(mix)
        learned = learned_from(mix, gold, workers, sources=mix.table())
        found[WAYS[0]].append(judged(learned, mix))
        found[WAYS[1]].append(judged(learned, mix, independent=bool(learned.sources)))
    return {way: np.array(rows) for way, rows in found.items()}


def share(value: float) -> str:
    return f"{100 * value:.1f}"


def labels_table(draws: int) -> Iterator[Row]:
    yield ["set", "known", "way", "right, %", "stated, %", "mean gap, points", "log loss",
           "calibration error", "interval holds, %", "width"]  # fmt: skip
    for name in REAL:
        for known in (0, 50, 200):
            found = both_ways(lambda rng, n=name: load(n, rng, PEOPLE[n]), known, draws)
            for way, rows in found.items():
                mean, gap = rows.mean(axis=0), np.abs(rows[:, 1] - rows[:, 0]).mean()
                held = [share(mean[4]), share(mean[5])] if way != WAYS[1] else ["", ""]
                yield [name, str(known), way, share(mean[0]), share(mean[1]), share(gap),
                       f"{mean[2]:.3f}", share(mean[3]), *held]  # fmt: skip


def models_table(draws: int) -> Iterator[Row]:
    """Two people, and the models added one by one."""
    yield ["set", "known", "models", "right, %", "stated - right", "independent: right",
           "independent: stated - right"]  # fmt: skip
    for name in REAL:
        for known in (0, 200):
            for models in (0, 1, 2, 4, 6):
                if models > (6 if name == "cebab_aspects" else 4):
                    continue
                found = both_ways(
                    lambda rng, n=name: load(n, rng, 2), known, draws,
                    lambda mix, m=models: np.append(mix.people, mix.models[:m]),
                )  # fmt: skip
                ours, plain = (rows.mean(axis=0) for rows in found.values())
                yield [name, str(known), str(models), share(ours[0]),
                       f"{100 * (ours[1] - ours[0]):+.1f}", share(plain[0]),
                       f"{100 * (plain[1] - plain[0]):+.1f}"]  # fmt: skip


def best_source(mix: Mix, learned: Any) -> np.ndarray:
    """Labels of the source that is right most often on the known items; else of the majority."""
    answers = mix.answers[learned.answers.tasks.astype(int)]
    known, votes = learned.gold >= 0, plurality(answers, mix.classes)
    truth = mix.truth[learned.answers.tasks.astype(int)]
    source, best, most = np.array(mix.sources), votes, -1.0
    for name in dict.fromkeys(mix.sources):
        given = answers[:, source == name]
        label = np.where((given >= 0).any(axis=1), plurality(given, mix.classes), votes)
        right = float((label == truth)[known].mean())
        if right > most:
            best, most = label, right
    return best


def plurality(answers: np.ndarray, classes: int) -> np.ndarray:
    """Most frequent answer about each item, ties at random."""
    votes = np.stack([(answers == c).sum(axis=1) for c in range(classes)], axis=1)
    tie = np.random.default_rng(0).random(votes.shape)
    return np.asarray((votes + 0.5 * tie).argmax(axis=1))


def peers(mix: Mix, learned: Any) -> list[float]:
    """Share of right labels of the majority, of Dawid and Skene, and of the best source."""
    open_, truth = learned.gold < 0, mix.truth[learned.answers.tasks.astype(int)]
    place = np.array([int(name[1:]) for name in learned.classes])
    fit = fit_dawid_skene(learned.answers.votes, learned.gold, steps=200)
    labels = [
        plurality(mix.answers[learned.answers.tasks.astype(int)], mix.classes),
        place[fit.posterior.argmax(axis=1)],
    ]
    labels += [best_source(mix, learned)] if not open_.all() else []
    return [float((label == truth)[open_].mean()) for label in labels]


def others_table(draws: int) -> Iterator[Row]:
    """Simulated mixes of other mechanisms, beside what peers label."""
    yield ["mechanism", "known", "right, %", "majority", "Dawid-Skene", "best source",
           "stated - right", "mean gap, points", "interval holds, %", "width"]  # fmt: skip
    shapes = ((1, 2, 2), (2, 5, 3), (3, 9, 4))
    drawn: dict[str, list[Callable[[np.random.Generator], Mix]]] = {
        name: [lambda rng, n=name, s=shape: simulate(n, rng, *s) for shape in shapes]
        for name in MECHANISMS
    } | {name: [make] * 3 for name, make in OTHERS.items()}  # fmt: skip
    for known in (0, 50, 200):
        total = []
        for name, makes in drawn.items():
            rows = []
            for seed in range(3 * draws):
                rng = np.random.default_rng([seed, known])
                mix = makes[seed % 3](rng)
                learned = learned_from(mix, gold_of(mix, known, rng), sources=mix.table())
                rows.append([*judged(learned, mix), *peers(mix, learned)])
            found = np.array(rows)
            total.append(found)
            yield [name, str(known), *_beside_peers(found)]
        yield ["**all**", str(known), *_beside_peers(np.concatenate(total))]


def _beside_peers(found: np.ndarray) -> Row:
    mean, gap = found.mean(axis=0), np.abs(found[:, 1] - found[:, 0]).mean()
    best = [*map(share, mean[6:]), ""][:3]
    return [share(mean[0]), *best, f"{100 * (mean[1] - mean[0]):+.1f}", share(gap),
            share(mean[4]), share(mean[5])]  # fmt: skip


def drawn_table(draws: int) -> Iterator[Row]:
    """Mixes whose make-up is drawn, too: how often labels are worse than those of any peer."""
    yield ["known", "right, %", "majority", "Dawid-Skene", "best source", "mean gap, points",
           "interval holds, %", "width", "below the best peer, points",
           "more than 1 below, % of mixes"]  # fmt: skip
    for known in (0, 50, 200):
        rows = []
        for seed in range(draws):
            rng = np.random.default_rng([seed, known, 9])
            mix = drawn(rng)
            learned = learned_from(mix, gold_of(mix, known, rng), sources=mix.table())
            rows.append([*judged(learned, mix), *peers(mix, learned)])
        found = np.array(rows)
        below = np.minimum(found[:, 0] - found[:, 6:].max(axis=1), 0)
        right, majority, fitted, best, _, gap, *held = _beside_peers(found)
        yield [str(known), right, majority, fitted, best, gap, *held, share(-below.mean()),
               share(np.mean(below < -0.01))]  # fmt: skip


def policies_of(learned: Any) -> dict[str, Any]:
    """The ways of asking that are compared, each calibrated on the known items."""
    models = [name for name, s in learned.sources.items() if s.kind == "model"]
    plain = learned.problem.replace(
        source_dependence=0.0, sources=[_apart(source) for source in learned.problem.sources]
    )
    mix = learned.policy(0.05, 12)
    options = mix.to_dict() | {"calibration": INDEPENDENT.to_dict()}
    return {
        "people only": learned.policy(0.05, 12, sources=["people"]),
        "models only": learned.policy(0.05, 12, sources=models),
        "mix": mix,
        "mix, taken as independent": ct.AdaptivePolicy.from_dict(plain, options),
    }


def _apart(source: ct.Source) -> ct.Source:
    return ct.Source.from_dict(source.to_dict() | {"dependence": 0.0})


def costs(name: str, draws: int, price: float) -> dict[tuple[str, float], np.ndarray]:
    """Error, cost per item and stated error of each way of asking at each target (draw, ...)."""
    found: dict[tuple[str, float], list[list[float]]] = {}
    for seed in range(draws):
        rng = np.random.default_rng([seed, 200])
        mix = load(name, rng, PEOPLE[name])
        gold = gold_of(mix, 200, rng)
        learned = learned_from(mix, gold, sources=mix.table(price))
        known = learned.gold >= 0
        truth = mix.truth[learned.answers.tasks.astype(int)]
        crowd = Recorded(recorded_answers(learned.answers)[~known], truth[~known])
        for way, policy in policies_of(learned).items():
            for target in (0.0, *TARGETS):
                asked = policy.changed(target_error=target, undecided=target > 0)
                run = ct.simulate(policy.problem, asked, int((~known).sum()), crowd=crowd)
                paid = sum(run.cost_per_source().values())
                row = [float(run.misclassification), paid, float(run.stated_error)]
                found.setdefault((way, target), []).append(row)
    return {key: np.array(rows) for key, rows in found.items()}


def costs_table(draws: int) -> Iterator[Row]:
    yield ["set", "price of a model", "way", "error at a target of 5 %", "stated", "cost",
           "cost for the error of all people", "error of all people"]  # fmt: skip
    for name in REAL:
        for price in (0.02, 0.1):
            found = {key: rows.mean(axis=0) for key, rows in costs(name, draws, price).items()}
            goal = found["people only", 0.0]
            for way in dict.fromkeys(way for way, _ in found):
                at = found[way, 0.05]
                enough = [row[1] for (w, _), row in found.items() if w == way and row[0] <= goal[0]]
                least = f"{min(enough):.2f}" if enough else "not reached"
                yield [name, f"{price:g}", way, f"{share(at[0])} %", f"{share(at[2])} %",
                       f"{at[1]:.2f}", least, f"{share(goal[0])} %"]  # fmt: skip


def coverage_table(draws: int) -> Iterator[Row]:
    """How often the interval of the error of each source holds its true error."""
    yield ["answers", "known", "people", "expert", "models", "a person", "a spammer"]
    for depend in (False, True):
        for known in (0, 50, 200):
            held: dict[str, list[bool]] = {}
            for seed in range(draws):
                for who, ok in _held(np.random.default_rng([seed, known]), known, depend):
                    held.setdefault(who, []).append(ok)
            kind = "share difficulty" if depend else "independent"
            columns = ("people", "expert", "model", "person", "spammer")
            yield [kind, str(known), *(share(float(np.mean(held[who]))) for who in columns)]


def _held(rng: np.random.Generator, known: int, depend: bool) -> Iterator[tuple[str, bool]]:
    """Answers of twelve people (two of them spammers), an expert and four models."""
    from scipy.special import expit, logit

    items, classes = 400, 3
    truth = rng.choice(classes, items, p=rng.dirichlet(np.full(classes, 5.0)))
    hard = rng.standard_normal(items) * depend
    alike = (truth + rng.integers(1, classes, items)) % classes
    error = np.concatenate([rng.beta(4, 12, 12), rng.uniform(0.01, 0.05, 1),
                            rng.uniform(0.05, 0.4, 4)])  # fmt: skip
    chance = expit(logit(error) + hard[:, None])
    follow = rng.random((items, 17)) < 0.6 * depend
    other = (truth[:, None] + rng.integers(1, classes, (items, 17))) % classes
    wrong = np.where(follow, alike[:, None], other)
    said = np.where(rng.random((items, 17)) < chance, wrong, truth[:, None])
    true = chance.mean(axis=0)
    said[:, 0], true[0] = rng.integers(0, classes, items), 1 - 1 / classes
    said[:, 1], true[1] = 0, np.mean(truth != 0)
    said[:, :12][np.argsort(rng.random((items, 12)), axis=1) >= 4] = -1
    said[rng.random(items) > 0.4, 12] = -1
    names = ["people"] * 12 + ["expert"] + [f"model {m}" for m in range(4)]
    mix = Mix(said, names, truth, classes)
    learned = learned_from(
        mix, gold_of(mix, known, rng), sources={f"w{w}": s for w, s in enumerate(names)}
    )
    count = (said >= 0).sum(axis=0)
    whole = {"people": (count[:12] @ true[:12]) / count[:12].sum(), "expert": true[12]}
    whole |= {f"model {m}": true[13 + m] for m in range(4)}
    for name, source in learned.sources.items():
        yield name.split()[0], source.low <= whole[name] <= source.high
    for w in range(12):
        worker = learned.workers[f"w{w}"]
        who = "spammer" if w < 2 else "person"
        yield who, worker.error_low <= true[w] <= worker.error_high


TABLES: dict[str, Callable[[int], Iterator[Row]]] = {
    "labels": labels_table,
    "models": models_table,
    "costs": lambda draws: costs_table(max(draws // 2, 1)),
    "coverage": lambda draws: coverage_table(5 * draws),
    "others": lambda draws: others_table(max(draws // 3, 1)),
    "drawn": lambda draws: drawn_table(20 * draws),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--table", choices=TABLES, action="append")
    parser.add_argument("--write", action="store_true", help="write them into the page")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in chosen.table or TABLES:
        head, *rows = TABLES[name](chosen.draws)
        lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
        made = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        print(f"\n{name}\n{made}", flush=True)
        if chosen.write:
            marks = f"<!-- {name} -->", f"<!-- end {name} -->"
            text = PAGE.read_text(encoding="utf-8")
            before, _, rest = text.partition(marks[0])
            _, _, after = rest.partition(marks[1])
            whole = "\n".join((marks[0], "", made, "", marks[1]))
            PAGE.write_text(before + whole + after, encoding="utf-8")


if __name__ == "__main__":
    main()
