"""Pictures as HTML files: a page with its style and script inlined, and the views of a tree."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from crowdtree.core.errors import MissingExtra
from crowdtree.show.plots.style import FONT, css_variables
from crowdtree.show.plots.text import clean
from crowdtree.show.plots.tree_drawing import LEGEND, tree_css


class TreeView(NamedTuple):
    """A view of a tree for a page: its id, the ids and names of the views above it, its HTML."""

    name: str
    trail: tuple[tuple[str, str], ...]
    heading: str
    body: str


def page_css() -> str:
    """Style of a page: the tokens, two sizes of text, two of heading, an 8 px grid."""
    return css_variables() + _CSS.replace("$FONT", FONT) + tree_css()


def page(title: str, body: str) -> str:
    """Put a body (HTML that is safe already) into a self-contained page.

    >>> "<title>a &lt; b</title>" in page("a < b", "")
    True
    """
    script = f"<script>{FOLDING_JS}</script>\n" if 'class="tree-views"' in body else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(clean(title))}</title>\n<style>\n{page_css()}\n</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{script}</body>\n</html>\n"
    )


def hint(missing: MissingExtra) -> str:
    """A line in the place of a chart that cannot be drawn.

    >>> hint(MissingExtra("charts", "figures"))[:30]
    '<p class="note">charts: not in'
    """
    return f'<p class="note">{escape(str(missing))}</p>'


def tree_page(title: str, shown: Iterable[TreeView]) -> str:
    """A page with one tree, in which folded subtrees open."""
    return page(title, f"<h1>{escape(clean(title))}</h1>\n{tree_section(shown)}")


def tree_section(shown: Iterable[TreeView]) -> str:
    """The legend and the views of a tree as HTML; one view is shown at a time.

    Pills are plain links to their views, and each view links to those above it, so keyboards, the
    back button and browsers without scripts work; the script only hides the other views.
    """
    parts = []
    for view in shown:
        trail = "".join(
            f'<a href="#{name}">{escape(heading)}</a> <span aria-hidden="true">›</span> '
            for name, heading in view.trail
        )
        crumbs = (
            f'<nav aria-label="Path through the tree"><p class="crumbs">{trail}'
            f"<strong>{escape(view.heading)}</strong></p></nav>"
            if view.trail
            else ""
        )
        parts.append(
            f'<section class="tree-view" id="{view.name}" tabindex="-1" '
            f'aria-label="{escape(view.heading)}">{crumbs}'
            f"{view.body}</section>"
        )
    return f'<p class="small">{LEGEND}</p><div class="tree-views">{"".join(parts)}</div>'


FOLDING_JS = """
(function () {
  var groups = Array.prototype.map.call(document.querySelectorAll('.tree-views'), function (g) {
    return Array.prototype.slice.call(g.children);
  });
  function show(moved) {
    var asked = location.hash.slice(1);
    groups.forEach(function (views) {
      var hit = views.filter(function (v) { return v.id === asked; })[0];
      if (!hit && moved) return;
      views.forEach(function (v) { v.hidden = v !== (hit || views[0]); });
      if (!hit || !moved) return;
      hit.focus({preventScroll: true});
      hit.scrollIntoView({block: 'nearest'});
    });
  }
  addEventListener('hashchange', function () { show(true); });
  show(false);
})();
"""

_CSS = """
* { box-sizing: border-box; }
body { margin: 0; overflow-x: clip; background: var(--ct-background); color: var(--ct-text);
  font: 15px/1.5 $FONT; font-variant-numeric: tabular-nums; }
main { max-width: 1600px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 8px; text-wrap: balance; }
h2 { font-size: 18px; line-height: 1.3; margin: 56px 0 8px; }
h3 { font-size: 15px; margin: 32px 0 8px; }
summary { cursor: pointer; color: var(--ct-accent); }
p, li, dd { max-width: 75ch; margin: 0 0 8px; }
small, .small { font-size: 13px; color: var(--ct-muted); }
a { color: var(--ct-accent); }
a:focus-visible, [tabindex]:focus-visible { outline: 2px solid var(--ct-accent);
  outline-offset: 2px; }
[hidden] { display: none; }
.tree-view { scroll-margin-top: 16px; }
.tree-view:focus { outline: none; }
.crumbs { margin: 8px 0; }
.scroll, figure.wide { overflow-x: auto; max-width: 100%;
  background: /* a shadow where more is to come */
  linear-gradient(to right, var(--ct-background) 40%, transparent) left / 48px 100% no-repeat local,
  linear-gradient(to left, var(--ct-background) 40%, transparent) right / 48px 100% no-repeat local,
  linear-gradient(to right, var(--ct-muted), transparent) left / 6px 100% no-repeat scroll,
  linear-gradient(to left, var(--ct-muted), transparent) right / 6px 100% no-repeat scroll; }
.scroll > svg { display: block; max-width: none; }
.beside { display: flex; flex-wrap: wrap; gap: 0 48px; align-items: flex-start; }
.beside > * { flex: 1 1 520px; min-width: 0; max-width: 100%; }
.beside td.words { min-width: 9ch; }
.beside > .scroll { flex-basis: auto; }
.beside > figure { flex: 2 1 600px; }
.beside.own > * { flex: 0 1 auto; } /* as wide as their tables */
.beside.own p { max-width: 56ch; }
figure { margin: 16px 0 0; }
figure svg { max-width: 100%; height: auto; }
figure.wide svg { max-width: none; overflow: visible; display: block; }
figure.wide > svg > rect, .scroll > svg > rect { fill: none; } /* the shadow is behind it */
.beside figure.wide svg { min-width: 560px; max-width: 100%; }
dl.facts { display: flex; flex-wrap: wrap; gap: 16px 48px; margin: 24px 0; }
dl.facts div { min-width: 120px; }
dl.facts dt { font-size: 13px; color: var(--ct-muted); }
dl.facts dd { font-size: 26px; line-height: 1.2; font-weight: 600; margin: 0; }
dl.facts dd.ours { color: var(--ct-accent); }
dl.points { display: grid; gap: 16px 48px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); }
dl.points dt { font-weight: 600; }
dl.points dd { margin: 0; }
dl.points ul { margin: 0; padding-left: 20px; }
table { border-collapse: collapse; margin: 16px 0; font-size: 13px; line-height: 1.4; }
th { text-align: left; font-weight: 600; color: var(--ct-muted); vertical-align: bottom; }
th, td { padding: 6px 16px 6px 0; border-bottom: 1px solid var(--ct-line); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
tr.ours td { color: var(--ct-accent); font-weight: 600; }
tr.ours td .small { color: var(--ct-muted); font-weight: 400; }
.main table { font-size: 15px; }
td.bad { color: var(--ct-error); }
td.words { min-width: 18ch; max-width: 52ch; }
.tag { white-space: nowrap; font-size: 13px; color: var(--ct-muted); }
@media (max-width: 600px) {
  main { padding: 24px 16px 48px; }
  h1 { font-size: 22px; }
  dl.facts { gap: 16px 32px; }
  th.n { white-space: normal; }
  th, td { padding-right: 8px; }
  td.words, .beside td.words { min-width: 10ch; overflow-wrap: anywhere; }
  td:last-child, th:last-child { padding-right: 0; }
}
@media print { .scroll, figure.wide { overflow: visible; } }
"""
