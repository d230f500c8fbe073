"""What the dashboard shows: how a campaign is going, what it will cost, what needs attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sqlalchemy.engine import Connection

from crowdtree.planning import ExpectedPerformance
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.store.db.campaign_row import Campaign, tally
from crowdtree.server.store.queries.items import Divided, divided, last_answer_at
from crowdtree.server.store.queries.progress import Progress, is_stuck, progress
from crowdtree.server.store.queries.reports import reported_items
from crowdtree.server.store.queries.workers import any_trusted, paused_workers, some_workers
from crowdtree.server.store.types import AnyPolicy, JsonObject
from crowdtree.server.web.pages.monitoring import Shown, shown_monitor
from crowdtree.server.web.pages.words import (
    ago,
    amount,
    brief,
    count,
    duration,
    money,
    number,
    percent,
    plural,
)
from crowdtree.show.plots.live_tree import flow_numbers

QUIET_SECONDS = 600.0
FEW_VOTES = 20
FEW_ROWS = 8
FEW_QUESTIONS = 3
MANY_NODES = 20


@dataclass(frozen=True)
class Note:
    """Something that needs the owner's attention, and where to look."""

    text: str
    where: str
    link: str


class Forecast(NamedTuple):
    """What a campaign still needs; ``None`` where that is unknown."""

    answers: float | None
    cost: float | None
    seconds: float | None


class Votes(NamedTuple):
    """Where people disagreed, with the texts of the questions."""

    labels: int
    items: list[dict[str, object]]
    questions: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Picture:
    """Everything that the dashboard shows."""

    campaign: Campaign
    facts: Progress
    values: dict[str, str]
    shares: dict[str, float]
    notes: list[Note]
    labels: list[JsonObject]
    divided: Votes
    questions: list[JsonObject]
    flow: dict[str, JsonObject] | None
    places: list[JsonObject]
    workers: list[JsonObject]
    mood: str

    @property
    def monitor(self) -> Shown | None:
        """Whether the answers contradict the table."""
        return shown_monitor(self.facts)


@dataclass(frozen=True)
class Situation:
    """What is known about a campaign when its dashboard is drawn."""

    campaign: Campaign
    policy: AnyPolicy
    planned: ExpectedPerformance | None
    """What was planned; not known while it is being computed."""
    facts: Progress
    votes: Votes
    last_answer: float | None
    paused: int
    """Workers whom the server paused."""
    trusted: bool
    """Whether the owner has invited somebody by a personal link, or vouched for somebody."""
    reported: int
    """Items without a label that workers reported."""
    now: float

    @property
    def link(self) -> str:
        """Beginning of the addresses of the campaign's pages."""
        return f"/c/{self.campaign.id}"

    @cached_property
    def forecast(self) -> Forecast:
        """Remaining answers and cost, from this campaign or at first from the plan."""
        return _forecast(self.facts, self.planned)

    @property
    def is_quiet(self) -> bool:
        """Whether answers have stopped coming."""
        return self.last_answer is not None and self.now - self.last_answer > QUIET_SECONDS


def look(
    connection: Connection,
    campaign: Campaign,
    policy: AnyPolicy,
    planned: ExpectedPerformance | None,
    now: float,
) -> Picture:
    """Read the state of a campaign for its dashboard."""
    number_ = campaign.id
    seen = Situation(
        campaign,
        policy,
        planned,
        progress(connection, number_, now),
        _with_texts(divided(connection, number_), policy),
        last_answer_at(connection, number_),
        paused_workers(connection, number_),
        any_trusted(connection, number_),
        reported_items(connection, number_),
        now,
    )
    facts = seen.facts
    notes = [note for make in NOTES for note in make(seen)]
    mood, headline = _headline(seen, len(notes))
    flow = flow_numbers(policy.plan, facts["nodes"]) if policy.plan is not None else None
    return Picture(
        campaign,
        facts,
        {"headline": headline, **_values(seen)},
        _shares(facts),
        notes,
        _labels(facts),
        seen.votes,
        _questions(policy, tally(connection, number_)),
        flow,
        _places(policy, facts["nodes"]),
        _workers(connection, number_, policy, now),
        mood,
    )


def _places(policy: AnyPolicy, nodes: dict[str, dict[str, int]]) -> list[JsonObject]:
    """The nodes with most items, for a tree that is too large to see at once."""
    if policy.plan is None or policy.plan.tree.n_nodes < MANY_NODES:
        return []
    tree = policy.plan.tree
    rows: list[JsonObject] = [
        {
            "text": policy.problem.text(int(tree.question[int(node)])),
            "here": max(found["in"] - found["out"], 0),
            "passed": found["out"],
        }
        for node, found in nodes.items()
        if int(node) >= 0
    ]
    rows.sort(key=lambda row: (-row["here"], -row["passed"]))
    return rows[:FEW_ROWS]


def _workers(
    connection: Connection, number_: int, policy: AnyPolicy, now: float
) -> list[JsonObject]:
    """The workers seen last."""
    rows = some_workers(connection, number_, policy.problem, sort="seen", most=FEW_ROWS)
    return [{**row, "seen": ago(row["seen_at"], now)} for row in rows]


def _with_texts(found: Divided, policy: AnyPolicy) -> Votes:
    texts = {name: policy.problem.text(q) for q, name in enumerate(policy.problem.questions)}
    rows: list[dict[str, object]] = [{**row, "text": texts[row["question"]]} for row in found.items]
    return Votes(found.labels, rows, found.questions)


def _forecast(facts: Progress, planned: ExpectedPerformance | None) -> Forecast:
    items = facts["items"]
    left = facts["forecast"]["answers_left"]
    if left is None and planned is not None:
        left = planned.answers * (items["new"] + items["open"] / 2)
    rate = facts["forecast"]["answers_per_minute"]
    seconds = 60 * left / rate if rate and left is not None else None
    if is_stuck(items, facts["waiting_for_workers"]):
        seconds = None
    if not items["new"] + items["open"]:
        left, seconds = 0.0, 0.0
    return Forecast(left, None if left is None else left * facts["price"], seconds)


def _headline(seen: Situation, notes: int) -> tuple[str, str]:
    """The mood of the page, and its headline."""
    done, total = seen.facts["items"]["labelled"], seen.facts["items"]["total"]
    status = seen.campaign.status
    if status == "draft":
        return "still", "Not started yet."
    if status == "finished":
        return "done", f"Finished: {count(done)} of {plural(total, 'item')} have a label."
    if status == "finishing":
        return "still", "Finishing: the items still in work get the best label so far."
    if status == "paused":
        why = seen.campaign.status_reason
        return "still", f"Paused{f': {why}' if why else ''}. Nobody is given questions."
    if seen.campaign.reason.is_worrying:
        return "worry", "All items have their label, but the wanted bound is out of reach."
    if seen.campaign.reason:
        return "still", f"All items have their label; {seen.campaign.status_reason}."
    if seen.last_answer is None:
        return "still", "Running, and waiting for the first answer."
    if seen.is_quiet:
        quiet = duration(seen.now - seen.last_answer)
        return "worry", f"No answer for {quiet}. Are workers still there?"
    if is_stuck(seen.facts["items"], seen.facts["waiting_for_workers"]):
        return "worry", "Waiting for more people: those who are here may answer nothing more."
    when = seen.forecast.seconds
    about = "" if when is not None and when < 55 else "about "
    rest = "" if when is None else f", done in {about}{duration(when)} at this pace"
    more = f" {plural(notes, 'point')} to check below." if notes else ""
    return "good", f"Going well{rest}.{more}"


def _values(seen: Situation) -> dict[str, str]:
    """The numbers of the page, as text."""
    facts, planned, currency = seen.facts, seen.planned, seen.campaign.settings.money.currency
    items, answers = facts["items"], facts["answers"]
    each = facts["answers_per_item"]
    error = facts["estimated_error"]
    running = seen.campaign.status in ("running", "paused")
    left, cost, seconds = seen.forecast
    return {
        "status": seen.campaign.status,
        "labelled": count(items["labelled"]),
        "total": count(items["total"]),
        "open": count(items["open"]),
        "new": count(items["new"]),
        "aside": count(items["set_aside"]),
        "answers": count(answers["counted"]),
        "skipped": count(answers["skipped"]),
        "each": "–" if each is None else number(each),
        "each_planned": _planned(planned, "answers"),
        "error": "–" if error is None else percent(error),
        "error_planned": _planned(planned, "error"),
        "spent": money(facts["spent"], currency),
        "cost_total": money(facts["spent"] + (cost or 0.0), currency),
        "left": "–" if left is None or not running else count(left),
        "finish": brief(seconds) if seconds and running else "–",
        "pace": _pace(facts["forecast"]["answers_per_minute"], running),
        "active": count(facts["workers"]["active"]),
        "stopped": count(facts["workers"]["paused"] + facts["workers"]["blocked"]),
    }


def _planned(planned: ExpectedPerformance | None, what: str) -> str:
    if planned is None:
        return "the plan is being computed"
    about = "about" if planned.exact else "by simulation about"
    words = percent(planned.error) if what == "error" else number(planned.answers)
    return f"planned {about} {words}"


def _pace(rate: float | None, running: bool) -> str:
    return "–" if rate is None or not running else f"{amount(rate, 'answer', 2)} per minute"


def _shares(facts: Progress) -> dict[str, float]:
    total = max(facts["items"]["total"], 1)
    names = ("labelled", "open", "set_aside")
    return {name: round(100 * facts["items"][name] / total, 3) for name in names}


def _labels(facts: Progress) -> list[JsonObject]:
    rows: list[JsonObject] = [
        {"place": place, "name": name, "count": value, "right": facts["precision"][name]}
        for place, (name, value) in enumerate(facts["labels"].items())
    ]
    most = max((row["count"] for row in rows), default=0)
    for row in rows:
        row["share"] = round(100 * row["count"] / most, 2) if most else 0
    return sorted(rows, key=lambda row: (-row["count"], row["place"]))


def _questions(policy: AnyPolicy, counts: dict[str, int]) -> list[JsonObject]:
    rows: list[JsonObject] = [
        {"text": policy.problem.text(q), "count": counts.get(f"asked:{q}", 0)}
        for q in range(policy.problem.n_questions)
    ]
    rows = [row for row in rows if row["count"]]
    most = max((row["count"] for row in rows), default=1)
    made = [{**row, "share": round(100 * row["count"] / most, 2)} for row in rows]
    return sorted(made, key=lambda row: -row["count"])


# ------------------------------------------------------------------------------ notes


def _audit_notes(seen: Situation) -> Iterator[Note]:
    """Labels that are to be certified before the campaign finishes."""
    reason, wanted = seen.campaign.reason, seen.campaign.settings.finish.max_wrong_labels
    if seen.campaign.status != "running" or not reason or wanted is None:
        return
    words = seen.campaign.status_reason
    what = f"{words[:1].upper()}{words[1:]}"
    if reason is CampaignReason.WAITING_FOR_CHECKS:
        what += ": the campaign finishes when an audit certifies at most "
        what += f"{percent(wanted)} wrong labels."
    elif reason is CampaignReason.OUT_OF_REACH:
        what += ". Go on checking (every wrong label that is found is corrected). Change that "
        what += "setting, or finish now and use the labels as they are."
    yield Note(what, f"{seen.link}/audit", "Open the audit")


def _worker_notes(seen: Situation) -> Iterator[Note]:
    """Nobody is there, nobody answers, or nobody else can join."""
    if seen.campaign.status != "running" or seen.campaign.reason:
        return
    people, most = seen.facts["workers"], seen.campaign.settings.people.max_workers
    if people["active"] + people["paused"] >= most:
        text = f"Nobody else can join by the open link: {plural(most, 'worker')} may take part."
        yield Note(text, f"{seen.link}/share#people.max_workers", "Let more people join")
    if not sum(people.values()):
        yield Note("Nobody has joined yet.", f"{seen.link}/share", "Share the links")
    elif seen.is_quiet:
        text = f"The last answer came {ago(seen.last_answer, seen.now)}."
        yield Note(text, f"{seen.link}/share", "Invite more people")


def _waiting_notes(seen: Situation) -> Iterator[Note]:
    """Items that no present worker may answer."""
    waiting = seen.facts["waiting_for_workers"]
    if not waiting:
        return
    seconds = seen.campaign.settings.labels.close_stalled_after_seconds
    text = (
        f"{plural(waiting, 'item')} {'waits' if waiting == 1 else 'wait'} for more workers: "
        "everybody who is here has answered, or may not answer."
    )
    people = seen.campaign.settings.labels.people_per_item
    if seen.facts["workers"]["active"] < people:
        text += f" A label takes the answers of {people} people."
    end = "" if seconds is None else f"after {duration(seconds)}, or "
    best = "it gets its best label" if waiting == 1 else "they get their best labels"
    text += f" Without more answers {best} so far {end}when you finish the campaign."
    yield Note(text, f"{seen.link}/share", "Invite more people")


def _newcomer_notes(seen: Situation) -> Iterator[Note]:
    """Labels that wait for somebody who is known, or on which nobody known was asked for."""
    settings, facts = seen.campaign.settings, seen.facts
    checked = seen.trusted or (facts["items"]["gold"] and settings.checks.asks_gold)
    running = seen.campaign.status == "running" and bool(sum(facts["workers"].values()))
    if running and seen.campaign.reason is CampaignReason.LEFT_TO_OWNER:
        yield Note(
            "The campaign does not finish by itself: some labels rest on strangers alone, whom "
            "neither check items nor people whom you invited confirm. Check some "
            "labels, exclude whom you do not trust, then finish the campaign.",
            f"{seen.link}/audit",
            "Check some labels",
        )
    elif running and settings.labels.require_trusted_answer and not checked:
        yield Note(
            "Nobody was invited by a personal link, and no check items are asked: labels follow "
            "the majority of those who joined, whoever they are.",
            f"{seen.link}/share",
            "Invite people whom you trust",
        )
    if waiting := seen.facts["waiting_for_known"]:
        text = (
            f"{plural(waiting, 'label')} {'waits' if waiting == 1 else 'wait'} until somebody is "
            "known whose answers speak for it. If that takes long, invite one or two people whom "
            "you trust by a personal link."
        )
        yield Note(text, f"{seen.link}/workers", "View the newcomers")


def _paused_notes(seen: Situation) -> Iterator[Note]:
    if seen.paused:
        text = f"{plural(seen.paused, 'worker')} paused by the server."
        yield Note(text, f"{seen.link}/workers", "View them")


def _excluded_notes(seen: Situation) -> Iterator[Note]:
    if excluded := seen.facts["excluded_workers"]:
        text = f"Answers of {plural(excluded, 'worker')} are excluded."
        yield Note(text, f"{seen.link}/workers", "View them")


def _item_notes(seen: Situation) -> Iterator[Note]:
    """Items without a label, with a doubtful one, or with one by hand."""
    aside, undecided = seen.facts["items"]["set_aside"], seen.facts["undecided"]
    if corrected := seen.facts["corrected"]:
        yield Note(
            f"{plural(corrected, 'item')} labelled by hand: counted as right in the estimates.",
            f"{seen.link}/items?status=labelled",
            "See the items",
        )
    if withdrawn := seen.facts["items"]["withdrawn"]:
        yield Note(
            f"{plural(withdrawn, 'item')} withdrawn: no label, and nobody is asked.",
            f"{seen.link}/items?status=withdrawn",
            "See or reopen them",
        )
    if aside:
        yield Note(
            f"{plural(aside, 'item')} set aside: workers could not answer, no workers were left to "
            "ask, or nobody known supports the label.",
            f"{seen.link}/items?status=set+aside",
            "See or reopen them",
        )
    if undecided:
        yield Note(
            f"{plural(undecided, 'item')} undecided: labelled with the best guess, because "
            f"{_why_undecided(seen)}.",
            f"{seen.link}/items?status=labelled",
            "See them",
        )


def _why_undecided(seen: Situation) -> str:
    loss = seen.policy.problem.loss
    if loss is not None and loss.refer is not None:
        return "an expert costs less than the expected loss of any label"
    return "more answers were unlikely to reach the requested error"


def _report_notes(seen: Situation) -> Iterator[Note]:
    """Items that workers reported, and that have no label."""
    count = seen.reported
    if count:
        text = f"{plural(count, 'item')} without a label {'was' if count == 1 else 'were'} reported"
        yield Note(f"{text} by workers.", f"{seen.link}/reports", "Read the reports")


def _gold_notes(seen: Situation) -> Iterator[Note]:
    """Gold items that nobody is asked about, and those that are missing."""
    gold, training = seen.facts["items"]["gold"], seen.campaign.settings.checks.practice_items
    if gold < training and seen.campaign.status != "finished":
        yield Note(
            f"The training asks for {plural(training, 'item')} of known class; there "
            f"{'is' if gold == 1 else 'are'} {gold}.",
            f"{seen.link}/items",
            "Add items with a column gold",
        )
    if gold and not seen.campaign.settings.checks.asks_gold and seen.campaign.status != "finished":
        yield Note(
            f"{plural(gold, 'check item')} {'is' if gold == 1 else 'are'} never asked about: the "
            "share of check items is 0.",
            f"{seen.link}/share#checks.gold_rate",
            "Set it",
        )


def _budget_notes(seen: Situation) -> Iterator[Note]:
    """A budget below the expected cost."""
    budget, currency = seen.facts["budget"], seen.campaign.settings.money.currency
    expected = seen.facts["spent"] + (seen.forecast.cost or 0.0)
    if budget is None or expected <= 1.02 * budget or seen.campaign.status == "finished":
        return
    yield Note(
        f"The budget of {money(budget, currency)} will not be enough: about "
        f"{money(expected, currency)} will be needed.",
        f"{seen.link}/share#payment",
        "Change the budget",
    )


def _question_notes(seen: Situation) -> Iterator[Note]:
    """Questions on which people disagree far more than their assumed error predicts."""
    problem = seen.policy.problem
    shown = 0
    for name, (against, total) in seen.votes.questions.items():
        place = problem.questions.index(name)
        assumed = float(problem.worker_error[place].mean())
        if total < FEW_VOTES or against / total <= 2 * assumed + 0.05 or shown == FEW_QUESTIONS:
            continue
        shown += 1
        yield Note(
            f"“{problem.text(place)}” divides people: {percent(against / total)} of votes go "
            f"against the verdict, {percent(assumed)} were expected. Are the instructions clear?",
            f"{seen.link}/share#tasks.instructions",
            "Edit the instructions",
        )


def _plan_notes(seen: Situation) -> Iterator[Note]:
    """Errors and costs far above the plan."""
    facts, planned = seen.facts, seen.planned
    if planned is None or facts["items"]["labelled"] < FEW_VOTES:
        return
    error, each = facts["estimated_error"], facts["answers_per_item"]
    if error and error > 2 * planned.error:
        yield Note(
            f"The labels are less certain than planned: {percent(error)} are expected to be "
            f"wrong, {percent(planned.error)} were planned.",
            f"{seen.link}/items?status=labelled",
            "View the items",
        )
    if each and each > 1.5 * planned.answers:
        yield Note(
            f"Items need {amount(each, 'answer')} each, more than the {number(planned.answers)} "
            "planned: people make more errors than the table says.",
            f"{seen.link}/workers",
            "View the workers",
        )


def _revision_notes(seen: Situation) -> Iterator[Note]:
    """How often the campaign was revised, and why."""
    last = seen.facts["revision"]
    if last is None or (last["finished_at"] and last["reason"].keys() & {"excluded", "included"}):
        return  # exclusions have a note of their own
    why = str(last["reason"].get("text") or "no reason given")
    text = f"The campaign was revised {plural(last['number'], 'time')}, last "
    text += f"{ago(last['at'], seen.now)}: {why.rstrip('.')}."
    if last["finished_at"] is None:
        text += " The items are being replayed."
    yield Note(text, f"{seen.link}/questions", "See the questions")


NOTES: tuple[Callable[[Situation], Iterator[Note]], ...] = (
    _audit_notes,
    _worker_notes,
    _waiting_notes,
    _newcomer_notes,
    _paused_notes,
    _excluded_notes,
    _item_notes,
    _report_notes,
    _gold_notes,
    _budget_notes,
    _question_notes,
    _plan_notes,
    _revision_notes,
)
"""What may need the owner's attention, in the order of the page."""
