"""Compile the search for optimal trees once, so that the test processes find it in the cache."""

import numpy as np

import crowdtree as ct


def main() -> None:
    """Solve problems that are as small as it takes."""
    rng = np.random.default_rng(0)
    large = ct.Problem(
        [f"c{i}" for i in range(24)],
        None,
        [f"q{i}" for i in range(24)],
        rng.integers(0, 2, (24, 24)).astype(np.int8),
        rng.uniform(0.05, 0.3, (24, 24)),
    )
    for problem in (ct.example("table1"), large):
        for objective in ("additive", "exact"):
            ct.design(problem, "optimal", objective=objective, time_limit=60)
    ct.frontier(ct.example("table1"), max_votes=3)


if __name__ == "__main__":
    main()
