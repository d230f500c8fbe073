"""What users meet is documented, and what the pages cite exists."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import crowdtree as ct
from tests.docs.pages import GENERATED, ROOT, code, commands, written_pages

CITED = r"(?:src|docs|tests|tools|benchmarks|examples|deploy|\.ci)/[\w./*-]*[\w*-]"
"""A path in the repository."""


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


# ---------------------------------------------------------------- the HTTP interface


@cache
def operations() -> dict[tuple[str, str], dict[str, Any]]:
    pytest.importorskip("fastapi")
    from crowdtree.server.store import Store
    from crowdtree.server.web.app import create_app

    with Store("sqlite://").opened() as store:
        described = create_app(store).openapi()
    found = {
        (method.upper(), path): call
        for path, calls in described["paths"].items()
        for method, call in calls.items()
    }
    assert len(found) > 40
    return found


def test_every_route_is_described():
    silent = [
        route for route, call in operations().items() if len(call.get("description", "")) < 12
    ]
    assert not silent


def shape(path: str) -> str:
    """A route without the names of its parameters: ``{number}``, ``N`` and ``ID`` are equal."""
    path = re.sub(r"\?.*", "", path)
    return re.sub(r"(?<=/)(?:\{\w+\}|[A-Z]+|\d+|\.\.\.)(?=/|$)", "*", path)


def test_routes_in_the_pages_exist():
    known = {(method, shape(path)) for method, path in operations()}
    verbs = {"start", "pause", "resume", "finish"}
    cited = []
    for name, text in written_pages().items():
        for method, path in re.findall(r"\b(GET|POST|PATCH|PUT|DELETE) (/[\w/{}.*-]+)", text):
            last = path.rpartition("/")[2]
            wanted = shape(path.removesuffix(last) + "{verb}" if last in verbs else path)
            assert (method, wanted) in known, f"{name}: {method} {path}"
            cited.append(path)
    assert len(cited) > 10


# ---------------------------------------------------------------- settings and metrics


def test_settings_in_the_pages_exist():
    from crowdtree.server.settings.model import GROUPS, SETTINGS

    named = rf"`(?:--set )?((?:{'|'.join(GROUPS)})\.[a-z_]+)\b|--set ([a-z_.]+)="
    other = {"labels.csv", "labels.withdrawn", "table.alarm", "table.revised"}
    cited = []
    for name, text in written_pages().items():
        for group, option in re.findall(named, text):
            setting = group or option
            assert setting in other or setting in SETTINGS, f"{name}: {setting}"
            cited.append(setting)
    assert len(set(cited)) > 20


def test_metrics_in_pages_and_dashboards_exist():
    from crowdtree.server.store import Store
    from crowdtree.server.web.metrics import exposition

    with Store("sqlite://").opened() as store:
        text = store.read(lambda connection: exposition(connection, 0, 0.0))
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    helps = dict(re.findall(r"^# HELP (\S+) (\S.*)$", text, re.M))
    assert set(kinds) == set(helps)
    parts = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
    known = {name + end for name, kind in kinds.items() for end in ("", *parts.get(kind, ()))}
    files = (path for path in ROOT.glob("deploy/**/*") if path.is_file() and path.suffix != ".pyc")
    pages = written_pages() | {str(path): path.read_text() for path in files}
    for name, text in pages.items():
        # in code spans, or as the expression of a panel
        for metric in re.findall(r"[`(\"](crowdtree_[a-z_]+)\b(?![/.(-])", text):
            assert metric in known, f"{name}: {metric}"


# ---------------------------------------------------------------- files


PROBLEM, LABELS, AUDITS = "Problems: tables of classes and questions", "Gold and labels", "Audits"
"""Sections of the page about files."""


def columns() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Columns and fields of all files, with the section of the page that must name them."""
    from crowdtree.core import loss
    from crowdtree.io import audits, exports, items, layouts, schema, table_reader, zooniverse
    from crowdtree.server.store.backup import Manifest

    yield LABELS, tuple(exports.COLUMNS["labels"])
    yield "Answers", (*exports.COLUMNS["answers"], *zooniverse.ZOONIVERSE)
    for what in ("log", "workers", "payments"):
        yield "Log of a campaign", tuple(exports.COLUMNS[what])
    yield "Activity", tuple(exports.COLUMNS["activity"])
    yield "Reports about items", tuple(exports.COLUMNS["reports"])
    yield "Items of a campaign", items.COLUMNS
    yield PROBLEM, (*layouts.QUESTION, *layouts.CLASS, *layouts.COMMENTS, "error", "text")
    yield PROBLEM, table_reader.SPECIAL
    yield LABELS, (*audits.ITEM, *audits.ERROR, *audits.KNOWN, "truth", "probability")
    yield AUDITS, audits.CHECK
    yield "Losses", (*loss.FIELDS, "truth")
    yield "Backups", tuple(Manifest.__annotations__)
    for section, models in {
        PROBLEM: (schema.ProblemFile, schema.ClassEntry, schema.QuestionEntry),
        "Plans": (schema.PlanFile,),
        AUDITS: (
            schema.AuditFile,
            schema.LabelEntry,
            schema.KnownEntry,
            schema.DrawEntry,
            schema.ReplacedEntry,
        ),
    }.items():
        for model in models:
            yield section, tuple(model.model_fields)


def words_of(section: str) -> set[str]:
    """Words in the code of a section of the page about files."""
    text = page("files.md").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    assert text, section
    return {word for span in code(text) for word in re.findall(r"\w+", span)}


def test_every_column_and_field_of_a_file_is_documented():
    missing = {
        (section, name)
        for section, names in columns()
        for name in names
        if name not in words_of(section)
    }
    assert sorted(missing) == []


def test_every_reason_of_a_label_is_documented():
    from crowdtree.simulation.run import REASONS

    assert set(REASONS) <= words_of(LABELS)


def test_columns_of_learned_labels_are_documented():
    answers = {"task": [1, 1, 2, 2], "worker": ["a", "b"] * 2, "label": ["x", "x", "y", "x"]}
    assert set(ct.learn(answers).label_columns()) <= words_of(LABELS)


def test_every_format_is_documented():
    from crowdtree.io import exports, interchange, items

    text = page("files.md") + page("learning.md")
    names = {name.replace("crowdkit", "crowd-kit") for name in interchange.READERS}
    wanted = {*names, *items.ITEM_FORMATS, *(f".{ending}" for ending in exports.FORMATS)}
    assert [name for name in sorted(wanted) if f"`{name}`" not in text] == []


# ---------------------------------------------------------------- environment variables


def test_environment_variables_are_documented():
    found = set()
    for folder in ("src", "benchmarks", "tests", "tools", "docs/_extension", "deploy"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in (".py", ".sh", ".yaml", ".service", ""):
                text = path.read_text(encoding="utf-8", errors="ignore")
                found |= set(re.findall(r"\bCROWD[A-Z]+_[A-Z_]*[A-Z]\b", text))
                found |= set(re.findall(r"environ(?:\.get\(|\[)\"(\w+)\"", text))
    for words in all_commands():
        found |= {str(one.envvar) for one in command(*words).params if one.envvar}
    found -= {"PATH", "PYTHONPATH", "CROWDTREE_X"}
    text = page("reference/environment.md")
    documented = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", text))
    assert sorted(found - documented) == []
    ours = {name for name in documented if name.startswith("CROWD")}
    assert sorted(ours - found) == []


# ---------------------------------------------------------------- the command line


@cache
def command(*words: str) -> Any:
    import typer.main

    from crowdtree.cli.app import app

    found = typer.main.get_command(app)
    for word in words:
        found = found.commands[word]
    return found


def all_commands(words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, made in getattr(command(*words), "commands", {}).items():
        if not made.hidden:
            yield (*words, name)
            yield from all_commands((*words, name))


def test_every_command_and_option_has_a_help_text():
    found = list(all_commands())
    assert len(found) > 25
    for words in found:
        made = command(*words)
        assert made.help, words
        silent = [
            parameter.name
            for parameter in made.params
            if not (parameter.help or getattr(parameter, "hidden", False))
        ]
        assert not silent, words


def test_every_verb_is_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    verbs = {words[0] for words in all_commands()} - {"help"}
    assert [verb for verb in sorted(verbs) if f"| `{verb}` |" not in text] == []


def test_commands_in_the_pages_exist_with_their_options():
    cited = 0
    for name, text in written_pages().items():
        for words in commands(text):
            if words == ["help", "VERB"]:
                continue
            words = words[words[0] == "help" :]
            verbs: list[str] = []
            while len(verbs) < len(words) and words[len(verbs)] in getattr(
                command(*verbs), "commands", {}
            ):
                verbs.append(words[len(verbs)])
            made = [command(*verbs)]
            if words[len(verbs) : len(verbs) + 1] == ["..."]:  # any verb of a group
                made += getattr(made[0], "commands", {}).values()
            where = f"{name}: crowdtree {' '.join(words)}"
            assert verbs or words[0].startswith("-"), where
            named = {
                option
                for one in made
                for parameter in one.params
                for option in (*parameter.opts, *parameter.secondary_opts)
            } | {"--help", "-V", "--version"}
            given = {re.split("[=|]", word)[0] for word in words if re.match("--?[a-z]", word)}
            assert given <= named, where
            cited += 1
    assert cited > 100


# ---------------------------------------------------------------- Python


def test_every_public_name_has_a_text_and_an_example():
    silent = []
    for name in ct.__all__:
        value = getattr(ct, name)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        parts = vars(value).values() if inspect.isclass(value) else ()
        texts = [inspect.getdoc(part) or "" for part in (value, *parts)]
        if len(texts[0]) < 20 or not any(">>>" in text for text in texts):
            silent.append(name)
    assert not silent


def test_every_public_method_has_a_text():
    silent = [
        f"{name}.{part}"
        for name in ct.__all__
        if inspect.isclass(made := getattr(ct, name))
        for part, value in vars(made).items()
        if not part.startswith("_")
        and (inspect.isroutine(value) or isinstance(value, property))
        and not inspect.getdoc(value)
    ]
    assert not silent


def test_public_names_in_the_pages_exist():
    cited = 0
    for name, text in written_pages().items():
        for line in code(text):
            for attribute in re.findall(r"\bct\.([A-Za-z_]\w*)", line):
                assert hasattr(ct, attribute), f"{name}: ct.{attribute}"
                cited += 1
    assert cited > 100


def test_names_in_the_docs_exist():
    """Modules and functions that the pages name in full can be imported."""
    named = {
        (where, name)
        for where, text in written_pages().items()
        if not where.endswith(("mutation.md", "CHANGELOG.md"))  # mutants, and names that are gone
        for name in re.findall(r"`(crowdtree(?:\.\w+)+)", text)
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


# ---------------------------------------------------------------- files and pictures


def test_files_and_programs_in_the_pages_exist():
    made = set((ROOT / ".gitignore").read_text().split())  # by users, or by the build
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    cited = 0
    for name, text in written_pages().items():
        if name == "CHANGELOG.md":
            continue
        for line in code(text):
            for path in re.findall(rf"(?<![\w/.-]){CITED}", line):
                wild = path.replace("NAME", "*")
                assert path in made or list(ROOT.glob(wild)), f"{name}: {path}"
                cited += 1
            for module in re.findall(r"python -m benchmarks\.([a-z_]+)", line):
                assert (ROOT / "benchmarks" / f"{module}.py").exists(), f"{name}: {module}"
            for target in re.findall(r"^(?:\$ )?make ([a-z-]+)", line):
                assert target in targets, f"{name}: make {target}"
    assert cited > 30


def test_links_of_the_pages_lead_somewhere():
    made = {ROOT / "docs" / "reference" / f"{name}.md" for name in GENERATED}
    for name, text in written_pages().items():
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            there = ((ROOT / name).parent / target).resolve()
            assert there.exists() or there in made, f"{name}: {target}"


def test_tests_in_the_pages_exist():
    defined = set()
    for path in (ROOT / "tests").rglob("*.py"):
        defined |= set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M))
        defined.add(path.stem)
    for name, text in written_pages().items():
        for span in code(text):
            for test in re.findall(r"\btest_\w+", span):
                assert test in defined, f"{name}: {test}"


def test_pictures_in_the_pages_are_described():
    for name, text in written_pages().items():
        pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", text)
        assert [path for words, path in pictures if len(words.split()) < 3] == [], name


def reference() -> Any:
    """The module that writes the generated pages."""
    place = ROOT / "docs" / "_extension" / "reference.py"
    spec = importlib.util.spec_from_file_location("docs_reference", place)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
