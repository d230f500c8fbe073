"""A table of your own: what errors cost, with an adaptive policy and with a fixed tree.

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

for error in (0.1, 0.03, 0.01):
    choices = ct.plan(problem, error=error)
    print(f"at most {error:.0%} wrong: {choices.reason}")
    for choice in choices.choices:
        found = choice.performance
        kind = "exact" if found.exact else "simulated"
        print(f"  {choice.name}: {found.answers:.1f} answers, {found.error:.2%} wrong ({kind})")
    print(f"  the tree: {choices.tree.proof}")

print()
print(choices.fixed_plan.tree.to_text())
run = ct.simulate(problem, choices.policy, items=20_000, rng=1)
print(f"\nother people, simulated: {run}")
