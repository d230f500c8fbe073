"""The only reader of files."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdtree import CrowdtreeError
from crowdtree.core.reading import csv_rows, open_source

cells = st.text(st.sampled_from('ab" ,;\n\r\té'), max_size=6)


@given(rows=st.lists(st.lists(cells, min_size=1, max_size=4), max_size=5))
def test_rows_are_split_as_the_csv_module_splits_them(rows: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    expected = list(
        csv.reader(io.StringIO(text.getvalue(), newline=""), skipinitialspace=True, strict=True)
    )
    lines = io.StringIO(text.getvalue(), newline="")
    found = [row for _, row in csv_rows(lines, ",", "x.csv")]
    assert [row for row in found if row] == [row for row in expected if row]


@given(text=st.text(st.sampled_from('ab",\n'), max_size=30))
def test_any_text_is_split_as_by_the_csv_module_or_refused_as_by_it(text: str) -> None:
    def rows(read: object) -> object:
        try:
            return [row for row in read if row]  # type: ignore[attr-defined]
        except (csv.Error, CrowdtreeError):
            return "refused"

    lines = text.splitlines(keepends=True)
    ours = rows(row for _, row in csv_rows(lines, ",", "x.csv"))
    assert ours == rows(csv.reader(lines, skipinitialspace=True, strict=True))


def test_a_quoted_field_of_many_lines_takes_linear_time() -> None:
    lines = ['"', *(['""\n'] * 200_000), '"\n']
    ((number, row),) = csv_rows(lines, ",", "x.csv", most=10**6)
    assert (number, len(row[0])) == (1, 400_000)


@pytest.mark.parametrize("size", [1_000, 5_000_000])
def test_unpacking_has_a_limit(size: int, tmp_path: Path) -> None:
    packed = gzip.compress(b"a\n" * (size // 2))
    for source in (packed, tmp_path / "x.csv.gz"):
        if isinstance(source, Path):
            source.write_bytes(packed)
        file = open_source(source, "x.csv.gz")
        if size < 10_000:
            assert len(file.read_bytes(10_000)) == size
            with file.lines(10_000) as lines:
                assert sum(1 for _ in lines) == size // 2
            continue
        with pytest.raises(CrowdtreeError, match="unpacks to more than 10,000 bytes"):
            file.read_bytes(10_000)
        with (
            pytest.raises(CrowdtreeError, match="unpacks to more than 10,000 bytes"),
            file.lines(10_000) as lines,
        ):
            list(lines)


def test_a_stream_that_cannot_seek_is_read() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    assert open_source(Pipe(b"a,b\n"), "x.csv").read_text() == "a,b\n"
