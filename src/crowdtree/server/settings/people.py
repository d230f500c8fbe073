"""Who may answer a campaign."""

from __future__ import annotations

from typing import Literal

from crowdtree.server.settings.group import PEOPLE, Group, setting


class People(Group):
    """Who may answer."""

    may_join: Literal["any", "named", "signed"] = setting(
        "any",
        "Who may join by the open link",
        "Anybody, only people with a participant id in the link, or only people with a signed one.",
        "Without signed ids, one person can join several times.",
        choices=("anybody", "with an id in the link", "with a signed id, which nobody can choose"),
    )
    max_workers: int = setting(
        10_000,
        "At most this many people",
        "Nobody joins beyond this number; people whom you invite do not count.",
        "With fewer people the campaign takes longer.",
        PEOPLE,
        ge=1,
        le=1_000_000,
    )
    max_workers_per_address: int = setting(
        1_000,
        "From one internet address, at most",
        "People who may join from one internet address.",
        "A low number keeps out people who share an address, such as a school.",
        PEOPLE,
        ge=1,
        le=1_000_000,
    )
    max_joins_per_hour: int = setting(
        3_000,
        "Within an hour, at most",
        "People who may join within an hour.",
        "A low number makes people wait when many come at once.",
        PEOPLE,
        ge=1,
        le=1_000_000,
    )
    participant_parameter: str = setting(
        "PROLIFIC_PID",
        "Name of the id in the link",
        "Query parameter in which a recruiting platform passes the participant id.",
        "Nothing.",
        max_length=64,
        pattern=r"^[A-Za-z0-9_]*$",
    )
    signing_key: int = setting(
        0,
        "Signing key",
        "Number of the key that signs participant ids; the next number is a new key.",
        "Your own site needs each new key.",
        where="page",
        ge=0,
        le=1_000_000,
    )
    oldest_signing_key: int = setting(
        0,
        "Oldest valid signing key",
        "Links that were signed with a key of a lower number are refused.",
        "People with an older link need a new one.",
        where="page",
        ge=0,
        le=1_000_000,
    )
