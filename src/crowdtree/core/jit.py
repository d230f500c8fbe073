"""Compiled kernels: compiled once, and announced.

A kernel is a function of arrays in a module that is imported only when it is called. numba
compiles it for the types of its first call and keeps the result next to the source file, or in
the user's cache folder. Where neither can be written, it is compiled in every process. numba comes
with the extra `fast`; without it kernels run as they are written.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

SECONDS = {
    "crowdtree.designs.designers.exact": 20,
    "crowdtree.designs.designers": 10,
}
"""About how long the kernels of a package take to compile; the first that fits is shown."""

_log = logging.getLogger(__name__)
_kept = True


@cache
def can_compile() -> bool:
    """Whether numba is installed."""
    try:
        return importlib.util.find_spec("numba") is not None
    except ModuleNotFoundError:  # raised by finders that block it
        return False


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Decorate a kernel; `options` are those of :func:`numba.njit`.

    Says so through the logger of this module, once per package, when it has to compile.
    """

    def decorate(function: Function) -> Function:
        if not can_compile():
            return function
        from numba import njit

        _announce_compilation()
        try:
            made: Function = njit(cache=True, **options)(function)
        except RuntimeError:  # neither the package's folder nor the user's can be written
            global _kept
            _kept = False
            made = njit(**options)(function)
        return made

    return decorate


@cache
def _announce_compilation() -> None:
    """Watch numba, which knows best whether it has to compile or finds the result on disk."""
    from numba.core import event

    class Watch(event.Listener):
        def on_start(self, event: Any) -> None:
            module = event.data["dispatcher"].py_func.__module__
            package = next((name for name in SECONDS if module.startswith(name)), None)
            if package is not None:
                _announce(package)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Watch())  # type: ignore[no-untyped-call]


@cache
def _announce(package: str) -> None:
    how_long = f"(about {SECONDS[package]} s)"
    if _kept:
        _log.info("compiling, once %s", how_long)
    else:
        _log.info("compiling %s; set NUMBA_CACHE_DIR to a writable folder to do it once", how_long)
