"""A table of your own: the tree, what error costs, and how few answers an adaptive crowd needs.

python examples/birds.py
"""

import crowdtree as ct

problem = ct.Problem(
    classes=["robin", "eagle", "trout", "shark"],
    prior=[0.4, 0.1, 0.3, 0.2],
    questions=["Does it fly?", "Does it hunt large prey?", "Does it sing?"],
    outcome=[[1, 1, 0, 0], [0, 1, 0, 1], [1, 0, "-", "-"]],
    worker_error=[0.05, 0.15, 0.10],
)

tree = ct.design(problem, "optimal")
print(tree.to_text())
print(f"one worker per question: {ct.evaluate(tree).misclassification:.1%} wrong (exact)\n")

front = ct.frontier(problem)
for error in (0.1, 0.03, 0.01):
    value = ct.evaluate(front.plan_for(error=error))
    print(
        f"at most {error:.0%} wrong costs {value.expected_answers:.1f} answers per item "
        f"({value.misclassification:.2%}, exact, and no plan of majority votes is cheaper)"
    )

policy = ct.AdaptivePolicy(problem, target_error=0.01)
run = ct.simulate(problem, policy, items=20_000, rng=0)
print(
    f"\nadaptive, at most 1% wrong: {run.answers_per_item:.1f} answers per item, "
    f"{run.misclassification:.2%} wrong (estimate, 95 % interval "
    f"{run.misclassification.low:.2%} to {run.misclassification.high:.2%})"
)
