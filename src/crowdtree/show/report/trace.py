"""A trace as a page: question, answer and posterior bars, step by step."""

from __future__ import annotations

from html import escape
from os import PathLike
from typing import Any

from crowdtree.campaign.trace import Trace
from crowdtree.core.outcomes import YES_NO
from crowdtree.core.text import percent
from crowdtree.show.plots.html import page
from crowdtree.show.plots.save import write_as

STYLE = """<style>
main { max-width: 75ch; overflow-wrap: anywhere; }
ol { list-style: none; padding: 0; } li { margin: 0 0 24px; }
.asked { font-weight: 600; margin: 0 0 8px; } .yes { color: var(--ct-accent); }
.no { color: var(--ct-orange-text); } .other { color: var(--ct-muted); }
.row { display: grid; gap: 8px;
  grid-template-columns: 10em 1fr 5em; align-items: center; }
.row span:last-child { text-align: right; white-space: nowrap; color: var(--ct-muted); }
.bar { height: 12px; border-radius: 2px; background: var(--ct-grey); }
.row:first-of-type .bar { background: var(--ct-accent); }
@media (max-width: 480px) { .row { grid-template-columns: 7em 1fr 4.5em; } }
</style>
"""


def trace_page(trace: Trace) -> str:
    """Make the page; every text of the problem is escaped."""
    parts = ["<li><p class=asked>Before any answer</p>", *_bars(trace, trace.prior), "</li>"]
    for number, step in enumerate(trace.steps, start=1):
        word, text = escape(step.answer), escape(trace.text(step.asked))
        style = word if word in YES_NO else "other"
        parts.append(f"<li><p class=asked>{number}. {text} <span class={style}>{word}</span></p>")
        parts += [*_bars(trace, step.posterior), "</li>"]
    parts += [f"<li><p>{escape(note)}</p></li>" for note in trace.notes()]
    verdict = trace.verdict()
    headline = escape(trace.label or "Not decided yet")
    head = f"<h1>{headline}</h1><p>{escape(verdict)}</p>"
    return page(verdict, f"{STYLE}{head}<ol>{''.join(parts)}</ol>")


def write_trace_report(path: str | PathLike[str], trace: Trace) -> None:
    """Write the page atomically."""
    write_as(path, {".html": lambda: trace_page(trace)})


def _bars(trace: Trace, posterior: Any) -> list[str]:
    return [
        f"<div class=row><span>{escape(name)}</span>"
        f'<div class=bar style="width:{max(100 * share, 0.3):.1f}%"></div>'
        f"<span>{percent(share)}</span></div>"
        for name, share in trace.top(posterior)
    ]
