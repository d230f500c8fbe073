"""Label models of others, written plainly for comparison: what a crowd's answers say by each.

Every function takes a :class:`benchmarks.crowds.Crowd` and returns a :class:`Fit`: probabilities
of the labels of every item, and the objective after each step, which never falls.

- ``majority``: shares of the votes. Ties are broken at random, by a fixed seed.
- ``one_coin``: one accuracy per worker, all mistakes equally likely, class shares; EM.
- ``dawid_skene``: a confusion matrix per worker, class shares; EM from the shares of the votes,
  with 1e-10 added to every count.
- ``glad``: ability times easiness of the item (Whitehill and others 2009), normal priors around
  one; EM whose maximisation is a few steps of L-BFGS.
- ``mace``: a worker knows, or has a favourite answer (Hovy and others 2013); variational Bayes,
  the best of ten starts.
- ``ebcc``: sub-types of classes that workers share (Li, Rubinstein and Cohn 2019); variational
  Bayes with ten sub-types, the best of some starts.

``python -m benchmarks.peers [--only NAMES] [--methods NAMES] [--out FILE]`` prints the accuracy of
each on each crowd; with CROWDKIT_PYTHON, a Python that has crowd-kit, ``--check`` adds
crowd-kit's version of four of them. They agree to a few tenths of a point on most crowds.
Dawid-Skene differs by up to 1.5 points (once 8), as crowd-kit stops earlier and accuracy falls from
step to step there; GLAD by up to 1.2. crowd-kit's MACE (1.4.2) gives other labels if rows are
shuffled; it gets codes in their order of appearance, for which it agrees with ours.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import digamma, expit, gammaln, log_expit, logsumexp

from benchmarks.crowds import Crowd, choose, load
from benchmarks.learn_speed import measure

STEPS = 200
CLOSE = 1e-6
"""Relative gain of the objective at which a fit ends."""


class Fit(NamedTuple):
    posterior: np.ndarray
    trace: list[float]


class Pairs(NamedTuple):
    """Answers as a sparse matrix: a row for each (worker, label) that occurs, a column per item."""

    worker: np.ndarray
    label: np.ndarray
    counts: csr_array
    workers: int

    @classmethod
    def of(cls, crowd: Crowd) -> Pairs:
        k = len(crowd.labels)
        pair, row = np.unique(crowd.worker * k + crowd.label, return_inverse=True)
        shape = len(pair), len(crowd.tasks)
        counts = csr_array((np.ones(len(row)), (row, crowd.task)), shape=shape)
        return cls(pair // k, pair % k, counts, len(crowd.workers))

    def per_worker(self, rows: np.ndarray) -> np.ndarray:
        """Sum rows over the labels of a worker."""
        total = np.zeros((self.workers, *rows.shape[1:]))
        np.add.at(total, self.worker, rows)
        return total


def shares(crowd: Crowd) -> np.ndarray:
    """Shares of the votes of every item."""
    return tally(crowd, np.ones(len(crowd.task))) / np.bincount(crowd.task)[:, None]


def tally(crowd: Crowd, weight: np.ndarray) -> np.ndarray:
    """Sum a weight of every answer by item and label."""
    k = len(crowd.labels)
    cell = crowd.task * k + crowd.label
    return np.bincount(cell, weight, k * len(crowd.tasks)).reshape(-1, k)


def normalise(score: np.ndarray) -> tuple[np.ndarray, float]:
    """Probabilities of every row, and the sum of the logs of their normalisers."""
    norm = logsumexp(score, axis=1, keepdims=True)
    return np.exp(score - norm), float(norm.sum())


def settled(trace: list[float]) -> bool:
    return len(trace) > 1 and trace[-1] - trace[-2] < CLOSE * abs(trace[-1])


def majority(crowd: Crowd) -> Fit:
    posterior = shares(crowd)
    posterior += 1e-9 * np.random.default_rng(0).random(posterior.shape)
    return Fit(posterior / posterior.sum(axis=1, keepdims=True), [])


def one_coin(crowd: Crowd) -> Fit:
    posterior, k, trace = shares(crowd), len(crowd.labels), []
    count = np.bincount(crowd.worker, minlength=len(crowd.workers))
    while len(trace) < STEPS and not settled(trace):
        agree = posterior[crowd.task, crowd.label]
        right = np.bincount(crowd.worker, agree, len(count)) / np.maximum(count, 1)
        right = np.clip(right, 1e-6, 1 - 1e-6)
        wrong = np.log((1 - right) / max(k - 1, 1))
        score = tally(crowd, (np.log(right) - wrong)[crowd.worker])
        posterior, total = normalise(score + np.log(posterior.mean(axis=0) + 1e-300))
        trace.append(total + float(wrong @ count))
    return Fit(posterior, trace)


def dawid_skene(crowd: Crowd) -> Fit:
    posterior, k, trace = shares(crowd), len(crowd.labels), []
    pairs = Pairs.of(crowd)
    while len(trace) < STEPS and not settled(trace):
        counts = pairs.counts @ posterior + 1e-10
        seen = pairs.per_worker(np.ones((len(counts), 1)))
        total = pairs.per_worker(counts) + 1e-10 * (k - seen)
        log = np.log(counts) - np.log(total)[pairs.worker]
        score = pairs.counts.T @ log + np.log(posterior.mean(axis=0) + 1e-300)
        posterior, value = normalise(score)
        trace.append(value)
    return Fit(posterior, trace)


def glad(crowd: Crowd) -> Fit:
    task, worker, k = crowd.task, crowd.worker, len(crowd.labels)
    workers, trace, posterior = len(crowd.workers), [], shares(crowd)
    x = np.ones(workers + len(crowd.tasks))

    def lost(x: np.ndarray, agree: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the expected log likelihood and log prior, and the gradient."""
        ability, ease = x[:workers], np.exp(np.minimum(x[workers:], 20))
        margin = ability[worker] * ease[task]
        value = agree @ log_expit(margin) + (1 - agree) @ (log_expit(-margin) - np.log(k - 1))
        slope = agree - expit(margin)
        by_worker = np.bincount(worker, slope * ease[task], workers)
        by_task = np.bincount(task, slope * margin, len(ease))
        gradient = np.concatenate([by_worker, by_task]) - (x - 1)
        return 0.5 * float((x - 1) @ (x - 1)) - float(value), -gradient

    while len(trace) < 60 and not settled(trace):
        agree = posterior[task, crowd.label]
        x = minimize(lost, x, (agree,), "L-BFGS-B", jac=True, options={"maxiter": 15}).x
        margin = x[:workers][worker] * np.exp(np.minimum(x[workers:], 20))[task]
        wrong = log_expit(-margin) - np.log(k - 1)
        posterior, value = normalise(tally(crowd, log_expit(margin) - wrong) - np.log(k))
        trace.append(value + float(wrong.sum()) - 0.5 * float((x - 1) @ (x - 1)))
    return Fit(posterior, trace)


def best(starts: int, fit: Callable[[np.random.Generator], Fit]) -> Fit:
    """Keep the start with the highest objective."""
    fits = (fit(np.random.default_rng(seed)) for seed in range(starts))
    return max(fits, key=lambda one: one.trace[-1])


def divergence(counts: np.ndarray, prior: np.ndarray | float, log: np.ndarray) -> float:
    """Divergence of Dirichlet distributions from their prior, but for their totals."""
    return float((gammaln(prior) - gammaln(counts) + (counts - prior) * log).sum())


def mace(crowd: Crowd, starts: int = 10) -> Fit:
    k, count = len(crowd.labels), np.bincount(crowd.worker, minlength=len(crowd.workers))
    pair = crowd.worker * k + crowd.label

    def fit(rng: np.random.Generator) -> Fit:
        trace: list[float] = []
        know = count * rng.beta(3, 2, len(count))
        habit = rng.gamma(1.0, 1.0, (len(count), k)) * ((count - know) / k)[:, None]
        while len(trace) < 50 and not settled(trace):
            sure = np.stack([know, count - know], axis=1) + 0.5
            log_sure = digamma(sure) - digamma(count + 1.0)[:, None]
            log_habit = digamma(habit + 10) - digamma(habit.sum(axis=1) + 10 * k)[:, None]
            spam = log_sure[crowd.worker, 1] + log_habit.ravel()[pair]
            either = np.logaddexp(spam, log_sure[crowd.worker, 0])
            posterior, value = normalise(tally(crowd, either - spam) - np.log(k))
            total, start = habit.sum(axis=1) + 10.0 * k, np.array([1.0, 10.0 * k])
            value += float(spam.sum()) - divergence(sure, 0.5, log_sure)
            value -= divergence(habit + 10, 10.0, log_habit) + float(
                (gammaln(count + 1.0) + gammaln(total) - gammaln(start).sum()).sum()
            )
            trace.append(value)
            knows = posterior[crowd.task, crowd.label] * np.exp(log_sure[crowd.worker, 0] - either)
            know = np.bincount(crowd.worker, knows, len(count))
            habit = np.bincount(pair, 1 - knows, len(count) * k).reshape(-1, k)
        return Fit(posterior, trace)

    return best(starts, fit)


def ebcc(crowd: Crowd, starts: int = 4, kinds: int = 10) -> Fit:
    k, pairs, vote = len(crowd.labels), Pairs.of(crowd), shares(crowd)
    prior = np.where(pairs.label[:, None] == np.arange(k), 4.0, 1.0)[:, :, None]
    row = 3.0 + k

    def fit(rng: np.random.Generator) -> Fit:
        trace: list[float] = []
        joint = vote[:, :, None] * rng.dirichlet(np.ones(kinds), vote.shape)
        while len(trace) < STEPS and not settled(trace):
            share = joint.sum(axis=0) + 0.1 / kinds
            label = joint.sum(axis=(0, 2)) + 1
            flat = pairs.counts @ joint.reshape(len(joint), -1)
            counts = flat.reshape(-1, k, kinds) + prior
            total = pairs.per_worker(counts - prior) + row
            log = digamma(counts) - digamma(total)[pairs.worker]
            log_share = digamma(share) - digamma(share.sum(axis=1, keepdims=True))
            log_label = digamma(label) - digamma(label.sum())
            score = (pairs.counts.T @ log.reshape(len(log), -1)).reshape(joint.shape)
            score += log_share + log_label[:, None]
            made, value = normalise(score.reshape(len(joint), -1))
            joint = made.reshape(joint.shape)
            value -= divergence(counts, prior, log) + divergence(share, 0.1 / kinds, log_share)
            value -= divergence(label, 1.0, log_label)
            value -= float((gammaln(total) - gammaln(row)).sum())
            value -= float((gammaln(share.sum(axis=1)) - gammaln(0.1)).sum())
            value -= float(gammaln(label.sum()) - gammaln(k))
            trace.append(value)
        return Fit(joint.sum(axis=2), trace)

    return best(starts if k < 20 else min(starts, 2), fit)


PEERS: dict[str, Callable[[Crowd], Fit]] = {
    "majority": majority, "one-coin": one_coin, "dawid-skene": dawid_skene, "glad": glad,
    "mace": mace, "ebcc": ebcc,
}  # fmt: skip
CROWDKIT = {"one-coin": "OneCoinDawidSkene", "dawid-skene": "DawidSkene", "glad": "GLAD",
            "mace": "MACE"}  # fmt: skip


def accuracy(posterior: np.ndarray, truth: np.ndarray) -> float:
    """Share of the known items whose likeliest label is right, in %."""
    return 100 * float((posterior.argmax(axis=1) == truth)[truth >= 0].mean())


def by_appearance(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes renumbered in the order in which they appear, and the old code of each."""
    old, first, index = np.unique(codes, return_index=True, return_inverse=True)
    order = first.argsort()
    return order.argsort()[index], old[order]


def crowdkit(python: str, method: str, crowd: Crowd) -> float:
    """Accuracy of crowd-kit's version, run by another Python; nan if it fails."""
    (task, tasks), (worker, _), (label, labels) = map(by_appearance, crowd[1:4])
    with tempfile.TemporaryDirectory() as place:
        source = str(Path(place, "answers.parquet"))
        pl.DataFrame({"task": task, "worker": worker, "label": label}).write_parquet(source)
        found, pairs = measure(CROWDKIT[method], source, python)
    if "failed" in found:
        return float("nan")
    truth = crowd.truth[tasks[pairs[:, 0]]]
    return 100 * float((labels[pairs[:, 1]] == truth)[truth >= 0].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="real, simulated, or names of crowds with commas")
    parser.add_argument("--methods", default=",".join(PEERS))
    parser.add_argument("--check", action="store_true", help="also run crowd-kit's versions")
    parser.add_argument("--out", type=Path, help="write the table to this file, too")
    given = parser.parse_args()
    python = os.environ.get("CROWDKIT_PYTHON") if given.check else None
    methods = given.methods.split(",")
    head = [*methods, *(f"kit {m}" for m in methods if python and m in CROWDKIT), "seconds"]
    lines = [f"{'accuracy, %':24}" + "".join(f"{name:>16}" for name in head)]
    print(lines[0], flush=True)
    for crowd in map(load, choose(given.only)):
        start = time.process_time()
        row = [accuracy(PEERS[m](crowd).posterior, crowd.truth) for m in methods]
        spent = time.process_time() - start
        if python:
            row += [crowdkit(python, m, crowd) for m in methods if m in CROWDKIT]
        lines.append(f"{crowd.name:24}" + "".join(f"{x:16.2f}" for x in (*row, spent)))
        print(lines[-1], flush=True)
        if given.out:
            given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
