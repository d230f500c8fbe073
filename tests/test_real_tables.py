"""Designs of real tables keep the contract, and beat the mean of random orders."""

from __future__ import annotations

import numpy as np
import pytest

import crowdtree as ct
from benchmarks import real_tables
from benchmarks.realdata import ABSENT, folder
from crowdtree import CrowdtreeError
from tests.contracts import check_tree

pytestmark = pytest.mark.realdata
DATA = folder()
RECIPES = {recipe.name: recipe for recipe in real_tables.RECIPES}
LARGE = {"mushroom_species"}  # its trees have tens of thousands of nodes


def problem(name: str) -> ct.Problem:
    if DATA is None:
        pytest.skip(ABSENT)
    return real_tables.load(RECIPES[name], DATA)


@pytest.mark.parametrize("method", ["fm", "fc", "gain", "gini", "random"])
@pytest.mark.parametrize("name", sorted(set(RECIPES) - LARGE))
def test_contract(name: str, method: str) -> None:
    table = problem(name)
    tree = ct.design(table, method, allow_groups=RECIPES[name].groups)
    check_tree(table, tree)
    value = ct.evaluate(tree)
    assert value.misclassification <= value.additive * (1 + 1e-12)
    assert value.misclassification <= value.bounds.misclassification_upper * (1 + 1e-9)
    np.testing.assert_allclose(value.confusion.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(value.confusion.diagonal(), value.correct, atol=1e-12)


@pytest.mark.slow
def test_contract_of_the_largest() -> None:
    table = problem("mushroom_species")
    tree = ct.design(table, allow_groups=True)
    check_tree(table, tree)


@pytest.mark.parametrize("name", ["awa2", "ddxplus", "key_grass_genera"])
def test_strict_tables_need_no_groups(name: str) -> None:
    assert not RECIPES[name].groups
    tree = ct.design(problem(name))
    assert all(len(members) == 1 for members in tree.leaf_classes)
    assert tree.problem.dash == "inapplicable"


@pytest.mark.parametrize("name", ["soybean_large", "mushroom_species"])
def test_field_guides_do_not_design_with_strict_dashes(name: str) -> None:
    with pytest.raises(CrowdtreeError, match=r"no question (splits|separates)"):
        ct.design(problem(name), dash="inapplicable")


def test_zoo_has_59_groups() -> None:
    table = problem("uci_zoo")
    with pytest.raises(CrowdtreeError, match=r"no question separates .*and 15 more"):
        ct.design(table)
    tree = ct.design(table, allow_groups=True)
    assert tree.n_leaves == len({tuple(column) for column in table.outcome.T.tolist()}) == 59


@pytest.mark.parametrize("name", sorted(set(RECIPES) - LARGE))
def test_fm_beats_random_orders(name: str) -> None:
    table = problem(name)
    groups = RECIPES[name].groups
    random = [
        ct.evaluate(ct.design(table, "random", rng=seed, allow_groups=groups)).misclassification
        for seed in range(10)
    ]
    assert ct.evaluate(ct.design(table, allow_groups=groups)).misclassification < np.mean(random)
