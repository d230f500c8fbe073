"""Methods that results share: data frames, pictures, charts, files and their form in a notebook.

Results lie in low layers, and what draws and writes them lies above. :mod:`crowdtree.show.output`
holds the code, and is loaded by its name when a method is first called.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError

Library = Literal["polars", "pandas"]


def _output() -> Any:
    return importlib.import_module("crowdtree.show.output")


class Framed:
    """A result with a data frame."""

    def to_frame(self, part: str | None = None, *, library: Library = "polars") -> Any:
        """Tabulate the result as a data frame.

        Parameters
        ----------
        part
            Which table, where a result has several; a wrong name lists them.
        library
            ``"polars"`` or ``"pandas"``.
        """
        check_call(Framed.to_frame, locals())
        return _output().to_frame(self, part, library)


class Saved:
    """A result that :func:`crowdtree.load` reads back; what it reads equals what was saved."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the result; :func:`crowdtree.load` reads it back. Returns the path."""
        check_call(Saved.save, {"path": path})
        written: Path = _output().save(self, path)
        return written


class HtmlShown:
    """A result that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        shown: str = _output().to_html(self)
        return shown


class Picture(str):
    """An SVG text that can be saved, and that a notebook shows.

    >>> import crowdtree as ct
    >>> picture = ct.design(ct.example("table1")).draw()
    >>> picture[:4]
    '<svg'
    """

    _write: Callable[[str | os.PathLike[str]], Path]

    def __new__(cls, svg: str, write: Callable[[str | os.PathLike[str]], Path]) -> Picture:
        """Make a picture from its SVG and from what writes it."""
        made = super().__new__(cls, svg)
        made._write = write
        return made

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write as ``.svg``, ``.png``, ``.html`` or ``.json`` by its ending; returns the path."""
        check_call(Picture.save, {"path": path})
        return self._write(path)

    def saved(self, path: str | os.PathLike[str] | None) -> Picture:
        """Return the picture, written to a path where one is given."""
        if path is not None:
            self.save(path)
        return self

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"Picture(SVG, {len(self):,} characters)"


class Drawn(HtmlShown):
    """A tree or plan, which a notebook shows as its drawing."""

    def draw(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        fold: float | None = None,
        direction: Literal["down", "right"] | None = None,
        levels: bool = False,
    ) -> Picture:
        """Draw as SVG.

        Parameters
        ----------
        path
            Where to save it as well, as :meth:`Picture.save` does: ``.svg``, ``.png``, ``.html`` or
            ``.json``.
        title
            Heading; by default the size and the exact error.
        fold
            Share of items below which a part of the tree is folded into one box; 0 draws
            everything. By default 1 % in trees with more than 24 ends.
        direction
            Where the tree grows; by default down while that is narrow and shallow.
        levels
            Whether to show the bits that are left after each level.
        """
        check_call(Drawn.draw, locals())
        if fold is not None and not 0 <= fold <= 1:
            raise CrowdtreeError(f"fold: expected a share of the items from 0 to 1, got {fold}")
        picture: Picture = _output().draw(
            self, title=title, fold=fold, direction=direction, levels=levels
        )
        return picture.saved(path)

    def _repr_svg_(self) -> str:
        return str(self.draw())


class Plotted(HtmlShown):
    """A result with a chart."""

    def draw(self, path: str | os.PathLike[str] | None = None) -> Picture:
        """Draw as SVG, and save it where a path is given, as :meth:`Picture.save` does."""
        check_call(Plotted.draw, {"path": path})
        picture: Picture = _output().draw(self)
        return picture.saved(path)

    def plot(self) -> Any:
        """Plot as an Altair chart, which you can change."""
        return _output().plot(self)
