"""What is derived from the secret of a campaign by HMAC-SHA256, and so cannot be guessed."""

from __future__ import annotations

import base64
import hmac
import secrets
from functools import lru_cache

from crowdtree.server.settings.model import Settings

MAX_ENDING = 4
"""Longest extension of a file name that is kept."""


def new_secret() -> str:
    """Make the secret of a campaign."""
    return secrets.token_urlsafe(32)


def _derived(secret: str, purpose: str, text: str = "") -> bytes:
    return hmac.digest(secret.encode(), f"{purpose}:{text}".encode(), "sha256")


@lru_cache(maxsize=4096)  # an item is shown to several people, one soon after the other
def item_name(secret: str, task: str) -> str:
    """Name an item for workers, so that its name says nothing about it.

    >>> item_name("secret", "gold 1"), len(item_name("secret", "plain 1"))
    ('352090352195d1ec', 16)
    """
    return _derived(secret, "item", task).hex()[:16]


def file_name(secret: str, name: str) -> str:
    """Name an uploaded file for workers; the extension stays.

    >>> file_name("secret", "gold 1.png")[16:], file_name("secret", "x.is gold")[16:]
    ('.png', '')
    """
    stem, _, ending = name.rpartition(".")
    kept = stem and ending.isalnum() and len(ending) <= MAX_ENDING
    return _derived(secret, "file", name).hex()[:16] + (f".{ending}" if kept else "")


def personal_code(secret: str, worker: int) -> str:
    """The completion code of one worker.

    >>> personal_code("secret", 7)
    'Y4VS-DP75-4SUG'
    """
    text = base64.b32encode(_derived(secret, "code", str(worker))).decode()
    return "-".join((text[:4], text[4:8], text[8:12]))


def code_of(settings: Settings, secret: str, worker: int) -> str:
    """The completion code that a worker gets; empty where the campaign gives none."""
    return (
        personal_code(secret, worker)
        if settings.money.personal_codes
        else settings.money.completion_code
    )


def signing_key(secret: str, number: int) -> str:
    """A key with which a campaign's participant ids are signed; the owner can see it.

    >>> signing_key("secret", 0) == signing_key("secret", 1)
    False
    """
    return _derived(secret, f"participants {number}" if number else "participants").hex()


def network_mark(secret: str, network: str) -> str:
    """Recognise a network without storing its address; nothing for no network."""
    return _derived(secret, "network", network).hex()[:32] if network else ""
