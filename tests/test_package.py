"""The wheel and the sdist work in an empty environment, without the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

import crowdtree as ct

ROOT = Path(__file__).parents[1]


def ran(*words: object, cwd: Path, **variables: str) -> str:
    """Run a command that must succeed in a folder; what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**clean, **variables},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    pytest.importorskip("build", reason="no package build; run make setup")
    pytest.importorskip("hatchling", reason="no package hatchling; run make setup")
    folder = tmp_path_factory.mktemp("dist")
    path = os.environ.get("PYTHONPATH", "")
    ran(
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        folder,
        ROOT,
        cwd=folder,
        PYTHONPATH=path,
    )
    return folder


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """The folder of commands of an empty environment with the wheel; other packages are lent."""
    place = tmp_path_factory.mktemp("empty") / "ct"
    venv.create(place, with_pip=False)
    commands = place / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", commands / "python", "install", "-q"]
    offline = ["--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    ran(*pip, *offline, *built.glob("*.whl"), cwd=place)
    (packages,) = place.rglob("site-packages")
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "lent.pth").write_text("\n".join(lent))  # not on the path before the wheel
    return commands


def test_the_installed_command(installed, tmp_path):
    where = "import crowdtree; print(crowdtree.__file__)"
    file = ran(installed / "python", "-c", where, cwd=tmp_path).strip()
    assert Path(file).is_relative_to(installed.parent)
    command = installed / "crowdtree"
    ran(command, "new", "birds.csv", cwd=tmp_path)
    ran(command, "report", "birds.csv", "-o", "birds.html", cwd=tmp_path)  # has templates
    ran(command, "campaign", "create", "birds.csv", cwd=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"birds.html", "crowdtree.db"}


def test_the_sdist_is_the_project(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"Makefile", "constraints.txt", "README.md", "LICENSE", "tools/setup.sh"} <= names
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    generated = {name for name in ignored if name.startswith("docs/")}
    for folder in ("src", "tests", "docs", "examples"):
        for ending in ("py", "md", "html", "js", "css", "csv", "yaml", "svg"):
            here = {
                path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(f"*.{ending}")
            }
            assert here - generated <= names


def test_the_documents_name_the_wheel_of_this_version():
    for path in (ROOT / "README.md", ROOT / "docs" / "start.md"):
        found = set(re.findall(r"crowdtree-([0-9][^-]*)-py3-none-any\.whl", path.read_text()))
        assert found == {ct.__version__}


@pytest.mark.parametrize("module", ["client", "webhooks", "participants"])
def test_modules_for_other_programs_need_the_standard_library_only(module):
    hidden = ("numpy", "scipy", "pydantic", "httpx", "typer", "jinja2", "sqlalchemy")
    code = f"import sys; sys.modules.update(dict.fromkeys({hidden!r})); import crowdtree.{module}"
    if module == "client":
        code += "; crowdtree.client.Client('http://127.0.0.1:1')"
    subprocess.run([sys.executable, "-c", code], check=True)
