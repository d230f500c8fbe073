"""Types that all parts of the store share."""

from __future__ import annotations

from typing import Any, TypeAlias

from crowdtree.policies import Policy

AnyPolicy: TypeAlias = Policy[Any]
"""A policy; what its states are made of concerns only the policy itself."""
JsonObject: TypeAlias = dict[str, Any]
"""An object as ``json.loads`` returns it."""
