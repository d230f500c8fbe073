"""One view of a tree as HTML: a nested list with one row per node, which fits any width."""

from __future__ import annotations

from html import escape

from crowdtree.show.plots.style import Tokens
from crowdtree.show.plots.text import clean
from crowdtree.show.plots.tree_fold import Entry, View
from crowdtree.show.plots.tree_model import Facts, Words

_THICKEST = 12
_DEPTHS = (8, 12, 18, 27, 40)


def rows_html(facts: Facts, view: View, prefix: str) -> str:
    """Draw a view as nested lists; folded subtrees are links to their own view."""
    shown = [facts.words(entry) for entry in view.entries]
    made = [""] * len(shown)
    for place in reversed(range(len(shown))):  # children come after their parents
        children = view.entries[place].children
        made[place] = _row(facts, shown[place], view.entries[place], prefix)
        if children:
            lines = [_line(shown[child]) for child in children]
            styles = [view.entries[child].style for child in children]
            if styles == ["no", "yes"]:
                form = f"n{lines[0]} y{lines[1]}"
            else:
                form = "several"
                styles = [f"{style} w{w}" for style, w in zip(styles, lines, strict=True)]
            branches = "".join(
                f'<li class="{style}">{made[child]}</li>'
                for style, child in zip(styles, children, strict=True)
            )
            made[place] += f'<ul class="{form}">{branches}</ul>'
            for child in children:
                made[child] = ""
    depth = max(entry.depth for entry in view.entries)
    step = next((limit for limit in _DEPTHS if depth <= limit), _DEPTHS[-1])
    return f'<div class="ct-rows"><div class="d{step}">{made[0]}</div></div>'


def _line(words: Words) -> int:
    """Width of the line to a box in whole pixels, as browsers draw borders."""
    return max(1, round(_THICKEST * min(words.share, 1.0)))


def _row(facts: Facts, words: Words, entry: Entry, prefix: str) -> str:
    answer = escape(clean(entry.answer))
    chip = f'<span class="ct-answer {entry.style}">{answer}</span> ' if answer else ""
    sub = f' <span class="ct-sub">{escape(clean(words.sub))}</span>' if words.sub else ""
    main = f'<span class="ct-main">{escape(clean(words.main))}</span>'
    numbers = escape(clean(" · ".join(words.small)))
    body = (
        f'{chip}<span class="ct-words">{main}{sub}</span> <span class="ct-numbers">{numbers}</span>'
    )
    title = escape(clean(words.title))
    if words.kind == "fold":
        label = escape(clean(f"Open {facts.fold_text(words.node)}"))
        link = f'href="#{prefix}-{words.node}" aria-label="{label}" title="{title}"'
        return f'<a class="ct-row fold" {link}>{body}</a>'
    return f'<div class="ct-row {words.kind}" title="{title}">{body}</div>'


_SIZES = "".join(
    [f".ct-rows .d{depth} {{ --step: min(28px, {45 / depth:.2f}cqw); }}\n" for depth in _DEPTHS]
    + [
        f".ct-rows .n{k} {{ --no: min({k}px, var(--step) / 2); }}\n"
        f".ct-rows .y{k} {{ --yes: min({k}px, var(--step) / 2); }}\n"
        f".ct-rows .w{k} {{ --line: {max(k, 2)}px; }}\n"
        for k in range(1, _THICKEST + 1)
    ]
)  # classes, because pages of the server allow no inline styles
_CSS = """
.ct-rows { max-width: 1280px; font-size: 14px; line-height: 1.35; container-type: inline-size;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.ct-rows ul { list-style: none; margin: 0; padding: 0; }
.ct-rows li { position: relative; max-width: none; margin: 0; padding: 6px 0 0 var(--step); }
.ct-rows li::before { content: ""; position: absolute; top: 0; height: 25px; left: 6px;
  width: calc(var(--step) - 6px); border: 0 solid var(--ct-accent);
  border-width: 0 0 var(--yes) var(--yes); border-bottom-left-radius: 10px; }
.ct-rows li.no::before { left: calc(6px + var(--yes));
  width: calc(var(--step) - 6px - var(--yes));
  border-color: var(--ct-orange); border-width: 0 0 var(--no) var(--no); }
.ct-rows li.no::after { content: ""; position: absolute; top: 0; bottom: 0; left: 6px;
  width: var(--yes); background: var(--ct-accent); }
.ct-rows .several > li::before { border-width: 0 0 var(--line) 2px; border-color: var(--ct-grey); }
.ct-rows .several > li:not(:last-child)::after { content: ""; position: absolute; top: 0;
  bottom: 0; left: 6px; width: 2px; background: var(--ct-grey); }
.ct-rows .ct-row { position: relative; display: flex; flex-wrap: wrap; align-items: baseline;
  gap: 0 8px; padding: 8px 12px; border: 1px solid transparent; border-radius: 6px;
  color: var(--ct-text); text-decoration: none; break-inside: avoid; }
.ct-rows .ct-words { flex: 1 1 18ch; min-width: 0; overflow-wrap: anywhere; }
.ct-rows .ct-numbers, .ct-rows .ct-sub { font-size: 12px; color: var(--ct-muted); }
.ct-rows .ct-numbers:empty { display: none; }
.ct-rows .ct-answer { color: var(--ct-muted); font-size: 12px; font-weight: 600;
  min-width: 26px; max-width: 45%; overflow-wrap: anywhere; }
.ct-rows .ct-answer.no { color: var(--ct-orange-text); }
.ct-rows .ct-answer.yes { color: var(--ct-accent); }
.ct-rows .question { background: var(--ct-background); border-color: var(--ct-grey); }
.ct-rows .leaf { background: var(--ct-surface); }
.ct-rows .leaf .ct-main { font-weight: 600; }
.ct-rows .fold { border: 1px dashed var(--ct-grey); border-radius: 16px; }
.ct-rows .fold .ct-main { color: var(--ct-accent); text-decoration: underline; }
.ct-rows .fold .ct-sub { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  overflow: hidden; }
.ct-rows .fold:hover, .ct-rows .fold:focus { background: var(--ct-accent-soft);
  border: 1px solid var(--ct-accent); }
.ct-graph + .ct-rows { display: none; }
.ct-graph svg { display: block; max-width: 100%; height: auto; }
@media (max-width: 840px) { .ct-graph { display: none; } .ct-graph + .ct-rows { display: block; } }
"""


def rows_css(tokens: Tokens) -> str:
    """Style of the rows, in terms of the page's custom properties; small screens have rows only."""
    colours = "".join(
        f".ct-rows .several > li.a{k}::before {{ border-bottom-color: {colour}; }}\n"
        for k, colour in enumerate(tokens.answers)
    )
    return _SIZES + _CSS + colours
