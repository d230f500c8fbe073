"""Errors of the library in the words of the web: without options, and pages without arguments.

The library says what to change in a file and, as an alternative, the argument in Python with the
option of the command line in parentheses: ``or pass normalise=True (--normalise) to scale it``.
Clients of the API have the arguments, but no command line; pages have neither, but controls.
Neither has a file that was not uploaded.
"""

from __future__ import annotations

import re

OPTION = re.compile(r" \(--[a-z][^)]*\)")
FIELD = re.compile(r"^(problem|plan)\.json\b")
ARGUMENT = re.compile(
    r",? or pass \w+=[^\s,;]*(?: \(--[^)]*\))?(?: (?:to|for) [^;,.]*)?"
    r"(?:, or \w+=[^;.]*)?(?=[;,.]|$)|; answers are for crowdtree learn[^;]*"
)
CONTROLS = (
    (
        re.compile(r"""(?:use|pass) dash=["']either["'](?: \(--dash either\))?"""),
        "choose under More options that people may answer yes or no for a class with -",
    ),
)
"""Arguments for which the page of a new campaign has a control."""
PASTED = "pasted.csv"
"""The name of a table that was pasted, for its format."""


def api_words(message: str) -> str:
    """Leave out the options of the command line, and call a field of the request by its name.

    >>> api_words("prior: sums to 0.9, not 1; or pass normalise=True (--normalise) to scale it")
    'prior: sums to 0.9, not 1; or pass normalise=True to scale it'
    >>> api_words("problem.json: classes: is missing; add it")
    'problem: classes: is missing; add it'
    """
    return FIELD.sub(r"\1", OPTION.sub("", message))


def page_words(message: str) -> str:
    """Name the control of the page, and leave out what a page does not have.

    >>> page_words("prior: sums to 0.9; correct it, or pass normalise=True (--normalise) to scale")
    'prior: sums to 0.9; correct it'
    >>> page_words("pasted.csv, line 2: expected 4 cells, got 3")
    'pasted table, line 2: expected 4 cells, got 3'
    >>> page_words('design: no question splits them; use dash="either" (--dash either)')[33:]
    'choose under More options that people may answer yes or no for a class with -'
    """
    for argument, control in CONTROLS:
        message = argument.sub(control, message)
    return OPTION.sub("", ARGUMENT.sub("", message)).replace(PASTED, "pasted table")
