"""The study of a campaign: its address, reward, estimated time and completion code."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
from dataclasses import dataclass
from urllib.parse import urlsplit

from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.server.settings.model import Settings
from crowdtree.server.settings.money import MICRO
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.types import JsonObject

CENT = MICRO // 100
CURRENCIES = ("", "GBP", "USD", "£", "$")
RETURN = "https://app.prolific.com/submissions/complete?cc="
DEVICES = ("desktop", "tablet", "mobile")
MOST_MINUTES = 24 * 60


@dataclass(frozen=True)
class StudyRequest:
    """What an owner chooses for a study; the rest follows from the campaign's settings."""

    places: int
    """Participants."""
    url: str = ""
    """Public address of the server."""
    seconds: float = 20.0
    """Expected time per answer."""
    title: str = ""
    """Title for participants; the campaign's name by default."""
    description: str = ""
    """Description for participants; the campaign's instructions by default."""


def in_cents(micros: int) -> int:
    """Convert millionths to minor units, rounded up, so that nobody gets less than was promised.

    >>> in_cents(1_500_000), in_cents(50_001)
    (150, 6)
    """
    return -(-micros // CENT)


def written(cents: int, currency: str = "") -> str:
    """Write an amount.

    >>> written(150, "GBP"), written(5)
    ('1.50 GBP', '0.05')
    """
    return f"{cents // 100}.{cents % 100:02d} {currency}".strip()


def internal_name(campaign: Campaign, attempt: int) -> str:
    """Name a study so that it is found again when the reply to its creation was lost."""
    mark = _derived(campaign.secret, f"study:{attempt}").hex()[:16]
    return f"crowdtree-{campaign.id}-{mark}"


def code_for(campaign: Campaign) -> str:
    """The completion code of the study: the campaign's, or a derived one that nobody can guess."""
    if campaign.settings.money.personal_codes:
        raise CrowdtreeError(
            "prolific: money.personal_codes is on, but all participants of a study need the same "
            "code; switch money.personal_codes off"
        )
    made = base64.b32encode(_derived(campaign.secret, "completion")).decode()[:10]
    return campaign.settings.money.completion_code or made


def study_body(campaign: Campaign, request: StudyRequest, token: str, attempt: int) -> JsonObject:
    """Make the draft that is sent; `token` is that of a join link."""
    settings = campaign.settings
    _check(settings, request)
    title = request.title.strip() or campaign.name
    code = code_for(campaign)
    return {
        "name": title,
        "internal_name": internal_name(campaign, attempt),
        "description": request.description.strip() or settings.tasks.instructions.strip() or title,
        "external_study_url": _address(settings, request.url, token),
        "prolific_id_option": "url_parameters",
        "completion_codes": [
            {"code": code, "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]}
        ],
        "total_available_places": request.places,
        "estimated_completion_time": _minutes(settings, request),
        "reward": _reward(settings),
        "device_compatibility": list(DEVICES),
        "peripheral_requirements": [],
        "filters": [],
    }


def settings_after(campaign: Campaign) -> dict[str, object]:
    """Settings that send participants back to the study with its code, where they are not set."""
    code, now = code_for(campaign), campaign.settings.values()
    wanted = {"money.completion_code": code, "money.return_url": RETURN + code}
    return {name: value for name, value in wanted.items() if not now[name]}


def _check(settings: Settings, request: StudyRequest) -> None:
    if not 1 <= request.places <= settings.people.max_workers:
        raise CrowdtreeError(
            f"places: expected 1 to people.max_workers ({settings.people.max_workers}), "
            f"got {request.places}"
        )
    if not 0 < request.seconds <= 3600:
        raise CrowdtreeError(f"seconds: expected up to 3600 per answer, got {request.seconds:g}")
    if settings.money.currency.upper() not in CURRENCIES:
        raise CrowdtreeError(
            "settings: money.currency: Prolific pays in GBP or USD, got "
            f"{settings.money.currency!r}"
        )
    if settings.people.may_join == "signed":
        raise CrowdtreeError(
            "settings: people.may_join: Prolific does not sign ids; expected named, got signed"
        )


def _reward(settings: Settings) -> int:
    """Minor units for the answers that a participant must give."""
    reward = in_cents(settings.money.price_micros * settings.money.min_answers_for_code)
    if not reward:
        raise CrowdtreeError(
            "settings: money.price: a study needs a reward; set a price, and "
            "money.min_answers_for_code to the accepted answers that it is for"
        )
    return reward


def _minutes(settings: Settings, request: StudyRequest) -> int:
    answers = settings.money.min_answers_for_code
    minutes = max(1, math.ceil(answers * request.seconds / 60))
    if minutes > MOST_MINUTES:
        raise CrowdtreeError(
            f"seconds: {answers} answers (money.min_answers_for_code) would take {minutes} "
            "minutes; a study may take less than a day"
        )
    return minutes


def _address(settings: Settings, url: str, token: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise CrowdtreeError(
            "url: Prolific sends participants to an https address; expected the public one of the "
            f"server, such as https://label.example, got {one_line(url)}"
        )
    name = settings.people.participant_parameter or "participant"
    query = f"{name}={{{{%PROLIFIC_PID%}}}}&STUDY_ID={{{{%STUDY_ID%}}}}"
    return f"{url.rstrip('/')}/join/{token}?{query}&SESSION_ID={{{{%SESSION_ID%}}}}"


def _derived(secret: str, purpose: str) -> bytes:
    return hmac.new(secret.encode(), f"prolific:{purpose}".encode(), hashlib.sha256).digest()
