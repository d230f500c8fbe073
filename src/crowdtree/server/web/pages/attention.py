"""What needs the owner's attention: one function per subject, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crowdtree.server.reasons import CampaignReason
from crowdtree.server.web.pages.dashboard_facts import DashboardFacts
from crowdtree.server.web.pages.words import ago, amount, duration, money, number, percent, plural

MIN_VOTES = 20
"""Votes or labels from which on they are compared with what was expected."""
MAX_QUESTIONS = 3
"""Questions that are named because they divide people."""


@dataclass(frozen=True)
class Note:
    """Something that needs the owner's attention, and where to look."""

    text: str
    where: str
    link: str


def notes_about(facts: DashboardFacts) -> list[Note]:
    """List what needs the owner's attention."""
    return [note for make in NOTES for note in make(facts)]


def _audit(facts: DashboardFacts) -> Iterator[Note]:
    """Labels that are to be certified before the campaign finishes."""
    campaign, bound = facts.campaign, facts.campaign.settings.finish.max_wrong_labels
    if campaign.status != "running" or not campaign.reason or bound is None:
        return
    text = f"{campaign.status_reason[:1].upper()}{campaign.status_reason[1:]}"
    if campaign.reason is CampaignReason.WAITING_FOR_CHECKS:
        text += (
            f": the campaign finishes when an audit certifies at most {percent(bound)} wrong "
            "labels."
        )
    elif campaign.reason is CampaignReason.OUT_OF_REACH:
        text += (
            ". Go on checking (every wrong label that is found is corrected). Change that "
            "setting, or finish now and use the labels as they are."
        )
    yield Note(text, f"{facts.link}/audit", "Open the audit")


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


def _stalled_items(facts: DashboardFacts) -> Iterator[Note]:
    """Items that no present worker may answer."""
    waiting, labels = facts.progress["waiting_for_workers"], facts.campaign.settings.labels
    if not waiting:
        return
    one = waiting == 1
    text = (
        f"{plural(waiting, 'item')} {'waits' if one else 'wait'} for more workers: everybody who "
        "is here has answered, or may not answer."
    )
    if facts.progress["workers"]["active"] < labels.people_per_item:
        text += f" A label takes the answers of {labels.people_per_item} people."
    elif (seconds := facts.closes_in_seconds) is not None:
        best = "it gets its best label" if one else "they get their best labels"
        text += f" Without more answers {best} so far after {duration(seconds)}."
    yield Note(text, f"{facts.link}/share", "Invite more people")


def _trust(facts: DashboardFacts) -> Iterator[Note]:
    """Labels that rest on untrusted people, or are held back for a trusted one."""
    campaign, progress = facts.campaign, facts.progress
    running = campaign.status == "running" and bool(sum(progress["workers"].values()))
    tested = facts.trusted or (progress["items"]["gold"] and campaign.settings.checks.asks_gold)
    if running and campaign.reason is CampaignReason.LEFT_TO_OWNER:
        yield Note(
            "The campaign does not finish by itself: some labels rest on strangers alone, whom "
            "neither check items nor people whom you invited confirm. Check some labels, exclude "
            "whom you do not trust, then finish the campaign.",
            f"{facts.link}/audit",
            "Check some labels",
        )
    elif running and campaign.settings.labels.require_trusted_answer and not tested:
        yield Note(
            "Nobody was invited by a personal link, and no check items are asked: labels follow "
            "the majority of those who joined, whoever they are. Invite people whom you trust, or "
            "say that you know everybody who answers.",
            f"{facts.link}/share#who-title",
            "Say who answers",
        )
    if held := progress["waiting_for_known"]:
        one = held == 1
        yield Note(
            f"{plural(held, 'label')} {'is' if one else 'are'} held back until a trusted worker "
            f"supports {'it' if one else 'them'}. If that takes long, invite one or two people "
            "whom you trust by a personal link.",
            f"{facts.link}/workers",
            "View the newcomers",
        )


def _stopped_workers(facts: DashboardFacts) -> Iterator[Note]:
    """Workers whom the server paused, and those whose answers do not count."""
    where = f"{facts.link}/workers"
    if facts.paused:
        yield Note(f"{plural(facts.paused, 'worker')} paused by the server.", where, "View them")
    if excluded := facts.progress["excluded_workers"]:
        text = f"Answers of {plural(excluded, 'worker')} are excluded."
        yield Note(text, where, "View them")


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


def _budget(facts: DashboardFacts) -> Iterator[Note]:
    """A budget below the expected cost."""
    budget, currency = facts.progress["budget"], facts.campaign.settings.money.currency
    expected = facts.progress["spent"] + (facts.forecast.cost or 0.0)
    if budget is None or expected <= 1.02 * budget or facts.campaign.status == "finished":
        return
    text = (
        f"The budget of {money(budget, currency)} will not be enough: about "
        f"{money(expected, currency)} will be needed."
    )
    yield Note(text, f"{facts.link}/share#payment", "Change the budget")


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
    if last is None or (last["finished_at"] and last["reason"].keys() & {"excluded", "included"}):
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
    _audit,
    _workers,
    _stalled_items,
    _trust,
    _stopped_workers,
    _items,
    _reports,
    _gold,
    _budget,
    _questions,
    _plan,
    _revision,
)
