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


YES_NO = re.compile(
    r"(?i)(?<![a-z])yes(?![a-z])|binary|two_way|TwoAnswers"
    r"|(?:outcome|answer|value)\w*(?:\[[^\]]*\])? == 1\b"
)
DISPLAY = {"cli", "languages", "paper", "show"}
CLOSED_FORMS = {"bounds.py", "likelihood.py", "plurality.py", "votes.py", "voting.py"}
MAX_YES_NO = 240


def yes_no_places() -> dict[str, int]:
    """Lines that speak of yes and no, by file, outside display and closed forms."""
    root = ROOT / "src" / "crowdtree"
    found = {}
    for path in root.rglob("*.py"):
        name = path.relative_to(root)
        if not set(name.parts) & (DISPLAY | CLOSED_FORMS):
            count = sum(bool(YES_NO.search(line)) for line in path.read_text().splitlines())
            found[str(name)] = count
    return found


def test_yes_and_no_are_not_said_in_more_places():
    found = yes_no_places()
    worst = sorted(found, key=lambda name: -found[name])[:10]
    assert sum(found.values()) <= MAX_YES_NO, [(name, found[name]) for name in worst]


def test_no_text_of_a_reason_decides():
    """Reasons are enums; texts are made from them where they are shown."""
    decides = re.compile(
        r"(status_reason|reason_detail)[^\n%]*(startswith|==|!=| in )"
        r"|\.reason (==|!=) [\"']|\.reason\.startswith|\.reason (not )?in \([\"']"
    )
    server = ROOT / "src/crowdtree/server"
    files = [
        *server.rglob("*.py"),
        *server.rglob("*.html"),
        *(ROOT / "src/crowdtree/cli").rglob("*.py"),
    ]
    found = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in files
        for line in file.read_text().splitlines()
        if decides.search(line)
    ]
    assert found == []
