"""Workbooks and data frames; files that are damaged, hostile or no table at all."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdtree import CrowdtreeError, CrowdtreeWarning, Problem
from crowdtree.core import reading
from crowdtree.io import (
    formats,
    grids,
    load_problem,
    save_problem,
    yaml_json,
)
from tests.io.helpers import FORMATS, GOOD, SEP, expected, message, put, saved


def book(folder: Path, sheets: dict[str, list[list[object]]], name: str = "p.xlsx") -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    made.save(folder / name)
    return folder / name


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (
            "p.csv",
            GOOD.replace("q2", "é").encode("latin-1"),
            ["line 4", f"byte {GOOD.index('q2') + 1} (0xe9)", "UTF-8"],
        ),
        ("p.csv", GOOD.encode()[:-1] + b"\xc3", ["UTF-8"]),
        (
            "p.csv",
            b"\n" * 70_000 + b"question,error,a,b\n\xff",
            ["line 70002", "byte 70020 (0xff)"],
        ),
        ("p.json", b'{"a":\n "\xe9"}', ["line 2", "byte 9 (0xe9)", "UTF-8"]),
        ("p.yaml", b"a: \xe9", ["line 1", "byte 4 (0xe9)", "UTF-8"]),
        ("p.csv", GOOD.encode("utf-16"), ["UTF-16", "save it as UTF-8"]),
        ("p.csv", b"question\0", ["byte 9 is zero", "not a text file"]),
        ("p.csv", b"PK\x03\x04", ["XLSX", "name it .xlsx"]),
        ("p.csv", b"\xd0\xcf\x11\xe0", ["Excel", "save it as .xlsx"]),
        ("p.csv.gz", GOOD.encode(), ["gzip"]),
        ("p.csv.gz", gzip.compress(GOOD.encode() * 1000, mtime=0)[:-20], ["gzip"]),
        ("p.csv.gz", gzip.compress(b"", mtime=0), ["is empty"]),
        ("p.xlsx", GOOD.encode(), ["not an XLSX workbook"]),
        ("p.xlsx", b"PK\x03\x04 and so on", ["not an XLSX workbook"]),
        ("p.json", b"{", ["line 1", "column 2", "not JSON"]),
        ("p.json", b'{"a": 1,\n "b" 2}', ["line 2", "column 6", "not JSON"]),
        ("p.json", b'{"a": NaN}', ["NaN", "finite"]),
        ("p.json", b'{"a": 1, "a": 2}', ["'a' occurs twice"]),
        ("p.json", b"[" * 100_000, ["nested too deeply"]),
        ("p.json", b'{"a": ' + b"1" * 5000 + b"}", ["not JSON"]),
        ("p.json", b"[1, 2]", ["fields (classes,", "a list of 2"]),
        ("p.json", b"  ", ["is blank"]),
        ("p.yaml", b"a: [1\nb: 2", ["line 2", "column", "not YAML"]),
        ("p.yaml", b"a: [0, - 1]", ["not YAML", '"-"']),
        ("p.yaml", b"a: 1\na: 2", ["line 2", "'a' occurs twice"]),
        ("p.yaml", b"a: &x [1]\nb: *x", ["line 2", "alias", "write the values out"]),
        ("p.yaml", b"a: !!python/object:os.system {}", ["not YAML"]),
        ("p.yaml", b"[" * 100_000, ["got a list"]),
        ("p.yaml", b"a: " + b"[" * 100_000, ["nested too deeply"]),
        ("p.yaml", b"a: b\x07", ["not YAML"]),
        ("p.yaml", b"- 1", ["got a list"]),
        ("p.yaml", b"hello", ["fields (classes,", "'hello'"]),
        ("p.yaml", b"a: 1\n---\nb: 2", ["not YAML"]),
        ("p.yaml", b"? [a]\n: 1", ["not YAML"]),
        ("p.txt", b"question", ["unknown file extension", ".csv"]),
        ("p.xls", b"question", [".xlsx"]),
        ("p", b"question", ["extension"]),
    ],
)
def test_bad_files(tmp_path: Path, name: str, data: bytes, words: list[str]) -> None:
    found = message(put(tmp_path, data, name))
    for word in words:
        assert word in found


def test_no_file(tmp_path: Path) -> None:
    assert "no such file; check the name" in message(tmp_path / "p.csv")
    put(tmp_path, GOOD, "birds.csv")
    assert "did you mean birds.csv?" in message(tmp_path / "brids.csv")
    assert "no such file" in message(tmp_path / "no" / "p.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in message(tmp_path / "folder.csv")
    assert "cannot be read" in message("nul\0.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a regular file" in message(tmp_path / "pipe.csv")
    with pytest.raises(CrowdtreeError, match=r"two\?lines.csv: no such file"):
        load_problem("two\nlines.csv")


GARBAGE = {
    "bytes": np.random.default_rng(0).bytes(10_000_000),
    "letters": b"abcdefghij" * 1_000_000,
    "words": b"lorem ipsum dolor sit amet\n" * 370_000,
    "newlines": b"\n" * 10_000_000,
    "returns": b"\r" * 10_000_000,
    "commas": b"," * 10_000_000,
    "quotes": b'"' * 10_000_000,
    "brackets": b"[" * 10_000_000,
    "braces": b"{" * 10_000_000,
    "list": b"- a\n" * 2_500_000,
    "nest": b"? " * 5_000_000,
    "digits": b"1" * 10_000_000,
    "header": b"question," * 1_100_000,
    "blank": b"question,error,a,b\n" + b"\n" * 9_900_000,
    "anchors": b"&a *a " * 1_600_000,
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_ten_megabytes_of_garbage(tmp_path: Path, kind: str) -> None:
    path = put(tmp_path, GARBAGE[kind])
    for ending in FORMATS:
        path = path.rename(tmp_path / f"p{ending}")
        message(path)
    path.unlink()  # or the machine would keep some hundred megabytes for a while


def load_or_refuse(path: Path) -> None:
    """Nothing but our own one-line error, or the warning of an error of 0.5, may come out."""
    complaint = ""
    try:
        load_problem(path, normalise=True)
    except (CrowdtreeError, CrowdtreeWarning) as error:
        complaint = str(error)
    assert "\n" not in complaint


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300), ending=st.sampled_from(FORMATS))
def test_any_bytes_give_our_error_or_a_problem(tmp_path: Path, data: bytes, ending: str) -> None:
    path = put(tmp_path, data, f"p{ending}")
    load_or_refuse(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_small_change_gives_our_error_or_a_problem(tmp_path: Path, data: st.DataObject) -> None:
    ending = data.draw(st.sampled_from(FORMATS))
    content = bytearray(saved(ending))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = put(tmp_path, bytes(content), f"p{ending}")
    load_or_refuse(path)


def test_limits_of_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for ending in FORMATS:
        monkeypatch.setitem(formats.MOST_BYTES, ending, 10)
        assert "more than the 10 that are read" in message(put(tmp_path, GOOD, f"p{ending}"))
    monkeypatch.setitem(formats.MOST_BYTES, ".csv.gz", 100)
    path = put(tmp_path, gzip.compress(GOOD.encode() + b"\n" * 5_000), "p.csv.gz")
    assert "unpacks to more than 100 bytes" in message(path)
    with pytest.raises(CrowdtreeError, match=r"would have .* more than the 10 that can be read"):
        save_problem(expected(), tmp_path / "q.json")
    assert not (tmp_path / "q.json").exists()


def test_limits_of_yaml_and_blank_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_problem(expected(), tmp_path / "p.yaml")
    monkeypatch.setattr(yaml_json, "MOST_VALUES", 20)
    assert "values; keep large tables as .csv" in message(tmp_path / "p.yaml")
    with pytest.raises(CrowdtreeError, match="values; keep large tables"):
        save_problem(expected(), tmp_path / "p.yaml")
    monkeypatch.setattr(grids, "MAX_BLANK", 3)
    monkeypatch.setattr(reading, "MAX_BLANK", 3)
    assert "begins with 3 blank lines" in message(put(tmp_path, "\n" * 9 + GOOD))
    assert "has 3 blank lines in a row" in message(put(tmp_path, SEP + "\n" * 9 + GOOD))


def test_workbook_as_people_make_it(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        [None, None],
        [None, "Question ", "Error", "a", None, "b", "c ", None],
        [None, "prior", None, 0.5, None, 0.3, 0.2],
        [],
        [None, "q1", 0.1, 0.0, "  ", 1.0, "-"],
        [None, "q2", "0.2", "1", None, True, False],
    ]
    path = book(tmp_path, {"My table": rows, "notes": [["anything"]]})
    assert load_problem(path) == expected()


def test_workbook_with_errors(tmp_path: Path) -> None:
    rows: list[list[object]] = [["question", "a", "b"], ["q", 0, 1], [7, 1, 0]]
    errors: list[list[object]] = [["question", "a", "b"], ["q", 0.1, 0.2], [7.0, 0.3, 0.4]]
    problem = load_problem(book(tmp_path, {"Errors": errors, "p": rows}))
    assert problem.questions == ("q", "7")
    assert problem.worker_error.tolist() == [[0.1, 0.2], [0.3, 0.4]]


def test_bad_workbooks(tmp_path: Path) -> None:
    rows: list[list[object]] = [["question", "error", "a", "b"], [], ["q", 0.1, 0, 3]]
    found = message(book(tmp_path, {"Sheet 1": rows}))
    assert "p.xlsx, sheet 'Sheet 1', row 3: column 4 (question 'q', class 'b') is '3'" in found
    rows[2][3] = None
    assert "is blank; write 0, 1 or -" in message(book(tmp_path, {"Sheet 1": rows}))
    assert "expected a sheet with a table" in message(book(tmp_path, {"errors": rows}))
    assert "is blank" in message(book(tmp_path, {"Sheet": []}))


def test_hostile_workbooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/workbook.xml", b"\0" * 5_000_000)
    assert "not a readable XLSX workbook" in message(path)
    monkeypatch.setattr(grids, "MOST_UNPACKED", 4_000_000)
    assert "unpacks to 5,000,000 bytes" in message(path)
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("xl/workbook.xml", '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]>')
    assert "declares a document type" in message(path)


def test_truncated_workbook(tmp_path: Path) -> None:
    save_problem(expected(), tmp_path / "p.xlsx")
    whole = io.BytesIO((tmp_path / "p.xlsx").read_bytes())
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(tmp_path / "q.xlsx", "w") as target:
        for member in source.namelist():
            if "sheet" in member:
                target.writestr(member, source.read(member)[:100])
            else:
                target.writestr(member, source.read(member))
    assert "not a readable XLSX workbook" in message(tmp_path / "q.xlsx")


def test_frames_as_people_make_them() -> None:
    columns = {"question": ["q1", "q2"], "error": [0.1, 0.2], "a": [0, 1], "b": [True, True]}
    frame = pd.DataFrame(columns | {"c": ["-", "0"]})
    wanted = expected().replace(prior=None)
    assert load_problem(frame) == wanted
    assert load_problem(frame.set_index("question")) == wanted
    assert load_problem(pl.from_pandas(frame)) == wanted
    assert load_problem(pl.from_pandas(frame).lazy()) == wanted
    missing = frame.assign(b=pd.array([1, None], dtype="Int64"))
    assert "frame, row 2: column 4 (question 'q2', class 'b') is blank" in message(missing)
    twins = pd.DataFrame([["q", 0.1, 0, 1]], columns=["question", "error", "a", "a"])
    assert "frame: two columns are named" in message(twins)


def test_frame_cannot_have_duplicate_columns() -> None:
    problem = Problem(["error", "b"], None, ["q"], [[0, 1]], 0.1)
    with pytest.raises(CrowdtreeError, match="two columns 'error'; rename the class"):
        problem.to_frame()
    with pytest.raises(CrowdtreeError, match="part: expected one of"):
        problem.to_frame("prior")
