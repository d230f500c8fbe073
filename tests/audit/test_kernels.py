"""The arithmetic of audits, in arrays."""

import numpy as np
import pytest

from crowdtree.audit import kernels
from tests.audit import scalar_kernels as scalar


def test_audits_compute_the_same_as_one_number_at_a_time():
    rng = np.random.default_rng(3)
    for _ in range(40):
        left = rng.integers(0, 40, 6).astype(float)
        left[0] += 1
        wrong, power = rng.beta(0.5, 8, 6), float(rng.choice([0.5, 1.0]))
        weights = scalar.lean(left, wrong, 0.35, power)
        assert kernels.lean(left, wrong, 0.35, power) == pytest.approx(weights)
        total = float(rng.uniform(0.1, 1.0) * left.sum())
        for g in np.flatnonzero(left):
            for error in (0.0, 0.3, 1.0):
                given = (left, weights, wrong, total, int(g), error)
                assert kernels.bet(*given) == pytest.approx(scalar.bet(*given), rel=1e-7)
        aimed = scalar.pick_lean(left, wrong, total, 3.0)
        assert kernels.pick_lean(left, wrong, total, 3.0) == pytest.approx(aimed, rel=1e-6)
        checks = 12
        strata = rng.choice(6, checks, p=left / left.sum()).astype(np.int64)
        errors = (rng.random(checks) < 0.2).astype(float)
        rows = np.stack([np.tile(weights, (checks, 1)), np.tile(wrong, (checks, 1))], axis=1)
        for flip in (False, True):
            run = (left + 12, np.ones(6), rows, strata, errors, flip, total, 0.2, 3, checks, 4.0)
            assert kernels.wealth(*run) == pytest.approx(scalar.wealth(*run), rel=1e-7)


def test_replays_in_steps_agree_with_those_check_by_check():
    left = np.array([600.0, 300.0, 100.0])
    model = (np.array([0.5, 0.5]), np.array([[0.01, 0.05, 0.2], [0.02, 0.1, 0.4]]))
    model = (*model, np.zeros(3), np.zeros(3))
    bad = np.tile([0.0, 10.0, 20.0], (200, 1))
    plan = (left, bad, model, np.array([80.0]), np.array([0.0]), 3.0, 50, False)
    coarse, fine = (
        kernels.replay(*plan, np.random.default_rng(5), np.ones(3), resolution=resolution)
        for resolution in (kernels.RESOLUTION, None)
    )
    assert (fine > 0).all()
    assert np.median(coarse) == pytest.approx(np.median(fine), rel=0.1)
