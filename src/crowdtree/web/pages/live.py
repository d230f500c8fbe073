"""The live picture of a campaign: is it going well, what will it cost, what needs attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.engine import Connection

from crowdtree.advise import Promise
from crowdtree.plots.live_tree import flow_numbers
from crowdtree.policy import PlanPolicy
from crowdtree.store.db.campaign_row import Campaign, tally
from crowdtree.store.queries.items import Divided, divided, last_answer_at
from crowdtree.store.queries.progress import Progress, progress
from crowdtree.store.queries.workers import paused_workers, some_workers
from crowdtree.store.types import AnyPolicy, JsonObject
from crowdtree.web.pages.words import ago, brief, count, duration, money, number, percent, plural

__all__ = ["Picture", "look"]

QUIET_SECONDS = 600.0
FEW_VOTES = 20
FEW_ROWS = 8
MANY_NODES = 20


@dataclass(frozen=True)
class Note:
    """Something that needs the owner, and where to look."""

    text: str
    where: str
    link: str


class Votes(NamedTuple):
    """Where people disagreed, with the texts of the questions."""

    labels: int
    items: list[dict[str, object]]
    questions: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Picture:
    """Everything that the dashboard shows, in words."""

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


def look(
    connection: Connection,
    campaign: Campaign,
    policy: AnyPolicy,
    promise: Promise | None,
    now: float,
) -> Picture:
    """Look at a campaign; what was planned may not be known yet."""
    number_ = campaign.id
    facts = progress(connection, number_, now)
    votes = _in_words(divided(connection, number_), policy)
    last = last_answer_at(connection, number_)
    forecast = _forecast(facts, promise)
    notes = _notes(connection, campaign, facts, policy, promise, votes, forecast, last, now)
    mood, headline = _headline(campaign, facts, forecast, last, now, len(notes))
    asked = tally(connection, number_)
    flow = flow_numbers(policy.plan, facts["nodes"]) if isinstance(policy, PlanPolicy) else None
    return Picture(
        campaign,
        facts,
        {"headline": headline, **_values(campaign, facts, promise, forecast)},
        _shares(facts),
        notes,
        _labels(facts),
        votes,
        _questions(policy, asked),
        flow,
        _places(policy, facts["nodes"]),
        _workers(connection, number_, policy, now),
        mood,
    )


def _places(policy: AnyPolicy, nodes: dict[str, dict[str, int]]) -> list[JsonObject]:
    """Where most items are, for a tree that is too large to see at once."""
    if not isinstance(policy, PlanPolicy) or policy.plan.tree.n_nodes < MANY_NODES:
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
    """The workers who were here last."""
    rows = some_workers(connection, number_, policy.problem, sort="seen", most=FEW_ROWS)
    return [{**row, "seen": ago(row["seen_at"], now)} for row in rows]


def _in_words(found: Divided, policy: AnyPolicy) -> Votes:
    texts = {name: policy.problem.text(q) for q, name in enumerate(policy.problem.questions)}
    rows: list[dict[str, object]] = [{**row, "text": texts[row["question"]]} for row in found.items]
    return Votes(found.labels, rows, found.questions)


def _forecast(facts: Progress, promise: Promise | None) -> dict[str, float | None]:
    """Answers, money and seconds still needed: from this campaign, or at first from the plan."""
    items = facts["items"]
    left = facts["forecast"]["answers_left"]
    if left is None and promise is not None:
        left = promise.answers * (items["new"] + items["open"] / 2)
    rate = facts["forecast"]["answers_per_minute"]
    seconds = 60 * left / rate if rate and left is not None else None
    if not items["new"] + items["open"]:
        left, seconds = 0.0, 0.0
    return {
        "answers": left,
        "cost": None if left is None else left * facts["price"],
        "seconds": seconds,
    }


def _headline(
    campaign: Campaign,
    facts: Progress,
    forecast: dict[str, float | None],
    last: float | None,
    now: float,
    worries: int,
) -> tuple[str, str]:
    done, total = facts["items"]["labelled"], facts["items"]["total"]
    status = campaign.status
    if status == "draft":
        return "still", "Not started yet."
    if status == "finished":
        return "done", f"Finished: {count(done)} of {plural(total, 'item')} have a label."
    if status == "finishing":
        return "still", "Finishing: the items still in work get the best label so far."
    if status == "paused":
        why = campaign.status_reason
        return "still", f"Paused{f': {why}' if why else ''}. Nobody is given questions."
    if last is None:
        return "still", "Running, and waiting for the first answer."
    if now - last > QUIET_SECONDS:
        return "worry", f"No answer for {duration(now - last)}. Are workers still there?"
    when = forecast["seconds"]
    about = "" if when is not None and when < 55 else "about "
    rest = "" if when is None else f", done in {about}{duration(when)} at this pace"
    more = f" {plural(worries, 'thing')} to look at below." if worries else ""
    return "good", f"Going well{rest}.{more}"


def _values(
    campaign: Campaign,
    facts: Progress,
    promise: Promise | None,
    forecast: dict[str, float | None],
) -> dict[str, str]:
    items, answers, currency = facts["items"], facts["answers"], campaign.settings.currency
    each = facts["answers_per_item"]
    error = facts["estimated_error"]
    running = campaign.status in ("running", "paused")
    left, cost, seconds = forecast["answers"], forecast["cost"], forecast["seconds"]
    return {
        "status": campaign.status,
        "labelled": count(items["labelled"]),
        "total": count(items["total"]),
        "open": count(items["open"]),
        "new": count(items["new"]),
        "aside": count(items["set_aside"]),
        "answers": count(answers["counted"]),
        "skipped": count(answers["skipped"]),
        "each": "–" if each is None else number(each),
        "each_planned": _planned(promise, "answers"),
        "error": "–" if error is None else percent(error),
        "error_planned": _planned(promise, "error"),
        "spent": money(facts["spent"], currency),
        "cost_total": money(facts["spent"] + (cost or 0.0), currency),
        "left": "–" if left is None or not running else count(left),
        "finish": "–" if seconds is None or not running else brief(seconds),
        "pace": _pace(facts["forecast"]["answers_per_minute"], running),
        "active": count(facts["workers"]["active"]),
        "stopped": count(facts["workers"]["paused"] + facts["workers"]["blocked"]),
    }


def _planned(promise: Promise | None, what: str) -> str:
    if promise is None:
        return "the plan is being worked out"
    about = "about" if promise.exact else "by simulation about"
    words = percent(promise.error) if what == "error" else number(promise.answers)
    return f"planned {about} {words}"


def _pace(rate: float | None, running: bool) -> str:
    return "–" if rate is None or not running else f"{number(rate, 2)} answers a minute"


def _shares(facts: Progress) -> dict[str, float]:
    total = max(facts["items"]["total"], 1)
    names = ("labelled", "open", "set_aside")
    return {name: round(100 * facts["items"][name] / total, 3) for name in names}


def _labels(facts: Progress) -> list[JsonObject]:
    rows: list[JsonObject] = [
        {"place": place, "name": name, "count": value}
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


def _notes(
    connection: Connection,
    campaign: Campaign,
    facts: Progress,
    policy: AnyPolicy,
    promise: Promise | None,
    divided: Votes,
    forecast: dict[str, float | None],
    last: float | None,
    now: float,
) -> list[Note]:
    base = f"/c/{campaign.id}"
    notes = _worker_notes(connection, campaign, facts, last, now)
    if facts["items"]["set_aside"]:
        words = plural(facts["items"]["set_aside"], "item")
        notes.append(
            Note(
                f"{words} set aside: workers could not tell, or nobody was (left) to be asked.",
                f"{base}/items?status=set+aside",
                "See them",
            )
        )
    if facts["undecided"]:
        words = plural(facts["undecided"], "item")
        notes.append(
            Note(
                f"{words} undecided: labelled with the best guess, because more answers would "
                "hardly have reached the error that was asked for.",
                f"{base}/items?status=labelled",
                "See them",
            )
        )
    budget = facts["budget"]
    expected = facts["spent"] + (forecast["cost"] or 0.0)
    if budget is not None and expected > 1.02 * budget and campaign.status != "finished":
        currency = campaign.settings.currency
        notes.append(
            Note(
                f"The budget of {money(budget, currency)} will not be enough: about "
                f"{money(expected, currency)} are needed.",
                f"{base}/share#payment",
                "Change the budget",
            )
        )
    notes += _question_notes(policy, divided, base)
    error, labelled = facts["estimated_error"], facts["items"]["labelled"]
    if promise is None:
        return notes
    if error and labelled >= FEW_VOTES and error > 2 * promise.error:
        notes.append(
            Note(
                f"The labels are less sure than planned: {percent(error)} are expected to be "
                f"wrong, {percent(promise.error)} were planned.",
                f"{base}/items?status=labelled",
                "Look at the items",
            )
        )
    each = facts["answers_per_item"]
    if each and labelled >= FEW_VOTES and each > 1.5 * promise.answers:
        notes.append(
            Note(
                f"Items need {number(each)} answers each, more than the {number(promise.answers)} "
                "planned: people err more often than the table says.",
                f"{base}/workers",
                "Look at the workers",
            )
        )
    return notes


def _worker_notes(
    connection: Connection,
    campaign: Campaign,
    facts: Progress,
    last: float | None,
    now: float,
) -> list[Note]:
    base = f"/c/{campaign.id}"
    notes = []
    if campaign.status == "running" and not sum(facts["workers"].values()):
        notes.append(Note("Nobody has joined yet.", f"{base}/share", "Share the links"))
    elif campaign.status == "running" and last is not None and now - last > QUIET_SECONDS:
        words = f"The last answer came {ago(last, now)}."
        notes.append(Note(words, f"{base}/share", "Invite more people"))
    waiting = facts["waiting_for_workers"]
    if waiting:
        verb = "waits" if waiting == 1 else "wait"
        words = (
            f"{plural(waiting, 'item')} {verb} for more workers: everybody who is here has "
            f"answered, or may not.{_patience(campaign)}"
        )
        notes.append(Note(words, f"{base}/share", "Invite more people"))
    paused = paused_workers(connection, campaign.id)
    if paused:
        words = f"{plural(paused, 'worker')} paused because of low reliability."
        notes.append(Note(words, f"{base}/workers", "Look at them"))
    return notes


def _patience(campaign: Campaign) -> str:
    seconds = campaign.settings.give_up_seconds
    if seconds is None:
        return ""
    return f" After {duration(seconds)} without anybody an item is set aside, with its best label."


def _question_notes(policy: AnyPolicy, divided: Votes, base: str) -> list[Note]:
    """Questions on which people differ far more than their assumed error says."""
    problem = policy.problem
    notes = []
    for name, (against, total) in divided.questions.items():
        assumed = float(problem.worker_error[problem.questions.index(name)].mean())
        if total >= FEW_VOTES and against / total > 2 * assumed + 0.05:
            text = problem.text(problem.questions.index(name))
            notes.append(
                Note(
                    f"“{text}” divides people: {percent(against / total)} of votes go against "
                    f"the verdict, {percent(assumed)} were expected. Are the instructions clear?",
                    f"{base}/share#instructions",
                    "Edit the instructions",
                )
            )
    return notes[:3]
