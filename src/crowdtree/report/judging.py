"""The page about judged models: verdicts, accuracy beside people, joint errors, agreement."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from crowdtree.errors import MissingExtra
from crowdtree.judging.intervals import Interval
from crowdtree.judging.result import ANOTHER, PERSON, Judgement
from crowdtree.plots.html import hint, page
from crowdtree.plots.save import write_as
from crowdtree.report.templates import render
from crowdtree.text import number, plural

TITLE = "May these models replace or join people?"
MOST_PAIRS = 20


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
    heading = title or (TITLE if judgement.models else "How far people agree")
    body = render(
        "judging.html",
        title=heading,
        judgement=judgement,
        size=judgement_size(judgement),
        margin=number(100 * judgement.margin),
        pictures=_pictures(judgement),
        pairs=judgement.pairs[:MOST_PAIRS],
        more_pairs=max(0, len(judgement.pairs) - MOST_PAIRS),
        several=len(judgement.questions) > 1,
        words=interval_words,
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
    >>> interval_words(Interval(-0.051, -0.1, 0.02), "points")
    '−5.1 (−10.0 to +2.0)'
    """
    if value is None:
        return "–"
    if kind == "share":
        return f"{100 * value.value:.1f} % ({100 * value.low:.1f}–{100 * value.high:.1f})"
    ends = (value.value, value.low, value.high)
    form = [f"{100 * x:+.1f}" if kind == "points" else f"{x:.2f}" for x in ends]
    first, low, high = (text.replace("-", "\N{MINUS SIGN}") for text in form)
    return f"{first} ({low} to {high})"


def accuracy_dots(judgement: Judgement) -> list[tuple[str, str, Interval]]:
    """Accuracy of each model, and of a person beside it, by question."""
    several = len(judgement.questions) > 1
    dots = []
    for score in judgement.scores:
        row = f"{score.question}: {score.model}" if several else score.model
        if score.main is not None and score.main.person is not None:
            dots.append((row, "the model", score.main.model))
            dots.append((row, PERSON, score.main.person))
    return dots


def _pictures(judgement: Judgement) -> list[str]:
    if not judgement.models:
        return []
    try:
        from crowdtree.plots.judging import dots_chart, together_chart
        from crowdtree.plots.vega import chart_svg
    except MissingExtra as missing:
        return [hint(missing)]
    charts: list[Any] = []
    if accuracy_dots(judgement):
        charts.append(accuracy_chart(judgement))
    for question in judgement.questions:
        place = f" ({question})" if len(judgement.questions) > 1 else ""
        recalls = [
            (row.label, row.who, row.recall)
            for row in sorted(judgement.label_scores, key=lambda row: row.who == PERSON)
            if row.question == question and row.recall is not None
        ]
        labels = [row[0] for row in recalls]
        recalls.sort(key=lambda row: labels.index(row[0]))
        if recalls:
            charts.append(
                dots_chart(
                    recalls,
                    title=f"Recall of each label{place}",
                    axis="items that get their label",
                    small="95 % intervals",
                )
            )
        pairs = [row for row in judgement.together if row.question == question]
        if pairs:
            names = [*judgement.models, PERSON, ANOTHER]
            charts.append(together_chart(pairs, names, title=f"Wrong together{place}"))
    return [chart_svg(chart, page=True) for chart in charts]


def accuracy_chart(judgement: Judgement) -> Any:
    """Chart of the accuracy of each model beside a person's."""
    from crowdtree.plots.judging import dots_chart

    gold = any(score.verdict.reference == "gold" for score in judgement.scores)
    against = "known items" if gold else "the vote of the other people"
    return dots_chart(
        accuracy_dots(judgement), title="Models beside a single person",
        axis="share of right answers", small=f"95 % intervals; against {against}",
    )  # fmt: skip
