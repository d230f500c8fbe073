"""What needs the owner's attention: facts about a campaign, notes about them, and its table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sqlalchemy.engine import Connection

from crowdtree.campaign.events import Cause
from crowdtree.planning import ExpectedPerformance
from crowdtree.server.rules.rule import Note
from crowdtree.server.rules.runner import RULES
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.queries.export import reported_items
from crowdtree.server.store.queries.items import Divided, last_answer_at
from crowdtree.server.store.queries.progress import FindingRow, Progress, is_stuck, progress
from crowdtree.server.store.queries.workers import any_trusted, paused_workers
from crowdtree.server.store.types import AnyPolicy
from crowdtree.server.web.words import ago, amount, count, money, number, percent, plural

QUIET_SECONDS = 600.0
"""After this long without an answer the owner is asked whether workers are still there."""
MIN_VOTES = 20
"""Votes or labels from which on they are compared with what was expected."""
MAX_QUESTIONS = 3
"""Questions that are named because they divide people."""


class Forecast(NamedTuple):
    """What a campaign still needs; ``None`` where that is unknown."""

    answers: float | None
    cost: float | None
    seconds: float | None


@dataclass(frozen=True)
class DashboardFacts:
    """What is known about a campaign when its dashboard is drawn.

    `planned` is not known while it is being computed; `paused` counts workers whom the server
    paused, `reported` items without a label that workers reported; `trusted` says whether the owner
    has invited somebody by a personal link, or vouched for somebody.
    """

    campaign: Campaign
    policy: AnyPolicy
    planned: ExpectedPerformance | None
    progress: Progress
    votes: Divided
    last_answer: float | None
    paused: int
    trusted: bool
    reported: int
    now: float

    @property
    def link(self) -> str:
        """Beginning of the addresses of the campaign's pages."""
        return f"/c/{self.campaign.id}"

    @property
    def is_quiet(self) -> bool:
        """Whether answers have stopped coming."""
        return self.last_answer is not None and self.now - self.last_answer > QUIET_SECONDS

    @cached_property
    def forecast(self) -> Forecast:
        """Remaining answers and cost, from this campaign or at first from the plan."""
        items, known = self.progress["items"], self.progress["forecast"]
        if not items["new"] + items["open"]:
            return Forecast(0.0, 0.0, 0.0)
        answers, rate = known["answers_left"], known["answers_per_minute"]
        if answers is None and self.planned is not None:
            answers = self.planned.answers * (items["new"] + items["open"] / 2)
        stuck = is_stuck(items, self.progress["waiting_for_workers"])
        seconds = 60 * answers / rate if rate and answers is not None and not stuck else None
        return Forecast(
            answers, None if answers is None else answers * self.progress["price"], seconds
        )

    @property
    def closes_in_seconds(self) -> float | None:
        """How long stalled items wait at most, if enough people are here to give them a label."""
        labels = self.campaign.settings.labels
        if self.progress["workers"]["active"] < labels.people_per_item:
            return None
        return labels.close_stalled_after_seconds

    @property
    def cost(self) -> float | None:
        """What the campaign will have cost in the end, where that is known."""
        left = self.forecast.cost
        return None if left is None else self.progress["spent"] + left

    def money(self, value: float) -> str:
        """Write an amount in the currency of the campaign."""
        return money(value, self.campaign.settings.money.currency)

    @property
    def votes_per_question(self) -> int:
        """People that a question of the plan takes at most; 0 for an adaptive policy."""
        plan = self.policy.plan
        return 0 if plan is None else int(max(plan.votes, default=0))

    def question_text(self, name: str) -> str:
        """Text of a question."""
        problem = self.policy.problem
        return problem.text(problem.questions.index(name))


def read_facts(
    connection: Connection,
    campaign: Campaign,
    policy: AnyPolicy,
    planned: ExpectedPerformance | None,
    votes: Divided,
    now: float,
) -> DashboardFacts:
    """Read what the dashboard needs to know."""
    return DashboardFacts(
        campaign,
        policy,
        planned,
        progress(connection, campaign.id, now),
        votes,
        last_answer_at(connection, campaign.id),
        paused_workers(connection, campaign.id),
        any_trusted(connection, campaign.id),
        reported_items(connection, campaign.id),
        now,
    )


# ------------------------------------------------------------------------------- notes


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


# --------------------------------------------------------------------- the table's errors

REVISED = (
    "The table was revised; labels that no longer reach the target were taken back, and their "
    "items are asked about again."
)
DUE = "The table is being revised."
TO_DO = (
    "The errors that labels state are wrong as well. Let the campaign revise its table in the "
    "settings, or revise it with crowdtree campaign revise."
)
ENDED = "The errors that labels state may be wrong as well."


class MonitorRow(NamedTuple):
    """What the table and the answers say about a question, a class or the dependence."""

    about: str
    assumed: str
    estimate: str
    between: str


class MonitorSummary(NamedTuple):
    """A sentence about the table, and a row per question, class and dependence."""

    text: str
    rows: list[MonitorRow]


def monitor_summary(facts: Progress) -> MonitorSummary | None:
    """Say whether the answers contradict the table; ``None`` before the first answer."""
    found = facts["monitor"]
    if found is None:
        return None
    if not found["alarms"]:
        return MonitorSummary(f"{count(found['answers'])} answers do not contradict the table.", [])
    first = found["alarms"][0]["text"]
    sentences = [f"{first[:1].upper()}{first[1:]}."]
    wrong = [row for row in found["findings"] if not row["low"] <= row["assumed"] <= row["high"]]
    sentences += [f"{row['text'][:1].upper()}{row['text'][1:]}." for row in wrong[:1]]
    text = " ".join([*sentences, _done(facts, found["adapt"])])
    return MonitorSummary(text, [_row(row) for row in found["findings"]])


def _done(facts: Progress, adapt: bool) -> str:
    """What was done about it, or what to do."""
    revision = facts["revision"]
    if revision is not None and revision["actor"] == "server":
        return REVISED
    if facts["status"] == "finished":
        return ENDED
    return DUE if adapt else TO_DO


def _row(row: FindingRow) -> MonitorRow:
    if row["subject"] == "dependence":
        words = number(row["assumed"], 2), number(row["estimate"], 2)
        return MonitorRow("Correlation of errors", *words, "")
    about = f"Share of {row['name']}" if row["subject"] == "prior" else f"Errors: {row['name']}"
    ends = [percent(round(row[end], 3)) for end in ("low", "high")]
    values = [percent(round(row[name], 3)) for name in ("assumed", "estimate")]
    return MonitorRow(about, values[0], values[1], " to ".join(ends))
