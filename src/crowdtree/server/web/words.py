"""How the pages write times, money, counts, and Markdown from owners."""

from __future__ import annotations

import datetime as dt
from functools import cache

import nh3
from markdown_it import MarkdownIt

from crowdtree.core.text import amount, duration, number, percent, plural, short
from crowdtree.server.languages import english

__all__ = [
    "ago",
    "amount",
    "brief",
    "clock",
    "count",
    "duration",
    "money",
    "number",
    "percent",
    "plural",
    "reported",
    "short",
]


def brief(seconds: float) -> str:
    """Write a span of time in little space.

    >>> brief(5), brief(90)
    ('< 1 min', '2 min')
    """
    return "< 1 min" if seconds < 55 else duration(seconds)


def ago(at: float | None, now: float) -> str:
    """Write how long ago something was.

    >>> ago(None, 0), ago(100, 103), ago(0, 600)
    ('never', 'just now', '10 min ago')
    """
    if at is None:
        return "never"
    gone = now - at
    return "just now" if gone < 10 else "a moment ago" if gone < 55 else f"{duration(gone)} ago"


def clock(at: float | None) -> str:
    """Write a moment, in UTC.

    >>> clock(0)
    '1970-01-01 00:00:00'
    """
    if at is None:
        return ""
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


def money(value: float, currency: str = "") -> str:
    """Write an amount: cents where they matter.

    >>> money(3.5, "EUR"), money(12345.6, "EUR"), money(0.004)
    ('3.50 EUR', '12,346 EUR', '0.004')
    """
    if value and abs(value) < 0.01:
        text = number(value, 2)
    else:
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"
    return f"{text} {currency}".strip()


def reported(report: str) -> str:
    """Write what a worker reported about an item.

    >>> reported("unreadable: too dark")
    'It cannot be read or recognised: too dark'
    """
    reason, colon, words = report.partition(": ")
    return f"{english(f'report.{reason}')}{colon}{words}"


def count(value: float) -> str:
    """Write a whole number.

    >>> count(12345)
    '12,345'
    """
    return f"{value:,.0f}"


TAGS = {
    *("p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "a", "img"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
"""Tags that Markdown may make; others are dropped."""


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
