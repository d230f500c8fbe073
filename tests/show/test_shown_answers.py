"""What users see of questions with several answers: texts, traces, tables, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.cli.demo import Demo
from crowdtree.core.errors import CrowdtreeError
from crowdtree.policies.replay import Sample
from tests.cli.helpers import run

ROOT = Path(__file__).parents[2]
LEAVES = ct.example("leaves")
TREE = """\
cap
├─ red           → fly agaric
├─ brown         → ring
│                  ├─ no  → porcini
│                  └─ yes → parasol
└─ white or grey → champignon"""


def caps(**options):
    return ct.Problem(
        ["fly agaric", "porcini", "parasol", "champignon"],
        [0.1, 0.3, 0.2, 0.4],
        ["cap", "ring"],
        [["red", "brown", "brown", "white or grey"], ["yes", "no", "yes", "yes"]],
        0.1,
        answers=[["red", "brown", "white or grey"], None],
        **options,
    )


def test_the_text_of_a_tree_with_three_answers():
    assert ct.design(caps()).to_text() == TREE


def test_explain_takes_and_shows_the_names_of_answers():
    answers = [("fruit", "Cones"), ("twig", "can't tell"), ("twig", 2), ("evergreen", "yes")]
    trace = ct.explain(ct.AdaptivePolicy(LEAVES, target_error=0.001), answers)
    seen = [(step.question, step.answer) for step in trace.steps]
    seen += [(question, answer) for question, answer, _ in trace.ignored]
    said = [("fruit", "cones"), ("twig", "can't tell"), ("twig", "in tufts"), ("evergreen", "yes")]
    assert sorted(seen) == sorted(said)
    assert "→ cones" in "\n".join(trace.lines())
    assert trace.to_frame()["answer"].to_list()[1] == seen[0][1]
    with pytest.raises(CrowdtreeError, match=r"expected 'nuts', 'winged seeds'.* got the text 'x'"):
        ct.explain(LEAVES, {"fruit": "x"})
    with pytest.raises(CrowdtreeError, match="expected yes, no, 1 or 0"):
        ct.explain(LEAVES, {"evergreen": "cones"})


def test_a_simulated_crowd_can_be_unsure():
    unsure = caps(unsure=0.5)
    words = {step.answer for seed in range(9) for step in ct.explain(unsure, rng=seed).steps}
    assert "can't tell" in words
    assert "white or grey" in words


def test_explain_on_the_command_line(capsys, tmp_path):
    path = tmp_path / "trace.html"
    words = ("--answers", "fruit=cones,leaf=needles,twig=in tufts", "--html", path)
    assert run("explain", "example:leaves", *words) == 0
    assert "What does a leaf look like?  → needles" in capsys.readouterr().out
    assert "<span class=other>needles</span>" in path.read_text(encoding="utf-8")
    assert run("explain", "example:leaves", "--answers", "twig=up") == 2
    assert capsys.readouterr().err == (
        "crowdtree: --answers: expected twig=in turns, twig=in pairs, twig=in tufts, got "
        "'twig=up'\n"
    )


def test_tables_name_the_answers():
    frame = ct.design(LEAVES).to_frame()
    assert "no" not in frame.columns
    assert frame["branches"][3] == "in turns: spruce; in tufts: pine"
    assert "<td>nuts or winged seeds</td>" in LEAVES._repr_html_()
    plan = ct.staff(ct.design(LEAVES), workers=4)
    assert 'class="' not in plan._repr_html_()
    assert "svg" in plan._repr_html_()


def test_check_knows_which_classes_share_an_answer():
    found = ct.check(LEAVES, time_limit=0)
    first = found.pairs[0]
    assert (first.classes, first.best, first.questions) == (("pine", "spruce"), "twig", 1)
    assert "8 questions of 2 to 5 answers; several answers are right in" in found.to_text()
    right = LEAVES.right
    for pair in found.pairs:
        i, j = (LEAVES.classes.index(name) for name in pair.classes)
        apart = ~(right[:, :, i] & right[:, :, j]).any(axis=0)
        assert pair.questions == apart.sum()
        errors = np.maximum(LEAVES.worker_error[:, i], LEAVES.worker_error[:, j])
        assert pair.error == errors[apart].min()
        assert pair.answers is not None
        assert pair.answers < 5
    renamed = {"answers": [["rot", "braun", "weiss"], ["red", "brown", "white"]]}
    cells = [["braun", "rot", "weiss", "rot|weiss"], ["white", "brown", "red", "brown|red"]]
    twins = ct.Problem(list("abcd"), None, ["farbe", "colour"], cells, 0.1, **renamed)
    assert ct.check(twins, time_limit=0).same_questions == (("farbe", "colour"),)


def test_the_demo_compares_with_yes_no_questions(tmp_path, capsys):
    """The figures are those of the first page and of docs/start.md."""
    demo = Demo(tmp_path, quiet=False)
    demo.several()
    several, yes_no = demo.results["several_answers"], demo.results["yes_no"]
    assert f"{several['answers']:.3g} {yes_no['answers']:.3g}" == "4.12 6.55"
    assert max(several["error"], yes_no["error"]) <= 0.01
    assert "6.55 answers per item" in capsys.readouterr().out
    for page in ("README.md", "docs/start.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert "4.12" in text
        assert "6.55" in text


def test_the_yes_no_form_has_the_same_people():
    form = caps(unsure=0.25).as_yes_no()
    assert form.questions == ("cap: red", "cap: brown", "cap: white or grey", "ring")
    assert form.outcome.tolist()[1] == [0, 1, 1, 0]
    assert form.worker_error[1].tolist() == pytest.approx([0.05, 0.1, 0.1, 0.05])
    assert form.unsure is not None
    assert (form.unsure == 0.25).all()
    varies = LEAVES.as_yes_no()
    row = varies.outcome[varies.questions.index("fruit: nuts")]
    assert row[LEAVES.classes.index("lime")] == -1
    assert varies.dash == "either"
    animals = ct.example("animals")
    assert animals.as_yes_no() is animals


def test_the_report_says_how_votes_are_counted(tmp_path):
    path = ct.write_report(ct.staff(ct.design(LEAVES), workers=8), tmp_path / "r.html")
    page = path.read_text(encoding="utf-8")
    assert "the most frequent answer decides" in page
    assert "ask yes/no questions only" in page
    assert "start the campaign" not in page


def test_campaigns_refuse_several_answers_in_one_line(capsys, tmp_path):
    pytest.importorskip("sqlalchemy")
    from crowdtree.server.store.db.campaign_row import definition_of

    says = "campaign: expected yes/no questions only, but question 'outline' has 5 answers"
    with pytest.raises(CrowdtreeError, match=says):
        definition_of(ct.AdaptivePolicy(LEAVES))
    database = tmp_path / "c.db"
    assert run("campaign", "create", "example:leaves", "--database", database) == 2
    assert capsys.readouterr().err == f"crowdtree: {says}\n"
    assert not database.exists()


def test_the_web_refuses_several_answers_before_it_plans():
    pytest.importorskip("fastapi")
    from crowdtree.server.web.handlers.drafts import _examples
    from crowdtree.server.web.plans import read_menu

    with pytest.raises(CrowdtreeError, match="campaign: expected yes/no questions only"):
        read_menu(lambda *_: None, b"", "example:leaves", {})
    assert "leaves" not in _examples()
    assert "animals" in _examples()


def numbered() -> ct.Problem:
    """Answers that are numbers, or hold the signs that separate answers on a command line."""
    return ct.Problem(
        ["fly", "spider", "wood louse"], None, ["legs", "back"],
        [["6", "8", "14"], ["hairy, grey", "a=b", "plates"]], 0.1,
        answers=[["6", "8", "14"], ["hairy, grey", "a=b", "plates"]],
    )  # fmt: skip


def test_answers_that_are_numbers_are_names_and_never_places():
    problem = numbered()
    policy = ct.AdaptivePolicy(problem, target_error=0.001)
    for said in ("14", 14, 14.0):
        assert ct.explain(policy, [("legs", said)]).steps[0].answer == "14"
    with pytest.raises(CrowdtreeError, match="expected '6', '8', '14' as the answer, got 1"):
        ct.explain(policy, [("legs", 1)])
    rows = {"task": ["a"] * 2, "question": ["legs"] * 2, "label": [14, "8"]}
    assert Sample.of(problem, rows, {"a": "fly"}).values[0, 0].tolist() == [2, 1]
    with pytest.raises(CrowdtreeError, match="2 is not an answer to question 'legs'"):
        Sample.of(problem, rows | {"label": [14, 2]}, {"a": "fly"})


def test_names_with_commas_and_equals_signs_are_read_from_the_command_line(tmp_path, capsys):
    path = ct.save(numbered(), tmp_path / "p.yaml")
    assert run("explain", path, "--answers", " legs = 8,,back=hairy, grey,back=a=b") == 0
    shown = capsys.readouterr().out
    assert [line[3:] for line in shown.splitlines() if "→" in line] == [
        "legs  → 8",
        "back  → hairy, grey",
        "back  → a=b",
    ]
    assert run("explain", path, "--answers", "back=hairy, brown") == 2
    assert "expected back=hairy, grey, back=a=b" in capsys.readouterr().err


def test_sizes_say_one_number_of_answers_once():
    three = ct.Problem(["a", "b"], None, ["q"], [["x", "-"]], [[0.1, 0.9]], answers=[list("xyz")])
    assert repr(three) == "Problem(2 classes x 1 questions of 3 answers, worker error 0.1)"
    assert "1 question of 3 answers" in ct.check(three, time_limit=0).to_text()
    assert "of 2 to 5 answers" in repr(LEAVES)
