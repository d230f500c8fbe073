"""Width of text without a browser: widths of Helvetica, with a margin."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable

# Helvetica's advance widths in thousandths of the font size, by group of characters.
_WIDTHS = {
    "ijl'|": 222,
    " !,./:;I[]\\ft": 278,
    "()-r`°·": 345,
    '*ckJsvxyz^"': 510,
    "#$0123456789?L_abdeghnopqu": 556,
    "+<=>~": 584,
    "ABEFKPSTVXYZ&": 667,
    "CDHNRUw": 722,
    "GOQ": 778,
    "mM": 833,
    "W%": 944,
    "@": 1015,
}
_EM = {char: width / 1000 for chars, width in _WIDTHS.items() for char in chars}
_MARGIN = 1.15  # other system fonts run wider, DejaVu Sans the most
_BOLD = 1.07


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of a line of text in pixels, overestimated rather than underestimated.

    >>> 60 < text_width("Does it fly?", 13) < 90
    True
    """
    return sum(map(_char_width, text)) * size * _MARGIN * (_BOLD if bold else 1.0)


def _char_width(char: str) -> float:
    known = _EM.get(char)
    if known is not None:
        return known
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    return 0.7


def clean(text: str) -> str:
    """Remove characters that XML does not allow, and collapse white space.

    >>> clean("a\\x00b\\n c")
    'ab c'
    """
    kept = "".join(char for char in text if char.isspace() or _allowed(char))
    return " ".join(kept.split())


def _allowed(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cs") and ord(char) not in (0xFFFE, 0xFFFF)


def distinct(names: Iterable[str], most: int = 200) -> list[str]:
    """Clean names, cut to a number of characters, and number those that would be equal.

    >>> distinct(["cat", "a long name", "a long game", "cat "], most=7)
    ['cat (1)', 'a long… (2)', 'a long… (3)', 'cat (4)']
    """
    cut = [name if len(name) <= most else name[: most - 1] + "…" for name in map(clean, names)]
    again = Counter(cut)
    return [f"{name} ({i + 1})" if again[name] > 1 else name for i, name in enumerate(cut)]


def wrap(
    text: str, width: float, size: float, most: int = 4, bold: bool = False
) -> tuple[str, ...]:
    """Break text into at most `most` lines of a width in pixels; the rest becomes an ellipsis.

    >>> wrap("Does it have a long trunk and big ears?", 150, 13)
    ('Does it have a long', 'trunk and big ears?')
    >>> wrap("one two three four", 40, 13, most=2)
    ('one', 'two…')
    """
    lines = _fill(text, width, size, bold)
    if len(lines) <= most:
        return tuple(_balanced(text, lines, width, size, bold))
    last = lines[most - 1]
    while last and text_width(last + "…", size, bold) > width:
        last = last[:-1].rstrip()
    return (*lines[: most - 1], last + "…")


def _balanced(text: str, lines: list[str], width: float, size: float, bold: bool) -> list[str]:
    """Lines of like length: no single word is left over at the end."""
    for narrower in (0.6, 0.7, 0.8, 0.9):
        tried = _fill(text, width * narrower, size, bold)
        if len(tried) == len(lines) > 1 and " ".join(tried) == " ".join(lines):
            return tried
    return lines


def _fill(text: str, width: float, size: float, bold: bool) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in _pieces(clean(text), width, size, bold):
        longer = f"{line} {word}" if line else word
        if line and text_width(longer, size, bold) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line]


def _pieces(text: str, width: float, size: float, bold: bool) -> list[str]:
    """Words, cut where one alone is wider than the line."""
    pieces: list[str] = []
    for word in text.split(" "):
        start = 0
        for end in range(1, len(word) + 1):
            if end - start > 1 and text_width(word[start:end], size, bold) > width:
                pieces.append(word[start : end - 1])
                start = end - 1
        pieces.append(word[start:])
    return pieces
