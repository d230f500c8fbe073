"""Audits of the mean loss: the bound holds whatever is stated, and certificates carry it."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

import crowdtree as ct
from crowdtree import CrowdtreeError
from crowdtree.audit import kernels
from crowdtree.audit.ledger import Ledger
from crowdtree.io import audits
from tests.audit_lab import above_wealth, below_wealth

NAMES = ["champignon", "death cap", "fly agaric"]
COSTS = np.array([[0.0, 1.0, 1.0], [50.0, 0.0, 5.0], [10.0, 1.0, 0.0]])


def labelled(n: int, seed: int, wrong: float = 0.05) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Truth, labels and stated errors, of which the last are informative."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n, p=[0.6, 0.25, 0.15])
    errors = rng.choice([0.2, 1.8], n) * wrong
    label = np.where(rng.random(n) < errors, (truth + rng.integers(1, 3, n)) % 3, truth)
    return truth, label, errors.tolist()


def audit_of(label: np.ndarray, errors: list[float], **options: Any) -> ct.Audit:
    items = [f"i{k}" for k in range(len(label))]
    options = {"loss": COSTS, "classes": NAMES} | options
    return ct.Audit(items, [NAMES[c] for c in label], errors, **options)


def play(audit: ct.Audit, truth: np.ndarray, checks: int) -> ct.Audit:
    while audit.checked < min(checks, len(truth)):
        audit.next(min(10, checks - audit.checked))
        for item in audit.pending:
            audit.record(item, NAMES[truth[int(item[1:])]])
    return audit


# ---------------------------------------------------------------- validity


@pytest.mark.parametrize(("share", "power"), [(1.0, 1.0), (0.1, 0.5)])
@pytest.mark.parametrize(
    ("losses", "stated"),
    [
        (((1.0, 0.0, 0.3), (0.05, 0.1)), (0.01, 0.4)),
        pytest.param(((0.2, 0.2), (0.0, 0.0), (0.07,)), (0.5, 0.1, 0.0), marks=pytest.mark.slow),
        (((0.9, 0.4, 0.0, 0.0),), (0.2,)),
    ],
)
def test_wealth_is_a_supermartingale_in_every_tiny_audit(losses, stated, share, power):
    """All orders of draws: the expected wealth against any sum that is true is at most 1."""
    size = np.array([1.0, 0.1, 0.1][: len(losses)])
    size[0] = max(losses[0]) if max(losses[0]) > 0 else 1.0
    counts = np.array([len(part) for part in losses], float)
    start = Ledger(counts, np.array(stated), (0, 0.0, 0.0), 0.05, None, size)
    truth = sum(map(sum, losses))
    low, high = start.totals[start.totals <= truth], start.ends[start.ends >= truth]
    low, high = np.append(low[::12], low[-1]), high[::12]
    above: dict[int, Any] = {}
    below: dict[int, Any] = {}

    def walk(chance: float, ledger: Ledger, left: list[list[float]]) -> None:
        t = ledger.checks
        above[t] = above.get(t, 0.0) + chance * np.exp(above_wealth(ledger, low))
        below[t] = below.get(t, 0.0) + chance * np.exp(below_wealth(ledger, high))
        if not ledger.remaining:
            return
        weights = kernels.lean(ledger.left, ledger.expected, share, power)
        weights /= weights.sum()
        for stratum, part in enumerate(left):
            for place, loss in enumerate(part):
                after = copy.deepcopy(ledger)
                after.take(weights, stratum, loss / size[stratum])
                rest = [list(other) for other in left]
                rest[stratum].pop(place)
                walk(chance * weights[stratum] / len(part), after, rest)

    walk(1.0, start, [list(part) for part in losses])
    for t in above:
        assert above[t].max() <= 1 + 1e-9
        assert below[t].max() <= 1 + 1e-9


@pytest.mark.parametrize("stated", [pytest.param("informative", marks=pytest.mark.slow), "zero"])
def test_the_bound_holds_at_every_check_over_seeds(stated):
    held = []
    for seed in range(12):
        truth, label, errors = labelled(50, seed)
        mean = COSTS[truth, label].mean()
        given = errors if stated == "informative" else [0.0] * 50
        audit = audit_of(label, given, loss_bound=0.2, seed=seed)
        good = True
        for checks in (10, 20, 40):
            found = play(audit, truth, checks).mean_loss
            good &= found.upper >= mean - 1e-9 and found.low - 1e-9 <= mean <= found.high + 1e-9
        held.append(good)
    assert sum(held) >= 9  # each holds with 0.9 or more for bound and interval together


def test_bounds_only_tighten_and_end_exact():
    truth, label, errors = labelled(60, 3, wrong=0.2)
    audit = audit_of(label, errors, bound=0.1, loss_bound=0.1)
    upper = np.inf
    for checks in range(5, 61, 5):
        found = play(audit, truth, checks).mean_loss
        assert 0 <= found.low <= found.high
        assert found.upper <= upper + 1e-9
        upper = found.upper
    mean = COSTS[truth, label].mean()
    assert (found.upper, found.low, found.estimate) == pytest.approx((mean, mean, mean))
    assert found.corrected == pytest.approx(0.0, abs=1e-9)
    assert audit.upper == pytest.approx((truth != label).mean())


def test_known_items_count_exactly():
    truth, label, errors = labelled(50, 4, wrong=0.3)
    known = {f"i{k}": NAMES[truth[k]] for k in range(50)}
    found = audit_of(label, errors, known=known).mean_loss
    assert found.upper == pytest.approx(COSTS[truth, label].mean())


def test_with_losses_of_zero_and_one_the_mean_loss_is_the_error():
    """Up to the steps in which sums of losses are tested."""
    truth, label, errors = labelled(120, 5)
    audit = play(audit_of(label, errors, loss=1 - np.eye(3), bound=0.1), truth, 60)
    assert audit.upper <= audit.mean_loss.upper + 1e-9 <= 1.03 * audit.upper + 1 / 120
    assert audit.mean_loss.estimate == pytest.approx(audit.standing.estimate, rel=0.02, abs=1e-3)


def test_a_wrong_label_of_unknown_truth_counts_as_its_worst_mistake():
    audit = audit_of(np.array([0, 2]), [0.1, 0.1])
    audit.next(2)
    audit.record("i0", right=False)
    audit.record("i1", "toadstool")
    assert audit.mean_loss.upper == pytest.approx((50 + 5) / 2)


def test_labels_that_cannot_cost_much_are_seldom_drawn():
    """Nine of ten labels cost at most 1, one of ten up to 50: a bound on the loss checks those."""
    label = np.array([1] * 270 + [0] * 30)
    audit = audit_of(label, [0.01] * 300, loss_bound=5.0)
    drawn = {int(item[1:]) for item in audit.next(15)}
    assert sum(place >= 270 for place in drawn) >= 10
    play(audit, label, 40)
    assert audit.state == "reached"  # 40 uniform checks without a mistake allow about 50 * 7 %


def test_the_worse_of_two_bounds_decides():
    truth, label, errors = labelled(200, 7, wrong=0.02)
    audit = audit_of(label, errors, bound=0.5, loss_bound=0.02)
    play(audit, truth, 30)
    assert audit.error_state == "reached"
    assert audit.state == audit.mean_loss.state != "reached"
    assert audit.forecast_loss(20).bound == 0.02


def test_estimates_of_labels_add_up_to_that_of_all():
    truth, label, errors = labelled(200, 8, wrong=0.1)
    audit = audit_of(label, errors, loss=None, classes=None)
    for checks in (5, 30, 100, 200):
        play(audit, truth, checks)
        parts = audit.by_label.values()
        total = sum(part.estimate * part.items for part in parts)
        assert total == pytest.approx(200 * audit.standing.estimate, abs=1e-6)
        assert all(part.low - 1e-9 <= part.estimate <= part.high + 1e-9 for part in parts)


# ---------------------------------------------------------------- certificates


@pytest.fixture(scope="module")
def data():
    truth, label, errors = labelled(40, 9, wrong=0.2)
    audit = audit_of(label, errors, bound=0.4, loss_bound=3.0, risks=[0.5] * 40, seed=3)
    return json.loads(json.dumps(audits.audit_to_dict(play(audit, truth, 12))))


def verify(data: Any) -> ct.Audit:
    return ct.verify_audit(json.dumps(data).encode(), name="audit.json")


def test_a_certificate_carries_the_loss_and_its_bound(data):
    found = verify(data)
    assert found.mean_loss.to_dict() == pytest.approx(data["claims"]["loss"])
    assert found.loss_bound == 3.0
    assert audits.audit_to_dict(found) == data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("claims", "loss", "upper"), 0.1),
        (("claims", "loss", "state"), "reached!"),
        (("claims", "loss", "corrected"), 0.0),
        (("loss", "matrix", 1, 0), 5.0),
        (("loss", "classes"), NAMES[::-1]),
        (("loss_bound",), 9.0),
        (("labels", 3, "risk"), 0.25),
    ],
)
def test_changes_of_the_loss_are_found_even_with_a_new_digest(data, path, value):
    changed = copy.deepcopy(data)
    part = changed
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    changed["digest"] = audits._digest(changed)
    with pytest.raises(CrowdtreeError, match=r"audit\.json: "):
        verify(changed)


def test_a_certificate_without_a_loss_is_as_before():
    _, label, errors = labelled(10, 1)
    made = audits.audit_to_dict(audit_of(label, errors, loss=None, classes=None))
    assert "loss" not in made
    assert "loss" not in made["claims"]
    assert set(made["labels"][0]) == {"item", "label", "error"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": None, "classes": None, "loss_bound": 1.0}, "give the loss as well"),
        ({"loss_bound": -1}, "expected a number above 0"),
        ({"classes": ["a", "b", "c"]}, "is not a class of the loss"),
        ({"loss": np.eye(3)}, "where it is labelled rightly"),
        ({"risks": [1.0]}, "one per item"),
    ],
)
def test_mistakes(options, words):
    with pytest.raises(CrowdtreeError, match=words):
        audit_of(np.array([0, 1]), [0.1, 0.1], **options)


def test_labels_of_learn_are_read_with_their_expected_losses():
    table = b"task,label,probability,expected_loss,referred\na,x,0.9,1.5,false\nb,y,0.6,2,true\n"
    assert ct.load(table, name="labels.csv") == (["a"], ["x"], [0.1], [1.5], None)
    for bad in (b"a,x,0.9,-1", b"a,x,0.9,much"):
        with pytest.raises(CrowdtreeError, match="expected a number of 0 or more"):
            ct.load(b"task,label,probability,expected_loss\n" + bad + b"\n", name="l.csv")
