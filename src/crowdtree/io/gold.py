"""Items of known class, in every format that answers have."""

from __future__ import annotations

from typing import Any

from crowdtree.core.columns import is_parquet, read_rows
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.reading import open_source
from crowdtree.io.answer_rows import Names, json_objects, open_table, single
from crowdtree.io.audits import RIGHT, load_audit
from crowdtree.io.interchange import guess_format, load_answers


def load_gold(source: Any, columns: Names = None) -> Any:
    """Read known classes for :func:`crowdtree.learn`.

    `source`: a file (.csv .tsv .xlsx .parquet .json .jsonl: its path, bytes or a binary stream)
    with columns ``task`` and ``label`` (or ``truth``); a JSON object from item to class; an export
    of Label Studio with ground truth; or the certificate of an audit. Where a column ``known``
    marks rows, only those are read. `columns`: what the answers call the items, as ``{"task":
    "ticket"}``.

    >>> load_gold(b'{"t1": "cat"}')
    {'t1': 'cat'}
    >>> load_gold(b"item,label,truth,known\\n1,cat,dog,true\\n2,cat,cat,false\\n").rows()
    [('1', 'dog')]
    """
    file = open_source(source, "gold")
    if is_parquet(file):
        return file
    form = guess_format(file)
    if form == "label-studio":
        found = load_answers(file, form, columns=columns).gold
        if not found:
            raise CrowdtreeError(f"{file.name}: no annotation is marked as ground truth")
        return found
    if form == "json":
        objects = json_objects(file)
        only = objects[0] if len(objects) == 1 else {"task": ""}
        if only.get("kind") == "audit":
            return load_audit(file)
        if not {"task", "item"} & set(only):
            return {str(item): single(label) for item, label in only.items()}
        header = list(dict.fromkeys(str(name) for row in objects for name in row))
        rows = [
            (number, [single(row.get(name)) for name in header])
            for number, row in enumerate(objects, start=1)
        ]
    else:
        with open_table(file) as (header, lines):
            rows = list(lines)
    plain = [name.strip().casefold() for name in header]
    if "known" in plain:
        place = plain.index("known")
        rows = [row for row in rows if RIGHT.get(row[1][place].strip().casefold())]
    task = (columns or {}).get("task", "")
    names = {"task": task} if task.strip().casefold() in plain and task else {}
    if "truth" in plain:
        names["label"] = header[plain.index("truth")]
    return read_rows(header, rows, ("task", "label"), ("question",), names, file.name)
