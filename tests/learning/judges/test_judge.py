"""Judging as users call it: who is a model, verdicts, questions, versions, mistakes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdtree as ct

Columns = dict[str, list[Any]]


def crowd(errors: dict[str, float], items: int = 300, seed: int = 0) -> tuple[Columns, np.ndarray]:
    """Answers no or yes of workers who err independently, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, items)
    made: Columns = {"task": [], "worker": [], "label": []}
    for name, error in errors.items():
        made["task"] += range(items)
        made["worker"] += [name] * items
        made["label"] += [["no", "yes"][t] for t in truth ^ (rng.random(items) < error)]
    return made, truth


PEOPLE = {"ann": 0.15, "ben": 0.15, "cy": 0.15}


@pytest.mark.parametrize(
    ("error", "answer"),
    [(0.02, "may replace a person"), (0.22, "may join people"), (0.5, "worse than a person")],
)
def test_verdicts_follow_the_errors_of_the_model(error, answer):
    answers, truth = crowd(PEOPLE | {"m": error}, 1500)
    assert ct.judge(answers, models=["m"], margin=0.01).verdict("m").answer == answer
    gold = {str(i): ["no", "yes"][t] for i, t in enumerate(truth)}
    found = ct.judge(answers, gold, models=["m"], margin=0.01)
    assert found.verdict("m").answer == answer
    right = np.mean(np.array(answers["label"][-1500:]) == np.array(["no", "yes"])[truth])
    assert [row.accuracy.value for row in found.scores if row.reference == "gold"] == [
        pytest.approx(right)
    ]


def test_few_items_decide_nothing_and_more_labels_do():
    answers, _ = crowd(PEOPLE | {"m": 0.12}, 40)
    verdict = ct.judge(answers, models=["m"]).verdict("m")
    assert verdict.answer == "cannot tell yet"
    assert str(verdict) == (
        f"cannot tell yet; about {verdict.needed:,} more human labels should decide"
    )
    decided = [
        ct.judge(crowd(PEOPLE | {"m": 0.12}, 40 + verdict.needed // 3, seed)[0], models=["m"])
        for seed in range(1, 11)
    ]
    assert sum(found.verdict("m").answer == "may replace a person" for found in decided) >= 6


def test_known_items_are_asked_for_where_gold_is_given():
    answers, truth = crowd(PEOPLE | {"m": 0.12}, 40)
    gold = {str(i): ["no", "yes"][truth[i]] for i in range(20)}
    verdict = ct.judge(answers, gold, models=["m"]).verdict("m")
    assert (verdict.answer, verdict.needs) == ("cannot tell yet", "known items")


def kinds(answers: Columns, word: str = "model") -> list[str]:
    return [word if name == "m" else "person" for name in answers["worker"]]


def test_models_are_named_in_many_ways(tmp_path):
    answers, _ = crowd(PEOPLE | {"m": 0.1})
    expected = ct.judge(answers, models=["m"]).to_dict()
    table = {"worker": ["m", "ann"], "kind": ["LLM", "person"]}
    path = tmp_path / "workers.csv"
    pl.DataFrame(table).write_csv(path)
    assert ct.judge(answers, models=table).to_dict() == expected
    assert ct.judge(answers, models=pl.DataFrame(table)).to_dict() == expected
    assert ct.judge(answers, models=str(path)).to_dict() == expected
    assert ct.judge(answers, models=["m*"]).to_dict() == expected
    for column in ("source", "kind"):
        found = ct.judge(pl.DataFrame(answers | {column: kinds(answers)}))
        assert found.scores == ct.judge(answers, models=["m"]).scores
    who = {"worker": answers["worker"], "source": answers["worker"], "kind": kinds(answers)}
    assert ct.judge(answers | who).scores == ct.judge(answers, models=["m"]).scores
    assert ct.judge(answers, models=who).to_dict() == expected
    assert json.loads(json.dumps(expected)) == expected | json.loads(json.dumps(expected))


def test_people_alone_are_measured():
    found = ct.judge(crowd(PEOPLE)[0])
    assert found.scores == ()
    assert [row.who for row in found.agreement] == [
        "people", "ann and ben", "ann and cy", "ben and cy",
    ]  # fmt: skip
    people = found.agreement[0]
    assert people.alpha.value == pytest.approx(people.kappa.value, abs=0.01)
    assert found.to_frame()["alpha"][0] == found.agreement[0].alpha.value
    assert repr(found).startswith("<Judgement: 3 people, 0 models, 300 items; people agree with")


def test_questions_are_judged_one_by_one():
    easy, truth = crowd(PEOPLE | {"m": 0.01}, 400, 1)
    hard, other = crowd(PEOPLE | {"m": 0.5}, 400, 2)
    size = len(easy["task"])
    answers = {key: easy[key] + hard[key] for key in easy}
    answers["question"] = ["easy"] * size + ["hard"] * size
    found = ct.judge(answers, models=["m"])
    assert found.verdict("m", "easy").answer == "may replace a person"
    assert found.verdict("m", "hard").answer == "worse than a person"
    assert found.headline == "easy: m: may replace a person, hard: m: worse than a person"
    gold = {"task": [*range(400)] * 2, "question": ["easy"] * 400 + ["hard"] * 400,
            "label": [*map(bool, truth), *map(bool, other)]}  # fmt: skip
    rows = ct.judge(answers, gold, models=["m"]).scores
    assert [row.reference for row in rows if row.verdict] == ["gold", "gold"]


def test_versions_are_compared_on_the_same_items():
    answers, truth = crowd(PEOPLE | {"m 1.0": 0.3, "m 1.1": 0.1})
    gold = {str(i): ["no", "yes"][t] for i, t in enumerate(truth)}
    drift = ct.judge(answers, gold, models=["m 1.0", "m 1.1"]).drift[0]
    labels = np.array(answers["label"]).reshape(5, -1)
    right = labels[3:] == np.array(["no", "yes"])[truth]
    assert (drift.old, drift.new) == ("m 1.0", "m 1.1")
    assert drift.change.value == pytest.approx(right[1].mean() - right[0].mean())
    assert drift.change.low > 0
    assert drift.changed_answers == pytest.approx((labels[3] != labels[4]).mean())
    plain = [name.split()[0] for name in answers["worker"]]
    version = [name.partition(" ")[2] for name in answers["worker"]]
    apart = answers | {"worker": plain, "version": version}
    assert ct.judge(apart, gold, models=["m"]).drift[0] == drift


def test_a_label_that_only_gold_has_counts_as_missed():
    answers, _ = crowd(PEOPLE | {"m": 0.1})
    found = ct.judge(answers, {"0": "maybe", "1": "yes"}, models=["m"])
    assert "gold: labels without an answer: 'maybe'" in found.notes
    recall = [row.recall for row in found.label_scores if row.label == "maybe"]
    assert [row.value for row in recall] == [0, 0]


BASE, _TRUTH = crowd(PEOPLE | {"m": 0.1}, 30)
ALONE = {"task": [1, 2, 1], "worker": ["ann", "ann", "m"], "label": ["a", "b", "a"]}
TWO = {"task": [1, 2, 1, 2], "question": ["q", "q", "r", "r"], "worker": list("abab"),
       "label": ["cat", "dog"] * 2}  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "options", "words"),
    [
        (BASE, {"models": ["mm"]}, "models: worker 'mm' is not among"),
        (BASE, {"models": "m"}, "models: expected a list of names, got 'm'; write ['m']"),
        (BASE, {"models": 5}, "models: expected a frame"),
        (BASE, {"models": {"worker": ["m"], "kind": ["robot"]}}, "models: kind 'robot' of worker"),
        (BASE | {"kind": kinds(BASE, "student")}, {}, "answers: kind 'student' of worker 'm' is"),
        (BASE | {"kind": ["model", *kinds(BASE)[1:]]}, {}, "answers: worker 'ann' is both"),
        (BASE | {"kind": ["model"] * 120}, {}, "answers: no people, only models (ann, ben,"),
        (ALONE, {"models": ["m"]}, "answers: one person only ('ann'); add the answers"),
        (ALONE | {"task": [1, 2, 3]}, {}, "answers: no item has answers of two people"),
        (ALONE | {"worker": ["ann", "ben", "m"]}, {"models": ["m"]}, "answers: no item has"),
        (BASE, {"gold": {"99": "yes"}}, "gold: none of its items ('99') is in the answers"),
        (BASE, {"gold": {"1": "cat"}}, "gold: label 'cat' is not among"),
        (TWO, {"gold": {"task": [1], "question": ["q"], "label": ["cow"]}}, "gold: question 'q'"),
        (TWO, {"gold": {"1": "cat"}}, "gold: column question is missing"),
        (TWO, {"gold": {"task": [1], "question": ["s"], "label": ["cat"]}}, "gold: question 's'"),
        (BASE, {"gold": ct.Audit([0.1] * 20)}, "gold: expected known items drawn at random"),
        (BASE, {"margin": 1.5}, "margin: expected a share from 0 to below 1, got 1.5"),
        (BASE, {"rng": -1}, "rng: expected a seed"),
        ({"task": [1], "worker": ["a"]}, {}, "answers: column label is missing"),
    ],
)
def test_mistakes_get_one_line(answers, options, words):
    with pytest.raises(ct.CrowdtreeError) as caught:
        ct.judge(answers, **options)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_an_unknown_model_or_question_has_no_verdict():
    with pytest.raises(ct.CrowdtreeError, match="verdict: no model 'x' at question 'label'"):
        ct.judge(BASE, models=["m"]).verdict("x")


def test_frames_have_all_parts_and_charts_are_drawn(tmp_path):
    found = ct.judge(BASE, models=["m"])
    for part in ("models", "label_scores", "tests", "together", "agreement"):
        assert len(found.to_frame(part)), part
    assert found.to_frame().columns[:3] == ["question", "model", "reference"]
    assert found.draw(tmp_path / "chart.svg").startswith("<svg")
    with pytest.raises(ct.CrowdtreeError, match="nothing to plot"):
        ct.judge(crowd(PEOPLE)[0]).draw()
