"""Answers become a problem, trust in workers, and a plan that allows for doubt.

python examples/from_answers.py
"""

import numpy as np

import crowdtree as ct

# A pilot: 60 photographs of known animals, 12 workers, each question asked 4 times an item.
truth = ct.example("table1")
rng = np.random.default_rng(0)
skill = rng.normal(0.0, 0.6, 12)
rows: dict[str, list[object]] = {"task": [], "question": [], "worker": [], "label": []}
gold: dict[str, list[object]] = {"task": [], "label": []}
for item in range(60):
    cls = int(rng.choice(truth.n_classes, p=truth.prior))
    gold["task"].append(item)
    gold["label"].append(truth.classes[cls])
    for q, question in enumerate(truth.questions):
        if truth.outcome[q, cls] < 0:
            continue
        for worker in rng.choice(12, size=4, replace=False):
            odds = truth.worker_error[q, cls] / (1 - truth.worker_error[q, cls])
            error = odds / (odds + np.exp(skill[worker]))
            right = int(truth.outcome[q, cls])
            rows["task"].append(item)
            rows["question"].append(question)
            rows["worker"].append(f"worker {worker}")
            rows["label"].append(right if rng.random() > error else 1 - right)

learned = ct.learn(rows, gold=gold)
print(f"a typical worker errs in {learned.typical_error:.1%} of answers (estimate)")
for name, worker in sorted(learned.workers.items(), key=lambda pair: pair[1].skill)[:3]:
    print(
        f"  weakest: {name}, {worker.error:.0%} ({worker.error_low:.0%} to {worker.error_high:.0%})"
    )

plan = ct.staff(ct.design(learned.problem, uncertainty=learned), workers=12)
value = ct.evaluate(plan, uncertainty=learned)
assert value.credible is not None
print(
    f"the plan misclassifies {value.misclassification:.1%}; with the doubt about the errors "
    f"{value.credible.low:.1%} to {value.credible.high:.1%} (95 % credible)"
)
