"""Errors of the library in the words of the command line: options instead of arguments."""

from __future__ import annotations

import re
from collections.abc import Collection

_PYTHON_ONLY = re.compile(r",? or (?:pass )?(?:strict=False|errors= with|load\()[^;.]*")
_WITH_OPTION = re.compile(
    r"""(?:pass )?\b\w+=(?:\[[^]]*\]|"[^"]*"|'[^']*'|[^\s,;()]*) \((--[^)]+)\)"""
)
_NAMED = re.compile(r"""\b(method|dash|objective|vote|rows)=["'](\w+)["']""")
_ADVICE = re.compile(
    r"(?:^|(?<=[a-z] ))(?:target_error|target_loss|max_answers|max_votes|max_points|time_limit|"
    r"node_limit|gap_limit|loss_bound)\b"
)
_SUBJECT = re.compile(r"^((?:[^\s:]+: )?)([a-z_]+)(?=:)")


def option_words(message: str, written: Collection[str] = ()) -> str:
    """Name the options of the command line where a message names arguments of Python.

    `message`: a message of the library. `written`: options that the user wrote: a message about one
    of these arguments is about the option.

    >>> option_words("prior: sums to 0.9; correct it, or pass normalise=True (--normalise)")
    'prior: sums to 0.9; correct it, or --normalise'
    >>> option_words('optimal: not for dash="either"; use method="fm", or pass strict=False')
    'optimal: not for --dash either; use --method fm'
    >>> option_words("error: 0 is out of reach; raise max_votes", ["--error"])
    '--error: 0 is out of reach; raise --max-votes'
    """
    message = _PYTHON_ONLY.sub("", message)
    message = _WITH_OPTION.sub(r"\1", message)
    message = _NAMED.sub(r"--\1 \2", message)
    message = _ADVICE.sub(lambda match: _option(match[0]), message)
    subject = _SUBJECT.match(message)
    if subject is not None:
        name = subject[2]
        for option in map(_option, (name, f"max_{name}", name.removeprefix("true_"))):
            if option in written:
                message = subject[1] + option + message[subject.end() :]
                break
    return re.sub(r"(--[a-z-]+)=(?=[^\s,;])", r"\1 ", message)


def _option(name: str) -> str:
    return f"--{name}".replace("_", "-")
