"""Run commands without the packages of the extras: python tests/bare.py "design FILE" "learn FILE"

Prints the exit code and the standard error of each as JSON.
"""

from __future__ import annotations

import io
import json
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

EXTRAS = (
    "altair", "boto3", "distributed", "fastapi", "granian", "httpx", "llvmlite", "numba",
    "openpyxl", "pandas", "polars", "psycopg", "pyarrow", "sklearn", "sqlalchemy", "vl_convert",
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

    done = []
    for line in sys.argv[1:]:
        errors, code = io.StringIO(), 0
        with redirect_stdout(io.StringIO()), redirect_stderr(errors):
            try:
                main(shlex.split(line))
            except SystemExit as left:
                code = int(left.code or 0)
        done.append((code, errors.getvalue()))
    print(json.dumps(done))


if __name__ == "__main__":
    main()
