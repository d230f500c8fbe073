"""Run the command line without the packages of the extras: python tests/bare.py design FILE ..."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

EXTRAS = (
    "altair", "boto3", "distributed", "fastapi", "llvmlite", "numba", "openpyxl",
    "pandas", "polars", "psycopg", "pyarrow", "sklearn", "sqlalchemy", "uvicorn", "vl_convert",
)  # fmt: skip


class Blocker(MetaPathFinder):
    """Finds none of these packages, as if they were not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Refuse a package of an extra; leave every other to the usual finders."""
        del path, target
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def main() -> None:
    sys.meta_path.insert(0, Blocker())
    from crowdtree.cli import main

    main()


if __name__ == "__main__":
    main()
