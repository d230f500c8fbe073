"""The rule by which an answer stands: the engine, the log and SQL agree on it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import sqlalchemy as sa

import crowdtree as ct
from crowdtree.campaign.engine import Event, Rules, advance, after_undos, stands, start_item
from crowdtree.policies import AdaptivePolicy
from crowdtree.server.store import Next, Refused, Store, Submit, Undo
from crowdtree.server.store.db.states import STANDS
from crowdtree.server.store.db.tables import answers
from crowdtree.server.store.queries.export import answer_rows
from crowdtree.server.store.queries.items import fates_now, item_trace
from tests.storelab import filled

POLICY = AdaptivePolicy(ct.example("table1"), target_error=0.0, max_answers=4, strict=False)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]),
        st.integers(0, 1),
        st.sampled_from(["answer", "skip", "undo"]),
        st.integers(0, 1),
    ),
    max_size=12,
)


@given(EVENTS, st.booleans())
def test_the_log_gives_the_fates_that_the_engine_has(
    events: list[tuple[str, int, str, int]], same_worker: bool
) -> None:
    """Fates as they were written, with the undos applied, are the engine's fates.

    An undo can revive a later answer of somebody else (a surplus one counts); such logs are not
    compared, because the server refuses undos after a later answer.
    """
    rules = Rules(same_worker=same_worker)
    item = start_item(POLICY, "i")
    about, written = [], []
    for worker, question, kind, value in events:
        given_value = value if kind == "answer" else None
        event = Event("i", question, worker, given_value, kind)  # type: ignore[arg-type]
        before = item.fates
        item = advance(POLICY, item, event, rules)
        changed = [a for a, b in zip(before, item.fates, strict=False) if a != b]
        if len(changed) > (item.fates[-1] == "undone"):
            return
        about.append((worker, question))
        written.append(item.fates[-1])
    assert after_undos(about, written) == list(item.fates)


def test_sql_and_python_agree_on_what_stands(url: str) -> None:
    with Store(url, rng=0).opened() as store:
        number, hashes = filled(store, 4)
        key = 0
        for turn in range(8):
            for place, who in enumerate(hashes[:5]):
                task = store.ask(Next(who))["task"]
                if task is None:
                    continue
                kind = "skip" if (turn + place) % 5 == 4 else "answer"
                value = None if kind == "skip" else place % 2
                for _ in range((turn + place) % 3 + 1):
                    key += 1
                    store.ask(Submit(who, task["lease"], kind, value, f"k{key}"))  # type: ignore[arg-type]
                    if (turn + place) % 3:
                        try:
                            store.ask(Undo(who, f"u{key}"))
                        except Refused:
                            break
        kept = sa.select(answers.c.id).where(answers.c.kind != "undo", sa.text(STANDS))
        by_sql = set(store.read(lambda c: c.execute(kept).scalars().all()))
        numbers = store.read(lambda c: set(c.execute(sa.select(answers.c.item_id)).scalars()))
        by_python, lines = set(), 0
        for item in numbers:
            log = store.read(lambda c, i=item: item_trace(c, number, i))["answers"]
            lines += len(log)
            fates = zip(log, fates_now(log), strict=True)
            by_python |= {line["id"] for line, fate in fates if stands(fate)}
        assert by_sql == by_python
        assert 0 < len(by_sql) < lines
        names = ct.example("table1").questions
        rows = store.read(lambda c: answer_rows(c, number, names, standing=True))
        assert {row["id"] for row in rows} <= by_sql
