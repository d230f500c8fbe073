"""Write the reference pages from the code: API, commands, HTTP, settings and metrics."""

from __future__ import annotations

import html
import importlib
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parent.parent / "reference"
GENERATED = ("python", "commands", "http", "settings", "metrics", "texts")


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("builder-inited", lambda _: write_pages())
    app.connect("doctree-read", lambda app, tree: describe_pictures(tree, Path(app.srcdir)))
    app.connect("doctree-read", lambda _, tree: show_commands(tree))
    app.connect("autodoc-process-signature", lambda *given: _short_aliases(*given[-2:]))
    app.connect("autodoc-process-docstring", _keep_first_line, priority=400)
    return {"parallel_read_safe": True}


def describe_pictures(tree: Any, folder: Path) -> None:
    """Give pictures that a page computes a text: the heading above them, and what they show."""
    from docutils import nodes

    for picture in tree.findall(nodes.image):
        if picture.get("alt"):
            continue
        section = next((node for node in _ancestors(picture) if node.tagname == "section"), tree)
        heading = next(iter(section.findall(nodes.title)), None)
        shown = _shown(folder / picture["uri"].lstrip("/"))
        picture["alt"] = ": ".join(filter(None, (heading and heading.astext(), shown)))


def show_commands(tree: Any) -> None:
    """Show the commands that a page runs as one types them, without the mark of a notebook."""
    from docutils import nodes

    for block in tree.findall(nodes.literal_block):
        lines = block.astext().split("\n")
        if all(line.startswith("!") for line in lines):
            text = "\n".join(line.removeprefix("!") for line in lines)
            block.replace_self(nodes.literal_block(text, text, language="sh"))


def _ancestors(node: Any) -> Iterator[Any]:
    while node := node.parent:
        yield node


def _shown(path: Path) -> str:
    """Title of a drawing, or the axes of a chart."""
    if path.suffix != ".svg" or not path.exists():
        return ""
    text = path.read_text(encoding="utf-8")
    if title := re.search(r"<title>([^<]+)", text):
        return html.unescape(title[1]).strip()
    axes = dict(re.findall(r"aria-label=\"([XY])-axis titled '([^'\"]+)'", text)[:2])
    return "a chart of " + " over ".join(axes[name] for name in "YX" if name in axes)


def _keep_first_line(*given: Any) -> None:
    """Keep napoleon, which runs later, from reading a property's "Share: of ..." as its type."""
    what, lines = given[1], given[-1]
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment


def _short_aliases(*parts: str | None) -> tuple[str | None, ...]:
    """Name type aliases in unions, which Sphinx writes as ``TypeAliasForwardRef('ArrayLike')``."""
    return tuple(part and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", part) for part in parts)


def write_pages(folder: Path = PAGES) -> None:
    """Write every generated page; unchanged ones are left alone."""
    makers = {
        "python": python_page,
        "commands": commands_page,
        "http": http_page,
        "settings": settings_page,
        "metrics": metrics_page,
        "texts": texts_page,
    }
    folder.mkdir(exist_ok=True)
    for name, make in makers.items():
        text = "\n".join(make()) + "\n"
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


GROUPS = {
    "Problems and files": (
        "Problem", "example", "load_problem", "load", "save", "check", "Checkup",
    ),
    "Plan": ("plan", "PlanChoices"),
    "Design": (
        "design", "Tree", "core.tree.Node", "core.tree.Level", "core.tree.Certificate", "verify",
        "staff", "Plan", "evaluate", "Evaluation", "core.evaluation.Bounds", "frontier", "Frontier",
        "designs.frontiers.Point", "plurality_error",
    ),
    "Ask adaptively": (
        "AdaptivePolicy", "PlanPolicy", "BatchPolicy", "SubtypePolicy", "Calibration", "explain",
        "Trace", "tune_target", "Monitor", "policies.monitor.Revision",
    ),
    "Simulate": (
        "simulate", "Run", "Crowd", "Recorded", "sweep", "compare_policies",
        "simulation.compare.Comparison",
    ),
    "Learn from answers": (
        "learn", "Learned", "learning.judging.Accuracy", "plan_pilot", "CrowdClassifier",
        "CrowdLabeller", "Opinions", "opinions_of", "load_opinions",
    ),
    "Judge models": (
        "judge", "Judgement", "learning.judges.result.ModelScore", "learning.judges.result.Verdict",
        "learning.judges.result.PersonTest", "learning.judges.result.Together",
    ),
    "Audit": ("Audit", "plan_audit", "load_audit", "verify_audit"),
    "The paper": (
        "paper.reproduce", "paper.fc_printed", "paper.find_errata", "paper.fig_1_tree",
        "paper.table_1", "paper.all_trees",
    ),
    "Reports, errors and the rest": (),
}  # fmt: skip
"""Public names by what they are for, and the types of their parts; the rest comes last."""


def python_page() -> Iterator[str]:
    """Every public name, by what it is for."""
    import crowdtree

    yield "# Python API\n"
    yield "`import crowdtree as ct`. Results share `to_frame`, `save`, `draw` and `plot`; see"
    yield "[Python and notebooks](../python.md).\n"
    grouped = {name for names in GROUPS.values() for name in names} | {"paper"}
    rest = tuple(name for name in crowdtree.__all__ if name not in grouped)
    for title, names in GROUPS.items():
        yield f"## {title}\n"
        for name in names or rest:
            yield from _documented(name)


def _documented(name: str) -> Iterator[str]:
    module, _, last = f"crowdtree.{name}".rpartition(".")
    value = getattr(importlib.import_module(module), last)
    kind = "class" if inspect.isclass(value) else "function"
    yield f"```{{eval-rst}}\n.. auto{kind}:: crowdtree.{name}"
    if kind == "class":
        mixins = any(base.__module__ == "crowdtree.core.result_methods" for base in value.__mro__)
        yield "   :members:"
        yield (
            "   :inherited-members: tuple, float, str, object"
            if mixins
            else "   :exclude-members: set_score_request"
        )
    yield "```\n"


SHARED = 3
"""Commands from which on an option with one meaning is explained once."""


def commands_page() -> Iterator[str]:
    """Every command with its arguments and options."""
    import typer.main

    from crowdtree.cli.app import app

    top = typer.main.get_command(app)
    count = Counter(row for command in _commands(top) for row in _parameters(command))
    often = [row for row, times in count.items() if times >= SHARED and "-" in row[0]]
    names = Counter(row[0] for row in often)
    shared = {row for row in often if names[row[0]] == 1}
    yield "# Commands\n"
    yield "Every command takes `--help`. Mistakes are reported in one line, with exit code 2.\n"
    yield from _command(top, "crowdtree", 1, shared)
    yield "## Options of several commands\n"
    yield "The commands above name these options only.\n"
    yield from _table(("option", "meaning", "default"), sorted(shared))


def _commands(command: Any) -> Iterator[Any]:
    yield command
    for child in getattr(command, "commands", {}).values():
        if not child.hidden:
            yield from _commands(child)


def _parameters(command: Any) -> list[tuple[str, str, str]]:
    return [row for parameter in command.params if (row := _parameter(parameter))]


def _command(
    command: Any, name: str, level: int, shared: set[tuple[str, str, str]]
) -> Iterator[str]:
    if level > 1:
        yield f"{'#' * level} {name}\n"
    yield _prose(command.help or "") + "\n"
    rows = _parameters(command)
    own = [row for row in rows if row not in shared]
    if own:
        yield from _table(("option", "meaning", "default"), own)
    also = [row[0] for row in rows if row in shared]
    if also:
        yield f"[Also](#options-of-several-commands): {', '.join(also)}.\n"
    if command.epilog:
        yield f"```\n{_plain(command.epilog)}\n```\n"
    for child, made in getattr(command, "commands", {}).items():
        if not made.hidden:
            yield from _command(made, f"{name} {child}", level + 1, shared)


def _parameter(parameter: Any) -> tuple[str, str, str] | None:
    if getattr(parameter, "hidden", False):
        return None
    argument = parameter.param_type_name == "argument"
    name = (parameter.metavar or parameter.name).upper()
    names = name if argument else ", ".join([*parameter.opts, *parameter.secondary_opts])
    default = parameter.default
    if callable(default) or default in (None, (), [], False, ""):
        default = ""
    return f"`{names}`", _plain(parameter.help or ""), f"`{default}`" if default != "" else ""


def http_page() -> Iterator[str]:
    """Every route of the HTTP interface, from its OpenAPI description."""
    from crowdtree.server.store import Store
    from crowdtree.server.web.app import create_app
    from crowdtree.server.web.handlers import owner_roles

    with Store("sqlite://").opened() as store:
        described = create_app(store).openapi()
    yield "# HTTP interface\n"
    yield "Generated from the OpenAPI description, which a running server has at"
    yield "`/api/openapi.json`. The [role](../howto/people.md) is the least that an owner needs;"
    yield "routes without one are for workers, auditors or everybody"
    yield "([Security](../security.md)).\n"
    yield "*Takes* lists query parameters, or fields of the JSON body. Those with `=` are optional;"
    yield "the default follows.\n"
    roles, rows = owner_roles(), []
    for path, calls in sorted(described["paths"].items()):
        for method, call in calls.items():
            taken = _taken(described, call)
            text = _plain(call.get("description", "")) + (f" *Takes* {taken}." if taken else "")
            route = f"{method.upper()} {path}"
            rows.append((f"`{route}`", roles.get(route, ""), text))
    yield from _table(("route", "least role", "what it does"), rows)


def _taken(described: dict[str, Any], call: dict[str, Any]) -> str:
    """Query parameters of a call and the fields of its body, with their defaults."""
    taken = [
        _named(given["name"], given["schema"], given.get("required", False))
        for given in call.get("parameters", [])
        if given["in"] == "query"
    ]
    content = call.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    model = described["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
    taken += [
        _named(name, field, name in model.get("required", ()))
        for name, field in model.get("properties", {}).items()
    ]
    return ", ".join(taken) or " or ".join(
        f"`{kind}`" for kind in content if kind != "application/json"
    )


def _named(name: str, schema: dict[str, Any], required: bool) -> str:
    return f"`{name}`" if required else f"`{name}={json.dumps(schema.get('default'))}`"


def texts_page() -> Iterator[str]:
    """Every text of the worker page."""
    from crowdtree.server.languages import CLASS, EXPLANATION, OWN, QUESTION, catalogues

    found = catalogues()
    yield "# Texts of the worker page\n"
    names = ", ".join(f"`{code}` {made.name}" for code, made in found.items())
    yield f"The languages are {names}. The setting `tasks.texts` replaces texts by language and key"
    yield "([Languages, consent and training](../howto/languages.md)). Other keys are"
    yield ", ".join(f"`{key}`" for key in OWN) + f", `{QUESTION}NAME` for the question NAME,"
    yield f"`{CLASS}NAME` for what people read instead of the class NAME, and `{EXPLANATION}NAME`"
    yield "for its explanation."
    yield "Names in braces stand for what the page fills in. A text with several forms depends on"
    yield "`count`; one text replaces all of its forms.\n"
    rows = []
    for key, text in found["en"].texts.items():
        forms = [text] if isinstance(text, str) else list(dict.fromkeys(text.values()))
        rows.append((f"`{key}`", " / ".join(forms)))
    yield from _table(("key", "English"), rows)


def settings_page() -> Iterator[str]:
    """Every setting of a campaign, by group."""
    from crowdtree.server.settings.model import GROUPS, SETTINGS, about
    from crowdtree.server.settings.presets import PRESETS

    yield "# Settings of a campaign\n"
    yield "Set them by `crowdtree campaign create ... --set GROUP.NAME=VALUE`, on the page"
    yield "*Links and settings* or over HTTP, where each group is an object:"
    yield '`{"money": {"price": 0.05}}`.\n'
    yield "Start from who will answer: `--who NAME`, or the field `who` over HTTP. It decides:\n"
    names = PRESETS["open"].changes
    rows = [
        (f"`{name}`", *(f"`{json.dumps(preset.changes[name])}`" for preset in PRESETS.values()))
        for name in names
    ]
    yield from _table(("setting", *(f"`{who}`" for who in PRESETS)), rows)
    yield ""
    for who, preset in PRESETS.items():
        yield f"- `{who}`: {preset.title}. {preset.text}"
    yield ""
    for group, model in GROUPS.items():
        described = model.model_json_schema()["properties"]
        yield f"## `{group}`: {model.__doc__}\n"
        rows = []
        for short, schema in described.items():
            name = f"{group}.{short}"
            text = f"{schema['title']}. {schema['description']}"
            costs = about(name).costs.replace(" {}", "")
            default = f"`{json.dumps(SETTINGS[name].default)}`"
            rows.append((f"`{name}`", text, costs, default, _limits(schema)))
        yield from _table(("setting", "meaning", "what it costs", "default", "values"), rows)
        yield ""


def _limits(schema: dict[str, Any]) -> str:
    """Say which values a JSON schema allows."""
    if "anyOf" in schema:
        return " or ".join(_limits(choice) for choice in schema["anyOf"])
    words = {"null": "none", "boolean": "true or false", "object": "texts by question"}
    kind = schema.get("type", "")
    low, high = (
        next((schema[key] for key in keys if key in schema), None)
        for keys in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    )
    if kind == "string":
        return (
            f"text of at most {schema['maxLength']:,} characters"
            if "maxLength" in schema
            else "text"
        )
    if low is not None and high is not None:
        return f"{low:,} to {high:,}"
    return f"{low:,} or more" if low is not None else words.get(kind, kind)


def metrics_page() -> Iterator[str]:
    """Every metric of a server."""
    from crowdtree.server.store import Store
    from crowdtree.server.web.metrics import exposition

    yield "# Metrics\n"
    yield "A server writes them at `/metrics` in the text format of Prometheus.\n"
    with Store("sqlite://").opened() as store:
        text = store.read(lambda connection: exposition(connection, 0, 0.0))
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.M))
    kinds = dict(re.findall(r"^# TYPE (\S+) (.*)$", text, re.M))
    yield from _table(
        ("metric", "kind", "meaning"), [(f"`{n}`", kinds[n], words) for n, words in helps.items()]
    )


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def _plain(text: str) -> str:
    """One line of text without the marks of reStructuredText."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text.replace("``", "`").replace("\b", ""))
    return " ".join(text.split())


def _prose(text: str) -> str:
    """Paragraphs; lines of examples become a block."""
    parts = [_plain(part) for part in text.split("\n\n")]
    made: list[str] = []
    for part in parts:
        if not part.startswith("crowdtree "):
            made.append(part)
        elif made and made[-1].startswith("```"):
            made[-1] = made[-1].removesuffix("```") + part + "\n```"
        else:
            made.append(f"```\n{part}\n```")
    return "\n\n".join(made)
