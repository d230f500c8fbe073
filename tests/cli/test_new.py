"""The verb new: a template that the other verbs read."""

from __future__ import annotations

import openpyxl
import pytest

import crowdtree as ct
from tests.cli.helpers import complaint, result, run

ENDINGS = ["csv", "xlsx", "yaml", "yml"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_check_and_plan_read_the_template(ending, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("new", f"birds.{ending}") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-2:] == [
        f"Wrote birds.{ending}.",
        f"Next: crowdtree check birds.{ending}",
    ]
    for _ in range(2):  # check, then plan
        assert run(*out[-1].split()[2:]) == 0
        out = capsys.readouterr().out.splitlines()
    assert out[-1] == f"Next: crowdtree plan birds.{ending} --error 0.01 -o plan.json"
    capsys.readouterr()
    assert result(capsys, "new", f"more.{ending}") == {"written": f"more.{ending}"}


def test_all_templates_are_the_same_problem(tmp_path):
    made = []
    for ending in ENDINGS:
        run("new", tmp_path / f"birds.{ending}")
        made.append(ct.load_problem(tmp_path / f"birds.{ending}"))
    for problem in made:
        assert problem.replace(descriptions=None) == made[0]


def test_comments_explain_the_parts(tmp_path):
    for ending in ("csv", "yaml"):
        run("new", path := tmp_path / f"birds.{ending}")
        comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
        assert len(comments) >= 5
        for word in ("prior:", "error:", "text:", "sources:"):
            assert any(word in line for line in comments)
    run("new", path := tmp_path / "birds.xlsx")
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["problem", "help", "sources"]
    sheet = book["problem"]
    noted = {cell.value for row in sheet.iter_rows() for cell in row if cell.comment}
    assert noted == {"error", "text", "prior"}
    assert sheet["D2"].value == 0.4  # a number, not text


def test_templates_have_sources_to_uncomment(tmp_path):
    """People, a model and an expert, once the sign of comments is gone."""
    paths = [tmp_path / f"birds.{ending}" for ending in ("csv", "yaml", "xlsx")]
    for path in paths:
        run("new", path)
        assert not ct.load_problem(path).has_sources
    table, text, book = paths
    rows = [line[4:] for line in table.read_text().splitlines() if line.startswith("#   ")]
    (tmp_path / "birds.sources.csv").write_text("\n".join(rows))
    lines = text.read_text().replace("# sources:", "sources:").replace("#   - {", "  - {")
    text.write_text(lines)
    sheets = openpyxl.load_workbook(book)
    for (cell,) in sheets["sources"].iter_rows(max_col=1, max_row=4):
        cell.value = cell.value.removeprefix("# ")
    sheets.save(book)
    found = [ct.load_problem(path).sources for path in paths]
    assert [source.kind for source in found[0]] == ["people", "model", "expert"]
    assert found[0] == found[1] == found[2]


def test_a_table_keeps_its_comments_after_a_spreadsheet_saved_it(tmp_path):
    run("new", path := tmp_path / "birds.csv")
    expected = ct.load_problem(path)
    lines = path.read_text().splitlines()
    quoted = [f'"{line}",,,,,,' if line.startswith("#") else line for line in lines]
    path.write_text("\n".join(quoted))
    assert ct.load_problem(path) == expected
    path.write_text("\n".join(lines).replace(",", ";"))
    assert ct.load_problem(path) == expected


def test_a_question_may_begin_with_the_sign_of_comments(tmp_path):
    path = tmp_path / "legs.csv"
    path.write_text("# notes\nquestion,error,dog,bird\n#legs > 2,0.1,1,0\n")
    assert ct.load_problem(path).questions == ("#legs > 2",)


def test_refusals(tmp_path, capsys):
    path = tmp_path / "birds.csv"
    path.write_text("mine")
    assert "exists already" in complaint(capsys, "new", path)
    assert path.read_text() == "mine"
    assert "expected the extension .xlsx, .csv or .yaml; use birds.csv" in complaint(
        capsys, "new", tmp_path / "birds.json"
    )
    assert "does not exist" in complaint(capsys, "new", tmp_path / "no" / "birds.csv")
