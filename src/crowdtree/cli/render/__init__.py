"""How results are printed: for people on a terminal, or as one JSON object."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from crowdtree.cli import inputs, options, streams
from crowdtree.cli.options import given
from crowdtree.core.reading import shown
from crowdtree.core.text import unbroken

__all__ = ["again", "command", "console", "emit"]
NO_BREAK = "\u2800"
"""Stands for a space while lines are broken: rich takes no other sign of its width for a letter."""


def console() -> Any:
    """Make the printer: styled on a terminal, plain otherwise, NO_COLOR honoured."""
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment
    from rich.text import Text

    class Terminal(Console):
        """A console on which names cannot move the cursor, and no line begins with ``%``."""

        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(unbroken(text, NO_BREAK), **options)

        def render(
            self, renderable: Any, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            if isinstance(renderable, Text):
                renderable = renderable.copy()
                renderable.plain = unbroken(renderable.plain, NO_BREAK)
            for part in super().render(renderable, options):
                text = streams.visible(part.text.replace(NO_BREAK, " "))
                yield part if part.control else part._replace(text=text)

    return Terminal(highlight=False, soft_wrap=not sys.stdout.isatty(), emoji=False)


def emit(
    as_json: bool,
    found: dict[str, Any],
    show: Callable[[Any], None] | str | Sequence[str],
    written: Iterable[Path | None] = (),
    then: str = "",
) -> None:
    """Print the result as one JSON object, or show it to a person: lines of text, or what prints.

    A person is also told which files were `written`, and what command to run `then`.
    """
    inputs.show_notes()  # before the result: whoever pipes it to `head` sees them
    if as_json:
        print(json.dumps(found, ensure_ascii=not streams.is_unicode(sys.stdout)))
        return
    page = console()
    if callable(show):
        show(page)
    for line in [show] if isinstance(show, str) else () if callable(show) else show:
        page.print(line, markup=False, soft_wrap=True)
    for path in written:
        if path is not None:
            page.print(f"Wrote {shown(path)}.", markup=False, soft_wrap=True)
    if then:
        page.print(f"Next: {then}", style="dim", markup=False, soft_wrap=True)


def command(verb: str, file: str, *words: object) -> str:
    """Write the next command; a group of options stands for those that were given.

    >>> from crowdtree.cli.options import Reading
    >>> command("staff", "my birds.csv", "--workers", 4, Reading(worker_error=0.1))
    "crowdtree staff 'my birds.csv' --workers 4 --worker-error 0.1"
    """
    return _join(verb.split(), file, *words)


def again(*words: object) -> str:
    """Write the running command with more options."""
    return _join(options.ARGUMENTS, *words)


def _join(verb: Iterable[object], *words: object) -> str:
    flat: list[object] = ["crowdtree", *verb]
    for word in words:
        pairs = given(word) if is_dataclass(word) else [(word, True)]
        flat += [part for name, value in pairs for part in (name, value) if part is not True]
    return shlex.join(map(str, flat))
