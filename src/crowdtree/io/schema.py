"""The schemas of YAML and JSON files. Imported on use: pydantic takes a while to load.

Cells are left to :mod:`crowdtree.io.documents`, which reads millions of them quickly.
"""

from __future__ import annotations

from math import isnan
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from crowdtree.core.errors import CrowdtreeError, one_line, squeeze
from crowdtree.core.votes import Vote
from crowdtree.io.cells import cell_number

Text = Annotated[str, Field(strict=True)]
Number = Annotated[float, Field(strict=True)]


def _share(value: Any) -> Any:
    """Read a percentage as a share; leave everything else to the schema."""
    if isinstance(value, str) and value.rstrip().endswith("%"):
        share = cell_number(value)
        return value if isnan(share) else share
    return value


Share = Annotated[float, BeforeValidator(_share), Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
Cells = list[Any] | dict[Any, Any]
VERSION = 1
"""Of the files that are read and written."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ClassEntry(_Entry):
    """A class; a prior is given for all of them or for none."""

    name: Text
    prior: Share | None = None
    description: Text = ""
    unsure: Share | None = None
    notes: Any = None


class QuestionEntry(_Entry):
    """A question; cells in the order of the classes, or by their names."""

    name: Text
    text: Text = ""
    answers: list[Text] | None = None
    error: Share | Cells | None = None
    confusion: Cells | None = None
    table: Cells | None = None
    unsure: Share | Cells | None = None
    outcome: Cells
    notes: Any = None


class SourceEntry(_Entry):
    """A source of answers; errors one for all questions, per question or per cell."""

    name: Text
    kind: Literal["people", "expert", "model"] = "people"
    price: Number = 1.0
    worker_error: Share | Cells | None = None
    error_factor: Number = 1.0
    confusion: dict[Any, Any] | None = None
    table: Cells | None = None
    unsure: Share | Cells | None = None
    dependence: Share | None = None
    repeatable: Flag | None = None
    most_per_item: Count | None = None
    refers: Flag = False
    notes: Any = None


class SourcesFile(_Entry):
    """Sources of answers, in a file of their own."""

    sources: list[SourceEntry | Text] | None = None
    source_dependence: Share | None = None
    notes: Any = None


class ProblemFile(_Entry):
    """A problem."""

    crowdtree: Literal[1] = 1
    kind: Literal["problem"] = "problem"
    dash: Literal["inapplicable", "either"] = "inapplicable"
    dependence: float = 0.0
    loss: list[Any] | dict[Any, Any] | None = None
    sources: list[SourceEntry | Text] | None = None
    source_dependence: Share | None = None
    worker_error: Share | None = None
    unsure: Share | None = None
    notes: Any = None
    classes: list[ClassEntry | Text]
    questions: list[QuestionEntry]


class CertificateEntry(_Entry):
    """What is proven about a tree."""

    objective: Text
    value: float
    lower_bound: float
    gap: float
    status: Text
    nodes: int


class PlanFile(_Entry):
    """A plan, or a tree, which is a plan of one vote each."""

    crowdtree: Literal[1]
    kind: Literal["plan"]
    design: Text = "given"
    method: Text = "given"
    vote: Vote = "majority"
    pool: Literal["node", "question"] = "node"
    certificate: CertificateEntry | None = None
    problem: dict[Any, Any] | None = None
    tree: dict[Any, Any] | None = None
    nodes: list[dict[Any, Any]] | None = None


class LabelEntry(_Entry):
    """A label with its stated error."""

    item: Text
    label: Text
    error: Number
    risk: Number | None = None


class KnownEntry(_Entry):
    """An item whose truth was known before the audit."""

    item: Text
    truth: Text


class LossEntry(_Entry):
    """What mistakes cost: one row per true class, one column per label."""

    classes: list[Text]
    matrix: list[list[Number]]


class ReplacedEntry(_Entry):
    """A result that was replaced after so many draws."""

    draws: Count
    right: Flag
    truth: Text | None
    by: list[Text]


class DrawEntry(_Entry):
    """An item that was drawn after so many results, and what was found."""

    item: Text
    after: Count
    right: Flag | None
    truth: Text | None
    by: list[Text]
    replaced: list[ReplacedEntry] = []


class AuditFile(_Entry):
    """The certificate of an audit."""

    crowdtree: Literal[1]
    kind: Literal["audit"]
    confidence: Number
    planned: Count
    bound: Number | None
    seed: Count
    labels_digest: Text
    claims: dict[str, Any]
    draws: list[DrawEntry]
    known: list[KnownEntry]
    correct: bool = False
    loss: LossEntry | None = None
    loss_bound: Number | None = None
    labels: list[LabelEntry]
    digest: Text
    signature: Text | None = None


Model = TypeVar("Model", bound=BaseModel)


def check(model: type[Model], data: Any, source: str) -> Model:
    """Check data against a schema; report the first error with its position, on one line.

    >>> check(ClassEntry, {"name": "a", "prio": 1}, "birds.yaml: classes[0]")
    Traceback (most recent call last):
        ...
    crowdtree.CrowdtreeError: birds.yaml: classes[0]: prio: no such field; use one of name,
    prior, description, unsure, notes
    """
    if not isinstance(data, dict):
        needed = [name for name, field in model.model_fields.items() if field.is_required()]
        raise CrowdtreeError(
            f"{source}: expected fields ({', '.join(needed)}), "
            f"got {'nothing' if data is None else one_line(data)}"
        )
    _refuse_newer(data.get("crowdtree"), source)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        faults = error.errors(include_url=False)
    # for a union report the deepest error
    first = max(
        faults, key=lambda fault: (fault["loc"][:2] == faults[0]["loc"][:2], len(fault["loc"]))
    )
    raise CrowdtreeError(f"{source}: {_place(first['loc'])}: {_fault(model, first)}")


def _refuse_newer(version: Any, source: str) -> None:
    """Raise for a file of a later version, whose fields would only look like mistakes."""
    if isinstance(version, int) and version > VERSION:
        raise CrowdtreeError(
            f"{source}: was written by a newer crowdtree (file version {version}, this one reads "
            f"{VERSION}); install the current crowdtree, or save the file with the older one"
        )


CHOICES = ("ClassEntry", "SourceEntry", "float", "str", "constrained-str")


def _place(loc: tuple[int | str, ...]) -> str:
    """Write a place as ``questions[3].error``; drop pydantic's names of the choices in a union."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "[" not in part and part not in CHOICES:
            text += f".{part}"
    return squeeze(text.lstrip("."))[:80]


ENTRIES = ("classes", "questions", "sources")
"""Fields that are lists of entries with a name."""


def _fault(model: type[BaseModel], fault: Any) -> str:
    kind, value = fault["type"], fault["input"]
    if kind == "extra_forbidden":
        inner: dict[str, type[BaseModel]] = {
            "classes": ClassEntry,
            "questions": QuestionEntry,
            "sources": SourceEntry,
            "certificate": CertificateEntry,
            "draws": DrawEntry,
            "known": KnownEntry,
            "labels": LabelEntry,
        }
        known: type[BaseModel] = (
            inner.get(str(fault["loc"][0]), model) if len(fault["loc"]) > 1 else model
        )
        return f"no such field; use one of {', '.join(known.model_fields)}"
    if kind == "missing":
        return "is missing; add it"
    if kind == "string_type":
        return f"expected text, got {one_line(value)}; put it in quotes"
    if kind == "bool_type":
        return f"expected true or false, got {one_line(value)}"
    if kind in ("float_type", "int_type"):
        return f"expected a number, got {one_line(value)}"
    if kind == "list_type" and isinstance(value, dict) and fault["loc"][-1] in ENTRIES:
        return "expected a list, got fields; write one entry per line, such as - {name: ..., ...}"
    if kind == "list_type":
        return f"expected a list, got {one_line(value)}"
    if kind == "literal_error":
        return f"expected {fault['ctx']['expected']}, got {one_line(value)}"
    if kind == "model_type" and isinstance(value, bool):  # YAML reads a bare no as false
        return f"expected a name, got {one_line(value)}; put names such as yes and no in quotes"
    if kind == "model_type":
        return f"expected fields, got {one_line(value)}"
    return f"{squeeze(fault['msg'])}, got {one_line(value)}"
