"""What the tests of this package share."""

from __future__ import annotations

import json

import pytest

from crowdtree.cli import main


def run(*words):
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def said(capsys, *words):
    assert run(*words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def found(capsys, *words):
    return json.loads(said(capsys, *words, "--json"))


def complaint(capsys, *words):
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error
