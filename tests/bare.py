"""Run the command line without the packages of the extras: python tests/bare.py design FILE ..."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

EXTRAS = (
    "alembic", "altair", "boto3", "distributed", "fastapi", "llvmlite", "numba", "openpyxl",
    "pandas", "polars", "psycopg", "pyarrow", "sklearn", "sqlalchemy", "uvicorn", "vl_convert",
)  # fmt: skip


class Blocker(MetaPathFinder):
    """Finds none of these packages, as if they were not installed; one can be allowed."""

    def __init__(self, allowed: str = "") -> None:
        self.allowed = allowed

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Refuse a package of an extra; leave every other to the usual finders."""
        del path, target
        package = name.partition(".")[0]
        if package in EXTRAS and package != self.allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def main() -> None:
    allowed = sys.argv.pop(1).partition("=")[2] if sys.argv[1].startswith("--allow=") else ""
    sys.meta_path.insert(0, Blocker(allowed))
    from crowdtree.cli import main

    main()


if __name__ == "__main__":
    main()
