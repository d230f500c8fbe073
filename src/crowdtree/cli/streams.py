"""Standard input, output and error, whatever they are connected to.

Redirected output on Windows is seldom UTF-8, a pipe may close before the last line, and a program
may be started without any of the three.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from crowdtree.core.errors import CrowdtreeError

STANDARD_INPUT = "-"
"""How the command line names standard input."""

_PLAIN = str.maketrans(
    {
        "├": "|",
        "│": "|",
        "└": "`",
        "─": "-",
        "→": "->",
        "·": "-",
        "…": "...",
        "–": "-",
        "—": "-",
        "−": "-",
        "’": "'",
        "±": "+/-",
        "≤": "<=",
        "≥": ">=",
        "×": "x",
    }
)


_CONTROL = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}


def plain(error: UnicodeError) -> tuple[str, int]:
    r"""Replace what an encoding lacks: lines of drawings by ASCII, the rest by escapes.

    >>> codecs.register_error("plain", plain)
    >>> "├─ no → 東".encode("ascii", "plain")
    b'|- no -> \\u6771'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


def visible(text: str) -> str:
    r"""Write control characters as escapes: a name must not clear the screen.

    >>> visible("rob\x1b[2Jin\n")
    'rob\\x1b[2Jin\n'
    """
    return text.translate(_CONTROL)


def is_unicode(stream: Any) -> bool:
    """Whether every character can be written to a stream."""
    return codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name.startswith("utf")


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Make standard output and error accept any text; a missing one accepts and discards it."""
    codecs.register_error("crowdtree-plain", plain)
    before = sys.stdout, sys.stderr
    with contextlib.ExitStack() as opened:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is None or stream.closed:
                sink = opened.enter_context(open(os.devnull, "w", encoding="utf-8"))
                setattr(sys, name, sink)
            elif hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="crowdtree-plain")
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


def discard_output() -> None:
    """Discard what is still to be written to standard output, which cannot take it."""
    with contextlib.suppress(OSError, ValueError):  # a stream in memory has no descriptor
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)


def is_closed_pipe(error: OSError) -> bool:
    """Whether the reader of our output went away, as `head` does; Windows calls it invalid."""
    pipe = isinstance(error, BrokenPipeError)
    return pipe or (sys.platform == "win32" and error.errno == errno.EINVAL and not error.filename)


def check_single_use(words: Sequence[str]) -> None:
    """Raise where two files of a command are standard input.

    >>> check_single_use(["learn", "-", "--gold=-"])
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: -: standard input can be read once; give the other as a file
    """
    if sum(word == STANDARD_INPUT or word.endswith(f"={STANDARD_INPUT}") for word in words) > 1:
        raise CrowdtreeError("-: standard input can be read once; give the other as a file")


_taken: tuple[Any, bytes] = (None, b"")  # what was read, and from which stream


def read_input() -> bytes:
    """Read all of standard input; a second call returns the same."""
    global _taken
    if _taken[0] is not sys.stdin:
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise CrowdtreeError("-: there is no standard input; give a file")
        _taken = sys.stdin, stream.read()
    return _taken[1]
