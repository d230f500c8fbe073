"""Policies: what to ask next about an item, and when to stop.

``POLICIES`` maps a policy's name, as in its ``to_dict()``, to its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.problem import Problem
from crowdtree.policies.adaptive import AdaptivePolicy
from crowdtree.policies.base import Answer, Ask, Label, Policy
from crowdtree.policies.batch import BatchPolicy
from crowdtree.policies.plan import PlanPolicy, expected_answers, with_votes_by
from crowdtree.policies.subtypes import SubtypePolicy

__all__ = [
    "POLICIES",
    "AdaptivePolicy",
    "Answer",
    "Ask",
    "BatchPolicy",
    "Label",
    "PlanPolicy",
    "Policy",
    "SubtypePolicy",
    "expected_answers",
    "policy_from_dict",
    "with_votes_by",
]

POLICIES: Mapping[str, Any] = MappingProxyType(
    {
        "plan": PlanPolicy,
        "adaptive": AdaptivePolicy,
        "batch": BatchPolicy,
        "subtypes": SubtypePolicy,
    }
)


def policy_from_dict(problem: Problem, data: Mapping[str, Any]) -> Policy[Any]:
    """Read a policy as its ``to_dict()`` wrote it.

    >>> import crowdtree as ct
    >>> policy = AdaptivePolicy(ct.example("table1"), target_error=0.02)
    >>> policy_from_dict(policy.problem, policy.to_dict())
    AdaptivePolicy(information, target_error=0.02, max_answers=100)
    """
    kind = POLICIES.get(str(data.get("policy")))
    if kind is None:
        raise CrowdtreeError(
            f"policy: {data.get('policy')!r} is unknown; choose from {', '.join(POLICIES)}"
        )
    try:
        policy: Policy[Any] = kind.from_dict(problem, dict(data))
    except (KeyError, TypeError) as error:
        raise CrowdtreeError(f"policy: {data['policy']!r} cannot be read: {error}") from None
    return policy
