"""The verb check."""

from __future__ import annotations

from cli.helpers import complaint, result, run


def test_check_names_inseparable_classes(tmp_path, capsys):
    path = tmp_path / "twins.csv"
    path.write_text("question,error,a,b,c\nq,0.1,0,0,1\n")
    assert result(capsys, "check", path)["groups"] == [["a", "b"]]
    assert "{a, b}" in complaint(capsys, "design", path)
    assert run("design", path, "--allow-groups") == 0
