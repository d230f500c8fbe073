"""Sign join links, so that nobody can choose or change the participant id in them.

A signed link carries ``participant``, ``expires`` (seconds since 1970), ``signature`` and, if it
works only once, ``nonce``. The signature is the HMAC-SHA256, in hexadecimal digits, of the lines
``crowdtree``, ``expires``, ``nonce`` and ``participant`` with the campaign's signing key, so that
any web site can make one; :func:`sign_link` does it in Python, with the standard library only.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from crowdtree.core.errors import CrowdtreeError

DAY = 86_400.0
MOST_DAYS = 3650
MOST_DIGITS = 12
MOST_ID = 200
MOST_NONCE = 100


def check_participant(participant: str) -> None:
    """Refuse ids that look like another one: with invisible characters, or spaces at the ends.

    >>> check_participant("ann@example.org")
    >>> check_participant("ann ")
    Traceback (most recent call last):
    crowdtree.CrowdtreeError: participant: expected an id of 1 to 200 visible characters, \
without spaces at its ends, got 'ann '
    """
    visible = participant.isprintable() and participant == participant.strip()
    if not 1 <= len(participant) <= MOST_ID or not visible:
        raise CrowdtreeError(
            f"participant: expected an id of 1 to {MOST_ID} visible characters, "
            f"without spaces at its ends, got {participant[:MOST_ID]!a}"
        )


def signature_of(key: str, participant: str, expires: int, nonce: str = "") -> str:
    """Sign a participant id.

    >>> signature_of("key", "ann", 2000)[:8]
    '407b7672'
    """
    text = "\n".join(("crowdtree", str(expires), nonce, participant))
    return hmac.new(key.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def sign_link(
    link: str,
    key: str,
    participant: str,
    *,
    seconds: float = DAY,
    once: bool = False,
    parameter: str = "participant",
    now: float | None = None,
) -> str:
    """Add a participant id to a join link and sign it.

    Parameters
    ----------
    link
        The open join link of a campaign, ``https://.../join/...``.
    key
        The campaign's signing key (``crowdtree campaign sign-link`` reads it itself;
        ``GET /api/campaigns/N/signing-key`` returns it).
    participant
        Any id that is one person's for good, such as the number of an account.
    seconds
        For how long the link can be opened.
    once
        Whether it can be opened only once, by the first who has it.
    parameter
        The query parameter for the id: ``participant`` always works.
    now
        Seconds since 1970; the computer's clock by default.

    Examples
    --------
    >>> sign_link("https://label.example/join/abc", "key", "ann", seconds=1000, now=1000)[:67]
    'https://label.example/join/abc?participant=ann&expires=2000&signatu'
    """
    parts = urlsplit(link)
    if not parts.netloc or "/join/" not in parts.path:
        raise CrowdtreeError(f"link: expected a join link, with /join/ in it, got {link!r}")
    if not key:
        raise CrowdtreeError("link: expected the campaign's signing key, got an empty one")
    check_participant(participant)
    if not 0 < seconds <= MOST_DAYS * DAY:
        days = seconds / DAY
        raise CrowdtreeError(f"link: expected more than 0 and up to {MOST_DAYS} days, got {days:g}")
    expires = int((time.time() if now is None else now) + seconds)
    query = [*parse_qsl(parts.query), (parameter, participant), ("expires", str(expires))]
    nonce = secrets.token_urlsafe(16) if once else ""
    query += [("nonce", nonce)] if once else []
    query.append(("signature", signature_of(key, participant, expires, nonce)))
    return urlunsplit(parts._replace(query=urlencode(query)))


def verify_participant(
    key: str, participant: str, expires: str, nonce: str, signature: str, now: float
) -> bool:
    """Check the signature of a participant id, in constant time, and that it has not expired.

    >>> signed = signature_of("key", "ann", 2000)
    >>> verify_participant("key", "ann", "2000", "", signed, now=1999.0)
    True
    >>> verify_participant("key", "bob", "2000", "", signed, now=1999.0)
    False
    >>> verify_participant("key", "ann", "2000", "", signed, now=2001.0)
    False
    """
    plain = expires.isascii() and expires.isdigit() and len(expires) <= MOST_DIGITS
    if not plain or len(nonce) > MOST_NONCE or not nonce.isprintable():
        return False
    right = signature_of(key, participant, int(expires), nonce)
    same = hmac.compare_digest(right.encode(), signature.encode("utf-8", "surrogatepass"))
    return same and now <= int(expires)
