"""Webhooks are sent, signed, in order."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.webhooks import new_secret, verify_signature
from tests.weblab import Lab, until


def test_webhooks_are_signed_and_deliver_every_label_once(app: Lab) -> None:
    got: list[tuple[dict[str, str], bytes, float]] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((dict(self.headers), body, app.clock()))
            self.send_response(500 if len(got) == 1 else 204)  # the first time it fails
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        number = app.campaign(example="table1", workers=0)
        url = f"http://127.0.0.1:{receiver.server_port}/hook?x=1"
        secret = app.post(f"/api/campaigns/{number}/webhooks", {"url": url}).json()["secret"]
        assert "secret" not in app.get(f"/api/campaigns/{number}/webhooks").text
        worker = app.worker(number)
        while worker.work("yes"):
            pass

        def ended() -> bool:
            app.clock.now += 5  # the next try is due
            return any(json.loads(body)["event"] == "campaign.finished" for _, body, _ in got)

        assert until(ended)
        receiver.shutdown()
    assert all(verify_signature(secret, head, body, now) for head, body, now in got)
    assert not any(verify_signature(new_secret(), head, body, now) for head, body, now in got)
    told = [row["task"] for _, body, _ in got[1:] for row in json.loads(body)["labels"]]
    assert sorted(told) == sorted(f"i{k}" for k in range(20))
