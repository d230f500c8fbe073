"""Write pictures atomically; the file extension determines the format."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from crowdtree.core.errors import CrowdtreeError, needing
from crowdtree.io.atomic import write_atomically

ENDINGS = (".svg", ".png", ".html", ".json")


def check_ending(path: str | os.PathLike[str], endings: tuple[str, ...] = ENDINGS) -> str:
    """Return the extension of a file name, or raise an error that lists the known ones.

    >>> check_ending("tree.SVG")
    '.svg'
    >>> check_ending("tree.gif")
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: tree.gif: cannot write '.gif'; use .svg, .png, .html or .json
    """
    ending = Path(path).suffix.lower()
    if ending in endings:
        return ending
    *most, last = endings
    known = f"{', '.join(most)} or {last}" if most else last
    what = f"cannot write {ending!r}" if ending else "has no file extension"
    raise CrowdtreeError(f"{os.fspath(path)}: {what}; use {known}")


def write_as(path: str | os.PathLike[str], makers: Mapping[str, Callable[[], str | bytes]]) -> Path:
    """Write a file by its extension; an unknown one is refused before any work."""
    return write_atomic(path, makers[check_ending(path, tuple(makers))]())


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file atomically: to a temporary file in the same folder, renamed at the end."""
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CrowdtreeError(
            f"{target}: cannot be written ({reason}); choose another path"
        ) from None
    write_atomically(target, lambda file: file.write(data))
    return target


def svg_to_png(svg: str, scale: float = 2.0) -> bytes:
    """Render an SVG without a browser, at twice the resolution by default."""
    with needing("pictures as .png", "figures"):
        import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=scale))
