"""Files of audits: labels to audit, sheets of checks, certificates and their verification."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crowdtree.audit import Audit, Labels
from crowdtree.core.columns import ROLES, is_parquet, read_parquet
from crowdtree.core.errors import CrowdtreeError, listing, named, one_line
from crowdtree.core.reading import Source, has_content, open_source
from crowdtree.io.grids import delimited_grid, frame_grid, write_delimited
from crowdtree.io.items import json_rows
from crowdtree.io.yaml_json import parse_document, write_document

ITEM = ("item", "task", "id")
ERROR = ("error", "posterior_error", "stated_error")
KNOWN = ("known", "corrected")
"""Columns that mark items whose label is the truth."""
CHECK = ("truth", "right", "by")
"""Columns of a sheet of checks beside the item."""
RIGHT = {"1": True, "true": True, "yes": True, "right": True, "0": False, "false": False}
RIGHT |= {"no": False, "wrong": False}
CLOSE = 1e-9
"""Relative difference up to which a claim counts as the same on another machine."""
Row = tuple[str, dict[str, str]]
"""Where a row stands, for messages, and its cells by the name of their column."""


# ---------------------------------------------------------------- tables


def load_labels(source: Any, *, name: str | None = None) -> Labels:
    """Read labels with stated errors, as ``learn --labels`` and ``campaign labels`` write them.

    `source`: a file (.csv .tsv .json .jsonl .parquet: its path, bytes or a binary stream), a data
    frame, a mapping of columns, or what :func:`crowdtree.learn` returns. Columns: ``item`` (or
    ``task``), ``label``, and ``error`` (or ``posterior_error``), or ``probability`` that the label
    is right; maybe ``expected_loss``. Items that are ``referred`` are left out, those that were
    ``known`` or labelled by hand (``corrected``) are marked as known. `name`: file name of bytes or
    of a stream that has none.

    >>> load_labels({"task": ["a", "b"], "label": ["cat", "dog"], "probability": [0.9, 0.75]})
    Labels(items=['a', 'b'], labels=['cat', 'dog'], errors=[0.1, 0.25], risks=None,
    known=None)
    """
    items: list[str] = []
    labels: list[str] = []
    errors: list[float] = []
    risks: list[float] = []
    known: dict[str, str] = {}
    seen: dict[str, str] = {}
    for where, row in _table(source, name):
        item, label = _cell(row, ITEM, where), _cell(row, ("label",), where)
        if not label and row.get("status", ""):
            continue  # a campaign set the item aside: it has no label to audit
        if RIGHT.get(row.get("referred", "").casefold()):
            continue  # an expert decides it
        if not item or not label:
            raise CrowdtreeError(f"{where}: the {'label' if item else 'item'} is blank; fill it in")
        if item in seen:
            raise CrowdtreeError(
                f"{where}: item {one_line(item)} occurs twice (before: {seen[item]}); keep one row"
            )
        seen[item] = where
        items.append(item)
        labels.append(label)
        errors.append(_stated(row, item, where))
        if any(RIGHT.get(row.get(column, "").casefold()) for column in KNOWN):
            known[item] = label
        if row.get("expected_loss", ""):
            risks.append(_expected_loss(row["expected_loss"], item, where))
    if risks and len(risks) < len(items):
        raise CrowdtreeError("labels: some items have no expected_loss; fill in all or none")
    return Labels(items, labels, errors, risks or None, known or None)


def save_labels(labels: Labels, path: str | os.PathLike[str]) -> None:
    """Save labels with their stated errors as a table (.csv) that :func:`load_labels` reads."""
    columns: dict[str, list[Any]] = {
        "item": labels.items,
        "label": labels.labels,
        "error": labels.errors,
    }
    if labels.risks is not None:
        columns |= {"expected_loss": labels.risks}
    if labels.known:
        columns |= {"known": [item in labels.known for item in labels.items]}
    write_delimited(Path(path), [list(columns), *map(list, zip(*columns.values(), strict=True))])


def _expected_loss(text: str, item: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise CrowdtreeError(
            f"{where}: item {one_line(item)} has the expected_loss {one_line(text)}; expected a "
            "number of 0 or more"
        )
    return value


def _stated(row: dict[str, str], item: str, where: str) -> float:
    column = next((name for name in (*ERROR, "probability") if name in row), None)
    if column is None:
        raise CrowdtreeError(
            f"{where}: no column error (found: {listing(row)}); name the columns item, label, error"
        )
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise CrowdtreeError(
            f"{where}: item {one_line(item)} has the {column} {one_line(row[column])}; expected a "
            "number from 0 to 1"
        )
    return round(1 - value, 15) if column == "probability" else value


def read_checks(source: Any, *, name: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a sheet of checks: columns ``item`` and ``truth`` or ``right``, and maybe ``by``.

    Yields the item and the arguments of :meth:`crowdtree.Audit.record`. Rows without a result are
    left out.

    >>> list(read_checks(b"item,truth\\nphoto 1,cat\\nphoto 2,\\n", name="sheet.csv"))
    [('photo 1', {'truth': 'cat'})]
    """
    for where, row in _table(source, name):
        item = _cell(row, ITEM, where)
        truth, right, by = (row.get(key, "") for key in CHECK)
        if "truth" not in row and "right" not in row:
            raise CrowdtreeError(
                f"{where}: no column truth or right (found: {listing(row)}); name the columns "
                "item, truth"
            )
        if not truth and not right:
            continue
        if not item:
            raise CrowdtreeError(f"{where}: the item is blank; fill it in")
        found: dict[str, Any] = {"truth": truth} if truth else {}
        if right:
            if right.casefold() not in RIGHT:
                raise CrowdtreeError(
                    f"{where}: right is {one_line(right)}; expected yes or no (1 or 0)"
                )
            found["right"] = RIGHT[right.casefold()]
        yield item, found | ({"by": by} if by else {})


def _cell(row: dict[str, str], names: Iterable[str], where: str) -> str:
    names = tuple(names)
    column = next((name for name in names if name in row), None)
    if column is None and names == ITEM:
        column = next((name for name in row if name in ROLES["task"][-1]), None)
        if column is None and "probability" in row:  # as crowdtree learn writes labels
            column = next(iter(row))
    if column is None:
        raise CrowdtreeError(
            f"{where}: no column {names[0]} (found: {listing(row)}); rename "
            "the column, or add a row of column names"
        )
    return row[column]


def _table(source: Any, name: str | None) -> Iterator[Row]:
    """Rows of anything that is a table."""
    if not has_content(source):
        if hasattr(source, "label_columns"):
            source = source.label_columns()
        yield from _grid_rows(frame_grid(source, "labels"))
        return
    file = open_source(source, name)
    ending = Path(file.name.lower().removesuffix(".gz")).suffix
    if is_parquet(file):
        yield from _grid_rows(frame_grid(read_parquet(file), file.name))
    elif ending in (".json", ".jsonl", ".ndjson"):
        yield from _json_table(file, ending)
    else:
        with delimited_grid(file) as grid:
            yield from _grid_rows(grid)


def _grid_rows(grid: Any) -> Iterator[Row]:
    rows = ((number, cells) for number, cells in grid.rows if any(map(str.strip, cells)))
    _, header = next(rows, (0, []))
    names = [cell.strip().casefold() for cell in header]
    filled = [cell for cell in names if cell]
    if len(set(filled)) < len(filled):
        raise CrowdtreeError(f"{grid.source}: two columns have the same name; rename one")
    number = 0
    for number, cells in rows:
        where = f"{grid.source}, {grid.unit} {number}"
        if len(cells) != len(names):
            raise CrowdtreeError(
                f"{where}: has {len(cells)} cells, the header has {len(names)}; put texts with "
                "separators in quotes"
            )
        yield where, dict(zip(names, map(str.strip, cells), strict=True))
    if not number:
        raise CrowdtreeError(f"{grid.source}: no rows; expected a header and one row per item")


def _json_table(file: Source, ending: str) -> Iterator[Row]:
    if ending == ".json":
        data = parse_document(file)
        if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
            raise CrowdtreeError(f"{file.name}: expected a list of objects, one per item")
        yield from _json_objects(((n, row) for n, row in enumerate(data, start=1)), file, "entry")
        return
    with file.lines() as lines:
        yield from _json_objects(json_rows(lines), file, "line")


def _json_objects(
    rows: Iterable[tuple[int, dict[str, Any]]], file: Source, unit: str
) -> Iterator[Row]:
    number = 0
    for number, row in rows:
        where = f"{file.name}, {unit} {number}"
        yield (
            where,
            {
                str(key).strip().casefold(): "" if value is None else str(value).strip()
                for key, value in row.items()
            },
        )
    if not number:
        raise CrowdtreeError(f"{file.name}: no rows; expected one object per item")


# ---------------------------------------------------------------- certificates


def audit_to_dict(audit: Audit, key: bytes | None = None) -> dict[str, Any]:
    """Certificate of an audit as its file holds it: everything that is needed to check it."""
    data: dict[str, Any] = {
        "crowdtree": 1,
        "kind": "audit",
        "confidence": audit.confidence,
        "planned": audit.planned,
        "bound": audit.bound,
        "seed": audit.seed,
        "labels_digest": audit.digest,
        "claims": audit.to_dict(),
        "draws": [
            {
                "item": audit.items[check.place],
                "after": check.after,
                "right": check.right,
                "truth": check.truth,
                "by": check.by,
                **({"replaced": [*map(asdict, check.replaced)]} if check.replaced else {}),
            }
            for check in audit.checks
        ],
        "known": [{"item": item, "truth": truth} for item, truth in audit.known.items()],
        "correct": audit.correct,
        "labels": [
            {"item": item, "label": label, "error": error}
            for item, label, error in zip(audit.items, audit.labels, audit.errors, strict=True)
        ],
    }
    if audit.costs is not None:
        data |= {"loss": audit.costs.to_dict(), "loss_bound": audit.loss_bound}
        for entry, risk in zip(data["labels"], audit.risks or (), strict=bool(audit.risks)):
            entry["risk"] = risk
    data["digest"] = _digest(data)
    if key is not None:
        data["signature"] = _signature(data, key)
    return data


def save_audit(audit: Audit, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
    """Save an audit as a certificate (.json) that anybody can verify.

    `key`: a secret to sign the certificate with. A certificate that is signed stays signed.

    >>> import tempfile
    >>> audit = Audit([0.1, 0.2], rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_audit(audit, Path(folder, "audit.json"))
    ...     load_audit(Path(folder, "audit.json")) == audit
    True
    """
    if not os.fspath(path).lower().endswith(".json"):
        raise CrowdtreeError(f"{os.fspath(path)}: audits are kept as .json; use that extension")
    if audit.signed and key is None:
        raise CrowdtreeError(f"{os.fspath(path)}: the audit is signed; give its key to change it")
    write_document(Path(path), audit_to_dict(audit, key))


def load_audit(source: Any, *, key: bytes | None = None, name: str | None = None) -> Audit:
    """Load an audit to go on with; raises where it was edited. See :func:`verify_audit`.

    >>> import json
    >>> text = json.dumps(audit_to_dict(Audit([0.1, 0.2], rng=0)))
    >>> len(load_audit(text.encode(), name="audit.json").items)
    2
    """
    return verify_audit(source, key=key, name=name)


def verify_audit(
    source: Any, labels: Any = None, *, key: bytes | None = None, name: str | None = None
) -> Audit:
    """Recompute every draw and every claim of a certificate; raise at the first difference.

    Parameters
    ----------
    source
        A file of :func:`save_audit`: its path, its bytes, or a binary stream.
    labels
        The labels that should have been audited, as :func:`load_labels` takes them.
    key
        The secret that the certificate should be signed with.
    name
        File name of bytes or of a stream that has none.

    Returns
    -------
    Audit
        The audit, recomputed.

    Examples
    --------
    >>> import json
    >>> data = audit_to_dict(Audit([0.1, 0.2], rng=0))
    >>> data["confidence"] = 0.99
    >>> verify_audit(json.dumps(data).encode(), name="audit.json")
    Traceback (most recent call last):
    crowdtree.CrowdtreeError: audit.json: ...
    """
    from crowdtree.io.schema import AuditFile, check

    file = open_source(source, name)
    raw = parse_document(file)
    data = check(AuditFile, raw, file.name)
    where = file.name
    if key is not None:
        _check_signature(raw, key, where)
    audit = named(where, _rebuild, data)
    named(where, check_claims, raw["claims"], audit)
    if _digest(raw) != data.digest:
        raise CrowdtreeError(f"{where}: was edited: its content does not match its digest")
    if labels is not None:
        _compare_labels(audit, load_labels(labels), where)
    audit.signed = data.signature is not None
    return audit


def _rebuild(data: Any) -> Audit:
    """Make the audit again, draw by draw."""
    rows = data.labels
    known = {entry.item: entry.truth for entry in data.known}
    if len(known) < len(data.known):
        raise CrowdtreeError("known: an item occurs twice")
    audit = Audit(
        [row.item for row in rows],
        [row.label for row in rows],
        [row.error for row in rows],
        bound=data.bound,
        confidence=data.confidence,
        planned=data.planned,
        seed=data.seed,
        known=known,
        correct=data.correct,
        **_loss_of(data),
    )
    if audit.digest != data.labels_digest:
        raise CrowdtreeError("labels: were edited: they do not match labels_digest")
    audit.follow(data.draws)
    return audit


def _loss_of(data: Any) -> dict[str, Any]:
    """Arguments of an audit about what mistakes cost."""
    if data.loss is None:
        return {"loss_bound": data.loss_bound}
    risks = [row.risk for row in data.labels]
    if None in risks and any(risk is not None for risk in risks):
        raise CrowdtreeError("labels: some have a risk and some have none")
    return {
        "loss": data.loss.matrix,
        "classes": data.loss.classes,
        "loss_bound": data.loss_bound,
        "risks": None if None in risks else risks,
    }


def check_claims(claimed: Any, audit: Audit) -> None:
    """Raise at the first claim that is not what the audit says."""
    _compare(claimed, audit.to_dict(), "claims")


def _compare(claimed: Any, found: Any, where: str) -> None:
    """Raise at the first claim that differs from what was recomputed."""
    if isinstance(found, dict) and isinstance(claimed, dict):
        for name in [*found, *claimed]:
            if name not in claimed or name not in found:
                what = "is missing" if name not in claimed else "is no claim of an audit"
                raise CrowdtreeError(f"{where}.{name}: {what}")
            _compare(claimed[name], found[name], f"{where}.{name}")
        return
    numbers = all(type(value) in (int, float) for value in (claimed, found))
    if numbers and math.isclose(claimed, found, rel_tol=CLOSE, abs_tol=1e-12):
        return
    if numbers or type(claimed) is not type(found) or claimed != found:
        raise CrowdtreeError(f"{where}: is {one_line(claimed)}, recomputed {one_line(found)}")


def _compare_labels(audit: Audit, labels: Labels, where: str) -> None:
    given = dict(zip(labels.items, zip(labels.labels, labels.errors, strict=True), strict=True))
    if len(given) < len(labels.items):
        raise CrowdtreeError("labels: an item occurs twice; expected one label per item")
    for item, label, error in zip(audit.items, audit.labels, audit.errors, strict=True):
        if item not in given:
            raise CrowdtreeError(f"{where}: item {one_line(item)} is not among the given labels")
        other, stated = given[item]
        if other != label:
            raise CrowdtreeError(
                f"{where}: item {one_line(item)} was audited as {one_line(label)}, the given label "
                f"is {one_line(other)}"
            )
        if not math.isclose(stated, error, rel_tol=CLOSE, abs_tol=1e-12):
            raise CrowdtreeError(
                f"{where}: item {one_line(item)} was audited with the stated error {error}, the "
                f"given one is {stated}"
            )
    if len(given) > len(audit.items):
        extra = next(item for item in given if item not in set(audit.items))
        raise CrowdtreeError(f"{where}: the given labels have {one_line(extra)}, never audited")


def _canonical(data: Mapping[str, Any], without: tuple[str, ...]) -> bytes:
    kept = {name: value for name, value in data.items() if name not in without}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return text.encode()


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(data, ("digest", "signature"))).hexdigest()


def _signature(data: Mapping[str, Any], key: bytes) -> str:
    return hmac.new(key, _canonical(data, ("signature",)), hashlib.sha256).hexdigest()


def _check_signature(data: Mapping[str, Any], key: bytes, where: str) -> None:
    signature = data.get("signature")
    if signature is None:
        raise CrowdtreeError(f"{where}: is not signed; leave out the key to check the rest")
    if not hmac.compare_digest(str(signature).encode(), _signature(data, key).encode()):
        raise CrowdtreeError(f"{where}: the signature does not match: edited, or another key")
