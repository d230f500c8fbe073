"""Submissions and their workers: approved, rejected, and paid once."""

from __future__ import annotations

from typing import Any

import pytest

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.prolific.client import ProlificError
from crowdtree.server.prolific.ledger import record
from crowdtree.server.prolific.studies import create_study
from crowdtree.server.prolific.submissions import approve, list_submissions, pay_bonuses, reject
from tests.server.prolific.conftest import PAID, WISH, participant

MESSAGE = (
    "We found no answers of yours in our records, and the code that you entered is not ours. " * 2
)


@pytest.fixture
def running(app: Any, stub: Any) -> int:
    """A campaign with a study: p1 answers 10 times, p2 4 times, p3 once."""
    number = int(app.campaign(settings=PAID))
    create_study(app.store, stub.client, number, WISH)
    for name, answers in (("p1", 10), ("p2", 4), ("p3", 1)):
        participant(app, stub, name, answers)
    stub.submit("study1", "stranger", "WRONG")
    return number


def test_submissions_are_matched_with_workers(app: Any, stub: Any, running: int) -> None:
    invented = stub.studies["study1"]["external_study_url"].partition("/join/")[2]
    body = {"token": invented.partition("?")[0], "participant": "invented"}
    app.client.post("/api/join", json=body)
    found = list_submissions(app.store, stub.client, running)
    rows = {row["participant"]: row for row in found["submissions"]}
    assert {name: row["accepted"] for name, row in rows.items()} == {
        "p1": 10,
        "p2": 4,
        "p3": 1,
        "stranger": 0,
    }
    assert [name for name, row in rows.items() if row["complete"]] == ["p1", "p2"]
    assert rows["stranger"]["worker"] is None
    assert rows["stranger"]["code_matches"] is False
    assert rows["p1"]["code_matches"] is True
    assert [row["participant"] for row in found["unlisted"]] == ["invented"]


def test_complete_submissions_are_approved_once(app: Any, stub: Any, running: int) -> None:
    found = approve(app.store, stub.client, running, dry_run=True)
    assert found["due"] == ["sub1", "sub2"]
    assert stub.posts("/transition/") == 0
    stub.failing = ("/sub2/transition/", 500)
    with pytest.raises(ProlificError, match="1 of 2 submissions done"):
        approve(app.store, stub.client, running)
    assert approve(app.store, stub.client, running)["approved"] == ["sub2"]
    again = approve(app.store, stub.client, running, ["sub1", "sub2", "sub1"])
    assert (again["approved"], again["already"]) == ([], ["sub1", "sub2"])
    with pytest.raises(CrowdtreeError, match="no submission 'sub9'"):
        approve(app.store, stub.client, running, ["sub3", "sub9"])
    assert stub.submissions["sub3"]["status"] == "AWAITING REVIEW"


def test_rejections_have_a_category_and_a_message(app: Any, stub: Any, running: int) -> None:
    def send(category: str, message: str) -> Any:
        return reject(app.store, stub.client, running, ["sub4"], category, message)

    with pytest.raises(CrowdtreeError, match="category: expected one of TOO_QUICKLY"):
        send("rude", MESSAGE)
    with pytest.raises(CrowdtreeError, match=r"at least 100 characters .* got 3"):
        send("NO_DATA", "bad")
    assert stub.submissions["sub4"]["status"] == "AWAITING REVIEW"
    stub.losing = "/sub4/transition/"
    with pytest.raises(ProlificError, match="run the same again"):
        send("no_data", MESSAGE)
    assert send("NO_DATA", MESSAGE)["already"] == ["sub4"]
    with pytest.raises(CrowdtreeError, match="cannot approve submission sub4: it is rejected"):
        approve(app.store, stub.client, running, ["sub4"])


def pay(app: Any, stub: Any, number: int, **options: Any) -> Any:
    return pay_bonuses(app.store, stub.client, number, **options)


def test_bonuses_are_what_was_earned_beyond_the_reward(app: Any, stub: Any, running: int) -> None:
    assert pay(app, stub, running)["bonuses"] == {}
    approve(app.store, stub.client, running)
    found = pay(app, stub, running, dry_run=True)
    assert found["bonuses"] == {"sub1": 30}  # 10 answers at 0.05, less the reward of 0.20
    assert found["text"] == "1 bonus to pay, 0.30 GBP and Prolific's fees."
    assert not stub.batches
    assert pay(app, stub, running)["paid"]
    assert pay(app, stub, running)["bonuses"] == {}  # although Prolific lists nothing yet
    stub.settle()
    assert pay(app, stub, running)["bonuses"] == {}
    assert stub.submissions["sub1"]["bonus_payments"] == [30.0]
    assert stub.posts("/pay/") == 1


def test_bonuses_paid_on_the_site_count(app: Any, stub: Any, running: int) -> None:
    approve(app.store, stub.client, running)
    stub.submissions["sub1"]["bonus_payments"] = ["much"]
    with pytest.raises(ProlificError, match="bonus_payments: expected a whole number, got 'much'"):
        pay(app, stub, running)
    stub.submissions["sub1"]["bonus_payments"] = [12.0, 8.0]
    assert pay(app, stub, running, names=["sub2"])["bonuses"] == {}
    assert pay(app, stub, running)["bonuses"] == {"sub1": 10}


def test_a_lost_reply_never_pays_twice(app: Any, stub: Any, running: int) -> None:
    approve(app.store, stub.client, running)
    stub.losing = "/pay/$"
    with pytest.raises(ProlificError, match="may have been paid"):
        pay(app, stub, running)
    for dry_run in (False, True):
        with pytest.raises(CrowdtreeError, match="record the outcome"):
            pay(app, stub, running, dry_run=dry_run)
    stub.settle()
    with pytest.raises(CrowdtreeError, match="a real run records that"):
        pay(app, stub, running, dry_run=True)
    assert pay(app, stub, running)["bonuses"] == {}
    assert stub.posts("/pay/") == 1
    assert stub.submissions["sub1"]["bonus_payments"] == [30.0]


def test_the_owner_settles_a_payment(app: Any, stub: Any, running: int) -> None:
    approve(app.store, stub.client, running)
    stub.failing = ("/pay/$", 503)
    with pytest.raises(ProlificError, match="may have been paid"):
        pay(app, stub, running)
    assert "counts as unpaid" in pay(app, stub, running, outcome="unpaid")["text"]
    with pytest.raises(CrowdtreeError, match="no payment without a reply"):
        pay(app, stub, running, outcome="paid")
    assert pay(app, stub, running)["paid"]
    stub.settle()
    assert stub.submissions["sub1"]["bonus_payments"] == [30.0]


def test_a_refused_payment_can_be_sent_again(app: Any, stub: Any, running: int) -> None:
    approve(app.store, stub.client, running)
    for path in ("/bonus-payments/$", "/pay/$"):
        stub.failing = (path, 400)
        with pytest.raises(ProlificError, match=r"A fault of the stub\. \(400\)"):
            pay(app, stub, running)
    assert pay(app, stub, running)["paid"]
    assert len(stub.pending) == 1


def test_two_payments_at_once_pay_once(app: Any, stub: Any, running: int) -> None:
    approve(app.store, stub.client, running)
    client = stub.client

    def meanwhile(_: str, amounts: Any) -> str:
        """Another process sends its payment first."""
        sent = {"call": "bonus", "state": "sent", "payment": "b", "amounts": amounts, "before": {}}
        app.store.write(lambda c: record(c, running, app.clock(), sent))
        return "batch1"

    client.set_up_bonuses = meanwhile
    with pytest.raises(CrowdtreeError, match="somebody else has just sent"):
        pay_bonuses(app.store, client, running)
    assert stub.posts("/pay/") == 0
