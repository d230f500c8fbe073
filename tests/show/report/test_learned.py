"""The page about learned results."""

from __future__ import annotations

import re

import numpy as np
import pytest

from crowdtree.learning import learn
from crowdtree.show.report.learned import learned_page
from crowdtree.show.report.learned_tables import label_worth
from tests.learn_crowds import many_questions, one_question


def test_page_shows_every_worker_and_question_and_fetches_nothing():
    crowd = many_questions(np.random.default_rng(0), 120, 6, 4, 9, 8)
    learned = learn(crowd.answers, problem=crowd.problem)
    html = learned_page(learned, "Pilot <1>")
    assert "<h1>Pilot &lt;1&gt;</h1>" in html
    for name in (*learned.problem.questions, *learned.problem.classes):
        assert name in html
    assert html.count("<circle") >= learned.answers.n_workers
    assert not re.search(r"""(src|href)=["']?https?:""", html)
    assert "Learned against assumed" in html
    outside = re.search(r"<p>([\d.]+) % of the \d+ assumed", html)
    low, high = learned.intervals.worker_error
    expected = np.mean((crowd.problem.worker_error < low) | (crowd.problem.worker_error > high))
    assert outside is not None
    assert float(outside[1]) / 100 == pytest.approx(float(f"{expected:.3g}"))
    assert html.count("<td class=bad>outside</td>") == round(expected * low.size)


def test_page_of_one_question_says_neither_yes_nor_no():
    html = learned_page(learn(one_question(np.random.default_rng(2), 60, 9, 5).answers))
    assert "60 items" in html
    assert "1 question." in html
    assert " · yes</small>" not in html


def test_page_of_one_question_without_an_assumed_table():
    html = learned_page(learn(one_question(np.random.default_rng(1), 200, 250, 6).answers))
    assert "Learned against assumed" not in html
    assert re.search(r"The 100 weakest and strongest of 2\d\d are shown", html)


def test_the_page_says_what_a_label_is_worth() -> None:
    """Recall and precision by the definition, from the stated probabilities."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 60, p=[0.7, 0.2, 0.1])
    said = np.where(rng.random((60, 4)) < 0.7, truth[:, None], rng.integers(0, 3, (60, 4)))
    answers = {
        "task": np.repeat(np.arange(60), 4).tolist(),
        "worker": ["ann", "ben", "cy", "di"] * 60,
        "label": [("cat", "dog", "owl")[value] for value in said.ravel()],
    }
    learned = learn(answers)
    rows = label_worth(learned)
    assert [row.precision for row in rows] == sorted(row.precision for row in rows)
    stated = learned.stated_posterior
    best = stated.argmax(axis=1)
    for row in rows:
        c = learned.classes.index(row.name)
        mine = stated[best == c, c]
        assert row.items == len(mine)
        assert np.isclose(row.precision, mine.mean())
        assert np.isclose(row.recall, mine.sum() / stated[:, c].sum())
    page = learned_page(learned)
    assert page.index("What a label is worth") < page.index("Workers, the weakest first")
