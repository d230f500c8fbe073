"""The page of learned results: labels, points to check, workers, errors, confused pairs."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from crowdtree.audit.words import sum_up
from crowdtree.core.errors import MissingExtra
from crowdtree.core.text import percent, plural
from crowdtree.io.atomic import write_atomically
from crowdtree.learning.compare import Against, against_assumed, confused_pairs
from crowdtree.show.plots.html import hint, page
from crowdtree.show.plots.text import clean
from crowdtree.show.report.learned_tables import (
    accuracy_words,
    label_worth,
    ranked_flags,
    share,
    worst_cells,
)

if TYPE_CHECKING:
    from crowdtree.audit import Audit
    from crowdtree.learning.model import Learned, Worker

TITLE = "What the answers say"

MOST_WORKERS = 200
MOST_FLAGS = 30
MOST_THIN = 8
MOST_QUESTIONS = 40
MOST_CLASSES = 16
MOST_PAIRS = 15
MOST_LABELS = 30
MOST_AGAINST = 30
_WIDTH, _HEIGHT = 160, 16  # of a bar, in pixels


def learned_page(learned: Learned, title: str = TITLE, audit: Audit | None = None) -> str:
    """Self-contained HTML: no script is needed and nothing is fetched.

    With the `audit` whose checks were learned from, it says what that certifies.

    >>> from crowdtree.learning import learn
    >>> answers = {"task": [1, 1, 2, 2], "worker": ["ann", "<ben>"] * 2, "label": [0, 0, 1, 1]}
    >>> html = learned_page(learn(answers))
    >>> "&lt;ben&gt;" in html and "<ben>" not in html
    True
    """
    sections = [
        _certified(audit),
        _worth(learned),
        _attention(learned),
        _sources(learned),
        _workers(learned),
        _table(learned),
        _pairs(learned),
        _assumed(learned),
    ]
    shown = "\n".join(f"<section>{part}</section>" for part in sections if part)
    head = f"{_style()}<h1>{_text(title)}</h1>{_summary(learned)}"
    return page(title, f'{head}\n<div class="beside own">{shown}</div>')


def write_learned_report(
    path: str | Path, learned: Learned, title: str = TITLE, audit: Audit | None = None
) -> None:
    """Write a self-contained page about what was learned, whole or not at all.

    `audit`: an audit of these labels, whose bound is shown.

    >>> import crowdtree as ct, tempfile
    >>> answers = {"task": [1, 1, 2, 2], "worker": [*"abab"], "label": ["cat", "cat", "dog", "cat"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_learned_report(Path(folder, "learned.html"), ct.learn(answers))
    """
    html = learned_page(learned, title, audit)
    write_atomically(path, lambda file: file.write(html.encode()))


def _text(value: object) -> str:
    return escape(clean(str(value)))


def _scrolling(rows: str, kind: str = "plain") -> str:
    return f'<div class="scroll" tabindex="0"><table class="{kind}">{rows}</table></div>'


def _summary(learned: Learned) -> str:
    a = learned.answers
    known = int((learned.gold >= 0).sum())
    gold = f"{known:,} of known class" if known else "none of known class"
    return (
        f"<p>{plural(a.n_answers, 'answer')} from {plural(a.n_workers, 'worker')} about "
        f"{plural(a.n_tasks, 'item')} ({gold}), "
        f"{plural(learned.problem.n_classes, 'class', 'classes')}, "
        f"{plural(learned.problem.n_questions, 'question')}.</p>"
        f"<p>A typical worker errs in <strong>{percent(learned.typical_error)}</strong> of "
        f"answers. {_text(' '.join(accuracy_words(learned)))}</p>"
    )


def _certified(audit: Audit | None) -> str:
    """What the audit says about the labels that it was about."""
    if audit is None:
        return ""
    said = f"<h2>Audit of the labels before</h2><p>{_text(sum_up(audit.to_dict()))}</p>"
    if not audit.history:
        return said
    try:
        from crowdtree.show.plots.audits import audit_chart
        from crowdtree.show.plots.vega import chart_svg
    except MissingExtra as missing:
        return said + hint(missing)
    chart = chart_svg(audit_chart(audit.history, audit.confidence, audit.bound), page=True)
    return f'{said}<div class="scroll" tabindex="0">{chart}</div>'


def _worth(learned: Learned) -> str:
    """Recall and precision of each label."""
    found = label_worth(learned)
    rows = "".join(
        f"<tr><th scope='row'>{_text(row.name)}</th><td class='num'>{row.items:,}</td>"
        f"<td class='num'>{share(row.precision)}</td><td class='num'>{share(row.recall)}</td></tr>"
        for row in found[:MOST_LABELS]
    )
    left = len(found) - MOST_LABELS
    more = f"<p>and {plural(left, 'more label')} of greater precision</p>" if left > 0 else ""
    return (
        "<h2>What a label is worth</h2><p>Precision: of the items with a label, how many are of "
        "its class. Recall: of the items of a class, how many have its label. Both are "
        "estimates.</p>"
        + _scrolling(
            "<tr><th>Label</th><th class='num'>Items</th><th class='num'>Precision</th>"
            f"<th class='num'>Recall</th></tr>{rows}"
        )
        + more
    )


def _attention(learned: Learned) -> str:
    others, thin = ranked_flags(learned)
    flags = [*others, *thin[:MOST_THIN]]
    if not flags:
        return "<h2>Nothing to check</h2><p>No spammers, useless questions or thin data.</p>"
    rows = "".join(
        f"<tr><td>{_text(flag.kind)}</td><td>{_text(flag.subject)}</td>"
        f"<td>{_text(flag.message)}</td></tr>"
        for flag in flags[:MOST_FLAGS]
    )
    left = len(learned.flags) - min(len(flags), MOST_FLAGS)
    more = f"<p>and {left} more, mostly cells with too few answers</p>" if left > 0 else ""
    head = "<tr><th>What</th><th>Who or where</th><th>Why</th></tr>"
    return f"<h2>Points to check</h2>{_scrolling(head + rows)}{more}"


def _sources(learned: Learned) -> str:
    """Error of each source, where there are several."""
    if not learned.sources:
        return ""
    rows = "".join(
        f"<tr><th scope='row'>{_text(s.name)}</th><td>{s.kind}</td>"
        f"<td class='num'>{s.workers:,}</td><td class='num'>{s.answers:,}</td>"
        f"<td class='num'>{share(s.error)}</td>"
        f"<td class='num extra'>{share(s.low)} to {share(s.high)}</td></tr>"
        for s in sorted(learned.sources.values(), key=lambda s: s.error)
    )
    return "<h2>Sources</h2>" + _scrolling(
        "<tr><th>Source</th><th>Kind</th><th class='num'>Workers</th><th class='num'>Answers</th>"
        f"<th class='num'>Error</th><th class='num extra'>{100 * learned.level:.3g} % interval</th>"
        f"</tr>{rows}"
    )


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
        f"<td class='extra'>{_bar(w, low, high)}</td><td class='num extra'>{_signed(w.skill)}</td>"
        f"<td class='num'>{share(w.error)}</td>"
        f"<td class='num extra'>{share(w.error_low)} to {share(w.error_high)}</td>"
        f"<td class='num'>{share(w.agreement)}</td></tr>"
        for w in shown
    )
    note = ""
    if len(shown) < len(ranked):
        note = f"<p>The {MOST_WORKERS // 2} weakest and strongest of {len(ranked):,} are shown.</p>"
    return (
        "<h2>Workers, the weakest first</h2>"
        "<p>Skill 0 is the typical worker; +1 divides the odds of an error by 2.7. Bars: "
        f"{level}&nbsp;% intervals (estimates).</p>{note}"
        + _scrolling(
            "<tr><th>Worker</th><th class='num'>Answers</th><th class='extra'>Skill</th>"
            "<th class='extra'></th><th class='num'>Error</th>"
            f"<th class='num extra'>{level} % interval</th>"
            f"<th class='num'>Agreement</th></tr>{rows}"
        )
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


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
    """Heat map of the errors: darker is larger, with the half-width of the interval below."""
    problem = learned.problem
    rows, columns, half, _ = worst_cells(learned, MOST_QUESTIONS, MOST_CLASSES)
    named = problem.n_questions > 1  # the one question of a labelling task is neither yes nor no
    head = "".join(f"<th class='num'>{_text(problem.classes[c])}</th>" for c in columns)
    body = "".join(
        f"<tr><th scope='row'>{_text(problem.text(q))}</th>"
        + "".join(
            _cell(
                " | ".join(problem.right_names(q, c)),
                float(problem.worker_error[q, c]),
                float(half[q, c]),
                named,
            )
            for c in columns
        )
        + "</tr>"
        for q in rows
    )
    note = ""
    if len(rows) < problem.n_questions or len(columns) < problem.n_classes:
        note = (
            f"<p>The {len(rows)} questions of largest error (of {problem.n_questions:,}) and the "
            f"{len(columns)} most common classes (of {problem.n_classes:,}) are shown.</p>"
        )
    return (
        "<h2>How often a typical worker errs</h2>"
        "<p>Error of each question (row) for each class (column), ± half of its interval, and the "
        "right answer; a deeper colour is a larger error. “–” where the answers do not show "
        f"which is right.</p>{note}" + _scrolling(f"<tr><th></th>{head}</tr>{body}", "heat")
    )


def _cell(right: str, error: float, half: float, named: bool) -> str:
    if not right:
        return "<td class='num muted'>–</td>"
    shade = round(80 * min(1.0, error / 0.5))
    answer = f" · {_text(right)}" if named else ""
    return (
        f"<td class='num' style='background:color-mix(in srgb, var(--ct-shade) {shade}%, "
        f"transparent)'>{share(error)}<br><small>±{100 * half:.1f}{answer}</small></td>"
    )


def _pairs(learned: Learned) -> str:
    """Class pairs by the probability that they share."""
    pairs = confused_pairs(learned)
    rows = "".join(
        f"<tr><td>{_text(pair.first)}</td><td>{_text(pair.second)}</td>"
        f"<td class='num'>{share(pair.shared)}</td></tr>"
        for pair in pairs[:MOST_PAIRS]
    )
    if not rows:
        return "<h2>No classes are confused</h2><p>Every item's class is nearly certain.</p>"
    left = len(pairs) - MOST_PAIRS
    more = f"<p>and {plural(left, 'more pair')} that share less</p>" if left > 0 else ""
    return (
        "<h2>Classes that are still confused</h2><p>Of the probability of one class, the share "
        "that lies with the other (an estimate).</p>"
        + _scrolling(f"<tr><th>Class</th><th>and</th><th class='num'>Shared</th></tr>{rows}")
        + more
    )


def _assumed(learned: Learned) -> str:
    """Learned against assumed error: the cells that lie farthest apart, each with its interval."""
    cells = against_assumed(learned)
    if not cells:
        return ""
    outside = sum(cell.outside for cell in cells)
    most = max(0.5, *(max(cell.high, cell.assumed) for cell in cells))
    rows = "".join(
        f"<tr><th scope='row'>{_text(cell.question)}</th><td>{_text(cell.cls)}</td>"
        f"<td class='extra'>{_range(cell, most)}</td><td class='num'>{share(cell.assumed)}</td>"
        f"<td class='num'>{share(cell.learned)}</td>"
        f"<td class='num extra'>{share(cell.low)} to {share(cell.high)}</td>"
        f"<td{' class=bad' if cell.outside else ''}>{'outside' if cell.outside else 'within'}</td>"
        "</tr>"
        for cell in cells[:MOST_AGAINST]
    )
    shown = ""
    if len(cells) > MOST_AGAINST:
        shown = f" The {MOST_AGAINST} farthest apart are shown."
    return (
        "<h2>Learned against assumed</h2>"
        f"<p>{percent(outside / len(cells))} of the {plural(len(cells), 'assumed error')} lie "
        f"outside the learned interval.{shown}</p>"
        f"<p class='small'>Line and dot: learned, on a scale from 0 to {percent(most)}. "
        "Ring: assumed.</p>"
        + _scrolling(
            "<tr><th>Question</th><th>Class</th><th class='extra'></th><th class='num'>Assumed</th>"
            "<th class='num'>Learned</th><th class='num extra'>Interval</th>"
            "<th>Assumed lies</th></tr>" + rows
        )
    )


def _range(cell: Against, most: float) -> str:
    """Learned error with its interval, and the assumed one as a ring."""

    def at(value: float) -> float:
        return 6 + (_WIDTH - 12) * value / most

    middle = _HEIGHT / 2
    ring = "var(--ct-error)" if cell.outside else "var(--ct-text)"
    words = (
        f"learned {share(cell.learned)}, {share(cell.low)} to {share(cell.high)}; "
        f"assumed {share(cell.assumed)}"
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{words}">'
        f'<line x1="{at(cell.low):.1f}" x2="{at(cell.high):.1f}" y1="{middle}" y2="{middle}" '
        'stroke="var(--ct-grey)" stroke-width="2"/>'
        f'<circle cx="{at(cell.learned):.1f}" cy="{middle}" r="4" fill="var(--ct-accent)"/>'
        f'<circle cx="{at(cell.assumed):.1f}" cy="{middle}" r="5" fill="none" stroke="{ring}" '
        'stroke-width="2"/></svg>'
    )


def _style() -> str:
    return (
        "<style>:root{--ct-shade:color-mix(in srgb, var(--ct-error) 55%, var(--ct-background))}"
        "th.num,td.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
        "td,th{padding:4px 8px;text-align:left;vertical-align:middle}td svg{display:block}"
        "table{border-collapse:collapse}tr+tr{border-top:1px solid var(--ct-line)}"
        "th[scope=row]{position:sticky;left:0;background:var(--ct-background);max-width:28ch}"
        ".muted{color:var(--ct-muted)}.heat td{min-width:84px}"
        ".heat td small{display:inline-block;max-width:16ch;white-space:normal;color:inherit}"
        ".heat th[scope=row]{min-width:18ch}"
        "@media (max-width:600px){th[scope=row],.heat th[scope=row]{min-width:9ch;max-width:16ch}"
        ".extra{display:none}td,th{padding:4px}}</style>"
    )
