"""Errors on the web name controls of the page, never options of the command line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

import crowdtree
from crowdtree.server.web.errors import api_words, page_words
from tests.weblab import Lab, lab

LIBRARY = (
    "io",
    "designs",
    "policies",
    "audit",
    *(f"core/{name}.py" for name in ("problem", "tree", "loss")),
)
HEAD = "question,error,a,b\n"
TABLES = {
    "corner": "thing,number,a,b\nq,0.1,0,1\n",
    "both": "class,error,a,b\nprior,,0.5,0.5\nq,0.1,0,1\n",
    "no error": "question,a,b\nq,0,1\n",
    "strength": HEAD + "q,0.1,0.3,1\n",
    "prior": HEAD + "prior,,0.5,0.6\nq,0.1,0,1\n",
    "groups": "question,error,a,b,c\nq,0.1,0,1,1\n",
    "unsplit": HEAD + "q,0.1,-,1\n",
}
"""Tables that are refused, each with another hint."""


def texts() -> Iterator[str]:
    """Every text of the library that mentions an option, parts that are filled in left out."""
    root = Path(crowdtree.__file__).parent
    paths = [path for name in LIBRARY for path in (root / name).rglob("*.py")]
    paths += [root / name for name in LIBRARY if name.endswith(".py")]
    paths += [root / "server" / "webhooks" / "delivery.py"]
    for path in paths:
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        inside = {part for node in nodes for part in getattr(node, "values", [])}
        for node in (node for node in nodes if node not in inside):
            parts = [node] if isinstance(node, ast.Constant) else getattr(node, "values", [])
            found = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts
            )
            if "(--" in found and "\n" not in found:
                yield found


def test_no_hint_of_the_library_names_an_option_on_the_web() -> None:
    found = set(texts())
    assert len(found) > 10
    for text in found:
        assert "--" not in api_words(text)
        assert "--" not in page_words(text)
        assert "pass " not in page_words(text)


def test_refused_tables_say_what_to_do_on_the_page(app: Lab) -> None:
    headers = {**app.owner, "accept": "application/json"}
    for name, table in TABLES.items():
        found = app.client.post("/new", data={"pasted": table}, headers=headers)
        assert found.status_code == 422, (name, found.text)
        said = found.json()["message"]
        assert not any(words in said for words in ("--", "pass ", "=", "\n", ".csv")), (name, said)
        assert ("under More options" in said) == (name == "unsplit")


def test_private_webhooks_are_refused_without_an_option() -> None:
    with lab(private_webhooks=False) as app:
        number = app.campaign()
        found = app.post(f"/api/campaigns/{number}/webhooks", {"url": "https://127.0.0.1/hook"})
    assert found.status_code == 422
    assert "whoever runs the server can allow it" in found.json()["message"]
    assert "--" not in found.json()["message"]
