"""The tests that docs/security.md names exist."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, ROOT

TEXT = (DOCS / "security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"\btest_\w+\b(?!\.py)")


def test_every_test_that_is_named_exists() -> None:
    files = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    defined = set(re.findall(r"def (test_\w+)", "\n".join(files.values())))
    named = set(NAMED.findall(TEXT))
    assert len(named) > 80
    assert named <= defined
    for path, test in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TEXT):
        assert f"def {test}(" in files[ROOT / path], (path, test)
    for path in re.findall(r"`(tests/[\w/]+(?:\.py)?)`", TEXT):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"`(test_\w+\.py)`", TEXT):
        assert any(path.name == name for path in files), name


def test_every_measure_names_a_test() -> None:
    table = TEXT[TEXT.index("## Measures and tests") : TEXT.index("## Threats that are tried")]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 50
    assert [row[0] for row in rows[1:] if "test" not in row[2] and "same" not in row[2]] == []
