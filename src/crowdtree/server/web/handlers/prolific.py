"""The study of a campaign on Prolific: create and move it, review submissions, pay bonuses."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import BeforeValidator, Field

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.prolific import ledger, studies, submissions
from crowdtree.server.prolific.client import TOKEN_VARIABLE, Client
from crowdtree.server.prolific.studies import StudyRequest
from crowdtree.server.prolific.submissions import MIN_MESSAGE, Category, Outcome
from crowdtree.server.store.types import JsonObject
from crowdtree.server.web.routing import Body, Id, Reply, Routes, State

routes = Routes("owner")
BASE = "/api/campaigns/{campaign_id}/prolific"
Names = Annotated[
    list[Annotated[str, Field(max_length=64)]],
    Field(max_length=10_000),
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),  # from a form
]


class CallRequest(Body):
    """A call; with `dry_run`, only what would be sent is reported."""

    dry_run: bool = False


class NewStudy(CallRequest):
    """A study: participants, seconds per answer, and texts for participants."""

    places: Annotated[int, Field(ge=1, le=1_000_000)]
    seconds: Annotated[float, Field(gt=0, le=3600)] = 20.0
    title: Annotated[str, Field(max_length=200)] = ""
    description: Annotated[str, Field(max_length=50_000)] = ""
    url: Annotated[str, Field(max_length=1000)] = ""
    """Public address of the server; the one that it was started with by default."""


class ApproveRequest(CallRequest):
    """Submissions to approve; without any, those that await review with enough answers."""

    submissions: Names | None = None


class RejectRequest(CallRequest):
    """Submissions to reject, with a category of Prolific and a message to the participants."""

    submissions: Annotated[Names, Field(min_length=1)]
    category: Annotated[str, Field(max_length=64)]
    message: Annotated[str, Field(max_length=10_000)]


class BonusRequest(CallRequest):
    """Submissions whose bonuses to pay, or the outcome of a payment whose reply was lost."""

    submissions: Names | None = None
    outcome: Outcome | None = None


@routes.api(f"POST {BASE}/create", "editor")
def create(state: State, campaign_id: Id, given: NewStudy) -> JsonObject:
    """Create a draft study, once per campaign; a repetition returns the same study."""
    url = given.url or state.options.url
    request = StudyRequest(given.places, url, given.seconds, given.title, given.description)
    client = Client.from_environment()
    return studies.create_study(state.store, client, campaign_id, request, given.dry_run)


@routes.api(f"GET {BASE}/submissions", "editor")
def list_submissions(state: State, campaign_id: Id) -> JsonObject:
    """List the submissions with their workers, and participants whom Prolific does not list."""
    client = Client.from_environment()
    return submissions.list_submissions(state.store, client, campaign_id)


@routes.api(f"POST {BASE}/approve", "editor")
def approve(state: State, campaign_id: Id, given: ApproveRequest) -> JsonObject:
    """Approve submissions: Prolific pays the reward, which cannot be taken back."""
    client, names = Client.from_environment(), given.submissions
    return submissions.approve(state.store, client, campaign_id, names, given.dry_run)


@routes.api(f"POST {BASE}/reject", "editor")
def reject(state: State, campaign_id: Id, given: RejectRequest) -> JsonObject:
    """Reject submissions: the participants are not paid, and read the message."""
    client, names = Client.from_environment(), given.submissions
    why = (given.category, given.message)
    return submissions.reject(state.store, client, campaign_id, names, *why, given.dry_run)


@routes.api(f"POST {BASE}/bonus", "editor")
def bonus(state: State, campaign_id: Id, given: BonusRequest) -> JsonObject:
    """Pay what participants have earned beyond the reward, once."""
    client, details = Client.from_environment(), (given.submissions, given.outcome, given.dry_run)
    return submissions.pay_bonuses(state.store, client, campaign_id, *details)


@routes.api(f"POST {BASE}/{{move}}", "editor")
def move(
    state: State, campaign_id: Id, move: studies.Move, given: CallRequest | None = None
) -> JsonObject:
    """Publish, pause, resume or stop the study; nothing happens if it is there already."""
    client, dry_run = Client.from_environment(), given is not None and given.dry_run
    return studies.move_study(state.store, client, campaign_id, move, dry_run)


@routes.page("GET /c/{campaign_id}/prolific", "editor", "prolific.html")
def page(state: State, campaign_id: Id) -> Reply:
    """Show the study, its submissions with their workers, and what can be done."""
    campaign, known = state.store.read(lambda c: ledger.look(c, campaign_id))
    found, problem = None, ""
    try:
        client = Client.from_environment()
        if known.study is not None:
            found = submissions.list_submissions(state.store, client, campaign_id)
    except CrowdtreeError as error:
        problem = str(error)
    return {
        "campaign": campaign,
        "known": known,
        "found": found,
        "problem": problem,
        "categories": get_args(Category),
        "least": MIN_MESSAGE,
        "url": state.options.url,
        "variable": TOKEN_VARIABLE,
    }
