"""What needs the owner's attention: what the rules say, and one function per further subject."""

from __future__ import annotations

from collections.abc import Iterator

from crowdtree.campaign.events import Cause
from crowdtree.server.rules.rule import Note
from crowdtree.server.rules.runner import RULES
from crowdtree.server.web.pages.dashboard_facts import DashboardFacts
from crowdtree.server.web.pages.words import ago, amount, number, percent, plural

MIN_VOTES = 20
"""Votes or labels from which on they are compared with what was expected."""
MAX_QUESTIONS = 3
"""Questions that are named because they divide people."""


def notes_about(facts: DashboardFacts) -> list[Note]:
    """List what needs the owner's attention."""
    return [note for make in NOTES for note in make(facts)]


def _workers(facts: DashboardFacts) -> Iterator[Note]:
    """Nobody is there, nobody answers, or nobody else can join."""
    if facts.campaign.status != "running" or facts.campaign.reason:
        return
    workers, share = facts.progress["workers"], f"{facts.link}/share"
    limit = facts.campaign.settings.people.max_workers
    if workers["active"] + workers["paused"] >= limit:
        text = f"Nobody else can join by the open link: {plural(limit, 'worker')} may take part."
        yield Note(text, f"{share}#people.max_workers", "Let more people join")
    if not sum(workers.values()):
        yield Note("Nobody has joined yet.", share, "Share the links")
    elif facts.is_quiet:
        text = f"The last answer came {ago(facts.last_answer, facts.now)}."
        yield Note(text, share, "Invite more people")


def _excluded(facts: DashboardFacts) -> Iterator[Note]:
    """Workers whose answers do not count."""
    if excluded := facts.progress["excluded_workers"]:
        text = f"Answers of {plural(excluded, 'worker')} are excluded."
        yield Note(text, f"{facts.link}/workers", "View them")


def _items(facts: DashboardFacts) -> Iterator[Note]:
    """Items without a label, with a doubtful one, or with one by hand."""
    items, where = facts.progress["items"], f"{facts.link}/items?status="
    if corrected := facts.progress["corrected"]:
        text = f"{plural(corrected, 'item')} labelled by hand: counted as right in the estimates."
        yield Note(text, f"{where}labelled", "See the items")
    if withdrawn := items["withdrawn"]:
        text = f"{plural(withdrawn, 'item')} withdrawn: no label, and nobody is asked."
        yield Note(text, f"{where}withdrawn", "See or reopen them")
    if aside := items["set_aside"]:
        text = (
            f"{plural(aside, 'item')} set aside: workers could not answer, too few were left to "
            "ask, or no trusted worker supports the label."
        )
        yield Note(text, f"{where}set+aside", "See or reopen them")
    if undecided := facts.progress["undecided"]:
        loss = facts.policy.problem.loss
        why = "more answers would hardly have helped, or everybody who was here had answered"
        if loss is not None and loss.refer is not None:
            why = f"an expert costs less than the expected loss of any label, {why}"
        text = f"{plural(undecided, 'item')} labelled with the best guess: {why}."
        yield Note(text, f"{where}labelled", "See them")


def _reports(facts: DashboardFacts) -> Iterator[Note]:
    """Items that workers reported, and that have no label."""
    if n := facts.reported:
        text = f"{plural(n, 'item')} without a label {'was' if n == 1 else 'were'} reported"
        yield Note(f"{text} by workers.", f"{facts.link}/reports", "Read the reports")


def _gold(facts: DashboardFacts) -> Iterator[Note]:
    """Gold items that nobody is asked about, and those that are missing."""
    gold, checks = facts.progress["items"]["gold"], facts.campaign.settings.checks
    if facts.campaign.status == "finished":
        return
    verb = "is" if gold == 1 else "are"
    if gold < checks.practice_items:
        text = (
            f"The training asks for {plural(checks.practice_items, 'item')} of known class; there "
            f"{verb} {gold}."
        )
        yield Note(text, f"{facts.link}/items", "Add items with a column gold")
    if gold and not checks.asks_gold:
        text = (
            f"{plural(gold, 'check item')} {verb} never asked about: the share of check items is 0."
        )
        yield Note(text, f"{facts.link}/share#checks.gold_rate", "Set it")


def _questions(facts: DashboardFacts) -> Iterator[Note]:
    """Questions on which people disagree far more than their assumed error predicts."""
    problem, shown = facts.policy.problem, 0
    for name, (against, total) in facts.votes.questions.items():
        assumed = float(problem.worker_error[problem.questions.index(name)].mean())
        if total < MIN_VOTES or against / total <= 2 * assumed + 0.05 or shown == MAX_QUESTIONS:
            continue
        shown += 1
        yield Note(
            f"“{facts.question_text(name)}” divides people: {percent(against / total)} of votes go "
            f"against the verdict, {percent(assumed)} were expected. Are the instructions clear?",
            f"{facts.link}/share#tasks.instructions",
            "Edit the instructions",
        )


def _plan(facts: DashboardFacts) -> Iterator[Note]:
    """Errors and costs far above the plan."""
    progress, planned = facts.progress, facts.planned
    if planned is None or progress["items"]["labelled"] < MIN_VOTES:
        return
    error, each = progress["estimated_error"], progress["answers_per_item"]
    if error and error > 2 * planned.error:
        text = (
            f"The labels are less certain than planned: {percent(error)} are expected to be "
            f"wrong, {percent(planned.error)} were planned."
        )
        yield Note(text, f"{facts.link}/items?status=labelled", "View the items")
    if each and each > 1.5 * planned.answers:
        text = (
            f"Items need {amount(each, 'answer')} each, more than the {number(planned.answers)} "
            "planned: people make more errors than the table says."
        )
        yield Note(text, f"{facts.link}/workers", "View the workers")


def _revision(facts: DashboardFacts) -> Iterator[Note]:
    """How often the campaign was revised, and why."""
    last = facts.progress["revision"]
    if last is None or (last["finished_at"] and last["cause"] is Cause.EXCLUSION):
        return  # exclusions have a note of their own
    why = str(last["reason"].get("text") or "no reason given")
    text = (
        f"The campaign was revised {plural(last['number'], 'time')}, last "
        f"{ago(last['at'], facts.now)}: {why.rstrip('.')}."
    )
    if last["finished_at"] is None:
        text += " The items are being replayed."
    yield Note(text, f"{facts.link}/questions", "See the questions")


NOTES = (
    *(rule.notes for rule in RULES),
    _workers,
    _excluded,
    _items,
    _reports,
    _gold,
    _questions,
    _plan,
    _revision,
)
