"""Sign webhooks and verify their signatures; receivers need nothing but the standard library.

The signature is ``t=SECONDS,v1=HEX``: HMAC-SHA256 of ``SECONDS.BODY`` with the webhook's secret.
Verify it with :func:`verify_signature`, which rejects old messages, and ignore message ids that
were processed before.
"""

from __future__ import annotations

import hashlib
import hmac

OLDEST_SECONDS = 300.0


def sign(secret: str, body: bytes, now: float) -> str:
    """Sign a message.

    >>> sign("secret", b"{}", 1.0)[:8]
    't=1,v1=1'
    """
    seconds = str(int(now))
    signed = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={signed.hexdigest()}"


def verify_signature(secret: str, header: str, body: bytes, now: float) -> bool:
    """Check a message's signature and age.

    >>> header = sign("secret", b"{}", 1000.0)
    >>> verify_signature("secret", header, b"{}", 1010.0)
    True
    >>> verify_signature("secret", header, b"{}", 2000.0)
    False
    """
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    seconds = parts.get("t", "")
    if not seconds.isascii() or not seconds.isdigit() or len(seconds) > 12:
        return False
    if abs(now - int(seconds)) > OLDEST_SECONDS:
        return False
    return hmac.compare_digest(sign(secret, body, int(seconds)).encode(), header.encode())
