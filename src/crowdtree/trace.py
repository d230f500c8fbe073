"""Trace: how one item came to its label, question by question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.campaign import Event, ItemState, advance, open_questions, path, start_item
from crowdtree.errors import CrowdtreeError, listing
from crowdtree.likelihood import AnswerModel
from crowdtree.policy import Label, Policy
from crowdtree.problem import Problem
from crowdtree.result_methods import Framed
from crowdtree.rng import generator
from crowdtree.text import percent, plural

__all__ = ["Trace", "TraceStep", "explain", "from_answers", "from_crowd", "from_item"]

SHOWN = 5
BAR = 24
ITEM = "item"


@dataclass(frozen=True)
class TraceStep:
    """An answer, and the posterior after it."""

    question: int
    answer: int
    posterior: NDArray[np.float64]


@dataclass(frozen=True)
class Trace(Framed):
    """The history of one item: the steps, and the label they led to (none while it is open).

    `ignored` are answers that did not count, with the reason; `true_class` is known in
    simulations only.
    """

    problem: Problem
    prior: NDArray[np.float64]
    steps: tuple[TraceStep, ...]
    label: Label | None
    open_questions: tuple[int, ...] = ()
    true_class: int | None = None
    ignored: tuple[tuple[int, int, str], ...] = ()

    def lines(self) -> Iterator[str]:
        """Write the trace for a terminal: a bar chart of the likeliest classes at each step."""
        yield "Before any answer"
        yield from self._bars(self.prior)
        for number, step in enumerate(self.steps, start=1):
            answer = "yes" if step.answer else "no"
            yield f"{number}. {self.problem.text(step.question)}  → {answer}"
            yield from self._bars(step.posterior)
        yield from self.notes()
        yield self.verdict()

    def notes(self) -> Iterator[str]:
        """List the answers that did not count, with the reason."""
        why = {
            "late": "the item already had its label",
            "surplus": "the policy did not ask for it",
        }
        for question, answer, fate in self.ignored:
            word = "yes" if answer else "no"
            text = self.problem.text(question)
            yield f"Not counted: {text}  → {word} ({why.get(fate, fate)})"

    def verdict(self) -> str:
        """Describe the outcome in one sentence."""
        if self.label is None:
            questions = listing(self.problem.text(q) for q in self.open_questions)
            return f"Not decided yet. Next question: {questions}"
        name = self.problem.classes[self.label.label]
        why = {
            "target": "sure enough",
            "budget": "no answers left",
            "questions": "no question could add information",
            "leaf": "end of the plan",
            "undecided": "undecided: more answers would hardly help",
            "referred": "referred: an expert costs less than any label",
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
            "ignored": [
                {
                    "question": self.problem.questions[question],
                    "answer": "yes" if answer else "no",
                    "reason": fate,
                }
                for question, answer, fate in self.ignored
            ],
            "open_questions": [self.problem.questions[q] for q in self.open_questions],
            "true_class": None if self.true_class is None else names[self.true_class],
        }


def explain(
    policy: Policy[Any],
    answers: Iterable[tuple[int, int]] | None = None,
    *,
    true_class: str | None = None,
    rng: np.random.Generator | int = 0,
) -> Trace:
    """Show why an item gets its label: question, answer and posterior, step by step.

    Parameters
    ----------
    policy
        The policy that chooses the questions.
    answers
        Answers so far as (question, 0 or 1); without them a simulated crowd replies.
    true_class
        True class of the item, for the simulated crowd; drawn if not given.
    rng
        Seed of the simulated crowd.

    >>> import crowdtree as ct
    >>> policy = ct.AdaptivePolicy(ct.example("table1"), target_error=0.01)
    >>> ct.explain(policy, [(0, 1), (0, 1)]).verdict().split(" after")[0]
    'Label: c4'
    """
    if answers is None:
        return from_crowd(policy, true_class, rng)
    if true_class is not None:
        raise CrowdtreeError(
            "explain: expected answers, or a true class for a simulated crowd, got both"
        )
    return from_answers(policy, answers)


def from_item(policy: Policy[Any], item: ItemState, true_class: int | None = None) -> Trace:
    """Trace an item of a campaign: the answers that counted, in their order.

    >>> import crowdtree as ct
    >>> from crowdtree.campaign import Event, advance, start_item
    >>> policy = ct.PlanPolicy(ct.design(ct.example("table1")))
    >>> item = advance(policy, start_item(policy, "photo 1"), Event("photo 1", 0, "ann", 1))
    >>> from_item(policy, item).verdict()
    'Label: c4 after 1 answer (end of the plan); chance of being wrong 3.3... %'
    """
    steps = tuple(
        TraceStep(step.question, step.value, np.array(step.posterior))
        for step in path(policy, item)
    )
    ignored = tuple(
        (event.question, event.value, fate)
        for event, fate in zip(item.events, item.fates, strict=True)
        if event.value is not None and fate != "counted"
    )
    questions = tuple(dict.fromkeys(open_questions(policy, item)))
    prior = policy.posterior(policy.start())
    return Trace(policy.problem, prior, steps, item.label, questions, true_class, ignored)


def from_answers(policy: Policy[Any], answers: Iterable[tuple[int, int]]) -> Trace:
    """Trace answers as a campaign takes them, given as (question, 0 or 1), each by another worker.

    Answers that the policy did not ask for, or that come after the label, are listed apart.

    >>> import crowdtree as ct
    >>> policy = ct.AdaptivePolicy(ct.example("table1"), target_error=0.01)
    >>> from_answers(policy, [(0, 1), (0, 1)]).verdict()
    'Label: c4 after 2 answers (sure enough); chance of being wrong 0.18... %'
    """
    item = start_item(policy, ITEM)
    for place, (question, value) in enumerate(answers, start=1):
        item = advance(policy, item, Event(ITEM, question, f"worker {place}", value))
    return from_item(policy, item)


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
    source = generator(rng)
    if true_class is None:
        truth = int(source.choice(problem.n_classes, p=problem.prior / problem.prior.sum()))
    elif true_class in problem.classes:
        truth = problem.classes.index(true_class)
    else:
        raise CrowdtreeError(
            f"class: {true_class!r} is not in the problem, which has {listing(problem.classes)}"
        )
    yes = AnswerModel.of(problem).yes[:, truth]
    item = start_item(policy, ITEM)
    while item.label is None:
        question = open_questions(policy, item)[0]
        said = int(source.random() < yes[question])
        item = advance(policy, item, Event(ITEM, question, f"worker {len(item.events) + 1}", said))
    return from_item(policy, item, truth)
