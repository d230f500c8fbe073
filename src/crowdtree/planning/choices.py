"""Policies to choose from, with their expected performance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from crowdtree.core.fixed_plan import Plan
from crowdtree.core.problem import Problem
from crowdtree.core.result_methods import Framed, HtmlShown, Plotted, Saved
from crowdtree.core.text import amount, number, percent
from crowdtree.designs.frontiers import Goal
from crowdtree.policies import Policy, policy_from_dict
from crowdtree.simulation import Estimate

Kind = Literal["adaptive", "tree"]


@dataclass(frozen=True)
class ExpectedPerformance:
    """Expected performance of a policy, per item: exact for a plan, else simulated.

    Numbers carry their 95 % interval, of width 0 where they are exact. `error` is the share of all
    items whose label is wrong, `cost` the price of the answers (NaN without prices), `risk` the
    expected loss (the error, where every mistake costs the same).
    """

    error: Estimate
    answers: Estimate
    exact: bool
    risk: Estimate
    cost: Estimate

    def with_more_answers(self, extra: float) -> ExpectedPerformance:
        """The same with some more answers per item."""
        low, high = (end + extra for end in self.answers.interval)
        return replace(self, answers=Estimate(self.answers + extra, low, high))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, with the intervals of simulated numbers."""
        data: dict[str, Any] = {"exact": self.exact}
        for name in ("error", "answers", "risk", "cost"):
            value: Estimate = getattr(self, name)
            if np.isnan(value):
                continue
            data[name] = float(value)
            if not self.exact:
                data[f"{name}_interval"] = list(value.interval)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ExpectedPerformance:
        """Read what :meth:`to_dict` wrote."""

        def estimate(name: str) -> Estimate:
            value = data.get(name, np.nan)
            return Estimate(value, *data.get(f"{name}_interval", (value, value)))

        numbers = {name: estimate(name) for name in ("error", "answers", "risk", "cost")}
        return cls(exact=bool(data["exact"]), **numbers)


@dataclass(frozen=True)
class Mix:
    """A mix of sources with its expected performance, and what each source adds, per item.

    `performance` is None where the mix does not reach the goal.
    """

    sources: tuple[str, ...]
    performance: ExpectedPerformance | None
    answers: Mapping[str, float]
    cost: Mapping[str, float]
    curve: tuple[tuple[float, float], ...] = ()
    """Cost and error (or expected loss) at the stopping rules that were simulated."""

    @property
    def name(self) -> str:
        """The sources in words."""
        return " + ".join(self.sources)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        found = {} if self.performance is None else self.performance.to_dict()
        return {
            "sources": list(self.sources),
            "reached": self.performance is not None,
            **found,
            "answers_per_source": dict(self.answers),
            "cost_per_source": dict(self.cost),
            "curve": [list(point) for point in self.curve],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Mix:
        """Read what :meth:`to_dict` wrote."""
        found = ExpectedPerformance.from_dict(data) if data["reached"] else None
        names = tuple(data["sources"])
        curve = tuple((cost, risk) for cost, risk in data["curve"])
        return cls(names, found, data["answers_per_source"], data["cost_per_source"], curve)


@dataclass(frozen=True, eq=False)
class PlanChoice:
    """A policy with its expected performance and what is proven about it."""

    kind: Kind
    policy: Policy[Any]
    performance: ExpectedPerformance
    proof: str = ""
    target: float = float("nan")
    """Error or loss for which the menu of a campaign has it."""

    @property
    def key(self) -> str:
        """Name of the choice in a menu."""
        return f"{self.kind}-{self.target:g}"

    @property
    def name(self) -> str:
        """The kind of policy in words."""
        if self.policy.voted is None:
            return "adaptive policy"
        kind = self.policy.voted.rule.kind(not self.policy.problem.is_yes_no)
        return f"fixed tree, {kind}"

    @property
    def summary(self) -> str:
        """The policy with its expected performance in one line."""
        found = self.performance
        loss = self.policy.problem.loss
        risk = "" if loss is None else f"expected loss {number(found.risk)}, "
        paid = "" if np.isnan(found.cost) else f" for {number(found.cost)}"
        return (
            f"{self.name}: {risk}{percent(found.error)} wrong with "
            f"{amount(found.answers, 'answer')} per item{paid}"
        )

    def __repr__(self) -> str:
        return f"PlanChoice({self.summary})"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            **self.performance.to_dict(),
            "proof": self.proof,
            "policy": self.policy.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class PlanChoices(Framed, Saved, Plotted, HtmlShown):
    """The best that was found for a goal: an adaptive policy, and the best fixed tree beside it.

    Attributes
    ----------
    problem
        The problem.
    goal
        What was asked for.
    price
        Price of an answer; ``None`` without prices.
    choices
        The adaptive policy and the fixed tree, as far as they reach the goal.
    recommended
        The choice to use: the adaptive policy, unless something speaks against it.
    reason
        Why it is recommended.
    missing
        Why a choice is missing, if one is.
    mixes
        Where the problem has several sources: the mixes that were compared, the chosen one first,
        with people only and models only among them.

    Examples
    --------
    >>> import crowdtree as ct
    >>> choices = ct.plan(ct.example("table1"), error=0.01)
    >>> choices.recommended.kind, choices.policy.problem == choices.problem
    ('adaptive', True)
    >>> float(choices.adaptive.performance.answers) < float(choices.tree.performance.answers)
    True
    """

    problem: Problem
    goal: Goal
    price: tuple[float, ...] | None
    choices: tuple[PlanChoice, ...]
    reason: str
    missing: str = ""
    mixes: tuple[Mix, ...] = ()

    @property
    def recommended(self) -> PlanChoice:
        """The choice to use: the first one."""
        return self.choices[0]

    @property
    def policy(self) -> Policy[Any]:
        """The recommended policy, for :func:`crowdtree.simulate` and campaigns."""
        return self.recommended.policy

    @property
    def adaptive(self) -> PlanChoice | None:
        """The adaptive policy, if it reaches the goal."""
        return next((c for c in self.choices if c.kind == "adaptive"), None)

    @property
    def tree(self) -> PlanChoice | None:
        """The best fixed tree, if one reaches the goal."""
        return next((c for c in self.choices if c.kind == "tree"), None)

    @property
    def fixed_plan(self) -> Plan | None:
        """The tree and the votes of the best fixed tree."""
        return None if self.tree is None else self.tree.policy.plan

    @property
    def mix_names(self) -> list[str]:
        """Names of the mixes: the chosen one, people only, models only, or their sources."""
        kinds = {"people": "people only", "model": "models only", "expert": "experts only"}
        only = {
            tuple(source.name for source in self.problem.sources if source.kind == kind): name
            for kind, name in kinds.items()
        }
        return ["chosen", *(only.get(mix.sources, mix.name) for mix in self.mixes[1:])]

    @property
    def mix_rows(self) -> list[list[str]]:
        """Cells of a table of the mixes, its header first; costs are per item."""
        sources = list(self.mixes[0].cost)
        costly = self.problem.loss is not None
        rows = [["mix", "cost", "wrong", *(["loss"] if costly else []), *sources]]
        for name, mix in zip(self.mix_names, self.mixes, strict=True):
            if (found := mix.performance) is None:
                rows.append([name, "out of reach", *[""] * (len(rows[0]) - 2)])
                continue
            risk = [number(found.risk)] if costly else []
            each = [number(mix.cost[one]) if mix.cost.get(one) else "" for one in sources]
            rows.append([name, number(found.cost), percent(found.error), *risk, *each])
        return rows

    @property
    def headline(self) -> str:
        """The recommended choice in one sentence."""
        words = self.recommended.summary
        return f"{words[:1].upper()}{words[1:]}."

    @property
    def notes(self) -> list[str]:
        """What is proven about the fixed tree."""
        return [] if self.tree is None else [f"Fixed tree: {self.tree.proof}"]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, without the problem."""
        goal = {name: value for name, value in self.goal._asdict().items() if value}
        return {
            "goal": goal,
            **({} if self.price is None else {"price": list(self.price)}),
            "recommended": self.recommended.kind,
            "reason": self.reason,
            **({"missing": self.missing} if self.missing else {}),
            "choices": [choice.to_dict() for choice in self.choices],
            **({"mixes": [mix.to_dict() for mix in self.mixes]} if self.mixes else {}),
        }

    @classmethod
    def from_dict(cls, problem: Problem, data: Mapping[str, Any]) -> PlanChoices:
        """Read what :meth:`to_dict` wrote."""
        choices = tuple(
            PlanChoice(
                row["kind"],
                policy_from_dict(
                    problem.as_options() if row["kind"] == "tree" else problem, row["policy"]
                ),
                ExpectedPerformance.from_dict(row),
                row["proof"],
            )
            for row in data["choices"]
        )
        price = tuple(data["price"]) if "price" in data else None
        goal = Goal(**data["goal"])
        mixes = tuple(Mix.from_dict(row) for row in data.get("mixes", ()))
        return cls(problem, goal, price, choices, data["reason"], data.get("missing", ""), mixes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlanChoices):
            return NotImplemented
        return self.problem == other.problem and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.problem, self.reason))

    def __repr__(self) -> str:
        return f"PlanChoices({self.recommended.summary})"
