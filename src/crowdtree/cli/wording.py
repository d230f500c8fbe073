"""Errors of the library in the words of the command line: options instead of arguments."""

from __future__ import annotations

import re

__all__ = ["option_words"]

_PYTHON_ONLY = re.compile(r",? or (?:pass )?(?:strict=False|errors= with)[^;.]*")
_WITH_OPTION = re.compile(
    r"""(?:pass )?\b\w+=(?:\[[^]]*\]|"[^"]*"|'[^']*'|[^\s,;()]*) \((--[^)]+)\)"""
)
_NAMED = re.compile(r"""\b(method|dash|objective|vote|rows)=["'](\w+)["']""")
_OPTIONS = re.compile(
    r"(?<![-.\w])(worker_error|target_error|target_loss|max_answers|max_votes|max_points|time_limit|"
    r"node_limit|gap_limit|loss_bound)\b"
)


def option_words(message: str) -> str:
    """Name the options of the command line where a message names arguments of Python.

    >>> option_words("prior: sums to 0.9; correct it, or pass normalise=True (--normalise)")
    'prior: sums to 0.9; correct it, or --normalise'
    >>> option_words('optimal: not for dash="either"; use method="fm", or pass strict=False')
    'optimal: not for --dash either; use --method fm'
    >>> option_words("the target is out of reach; raise target_error")
    'the target is out of reach; raise --target-error'
    """
    message = _PYTHON_ONLY.sub("", message)
    message = _WITH_OPTION.sub(r"\1", message)
    message = _NAMED.sub(r"--\1 \2", message)
    message = _OPTIONS.sub(lambda match: f"--{match[0]}".replace("_", "-"), message)
    return re.sub(r"(--[a-z-]+)=(?=[^\s,;])", r"\1 ", message)
