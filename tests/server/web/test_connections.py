"""Responses are sent in few pieces, and never held back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import aside

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.server.web.connections import JoinedWrites

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Recorder:
    """A transport that notes what it is told."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.sent.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> str:
        return name


def played(*steps: str) -> list[bytes]:
    """What is sent by some steps: parts of a response, a turn of the event loop, the end."""

    async def play() -> list[bytes]:
        recorder: Any = Recorder()
        joined = JoinedWrites(recorder, asyncio.get_running_loop())
        assert joined.get_extra_info("peername") == "peername"
        for step in steps:
            if step == "turn":
                await asyncio.sleep(0)
            elif step == "close":
                joined.close()
                assert joined.is_closing()
            else:
                joined.write(HEAD if step == "head" else step.encode())
        return list(recorder.sent)

    return aside.run(play())


def test_a_head_is_sent_with_its_body() -> None:
    assert played("head", "body", "turn") == [HEAD + b"body"]
    assert played("head", "a", "b", "head", "c") == [HEAD + b"a", b"b", HEAD + b"c"]


def test_a_head_without_a_body_is_sent_soon() -> None:
    assert played("head") == []
    assert played("head", "turn") == [HEAD]
    assert played("head", "turn", "body") == [HEAD, b"body"]
    assert played("head", "") == [HEAD]
    assert played("head", "close", "turn") == [HEAD]


def test_two_heads_in_a_row_are_both_sent() -> None:
    assert played("head", "head", "turn") == [HEAD + HEAD]
