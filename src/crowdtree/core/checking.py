"""Arguments of public functions, checked against their annotations in one place.

A function calls ``check_call(function, locals())`` in its first line: a value of the wrong type
raises one line that names the argument, what was expected and what came. Ranges of numbers are
checked by the functions themselves.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import types
import typing
from collections import abc
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

from crowdtree.core.errors import CrowdtreeError, did_you_mean

P = ParamSpec("P")
T = TypeVar("T")
Test = Callable[[Any], bool]


class _Kind(NamedTuple):
    words: str
    fix: Callable[[Any, str], str]
    needs: tuple[str, ...]


_KINDS: dict[Any, _Kind] = {}


def describe_type(
    cls: Any, words: str, fix: str | Callable[[Any, str], str] = "", needs: tuple[str, ...] = ()
) -> None:
    """Say how messages name a type of ours, and what to do instead of passing something else.

    `fix`: what to do; or a function of the value, and of the name of the call, that says it.
    `needs`: attributes by which an object of a protocol is recognised.
    """
    _KINDS[cls] = _Kind(words, fix if callable(fix) else lambda *_: fix, needs)


def check_call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise unless every argument has the type that the function's annotation says.

    >>> def wait(seconds: float, how: Literal["well", "badly"] = "well"): ...
    >>> check_call(wait, {"seconds": 3})
    >>> check_call(wait, {"seconds": "long"})
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: seconds: expected a number, got the text 'long'
    >>> check_call(wait, {"seconds": 3, "how": "soon"})
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: how: expected "well" or "badly", got the text 'soon'
    """
    for name, (choices, tests) in _annotations(function).items():
        if name in arguments:
            value = arguments[name]
            for fits in tests:
                if fits(value):
                    break
            else:
                raise _refusal(name, choices, value, function.__name__)


def check_options(
    call: str, function: Callable[..., Any], options: Mapping[str, Any], *, types: bool = True
) -> None:
    """Raise unless a function takes these options, and (with `types`) of these types.

    >>> def wait(seconds: float): ...
    >>> check_options("method 'wait'", wait, {"second": 3})
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: method 'wait' has no option 'second'; did you mean 'seconds'?
    """
    known = _parameters(function)
    named = [name for name, given in known.items() if given.kind is not given.VAR_KEYWORD]
    if len(named) == len(known):
        for name in options:
            if name not in named:
                raise CrowdtreeError(f"{call} has no option {name!r}{did_you_mean(name, named)}")
    if types:
        check_call(function, options)


@cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def named_options(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function refuse an argument that it does not have with a message of ours.

    >>> @named_options
    ... def wait(*, seconds: float): ...
    >>> wait(second=3)
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: wait has no option 'second'; did you mean 'seconds'?
    """

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        check_options(function.__name__, function, options, types=False)
        return function(*args, **options)

    return call


def check_share(name: str, value: Any, *, zero: bool = False) -> float:
    """Return a number between 0 and 1 (or 0, with `zero`); raise for anything else.

    >>> check_share("error", 2)
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: error: expected a number between 0 and 1, got 2; 2 % is 0.02
    """
    if is_number(value) and (0 < value < 1 or (zero and value == 0)):
        return float(value)
    number = is_number(value)
    percent = f"; {value:g} % is {value / 100:g}" if number and 1 <= value < 100 else ""
    raise CrowdtreeError(
        f"{name}: expected a number between 0 and 1, got {f'{value:g}' if number else got(value)}"
        + percent
    )


def got(value: Any) -> str:
    """Name a value that was not expected, in a few words.

    >>> [got(value) for value in ("birds.csv", 2.5, None, [1, 2], {}, got)]
    ["the text 'birds.csv'", '2.5', 'None', 'a list of 2', 'an empty dictionary', 'a function']
    """
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        return f"the text {path[:60]!r}"
    if value is None or isinstance(value, bool | Real):
        return repr(value)[:60]
    if isinstance(value, dict):
        return f"a dictionary of {len(value)}" if value else "an empty dictionary"
    if isinstance(value, list | tuple | set):
        return f"a {type(value).__name__} of {len(value)}"
    return "a function" if isinstance(value, types.FunctionType) else _type_words(type(value))


def is_number(value: Any, *, whole: bool = False) -> bool:
    """Whether a value is one number; True and False are none. Ranges refuse NaN.

    >>> [is_number(value) for value in (1, 0.5, True, "1", [1])]
    [True, True, False, False, False]
    """
    if isinstance(value, _numpy("ndarray")) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, *_numpy("bool_"))):
        return False
    return isinstance(value, Integral if whole else Real)


def _numpy(name: str) -> tuple[Any, ...]:
    """A type of NumPy, or nothing where that was never imported: no value can be of it."""
    module = sys.modules.get("numpy")
    return () if module is None else (getattr(module, name),)


# ---------------------------------------------------------------- annotations


@cache
def _annotations(
    function: Callable[..., Any],
) -> dict[str, tuple[tuple[Any, ...], tuple[Test, ...]]]:
    """Types that each argument may have, with their tests; not those that may be anything."""
    made = function.__init__ if inspect.isclass(function) else function
    names = getattr(inspect.unwrap(made), "__globals__", {})
    found = {}
    for name, given in _parameters(function).items():
        variadic = given.kind in (given.VAR_POSITIONAL, given.VAR_KEYWORD)
        if name not in ("self", "cls") and not variadic and given.annotation is not given.empty:
            choices = tuple(_resolved(given.annotation, names))
            if Any not in choices:
                found[name] = choices, tuple(map(_test, choices))
    return found


def _resolved(annotation: Any, names: dict[str, Any]) -> Iterable[Any]:
    """Split a union at its bars; a part that is only known to a type checker may be anything."""
    if not isinstance(annotation, str):
        yield annotation
        return
    for part in _parts(ast.parse(annotation, mode="eval").body):
        if part == "ArrayLike":  # a union of protocols that says nothing in a message
            import numpy as np

            yield np.ndarray
            continue
        try:
            value = eval(part, _ABSTRACT | names)
        except NameError:
            value = Any
        yield from typing.get_args(value) if isinstance(value, types.UnionType) else (value,)


_ABSTRACT = {name: getattr(abc, name) for name in abc.__all__}
"""Types that some modules import for a type checker only."""


def _parts(node: ast.expr) -> Iterable[str]:
    """Parts of a union that is written with bars."""
    if isinstance(node, ast.BinOp):
        yield from _parts(node.left)
        yield from _parts(node.right)
    else:
        yield ast.unparse(node)


def _test(expected: Any) -> Test:
    """Make the function that says whether a value is of a type."""
    origin = typing.get_origin(expected) or expected
    if expected is None:
        return lambda value: value is None
    if origin is Literal:
        options = typing.get_args(expected)
        return lambda value: isinstance(value, str) and value in options
    if origin in (int, float):
        return lambda value: is_number(value, whole=origin is int)
    if origin is bool:
        return lambda value: isinstance(value, (bool, *_numpy("bool_")))
    if origin in _numpy("ndarray"):
        return _has_numbers
    if origin in _LISTS:
        return _is_list
    if origin is Mapping and (element := _element(expected)):
        inside = _test(element)
        return lambda value: isinstance(value, Mapping) and all(map(inside, value.values()))
    if origin in _KINDS and (needs := _KINDS[origin].needs):
        return lambda value: all(hasattr(value, name) for name in needs)
    if getattr(origin, "_is_protocol", False) and origin not in (os.PathLike, Callable):
        return lambda _: True  # nothing says how it is recognised
    return lambda value: isinstance(value, origin)


def _element(expected: Any) -> Any:
    """Type of ours that a mapping leads to."""
    parts = [typing.get_origin(part) or part for part in typing.get_args(expected)[1:]]
    return parts[0] if parts and parts[0] in _KINDS else None


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _has_numbers(value: Any) -> bool:
    import numpy as np

    if not isinstance(value, np.ndarray):
        if not _is_list(value):
            return is_number(value)
        try:
            value = np.asarray(value)
        except ValueError:  # rows of different lengths
            return False
    return value.dtype.kind in "biufO"


_NUMPY_WORDS = {"ndarray": "numbers", "Generator": "a numpy Generator"}
_LISTS = (Sequence, Collection, Iterable, list, tuple)
_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "text",
    bytes: "bytes",
    os.PathLike: "a path",
    Callable: "a function",
    **dict.fromkeys(_LISTS, "a list"),
    **dict.fromkeys((Mapping, dict), "a dictionary"),
}


def _refusal(name: str, choices: tuple[Any, ...], value: Any, call: str) -> CrowdtreeError:
    origins = [typing.get_origin(choice) or choice for choice in choices]
    words: list[str] = []
    for choice, origin in zip(choices, tuple(origins), strict=True):
        if origin is str and os.PathLike in origins:
            continue
        if origin is Literal:
            words += [f'"{option}"' for option in typing.get_args(choice)]
        elif origin is Mapping and (element := _element(choice)):
            words.append(f"a dictionary from name to {_KINDS[element].words}")
            origins.append(element)
        elif origin is not None:
            words.append(_KINDS[origin].words if origin in _KINDS else _type_words(origin))
    *most, last = dict.fromkeys(words)
    expected = f"{', '.join(most)} or {last}" if most else last
    fixes = (_KINDS[origin].fix(value, call) for origin in origins if origin in _KINDS)
    fix = next(filter(None, fixes), "")
    return CrowdtreeError(
        f"{name}: expected {expected}, got {got(value)}" + (f"; {fix}" if fix else "")
    )


def _type_words(cls: Any) -> str:
    name = cls.__name__
    if cls.__module__.startswith("numpy") and name in _NUMPY_WORDS:
        return _NUMPY_WORDS[name]
    return _WORDS.get(cls) or f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
