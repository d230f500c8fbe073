"""What judging models finds: scores, verdicts, joint errors, agreement; plain data to read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.result_methods import Framed, Plotted
from crowdtree.core.text import plural
from crowdtree.learning.judges.intervals import Interval

PERSON, ANOTHER = "a person", "another person"
REPLACE, JOIN = "may replace a person", "may join people"
UNCLEAR, WORSE = "cannot tell yet", "worse than a person"

Reference = Literal["people", "gold"]


@dataclass(frozen=True)
class Verdict:
    """May the model replace a person, or join people?

    `answer` is for the people who answered; `others` whether it holds for other people as well.
    `needed` estimates how many more human labels (``needs`` ``"human labels"``) or known items
    decide it, if the difference stays as it is; none where that is unknown or nothing is needed.
    """

    answer: str
    others: bool
    needed: int | None = None
    needs: str = "human labels"

    def __str__(self) -> str:
        if self.answer == UNCLEAR:
            more = f"; about {self.needed:,} more {self.needs} should decide"
            return self.answer + (more if self.needed else "")
        return self.answer + ("" if self.others else " (shown for these people only)")


@dataclass(frozen=True)
class LabelScore:
    """Recall and precision of a label as a model, or a single person, gives it."""

    question: str
    who: str
    label: str
    recall: Interval | None
    precision: Interval | None


@dataclass(frozen=True)
class PersonTest:
    """A model against one person who is left out, both compared with each of the other people.

    `model_wins` is the share of items at which the model agrees with at least as many of the
    others; `better` says that it is not worse by the margin or more, at a rate of false findings
    of 5 % over all people.
    """

    question: str
    model: str
    person: str
    items: int
    model_wins: float
    p_value: float
    better: bool


@dataclass(frozen=True)
class ModelScore:
    """How often a model and a single person are right about the same items of a question.

    `reference`: ``"people"`` (the vote of the other people, each person left out in turn) or
    ``"gold"``. `vote_gain` is what the vote of people gains in accuracy when the model joins it.
    Intervals are for these people and items like these; `difference_others` and
    `vote_gain_others` are for other people as well.

    `verdict` is none where a question has gold and `reference` is people. `winning_rate` is the
    share of the tested people whom the model beats (see `PersonTest`), and `advantage` the mean of
    `model_wins` over them.
    """

    question: str
    model: str
    reference: Reference
    items: int
    accuracy: Interval | None
    person: Interval | None = None
    difference: Interval | None = None
    vote_gain: Interval | None = None
    difference_others: Interval | None = None
    vote_gain_others: Interval | None = None
    verdict: Verdict | None = None
    winning_rate: float | None = None
    advantage: float | None = None


@dataclass(frozen=True)
class Together:
    """How often two are wrong about the same item, beside what independence says."""

    question: str
    first: str
    second: str
    items: int
    both_wrong: Interval
    independent: float
    correlation: Interval | None


@dataclass(frozen=True)
class Agreement:
    """Agreement of a group, or of two workers.

    `kappa` is Cohen's of two workers and, where all items have equally many answers, Fleiss' of
    more.
    """

    question: str
    who: str
    workers: int
    items: int
    alpha: Interval | None
    kappa: Interval | None


@dataclass(frozen=True)
class Drift:
    """Change of accuracy between two versions of a model, on the items that both answered."""

    question: str
    old: str
    new: str
    items: int
    change: Interval
    changed_answers: float


@dataclass(frozen=True, repr=False)
class Judgement(Framed, Plotted):
    """The result of :func:`crowdtree.judge`; tables by ``to_frame``.

    >>> import crowdtree as ct
    >>> answers = {"task": [1, 1, 2, 2], "worker": [*"abab"], "label": ["cat", "cat", "dog", "cat"]}
    >>> ct.judge(answers).to_frame("agreement").columns[:4]
    ['question', 'who', 'workers', 'items']
    """

    questions: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    people: int
    models: tuple[str, ...]
    items: int
    margin: float
    scores: tuple[ModelScore, ...]
    label_scores: tuple[LabelScore, ...]
    tests: tuple[PersonTest, ...]
    together: tuple[Together, ...]
    agreement: tuple[Agreement, ...]
    drift: tuple[Drift, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<Judgement: {plural(self.people, 'person', 'people')}, "
            f"{plural(len(self.models), 'model')}, {plural(self.items, 'item')}; {self.headline}>"
        )

    @property
    def headline(self) -> str:
        """The answer in one line: what each model may do, or how far people agree."""
        if not self.scores:
            people = (row.alpha for row in self.agreement if row.who == "people")
            alphas = listing(f"{alpha.value:.2f}" for alpha in people if alpha)
            return f"people agree with alpha {alphas or 'unknown'}"
        return listing((f"{name}: {verdict.answer}" for name, verdict in self.verdicts), 4)

    @property
    def verdicts(self) -> list[tuple[str, Verdict]]:
        """Each model, with its question where there are several, and the verdict on it."""
        return [(self.name(row.question, row.model), row.verdict)
                for row in self.scores if row.verdict]  # fmt: skip

    def name(self, question: str, who: str) -> str:
        """Who or what a row of a table is about, with its question where there are several."""
        return f"{question}: {who}" if len(self.questions) > 1 else who

    def verdict(self, model: str, question: str | None = None) -> Verdict:
        """The verdict on a model at a question, by default the first."""
        wanted = self.questions[0] if question is None else question
        for score in self.scores:
            if (score.model, score.question) == (model, wanted) and score.verdict:
                return score.verdict
        raise CrowdtreeError(
            f"verdict: no model {model!r} at question {wanted!r}; the models are "
            f"{listing(self.models)}, the questions {listing(self.questions)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        data = asdict(self)
        for row, score in zip(data["scores"], self.scores, strict=True):
            if score.verdict:
                row["verdict"]["words"] = str(score.verdict)
        return {"headline": self.headline, **data}

    def rows(self, part: str) -> list[dict[str, Any]]:
        """Rows of one of the tables, with the ends of intervals in columns of their own."""
        return [_flat(row) for row in getattr(self, "scores" if part == "models" else part)]


def _flat(row: Any) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for each in fields(row):
        value = getattr(row, each.name)
        cells[each.name] = str(value) if isinstance(value, Verdict) else value
        if "Interval" in str(each.type):
            cells[each.name] = getattr(value, "value", None)
            cells |= {f"{each.name}_{end}": getattr(value, end, None) for end in ("low", "high")}
    return cells
