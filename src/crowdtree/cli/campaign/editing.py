"""The verbs `campaign correct`, `withdraw`, `edit` and `reword`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from crowdtree.cli import render
from crowdtree.cli.campaign.corrections import Reason
from crowdtree.cli.campaign.database import HERE, Database, Number, import_server, next_step, opened
from crowdtree.cli.options import AsJson, argument, flag, option
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.text import plural, short

Pairs = list[str] | None


def correct_verb(
    number: Number,
    task: Annotated[str, argument("TASK", "Name of the item.", show_default=True)],
    label: Annotated[str | None, argument("[CLASS]", "The right class.")] = None,
    undo: Annotated[bool, flag("--undo", "Take the label by hand back.")] = False,
    reason: Reason = "",
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Label an item by hand; the label of the answers is kept beside it.

    Nobody is asked about the item any more, and it counts as known. Exports have both labels, with
    who, when and why.

    Examples:

      crowdtree campaign correct 1 photo-17 robin --reason "ring number seen"

      crowdtree campaign correct 1 photo-17 --undo
    """
    if (label is None) != undo:
        raise CrowdtreeError("correct: expected a class, or --undo")
    correct = import_server("crowdtree.server.web.services.campaigns").correct_labels
    with opened(database) as store:
        found = correct(store, number, {task: label}, reason.strip())

    words = "Nothing to do: it is so already."
    if found["corrected"]:
        words = f"{short(task)} is labelled {label} by hand."
    elif found["undone"]:
        words = f"The label of {short(task)} by hand is taken back."
    then = next_step(database, "campaign", "labels", number, "-o", "labels.csv")
    render.emit(as_json, found, words, then=then)


def withdraw_verb(
    number: Number,
    tasks: Annotated[list[str], argument("TASKS", "Names of items.", show_default=True)],
    reason: Reason = "",
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Withdraw items: nobody is asked about them any more, and they have no label.

    What was paid stays paid. `campaign reopen` takes it back.

    Example:

      crowdtree campaign withdraw 1 photo-17 photo-23 --reason "broken images"
    """
    withdraw = import_server("crowdtree.server.web.services.campaigns").withdraw_items
    with opened(database) as store:
        found = withdraw(store, number, tasks, reason.strip())

    def show(console: Any) -> None:
        console.print(f"[bold]{plural(found['withdrawn'], 'item')} withdrawn.[/]")

    render.emit(as_json, found, show, then=next_step(database, "campaign", "status", number))


def edit_verb(
    number: Number,
    task: Annotated[str, argument("TASK", "Name of the item.", show_default=True)],
    values: Annotated[
        Pairs, option("A column; no value removes it.", "NAME=VALUE", "--column")
    ] = None,
    reason: Reason = "",
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Change columns of an item; the activity log keeps the old values.

    Answers so far stay. The name of an item cannot change, nor the class of a gold item that
    somebody was asked about.

    Example:

      crowdtree campaign edit 1 photo-17 --column text="A small bird" --column image=17.jpg
    """
    columns = _pairs(values or [], "--column")
    if not columns:
        raise CrowdtreeError("edit: expected --column, such as text='A small bird'")
    common = import_server("crowdtree.server.store.corrections.items")
    editing = import_server("crowdtree.server.store.corrections.editing")
    with opened(database) as store:
        item = store.read(lambda c: common.find_items(c, number, [task]))[0].id
        made = (number, item, columns, store.clock(), reason.strip())
        found = store.write(lambda c: editing.edit_item(c, *made))
    _show(as_json, found, number, database)


def reword_verb(
    number: Number,
    questions: Annotated[Pairs, option("Text of a question.", "NAME=TEXT", "--question")] = None,
    classes: Annotated[Pairs, option("Explanation of a class.", "NAME=TEXT", "--class")] = None,
    reason: Reason = "",
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Change the wording of questions and classes; the activity log keeps the old one.

    Which questions and classes there are stays the same.

    Example:

      crowdtree campaign reword 1 --question "flies=Can this animal fly?"
    """
    asked = _pairs(questions or [], "--question")
    explained = _pairs(classes or [], "--class")
    if not asked and not explained:
        raise CrowdtreeError("reword: expected --question or --class, such as flies='Does it fly?'")
    edit = import_server("crowdtree.server.store.corrections.editing").edit_texts
    with opened(database) as store:
        values = {"questions": asked, "classes": explained, "reason": reason.strip()}
        found = store.write(partial(edit, campaign_id=number, now=store.clock(), **values))
    _show(as_json, found, number, database)


def _pairs(values: list[str], option: str) -> dict[str, str]:
    """Read names and texts.

    >>> _pairs(["text=a = b"], "--column")
    {'text': 'a = b'}
    """
    found = {}
    for pair in values:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise CrowdtreeError(f"{option}: expected NAME=VALUE, got {short(pair)!r}")
        found[key.strip()] = text
    return found


def _show(as_json: bool, found: dict[str, Any], number: int, database: str) -> None:
    words = "Saved." if found["after"] else "Nothing to do: it is so already."
    render.emit(as_json, found, words, then=next_step(database, "campaign", "status", number))
