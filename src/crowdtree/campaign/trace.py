"""Trace: how one item came to its label, question by question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdtree.campaign.events import Answered, Outcome
from crowdtree.campaign.fold import begin, extend
from crowdtree.campaign.view import ItemView, Revision, open_questions, path
from crowdtree.core.checking import check_call, got, is_number
from crowdtree.core.errors import CrowdtreeError, did_you_mean, listing, one_line
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.likelihood import UNSURE, AnswerModel
from crowdtree.core.outcomes import CANT_TELL, YES_NO, answer_spellings, folded_answer
from crowdtree.core.problem import Problem
from crowdtree.core.result_methods import Framed, HtmlShown
from crowdtree.core.rng import generator
from crowdtree.core.text import percent, plural
from crowdtree.core.tree import Tree
from crowdtree.policies import AdaptivePolicy, Label, PlanPolicy, Policy
from crowdtree.policies.walk import Answers, Round, Walk

SHOWN = 5
BAR = 24


@dataclass(frozen=True)
class TraceStep:
    """An answer to a question, both by name, and the posterior after it.

    `source` is who answered, where the problem has several sources.
    """

    question: str
    answer: str
    posterior: NDArray[np.float64]
    source: str | None = None

    @property
    def asked(self) -> str:
        """The question, with its source where there are several: ``"cap (gpt-x 1.1)"``."""
        return self.question if self.source is None else f"{self.question} ({self.source})"


@dataclass(frozen=True)
class Trace(Framed, HtmlShown):
    """The history of one item, in names: the steps, and the label they led to.

    Attributes
    ----------
    problem
        The problem.
    prior
        Probability of each class before any answer.
    steps
        Answers that counted.
    decision
        Index of the label, its error and the reason; None while the item is open.
    open_questions
        Questions to ask next; of several sources, which one: ``"cap (gpt-x 1.1)"``.
    true_class
        Class of the item, known in simulations only.
    ignored
        Answers that did not count: question, answer and reason.

    Examples
    --------
    >>> import crowdtree as ct
    >>> trace = ct.explain(ct.example("table1"), {"T1": "no"})
    >>> trace.label, trace.open_questions
    (None, ('T5',))
    """

    problem: Problem
    prior: NDArray[np.float64]
    steps: tuple[TraceStep, ...]
    decision: Label | None
    open_questions: tuple[str, ...] = ()
    true_class: str | None = None
    ignored: tuple[tuple[str, str, str], ...] = ()

    @property
    def label(self) -> str | None:
        """Name of the label; None while the item is open."""
        return None if self.decision is None else self.problem.classes[self.decision.label]

    def __repr__(self) -> str:
        return f"<Trace: {self.verdict()}>"

    def lines(self) -> Iterator[str]:
        """Write the trace for a terminal: a bar chart of the likeliest classes at each step."""
        yield "Before any answer"
        yield from self._bars(self.prior)
        for number, step in enumerate(self.steps, start=1):
            yield f"{number}. {self.text(step.asked)}  → {step.answer}"
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
            yield f"Not counted: {self.text(question)}  → {answer} ({why.get(fate, fate)})"

    def text(self, question: str) -> str:
        """What is asked, and whom where there are several sources."""
        index, source = read_asked(self.problem, question)
        named = f" ({self.problem.sources[source].name})" if self.problem.has_sources else ""
        return self.problem.text(index) + named

    def verdict(self) -> str:
        """Describe the outcome in one sentence."""
        if self.decision is None:
            questions = listing(map(self.text, self.open_questions))
            return f"Not decided yet. Next question: {questions}"
        why = {
            "target": "sure enough",
            "budget": "no answers left",
            "questions": "no question could add information",
            "leaf": "end of the plan",
            "undecided": "undecided: more answers would hardly help",
            "referred": "referred: an expert costs less than any label",
        }.get(self.decision.reason, self.decision.reason)
        count = plural(len(self.steps), "answer")
        words = f"Label: {self.label} after {count} ({why}); "
        words += f"chance of being wrong {percent(self.decision.posterior_error)}"
        if self.true_class is not None:
            right = self.true_class == self.label
            words += ". Right." if right else f". Wrong: it is {self.true_class}."
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
        decision = self.decision

        def believed(posterior: NDArray[np.float64]) -> dict[str, float]:
            return dict(zip(self.problem.classes, posterior.tolist(), strict=True))

        return {
            "prior": believed(self.prior),
            "steps": [
                {
                    "question": step.question,
                    "text": self.problem.text(self.problem.question_index(step.question)),
                    **({} if step.source is None else {"source": step.source}),
                    "answer": step.answer,
                    "posterior": believed(step.posterior),
                }
                for step in self.steps
            ],
            "label": self.label,
            "posterior_error": None if decision is None else decision.posterior_error,
            "reason": None if decision is None else decision.reason,
            "ignored": [
                {"question": question, "answer": answer, "reason": fate}
                for question, answer, fate in self.ignored
            ],
            "open_questions": list(self.open_questions),
            "true_class": self.true_class,
        }


def explain(
    policy: Policy[Any] | Problem | Plan | Tree,
    answers: Iterable[tuple[str | int, str | int]] | Mapping[str, str | int] | None = None,
    *,
    true_class: str | int | None = None,
    rng: np.random.Generator | int = 0,
) -> Trace:
    """Show why an item gets its label: question, answer and posterior, step by step.

    Parameters
    ----------
    policy
        The policy that chooses the questions; a tree or plan, which is asked to its end; or a
        problem, for the adaptive policy with its defaults.
    answers
        Answers so far as (question, answer), each by another worker: names or numbers (yes, no, 1
        or 0 for yes/no questions; "can't tell" for any). Answers that the policy did not ask for,
        or that come after the label, are listed as ignored. Without them a simulated crowd replies.
        Of several sources: ``"cap (gpt-x 1.1)"`` says which one answered the question.
    true_class
        True class of the item, by name or number, for the simulated crowd; drawn if not given.
    rng
        Seed of the simulated crowd.

    Examples
    --------
    >>> import crowdtree as ct
    >>> policy = ct.AdaptivePolicy(ct.example("table1"), target_error=0.01)
    >>> trace = ct.explain(policy, [("T1", "yes"), ("T1", "yes")])
    >>> trace.label, trace.steps[0].question
    ('c4', 'T1')
    >>> trace
    <Trace: Label: c4 after 2 answers (sure enough); chance of being wrong 0.18... %>
    >>> ct.explain(ct.example("table1"), true_class="c4", rng=1).label
    'c4'
    """
    check_call(explain, locals())
    if isinstance(policy, Problem):
        policy = AdaptivePolicy(policy)
    elif isinstance(policy, Plan | Tree):
        policy = PlanPolicy(policy)  # type: ignore[arg-type]  # takes a tree as well
    problem, truth = policy.problem, None
    if answers is None:
        random = generator(rng)
        if true_class is None:
            truth = int(random.choice(problem.n_classes, p=problem.prior / problem.prior.sum()))
        else:
            truth = _index(problem.classes, true_class, "true_class")
        walk = Walk(policy, _Drawn(problem, truth, random), 0)
        while walk.label is None:
            walk.step()
        given = [(one.question, one.source, one.value) for one in walk.history if one is not None]
    elif true_class is not None:
        raise CrowdtreeError(
            "explain: expected answers, or a true class for a simulated crowd, got both"
        )
    else:
        pairs = answers.items() if isinstance(answers, Mapping) else answers
        given = [_answer(problem, pair, number) for number, pair in enumerate(pairs, start=1)]
    revision = Revision(policy)
    view = begin(revision)
    for number, (question, source, value) in enumerate(given, start=1):
        answered = Answered(f"worker {number}", question, value, source)
        view = extend([revision], view, answered)
    return from_view(revision, view, None if truth is None else problem.classes[truth])


def read_asked(problem: Problem, name: Any) -> tuple[int, int]:
    """Question and source of a question's name or number, or of ``"question (source)"``.

    >>> from crowdtree.core.sources import Source
    >>> problem = Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1,
    ...                   sources=[Source("people"), Source("gpt-x")])
    >>> read_asked(problem, "q"), read_asked(problem, "q (gpt-x)")
    ((0, 0), (0, 1))
    """
    if problem.has_sources and isinstance(name, str) and name not in problem.questions:
        for place, source in enumerate(problem.sources):
            question = name.removesuffix(f" ({source.name})")
            if question != name and question in problem.questions:
                return problem.questions.index(question), place
        asked, _, who = name.removesuffix(")").rpartition(" (")
        if name.endswith(")") and asked in problem.questions:
            problem.source_index(who)  # raises: the question is there, the source is not
    return _index(problem.questions, name, "question"), 0


def _answer(problem: Problem, pair: Any, number: int) -> tuple[int, int, int]:
    """Question, source and answer of a pair of names or numbers."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise CrowdtreeError(
            f"answers: entry {number}: expected (question, answer), got {got(pair)}"
        )
    question, source = read_asked(problem, pair[0])
    value = read_answer(problem.answers[question], pair[1])
    if value is None:
        raise CrowdtreeError(
            f"answers: entry {number}: expected {_choices(problem, question)} as the answer, got "
            f"{got(pair[1])}"
        )
    return question, source, value


def read_answer(names: tuple[str, ...], word: object) -> int | None:
    """Index of an answer by its name or number, `UNSURE` for "can't tell"; None if it is neither.

    >>> read_answer(("red", "brown"), "Brown"), read_answer(("no", "yes"), "y")
    (1, 1)
    """
    text = folded_answer(word)
    return UNSURE if text == CANT_TELL else answer_spellings(names).get(text)


def _choices(problem: Problem, question: int) -> str:
    names = problem.answers[question]
    return "yes, no, 1 or 0" if names == YES_NO else listing(map(repr, names))


def _word(problem: Problem, question: int, value: int | None) -> str:
    """An answer by its name."""
    return CANT_TELL if value is None or value < 0 else problem.answers[question][value]


def _index(names: tuple[str, ...], value: Any, what: str) -> int:
    """Place of a question or class, given by its name or number."""
    if is_number(value, whole=True) and 0 <= value < len(names):
        return int(value)
    if value not in names:
        raise CrowdtreeError(
            f"{what}: {one_line(value)} is not in the problem, which has {listing(names)}"
            f"{did_you_mean(str(value), names)}"
        )
    return names.index(value)


def from_view(revision: Revision, view: ItemView, true_class: str | None = None) -> Trace:
    """Trace an item of a campaign: the answers that counted, in their order.

    >>> import crowdtree as ct
    >>> from crowdtree.campaign.fold import fold
    >>> revision = Revision(ct.PlanPolicy(ct.design(ct.example("table1"))))
    >>> from_view(revision, fold([revision], [Answered("ann", 0, 1)])).verdict()
    'Label: c4 after 1 answer (end of the plan); chance of being wrong 3.3... %'
    """
    problem = revision.policy.problem
    steps = tuple(
        TraceStep(
            problem.questions[step.question],
            _word(problem, step.question, step.value),
            np.array(step.posterior),
            problem.sources[step.source].name if problem.has_sources else None,
        )
        for step in path(revision, view)
    )
    ignored = tuple(
        (
            _asked_name(problem, given.question, given.source),
            _word(problem, given.question, given.value),
            str(outcome),
        )
        for given, outcome in view.with_outcomes()
        if isinstance(given, Answered) and outcome is not Outcome.COUNTED
    )
    asked = (ask if isinstance(ask, tuple) else (ask, 0) for ask in open_questions(revision, view))
    questions = tuple(dict.fromkeys(_asked_name(problem, *one) for one in asked))
    prior = revision.policy.posterior(begin(revision, view.prior).state)
    return Trace(problem, prior, steps, view.label, questions, true_class, ignored)


def _asked_name(problem: Problem, question: int, source: int) -> str:
    """Name of a question, with its source where there are several."""
    named = f" ({problem.sources[source].name})" if problem.has_sources else ""
    return problem.questions[question] + named


class _Drawn:
    """Answers about one item of known class, drawn from the table."""

    prior = None

    def __init__(self, problem: Problem, truth: int, random: np.random.Generator) -> None:
        self.model, self.truth, self.random = AnswerModel.of(problem), np.array([truth]), random

    def answer(self, asked: Round) -> Answers:
        """Draw an answer; sources err together as they do."""
        number = np.array([self.random.random()])
        value = self.model.sample(asked.option, self.truth, asked.before(), number)
        return Answers(value, None)
