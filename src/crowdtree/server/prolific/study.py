"""The study of a campaign: its address, reward, estimated time and completion code."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
from dataclasses import dataclass
from urllib.parse import urlsplit

from crowdtree.core.errors import CrowdtreeError, one_line
from crowdtree.server.store.db.campaign_row import Campaign
from crowdtree.server.store.settings import MICRO, Settings
from crowdtree.server.store.types import JsonObject

CENT = MICRO // 100
CURRENCIES = ("", "GBP", "USD", "£", "$")
RETURN = "https://app.prolific.com/submissions/complete?cc="
DEVICES = ("desktop", "tablet", "mobile")
MOST_MINUTES = 24 * 60


@dataclass(frozen=True)
class Wish:
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
    if campaign.settings.personal_codes:
        raise CrowdtreeError(
            "prolific: personal_codes is on, but all participants of a study need the same code; "
            "switch personal_codes off"
        )
    made = base64.b32encode(_derived(campaign.secret, "completion")).decode()[:10]
    return campaign.settings.completion_code or made


def study_body(campaign: Campaign, wish: Wish, token: str, attempt: int) -> JsonObject:
    """Make the draft that is sent; `token` is that of a join link."""
    settings = campaign.settings
    _check(settings, wish)
    title = wish.title.strip() or campaign.name
    code = code_for(campaign)
    return {
        "name": title,
        "internal_name": internal_name(campaign, attempt),
        "description": wish.description.strip() or settings.instructions.strip() or title,
        "external_study_url": _address(settings, wish.url, token),
        "prolific_id_option": "url_parameters",
        "completion_codes": [
            {"code": code, "code_type": "COMPLETED", "actions": [{"action": "MANUALLY_REVIEW"}]}
        ],
        "total_available_places": wish.places,
        "estimated_completion_time": _minutes(settings, wish),
        "reward": _reward(settings),
        "device_compatibility": list(DEVICES),
        "peripheral_requirements": [],
        "filters": [],
    }


def settings_after(campaign: Campaign) -> dict[str, object]:
    """Settings that send participants back to the study with its code, where they are not set."""
    code, now = code_for(campaign), campaign.settings
    wanted = {"completion_code": code, "return_url": RETURN + code}
    return {name: value for name, value in wanted.items() if not getattr(now, name)}


def _check(settings: Settings, wish: Wish) -> None:
    if not 1 <= wish.places <= settings.most_workers:
        raise CrowdtreeError(
            f"places: expected 1 to most_workers ({settings.most_workers}), got {wish.places}"
        )
    if not 0 < wish.seconds <= 3600:
        raise CrowdtreeError(f"seconds: expected up to 3600 per answer, got {wish.seconds:g}")
    if settings.currency.upper() not in CURRENCIES:
        raise CrowdtreeError(
            f"settings: currency: Prolific pays in GBP or USD, got {settings.currency!r}"
        )
    if settings.participants == "signed":
        raise CrowdtreeError(
            "settings: participants: Prolific does not sign ids; expected named, got signed"
        )


def _reward(settings: Settings) -> int:
    """Minor units for the answers that a participant must give."""
    reward = in_cents(settings.price_micros * settings.least_answers)
    if not reward:
        raise CrowdtreeError(
            "settings: price: a study needs a reward; set price, and least_answers to the accepted "
            "answers that it is for"
        )
    return reward


def _minutes(settings: Settings, wish: Wish) -> int:
    minutes = max(1, math.ceil(settings.least_answers * wish.seconds / 60))
    if minutes > MOST_MINUTES:
        raise CrowdtreeError(
            f"seconds: {settings.least_answers} answers (least_answers) would take {minutes} "
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
    name = settings.participant_parameter or "participant"
    query = f"{name}={{{{%PROLIFIC_PID%}}}}&STUDY_ID={{{{%STUDY_ID%}}}}"
    return f"{url.rstrip('/')}/join/{token}?{query}&SESSION_ID={{{{%SESSION_ID%}}}}"


def _derived(secret: str, purpose: str) -> bytes:
    return hmac.new(secret.encode(), f"prolific:{purpose}".encode(), hashlib.sha256).digest()
