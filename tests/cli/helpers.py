"""What the tests of this package share."""

from __future__ import annotations

import json

import pytest

from crowdtree.cli import main

TABLE = """question,error,robin,eagle,trout,shark
prior,,0.4,0.1,0.3,0.2
flies,0.05,1,1,0,0
hunts,0.15,0,1,0,1
sings,0.10,1,0,-,-
"""


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def result(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, object]:
    assert run(*words, "--json") == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def complaint(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert run(*words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1, shown.err
    assert shown.err.startswith("crowdtree: ")
    return shown.err
