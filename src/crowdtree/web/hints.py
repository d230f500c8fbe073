"""Errors in the words of the web: messages of the library also name what only code has.

The library says what to change in a file and, as an alternative, the argument in Python with the
option of the command line in parentheses: ``or pass normalise=True (--normalise) to scale it``.
Clients of the API have the arguments, but no command line; pages have neither, but controls.
"""

from __future__ import annotations

import re

__all__ = ["api_words", "page_words"]

OPTION = re.compile(r" \(--[a-z][^)]*\)")
ARGUMENT = re.compile(
    r",? or pass \w+=\S*?(?: \(--[^)]*\))?(?: (?:to|for) [^;,.]*)?(?:, or \w+=[^;.]*)?(?=[;,.]|$)"
)
CONTROLS = (
    (
        re.compile(r"""(?:use|pass) dash=["']either["'](?: \(--dash either\))?"""),
        "choose under More options that people may answer yes or no for a class with -",
    ),
)
"""Arguments for which the page of a new campaign has a control."""


def api_words(message: str) -> str:
    """Leave out the options of the command line.

    >>> api_words("prior: sums to 0.9, not 1; or pass normalise=True (--normalise) to scale it")
    'prior: sums to 0.9, not 1; or pass normalise=True to scale it'
    """
    return OPTION.sub("", message)


def page_words(message: str) -> str:
    """Name the control of the page, and leave out what a page does not have.

    >>> page_words("prior: sums to 0.9; correct it, or pass normalise=True (--normalise) to scale")
    'prior: sums to 0.9; correct it'
    >>> page_words('design: no question splits them; use dash="either" (--dash either)')[33:]
    'choose under More options that people may answer yes or no for a class with -'
    """
    for argument, control in CONTROLS:
        message = argument.sub(control, message)
    return api_words(ARGUMENT.sub("", message))
