"""Signed join links."""

from __future__ import annotations

import hashlib
import hmac
import math
from urllib.parse import parse_qsl, urlsplit

import pytest

from crowdtree.core.errors import CrowdtreeError
from crowdtree.participants import sign_link, signature_of, verify_participant

LINK = "https://label.example/join/abc?STUDY_ID=s"


def test_a_link_keeps_its_query_and_is_valid_until_it_expires() -> None:
    link = sign_link(LINK, "key", "ann é&=", seconds=10.0, now=100.0)
    query = dict(parse_qsl(urlsplit(link).query))
    assert (query["STUDY_ID"], query["participant"], query["expires"]) == ("s", "ann é&=", "110")
    proof = (query["participant"], query["expires"], "", query["signature"])
    assert verify_participant("key", *proof, now=110.0)
    assert not verify_participant("key", *proof, now=110.5)
    assert not verify_participant("other key", *proof, now=100.0)


def test_the_signature_is_what_the_documentation_says() -> None:
    text = "\n".join(("crowdtree", "110", "n0nce", "ann"))
    wanted = hmac.new(b"key", text.encode(), hashlib.sha256).hexdigest()
    assert signature_of("key", "ann", 110, "n0nce") == wanted


@pytest.mark.parametrize(
    ("expires", "nonce", "participant"),
    [
        ("110", "", "bob"),
        ("111", "", "ann"),
        ("110", "x", "ann"),
        ("-110", "", "ann"),
        ("1e9", "", "ann"),
        ("9" * 13, "", "ann"),
        ("١١٠", "", "ann"),
        ("", "", "ann"),
        ("110", "a\nb", "ann"),
        ("110", "n" * 101, "ann"),
    ],
)
def test_nothing_of_it_can_be_changed(expires: str, nonce: str, participant: str) -> None:
    signed = signature_of("key", "ann", 110)
    assert verify_participant("key", "ann", "110", "", signed, now=0.0)
    assert not verify_participant("key", participant, expires, nonce, signed, now=0.0)


def test_lines_cannot_be_moved_between_the_parts() -> None:
    """An id with a line break is not the same as a nonce and an id."""
    assert signature_of("key", "a\nb", 1) != signature_of("key", "b", 1, "a")
    signed = signature_of("key", "b", 1, "\na")
    assert not verify_participant("key", "b", "1", "\na", signed, now=0.0)


@pytest.mark.parametrize("signature", ["", "0", "é", "\udcff", "0" * 64])
def test_a_signature_that_is_none_is_refused(signature: str) -> None:
    assert not verify_participant("key", "ann", "110", "", signature, now=0.0)


@pytest.mark.parametrize(
    ("link", "key", "participant", "seconds"),
    [
        ("https://label.example/w/abc", "key", "ann", 1.0),
        ("/join/abc", "key", "ann", 1.0),
        (LINK, "", "ann", 1.0),
        (LINK, "key", "", 1.0),
        (LINK, "key", "ann", 0.0),
        (LINK, "key", "ann", math.nan),
        (LINK, "key", "ann", math.inf),
        (LINK, "key", "ann", 1e300),
        (LINK, "key", "a" * 201, 1.0),
    ],
)
def test_mistakes_are_reported(link: str, key: str, participant: str, seconds: float) -> None:
    with pytest.raises(CrowdtreeError, match=r"^(link|participant): expected"):
        sign_link(link, key, participant, seconds=seconds)


def test_links_for_one_use_differ() -> None:
    made = {sign_link(LINK, "key", "ann", once=True, now=1.0) for _ in range(3)}
    assert len(made) == 3
