"""The comparison with other solvers: what it computes itself, and what it must notice."""

from pathlib import Path

import pytest

import crowdtree as ct

ROOT = Path(__file__).resolve().parents[3]


def nested(tree: ct.Tree) -> object:
    problem = tree.problem

    def turn(node: dict) -> object:
        if "label" in node:
            return problem.classes.index(node["label"])
        place = problem.questions.index(node["question"])
        return [place, turn(node["no"]), turn(node["yes"])]

    return turn(tree.to_dict())


def swapped(node: object) -> object:
    """The same tree with the two answers of its root exchanged: every item goes astray."""
    question, no, yes = node
    return [question, yes, no]


@pytest.mark.parametrize("errors", ["common", "question", "cell"])
@pytest.mark.parametrize("equal", [True, False])
def test_additive_error_agrees_with_the_oracle(errors: str, equal: bool) -> None:
    from benchmarks.optimal_common import random_table
    from benchmarks.optimal_peers import worth

    table = random_table(8, 12, 3, errors, equal)
    tree = ct.design(table.problem)
    additive, wrong = worth(nested(tree), table)
    assert additive == pytest.approx(ct.evaluate(tree).additive, rel=1e-12)
    assert wrong == 0
    assert worth(swapped(nested(tree)), table)[1] == pytest.approx(1)


def test_counts_are_the_prior() -> None:
    from benchmarks.optimal_common import random_table

    problem, counts = random_table(9, 14, 1, "question")
    assert [share * sum(counts) for share in problem.prior] == pytest.approx(counts)
    assert len(set(counts)) > 1
    assert set(random_table(9, 14, 1, "question", True).counts) == {1}


@pytest.mark.parametrize(("factor", "faults"), [(0.99, 1), (1.0, 0), (1.01, 1)])
def test_report_notices_disagreement(factor: float, faults: int) -> None:
    from benchmarks import optimal_peers as bench
    from benchmarks.optimal_common import random_table

    case = bench.Case(8, 12, "question", False, 0, bench.PYSTREED)
    table = random_table(8, 12, 0, "question", False)
    tree = nested(ct.design(table.problem))
    value = bench.worth(tree, table)[0]
    times = {"seconds": 1.0, "cpu_seconds": 1.0}
    ours = {"status": "optimal", "value": value / factor, **times}
    report = bench.Report()
    report.add(
        case, bench.PYSTREED[0], {"status": "optimal", "tree": tree, "depth": 7} | times, ours
    )
    assert len(report.faults) == faults
    assert report.checks == 1
    assert report.ratios[case, bench.PYSTREED[0]] == (1.0, True)


def test_failures_are_returned_as_text(tmp_path: Path) -> None:
    from benchmarks.optimal_peers import ask

    (tmp_path / "pydl8.5.failed").write_text("ERROR: no wheel\n")
    missing = tmp_path / "pydl8.5" / "bin" / "python"
    assert ask(missing, "pydl8.5", {})["status"] == "not installed: ERROR: no wheel"
    assert ask(tmp_path / "gosdt" / "bin" / "python", "gosdt", {})["status"].endswith("not set up")


def test_markers(tmp_path: Path) -> None:
    from benchmarks.optimal_common import put_between

    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x:begin -->\nold\n<!-- x:end -->\nb\n")
    put_between(page, "x", "new \\1")
    assert page.read_text() == "a\n<!-- x:begin -->\nnew \\1\n<!-- x:end -->\nb\n"
    with pytest.raises(SystemExit, match="no markers"):
        put_between(page, "y", "new")
