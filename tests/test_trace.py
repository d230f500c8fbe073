"""Why an item got its label: text, JSON, page, and the verb ``explain``."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.campaign import Event, advance, start_item
from crowdtree.cli import main
from crowdtree.report.trace import trace_page, write_trace_report
from crowdtree.trace import from_answers, from_crowd, from_item

TABLE1 = ct.example("table1")
PLAN = ct.staff(ct.design(TABLE1), workers=8)
POLICIES = {
    "adaptive": ct.AdaptivePolicy(TABLE1, 0.01),
    "tree": ct.PlanPolicy(ct.design(TABLE1)),
    "plan": ct.PlanPolicy(PLAN),
    "curtailed": ct.PlanPolicy(PLAN, "curtailed"),
    "margin": ct.PlanPolicy(PLAN, "margin"),
    "batch": ct.BatchPolicy(TABLE1, 1),
}


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("true_class", [None, "c1", "c5"])
def test_every_policy_is_followed_to_its_label(name, true_class):
    policy = POLICIES[name]
    trace = from_crowd(policy, true_class, rng=4)
    assert trace.label is not None
    assert trace.ignored == ()
    assert trace.open_questions == ()
    state = policy.start()
    for step in trace.steps:  # the policy's own steps give the same beliefs and the same end
        state = policy.update(state, ct.policy.Answer(step.question, step.answer))
        np.testing.assert_allclose(step.posterior, policy.posterior(state), rtol=1e-12)
    assert policy.ask(state) == trace.label
    if true_class is not None:
        assert TABLE1.classes[trace.true_class] == true_class


def test_seed_decides():
    one, same = (from_crowd(POLICIES["adaptive"], rng=7).to_dict() for _ in range(2))
    assert one == same
    assert any(from_crowd(POLICIES["adaptive"], rng=s).to_dict() != one for s in range(5))


def test_lines_tell_each_step_and_the_verdict():
    trace = from_answers(POLICIES["adaptive"], [(0, 1), (0, 1)])
    lines = list(trace.lines())
    assert lines[0] == "Before any answer"
    assert [line for line in lines if re.match(r"\d\. ", line)] == ["1. T1  → yes", "2. T1  → yes"]
    assert lines[-1].startswith("Label: c4 after 2 answers (sure enough); chance of being wrong 0.")
    full = next(line for line in reversed(lines[:-1]) if line.strip().startswith("c4"))
    assert full.count("█") == 24
    prior = [line for line in lines[1:6] if "█" in line]
    assert sum(line.count("█") for line in prior) == pytest.approx(24, abs=3)


def test_an_open_item_says_what_comes_next():
    trace = from_answers(POLICIES["adaptive"], [(0, 0)])
    assert trace.label is None
    assert trace.to_dict()["label"] is None
    asked = POLICIES["adaptive"].ask(
        POLICIES["adaptive"].update(POLICIES["adaptive"].start(), ct.policy.Answer(0, 0))
    )
    assert trace.open_questions == asked.questions
    assert trace.verdict() == f"Not decided yet. Next question: T{asked.questions[0] + 1}"


def test_answers_that_do_not_count_are_told_apart():
    tree = POLICIES["tree"]
    other = (int(tree.plan.tree.question[0]) + 1) % TABLE1.n_questions
    trace = from_answers(tree, [(other, 1), (0, 1), (0, 0)])
    assert [(s.question, s.answer) for s in trace.steps] == [(0, 1)]
    assert trace.ignored == ((other, 1, "surplus"), (0, 0, "late"))
    notes = list(trace.notes())
    assert notes == [
        f"Not counted: T{other + 1}  → yes (the policy had no use for it)",
        "Not counted: T1  → no (the label was there already)",
    ]
    assert set(notes) < set(trace.lines())
    assert trace.to_dict()["ignored"][1] == {"question": "T1", "answer": "no", "reason": "late"}


def test_an_item_of_a_campaign_is_traced_with_the_workers_own_skill():
    policy = POLICIES["adaptive"]
    item = start_item(policy, "photo 1")
    item = advance(policy, item, Event("photo 1", 0, "ann", 1, skill=1.5))
    item = advance(policy, item, Event("photo 1", 0, "ann", 0))  # says otherwise: does not count
    trace = from_item(policy, item)
    assert len(trace.steps) == 1
    assert trace.ignored == ((0, 0, "contradictory"),)
    plain = from_answers(policy, [(0, 1)])
    assert trace.steps[0].posterior.max() > plain.steps[0].posterior.max()


def test_json_names_everything():
    told = json.loads(json.dumps(from_crowd(POLICIES["margin"], "c2", rng=1).to_dict()))
    assert told["true_class"] == "c2"
    assert told["label"] in TABLE1.classes
    assert 0 <= told["posterior_error"] < 1
    assert told["reason"] == "leaf"
    for step in told["steps"]:
        assert step["answer"] in ("yes", "no")
        assert step["question"] in TABLE1.questions
        assert sum(step["posterior"].values()) == pytest.approx(1)
        assert list(step["posterior"]) == list(TABLE1.classes)


class Texts(HTMLParser):
    """Tags and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):  # noqa: ARG002
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_the_page_escapes_what_people_wrote(tmp_path: Path):
    nasty = "<script>alert('x')</script> & \"co\""
    problem = ct.Problem(
        [f"cat {nasty}", "dog"], None, ["q"], [[0, 1]], 0.1, texts=[f"Is it {nasty}?"]
    )
    policy = ct.AdaptivePolicy(problem, 0.05)
    trace = from_answers(policy, [(0, 0), (0, 0), (0, 1)])
    page = trace_page(trace)
    found = Texts()
    found.feed(page)
    assert "script" not in found.tags
    assert any(nasty in text for text in found.texts)
    assert found.tags.count("li") == 1 + len(trace.steps) + len(trace.ignored)
    assert "viewport" in page
    assert not re.search(r"https?:|src=|@import", page)
    write_trace_report(tmp_path / "trace.html", trace)
    assert (tmp_path / "trace.html").read_text() == page
    with pytest.raises(ct.CrowdtreeError, match=r"use \.html"):
        write_trace_report(tmp_path / "trace.pdf", trace)


def test_bars_are_as_long_as_the_belief():
    trace = from_answers(POLICIES["adaptive"], [(0, 1)])
    widths = [float(w) for w in re.findall(r'class=bar style="width:([\d.]+)%"', trace_page(trace))]
    shares = [
        share
        for belief in (trace.prior, trace.steps[0].posterior)
        for _, share in trace.top(belief)
    ]
    assert widths == pytest.approx([max(100 * share, 0.3) for share in shares], abs=0.051)


# ------------------------------------------------------------------ the verb


@pytest.mark.parametrize("policy", ["adaptive", "plan", "curtailed", "margin", "batch"])
def test_explain_tells_why(policy, capsys):
    assert run("explain", "example:table1", "--policy", policy, "--class", "c2", "--seed", 3) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Before any answer"
    assert lines[-1].startswith("Label: ")
    right = lines[-1].startswith("Label: c2 ")
    assert lines[-1].endswith(". Right." if right else ". Wrong: it is c2.")


def test_explain_takes_answers_and_a_plan_and_writes_a_page(tmp_path, capsys):
    plan = tmp_path / "plan.json"
    ct.save_plan(PLAN, plan)
    page = tmp_path / "trace.html"
    words = ["explain", plan, "--policy", "margin", "--answers", "T1=yes, T1 = NO,T1=1"]
    assert run(*words, "--html", page, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [step["answer"] for step in told["steps"]] == ["yes", "no", "yes"]
    assert told["true_class"] is None
    assert "<h1>" in page.read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--class", "unicorn"], "class: 'unicorn' is not in the problem"),
        (["--answers", "T1=perhaps"], "expected question=yes or question=no, got 'T1=perhaps'"),
        (["--answers", "yes"], "got 'yes'"),
        (["--answers", "T9=yes"], "T9"),
        (["--html", "trace.gif"], "use --html trace.html"),
        (["--target-error", "2"], "target_error: a probability"),
        (["--max-answers", "0"], "max_answers: a whole number"),
        (["--max-answers", "1"], "needs at least"),
    ],
)
def test_explain_mistakes_get_one_line(words, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("explain", "example:table1", *words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert says in shown.err
