"""Save results to files, and load any of them back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crowdtree.audit import Audit
from crowdtree.audit.records import Labels
from crowdtree.core.checking import check_call, check_options, got
from crowdtree.core.columns import read_parquet
from crowdtree.core.errors import CrowdtreeError, CrowdtreeWarning, listing, squeeze
from crowdtree.core.evaluation import Evaluation, evaluate
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.problem import Problem
from crowdtree.core.reading import Source, has_content, open_source, separator_of
from crowdtree.core.tree import Tree
from crowdtree.designs.frontiers import Frontier, Point
from crowdtree.designs.frontiers.vote_options import Options
from crowdtree.io import load_problem, save_problem
from crowdtree.io.audits import load_audit, load_labels, save_audit, save_labels
from crowdtree.io.documents import problem_from_dict, problem_to_dict
from crowdtree.io.formats import DOCUMENTS, ending_of, is_delta
from crowdtree.io.interchange import load_answers, write_crowdkit
from crowdtree.io.plans import (
    check_plan_ending,
    load_plan,
    plan_from_dict,
    plan_to_dict,
    save_plan,
)
from crowdtree.io.yaml_json import parse_document, write_document
from crowdtree.io.zooniverse import ZOONIVERSE
from crowdtree.learning.model import Learned
from crowdtree.planning import PlanChoices
from crowdtree.policies import POLICIES, policy_from_dict
from crowdtree.policies.monitor import Alarm, Finding, Revision
from crowdtree.simulation.run import Adaptation, Run

Document = dict[str, Any]


Kind = Literal["problem", "answers", "labels"]


def save(result: Any, path: str | os.PathLike[str], *, key: bytes | None = None) -> Path:
    """Save a result; :func:`load` reads it back, and what it reads equals what was saved.

    Parameters
    ----------
    result
        A problem (``.csv``, ``.xlsx``, ``.yaml`` or ``.json``), labels or a frame of answers
        (``.csv``), or a tree, plan, frontier, policy, simulation, audit or learned result
        (``.json``).
    path
        Where to write.
    key
        A secret to sign an audit with. An audit that is signed stays signed.

    Examples
    --------
    >>> import crowdtree as ct, pathlib, tempfile
    >>> tree = ct.design(ct.example("table1"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ct.load(ct.save(tree, pathlib.Path(folder, "tree.json"))) == tree
    True
    """
    check_call(save, locals())
    if key is not None and not isinstance(result, Audit):
        raise CrowdtreeError(f"key: only audits are signed, got {got(result)}")
    if isinstance(result, Problem):
        save_problem(result, path)
    elif isinstance(result, Audit):
        save_audit(result, path, key=key)
    elif isinstance(result, Plan):
        save_plan(result, path)
    elif isinstance(result, Labels):
        save_labels(result, path)
    elif hasattr(result, "columns"):
        write_crowdkit(result, path)
    else:
        document = document_of(result)
        check_plan_ending(path, "a result")
        write_document(Path(path), {"crowdtree": 1} | document)
    return Path(path)


def load(source: Any, kind: Kind | None = None, *, name: str | None = None, **options: Any) -> Any:
    """Load any file: what a ``save`` wrote, and tables of classes, answers or labels.

    Parameters
    ----------
    source
        The path of a file, its bytes, a binary stream, or a data frame.
    kind
        What a table holds: ``"problem"`` (classes and questions), ``"answers"`` or ``"labels"``
        with their stated errors; by default it is recognised by its columns.
    name
        File name of bytes or of a stream that has none.
    options
        Options of the reader: those of :func:`crowdtree.load_problem` for a problem; for answers
        `columns` (``{"task": "ticket"}``), `workers` (columns of a wide table) and `form`
        (``"crowdkit"``, ``"label-studio"``, ``"zooniverse"``, ``"json"``, ``"wide"``); `key` for
        a signed audit, and ``problem`` for a plan whose errors have been learned since.

    Returns
    -------
    object
        What was saved; columns of ``task, worker, label`` for answers; for labels their items,
        labels and errors, as in ``Audit(*load("labels.csv"))``.

    Examples
    --------
    >>> import crowdtree as ct, pathlib, tempfile
    >>> front = ct.frontier(ct.example("table1"), max_votes=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = front.save(pathlib.Path(folder, "front.json"))
    ...     ct.load(path) == front
    True
    >>> ct.load(b"task,worker,label\\n1,ann,cat\\n", name="answers.csv").rows()
    [('1', 'ann', 'cat')]
    """
    check_call(load, locals())
    file = open_source(source, name) if has_content(source) else source
    if kind is None and {"columns", "workers", "form"} & options.keys():
        kind = "answers"
    kind = kind or _recognise(file)
    if kind is not None:
        reader = _TABLES[kind]
        check_options(f"load: {kind}", reader, options)
        return reader(file, **options)
    data = parse_document(file)
    return _from_document(data, file, options)


def _recognise(file: Any) -> Kind | None:
    """What a table holds, by its columns; ``None`` for a document with its own kind."""
    if not isinstance(file, Source):
        if hasattr(file, "label_columns"):  # what learn(...) returned
            return "labels"
        names = file if isinstance(file, Mapping) else getattr(file, "columns", ())
    elif file.name.lower().endswith((".parquet", ".pq")):
        frame = read_parquet(file)
        names = getattr(frame, "column_names", None) or frame.columns  # of pyarrow, or polars
    elif file.name.lower().endswith(".xlsx") or (file.path and is_delta(file.path)):
        return "problem"
    else:
        file.check()
        head = file.head().decode("utf-8-sig", errors="replace").lstrip()
        first = head.partition("\n")[0]
        if head.startswith("["):  # Label Studio, or a list of labels
            return "answers" if '"annotations"' in head or '"completions"' in head else "labels"
        if file.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson")):
            return "labels"
        if ending_of(file.name) in DOCUMENTS:
            return None
        names = first.split(separator_of(first))
    words = {str(name).strip(' "\r').casefold() for name in names}
    if words >= {"task", "worker", "label"} or words >= ZOONIVERSE:
        return "answers"
    return "labels" if words & {"task", "item"} and "label" in words else "problem"


_TABLES: Mapping[str, Callable[..., Any]] = {
    "problem": load_problem,
    "answers": load_answers,
    "labels": load_labels,
}


NOUNS = {"choices": "plan", "learned": "result of learn", "run": "simulation"}
"""Kinds of documents in messages, if not by their own name."""


def _from_document(data: Any, file: Source, options: Mapping[str, Any]) -> Any:
    kind = data.get("kind", "problem") if isinstance(data, dict) else "problem"
    if isinstance(data, dict) and ("tree" in data or "nodes" in data or "question" in data):
        kind = data.get("kind", "plan")
    readers: dict[str, Callable[..., Any]] = {
        "audit": load_audit,
        "plan": load_plan,
        "problem": load_problem,
    }
    if kind in readers:
        check_options(f"load: {kind}", readers[kind], options)
        return readers[kind](file, **options)
    if kind not in _READERS:
        known = listing([*readers, *_READERS])
        raise CrowdtreeError(f"{file.name}: kind: expected one of {known}, got {kind!r:.40}")
    noun = NOUNS.get(kind, kind)
    if options:
        raise CrowdtreeError(f"load: a {noun} takes no options, got {listing(options)}")
    try:
        return _READERS[kind](data, file.name)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else squeeze(error)
        raise CrowdtreeError(
            f"{file.name}: holds a damaged {noun} ({why}); write it again"
        ) from None


@singledispatch
def document_of(result: Any) -> Document:
    """Data of a result, with its kind."""
    raise CrowdtreeError(f"result: expected what crowdtree returned, got {got(result)}")


@document_of.register
def _tree(tree: Tree) -> Document:
    return plan_to_dict(tree) | {"kind": "tree"}


@document_of.register
def _evaluation(value: Evaluation) -> Document:
    if value.uncertainty is not None:
        raise CrowdtreeError("save: save what was learned and the plan, and evaluate them again")
    return plan_to_dict(value.plan) | {"kind": "evaluation"}


@document_of.register
def _frontier(front: Frontier) -> Document:
    return {
        "kind": "frontier",
        "problem": problem_to_dict(front.options.problem),
        "vote": front.vote,
        "max_votes": front.max_votes,
        "price": front.options.price.tolist(),
        "gap": front.gap,
        "status": front.status,
        "points": [_point(point) for point in front],
        "supported": [_point(point) for point in front.supported],
    }


def _point(point: Point) -> Document:
    return {"gap": repr(point.gap), "status": point.status, "plan": point.plan.to_dict()}


def _read_frontier(data: Mapping[str, Any], source: str) -> Frontier:
    problem = problem_from_dict(data["problem"], f"{source}: problem")
    price = np.array(data["price"], dtype=np.float64)
    options = Options.of(problem, data["vote"], data["max_votes"], price)
    points, supported = (
        tuple(
            Point(Plan.from_dict(problem, row["plan"]), price, float(row["gap"]), row["status"])
            for row in data[part]
        )
        for part in ("points", "supported")
    )
    return Frontier(points, options, supported, data["gap"], data["status"])


@document_of.register
def _choices(choices: PlanChoices) -> Document:
    return {"kind": "choices", "problem": problem_to_dict(choices.problem), **choices.to_dict()}


def _read_choices(data: Mapping[str, Any], source: str) -> PlanChoices:
    return PlanChoices.from_dict(problem_from_dict(data["problem"], f"{source}: problem"), data)


def _policy(policy: Any) -> Document:
    return {
        "kind": "policy",
        "problem": problem_to_dict(policy.problem),
        "settings": policy.to_dict(),
    }


for _kind in POLICIES.values():
    document_of.register(_kind, _policy)


def _read_policy(data: Mapping[str, Any], source: str) -> Any:
    problem = problem_from_dict(data["problem"], f"{source}: problem")
    return policy_from_dict(problem, data["settings"])


_ARRAYS = ("truth_index", "label_index", "answers", "posterior_error", "reason", "asked")


@document_of.register
def _run(run: Run) -> Document:
    return {
        "kind": "run",
        "problem": problem_to_dict(run.problem),
        **{name: getattr(run, name).tolist() for name in _ARRAYS},
        "types": {name: str(getattr(run, name).dtype) for name in _ARRAYS},
        **({} if run.stated_loss is None else {"stated_loss": run.stated_loss.tolist()}),
        "adaptation": None if run.adaptation is None else run.adaptation.to_dict(),
    }


def _read_run(data: Mapping[str, Any], source: str) -> Run:
    kept = data["adaptation"]
    adaptation = None
    if kept is not None:
        adaptation = Adaptation(
            tuple(Alarm(**alarm) for alarm in kept["alarms"]),
            tuple(Revision.from_dict(revision) for revision in kept["revisions"]),
            kept["reopened"],
            kept["evidence"],
            tuple(Finding(**{n: row[n] for n in Finding._fields}) for row in kept["findings"]),
        )
    return Run(
        problem_from_dict(data["problem"], f"{source}: problem"),
        **{name: np.array(data[name], dtype=data["types"][name]) for name in _ARRAYS},
        adaptation=adaptation,
        stated_loss=np.array(data["stated_loss"]) if "stated_loss" in data else None,
    )


@document_of.register
def _learned(learned: Learned) -> Document:
    """Answers, known classes and options: what was learned is learned again, in seconds."""
    if learned.updated:
        raise CrowdtreeError(
            "save: expected a result without updates; learn from all answers, then save"
        )
    if learned.gold_weight is not None:
        raise CrowdtreeError(
            "save: learned with the checks of an audit; save the answers and the audit instead"
        )
    a, options = learned.answers, dict(learned.refit.keywords)
    problem = options.pop("problem", None)
    said = a.label_column()
    return {
        "kind": "learned",
        "answers": {
            "task": a.tasks.tolist(),
            "worker": a.workers.tolist(),
            "question": list(a.questions),
            "label": list(said.names),
            "start": a.start.tolist(),
            "workers": a.worker.tolist(),
            "labels": said.code.tolist(),
            "questions": None if a.question is None else a.question.tolist(),
        },
        "gold": learned.gold.tolist(),
        "checked": None if learned.checked is None else learned.checked.tolist(),
        "problem": None if problem is None else problem_to_dict(problem),
        "options": options
        | ({"classes": list(options["classes"])} if "classes" in options else {})
        | ({} if a.sources is None else {"sources": a.sources.to_table()}),
        "keep_repeats": learned.keep_repeats,
        **({} if learned.problem.loss is None else {"loss": learned.problem.loss.to_dict()}),
    }


def _read_learned(data: Mapping[str, Any], source: str) -> Learned:
    import warnings

    from crowdtree.learning import learn

    told, options = data["answers"], dict(data["options"])
    task = np.repeat(np.arange(len(told["task"])), np.diff(told["start"]))
    columns = {
        "task": [told["task"][place] for place in task],
        "worker": [told["worker"][place] for place in told["workers"]],
        "label": [told["label"][place] for place in told["labels"]],
    }
    if told["questions"] is not None:
        columns["question"] = [told["question"][place] for place in told["questions"]]
    if data["problem"] is not None:
        options["problem"] = problem_from_dict(data["problem"], f"{source}: problem")
    names = options.get("classes") or options["problem"].classes

    def known(codes: list[int]) -> dict[str, str] | None:
        found = {str(t): names[c] for t, c in zip(told["task"], codes, strict=True) if c >= 0}
        return found or None

    with warnings.catch_warnings():  # they were given when the answers were first learned from
        warnings.simplefilter("ignore", CrowdtreeWarning)
        options |= {"duplicates": "all", "loss": data.get("loss")}
        learned = learn(columns, known(data["gold"]), **options)
        if data["checked"] is not None:
            learned = learned.calibrate(known(data["checked"]) or {})
    return replace(learned, keep_repeats=data["keep_repeats"])


_READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "tree": lambda data, source: plan_from_dict({**data, "kind": "plan"}, source).tree,
    "evaluation": lambda data, source: evaluate(plan_from_dict({**data, "kind": "plan"}, source)),
    "frontier": _read_frontier,
    "policy": _read_policy,
    "choices": _read_choices,
    "run": _read_run,
    "learned": _read_learned,
}
