"""Texts that an owner writes: of questions and classes, examples, and of the worker page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from fastapi import Request
from pydantic import Field
from sqlalchemy.engine import Connection
from starlette.responses import Response

from crowdtree.core.problem import Problem
from crowdtree.server.languages import (
    CLASS,
    ENGLISH,
    EXPLANATION,
    OWN,
    QUESTION,
    catalogues,
    preferred,
)
from crowdtree.server.store.corrections.editing import edit_texts
from crowdtree.server.store.db.campaign_row import Campaign, get_campaign, tally
from crowdtree.server.store.owner import campaigns
from crowdtree.server.store.owner.campaigns import merge, read_seen, seen_of
from crowdtree.server.store.queries.items import divided
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.pages import go
from crowdtree.server.web.routing import Body, Id, Read, Reply, Routes, State
from crowdtree.server.web.state import AppState
from crowdtree.server.web.words import markdown

routes = Routes()
FEW = 12
"""Up to this many questions are shown unfolded."""


class Draft(Body):
    """Markdown to preview before it is saved."""

    text: Annotated[str, Field(max_length=50_000)]


@routes.page("POST /preview", "editor")
async def preview(draft: Draft) -> dict[str, str]:
    """Show Markdown as workers will see it."""
    return {"html": markdown(draft.text)}


async def _save(
    request: Request,
    state: AppState,
    campaign_id: int,
    apply: Callable[[Connection, Campaign, str], str],
    where: str,
) -> Response:
    """Save a form in one transaction; `apply` gets what the form had shown."""
    seen = str((await request.form()).get("seen", ""))
    seen_now = await state.store.awrite(
        lambda c: apply(c, get_campaign(c, campaign_id, lock=True), seen)
    )
    return go(request, f"/c/{campaign_id}/{where}", seen=seen_now)


# ----------------------------------------------------------------- questions and classes


@routes.page("GET /c/{campaign_id}/questions", "viewer", "questions.html")
def questions(tx: Read, campaign_id: Id) -> Reply:
    """Show the questions with their examples."""
    campaign = tx.campaign(campaign_id)
    policy, counts = tx.policy(campaign), tally(tx.connection, campaign_id)
    votes = divided(tx.connection, campaign_id).questions
    examples = campaign.settings.tasks.examples
    rows = [_row(policy, q, examples, counts, votes) for q in policy.questions_used()]
    return {
        "campaign": campaign,
        "rows": rows,
        "few": len(rows) <= FEW,
        "explained": [
            (index, name, _explanation(policy, index))
            for index, name in enumerate(campaign.classes)
        ],
        "seen": seen_of(_question_fields(campaign, policy)),
    }


def _row(
    policy: AnyPolicy,
    index: int,
    examples: dict[str, str],
    counts: dict[str, int],
    votes: dict[str, tuple[int, int]],
) -> JsonObject:
    problem = policy.problem
    name = problem.questions[index]
    against, total = votes.get(name, (0, 0))
    text = examples.get(name, "")
    return {
        "place": index,
        "name": name,
        "text": problem.text(index),
        "asked": counts.get(f"asked:{index}", 0),
        "expected": float(problem.worker_error[index].mean()),
        "against": against / total if total else None,
        "examples": text,
        "html": markdown(text) if text.strip() else "",
    }


def _explanation(policy: AnyPolicy, index: int) -> str:
    """What a class is, in words, for people who check labels."""
    texts = policy.problem.descriptions
    return texts[index] if texts else ""


def _question_fields(campaign: Campaign, policy: AnyPolicy) -> dict[str, object]:
    """The texts as the form shows them, under names that a message can use."""
    tasks, problem = campaign.settings.tasks, policy.problem
    shown: dict[str, object] = {"instructions": tasks.instructions}
    for index, name in enumerate(problem.questions):
        shown[f"examples of {name}"] = tasks.examples.get(name, "")
        shown[f"text of {name}"] = problem.text(index)
    for index, name in enumerate(problem.classes):
        shown[f"explanation of {name}"] = _explanation(policy, index)
    return shown


def _field_names(problem: Problem) -> dict[str, str]:
    """The names of :func:`_question_fields` by the names of the fields in the form."""
    names = {"instructions": "instructions"}
    for index, name in enumerate(problem.questions):
        names |= {f"example-{index}": f"examples of {name}", f"text-{index}": f"text of {name}"}
    for index, name in enumerate(problem.classes):
        names[f"class-{index}"] = f"explanation of {name}"
    return names


@routes.page("POST /c/{campaign_id}/questions", "editor")
async def save_questions(request: Request, state: State, campaign_id: Id) -> Response:
    """Save the texts of the questions, the explanations of the classes, and the examples."""
    form = await request.form()

    def apply(connection: Connection, campaign: Campaign, seen: str) -> str:
        policy = state.policy(campaign)
        problem, current = policy.problem, _question_fields(campaign, policy)
        names = _field_names(problem)
        wanted = {names[key]: str(text).strip() for key, text in form.items() if key in names}
        fields = {**current, **merge(read_seen(seen), current, wanted)}

        def edited(words: str, among: Sequence[str]) -> dict[str, str]:
            """The texts that are others than before, by the name of their question or class."""
            keys = {name: f"{words} {name}" for name in among}
            changed = {name: key for name, key in keys.items() if fields[key] != current[key]}
            return {name: str(fields[key]) for name, key in changed.items()}

        texts = edited("text of", problem.questions), edited("explanation of", problem.classes)
        edit_texts(connection, campaign_id, *texts, state.now)
        examples = {name: fields[f"examples of {name}"] for name in problem.questions}
        changes: JsonObject = {
            "tasks.examples": {name: text for name, text in examples.items() if text},
            "tasks.instructions": fields["instructions"],
        }
        before = campaign.settings.values()
        if any(before[name] != value for name, value in changes.items()):
            campaigns.change_settings(connection, campaign_id, policy, changes, state.now)
        after = get_campaign(connection, campaign_id)
        return seen_of(_question_fields(after, state.policy(after)))

    return await _save(request, state, campaign_id, apply, "questions?saved=1")


# ------------------------------------------------------------- texts of the worker page


@routes.page("GET /c/{campaign_id}/texts", "viewer", "texts.html")
def texts(tx: Read, campaign_id: Id, lang: str = "") -> Reply:
    """Show the texts of a language."""
    campaign = tx.campaign(campaign_id)
    policy, tasks = tx.policy(campaign), campaign.settings.tasks
    code = preferred([lang, tasks.language]) or ENGLISH
    language = catalogues()[code]
    return {
        "campaign": campaign,
        "language": language,
        "languages": [(other, each.name) for other, each in catalogues().items()],
        "own": {name: getattr(tasks, name) for name in OWN},
        "questions": _questions(policy),
        "classes": _classes(policy),
        "texts": [
            (key, text if isinstance(text, str) else text["other"], isinstance(text, str))
            for key, text in language.texts.items()
        ],
        "changed": tasks.texts.get(code, {}),
        "seen": seen_of(_text_fields(campaign, policy, code)),
    }


@routes.page("POST /c/{campaign_id}/texts", "editor")
async def save_texts(request: Request, state: State, campaign_id: Id, lang: str) -> Response:
    """Save the texts of a language that are filled in; an empty one is that of the catalogue."""
    wanted = {
        key.removeprefix("text-"): str(text).strip()
        for key, text in (await request.form()).items()
        if key.startswith("text-")
    }

    def apply(connection: Connection, campaign: Campaign, seen: str) -> str:
        policy = state.policy(campaign)
        current = _text_fields(campaign, policy, lang)
        fields = {**current, **merge(read_seen(seen), current, wanted)}
        kept = {key: text for key, text in fields.items() if text}
        all_texts = {**campaign.settings.tasks.texts, lang: kept}
        changes: JsonObject = {"tasks.texts": {code: of for code, of in all_texts.items() if of}}
        campaigns.change_settings(connection, campaign_id, policy, changes, state.now)
        return seen_of(_text_fields(get_campaign(connection, campaign_id), policy, lang))

    return await _save(request, state, campaign_id, apply, f"texts?lang={lang}")


def _text_fields(campaign: Campaign, policy: AnyPolicy, code: str) -> dict[str, str]:
    """The fields of the form: the owner's texts in a language, by key."""
    keys = (*OWN, *_questions(policy), *_classes(policy), *catalogues()[ENGLISH].texts)
    return dict.fromkeys(keys, "") | campaign.settings.tasks.texts.get(code, {})


def _questions(policy: AnyPolicy) -> dict[str, str]:
    """Texts of the questions that are asked, by the key under which they are translated."""
    problem = policy.problem
    return {f"{QUESTION}{problem.questions[q]}": problem.text(q) for q in policy.questions_used()}


def _classes(policy: AnyPolicy) -> dict[str, str]:
    """Names and explanations of the classes, by the key under which they are translated."""
    found: dict[str, str] = {}
    for index, name in enumerate(policy.problem.classes):
        found |= {f"{CLASS}{name}": name, f"{EXPLANATION}{name}": _explanation(policy, index)}
    return found
