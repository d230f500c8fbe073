"""Markdown from owners, sanitised: tags that are not listed are dropped."""

from __future__ import annotations

from functools import cache

import nh3
from markdown_it import MarkdownIt

TAGS = {
    *("p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "a", "img"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def markdown(text: str) -> str:
    """Render Markdown as safe HTML.

    Links open in a new tab without a referrer; images come from https only; raw HTML is escaped.

    >>> markdown("**Look** <script>alert(1)</script>")
    '<p><strong>Look</strong> &lt;script&gt;alert(1)&lt;/script&gt;</p>\\n'
    >>> markdown("[x](javascript:alert(1))")
    '<p>[x](javascript:alert(1))</p>\\n'
    """
    return nh3.clean(
        _parser().render(text),
        tags=TAGS,
        attributes={"a": {"href", "target"}, "img": {"src", "alt"}},
        url_schemes={"https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
