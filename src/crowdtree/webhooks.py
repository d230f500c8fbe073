"""Sign webhooks and verify their signatures; receivers need nothing but the standard library.

Messages follow Standard Webhooks (https://www.standardwebhooks.com), so that its libraries verify
them too. Ignore a message whose header ``webhook-id`` you have seen before.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping

PREFIX = "whsec_"
TOLERANCE_SECONDS = 300.0


def new_secret() -> str:
    """Make a random secret.

    >>> len(new_secret())
    38
    """
    return PREFIX + base64.b64encode(secrets.token_bytes(24)).decode()


def sign(secret: str, message_id: str, seconds: int, body: bytes) -> str:
    """Sign a message that is sent at a time, in seconds since 1970.

    >>> sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_1", 1614265330, b"{}")[:11]
    'v1,ZztYR0II'
    """
    signed = hmac.new(_key(secret), f"{message_id}.{seconds}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(signed.digest()).decode()


def verify_signature(
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    now: float | None = None,
    tolerance: float = TOLERANCE_SECONDS,
) -> bool:
    """Check the signature and the time of a message.

    Parameters
    ----------
    headers
        The headers of the request, of which ``webhook-id``, ``webhook-timestamp`` and
        ``webhook-signature`` are used. While a secret is replaced, a message has several
        signatures; one must be right.
    body
        The body as it was received.
    now
        Seconds since 1970, by default of this moment.
    tolerance
        Seconds by which the message's time may differ from `now`.

    Examples
    --------
    >>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> headers = {"webhook-id": "msg_1", "webhook-timestamp": "1614265330"}
    >>> headers["webhook-signature"] = sign(secret, "msg_1", 1614265330, b"{}")
    >>> verify_signature(secret, headers, b"{}", now=1614265340.0)
    True
    >>> verify_signature(secret, headers, b"{}", now=1614269999.0)
    False
    """
    values = {name.lower(): value for name, value in headers.items()}
    message_id, seconds, signatures = (
        values.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature")
    )
    if not (message_id and seconds.isascii() and seconds.isdigit() and len(seconds) <= 12):
        return False
    if not abs((time.time() if now is None else now) - int(seconds)) <= tolerance:
        return False
    expected = sign(secret, message_id, int(seconds), body).encode()
    return any(hmac.compare_digest(expected, each.encode()) for each in signatures.split(" "))


def _key(secret: str) -> bytes:
    """Decode a secret, with or without its prefix."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise ValueError(f"expected the secret of a webhook, which begins with {PREFIX}")
    return key
