"""Sources of workers: people, an expert, or one version of a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.columns import Column, Columns, read_columns
from crowdtree.core.errors import CrowdtreeError, listing, one_line

Kind = Literal["people", "expert", "model"]
IntArray = NDArray[np.int32]
_NAMES: Mapping[Kind, str] = {
    "people": "people person persons human humans crowd worker workers annotator annotators",
    "expert": "expert experts",
    "model": "model models machine machines llm llms ai classifier bot",
}
KINDS: Mapping[str, Kind] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""Kind of a source, or of a worker, by these names in lower case."""


@dataclass(frozen=True)
class WorkerSources:
    """Sources of answers in the order in which they are met, and `of` which one every worker is.

    `kind` and `price` are those of the sources for which they are given. The kind is otherwise told
    by the name (:data:`KINDS`); other sources of one worker are models, of several people.

    >>> of = {"ann": "people", "m": "gpt-x", "ben": "people"}
    >>> sources = WorkerSources(("people", "gpt-x"), of)
    >>> sources.kinds, sources.codes(np.array(["m", "ann", "new"])).tolist()
    (('people', 'model'), [1, 0, 0])
    """

    names: tuple[str, ...]
    of: Mapping[str, str]
    kind: Mapping[str, Kind]
    price: Mapping[str, float]

    def __init__(
        self,
        names: tuple[str, ...],
        of: Mapping[str, str],
        kind: Mapping[str, Kind] | None = None,
        price: Mapping[str, float] | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "names", names)
        put(self, "of", of)
        put(self, "kind", kind or {})
        put(self, "price", price or {})

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kind of each source."""
        return tuple(map(self._kind, self.names))

    @property
    def prices(self) -> tuple[float, ...]:
        """Price of an answer of each source; 1 where none is given."""
        return tuple(self.price.get(name, 1.0) for name in self.names)

    def _kind(self, name: str) -> Kind:
        alone = sum(source == name for source in self.of.values()) == 1
        known = KINDS.get(name.strip().casefold(), "model" if alone else "people")
        return self.kind.get(name, known)

    def codes(self, workers: NDArray[Any]) -> IntArray:
        """Source of each worker by its place; unknown workers are of the source of most."""
        place = {name: code for code, name in enumerate(self.names)}
        usual = self.names[self.usual]
        source = (self.of.get(str(worker), usual) for worker in workers.tolist())
        return np.array([place[name] for name in source], np.int32)

    @property
    def usual(self) -> int:
        """Place of the source of most workers."""
        return self.names.index(Counter(self.of.values()).most_common(1)[0][0])

    @property
    def groups(self) -> IntArray:
        """Group of each source, whose answers are discounted together.

        Models are one group, and so are experts; people of different sources are different groups.
        """
        number: dict[str, int] = {}
        keys = (
            f"people {name}" if kind == "people" else kind
            for name, kind in zip(self.names, self.kinds, strict=True)
        )
        return np.array([number.setdefault(key, len(number)) for key in keys], np.int32)

    def to_table(self) -> dict[str, list[Any]]:
        """Columns of workers and their sources, which can be read again."""
        known = dict(zip(self.names, zip(self.kinds, self.prices, strict=True), strict=True))
        columns = {"worker": list(self.of), "source": list(self.of.values())}
        kinds, prices = zip(*(known[name] for name in columns["source"]), strict=True)
        return {**columns, "kind": list(kinds), "price": list(prices)}

    def with_workers(self, other: WorkerSources | None) -> WorkerSources:
        """Add workers of known sources."""
        more = {} if other is None else other.of
        extra = sorted(set(more.values()) - set(self.names))
        if extra:
            raise CrowdtreeError(
                f"answers: source {listing(map(repr, extra))} is not among "
                f"{listing(map(repr, self.names))}; learn again with all answers"
            )
        return replace(self, of={**more, **self.of})


def column_of_sources(
    worker: Column, source: Column, where: str, named: bool
) -> tuple[dict[str, str], str]:
    """Read the source of each worker from columns of the answers, and what to note about them.

    Unless it was `named` by the caller, a column that cannot be who answers is left out: one that
    is blank, or differs between answers of a worker.
    """
    given = worker.code >= 0
    size = len(source.names) + 1  # blank is one more
    pairs = np.unique(worker.code[given].astype(np.int64) * size + source.code[given] % size)
    who, code = np.divmod(pairs, size)
    wrong = ""
    if (code == size - 1).any():
        wrong = f"{one_line(worker.names[who[code == size - 1][0]])} has an answer without source"
    elif (np.diff(who) == 0).any():
        wrong = f"{one_line(worker.names[who[:-1][np.diff(who) == 0][0]])} has several sources"
    if wrong and named:
        raise CrowdtreeError(f"{where}: worker {wrong}; give each worker one source")
    if wrong:
        return {}, f"column source left out: worker {wrong}"
    rows = zip(who.tolist(), code.tolist(), strict=True)
    return {worker.names[w]: source.names[c] for w, c in rows}, ""


def sources_of(workers: NDArray[Any], given: Any) -> WorkerSources | None:
    """Read the sources of workers; None where nothing names any.

    `given` is a mapping from workers to sources, or a table with the columns ``worker, source``
    and, as far as they are known, ``kind`` and ``price``.

    >>> workers = np.array(["ann", "ben", "m"])
    >>> sources_of(workers, {"ann": "people", "ben": "people", "m": "gpt-x"}).kinds
    ('people', 'model')
    >>> table = {"worker": ["ann", "m"], "source": ["ward", "gpt-x"], "kind": ["expert", "model"]}
    >>> sources_of(workers[[0, 2]], table).kinds
    ('expert', 'model')
    """
    if isinstance(given, Mapping) and not given:
        return None
    of, kind, price = _read_table(given)
    known = set(map(str, workers.tolist()))
    if missing := sorted(known - set(of)):
        raise CrowdtreeError(
            f"sources: worker {listing(map(repr, missing), 3)} has no source; give each worker one"
        )
    of = {worker: source for worker, source in of.items() if worker in known}
    names = tuple(dict.fromkeys(of.values()))
    return WorkerSources(names, of, kind, price)


def _read_table(given: Any) -> tuple[dict[str, str], dict[str, Kind], dict[str, float]]:
    """Sources by worker; kinds and prices by source."""
    if isinstance(given, Mapping) and not {"worker", "source"} <= set(map(str, given)):
        return {str(worker): str(source) for worker, source in given.items()}, {}, {}
    table = read_columns(given, ("worker", "source"), ("kind", "price"), "sources")
    columns = {role: [text.strip() for text in table[role]] for role in table}
    of: dict[str, str] = {}
    for worker, source in zip(columns["worker"], columns["source"], strict=True):
        if not worker or not source:
            raise CrowdtreeError(
                f"{table.name}: expected a worker and a source in every row, got "
                f"{one_line(worker)} and {one_line(source)}"
            )
        if of.setdefault(worker, source) != source:
            raise CrowdtreeError(f"{table.name}: worker {one_line(worker)} has two sources")
    texts = {
        role: _of_source(table, columns["source"], columns[role])
        for role in ("kind", "price")
        if role in columns
    }
    kinds = {name: _kind(table, name, text) for name, text in texts.get("kind", {}).items()}
    prices = {name: _price(table, name, text) for name, text in texts.get("price", {}).items()}
    return of, kinds, prices


def _of_source(table: Columns, sources: list[str], texts: list[str]) -> dict[str, str]:
    """Texts of a column by source; all rows of a source must agree."""
    text_of: dict[str, str] = {}
    for source, text in zip(sources, texts, strict=True):
        if text and text_of.setdefault(source, text) != text:
            raise CrowdtreeError(
                f"{table.name}: source {one_line(source)} is both {one_line(text_of[source])} and "
                f"{one_line(text)}; keep one of them"
            )
    return text_of


def _kind(table: Columns, name: str, text: str) -> Kind:
    kind = KINDS.get(text.casefold())
    if kind is None:
        raise CrowdtreeError(
            f"{table.name}: source {one_line(name)}: expected the kind people, expert or model, "
            f"got {one_line(text)}"
        )
    return kind


def _price(table: Columns, name: str, text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not (math.isfinite(price) and price > 0):
        raise CrowdtreeError(
            f"{table.name}: source {one_line(name)}: expected a price above 0, got {one_line(text)}"
        )
    return price
