"""Signatures of webhooks follow Standard Webhooks, with the standard library alone."""

from __future__ import annotations

import base64
import subprocess
import sys

import pytest

from crowdtree.webhooks import new_secret, sign, verify_signature

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE, SECONDS, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
"""The example that the libraries of Standard Webhooks are tested with."""
OTHER = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="


def verified(signature: str = SIGNATURE, body: bytes = BODY, **changes: str | float) -> bool:
    now = float(changes.pop("now", SECONDS))
    secret = str(changes.pop("secret", SECRET))
    headers = {"id": MESSAGE, "timestamp": str(SECONDS), "signature": signature, **changes}
    named = {f"webhook-{name}": str(value) for name, value in headers.items()}
    return verify_signature(secret, named, body, now)


def test_the_example_of_the_specification():
    assert sign(SECRET, MESSAGE, SECONDS, BODY) == SIGNATURE
    assert verified()
    assert verified(secret=SECRET.removeprefix("whsec_"))


def test_forged_messages_are_refused():
    assert not verified(body=BODY + b" ")
    assert not verified(id="msg_other")
    assert not verified(timestamp=str(SECONDS + 1))
    assert not verified(secret=new_secret())
    for signature in ("", "v1", "v1,", SIGNATURE[:8], SIGNATURE[3:], OTHER, "v2" + SIGNATURE[2:]):
        assert not verified(signature), signature
    for name in ("id", "timestamp", "signature"):
        assert not verified(**{name: ""})
    for seconds in ("hello", "-1", "1614265330.0", "٣", "9" * 400, " 1614265330"):
        assert not verified(timestamp=seconds), seconds


def test_messages_may_be_five_minutes_old_or_early():
    for seconds, expected in ((0, True), (300, True), (301, False)):
        assert verified(now=SECONDS + seconds) is expected
        assert verified(now=SECONDS - seconds) is expected
    headers = {"webhook-id": "a", "webhook-timestamp": "0"}
    headers["webhook-signature"] = sign(SECRET, "a", 0, b"")
    assert verify_signature(SECRET, headers, b"", now=3000.0, tolerance=3000.0)
    assert not verify_signature(SECRET, headers, b"")  # now


def test_one_of_several_signatures_is_enough():
    assert verified(f"{OTHER} v1a,{SIGNATURE[3:]} {SIGNATURE} {OTHER}")
    assert not verified(f"{OTHER} v1a,{SIGNATURE[3:]} {OTHER}")


def test_names_of_headers_are_read_in_any_case():
    headers = {"Webhook-Id": MESSAGE, "WEBHOOK-TIMESTAMP": str(SECONDS)}
    assert verify_signature(SECRET, {**headers, "webhook-signature": SIGNATURE}, BODY, SECONDS)


def test_secrets():
    secret = new_secret()
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) >= 24
    assert secret != new_secret()
    for wrong in ("", "whsec_", "whsec_%", "a secret"):
        with pytest.raises(ValueError, match="expected the secret of a webhook"):
            verified(secret=wrong)


def test_signatures_are_verified_with_the_standard_library_alone():
    code = (
        "import sys; from crowdtree.webhooks import verify_signature; "
        "print([name for name in sys.modules if name.partition('.')[0] in sys.argv])"
    )
    packages = ["numpy", "scipy", "sqlalchemy", "fastapi", "pydantic", "numba", "httpx"]
    command = [sys.executable, "-c", code, *packages]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
