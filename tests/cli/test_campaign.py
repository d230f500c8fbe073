"""The verb campaign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import crowdtree as ct
from crowdtree.cli import main
from crowdtree.io import problem_to_dict
from crowdtree.server.reasons import CampaignReason
from crowdtree.server.store import Next, Store, Submit, tokens
from crowdtree.server.store.audits import checking
from crowdtree.server.store.db.campaign_row import get_campaign
from crowdtree.server.store.db.tables import workers
from crowdtree.server.store.owner import people
from crowdtree.server.store.tokens import file_name

pytest.importorskip("fastapi", reason="needs the server's packages")

from tests.storelab import maintain

TABLE = "question,error,mug,bowl,plate\nhandle,0.05,1,0,0\nflat,0.1,0,0,1\n"


ITEMS = "task,text,gold\na,one,\nb,two,\nc,three,mug\n"


@pytest.fixture
def run(capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run a verb of `campaign` in an empty folder: exit code, what it said, what was wrong."""
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(TABLE)
    Path("items.csv").write_text(ITEMS)

    def said(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["campaign", *words])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return said


def answer_everything(people_here: int = 3) -> int:
    """Let people answer campaign 1 until there is nothing left; count the answers."""
    count = 0
    with Store("crowdtree.db").opened() as store:
        policy = store.read(lambda c: get_campaign(c, 1)).make_policy()
        for _ in range(people_here):
            made = store.write(lambda c: people.invite(c, 1, "", policy, False, store.clock()))
            who = tokens.hashed(made[1])
            while (task := store.ask(Next(who))["task"]) is not None:
                store.ask(Submit(who, task["lease"], "answer", 1, f"k{count}"))
                count += 1
    return count


def test_who_will_answer_decides_the_settings(run: Any) -> None:
    assert (
        run("create", "table.csv", "--who", "colleagues", "--set", "people.max_workers=3")[0] == 0
    )
    with Store("crowdtree.db").opened() as store:
        settings = store.read(lambda c: get_campaign(c, 1)).settings
    assert not settings.labels.require_trusted_answer
    assert settings.people.max_workers == 3
    assert (
        "expected colleagues, open, platform or models"
        in run("create", "table.csv", "--who", "x")[2]
    )


def test_workers_do_not_see_the_folder_of_a_table(run: Any, tmp_path: Path) -> None:
    run("create", str(tmp_path / "table.csv"))
    assert '"name": "table"' in run("status", "--json")[1]


def test_a_running_campaign_gets_another_table(run: Any) -> None:
    run("create", "table.csv", "--set", "finish.automatically=false")
    run("items", "1", "items.csv")
    assert "is draft: only a running or paused one" in run("revise", "1", "table.csv")[2]
    run("start", "1")
    answer_everything()
    assert run("revise", "1", "table.csv")[1].startswith("Campaign 1 has this table already.\n")
    Path("worse.csv").write_text(TABLE.replace("0.05", "0.2"))
    code, out, _ = run("revise", "1", "worse.csv", "--reason", "people err more")
    assert (code, out.splitlines()[0]) == (0, "Campaign 1 is at revision 1.")
    assert "revised 1 time, items are being replayed: people err more" in run("status", "1")[1]
    assert "No differences" in run("verify", "1")[1]
    Path("other.csv").write_text(TABLE.replace("bowl", "vase"))
    code, _, err = run("revise", "1", "other.csv")
    assert code == 2
    assert "classes: expected those of the campaign" in err


def test_a_definition_replaces_the_whole_policy(run: Any) -> None:
    run("create", "table.csv")
    run("items", "1", "items.csv")
    run("start", "1")
    with Store("crowdtree.db").opened() as store:
        policy = store.read(lambda c: get_campaign(c, 1)).make_policy()
    wish = {"problem": problem_to_dict(policy.problem), "kind": "adaptive", "target_error": 0.01}
    Path("wish.json").write_text(json.dumps({"name": "Pots", "policy": wish}))
    assert json.loads(run("revise", "1", "wish.json", "--json")[1])["revision"] == 1
    assert "No differences" in run("verify", "1")[1]
    with Store("crowdtree.db").opened() as store:
        assert store.read(lambda c: get_campaign(c, 1)).policy["target_error"] == 0.01
    Path("wish.json").write_text(json.dumps({"policy": {**wish, "target_error": 2}}))
    code, _, err = run("revise", "1", "wish.json")
    assert (code, "wish.json: policy.target_error: input should be less than 1" in err) == (2, True)
    code, _, err = run("revise", "1", "none.json")
    assert (code, "none.json: no such file" in err) == (2, True)


def test_a_campaign_that_waits_for_the_owner_says_so(run: Any) -> None:
    run("create", "table.csv")
    run("items", "1", "items.csv")
    run("start", "1")
    answer_everything()
    with Store("crowdtree.db").opened() as store:
        strangers = workers.update().values(known="majority")
        store.write(lambda c: c.execute(strangers))
        maintain(store)
    out = run("status", "1")[1]
    assert f"1  table: running ({CampaignReason.LEFT_TO_OWNER.text()})" in out
    assert out.endswith("Next: crowdtree campaign finish 1\n")


def test_from_the_table_to_the_labels(run: Any) -> None:
    assert run("create", "table.csv", "--name", "Pots", "--json")[1].strip() == '{"campaign": 1}'
    added = json.loads(run("items", "1", "items.csv", "--json")[1])
    assert (added["read"], added["added"], added["set_aside"]) == (3, 3, 0)
    assert run("start", "1")[:2] == (0, "Campaign 1 is running.\nNext: crowdtree serve\n")
    given = answer_everything()
    assert given > 0
    assert json.loads(run("status", "1", "--json")[1])["items"]["labelled"] == 2
    assert json.loads(run("verify", "1", "--json")[1])["agrees"]
    assert run("labels", "1", "-o", "labels.csv")[1].splitlines() == [
        "2 labels.",
        "Wrote labels.csv.",
        "Next: crowdtree audit plan labels.csv --bound 0.02",
    ]
    assert [line.split(",")[0] for line in Path("labels.csv").read_text().splitlines()] == [
        "task",
        "a",
        "b",
    ]
    lines = run("answers", "1")[1].splitlines()
    assert lines[0] == "task,question,worker,label"
    assert len(lines) == given + 1
    assert len(json.loads(run("answers", "1", "--json")[1])["answers"]) == given
    assert json.loads(run("labels", "1", "--json")[1])["labels"][0]["task"] == "a"
    said = json.loads(run("labels", "1", "-o", "more.jsonl", "--json")[1])
    assert said == {"written": "more.jsonl", "rows": 2}


def test_hints_name_the_next_step_and_keep_the_database(run: Any) -> None:
    here = ("--database", "my pots.db")

    def hint(*words: str) -> str:
        code, out, err = run(*words, *here)
        assert code == 0, err
        start, _, command = out.splitlines()[-1].partition("crowdtree ")
        assert start == "Next: "
        kept = " --database 'my pots.db'"
        assert command.endswith(kept)
        return command.removesuffix(kept)

    assert hint("create", "table.csv") == "campaign items 1 items.csv"
    assert hint("status") == "campaign items 1 items.csv"
    assert hint("items", "1", "items.csv") == "campaign start 1"
    assert hint("status", "1") == "campaign start 1"
    assert hint("audit", "1") == "campaign audit 1 --bound 0.02 --link NAME"
    assert hint("start", "1") == "serve"
    assert hint("status", "1") == "serve"
    assert hint("pause", "1") == "campaign start 1"
    assert hint("revise", "1", "table.csv") == "campaign status 1"
    assert hint("verify", "1") == "campaign labels 1 -o labels.csv"
    assert hint("create", "table.csv") == "campaign items 2 items.csv"
    assert hint("status") == "campaign status 2"  # the latest is first


def test_a_campaign_is_named_after_its_file_and_can_be_finished_early(run: Any) -> None:
    for words in (("create", "table.csv"), ("items", "1", "items.csv"), ("start", "1")):
        run(*words)
    assert json.loads(run("status", "1", "--json")[1])["name"] == "table"
    assert "Next" not in run("labels", "1", "-o", "none.csv")[1]  # nothing to audit yet
    assert run("finish", "1")[1].startswith("Campaign 1 is finishing.")
    with Store("crowdtree.db").opened() as store:
        maintain(store)
    found = json.loads(run("status", "1", "--json")[1])
    assert (found["status"], found["items"]["set_aside"]) == ("finished", found["items"]["total"])
    assert run("finish", "1")[0] == 2


def test_an_unknown_setting_names_the_nearest(run: Any) -> None:
    code, _, err = run("create", "table.csv", "--set", "money.prise=1")
    assert code == 2
    assert "'money.prise': no such setting; did you mean money.price?" in " ".join(err.split())


def test_an_audit_on_the_command_line(run: Any) -> None:
    for words in (("create", "table.csv"), ("items", "1", "items.csv"), ("start", "1")):
        run(*words)
    assert "No audit yet" in run("audit", "1")[1]
    answer_everything()
    code, out, _ = run("audit", "1", "--bound", "0.5", "--link", "Ann")
    assert code == 0
    assert out.startswith("Asked for at most 50 % wrong labels; nothing is certified")
    token = out.split("/a/")[1].split()[0]
    with Store("crowdtree.db").opened() as store:
        who = tokens.hashed(token)
        assert store.read(lambda c: checking.auditor_of(c, who, store.clock())) == (1, "Ann")
        while True:
            args = (store.audits, 1, "x")
            item = store.write(lambda c, a=args: checking.hand_out(c, *a, store.clock()))["number"]
            if item is None:
                break
            store.write(
                lambda c, a=args, i=item: checking.record(c, *a, "Ann", i, None, store.clock())
            )
    assert run("audit", "1", "--certificate", "audit.json")[0] == 0
    found = json.loads(run("audit", "1", "--json")[1])
    assert (found["claims"]["state"], found["unsure"]) == ("impossible", 2)
    assert ct.verify_audit("audit.json").standing.wrong == 2
    assert json.loads(run("verify", "1", "--json")[1])["agrees"]


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "1", "--bound", "0.1"),
        ("audit", "1", "--certificate", "audit.json"),
        ("audit", "1", "--certificate", "audit.csv"),
        ("audit", "1", "--link", ""),
        ("audit", "9"),
        ("status", "9"),
        ("start", "9" * 30),
        ("start", "1"),
        ("pause", "1"),
        ("finish", "9"),
        ("items", "1", "none.csv"),
        ("items", "1", "table.csv"),
        ("items", "1", "."),
        ("create", "items.csv"),
        ("create", "table.csv", "--name", "x" * 201),
        ("create", "table.csv", "--set", "checks.gold_rate=2"),
        ("create", "table.csv", "--set", "checks.gold_rate"),
        ("labels", "1", "-o", "labels.txt"),
        ("labels", "1", "-o", "nowhere/labels.csv"),
        ("verify", "1", "--database", "table.csv"),
    ],
)
def test_errors_take_one_line(run: Any, words: tuple[str, ...]) -> None:
    run("create", "table.csv")
    before = sorted(Path().iterdir())
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("crowdtree: ")
    assert err.count("\n") == 1
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    "verb", ["status", "start", "pause", "finish", "labels", "answers", "audit", "verify"]
)
@pytest.mark.parametrize("database", ["typo.db", "sqlite:///typo.db"])
def test_a_missing_database_is_not_created(run: Any, verb: str, database: str) -> None:
    code, _, err = run(verb, "1", "--database", database)
    assert code == 2
    assert "no file typo.db" in err
    assert not Path("typo.db").exists()


def test_gold_that_nobody_is_asked_about_is_warned_of(run: Any) -> None:
    run("create", "table.csv")
    code, _, err = run("items", "1", "items.csv")
    assert (code, err.strip()) == (
        0,
        "crowdtree: warning: 1 gold item is never asked about: set checks.gold_rate (such as "
        "0.1) or checks.gold_first above 0",
    )
    run("create", "table.csv", "--set", "checks.gold_rate=0.1")
    assert run("items", "2", "items.csv")[2] == ""


def test_the_workers_are_written_with_what_to_pay(run: Any) -> None:
    run("create", "table.csv", "--set", "money.price=0.25")
    run("items", "1", "items.csv")
    run("start", "1")
    given = answer_everything(1)
    code, out, _ = run("workers", "1")
    header, row = (line.split(",") for line in out.splitlines())
    found = dict(zip(header, row, strict=True))
    assert code == 0
    assert (int(found["accepted"]), float(found["earned"])) == (given, 0.25 * given)
    assert (found["complete"], found["code"]) == ("False", "")  # nobody has shown them the end
    assert "1 worker." in run("workers", "1", "-o", "workers.parquet")[1]
    assert json.loads(run("workers", "1", "--json")[1])["workers"][0]["worker"] == "w1"


def test_links_are_signed_by_the_key_of_the_campaign(run: Any) -> None:
    run("create", "table.csv")
    link = "https://label.example/join/abc"
    code, out, _ = run("sign-link", "1", link, "ann", "bob smith", "--days", "7", "--once")
    assert code == 0
    assert [line.split("&")[0] for line in out.splitlines()] == [
        f"{link}?participant=ann",
        f"{link}?participant=bob+smith",
    ]
    assert all(f"&{name}=" in out for name in ("expires", "nonce", "signature"))
    assert list(json.loads(run("sign-link", "1", link, "ann", "--json")[1])["links"]) == ["ann"]
    personal = "https://label.example/w/abc"
    for words in ((personal, "ann"), (link, "ann", "--days", "-1"), (link, "")):
        code, _, err = run("sign-link", "1", *words)
        assert (code, err.count("\n")) == (2, 1)
    assert run("sign-link", "2", link, "ann")[0] == 2


def test_answers_are_excluded_and_included_again(run: Any) -> None:
    run("create", "table.csv", "--set", "finish.automatically=false")
    run("items", "1", "items.csv")
    run("start", "1")
    answer_everything()
    code, out, _ = run("exclude", "1", "--worker", "w1", "--dry-run")
    assert code == 0
    assert "would no longer count." in out
    assert "revised" not in run("status", "1")[1]
    code, out, _ = run("exclude", "1", "--worker", "1", "--reason", "spam", "--block")
    assert (code, out.splitlines()[0]) == (0, "Answers of 1 worker excluded.")
    assert "are excluded already" in run("exclude", "1", "--worker", "1")[1]
    assert "answers of 1 worker excluded" in run("status", "1")[1]
    assert "No differences" in run("verify", "1")[1]
    assert "would count again" in run("include", "1", "--worker", "1", "--dry-run")[1]
    assert "Answers of 1 worker included." in run("include", "1", "--worker", "w1")[1]
    assert "No differences" in run("verify", "1")[1]


def test_items_are_listed_and_searched(run: Any) -> None:
    run("create", "table.csv")
    run("items", "1", "items.csv")
    run("start", "1")
    run("withdraw", "1", "b")
    run("correct", "1", "a", "bowl")
    lines = [line.split() for line in run("items", "1")[1].splitlines()]
    assert lines[1:] == [
        ["a", "labelled", "bowl", "(by", "hand)", "one"],
        ["b", "withdrawn", "two"],
        ["c", "gold", "mug", "(known)", "three"],
        ["3", "items."],
    ]

    def tasks(*words: str) -> list[str]:
        return [row["task"] for row in json.loads(run("items", "1", *words, "--json")[1])["items"]]

    assert tasks("--search", "TWO") == ["b"]
    assert tasks("--status", "gold") == tasks("--name", "c") == ["c"]
    assert tasks("--label", "bowl") == ["a"]
    assert tasks("--most", "2") == ["a", "b"]
    assert "There may be more: --most 20 lists them." in run("items", "1", "--most", "2")[1]
    assert run("items", "1", "--search", "nowhere")[1] == "0 items.\n"
    for words, wrong in (
        (
            ("--label", "vase"),
            "--label: expected a class, got 'vase'; choose from mug, bowl, plate",
        ),
        (("items.csv", "--search", "x"), "items: expected a file to add, or options to list"),
        (("--status", "lost"), "--status: expected new, open, labelled"),
    ):
        code, _, err = run("items", "1", *words)
        assert (code, wrong in err) == (2, True), err


@pytest.mark.usefixtures("full_skips")
def test_items_set_aside_are_reopened(run: Any) -> None:
    run("create", "table.csv", "--set", "labels.max_skips=1")
    run("items", "1", "items.csv")
    run("start", "1")
    with Store("crowdtree.db").opened() as store:
        policy = store.read(lambda c: get_campaign(c, 1)).make_policy()
        made = store.write(lambda c: people.invite(c, 1, "", policy, False, store.clock()))
        who = tokens.hashed(made[1])
        while (task := store.ask(Next(who))["task"]) is not None:
            store.ask(Submit(who, task["lease"], "skip", None, task["lease"]))
    out = run("items", "1", "items.csv")[1]
    assert "2 items in the file had been set aside; reopen with: crowdtree campaign reopen 1" in out
    assert run("reopen", "1", "a")[1].startswith("1 item reopened.\n")
    assert run("reopen", "1", "--all")[1].startswith("1 item reopened.\n")
    assert "No differences" in run("verify", "1")[1]


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["exclude", "1", "--worker", "ann"], "--worker: expected a worker's number"),
        (["exclude", "1", "--worker", "1", "--since", "noon"], "--since: expected a time"),
        (["exclude", "1", "--worker", "9"], "worker 9 is not in campaign 1"),
        (["exclude", "9", "--worker", "1"], "campaign 9 does not exist"),
        (["include", "1", "--worker", "9"], "worker 9 is not in campaign 1"),
        (["reopen", "1"], "reopen: expected names of items, or --all"),
        (["reopen", "1", "a", "--all"], "reopen: expected names of items, or --all"),
        (["reopen", "1", "zebra"], "campaign 1 has no item 'zebra'"),
        (
            ["reopen", "1", "a"],
            "item 'a' is new: only items set aside or withdrawn",
        ),
    ],
)
def test_mistakes_in_corrections(run: Any, words: list[str], wrong: str) -> None:
    run("create", "table.csv")
    run("items", "1", "items.csv")
    run("start", "1")
    code, _, err = run(*words)
    assert (code, wrong in err) == (2, True), err


def test_items_are_labelled_by_hand_withdrawn_and_edited(run: Any) -> None:
    run("create", "table.csv", "--set", "finish.automatically=false")
    run("items", "1", "items.csv")
    run("start", "1")
    code, out, _ = run("correct", "1", "a", "plate", "--reason", "seen")
    assert (code, out.splitlines()[0]) == (0, "a is labelled plate by hand.")
    assert "Nothing to do" in run("correct", "1", "a", "plate")[1]
    row = json.loads(run("labels", "1", "--json")[1])["labels"][0]
    assert (row["label"], row["corrected"], row["corrected_why"]) == ("plate", True, "seen")
    assert "1 item labelled by hand" in run("status", "1")[1]
    assert "taken back" in run("correct", "1", "a", "--undo")[1]
    assert run("withdraw", "1", "a", "b", "--reason", "x")[1].startswith("2 items withdrawn.\n")
    assert "2 items withdrawn" in run("status", "1")[1]
    assert run("reopen", "1", "b")[1].startswith("1 item reopened.\n")
    made = json.loads(run("edit", "1", "b", "--column", "text=a = b", "--json")[1])
    assert (made["before"], made["after"]) == ({"text": "two"}, {"text": "a = b"})
    assert "Nothing to do" in run("edit", "1", "b", "--column", "text=a = b")[1]
    assert "Saved." in run("reword", "1", "--question", "handle=Has it a handle?")[1]
    assert "No differences" in run("verify", "1")[1]


def test_other_content_and_missing_files_are_reported(run: Any) -> None:
    run("create", "table.csv")
    run("items", "1", "items.csv")
    Path("more.csv").write_text("task;text;image\na;other;\nd;x;d.png\n")
    _, out, err = run("items", "1", "more.csv")
    assert "1 items added of 2" in out
    assert "warning: line 2: the item exists with other content and stays as it is" in err
    assert "warning: 1 file that items show was never uploaded: d.png" in err
    assert "Looked in crowdtree-media/1; --media names another folder." in err
    assert "was never uploaded: d.png" in run("start", "1")[2]
    with Store("crowdtree.db").opened() as store:
        secret = store.read(lambda c: get_campaign(c, 1)).secret
    folder = Path("elsewhere/1")
    folder.mkdir(parents=True)
    (folder / file_name(secret, "d.png")).write_bytes(b"x")
    run("pause", "1")
    assert "never uploaded" not in run("start", "1", "--media", "elsewhere")[2]


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["correct", "1", "a"], "correct: expected a class, or --undo"),
        (["correct", "1", "a", "mug", "--undo"], "correct: expected a class, or --undo"),
        (["correct", "1", "a", "cup"], "'cup' is not a class; expected one of mug, bowl, plate"),
        (["correct", "1", "c", "mug"], "item 'c' is a gold item"),
        (["withdraw", "1", "zebra"], "campaign 1 has no item 'zebra'"),
        (["edit", "1", "a"], "edit: expected --column"),
        (["edit", "1", "a", "--column", "text"], "--column: expected NAME=VALUE, got 'text'"),
        (["edit", "1", "a", "--column", "task=b"], "the name of an item cannot change"),
        (["reword", "1"], "reword: expected --question or --class"),
        (["reword", "1", "--class", "cup=x"], "classes: 'cup' is not in campaign 1"),
    ],
)
def test_mistakes_in_changes_of_items(run: Any, words: list[str], wrong: str) -> None:
    run("create", "table.csv")
    run("items", "1", "items.csv")
    run("start", "1")
    code, _, err = run(*words)
    assert (code, wrong in err) == (2, True), err
