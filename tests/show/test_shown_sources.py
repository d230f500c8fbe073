"""What users see of several sources of answers: traces, results, checks, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.campaign.trace import read_asked
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.source_checks import source_facts
from crowdtree.io.problems import EXAMPLES
from crowdtree.planning import run_cost
from crowdtree.policies import Answer, Ask
from crowdtree.show.report import report_html
from crowdtree.show.report.details import adaptive_tables
from tests.cli.helpers import complaint, result, run

TRIAGE = ct.example("triage")
CROWD = [
    ct.Source("people"),
    ct.Source("gpt-x 1.1", "model", price=0.02, worker_error=[0.2, 0.1, 0.2, 0.2, 0.2]),
]
TABLE1 = ct.example("table1").replace(sources=CROWD, source_dependence=0.3)
SOURCES = "source,kind,price,error\npeople,people,1,\ngpt-x 1.1,model,0.02,0.2\n"


@pytest.fixture
def who(tmp_path: Path) -> Path:
    path = tmp_path / "who.csv"
    path.write_text(SOURCES)
    return path


# ---------------------------------------------------------------- traces


@pytest.mark.parametrize("problem", [TABLE1, TRIAGE], ids=["table1", "triage"])
@pytest.mark.parametrize("seed", range(4))
def test_a_trace_names_sources_and_follows_the_policy(problem, seed):
    policy = ct.AdaptivePolicy(problem, 0.05, strict=False)
    trace = ct.explain(policy, rng=seed)
    state = policy.start()
    for step in trace.steps:
        asked = policy.ask(state)
        question, source = read_asked(problem, step.asked)
        assert (question, source) in asked.asked
        assert problem.sources[source].name == step.source
        value = problem.answers[question].index(step.answer)
        state = policy.update(state, Answer(question, value, source=source))
        np.testing.assert_allclose(step.posterior, policy.posterior(state), rtol=1e-12)
    assert policy.ask(state) == trace.decision
    again = ct.explain(policy, [(step.asked, step.answer) for step in trace.steps])
    assert (again.steps[-1].asked, again.decision) == (trace.steps[-1].asked, trace.decision)
    assert f"({trace.steps[0].source})" in "\n".join(trace.lines())
    assert trace.to_dict()["steps"][0]["source"] == trace.steps[0].source


def test_answers_that_do_not_count_name_their_source():
    policy = ct.AdaptivePolicy(TABLE1, 0.01)
    said = ["T1 (gpt-x 1.1)", "T1 (gpt-x 1.1)", "T1", "T1 (people)", "T2"]
    trace = ct.explain(policy, [(name, "yes") for name in said])
    assert [step.source for step in trace.steps] == ["gpt-x 1.1", "people", "people"]
    assert trace.ignored == (
        ("T1 (gpt-x 1.1)", "yes", "surplus"),
        ("T2 (people)", "yes", "late"),
    )
    notes = list(trace.notes())
    assert notes[0].startswith("Not counted: T1 (gpt-x 1.1)  → yes")
    started = ct.explain(policy, [])
    first = policy.ask(policy.start())
    assert isinstance(first, Ask)
    names = [f"{TABLE1.questions[q]} ({CROWD[s].name})" for q, s in first.asked]
    assert list(started.open_questions) == names
    assert names[0] in started.verdict()


def test_simulated_sources_of_a_trace_err_together():
    models = [ct.Source(name, "model", worker_error=0.3) for name in ("one", "two")]
    share = 0.9
    problem = ct.Problem(
        ["a", "b"], None, ["q"], [[0, 1]], 0.1, sources=models, source_dependence=share
    )
    policy = ct.AdaptivePolicy(problem, 1e-9, strict=False)
    traces = [ct.explain(policy, true_class="b", rng=seed) for seed in range(400)]
    both = np.mean([[step.answer for step in t.steps] == ["no", "no"] for t in traces])
    rest = (1 - share) * 0.3 / (1 - share * 0.3)
    expected = 0.3 * (share + (1 - share) * rest) ** 2 + 0.7 * rest**2
    assert abs(both - expected) < 4 * np.sqrt(expected * (1 - expected) / 400)
    assert expected > 2 * 0.3**2


def test_explain_reads_sources_from_the_command_line(capsys, who):
    words = ("explain", "example:table1", "--sources", who)
    found = result(capsys, *words, "--answers", "T1 (gpt-x 1.1)=yes,T1=no")
    assert [step["source"] for step in found["steps"]] == ["gpt-x 1.1", "people"]
    says = complaint(capsys, *words, "--answers", "T1 (gpt-y)=yes")
    assert "--answers: source 'gpt-y' is not in the problem, which has 'people'" in says
    plain = result(capsys, "explain", "example:table1", "--answers", "T1=no")
    assert "source" not in plain["steps"][0]


# ---------------------------------------------------------------- results


def test_results_have_answers_and_cost_of_each_source(capsys, who):
    words = ("simulate", "example:table1", "--sources", who, "--items", 300)
    found = result(capsys, *words)
    assert sum(found["answers_per_source"].values()) == pytest.approx(found["answers_per_item"])
    assert sum(found["cost_per_source"].values()) == pytest.approx(found["cost_per_item"])
    assert found["cost_per_source"]["people"] == found["answers_per_source"]["people"]
    dear = result(capsys, *words, "--price", 3)
    for name, cost in found["cost_per_source"].items():
        assert dear["cost_per_source"][name] == pytest.approx(3 * cost)
    assert dear["cost_per_item"] == pytest.approx(3 * found["cost_per_item"])
    assert run(*words) == 0
    shown = capsys.readouterr().out
    for name in ("people", "gpt-x 1.1", "all sources", "answers and cost per item, by source"):
        assert name in shown
    assert run("simulate", "example:table1", "--items", 50) == 0
    assert "by source" not in capsys.readouterr().out


def test_budgets_and_trees_of_several_sources_go_by_their_prices(capsys, tmp_path, who):
    words = ("example:table1", "--sources", who, "--cost", 0.3)
    tree, chart = tmp_path / "tree.json", tmp_path / "mixes.svg"
    assert result(capsys, "plan", *words, "--draw", chart)["mixes"][0]["cost"] <= 0.3
    assert "chosen mix" in chart.read_text()
    assert run("frontier", *words, "-o", tree) == 0
    shown = capsys.readouterr().out
    assert "at a price of" in shown
    assert "price  answers per item" in shown
    value = result(capsys, "evaluate", tree)
    assert value["expected_cost"] <= 0.3
    assert value["expected_cost"] < value["expected_answers"]
    for times in (1, 2):
        found = result(capsys, "simulate", tree, "--items", 500, "--true-errors", times)
        assert sum(found["cost_per_source"].values()) == pytest.approx(found["cost_per_item"])
        assert found["cost_per_item"] == pytest.approx(value["expected_cost"], rel=0.3)
    page = report_html(ct.load(tree))
    assert "(gpt-x 1.1)" in page
    assert "cost per item" in page
    assert "ask one source only" in page
    with pytest.raises(CrowdtreeError, match="campaign: expected one source of answers, got 2"):
        ct.load(tree).tree.problem.require_yes_no("campaign")


def test_true_errors_are_those_of_every_source(capsys, who):
    words = ("simulate", "example:table1", "--sources", who, "--items", 2000)
    wrong = [
        result(capsys, *words, "--true-errors", times)["misclassification"] for times in (1, 2)
    ]
    assert wrong[1] > 1.5 * wrong[0]
    none = result(capsys, *words, "--true-errors", 0)
    assert none["misclassification"] == 0


def test_frames_and_notebooks_show_sources():
    policy = ct.AdaptivePolicy(TRIAGE, target_loss=0.2, strict=False)
    made = ct.simulate(TRIAGE, policy, 300)
    frame = made.to_frame("sources")
    assert frame["source"].to_list() == [source.name for source in TRIAGE.all_sources]
    assert frame["answers"].sum() == pytest.approx(float(made.answers_per_item))
    assert frame["cost"].sum() == pytest.approx(float(run_cost(made, None)))
    facts = TRIAGE.to_frame("sources")
    assert facts["error"].to_list() == [row.error for row in source_facts(TRIAGE)]
    trace = ct.explain(policy, rng=1)
    steps = trace.to_frame()
    assert steps.columns[:3] == ["question", "source", "answer"]
    assert steps["source"].to_list()[1:] == [step.source for step in trace.steps]
    for shown in (TRIAGE, made, trace):
        page = shown._repr_html_()
        assert "small model" in page
    assert "team leader" in made._repr_html_()
    plain = ct.example("table1")
    assert "price" not in plain._repr_html_()
    assert ct.explain(plain, rng=1).to_frame().columns[:2] == ["question", "answer"]


def test_reports_have_a_table_of_sources():
    policy = ct.AdaptivePolicy(TRIAGE, 0.1, strict=False)
    table = next(t for t in adaptive_tables(policy) if t.title == "Who answers")
    assert [row[0] for row in table.rows] == [*(s.name for s in TRIAGE.all_sources), "all sources"]
    plain = ct.AdaptivePolicy(ct.example("table1"), 0.1)
    assert "Who answers" not in [t.title for t in adaptive_tables(plain)]


def test_a_page_of_a_trace_names_sources(tmp_path, who):
    page = tmp_path / "trace.html"
    words = ("--answers", "T1 (gpt-x 1.1)=yes", "--html", page)
    assert run("explain", "example:table1", "--sources", who, *words) == 0
    assert "T1 (gpt-x 1.1) <span class=yes>yes</span>" in page.read_text()


# ---------------------------------------------------------------- checks


def test_mean_errors_of_sources_are_weighted_by_classes():
    """Recomputed cell by cell."""
    facts = {row.source: row for row in source_facts(TRIAGE)}
    for source in TRIAGE.sources:
        alone, means = TRIAGE.of_source(source.name), []
        for q in range(alone.n_questions):
            wrong = [
                share * sum(
                    alone.channel[0, a, q, c]
                    for a in range(alone.n_answers[q])
                    if not alone.right[a, q, c]
                )
                for c, share in enumerate(alone.prior)
            ]  # fmt: skip
            means.append(sum(wrong))
        assert facts[source.name].error == pytest.approx(np.mean(means))
        assert facts[source.name].price == source.price
    assert facts["team leader"].error == 0


def test_useless_and_dominated_sources_are_reported():
    sources = [
        ct.Source("people"),
        ct.Source("coin", "model", price=0.01, worker_error=0.5),
        ct.Source("slow", "people", price=3, worker_error=0.2),
        ct.Source("mixed", "people", price=3, worker_error=[0.01, 0.2, 0.2, 0.2, 0.2]),
        ct.Source("model", "model", price=0.5, worker_error=0.01),
    ]
    facts = {
        row.source: row.remark
        for row in source_facts(ct.example("table1").replace(sources=sources))
    }
    helps = "helps only where model may not be asked again"
    assert facts == {
        "people": f"dearer than model and errs more at every question; {helps}",
        "coin": "useless: no better than guessing at any question",
        "slow": "dearer than people, model and errs more at every question",
        "mixed": "",
        "model": "",
    }


def test_check_has_a_line_per_source(capsys, who):
    assert run("check", "example:triage", "--time-limit", 0) == 0
    shown = capsys.readouterr().out
    for start in (
        "Source people: costs 1, errs in 7.67 % of the answers\n",
        "Source small model (model): costs 0.02, errs in ",
        "Source team leader (expert): costs 3, names the class of an item, and is right\n",
        "Sources err together: 25 % of the errors are common\n",
    ):
        assert start in shown
    found = result(capsys, "check", "example:triage", "--time-limit", 0)
    assert [row["source"] for row in found["sources"]] == [s.name for s in TRIAGE.all_sources]
    who.write_text(SOURCES.replace(",1,", ",,"))
    assert run("check", "example:table1", "--sources", who, "--time-limit", 0) == 0
    assert "source 'people' has no price and costs 1, beside others" in capsys.readouterr().out
    plain = result(capsys, "check", "example:table1", "--time-limit", 0)
    assert "sources" not in plain


# ---------------------------------------------------------------- examples and refusals


def test_the_example_has_a_mixed_crowd():
    assert "triage" in EXAMPLES
    assert [source.kind for source in TRIAGE.all_sources] == ["people", "model", "model", "expert"]
    assert (TRIAGE.n_answers.min(), TRIAGE.n_answers.max()) == (2, 4)
    assert all(not row.remark for row in source_facts(TRIAGE))
    run = ct.simulate(TRIAGE, ct.AdaptivePolicy(TRIAGE, target_loss=0.05), 500)
    assert all(run.answers_per_source.values()), "nobody is asked in vain"


def test_campaigns_refuse_several_sources(capsys, tmp_path):
    pytest.importorskip("sqlalchemy")
    says = (
        "campaign: expected one source of answers, got 2 ('people', 'gpt-x 1.1'); "
        "problem.of_source(name) has one"
    )
    with pytest.raises(CrowdtreeError) as caught:
        TABLE1.require_yes_no("campaign")
    assert str(caught.value) == says
    database = tmp_path / "c.db"
    path = tmp_path / "table1.json"
    ct.save(TABLE1, path)
    words = ("campaign", "create", path, "--adaptive", "--database", database)
    assert complaint(capsys, *words) == f"crowdtree: {says}\n"
    assert not database.exists()


def test_policies_hold_their_sources(tmp_path):
    policy = ct.AdaptivePolicy(TRIAGE, 0.05, strict=False)
    ct.save(policy, tmp_path / "policy.json")
    assert ct.load(tmp_path / "policy.json").problem == TRIAGE
