"""What judging models finds: scores, verdicts, joint errors, agreement; plain data to read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from crowdtree.judging.intervals import Interval
from crowdtree.result_methods import Framed, Plotted
from crowdtree.text import plural

PERSON, ANOTHER = "a person", "another person"
REPLACE, JOIN = "may replace a person", "may join people"
UNCLEAR, WORSE = "cannot tell yet", "worse than a person"

Reference = Literal["people", "gold"]


@dataclass(frozen=True)
class Against:
    """How often a model and a single person are right about the same items.

    `reference`: ``"people"`` (the vote of the other people, each person left out in turn) or
    ``"gold"``. `vote_gain` is what the vote of people gains in accuracy when the model joins it.
    Intervals are for these people and items like these; `difference_others` and
    `vote_gain_others` are for other people as well.
    """

    reference: Reference
    items: int
    model: Interval
    person: Interval | None = None
    difference: Interval | None = None
    vote_gain: Interval | None = None
    difference_others: Interval | None = None
    vote_gain_others: Interval | None = None


@dataclass(frozen=True)
class Verdict:
    """May the model replace a person, or join people?

    `answer` is for the people who answered; `others` whether it holds for other people as well.
    `needed` estimates how many more human labels (``needs`` ``"human labels"``) or known items
    decide it, if the difference stays as it is; none where that is unknown or nothing is needed.
    """

    answer: str
    others: bool
    reference: Reference | None
    needed: int | None = None
    needs: str = "human labels"

    def __str__(self) -> str:
        if self.answer == UNCLEAR:
            return self.answer + (
                f": about {self.needed:,} more {self.needs}" if self.needed else ""
            )
        return self.answer + ("" if self.others else " (these people; others: cannot tell yet)")


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

    `model_wins` and `person_wins` are shares of items at which one agrees with at least as many of
    the others; `better` says that the model is not worse by the margin or more, at a rate of false
    findings of 5 % over all people.
    """

    question: str
    model: str
    person: str
    items: int
    model_wins: float
    person_wins: float
    p_value: float
    better: bool


@dataclass(frozen=True)
class ModelScore:
    """A model at one question.

    `winning_rate` is the share of the tested people whom the model beats (see `PersonTest`), and
    `advantage` the mean of `model_wins` over them. `confusion` counts items by reference label
    (row) and the model's label (column).
    """

    question: str
    model: str
    verdict: Verdict
    against: tuple[Against, ...]
    winning_rate: float | None
    advantage: float | None
    confusion: tuple[tuple[float, ...], ...]

    @property
    def main(self) -> Against | None:
        """The comparison that the verdict rests on."""
        return next((a for a in self.against if a.reference == self.verdict.reference), None)


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
class Pair:
    """Agreement of two workers: the share of equal answers, and Cohen's kappa."""

    question: str
    first: str
    second: str
    items: int
    agreement: float
    kappa: Interval | None


@dataclass(frozen=True)
class Agreement:
    """Agreement of a group: Krippendorff's alpha, and Fleiss' kappa where all items allow it."""

    question: str
    group: str
    workers: int
    items: int
    alpha: Interval | None
    fleiss: float | None


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
    >>> ct.judge(answers).to_frame("pairs").columns[:4]
    ['question', 'first', 'second', 'items']
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
    pairs: tuple[Pair, ...]
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
            alphas = [f"{row.alpha.value:.2f}" for row in self.agreement if row.alpha]
            return f"people agree with alpha {', '.join(alphas[:5]) or 'unknown'}"
        said = []
        for model in self.models:
            answers = [score.verdict.answer for score in self.scores if score.model == model]
            for answer in (REPLACE, JOIN, UNCLEAR, WORSE):
                count = answers.count(answer)
                part = f" ({count} of {len(answers)} questions)" if len(answers) > 1 else ""
                said += [f"{model}: {answer}{part}"] if count else []
        return "; ".join(said[:4]) + (f"; and {len(said) - 4} more" if len(said) > 4 else "")

    def verdict(self, model: str, question: str | None = None) -> Verdict:
        """The verdict on a model at a question, by default the first."""
        from crowdtree.errors import CrowdtreeError, listing

        wanted = self.questions[0] if question is None else question
        for score in self.scores:
            if (score.model, score.question) == (model, wanted):
                return score.verdict
        raise CrowdtreeError(
            f"verdict: no model {model!r} at question {wanted!r}; expected one of "
            f"{listing(self.models)} and of {listing(self.questions)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        data = asdict(self)
        for row, score in zip(data["scores"], self.scores, strict=True):
            row["verdict"]["words"] = str(score.verdict)
        return {"headline": self.headline, **data}

    def rows(self, part: str) -> list[dict[str, Any]]:
        """Rows of one of the tables, with the ends of intervals in columns of their own."""
        if part != "models":
            return [_flat(row) for row in getattr(self, part)]
        return [
            {
                "question": score.question,
                "model": score.model,
                "verdict": str(score.verdict),
                **_flat(row),
                "winning_rate": score.winning_rate,
                "advantage": score.advantage,
            }
            for score in self.scores
            for row in score.against
        ]


def _flat(row: Any) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for each in fields(row):
        value = getattr(row, each.name)
        cells[each.name] = getattr(value, "value", value)
        if "Interval" in str(each.type):
            cells |= {f"{each.name}_{end}": getattr(value, end, None) for end in ("low", "high")}
    return cells
