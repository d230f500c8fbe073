"""YAML and JSON as text: parse with the position of every error, write all digits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from crowdtree.core.errors import CrowdtreeError, one_line, squeeze
from crowdtree.core.reading import Source, shown
from crowdtree.io.atomic import write_atomically
from crowdtree.io.formats import MOST_BYTES, ending_of

MOST_DEPTH = 20
"""Levels of nesting of a YAML file; a problem has five."""
MOST_VALUES = 1_500_000
"""Values and brackets in a YAML file, which take some 5 microseconds each."""
_TOO_MANY = f"has more than {MOST_VALUES:,} values; keep large tables as .csv or .json"


def parse_document(source: Source) -> Any:
    """Read the data of a YAML or JSON file."""
    name = source.name
    ending = ending_of(name)
    text = source.read_text(MOST_BYTES[ending])
    if not text.strip():
        raise CrowdtreeError(f"{name}: is blank")
    try:
        return _parse_json(text, name) if ending == ".json" else _parse_yaml(text, name)
    except RecursionError:
        raise CrowdtreeError(f"{name}: is nested too deeply for a problem or a plan") from None


def _parse_json(text: str, name: str) -> Any:
    def no_constant(word: str) -> NoReturn:
        raise CrowdtreeError(f"{name}: expected a finite number, got {word}")

    def no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [key for key, _ in pairs]
            twin = next(key for key in names if names.count(key) > 1)
            raise CrowdtreeError(f"{name}: the field {one_line(twin)} occurs twice in one object")
        return found

    try:
        return json.loads(text, parse_constant=no_constant, object_pairs_hook=no_twins)
    except json.JSONDecodeError as error:
        raise CrowdtreeError(
            f"{name}, line {error.lineno}, column {error.colno}: is not JSON ({squeeze(error.msg)})"
        ) from None
    except CrowdtreeError:
        raise
    except ValueError as error:  # a whole number of thousands of digits
        raise CrowdtreeError(f"{name}: is not JSON ({squeeze(error)[:80]})") from None


def _parse_yaml(text: str, name: str) -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """Plain data only; a field that occurs twice is an error."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key.value, str):
                    raise yaml.constructor.ConstructorError(
                        None, None, "expected a field name", key.start_mark
                    )
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{one_line(key.value)} occurs twice", key.start_mark
                    )
                seen.add(key.value)
            return super().construct_mapping(node, deep=deep)

    try:
        _check_yaml_shape(text, name, base)
        return yaml.load(text, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise CrowdtreeError(
            f"{name}{where}: is not YAML ({squeeze(error.problem or error.context)[:120]}); check "
            'the indentation, and put - and names with signs in quotes ("-")'
        ) from None
    except CrowdtreeError:
        raise
    except (yaml.YAMLError, ValueError) as error:
        raise CrowdtreeError(f"{name}: is not YAML ({squeeze(error)[:120]})") from None


def _check_yaml_shape(text: str, name: str, loader: Any) -> None:
    """Refuse aliases and deep nesting before anything is built.

    An alias can make a small file huge; nesting can overflow the loader's stack.
    """
    import yaml

    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=loader)):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise CrowdtreeError(
                f"{name}, line {line}: has an alias (*{event.anchor}); write the values out"
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth == 1 and isinstance(event, yaml.SequenceStartEvent):
                raise CrowdtreeError(
                    f"{name}, line {line}: expected fields (name: value), got a list"
                )
            if depth > MOST_DEPTH:
                raise CrowdtreeError(
                    f"{name}, line {line}: is nested too deeply for a problem or a plan"
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if number > MOST_VALUES + 4:
            raise CrowdtreeError(f"{name}: {_TOO_MANY}")


def write_document(path: Path, data: dict[str, Any]) -> None:
    """Write data as JSON (one entry per line) or YAML."""
    ending = ending_of(path)
    if ending == ".json":
        text = "".join(json_lines(data)) + "\n"
    else:
        import yaml

        if _size(data) > MOST_VALUES:
            raise CrowdtreeError(f"{shown(path)}: {_TOO_MANY}")
        text = yaml.dump(
            data,
            Dumper=_dumper(),
            sort_keys=False,
            allow_unicode=True,
            width=100,
            default_flow_style=None,  # rows of cells on one line, entries on several
        )
    write_atomically(path, lambda file: _write(file, text), MOST_BYTES[ending])


def _size(data: Any) -> int:
    """Count the values and brackets of data, as :func:`_check_yaml_shape` does or more."""
    if isinstance(data, dict):
        return 2 + sum(1 + _size(value) for value in data.values())
    return 2 + sum(map(_size, data)) if isinstance(data, list) else 1


def _write(file: Any, text: str) -> None:
    file.write(text.encode("utf-8"))


def _dumper() -> Any:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Never writes aliases, which are not read."""

        def ignore_aliases(self, _data: Any) -> bool:
            return True

    return Dumper


def json_lines(data: Any, indent: str = "") -> Iterator[str]:
    """Write JSON with one line per entry: objects of objects are opened up, tables stay rows.

    >>> print("".join(json_lines({"a": 1, "b": [{"c": [1, 2]}, {"c": []}]})))
    {
      "a": 1,
      "b": [
        {"c": [1, 2]},
        {"c": []}
      ]
    }
    """
    if isinstance(data, dict) and data and not indent:
        opened, closed = "{", "}"
        parts = [(json.dumps(key) + ": ", value) for key, value in data.items()]
    elif isinstance(data, list) and data and isinstance(data[0], dict):
        opened, closed = "[", "]"
        parts = [("", value) for value in data]
    else:
        yield json.dumps(data, ensure_ascii=False, allow_nan=False)
        return
    yield f"{opened}\n"
    for place, (key, value) in enumerate(parts):
        yield f"{indent}  {key}"
        yield from json_lines(value, indent + "  ")
        yield ",\n" if place < len(parts) - 1 else "\n"
    yield f"{indent}{closed}"
