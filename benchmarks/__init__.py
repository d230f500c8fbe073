"""Benchmarks: run one with ``python -m benchmarks.NAME`` from the root of the repository."""
