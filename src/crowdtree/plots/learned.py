"""The page of what was learned: what needs a look, workers, the error table, confused pairs."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crowdtree.plots.page import page
from crowdtree.plots.style import percent
from crowdtree.plots.text import clean
from crowdtree.problem import DASH

if TYPE_CHECKING:
    from crowdtree.learn.model import Learned, Worker

__all__ = ["learned_page", "write_report"]

TITLE = "What the answers say"

MOST_WORKERS = 200
MOST_FLAGS = 30
MOST_THIN = 8
MOST_QUESTIONS = 40
MOST_CLASSES = 16
MOST_PAIRS = 15
_WIDTH, _HEIGHT = 220, 20  # of a skill bar, in pixels


def learned_page(learned: Learned, title: str = TITLE) -> str:
    """Self-contained HTML: no script is needed and nothing is fetched.

    Examples
    --------
    >>> from crowdtree.learn import learn
    >>> answers = {"task": [1, 1, 2, 2], "worker": ["ann", "<ben>"] * 2, "label": [0, 0, 1, 1]}
    >>> html = learned_page(learn(answers))
    >>> "&lt;ben&gt;" in html and "<ben>" not in html
    True
    """
    sections = [
        _style(),
        f"<h1>{_text(title)}</h1>",
        _summary(learned),
        _attention(learned),
        _workers(learned),
        _table(learned),
        _pairs(learned),
        _assumed(learned),
    ]
    return page(title, "\n".join(part for part in sections if part))


def write_report(path: str | Path, learned: Learned, title: str = TITLE) -> None:
    """Write the page, whole or not at all."""
    from crowdtree.files.atomic import write_atomically

    html = learned_page(learned, title)
    write_atomically(path, lambda file: file.write(html.encode()))


def _text(value: object) -> str:
    return escape(clean(str(value)))


def _scrolling(rows: str, kind: str = "plain") -> str:
    return f'<div class="scroll" tabindex="0"><table class="{kind}">{rows}</table></div>'


def _summary(learned: Learned) -> str:
    a = learned.answers
    known = int((learned.gold >= 0).sum())
    gold = f"{known:,} of known class" if known else "none of known class"
    sure = float(np.mean(learned.posterior.max(axis=1)))
    return (
        f"<p>{a.n_answers:,} answers of {a.n_workers:,} workers about {a.n_tasks:,} items "
        f"({gold}), {learned.problem.n_classes} classes, "
        f"{learned.problem.n_questions} questions.</p>"
        f"<p>A typical worker errs in <strong>{percent(learned.typical_error)}</strong> of "
        f"answers; the labels are right with an estimated <strong>{percent(sure)}</strong>.</p>"
    )


def _attention(learned: Learned) -> str:
    thin = sorted((f for f in learned.flags if f.kind == "thin"), key=lambda f: -f.value)
    flags = [*(f for f in learned.flags if f.kind != "thin"), *thin[:MOST_THIN]]
    if not flags:
        return "<h2>Nothing needs a look</h2><p>No spammers, blunt questions or thin cells.</p>"
    rows = "".join(
        f"<tr><td>{_text(flag.kind)}</td><td>{_text(flag.subject)}</td>"
        f"<td>{_text(flag.message)}</td></tr>"
        for flag in flags[:MOST_FLAGS]
    )
    left = len(learned.flags) - min(len(flags), MOST_FLAGS)
    more = f"<p>and {left} more, most of them thin cells</p>" if left > 0 else ""
    head = "<tr><th>What</th><th>Who or where</th><th>Why</th></tr>"
    return f"<h2>What needs a look</h2>{_scrolling(head + rows)}{more}"


def _workers(learned: Learned) -> str:
    ranked = sorted(learned.workers.values(), key=lambda w: (w.skill, w.name))
    shown = ranked
    if len(ranked) > MOST_WORKERS:
        shown = [*ranked[: MOST_WORKERS // 2], *ranked[-MOST_WORKERS // 2 :]]
    low = min((w.low for w in shown), default=-1.0)
    high = max((w.high for w in shown), default=1.0)
    level = f"{100 * learned.level:.3g}"
    rows = "".join(
        f"<tr><th scope='row'>{_text(w.name)}</th><td class='num'>{w.answers:,}</td>"
        f"<td>{_bar(w, low, high)}</td><td class='num'>{w.skill:+.2f}</td>"
        f"<td class='num'>{percent(w.error)}</td>"
        f"<td class='num'>{percent(w.error_low)} to {percent(w.error_high)}</td>"
        f"<td class='num'>{percent(w.agreement)}</td></tr>"
        for w in shown
    )
    note = ""
    if len(shown) < len(ranked):
        note = f"<p>The {MOST_WORKERS // 2} weakest and strongest of {len(ranked):,} are shown.</p>"
    return (
        "<h2>Workers, the weakest first</h2>"
        f"<p>Skill 0 is the typical worker; +1 has 2.7 times lower odds to err. Bars: {level} % "
        f"intervals (estimates).</p>{note}"
        + _scrolling(
            "<tr><th>Worker</th><th class='num'>Answers</th><th>Skill</th><th></th>"
            f"<th class='num'>Error</th><th class='num'>{level} % interval</th>"
            f"<th class='num'>Agreement</th></tr>{rows}"
        )
    )


def _bar(worker: Worker, low: float, high: float) -> str:
    """A dot and its interval, with the typical worker as a thin line."""
    span = max(high - low, 1e-9)

    def at(value: float) -> float:
        return 4 + (_WIDTH - 8) * (min(max(value, low), high) - low) / span

    middle = _HEIGHT / 2
    words = f"skill {worker.skill:+.2f}, {worker.low:+.2f} to {worker.high:+.2f}"
    zero = (
        f'<line x1="{at(0):.1f}" x2="{at(0):.1f}" y1="0" y2="{_HEIGHT}" stroke="var(--ct-line)"/>'
        if low < 0 < high
        else ""
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{words}">{zero}'
        f'<line x1="{at(worker.low):.1f}" x2="{at(worker.high):.1f}" y1="{middle}" y2="{middle}" '
        'stroke="var(--ct-grey)" stroke-width="2"/>'
        f'<circle cx="{at(worker.skill):.1f}" cy="{middle}" r="4" fill="var(--ct-accent)"/></svg>'
    )


def _table(learned: Learned) -> str:
    """Heat map of the errors: the darker the worse, the half width of the interval beneath."""
    problem = learned.problem
    low, high = learned.intervals.worker_error
    half = np.asarray(high - low) / 2
    told = problem.outcome != DASH
    worst = np.where(told, problem.worker_error, 0).max(axis=1)
    rows = np.sort(np.argsort(-worst, kind="stable")[:MOST_QUESTIONS])
    columns = np.sort(np.argsort(-problem.prior, kind="stable")[:MOST_CLASSES])
    head = "".join(f"<th class='num'>{_text(problem.classes[c])}</th>" for c in columns)
    body = "".join(
        f"<tr><th scope='row'>{_text(problem.text(q))}</th>"
        + "".join(
            _cell(int(problem.outcome[q, c]), float(problem.worker_error[q, c]), float(half[q, c]))
            for c in columns
        )
        + "</tr>"
        for q in rows
    )
    note = ""
    if len(rows) < problem.n_questions or len(columns) < problem.n_classes:
        note = (
            f"<p>The {len(rows)} questions of largest error (of {problem.n_questions:,}) and the "
            f"{len(columns)} commonest classes (of {problem.n_classes:,}) are shown.</p>"
        )
    return (
        "<h2>How often a typical worker errs</h2>"
        "<p>Error of each question (row) for each class (column), ± half of its interval; "
        f"“–” where the answers leave open what is right.</p>{note}"
        + _scrolling(f"<tr><th></th>{head}</tr>{body}", "heat")
    )


def _cell(outcome: int, error: float, half: float) -> str:
    if outcome == DASH:
        return "<td class='num muted'>–</td>"
    shade = round(100 * min(1.0, error / 0.5))
    answer = "yes" if outcome else "no"
    return (
        f"<td class='num' style='background:color-mix(in srgb, var(--ct-error-soft) {shade}%, "
        f"transparent)'>{percent(round(error, 3))}<br><small>±{100 * half:.2g} · {answer}</small>"
        "</td>"
    )


def _pairs(learned: Learned) -> str:
    """Class pairs by the probability that one takes from the other."""
    mass = learned.posterior.T @ learned.posterior
    share = mass / np.maximum(learned.posterior.sum(axis=0)[:, None], 1e-300)
    worst = np.triu(np.maximum(share, share.T), 1)
    order = np.argsort(-worst, axis=None, kind="stable")[:MOST_PAIRS]
    rows = "".join(
        f"<tr><td>{_text(learned.classes[i])}</td><td>{_text(learned.classes[j])}</td>"
        f"<td class='num'>{percent(float(worst[i, j]))}</td></tr>"
        for i, j in zip(*np.unravel_index(order, worst.shape), strict=True)
        if worst[i, j] >= 0.001
    )
    if not rows:
        return "<h2>No classes are confused</h2><p>Every item's class is all but sure.</p>"
    return (
        "<h2>Classes that are still confused</h2><p>Of the probability of one class, the share "
        "that lies with the other (an estimate).</p><table><tr><th>Class</th><th>and</th>"
        f"<th class='num'>Shared</th></tr>{rows}</table>"
    )


def _assumed(learned: Learned) -> str:
    """Learned against assumed error, a dot a cell with its interval; on the line they agree."""
    assumed = learned.assumed
    if assumed is None:
        return ""
    told = (learned.problem.outcome != DASH) & (learned.fit.answers >= 1)
    x, y = assumed.worker_error[told], learned.problem.worker_error[told]
    low, high = (np.asarray(end)[told] for end in learned.intervals.worker_error)
    most = float(max(0.5, x.max(initial=0), high.max(initial=0)))
    size = 360

    def at(value: float) -> float:
        return 32 + (size - 48) * value / most

    marks = "".join(
        f'<line x1="{at(a):.1f}" x2="{at(a):.1f}" y1="{size - at(d):.1f}" y2="{size - at(u):.1f}" '
        'stroke="var(--ct-grey)" stroke-width="1"/>'
        f'<circle cx="{at(a):.1f}" cy="{size - at(b):.1f}" r="3" fill="var(--ct-accent)"/>'
        for a, b, d, u in zip(x[:2000], y[:2000], low[:2000], high[:2000], strict=True)
    )
    outside = float(np.mean((x < low) | (x > high))) if len(x) else 0.0
    ticks = "".join(
        f'<text x="{at(v):.1f}" y="{size - 12}" text-anchor="middle">{100 * v:.0f} %</text>'
        f'<text x="28" y="{size - at(v) + 4:.1f}" text-anchor="end">{100 * v:.0f}</text>'
        for v in np.arange(0, most + 1e-9, 0.1)
    )
    return (
        "<h2>Learned against assumed</h2>"
        f"<p>{percent(outside)} of the assumed errors lie outside the interval of what was learned."
        f'</p><svg class="scatter" width="{size}" height="{size}" role="img" '
        'aria-label="Learned error against assumed error, one dot a cell">'
        f'<line x1="{at(0):.1f}" y1="{size - at(0):.1f}" x2="{at(most):.1f}" '
        f'y2="{size - at(most):.1f}" stroke="var(--ct-line)"/>{marks}{ticks}'
        f'<text x="{size / 2}" y="{size - 0.5}" text-anchor="middle">assumed error</text>'
        '<text x="36" y="12">learned error, %</text></svg>'
    )


def _style() -> str:
    return (
        "<style>th.num,td.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
        "td,th{padding:4px 8px;text-align:left;vertical-align:middle}"
        "table{border-collapse:collapse}tr+tr{border-top:1px solid var(--ct-line)}"
        ".muted,small{color:var(--ct-muted)}.heat td{min-width:64px}"
        ".scatter text{font-size:11px;fill:var(--ct-muted)}</style>"
    )
