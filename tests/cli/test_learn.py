"""The verb learn."""

from __future__ import annotations

import pytest

from tests.cli.helpers import complaint


@pytest.mark.parametrize("form", ["label-studio", "zooniverse", "wide"])
def test_answers_that_are_not_text_get_one_line(form, tmp_path, capsys):
    path = tmp_path / "answers.csv"
    path.write_bytes(b"\xca6{\x85|\xa5,\n\xff")
    assert "answers.csv" in complaint(capsys, "learn", path, "--format", form)
    assert "nowhere" in complaint(capsys, "learn", "nowhere", "--format", form)
