"""No module imports itself through others, imports inside functions included."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp


def imports() -> dict[str, set[str]]:
    """What each module imports when it runs; names that only type checkers read are left out."""
    graph = grimp.build_graph("crowdtree", exclude_type_checking_imports=True, cache_dir=None)
    return {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules of a cycle in their order, the first one again at the end; empty where none is."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_a_cycle_is_found():
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
    assert cycle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_imports_inside_functions_are_counted():
    assert "crowdtree.learning.online" in imports()["crowdtree.learning.model"]


def test_no_module_imports_itself_through_others():
    assert cycle(imports()) == []
