"""Questions with several answers: the tree, one item, and what yes/no questions would take.

python examples/leaves.py
"""

import crowdtree as ct

guide = ct.example("leaves")
print(ct.design(guide).to_text())

print("\nA tree with cones and needles, by visitors who are not sure of the twig:")
answers = [("fruit", "cones"), ("leaf", "needles"), ("twig", "can't tell")]
for line in ct.explain(guide, answers).lines():
    print(line)

print("\nUntil every label is wrong with a chance of at most 2 % (simulated):")
for name, table in (("several answers", guide), ("yes/no questions", guide.as_yes_no())):
    policy = ct.AdaptivePolicy(table, target_error=0.02)
    run = ct.simulate(table, policy, items=20_000, rng=0)
    print(f"  {name}: {run.answers_per_item:.1f} answers, {run.misclassification:.2%} wrong")
