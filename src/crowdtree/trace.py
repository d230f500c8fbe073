"""Trace: how one item came to its label, question by question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError, listing
from crowdtree.likelihood import AnswerModel
from crowdtree.policy import Answer, Label, Policy
from crowdtree.problem import Problem
from crowdtree.text import percent, plural

__all__ = ["Trace", "TraceStep", "from_answers", "from_crowd"]

SHOWN = 5
BAR = 24


@dataclass(frozen=True)
class TraceStep:
    """An answer, and what is believed after it."""

    question: int
    answer: int
    posterior: NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """The way of one item: the steps, and the label they led to (none while it is open).

    `true_class` is known in simulations only.
    """

    problem: Problem
    prior: NDArray[np.float64]
    steps: tuple[TraceStep, ...]
    label: Label | None
    open_questions: tuple[int, ...] = ()
    true_class: int | None = None

    def lines(self) -> Iterator[str]:
        """Write the trace for a terminal: a bar chart of the likeliest classes at each step."""
        yield "Before any answer"
        yield from self._bars(self.prior)
        for number, step in enumerate(self.steps, start=1):
            answer = "yes" if step.answer else "no"
            yield f"{number}. {self.problem.text(step.question)}  → {answer}"
            yield from self._bars(step.posterior)
        yield self.verdict()

    def verdict(self) -> str:
        """Say the outcome in one sentence."""
        if self.label is None:
            questions = listing(self.problem.text(q) for q in self.open_questions)
            return f"Not decided yet. Next question: {questions}"
        name = self.problem.classes[self.label.label]
        why = {
            "target": "sure enough",
            "budget": "no answers left",
            "questions": "no question could tell more",
            "leaf": "end of the plan",
        }.get(self.label.reason, self.label.reason)
        count = plural(len(self.steps), "answer")
        words = f"Label: {name} after {count} ({why}); "
        words += f"chance of being wrong {percent(self.label.posterior_error)}"
        if self.true_class is not None:
            truth = self.problem.classes[self.true_class]
            words += ". Right." if truth == name else f". Wrong: it is {truth}."
        return words

    def top(self, posterior: NDArray[np.float64]) -> list[tuple[str, float]]:
        """Likeliest classes with their probabilities, the rest left out."""
        order = np.argsort(-posterior, kind="stable")[:SHOWN]
        return [(self.problem.classes[c], float(posterior[c])) for c in order]

    def _bars(self, posterior: NDArray[np.float64]) -> Iterator[str]:
        rows = [row for row in self.top(posterior) if row[1] >= 0.001]
        width = max((len(name) for name, _ in rows), default=0)
        for name, share in rows:
            yield f"   {name:<{width}}  {'█' * round(BAR * share):<{BAR}}  {percent(share)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON with names in place of numbers."""
        names = self.problem.classes

        def believed(posterior: NDArray[np.float64]) -> dict[str, float]:
            return dict(zip(names, posterior.tolist(), strict=True))

        return {
            "prior": believed(self.prior),
            "steps": [
                {
                    "question": self.problem.questions[step.question],
                    "text": self.problem.text(step.question),
                    "answer": "yes" if step.answer else "no",
                    "posterior": believed(step.posterior),
                }
                for step in self.steps
            ],
            "label": None if self.label is None else names[self.label.label],
            "posterior_error": None if self.label is None else self.label.posterior_error,
            "reason": None if self.label is None else self.label.reason,
            "open_questions": [self.problem.questions[q] for q in self.open_questions],
            "true_class": None if self.true_class is None else names[self.true_class],
        }


def from_answers(policy: Policy[Any], answers: Iterable[tuple[int, int]]) -> Trace:
    """Trace given answers, as (question, 0 or 1), whether the policy would have asked them or not.

    >>> import crowdtree as ct
    >>> policy = ct.AdaptivePolicy(ct.example("table1"), target_error=0.01)
    >>> from_answers(policy, [(0, 1), (0, 1)]).verdict()
    'Label: c4 after 2 answers (sure enough); chance of being wrong 0.185 %'
    """
    given = iter(answers)

    def reply(_asked: int) -> tuple[int, int] | None:
        return next(given, None)

    return _follow(policy, reply, None, stop_at_label=False)


def from_crowd(
    policy: Policy[Any], true_class: str | None = None, rng: np.random.Generator | int = 0
) -> Trace:
    """Trace an item about which a simulated crowd answers.

    >>> import crowdtree as ct
    >>> policy = ct.AdaptivePolicy(ct.example("table1"), target_error=0.01)
    >>> from_crowd(policy, "c4", rng=1).verdict().split(" after")[0]
    'Label: c4'
    """
    problem = policy.problem
    source = np.random.default_rng(rng)
    if true_class is None:
        truth = int(source.choice(problem.n_classes, p=problem.prior / problem.prior.sum()))
    elif true_class in problem.classes:
        truth = problem.classes.index(true_class)
    else:
        raise CrowdtreeError(
            f"class: {true_class!r} is not in the problem, which has {listing(problem.classes)}"
        )
    yes = AnswerModel.of(problem).yes[:, truth]

    def reply(asked: int) -> tuple[int, int]:
        return asked, int(source.random() < yes[asked])

    return _follow(policy, reply, truth, stop_at_label=True)


def _follow(
    policy: Policy[Any],
    reply: Callable[[int], tuple[int, int] | None],
    truth: int | None,
    *,
    stop_at_label: bool,
) -> Trace:
    state = policy.start()
    prior = policy.posterior(state)
    steps: list[TraceStep] = []
    while True:
        move = policy.ask(state)
        if isinstance(move, Label) and stop_at_label:
            break
        answer = reply(-1 if isinstance(move, Label) else move.questions[0])
        if answer is None:
            break
        state = policy.update(state, Answer(*answer))
        steps.append(TraceStep(*answer, policy.posterior(state)))
    label = move if isinstance(move, Label) else None
    questions = () if isinstance(move, Label) else tuple(dict.fromkeys(move.questions))
    return Trace(policy.problem, prior, tuple(steps), label, questions, truth)
