"""Learning from what an audit has checked: known items that were drawn with unequal chances."""

from __future__ import annotations

import numpy as np
import pytest

import crowdtree as ct
from crowdtree.cli import main
from crowdtree.learning import learn
from crowdtree.learning.stating import CrowdMap
from crowdtree.learning.table_discount import TableDiscount
from tests.cli.helpers import complaint
from tests.learn_crowds import many_questions

ITEMS = 150


def asked(seed: int = 0, hard: float = 0.25) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Three answers about every item, and its truth; hard items mislead everybody."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, ITEMS)
    error = np.where(rng.random(ITEMS) < hard, 0.6, 0.08)
    rows: dict[str, list[str]] = {"task": [], "worker": [], "label": []}
    for item in range(ITEMS):
        for worker in range(3):
            said = truth[item] ^ int(rng.random() < error[item])
            for name, value in zip(rows, (f"i{item}", f"w{worker}", "ab"[said]), strict=True):
                rows[name].append(value)
    return rows, {f"i{k}": "ab"[c] for k, c in enumerate(truth.tolist())}


def audited(labels: ct.Labels, truth: dict[str, str], checks: int) -> ct.Audit:
    audit = ct.Audit(*labels, bound=0.1, seed=3)
    while len(audit.checks) < checks:
        for item in audit.next(10):
            audit.record(item, truth[item])
    return audit


def test_checks_are_known_items_with_weights() -> None:
    answers, truth = asked()
    audit = audited(ct.load(learn(answers)), truth, 60)
    learned, plain = learn(answers, audit), learn(answers, audit.truths)
    assert all(learned.labels[item] == truth[item] for item in audit.truths)
    assert isinstance(learned.fitted_discount, CrowdMap)
    assert isinstance(plain.fitted_discount, CrowdMap)
    assert learned.fitted_discount.known == plain.fitted_discount.known == 60
    assert not np.allclose(learned.fitted_discount.weight, plain.fitted_discount.weight), (
        "unsure items weigh less"
    )
    rest = [item for item in truth if item not in audit.truths]
    right = np.mean([learned.labels[item] == truth[item] for item in rest])
    assert learned.accuracy.low <= right <= learned.accuracy.high
    again = learn(answers).calibrate(audit)
    assert np.allclose(again.fitted_discount.weight, learned.fitted_discount.weight)  # type: ignore[union-attr]


@pytest.mark.slow
def test_weights_change_what_a_table_states() -> None:
    crowd = many_questions(np.random.default_rng(1), 60, 3, 4, 5, 5)
    known = {str(item): str(cls) for item, cls in crowd.gold.items()}
    audit = ct.Audit([*known], [*known.values()], np.linspace(0.01, 0.5, 60).tolist())
    for item in audit.next(30):
        audit.record(item, right=True)
    learned = learn(crowd.answers, audit, problem=crowd.problem)
    found = learned.discount
    assert isinstance(found, TableDiscount)
    assert found.weight is not None
    assert found.weight.std() > 0
    assert 0 <= learned.accuracy.low <= learned.accuracy.high <= 1


def test_what_nobody_could_tell_is_not_learned_from() -> None:
    known = {"i0": "cannot tell", "i1": "b"}
    audit = ct.Audit(["i0", "i1", "i2"], list("aab"), [0.1] * 3, known=known)
    audit.record(audit.next()[0], right=False)
    assert audit.truths == {"i1": "b"}


def test_the_command_takes_a_certificate(tmp_path, capsys) -> None:
    answers, truth = asked(1)
    table = tmp_path / "answers.csv"
    rows = zip(*answers.values(), strict=True)
    table.write_text("task,worker,label\n" + "".join(f"{','.join(row)}\n" for row in rows))
    audit = audited(ct.load(learn(answers)), truth, 30)
    ct.save(audit, tmp_path / "audit.json")
    args = ["learn", str(table), "--gold", str(tmp_path / "audit.json"), "--json"]
    with pytest.raises(SystemExit) as end:
        main(args)
    assert end.value.code == 0
    assert '"known": 30' in capsys.readouterr().out
    text = (tmp_path / "audit.json").read_text().replace('"right": true', '"right": false', 1)
    (tmp_path / "edited.json").write_text(text)
    assert "edited.json" in complaint(capsys, "learn", table, "--gold", tmp_path / "edited.json")


def test_weights_of_items_that_are_no_weights_are_refused() -> None:
    policy = ct.AdaptivePolicy(
        ct.Problem(["a", "b"], None, ["q"], [[0, 1]], 0.1), 0.1, strict=False
    )
    for wrong in ([1.0], [1.0, -1.0], [0.0, 0.0], [1.0, float("nan")]):
        with (
            pytest.warns(ct.CrowdtreeWarning),
            pytest.raises(ct.CrowdtreeError, match="weight: expected 2 numbers"),
        ):
            policy.calibrate([[0], [1]], [0, 1], weight=wrong)


def test_weights_calibrate_for_all_items_not_for_those_drawn() -> None:
    """The loss over all items is less than with a calibration to the items that were drawn."""
    rng = np.random.default_rng(0)
    problem = ct.Problem(["a", "b"], None, list("pqr"), [[0, 1]] * 3, 0.1)
    policy = ct.AdaptivePolicy(problem, 0.01, repeats=1, strict=False)
    n = 6000
    truth = rng.integers(0, 2, n)
    wrong = rng.random((n, 3)) < np.where(rng.random(n) < 0.2, 0.6, 0.05)[:, None]
    said = truth[:, None] ^ wrong
    chance = np.where(said.all(axis=1) | ~said.any(axis=1), 0.1, 0.9)
    drawn = np.flatnonzero(rng.random(n) < chance)
    sample = said[drawn], truth[drawn]
    states = policy.replay(said[:, :, None].astype(np.int8))

    def loss(weight: np.ndarray | None) -> float:
        made = policy.calibrate(*sample, weight=weight).calibration
        stated = made.discounted(policy.log_prior, states.log_posterior, states.answers)
        right = stated[np.arange(len(stated)), truth[states.item]]
        return -float(states.weight @ right) / n

    assert loss(1 / chance[drawn]) < loss(None)
