"""Project rules that no other tool checks."""

from __future__ import annotations

import contextlib
import importlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
GENERATED = [
    ROOT / "docs" / "reference" / f"{name}.md"
    for name in ("python", "commands", "http", "settings", "metrics")
]
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


def written_pages() -> list[Path]:
    """Pages of the documentation that are not generated from the code when the site is built."""
    return [page for page in ROOT.glob("docs/**/*.md") if page not in GENERATED]


def test_links_of_the_docs_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *written_pages()]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            there = (page.parent / target).resolve()
            assert there.exists() or there in GENERATED, f"{page.name}: {target}"


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


def test_every_setting_is_documented_with_its_default():
    from crowdtree.store.settings import Settings

    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE))
    shown = {None: "none", "": "empty", True: "true", False: "false"}
    for name, field in Settings.model_fields.items():
        default = field.default
        if isinstance(default, float):
            expected = f"{default:g}" if default < 1e5 else f"{default:.0f}"
        elif isinstance(default, dict):
            expected = "none"
        elif isinstance(default, int) and not isinstance(default, bool):
            expected = str(default)
        else:
            expected = shown.get(default, f"`{default}`")
        assert rows.get(name, "").strip() == expected, name


def test_names_in_the_docs_exist():
    """Modules and functions that the pages name in full can be imported."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *written_pages()]
    named = {
        (page.name, name)
        for page in pages
        if page.name != "mutation.md"  # names mutants, which exist in copies only
        for name in re.findall(r"`(crowdtree(?:\.\w+)+)", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    missing = sorted(where for where in named if not _exists(where[1]))
    assert not missing


def _exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    module, _, attribute = name.rpartition(".")
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module(name)
        return True
    return bool(module) and _exists(module) and hasattr(_resolved(module), attribute)


def _resolved(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(_resolved(module), attribute)
