"""Do stated errors hold where one person answers several questions about one item?

Somebody who misreads an item answers all questions about it as if it were of another class. The
table has the errors of single answers right, misreadings included, so only the dependence between
the answers of one person is at stake. A few people take turns on each item, and an adaptive policy
goes on to its target. `person_dependence` discounts a person's further answers.

- ``observed``: share of wrong labels among those that reached the target;
- ``stated``: mean of their stated errors;
- ``reached``: share of the items that reached the target.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from typing import Any

import numpy as np

import crowdtree as ct
from benchmarks.sybils import table
from crowdtree.campaign.view import answer_weight
from crowdtree.core.likelihood import AnswerModel
from crowdtree.core.stats import wilson_interval
from crowdtree.policies import AdaptivePolicy, Answer, Label

MOST_ANSWERS = 24


def misread_table(problem: ct.Problem, misread: float) -> ct.Problem:
    """Table of single answers where people misread this share of the items.

    >>> problem = table()
    >>> bool((misread_table(problem, 0.2).worker_error > problem.worker_error).all())
    True
    """
    yes = AnswerModel.of(problem).yes
    prior = problem.prior / problem.prior.sum()
    seen = (1 - misread) * yes + misread * (yes @ prior)[:, None]
    return problem.replace(worker_error=np.where(yes > 0.5, 1 - seen, seen))


def label_item(
    policy: Any, yes: np.ndarray, misread: float, people: int, rho: float, rng: np.random.Generator
) -> tuple[bool, Label, int]:
    """Label one item: whether that is wrong, the label, and the number of answers."""
    problem = policy.problem
    prior = problem.prior / problem.prior.sum()
    truth = int(rng.choice(problem.n_classes, p=prior))
    seen = np.where(
        rng.random(people) < misread, rng.choice(problem.n_classes, size=people, p=prior), truth
    )
    state, count = policy.start(), 0
    while not isinstance(found := policy.ask(state), Label):
        earlier, person = divmod(count, people)
        question = found.questions[0]
        value = int(rng.random() < yes[question, seen[person]])
        state = policy.update(state, Answer(question, value, 0.0, answer_weight(earlier, rho)))
        count += 1
    return found.label != truth, found, count


def measure(
    target: float, misread: float, people: int, rho: float, items: int, seed: int
) -> dict[str, Any]:
    """Label items, and compare stated and observed errors."""
    problem = table(seed)
    told = misread_table(problem, misread)
    policy = AdaptivePolicy(told, target, MOST_ANSWERS, strict=False).at_least(people)
    yes, rng = AnswerModel.of(problem).yes, np.random.default_rng([seed, 3])
    made = [label_item(policy, yes, misread, people, rho, rng) for _ in range(items)]
    done = [(wrong, label) for wrong, label, _ in made if label.reason == "target"]
    wrong = sum(wrong for wrong, _ in done)
    stated = [label.posterior_error for _, label in done]
    return {
        "target": target,
        "misread": misread,
        "people": people,
        "rho": rho,
        "observed": round(wrong / max(1, len(done)), 4),
        "interval": [round(end, 4) for end in wilson_interval(wrong, len(done))],
        "stated": round(float(np.mean(stated)), 4) if stated else None,
        "reached": round(len(done) / items, 3),
        "answers": round(float(np.mean([count for *_, count in made])), 2),
    }


def main() -> None:
    """Print one line of JSON per case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", type=float, nargs="*", default=[0.03])
    parser.add_argument("--misread", type=float, nargs="*", default=[0.0, 0.05, 0.1, 0.2])
    parser.add_argument("--people", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--rho", type=float, nargs="*", default=[0.0, 0.1, 0.2, 0.3])
    options = parser.parse_args()
    for case in product(options.target, options.misread, options.people, options.rho):
        print(json.dumps(measure(*case, options.items, options.seed)), flush=True)


if __name__ == "__main__":
    main()
