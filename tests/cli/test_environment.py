"""Options of `crowdtree serve` from variables of the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the server's packages")

import typer.main

from crowdtree.cli.app import app
from crowdtree.server.web import serve
from tests.cli.helpers import complaint, run

GIVEN = {
    "CROWDTREE_DATABASE": "env.db",
    "CROWDTREE_HOST": "0.0.0.0",
    "CROWDTREE_PORT": "9000",
    "CROWDTREE_URL": "https://label.example/",
    "CROWDTREE_HTTPS": "1",
    "CROWDTREE_TRUSTED_HOST": "a.example b.example",
    "CROWDTREE_PROCESSES": "3",
    "CROWDTREE_MEDIA": "pictures",
    "CROWDTREE_PRIVATE_WEBHOOKS": "true",
    "CROWDTREE_JOINS_PER_MINUTE": "7",
    "CROWDTREE_ACCESS_LOG": "1",
    "CROWDTREE_LOG_FORMAT": "json",
}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[serve.Serving]:
    """What would have been served."""
    monkeypatch.chdir(tmp_path)
    found: list[serve.Serving] = []
    monkeypatch.setattr(serve, "run", lambda serving, _: found.append(serving))
    return found


def test_every_option_of_serve_has_a_variable() -> None:
    options = typer.main.get_command(app).commands["serve"].params
    for option in options:
        if option.name != "help":
            name = max(option.opts, key=len).removeprefix("--").replace("-", "_").upper()
            assert option.envvar == f"CROWDTREE_{name}"


def test_variables_set_the_options(
    served: list[serve.Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    run("serve")
    expected = serve.Serving(
        database="env.db",
        host="0.0.0.0",
        port=9000,
        url="https://label.example",
        secure_cookies=True,
        trusted_hosts=("a.example", "b.example"),
        processes=3,
        media="pictures",
        key_file="env.key",
        private_webhooks=True,
        joins_per_minute=7,
        access_log=True,
        log_format="json",
    )
    assert served == [expected]
    monkeypatch.setenv("CROWDTREE_NO_MEDIA", "1")
    run("serve", "--port", "9001")  # the command line has precedence
    assert (served[1].port, served[1].media) == (9001, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [("CROWDTREE_PORT", "many"), ("CROWDTREE_LOG_FORMAT", "xml"), ("CROWDTREE_HTTPS", "perhaps")],
)
def test_a_wrong_value_is_refused_with_the_name_of_its_variable(
    capsys: Any, served: list[serve.Serving], monkeypatch: Any, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    said = complaint(capsys, "serve")
    assert name in said
    assert not served
