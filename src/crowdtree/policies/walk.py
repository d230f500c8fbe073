"""One item on its way through the steps of a policy, as a live campaign would take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.likelihood import UNSURE
from crowdtree.policies.base import Answer, Asked, Label, Policy, to_option
from crowdtree.policies.item_prior import start_of

__all__ = ["MISSING", "Hear", "Walk"]

MISSING = -1
"""What is heard where a recorded answer is missing."""
Hear = Callable[[int, int, NDArray[np.int64]], tuple[int, float]]
"""Answer an option that was asked so often before, given the answers so far: value and skill."""


class Walk:
    """One item on its way through a policy's own steps.

    Questions that are handed out together are answered in the same order. A missing
    answer costs nothing, and its question is not asked about the item again.
    """

    def __init__(self, policy: Policy[Any], hear: Hear, prior: ArrayLike | None = None) -> None:
        self.policy, self.hear, self.prior = policy, hear, prior
        self.history: list[Answer | None] = []
        """Answers in their order; None where a plan went on without one."""
        self.out: list[tuple[Asked, int]] = []
        options = policy.problem.n_options
        self.counts = np.zeros((policy.problem.n_answers.max() + 1, options), dtype=np.int64)
        self.handed = np.zeros(options, dtype=np.int64)
        self.closed: set[Asked] = set()
        self.state = start_of(policy, prior)
        self.label: Label | None = None

    def step(self) -> Answer | None:
        """Hand out questions and hear one answer, which may be missing, or give the label."""
        step = self.policy.ask(self.state, [q for q, _ in self.out], self.closed)
        if isinstance(step, Label):
            self.label = step
            return None
        if not step.questions and not self.out:  # all that could tell more are missing
            self.label = self.policy.conclude(self.state, "questions")
            return None
        problem = self.policy.problem
        for asked in step.asked:
            option = to_option(problem, asked)
            self.out.append((asked, int(self.handed[option])))
            self.handed[option] += 1
        asked, repeat = self.out.pop(0)
        option = to_option(problem, asked)
        value, skill = self.hear(option, repeat, self.counts)
        if value == MISSING:
            self.out = [(other, turn) for other, turn in self.out if other != asked]
            if self.policy.has_alternatives:
                self.closed.add(asked)
            else:
                self._take(None)
            return None
        self.counts[-1 if value == UNSURE else value, option] += 1
        source, question = divmod(option, problem.n_questions)
        answer = Answer(question, value, skill, source=source)
        self._take(answer)
        return answer

    def _take(self, answer: Answer | None) -> None:
        self.history.append(answer)
        self.state = self._after(self.state, answer)

    def _after(self, state: Any, answer: Answer | None) -> Any:
        if answer is None:
            return self.policy.pass_over(state)
        return self.policy.update(state, answer)

    def revise(self, policy: Policy[Any]) -> bool:
        """Go on with another policy, all answers kept; whether a labelled item is open again."""
        self.policy, state = policy, start_of(policy, self.prior)
        for answer in self.history:
            state = self._after(state, answer)
        self.state = state
        if self.label is None:
            return False
        found = policy.ask(state, (), self.closed)
        if isinstance(found, Label) or not found.questions:
            self.label = found if isinstance(found, Label) else policy.conclude(state, "questions")
            return False
        self.label = None
        return True
