"""The page about judged models: verdicts, accuracy beside people, joint errors, agreement."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from crowdtree.core.errors import MissingExtra
from crowdtree.core.text import number, plural
from crowdtree.learning.judges.intervals import Interval
from crowdtree.learning.judges.result import PERSON, Judgement
from crowdtree.show.plots.html import hint, page
from crowdtree.show.plots.save import write_as
from crowdtree.show.report.templates import render

LABELS = "Labels"


class Table(NamedTuple):
    """A table of a judgement as text; the first column says who."""

    title: str
    note: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


def write_judgement_report(
    path: str | os.PathLike[str], judgement: Judgement, *, title: str | None = None
) -> Path:
    """Write a self-contained page about judged models.

    >>> import crowdtree as ct, tempfile
    >>> answers = {"task": [1, 1, 2, 2], "worker": [*"abab"], "label": ["cat", "cat", "dog", "cat"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_judgement_report(Path(folder, "page.html"), ct.judge(answers))
    ...     "Krippendorff" in page.read_text()
    True
    """
    return write_as(path, {".html": lambda: judgement_page(judgement, title)})


def judgement_page(judgement: Judgement, title: str | None = None) -> str:
    """Make the page as text; nothing is fetched."""
    usual = "May these models replace or join people?" if judgement.models else "Do people agree?"
    heading = title or usual
    body = render(
        "judging.html",
        title=heading,
        judgement=judgement,
        size=judgement_size(judgement),
        margin=number(100 * judgement.margin),
        tables=judgement_tables(judgement),
        pictures=_pictures(judgement),
    )
    return page(heading, body)


def judgement_size(judgement: Judgement) -> str:
    """Count what was judged.

    >>> import crowdtree as ct
    >>> answers = {"task": [1, 1, 2, 2], "worker": [*"abab"], "label": ["cat", "cat", "dog", "cat"]}
    >>> judgement_size(ct.judge(answers))
    '2 people and 0 models, 2 items, 1 question'
    """
    return (
        f"{plural(judgement.people, 'person', 'people')} and "
        f"{plural(len(judgement.models), 'model')}, {plural(judgement.items, 'item')}, "
        f"{plural(len(judgement.questions), 'question')}"
    )


def interval_words(value: Interval | None, kind: str = "share") -> str:
    """Write an estimate with its interval: a share, a difference in points, or a number.

    >>> interval_words(Interval(0.5, 0.4, 0.62)), interval_words(None)
    ('50.0 % (40.0–62.0)', '–')
    >>> interval_words(Interval(-0.051, -0.1, -0.0001), "points")
    '−5.1 (−10.0 to +0.0)'
    """
    if value is None:
        return "–"
    scale, form = {"share": (100, "z.1f"), "points": (100, "+z.1f"), "number": (1, "z.2f")}[kind]
    ends = (f"{scale * x:{form}}" for x in (value.value, value.low, value.high))
    first, low, high = (text.replace("-", "\N{MINUS SIGN}") for text in ends)
    return f"{first} % ({low}–{high})" if kind == "share" else f"{first} ({low} to {high})"


def judgement_tables(judgement: Judgement) -> list[Table]:
    """The numbers behind the verdicts, for pages and terminals; tables without rows are left out.

    >>> import crowdtree as ct
    >>> answers = {"task": [1, 1, 2, 2], "worker": [*"abab"], "label": ["cat", "cat", "dog", "cat"]}
    >>> judgement_tables(ct.judge(answers))[0].rows[0]
    ('people', '2', '0.00 (−0.50 to 0.00)', '0.00 (−0.50 to 0.00)')
    """
    name, words = judgement.name, interval_words
    joint = [row for row in judgement.together if row.correlation is not None]
    joint.sort(key=lambda row: -row.correlation.value if row.correlation else 0.0)
    tables = [
        Table(
            "Accuracy", f"Right: by {_reference(judgement)}. Intervals: 95 %.",
            ("model", "right", "a person", "difference in points", "with other people",
             "gain of a vote", "people beaten"),
            [(name(row.question, row.model), words(row.accuracy), words(row.person),
              words(row.difference, "points"), words(row.difference_others, "points"),
              words(row.vote_gain, "points"), _share(row.winning_rate))
             for row in judgement.scores if row.verdict],
        ),
        Table(
            LABELS, "Recall: of the items of a class, how many get its label. Precision: of "
            "the items with a label, how many are of its class.",
            ("label", "by", "recall", "precision"),
            [(name(row.question, row.label), row.who, words(row.recall), words(row.precision))
             for row in sorted(judgement.label_scores, key=lambda row: (row.question, row.label))
             if judgement.models],
        ),
        Table(
            "Joint errors", "Both wrong about the same item, beside what independent errors give.",
            ("wrong together", "both wrong", "if independent", "correlation"),
            [(name(row.question, f"{row.first}, {row.second}"), _share(row.both_wrong.value),
              _share(row.independent), words(row.correlation, "number"))
             for row in joint if judgement.models],
        ),
        Table(
            "Versions", "Change of accuracy on the items that both versions answered.",
            ("versions", "items", "change in points", "different answers"),
            [(name(row.question, f"{row.old} to {row.new}"), f"{row.items:,}",
              words(row.change, "points"), _share(row.changed_answers)) for row in judgement.drift],
        ),
        Table(
            "Agreement",
            "1 is full agreement, 0 is chance. Kappa: Cohen's for two, Fleiss' for groups.",
            ("agreement", "items", "Krippendorff's alpha", "kappa"),
            [(name(row.question, row.who), f"{row.items:,}", words(row.alpha, "number"),
              words(row.kappa, "number")) for row in judgement.agreement],
        ),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def accuracy_chart(judgement: Judgement) -> Any:
    """Chart of the accuracy of each model beside a person's; none where none was compared."""
    from crowdtree.show.plots.judging import dots_chart

    dots = [
        (judgement.name(score.question, score.model), who, share)
        for score in judgement.scores
        if score.verdict
        for who, share in (("the model", score.accuracy), (PERSON, score.person))
        if share is not None
    ]
    small = f"95 % intervals; by {_reference(judgement)}"
    return dots_chart(dots, "Models beside a single person", "share of right answers", small)


def _reference(judgement: Judgement) -> str:
    gold = any(score.reference == "gold" for score in judgement.scores if score.verdict)
    return "known items" if gold else "the vote of the other people, each person left out in turn"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _pictures(judgement: Judgement) -> list[str]:
    if not judgement.models:
        return []
    try:
        from crowdtree.show.plots.judging import dots_chart
        from crowdtree.show.plots.vega import chart_svg
    except MissingExtra as missing:
        return [hint(missing)]
    charts = [accuracy_chart(judgement)]
    for question in judgement.questions:
        rows = [row for row in judgement.label_scores if row.question == question and row.recall]
        rows.sort(key=lambda row: (row.label, row.who == PERSON))
        dots = [(row.label, row.who, row.recall) for row in rows if row.recall]
        title = judgement.name(question, "Recall of each label")
        charts.append(dots_chart(dots, title, "items that get their label", "95 % intervals"))
    return [chart_svg(chart, page=True) for chart in charts if chart is not None]
