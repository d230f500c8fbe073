"""Settings of numba, in one place, so that the other modules stay typed."""

import contextlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import njit, typeof, types
from numba.core import event
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

_log = logging.getLogger(__name__)
_kept = True


def forget_stale_code(folder: Path) -> None:
    """Remove compiled code that is older than any source file of the folder.

    numba's disk cache checks only the file of the function itself; code compiled against an older
    version of another file would give wrong results or crash.
    """
    newest = max(source.stat().st_mtime for source in folder.glob("*.py"))
    for made in (folder / "__pycache__").glob("*.nb[ic]"):
        with contextlib.suppress(OSError):  # another process may have removed it already
            if made.stat().st_mtime < newest:
                made.unlink()


forget_stale_code(Path(__file__).parent)


def compiled(function: Function) -> Function:
    """Compile without the interpreter lock, so that a watching thread can stop the search.

    Reference counts are off: the search owns all its memory and allocates none, and counting the
    arrays of its tuples at every call takes longer than the calls themselves. The result is kept
    next to the source file or in the user's cache folder; where neither can be written, it is
    compiled in every process.
    """
    options: dict[str, Any] = {"nogil": True, "_nrt": False}
    try:
        kernel = njit(cache=True, **options)(function)
    except RuntimeError:  # neither folder can be written
        global _kept
        _kept = False
        kernel = njit(**options)(function)
    return cast(Function, kernel)


class _Watch(event.Listener):
    """Say so, once, when numba has to compile and does not find the result on disk."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].py_func.__module__.startswith(__package__):
            announce()

    def on_end(self, event: Any) -> None:
        pass


@cache
def announce() -> None:
    """Tell the user what takes so long."""
    if _kept:
        _log.info("compiling, once (about 20 s)")
    else:
        _log.info("compiling (about 20 s); set NUMBA_CACHE_DIR to a writable folder to do it once")


event.register("numba:compile", _Watch())


def make_ready(kernel: Any, *arguments: Any) -> None:
    """Compile a kernel for arguments of these types, or load it, without running it."""
    kernel.compile(tuple(typeof(argument) for argument in arguments))


def _popcount(_context: Any, _word: Any) -> Any:
    """Number of ones in a word."""

    def generate(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _lowest_bit(_context: Any, _word: Any) -> Any:
    """Position of the lowest one of a word that is not zero."""

    def generate(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


popcount: Callable[[Any], int] = cast(Any, intrinsic(_popcount))
lowest_bit: Callable[[Any], int] = cast(Any, intrinsic(_lowest_bit))
