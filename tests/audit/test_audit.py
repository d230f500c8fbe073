"""Audits: the bound holds whatever the stated errors say, and ends exact."""

from __future__ import annotations

import copy
import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdtree as ct
from crowdtree.audit import forecast, kernels
from crowdtree.audit.exact import max_found, max_wrong, min_wrong
from crowdtree.audit.ledger import Ledger
from crowdtree.audit.runs import draw_weights, run_confidence
from crowdtree.audit.strata import expectations, stratify, totals_to_test
from tests.audit_lab import ALPHA, above_wealth, below_wealth, ways


def ledger(sizes, stated, known=(0, 0)):
    return Ledger(np.array(sizes, float), np.array(stated, float), known, ALPHA)


def play(audit, wrong, checks):
    """Check so many items, ten at a time."""
    while len(audit.history) < min(checks, len(wrong)):
        for item in audit.next(min(10, checks - len(audit.history))):
            audit.record(item, right=not wrong[item])
    return audit


def made(n, errors, seed=0, **options):
    names = [f"i{k}" for k in range(n)]
    return ct.Audit(names, ["ab"[k % 2] for k in range(n)], errors, seed=seed, **options)


# ---------------------------------------------------------------- validity


@pytest.mark.parametrize(
    ("sizes", "stated", "share", "power"),
    [
        ((3, 2), (0.01, 0.4), 1.0, 1.0),
        ((2, 3), (0.9, 0.0), 0.1, 0.5),
        ((5,), (0.1,), 0.1, 0.5),
        pytest.param((2, 2, 1), (0.0, 0.2, 1.0), 1.0, 1.0, marks=pytest.mark.slow),
        pytest.param((2, 2, 1), (0.0, 0.2, 1.0), 0.1, 0.5, marks=pytest.mark.slow),
    ],
)
def test_wealth_is_a_martingale_in_every_tiny_audit(sizes, stated, share, power):
    """All truths, all orders of draws: the expected wealth against what is true is at most 1."""
    for bad in itertools.product(*(range(size + 1) for size in sizes)):
        total = sum(bad)
        above, below, sums = {}, {}, {}
        for chance, state in ways(ledger(sizes, stated), bad, share, power, batch=2):
            t = state.checks
            sums[t] = sums.get(t, 0.0) + chance
            above[t] = above.get(t, 0.0) + chance * np.exp(above_wealth(state)[: total + 1])
            below[t] = below.get(t, 0.0) + chance * np.exp(below_wealth(state)[total:])
        for t in above:
            assert sums[t] == pytest.approx(1.0)
            assert above[t].max() <= 1 + 1e-9
            assert below[t].max() <= 1 + 1e-9
            assert above[t][-1] == pytest.approx(1.0)  # at the truth nothing is given away


@pytest.mark.parametrize(
    "stated",
    [
        pytest.param("informative", marks=pytest.mark.slow),
        "reversed",
        pytest.param("zero", marks=pytest.mark.slow),
    ],
)
def test_bound_and_interval_hold_over_seeds(stated):
    rng = np.random.default_rng(0)
    n, seeds = 40, 60
    chance = rng.beta(0.3, 2, n)
    errors = {"informative": chance, "reversed": chance.max() - chance, "zero": 0 * chance}[stated]
    wrong = {f"i{k}": bool(x) for k, x in enumerate(rng.random(n) < chance)}
    share = np.mean(list(wrong.values()))
    missed = outside = label_missed = 0
    share_a = np.mean([x for k, x in enumerate(wrong.values()) if k % 2 == 0])
    for seed in range(seeds):
        audit = play(made(n, errors.tolist(), seed), wrong, 25)
        found = audit.standing
        missed += found.upper < share - 1e-9  # the bound never rises: the last one tells
        outside += not found.low - 1e-9 <= share <= found.high + 1e-9
        label_missed += audit.by_label["a"].upper < share_a - 1e-9
        assert found.low <= found.estimate <= found.high
    allowed = seeds * ALPHA + 3 * math.sqrt(seeds * ALPHA * (1 - ALPHA))
    assert max(missed, outside, label_missed) <= allowed


def test_bound_is_exact_when_everything_is_checked():
    wrong = {f"i{k}": k % 7 == 0 for k in range(50)}
    found = play(made(50, [0.1] * 50), wrong, 50)
    share = sum(wrong.values()) / 50
    now = found.standing
    assert (now.upper, now.low, now.high, now.estimate) == (share, share, share, share)
    assert sorted(found.items[check.place] for check in found.checks) == sorted(wrong)
    assert found.next(5) == []


def test_known_items_count_exactly_and_are_not_drawn():
    audit = made(10, [0.5] * 10, known={"i0": "a", "i1": "a", "i2": "b"})
    assert audit.standing.wrong == 2  # i1 is labelled b, i2 is labelled a
    assert audit.standing.upper == 0.9
    drawn = audit.next(10)
    assert len(drawn) == 7
    assert not {"i0", "i1", "i2"} & set(drawn)
    for item in drawn:
        audit.record(item, right=True)
    assert audit.standing.upper == audit.standing.low == 0.2
    with pytest.raises(ct.CrowdtreeError, match="known from the start"):
        audit.record("i0", "a")
    everything = ct.Audit(["x"], ["a"], [0.1], known={"x": "b"})
    assert everything.standing.upper == 1.0
    assert everything.next() == []


@settings(max_examples=15, deadline=None)
@given(
    errors=st.lists(st.floats(0, 1), min_size=1, max_size=25),
    truth=st.lists(st.booleans(), min_size=25, max_size=25),
    seed=st.integers(0, 2**40),
    bound=st.none() | st.floats(0.01, 0.99),
)
def test_bounds_only_tighten_and_keep_their_order(errors, truth, seed, bound):
    n = len(errors)
    audit = made(n, errors, seed, bound=bound)
    seen = set()
    upper, high, low = audit.standing.upper, audit.standing.high, 0.0
    while items := audit.next(3):
        assert not seen & set(items)
        seen |= set(items)
        for item in items:
            audit.record(item, right=not truth[int(item[1:])])
            found = audit.standing
            assert 0 <= found.low <= found.high <= 1
            assert found.upper <= found.high + 1e-12  # half of the risk costs something
            least = found.wrong / n  # a bound that does not hold (5 %) rises to what was found
            assert found.upper <= max(upper, least) + 1e-12
            assert found.high <= max(high, least) + 1e-12
            assert least <= found.upper
            upper, high, low = found.upper, found.high, max(low, found.low)
    assert audit.standing.upper == pytest.approx(sum(truth[:n]) / n)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=6).filter(any),
    data=st.data(),
)
def test_a_bet_is_fair_at_its_null_for_any_chances(sizes, data):
    """Expected factor 1 when exactly as many are wrong as the null says, at most 1 when more."""
    k = len(sizes)
    left = np.array(sizes, float)
    q = np.array(data.draw(st.lists(st.floats(1e-6, 1 - 1e-6), min_size=k, max_size=k)))
    weights = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=k, max_size=k))) * left
    weights /= weights.sum()
    bad = np.array([data.draw(st.integers(0, size)) for size in sizes], float)
    total = data.draw(st.integers(0, int(bad.sum())))
    expected = sum(
        weights[g] * count / left[g] * math.exp(kernels.bet(left, weights, q, total, g, error))
        for g in range(k)
        if left[g]
        for error, count in ((True, bad[g]), (False, left[g] - bad[g]))
        if count
    )
    assert expected <= 1 + 1e-9
    if total == bad.sum():
        assert expected == pytest.approx(1.0)


# ---------------------------------------------------------------- a planned number of checks


def chance_of_at_most(items, wrong, drawn, found):
    """By counting all samples."""
    ways_ = sum(math.comb(wrong, x) * math.comb(items - wrong, drawn - x) for x in range(found + 1))
    return ways_ / math.comb(items, drawn)


@pytest.mark.parametrize("risk", [0.0499, 0.31])
def test_bounds_of_fixed_samples_are_those_of_counting(risk):
    for items in (1, 7, 30):
        for drawn in {1, items // 2, items} - {0}:
            for found in range(drawn + 1):
                kept = [
                    wrong
                    for wrong in range(found, items - drawn + found + 1)
                    if chance_of_at_most(items, wrong, drawn, found) > risk
                ]
                assert max_wrong(items, drawn, found, risk) == max(kept)
                assert min_wrong(items, drawn, drawn - found, risk) == items - max(kept)
            for total in range(items + 1):
                most = max_found(items, drawn, total, risk)
                assert most < 0 or max_wrong(items, drawn, most, risk) < total
                assert max_wrong(items, drawn, min(most + 1, drawn), risk) >= total


@pytest.mark.parametrize(("sizes", "stated"), [((3, 2), (0.01, 0.6)), ((2, 3), (0.9, 0.0))])
def test_planned_bounds_hold_at_every_check_of_every_tiny_audit(sizes, stated):
    """All truths, all orders of draws: how often a bound or an interval is ever wrong, exactly."""
    risk, planned = 0.25, 2  # at half as much risk again for the plan, a third of the bounds fail
    failed = []

    def walk(chance, state, bad, truth, missed):
        """Go on from a state; `missed` says which of bound and interval ever failed before."""
        low, high = state.interval()
        missed = missed | np.array([state.most_wrong() < truth, not low <= truth <= high])
        if not state.remaining or missed.all():
            failed[-1] += chance * missed
            return
        uniform = state.checks < planned
        weights = kernels.lean(state.left, state.expected, 1.0 if uniform else 0.1, 1.0)
        for g, left in enumerate(state.left):
            for error, count in ((1.0, bad[g]), (0.0, left - bad[g])):
                if count > 0.5:
                    after = copy.deepcopy(state)
                    after.take(weights, g, error)
                    if after.checks == planned:
                        after.look()
                    rest = [b - error * (g == k) for k, b in enumerate(bad)]
                    part = weights[g] / weights.sum() * count / left
                    walk(chance * part, after, rest, truth, missed)

    for bad in itertools.product(*(range(size + 1) for size in sizes)):
        failed.append(np.zeros(2))
        start = Ledger(np.array(sizes, float), np.array(stated), (0, 0), risk, planned=True)
        assert math.exp(-start.need) + start._plan_risk == pytest.approx(risk)
        walk(1.0, start, list(bad), sum(bad), np.zeros(2, dtype=bool))
    worst = np.max(failed, axis=0)
    assert (worst <= risk + 1e-9).all()
    assert worst[0] > 0.1  # the bound is not so wide that it could not fail


@pytest.mark.parametrize("share", [0.01, 0.1, 1 / 3, 0.4])
@pytest.mark.parametrize(("items", "planned"), [(600, 150), (3000, 60), (3000, 600)])
def test_a_planned_audit_takes_at_most_a_tenth_more_checks_than_a_fixed_sample(
    share, items, planned
):
    """Whatever is stated; its mean bound over seeds, with the same results as a fixed sample."""
    rng = np.random.default_rng(0)
    stated = rng.random(items)
    truth = np.zeros(items, dtype=bool)
    truth[: round(share * items)] = True
    ours, fixed = [], []
    for seed in range(3):
        audit = ct.Audit(stated, rng=seed, planned=planned)
        for _ in range(planned):
            item = audit.draw()
            audit.record(item, wrong=bool(truth[item]))
        ours.append(audit.upper)
        found, fewer = audit.standing.wrong / planned, round(planned / 1.1)
        below = math.floor(found * fewer)
        ends = [max_wrong(items, fewer, below + more, ALPHA) / items for more in (0, 1)]
        fixed.append(np.interp(found * fewer - below, [0, 1], ends))
    assert np.mean(ours) <= np.mean(fixed)


def test_planned_checks_are_drawn_with_equal_chances():
    errors = [0.001] * 450 + [0.2] * 50
    audit = ct.Audit(errors, bound=0.03, rng=1, planned=100)
    chances = []
    for _ in range(150):
        item = audit.draw()
        audit.record(item, wrong=item >= 450 and item % 5 == 0)
        chances.append(len(set(np.round(list(audit.weights.values()), 9))))
    assert chances[:100] == [1] * 100
    assert chances[-1] > 1


def test_the_planned_number_has_a_default_and_limits():
    many, few = [0.1] * 2000, [0.1] * 101
    assert (ct.Audit(many).planned, ct.Audit(few).planned) == (400, 51)
    assert ct.Audit(many, bound=0.1).planned == 0
    assert ct.Audit(many, bound=0.1, planned=50).planned == 50
    assert ct.Audit(few, planned=400).planned == 101
    digests = {ct.Audit(few, planned=n).digest for n in (0, 50, 60)}
    assert len(digests) == 3
    for bad in (-1, 0.5, True):
        with pytest.raises(ct.CrowdtreeError, match="planned: expected"):
            ct.Audit(few, planned=bad)


def test_a_forecast_counts_on_the_planned_number():
    audit = ct.Audit([0.05] * 1000, rng=0, planned=300)
    for check in range(60):
        audit.record(audit.draw(), wrong=check % 20 == 0)
    bound = max_wrong(1000, 300, 16, 0.9 * ALPHA) / 1000
    assert audit.needed(bound) == 240
    ledger = ct.Audit([0.05] * 1000, bound=bound, planned=300)._all
    total, cases = round(bound * 1000) + 1, [np.array([45.0])] * 100
    crossed = [
        forecast._replays(ledger, total, cases, False, np.random.default_rng(0), planned)
        for planned in (300, 0)
    ]
    assert crossed[0].count(300) > 20 > crossed[1].count(300)


def test_known_items_let_the_bound_fall():
    audit = ct.Audit([0.1] * 300, known={str(k): "label" for k in range(100)}, planned=0)
    assert audit.upper == pytest.approx(200 / 300)
    for _ in range(60):
        audit.record(audit.draw(), wrong=False)
    assert audit.upper < 0.05


# ---------------------------------------------------------------- corrections and several runs


def checked(audit, truth, checks):
    """Check so many items one by one; returns whether the bound was reached."""
    for item in audit.next(checks):
        audit.record(item, truth[item])
    return audit.state == "reached"


def test_the_bound_of_corrected_labels_holds_at_every_check():
    rng = np.random.default_rng(2)
    missed, seeds = 0, 60
    for seed in range(seeds):
        stated = rng.beta(0.3, 2, 40)
        truth = {f"i{k}": "ab"[int(rng.random() < 1.5 * p)] for k, p in enumerate(stated)}
        audit = ct.Audit([*truth], ["a"] * 40, stated.tolist(), seed=seed, bound=0.1, correct=True)
        low = 1.0
        for _ in range(6):
            checked(audit, truth, 4)
            left = sum(name == "b" for name in truth.values()) - audit.standing.wrong
            low = min(low, audit.corrected - left / 40)
        missed += low < -1e-9
    assert missed <= seeds * ALPHA + 3 * math.sqrt(seeds * ALPHA * (1 - ALPHA))


def test_corrections_bring_every_bound_within_reach():
    truth = {f"i{k}": "ab"[k < 20] for k in range(50)}
    audit = ct.Audit([*truth], ["a"] * 50, [0.1] * 50, bound=0.1, seed=0, correct=True)
    states = []
    while audit.state != "reached":
        checked(audit, truth, 1)
        states.append(audit.state)
        assert audit.corrected == pytest.approx(audit.standing.upper - audit.standing.wrong / 50)
    assert "impossible" in states
    assert audit.corrected <= 0.1 < audit.standing.upper
    assert audit.digest != ct.Audit([*truth], ["a"] * 50, [0.1] * 50, bound=0.1).digest


def test_what_nobody_can_tell_is_not_corrected():
    audit = ct.Audit(["x", "y"], ["a", "a"], [0.1, 0.1], bound=0.3, correct=True)
    first, second = audit.next(2)
    audit.record(first, right=False)
    audit.record(second, "b")
    assert (audit.standing.upper, audit.corrected) == (1.0, 0.5)
    with pytest.raises(ct.CrowdtreeError, match="checked twice with different results"):
        audit.record(first, "b")


def false_certificates(confidences):
    """Exact probability that one of several runs certifies at most 5 % where 5.5 % are wrong.

    Whoever wants a certificate ends a run as soon as a check finds a wrong label, lets labels
    change (always 11 of 200 are wrong afterwards) and tries again. A run then certifies if and only
    if its first checks find nothing; all stated errors are equal, so items are drawn with equal
    chances.
    """
    n, wrong, none = 200, 11, 1.0
    for confidence in confidences:
        audit = made(n, [0.0] * n, bound=0.05, confidence=confidence, correct=True)
        drawn = audit.next(n)
        checks = 0
        while audit.state != "reached":
            audit.record(drawn[checks], right=True)
            checks += 1
        none *= 1 - math.comb(n - wrong, checks) / math.comb(n, checks)
    return 1 - none


def test_several_runs_together_certify_falsely_as_rarely_as_one_may():
    shared = [run_confidence(1 - ALPHA, run) for run in range(6)]
    assert ALPHA / 2 < false_certificates(shared) <= ALPHA
    assert false_certificates([1 - ALPHA] * 6) > 4 * ALPHA  # every run with the whole risk


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_risks_of_any_number_of_runs_add_up_to_the_whole(confidence):
    risk = sum(1 - run_confidence(confidence, run) for run in range(50))
    assert risk == pytest.approx(1 - confidence)
    assert risk <= 1 - confidence + 1e-12


def all_orders(chances, items, drawn, path=(), chance=1.0):
    """Every way to draw `drawn` items; chances depend on what was drawn before."""
    if len(path) == drawn:
        yield chance, path
        return
    rest = [i for i in range(items) if i not in [place for place, _ in path]]
    total = sum(chances(i, path) for i in rest)
    for i in rest:
        p = chances(i, path) / total
        yield from all_orders(chances, items, drawn, (*path, (i, p)), chance * p)


def test_weights_of_draws_estimate_sums_over_all_items():
    """Exactly, over all orders of draws whose chances depend on the results before."""
    value = [3.0, 0.0, 1.0, 7.0, 2.0]

    def chances(item, path):
        return 1 + item + 2 * sum(value[i] for i, _ in path) * (item % 2)

    for drawn in (1, 3, 5):
        mean = 0.0
        for chance, path in all_orders(chances, 5, drawn):
            weights = draw_weights([p for _, p in path], 5)
            mean += chance * sum(w * value[i] for w, (i, _) in zip(weights, path, strict=True))
        assert mean == pytest.approx(sum(value))


def test_weights_of_an_audit_undo_its_lean():
    errors = [0.001] * 450 + [0.2] * 50
    truth = {f"i{k}": "ab"[k >= 450 and k % 5 == 0] for k in range(500)}
    audit = ct.Audit(
        [*truth], ["a"] * 500, errors, bound=0.03, seed=1, known={"i0": "a", "i499": "a"}
    )
    for _ in range(10):
        checked(audit, truth, 15)
    found = audit.weights
    assert len(found) == 152
    assert found["i0"] == 1
    unsure = {item for item in found if int(item[1:]) >= 450}
    assert len(unsure) / len(found) > 0.15
    share = sum(found[item] for item in unsure) / sum(found.values())
    assert share == pytest.approx(0.1, abs=0.03)
    everything = ct.Audit(["x", "y"], ["a", "a"], [0.1, 0.9])
    checked(everything, {"x": "a", "y": "b"}, 2)
    assert everything.weights == {"x": pytest.approx(1), "y": pytest.approx(1)}


# ---------------------------------------------------------------- drawing and recording


def test_draws_depend_on_seed_labels_and_results_only():
    errors = [k / 100 for k in range(60)]
    first, again, other = made(60, errors), made(60, errors), made(60, errors, 1)
    changed = ct.Audit(first.items, ["a", *first.labels[1:-1], "a"], errors)
    drawn = first.next(20)
    assert drawn == [again.next(1)[0] for _ in range(20)]  # sheets of any size, no result between
    assert drawn != other.next(20)
    assert drawn != changed.next(20)


def test_unsure_items_are_drawn_more_often_if_errors_tell():
    errors = [0.001] * 900 + [0.2] * 100
    audit = made(1000, errors, bound=0.03)
    play(audit, {f"i{k}": k >= 900 and k % 5 == 0 for k in range(1000)}, 100)
    drawn = audit.next(50)
    assert sum(int(item[1:]) >= 900 for item in drawn) > 10  # at most 5 by chance alone
    assert len(set(drawn)) == 50


def test_results_count_in_the_order_of_the_draws():
    audit = made(30, [0.1] * 30)
    one, two, three = audit.next(3)
    audit.record(two, right=False)
    assert audit.standing.checks == 0
    assert audit.pending == [one, three]
    audit.record(one, right=True)
    assert (audit.standing.checks, audit.standing.wrong) == (2, 1)


def test_people_who_agree_are_noted_and_conflicts_are_refused():
    audit = made(30, [0.1] * 30)
    item = audit.next()[0]
    label = audit.labels[audit.items.index(item)]
    audit.record(item, label, by="ann")
    audit.record(item, right=True, by="ben")
    audit.record(item, label, by="ann")
    assert audit.checks[0].by == ["ann", "ben"]
    for wrong in ({"right": False}, {"truth": "c"}):
        with pytest.raises(ct.CrowdtreeError, match="checked twice with different results"):
            audit.record(item, **wrong)
    second = audit.next()[0]
    audit.record(second, "c")
    with pytest.raises(ct.CrowdtreeError, match="checked twice with different results"):
        audit.record(second, "d")
    assert audit.standing.checks == 2


def test_state_says_when_a_bound_is_reached_or_out_of_reach():
    audit = made(100, [0.1] * 100, bound=0.03)
    assert audit.state == "open"
    play(audit, {f"i{k}": True for k in range(100)}, 4)
    assert audit.state == "impossible"
    assert audit.forecast(20).reached == 0
    assert audit.forecast(20).median is None
    many = play(made(2000, [0.1] * 2000, bound=0.1), {f"i{k}": True for k in range(2000)}, 30)
    assert many.state == "unlikely"
    good = play(made(200, [0.01] * 200, bound=0.05), {f"i{k}": False for k in range(200)}, 80)
    assert good.state == "reached"
    assert good.forecast(20).median == 0
    assert made(20, [0.1] * 20).forecast() is None


def test_forecast_is_near_what_happens():
    rng = np.random.default_rng(3)
    errors = np.where(rng.random(800) < 0.1, 0.15, 0.002)
    plan = ct.plan_audit(errors, 0.05, replays=200)
    fewer = ct.plan_audit(errors, 0.05, replays=200, known=np.arange(800) < 400)
    assert fewer.median < plan.median
    assert ct.plan_audit(errors, 0.05, known=[True] * 800).high == 0
    with pytest.raises(ct.CrowdtreeError, match="known: expected one per label"):
        ct.plan_audit(errors, 0.05, known=[True])
    took = []
    for seed in range(8):
        wrong = {f"i{k}": bool(x) for k, x in enumerate(rng.random(800) < errors)}
        audit = made(800, errors.tolist(), seed, bound=0.05)
        while audit.state == "open":
            play(audit, wrong, len(audit.history) + 10)
        took.append(len(audit.history))
    assert plan.low <= np.median(took) <= plan.high + 10
    assert plan.reached > 0.9


def test_informative_errors_save_checks_and_useless_ones_cost_little():
    rng = np.random.default_rng(1)
    errors = np.where(rng.random(2000) < 0.1, 0.1, 0.001)
    truth = rng.random(2000) < errors
    bound = 2.2 * truth.mean()
    options = {"truth": truth, "replays": 100}
    plain = ct.plan_audit(errors, bound, uniform=True, **options).mean
    assert ct.plan_audit(errors, bound, **options).mean < 0.8 * plain
    shuffled = rng.permutation(errors)
    assert ct.plan_audit(shuffled, bound, **options).mean < 1.15 * plain


def test_what_is_shown():
    audit = play(made(40, [0.1] * 40, bound=0.5), dict.fromkeys((f"i{k}" for k in range(40)), 0), 5)
    assert repr(audit).startswith("<Audit: 5 of 40 items checked, 0 wrong; at most ")
    found = audit.to_dict()
    assert found["checks"] == 5
    assert found["labels"].keys() == {"a", "b"}
    assert sum(part["checks"] for part in found["labels"].values()) == 5


# ---------------------------------------------------------------- parts


def test_strata_keep_equal_errors_together_and_split_unsure_items_finer():
    rng = np.random.default_rng(0)
    errors = rng.beta(0.2, 5, 3000).round(4)
    codes = stratify(errors)
    assert codes.max() < 12
    assert len(np.unique(codes)) == codes.max() + 1
    for code in range(codes.max()):
        assert errors[codes == code].max() < errors[codes == code + 1].min()
    sizes = np.bincount(codes)
    assert sizes[-1] < sizes[0]


def test_working_model_has_the_mean_errors_that_it_names():
    sizes, stated = np.array([90.0, 10.0]), np.array([0.01, 0.2])
    beliefs, rates = expectations(stated, sizes)
    assert beliefs.sum() == pytest.approx(1.0)
    means = (rates * sizes).sum(axis=1) / 100
    ratios = means / ((stated * sizes).sum() / 100)
    assert {round(math.log2(r)) for r in ratios} >= {-1, 0, 1, 2}
    assert (rates[:, 1] < rates[:, 0]).any()  # errors may be reversed


def test_tested_totals_cover_everything():
    totals = totals_to_test(100_000, 12_345)
    assert totals[0] == 0
    assert totals[-1] == 100_000
    assert 12_345 in totals
    assert len(totals) < 1000


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"errors": [0.1, 1.2]}, "item 'y' has the stated error '1.2'; expected a number from 0"),
        ({"errors": [0.1, float("nan")]}, "from 0 to 1"),
        ({"errors": [0.1, "x"]}, "from 0 to 1"),
        ({"errors": [0.1]}, "one label and one error per item"),
        ({"items": ["x", "x"]}, "item 'x' occurs twice"),
        ({"items": ["x", " "]}, "the item is blank"),
        ({"labels": ["a", ""]}, "the label of item 'y' is blank"),
        ({"items": [], "labels": [], "errors": []}, "no items"),
        ({"bound": 0}, "bound: expected a number between 0 and 1"),
        ({"bound": 1.5}, "bound"),
        ({"confidence": 95}, "confidence"),
        ({"seed": -1}, "seed"),
        ({"known": {"z": "a"}}, "item 'z' is unknown"),
    ],
)
def test_bad_labels_are_refused(change, words):
    given_ = {"items": ["x", "y"], "labels": ["a", "b"], "errors": [0.1, 0.2]} | change
    with pytest.raises(ct.CrowdtreeError) as error:
        ct.Audit(**given_)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_checks_are_refused():
    audit = made(10, [0.1] * 10)
    with pytest.raises(ct.CrowdtreeError, match="unknown"):
        audit.record("nobody", "a")
    with pytest.raises(ct.CrowdtreeError, match="was not drawn"):
        audit.record("i1", "a")
    item = audit.next()[0]
    with pytest.raises(ct.CrowdtreeError, match="expected its true label"):
        audit.record(item)
    with pytest.raises(ct.CrowdtreeError, match="contradicts"):
        audit.record(item, "zebra", right=True)
    with pytest.raises(ct.CrowdtreeError, match="n: expected"):
        audit.next(0)
    with pytest.raises(ct.CrowdtreeError, match="replays"):
        ct.plan_audit([0.1], 0.2, replays=0)
    assert audit.standing.checks == 0


def test_an_audit_follows_what_was_written_down_step_by_step() -> None:
    """Draws and results that come in pieces give what they give at once."""
    items = [f"i{k}" for k in range(50)]

    def fresh() -> ct.Audit:
        return ct.Audit(items, ["a"] * 50, [0.1] * 50, bound=0.2, seed=2)

    audit, copy = fresh(), fresh()
    draws: list[Any] = []
    for turn in range(6):
        audit.next(3)
        for number, check in enumerate(audit.checks):
            if check.right is None and (number + turn) % 3:
                audit.record(items[check.place], right=number % 4 > 0, by="ann")
        draws = [
            SimpleNamespace(item=items[check.place], **{k: getattr(check, k) for k in WRITTEN})
            for check in audit.checks
        ]
        copy.follow(draws)
        assert copy.to_dict() == audit.to_dict()
    again = fresh()
    again.follow(draws)
    assert (again.to_dict(), again.history) == (audit.to_dict(), audit.history)
    for wrong, message in (
        (draws[:-1], "other items"),
        ([*draws[:-1], SimpleNamespace(**{**vars(draws[-1]), "item": "i0x"})], "other items"),
        ([SimpleNamespace(**{**vars(draws[0]), "right": None, "by": []}), *draws[1:]], "written"),
    ):
        with pytest.raises(ct.CrowdtreeError, match=message):
            copy.follow(wrong)


WRITTEN = ("after", "right", "truth", "by")


@pytest.mark.slow
def test_the_bound_holds_when_an_audit_starts_again_with_what_is_known() -> None:
    """As live campaigns do: a second audit takes the checks of the first as known."""
    rng = np.random.default_rng(5)
    missed, runs = 0, 100
    for seed in range(runs):
        stated = np.where(rng.random(120) < 0.2, 0.2, 0.02)
        wrong = {f"i{k}": bool(rng.random() < 2 * p) for k, p in enumerate(stated)}
        args = (list(wrong), ["a"] * 120, stated.tolist())
        first = play(ct.Audit(*args, bound=0.1, seed=seed), wrong, int(rng.integers(1, 40)))
        known = {first.items[check.place]: "ab"[not check.right] for check in first.checks}
        second = ct.Audit(*args, bound=0.1, seed=seed + runs, known=known)
        lowest = min(found.upper for found in play(second, wrong, 80).history)
        missed += lowest < sum(wrong.values()) / 120
    assert missed <= 0.05 * runs


def test_an_audit_of_stated_errors_alone_numbers_its_items():
    """Stated errors are enough: items are numbers, and results are right or wrong."""
    rng = np.random.default_rng(5)
    stated = rng.beta(0.4, 12, 400)
    wrong = rng.random(400) < stated
    audit = ct.Audit(stated, confidence=0.95, rng=0)
    same = ct.Audit(stated, confidence=0.95, seed=0)
    while audit.upper > 0.15:
        item = audit.draw()
        assert item == same.draw()
        assert isinstance(item, int)
        audit.record(item, wrong=wrong[item])
        same.record(item, right=not wrong[item])
    assert audit.to_dict() == same.to_dict()
    assert audit.checked == len(audit.history) < 400
    assert wrong.mean() <= audit.upper <= audit.interval[1]
    assert audit.needed(bound=0.15) == 0
    assert 0 < audit.needed(bound=0.1) < 400
    assert audit.needed(bound=0.001) == math.inf


@pytest.mark.parametrize(
    ("result", "message"),
    [({"right": True, "wrong": False}, "one of them"), ({"wrong": 1}, "as True or False")],
)
def test_right_and_wrong_exclude_each_other(result, message):
    audit = ct.Audit([0.1, 0.2])
    with pytest.raises(ct.CrowdtreeError, match=message):
        audit.record(audit.draw(), **result)


def test_an_audit_that_has_drawn_everything_says_so():
    audit = ct.Audit([0.1])
    audit.draw()
    with pytest.raises(ct.CrowdtreeError, match="every item has been drawn"):
        audit.draw()
    with pytest.raises(ct.CrowdtreeError, match="errors: expected one per item"):
        ct.Audit(["a"], ["x"])
