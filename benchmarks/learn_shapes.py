"""Labels on simulated crowds of many shapes: is one question's default method ever a bad choice?

``python -m benchmarks.learn_shapes [--runs 8]``: about two minutes. Prints the mean accuracy of
ours, majority, Dawid-Skene and one-coin (all without gold), what ours states, and the worst
shortfall against the best of the others. No gold of a real set is read.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.special import expit, logit

from crowdtree.learning import labels as labelling
from crowdtree.learning.answers import Answers, read_answers


def deal(rng, items: int, workers: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    """Items and workers of the answers: every item goes to `each` different workers."""
    worker = np.argsort(rng.random((items, workers)), axis=1)[:, :each].ravel()
    return np.repeat(np.arange(items), each), worker


def one_coin(rng, items=400, workers=40, each=8, share=0.5, sd=0.8, error=0.27):
    truth = (rng.random(items) < share).astype(int)
    task, worker = deal(rng, items, workers, each)
    wrong = rng.random(len(task)) < expit(logit(error) + rng.normal(0, sd, workers))[worker]
    return truth, task, worker, truth[task] ^ wrong


def two_coin(rng, items=400, workers=40, each=8, lean=1.0):
    """Workers are biased towards one answer or the other."""
    truth = rng.integers(0, 2, items)
    task, worker = deal(rng, items, workers, each)
    side = rng.normal(0, lean, workers)[worker] * (2 * truth[task] - 1)
    wrong = rng.random(len(task)) < expit(logit(0.27) + side)
    return truth, task, worker, truth[task] ^ wrong


def uneven(rng, items=400, workers=40, each=8):
    """Everybody misses many items of one class."""
    truth = rng.integers(0, 2, items)
    task, worker = deal(rng, items, workers, each)
    level = logit(np.array([0.06, 0.4]))[truth[task]]
    wrong = rng.random(len(task)) < expit(level + rng.normal(0, 0.6, workers)[worker])
    return truth, task, worker, truth[task] ^ wrong


def difficulty(rng, items=400, workers=40, each=8):
    """Some items are harder for everybody, none misleads."""
    truth = rng.integers(0, 2, items)
    task, worker = deal(rng, items, workers, each)
    ease = np.exp(rng.normal(0, 1, items))[task] * rng.normal(1.2, 0.6, workers)[worker]
    return truth, task, worker, truth[task] ^ (rng.random(len(task)) < expit(-ease))


def clusters(rng, items=400, workers=40, each=8):
    """Two schools of workers, each blind to half of the items of a class."""
    truth, kind = rng.integers(0, 2, items), rng.integers(0, 2, items)
    task, worker = deal(rng, items, workers, each)
    school = (rng.random(workers) < 0.7).astype(int)
    blind = (kind[task] == school[worker]) & (truth[task] == 1)
    wrong = rng.random(len(task)) < np.where(blind, 0.5, 0.15)
    return truth, task, worker, truth[task] ^ wrong


def spammers(rng, share=0.4, each=10):
    truth, task, worker, label = one_coin(rng, each=each, error=0.2)
    spam = rng.random(40) < share
    style = rng.integers(0, 3, 40)  # always no, always yes, a coin
    said = np.where(style[worker] == 2, rng.integers(0, 2, len(task)), style[worker])
    return truth, task, worker, np.where(spam[worker], said, label)


def adversaries(rng, share=0.2):
    truth, task, worker, label = one_coin(rng, error=0.2, each=10)
    return truth, task, worker, np.where((rng.random(40) < share)[worker], 1 - label, label)


def many_classes(rng, classes=8, items=500, workers=50, each=7):
    truth = rng.integers(0, classes, items)
    task, worker = deal(rng, items, workers, each)
    confused = rng.dirichlet(
        np.full(classes, 0.3), classes
    )  # each class has its favourite mistakes
    right = rng.random(len(task)) < expit(0.6 + rng.normal(0, 0.7, workers))[worker]
    pick = (rng.random(len(task))[:, None] > np.cumsum(confused[truth[task]], axis=1)).sum(axis=1)
    return truth, task, worker, np.where(right, truth[task], np.minimum(pick, classes - 1))


def lookalikes(rng, items=300, workers=40, each=20):
    """A type of each class looks like the other to many; the majority still knows it."""
    truth, kind = rng.integers(0, 2, items), rng.random(items) < 0.5
    task, worker = deal(rng, items, workers, each)
    wrong = rng.random(len(task)) < np.where(kind[task], 0.4, 0.03)
    return truth, task, worker, truth[task] ^ wrong


def one_lookalike(rng, items=300, workers=40, each=20):
    """A type of one class alone looks like the other."""
    truth, kind = (rng.random(items) < 0.4).astype(int), rng.random(items) < 0.5
    task, worker = deal(rng, items, workers, each)
    wrong = rng.random(len(task)) < np.where(kind[task] & (truth[task] == 0), 0.4, 0.06)
    return truth, task, worker, truth[task] ^ wrong


def experts(rng, items=300, workers=40, each=20):
    """A third of the workers knows; the others see the sign and mistake a type of one class."""
    truth, kind = rng.integers(0, 2, items), rng.random(items) < 0.5
    task, worker = deal(rng, items, workers, each)
    knows = (rng.random(workers) < 0.35)[worker]
    fooled = ~knows & kind[task] & (truth[task] == 1)
    wrong = rng.random(len(task)) < np.where(fooled, 0.75, np.where(knows, 0.08, 0.2))
    return truth, task, worker, truth[task] ^ wrong


SHAPES = {
    "one-coin": one_coin,
    "one-coin, 3 answers per item": lambda rng: one_coin(rng, 800, 60, 3, error=0.2),
    "one-coin, skewed prior": lambda rng: one_coin(rng, share=0.08, error=0.2),
    "one-coin, 3 answers, skewed": lambda rng: one_coin(rng, 800, 60, 3, 0.08, error=0.2),
    "two-coin": two_coin,
    "two-coin, strong lean": lambda rng: two_coin(rng, lean=1.8),
    "two-coin, 3 answers per item": lambda rng: two_coin(rng, 800, 60, 3),
    "one class overlooked": uneven,
    "one class overlooked, 3 answers": lambda rng: uneven(rng, 800, 60, 3),
    "item difficulty": difficulty,
    "two schools of workers": clusters,
    "spammers": spammers,
    "adversaries": adversaries,
    "8 classes": many_classes,
    "8 classes, 3 answers per item": lambda rng: many_classes(rng, items=800, each=3),
    "look-alikes in both classes": lookalikes,
    "look-alikes in one class": one_lookalike,
    "experts against the many": experts,
}


def coin_em(answers: Answers, steps: int = 100) -> np.ndarray:
    """One-coin Dawid-Skene: one accuracy per worker, uniform mistakes, maximum likelihood by EM."""
    task, k = answers.task, len(answers.labels)
    post = np.zeros((answers.n_tasks, k))
    np.add.at(post, (task, answers.label), 1.0)
    post /= post.sum(axis=1, keepdims=True)
    count = np.bincount(answers.worker, minlength=answers.n_workers)
    for _ in range(steps):
        agree = np.bincount(answers.worker, post[task, answers.label], answers.n_workers)
        right = np.clip(agree / np.maximum(count, 1), 1e-4, 1 - 1e-4)
        score = np.tile(np.log(post.mean(axis=0) + 1e-300), (answers.n_tasks, 1))
        gain = np.log(right) - np.log((1 - right) / (k - 1))
        np.add.at(score, (task, answers.label), gain[answers.worker])
        new = np.exp(score - score.max(axis=1, keepdims=True))
        new /= new.sum(axis=1, keepdims=True)
        moved, post = np.abs(new - post).max(), new
        if moved < 1e-4:
            break
    return post


METHODS = ("crowdtree", "majority", "dawid-skene", "one-coin")


def measure(shape, seed: int) -> list[float]:
    """Accuracies of the methods, and what ours states."""
    truth, task, worker, label = shape(np.random.default_rng(seed))
    answers = read_answers({"task": task, "worker": worker, "label": label.astype(int)})
    none = np.full(answers.n_tasks, -1, np.int32)

    def right(posterior: np.ndarray) -> float:
        names = np.array([int(name) for name in answers.labels])
        return 100 * float(np.mean(names[posterior.argmax(axis=1)] == truth[answers.tasks]))

    fits = [labelling.fit_labels(answers, none, m)
            for m in ("hierarchical", "majority", "dawid-skene")]  # fmt: skip
    stated = fits[0].worth.stated(fits[0].posterior, np.diff(answers.start)).max(axis=1).mean()
    return [*(right(fit.posterior) for fit in fits), right(coin_em(answers)), 100 * stated]


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8, help="crowds per shape")
    runs = parser.parse_args().runs
    start = time.process_time()
    head = (*METHODS, "stated", "short")
    print(f"{'accuracy, %':32}" + "".join(f"{name:>12}" for name in head))
    short = []
    for name, shape in SHAPES.items():
        table = np.mean([measure(shape, seed) for seed in range(runs)], axis=0)
        short.append(table[1:4].max() - table[0])
        print(f"{name:32}" + "".join(f"{x:12.1f}" for x in (*table, short[-1])), flush=True)
    print(f"\nworst shortfall of crowdtree against the best baseline: {max(short):.1f} points")
    print(f"{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
