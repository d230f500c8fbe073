"""Field guides in the DELTA format."""

from __future__ import annotations

from pathlib import Path

import pytest

import crowdtree as ct
from crowdtree.io.words import cell_words
from tests.cli.helpers import result

SPECS = r"""*SHOW ~ Grasses <made up>
*NUMBER OF CHARACTERS 8
*MAXIMUM NUMBER OF STATES 4
*CHARACTER TYPES 2,OM 4,TE 5,RN 6,IN
*NUMBERS OF STATES 1,3 2,4
*IMPLICIT VALUES 3,1 8,2
*DEPENDENT CHARACTERS 3,1:7-8
"""
CHARS = r"""*CHARACTER LIST
#1. \i{}colour\i0{} of the <fresh> spike/
   1. green/
   2. red and/or brown <dry>/
   3. \'a9 {\b white}/
#2. leaves <width>/  1. < 2 mm/ 2. narrow/ 3. wide/ 4. very
   wide/
#3. awns/ 1. absent/ 2. present/
#4. remarks/
#5. length/ mm/
#6. number of ribs/
#7. leaves <hairs>/ 1. Smooth/ 2. smooth/
#8. awns/ 1. -/ 2. bent|straight/
"""
ITEMS = r"""*ITEM DESCRIPTIONS
# \i{}Poa annua\i0{} <L.>/
1,1<when
young>/2 2,1-3 4<a * remark
# of two lines> 5,1.2-3.4 6,3

# Poa <trivialis>/
1,V 2,4 3,2 7,1&2

# Poa <nemoralis>/
1,U 2,- 3,1/2 7,2 8,1

#+ Poa annua/
1,3
"""


def guide(folder: Path, specs: str = SPECS, chars: str = CHARS, items: str = ITEMS) -> Path:
    """A folder with a field guide."""
    for name, text in (("specs", specs), ("chars", chars), ("items", items)):
        (folder / name).write_bytes(text.encode("cp1252"))
    return folder


def test_a_field_guide_is_a_problem(tmp_path: Path) -> None:
    problem = ct.load_problem(guide(tmp_path), worker_error=0.1)
    assert problem.classes == ("Poa annua", "Poa", "Poa (nemoralis)", "Poa annua (4)")
    assert problem.questions == (
        "colour of the spike", "leaves (width)", "awns", "leaves (hairs)", "awns (8)",
    )  # fmt: skip
    assert problem.answers == (
        ("green", "red and/or brown", "© white"),
        ("< 2 mm", "narrow", "wide", "very wide"),
        ("absent", "present"),
        ("Smooth", "smooth (2)"),
        ("state 1", "bent/straight"),
    )
    assert problem.dash == "either"
    cells = [cell_words(problem, q) for q in range(problem.n_questions)]
    assert cells == [
        ["green|red and/or brown", "-", "-", "© white"],
        ["< 2 mm|narrow|wide", "very wide", "-", "-"],
        ["absent", "present", "-", "-"],
        ["-", "-", "smooth (2)", "smooth (2)"],
        ["-", "bent/straight", "state 1", "state 1"],
    ]


def test_a_variant_differs_from_the_item_before_it(tmp_path: Path) -> None:
    items = "*ITEM DESCRIPTIONS\n# a/\n1,1 2,1 3,2\n#+ b/\n1,2\n# c/\n1,3\n"
    problem = ct.load_problem(guide(tmp_path, items=items), worker_error=0.1)
    assert cell_words(problem, 1) == ["< 2 mm", "< 2 mm", "-"]
    assert cell_words(problem, 2) == ["present", "present", "absent"]  # the last is implicit


def test_notes_say_what_was_left_out(tmp_path: Path) -> None:
    for name in ("specs", "chars", "items"):
        problem = ct.load_problem(guide(tmp_path) / name, worker_error=0.1)
        assert problem.notes[:3] == (
            "3 characters left out: 1 (text), 2 (number)",
            "equal shares of the classes are assumed",
            'where a state is missing or variable, every answer is right (dash="either")',
        )
    (tmp_path / "items").rename(tmp_path / "ITEMS.TXT")
    (tmp_path / "chars").write_bytes(CHARS.encode().replace(b"green", b"gr\xfcn"))
    problem = ct.load_problem(tmp_path, worker_error=0.1, dash="inapplicable")
    assert problem.answers[0][0] == "grün"
    assert problem.notes[0] == "chars read as Windows-1252"
    assert problem.dash == "inapplicable"


def test_load_recognises_a_guide(tmp_path: Path) -> None:
    found = ct.load(guide(tmp_path), worker_error=0.1)
    assert found == ct.load_problem(tmp_path / "items", worker_error=0.1)


def test_verbs_read_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = guide(tmp_path)
    assert result(capsys, "check", folder, "--worker-error", 0.1)["questions"] == 5
    tree = result(capsys, "design", folder, "--worker-error", 0.1, "--allow-groups")["tree"]
    assert set(tree["branches"]) <= {"< 2 mm", "narrow", "wide", "very wide"} | {
        "green", "red and/or brown", "© white", "Smooth", "smooth (2)",
    }  # fmt: skip


def test_a_guide_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(ct.CrowdtreeError, match="field guides are read only"):
        ct.save(ct.example("table1"), guide(tmp_path) / "specs")
    assert (tmp_path / "specs").read_text() == SPECS


@pytest.mark.parametrize(
    ("part", "old", "new", "words"),
    [
        ("specs", SPECS, "nothing", "specs: has no directive, such as *CHARACTER TYPES"),
        ("specs", "CHARACTERS 8", "CHARACTERS many", "specs, line 2: expected the number of char"),
        ("specs", "CHARACTERS 8", "CHARACTERS 9", "line 2: states 9 characters, but character 9"),
        ("specs", "2,OM", "2,XX", "specs, line 4: character 2 has the type 'XX'; expected UM, OM"),
        ("specs", "2,OM", "2", "line 4: *CHARACTER TYPES: expected entries such as 3,2"),
        ("specs", "2,OM", "99,OM", "line 4: character 99 is not in the character list"),
        ("specs", "1,3 2,4", "1,x", "line 5: character 1: expected a number of states, got 'x'"),
        ("specs", "1,3 2,4", "1,4 2,4", "character 1 ('colour of the spike') has no state 4"),
        ("specs", "1,3 2,4", "1,2 2,4", "has a state 3, but specs states 2 states"),
        ("specs", "3,1 8,2", "3,7", "line 6: character 3 has state 7; it has states 1 to 2"),
        ("specs", "3,1:7-8", "3,1", "line 7: *DEPENDENT CHARACTERS: expected entries such as 4,1"),
        ("specs", "3,1:7-8", "3,9:7", "line 7: character 3 has state 9"),
        ("chars", "*CHARACTER LIST", "*LIST", "chars: has no *CHARACTER LIST"),
        ("chars", CHARS, "*CHARACTER LIST\n", "the character list is empty"),
        ("chars", "#2.", "#1.", "chars, line 6: character 1 occurs twice"),
        ("chars", "#4. remarks/", "#4. /", "character 4 has no name"),
        ("chars", "2. narrow", "1. narrow", "character 2: state 1 occurs twice"),
        ("chars", "colour", "colo\0ur", "chars: is not text"),
        ("items", "*ITEM", "*THING", "items: has no *ITEM DESCRIPTIONS"),
        ("items", "# Poa <trivialis>/", "# Poa <trivialis>", "items, line 7: the name of the item"),
        ("items", "# Poa <trivialis>/", "# <x>/", "items, line 7: the item has no name"),
        ("items", "2,4", "2,5", "items, line 8: character 2 has state 5; it has states 1 to 4"),
        ("items", "2,4", "2,x", "character 2 has 'x'; expected states such as 1, 1/2 or 1-3"),
        ("items", "2,4", "77,1", "items, line 8: character 77 is not in the character list"),
        ("items", "2,4", "two", "items, line 8: expected attributes such as 3,1/2, got 'two'"),
        ("items", "2,4", "2,4 2,3", "items, line 8: character 2 is coded twice"),
        ("items", "young>", "young", "items, line 3: the comment that begins here with < has no >"),
        ("items", ITEMS, "*ITEM DESCRIPTIONS\n# a/\n1,1\n", "at least two classes, got 1"),
        ("items", ITEMS, "", "items: is empty"),
    ],
)  # fmt: skip
def test_bad_guides_get_one_line(tmp_path: Path, part: str, old: str, new: str, words: str) -> None:
    texts = {"specs": SPECS, "chars": CHARS, "items": ITEMS}
    assert old in texts[part]
    texts[part] = texts[part].replace(old, new, 1)
    with pytest.raises(ct.CrowdtreeError) as caught:
        ct.load_problem(guide(tmp_path, **texts), worker_error=0.1)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_guide_needs_its_files_and_an_error(tmp_path: Path) -> None:
    with pytest.raises(ct.CrowdtreeError, match="no errors; expected worker_error"):
        ct.load_problem(guide(tmp_path))
    with pytest.raises(ct.CrowdtreeError, match="errors: expected a table"):
        ct.load_problem(tmp_path, errors=tmp_path / "specs")
    (tmp_path / "chars").unlink()
    with pytest.raises(ct.CrowdtreeError, match="has no file chars; a DELTA folder holds specs"):
        ct.load_problem(tmp_path, worker_error=0.1)
    with pytest.raises(ct.CrowdtreeError, match="unknown file extension"):
        ct.load_problem(b"*SHOW", name="specs")
