"""Project rules that no other tool checks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAVY = ("scipy", "numba", "polars", "pandas", "pydantic", "altair", "typer", "rich", "jinja2")


def test_import_stays_light():
    code = f"import sys, crowdtree; print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_small_design_compiles_nothing():
    code = (
        "import sys, crowdtree as ct; ct.design(ct.example('table1')); "
        "print('numba' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_every_package_of_the_core_is_pinned():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    needed = [*project["dependencies"], *(name for extra in extras for name in extra)]
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    for requirement in needed:
        name = re.split(r"[<>=\[; ]", requirement)[0].lower()
        assert name in pinned or name == project["name"], name
