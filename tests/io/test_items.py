"""Item files: the same separators, encodings and limits as every other table."""

from __future__ import annotations

import csv
import gzip
import io
import json

import pytest

from crowdtree import CrowdtreeError
from crowdtree.io.items import MOST_ROW, item_format, numbered_items, read_items


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_any_separator_is_read(separator: str) -> None:
    lines = (("task", "text", "gold"), ("1", '"a, b; c"', "cat"), ("2", "plain", ""))
    content = "\n".join(separator.join(line) for line in lines).encode()
    first, second = read_items(content, "csv", ["dog", "cat"])
    assert (first["task"], json.loads(first["payload"]), first["gold"]) == (
        "1",
        {"text": "a, b; c"},
        1,
    )
    assert second["gold"] is None


def test_items_of_a_spreadsheet() -> None:
    content = b"Photographs\n\n# of May\nTASK;Text;Note;;\n1;a, b;x;;\n;;;;\n2;c;;;\n"
    first, second = read_items(content, "csv", [])
    assert json.loads(first["payload"]) == {"text": "a, b", "Note": "x"}
    assert second["task"] == "2"


def test_a_stream_is_read_from_its_beginning_and_stays_open() -> None:
    stream = io.BytesIO("\ufefftask;text\r\n1;é\r\n".encode())
    stream.read(3)
    for _ in range(2):
        assert [row["task"] for row in read_items(stream, "csv", [])] == ["1"]
    assert not stream.closed


def test_compressed_items_are_read() -> None:
    packed = gzip.compress(b'{"task": 1}\n{"task": 2}\n')
    assert [row["task"] for row in read_items(packed, "jsonl", [])] == ["1", "2"]


def test_long_fields_are_read_and_the_process_keeps_its_limit() -> None:
    before = csv.field_size_limit()
    text = "x" * 500_000
    (row,) = read_items(f'task,text\n1,"{text}"\n'.encode(), "csv", [])
    assert json.loads(row["payload"])["text"] == text
    assert csv.field_size_limit() == before
    with pytest.raises(CrowdtreeError, match="longer than"):
        list(read_items(f'task,text\n1,"{"x" * MOST_ROW}"\n'.encode(), "csv", []))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"name,text\n1,a\n", "one of them `task`"),
        (b"task,task\n1,a\n", "different names"),
        (b"task,text\n1,a,b\n", "line 2: expected 2 cells, got 3"),
        (b'task,text\n1,"a\n', "a quote is never closed"),
        (b"task,text\n1,caf\xe9\n", "line 2: byte 16 (0xe9) is not UTF-8"),
        (b"task,gold\n1,bird\n", "gold 'bird' is not a class"),
    ],
)
def test_bad_items(content: bytes, words: str) -> None:
    with pytest.raises(CrowdtreeError) as caught:
        list(read_items(content, "csv", ["cat"]))
    assert words in str(caught.value)


def workbook(*sheets: tuple[str, list[list[object]]]) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_items_of_a_workbook_with_a_title_and_columns_in_any_order() -> None:
    table = [["Photographs of May"], [], ["Text", "Gold", "ID", None], ["a", "cat", 7.0, None]]
    content = workbook(("Read me", [["hello"]]), ("Items", [*table, [None, None, 8]]))
    rows = list(numbered_items(content, "xlsx", ["dog", "cat"]))
    assert [(number, row["task"], row["gold"]) for number, row in rows] == [
        (4, "7", 1),
        (5, "8", None),
    ]
    assert json.loads(rows[0][1]["payload"]) == {"text": "a"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no workbook", "is not an XLSX workbook"),
        (workbook(("a", [["name", "text"], ["x", "y"]])), "one of them `task`"),
        (workbook(("a", [["task", "gold"], ["x", "bird"]])), "row 2: gold 'bird' is not a class"),
    ],
)
def test_bad_workbooks(content: bytes, words: str) -> None:
    with pytest.raises(CrowdtreeError) as caught:
        list(read_items(content, "xlsx", ["cat"]))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_format_is_told_by_the_name() -> None:
    assert [item_format(name) for name in ("a.CSV", "b.tsv", "c.xlsx", "d.ndjson")] == [
        "csv",
        "csv",
        "xlsx",
        "jsonl",
    ]
    with pytest.raises(CrowdtreeError, match=r"items.pdf: save the items as .csv, .tsv, .xlsx"):
        item_format("items.pdf")
