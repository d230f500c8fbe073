"""Files and bodies that unpack, nest or expand without limit are refused cheaply, in one line."""

from __future__ import annotations

import io
import json
import resource
import tempfile
import zipfile
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("fastapi", reason="the server is not installed: pip install crowdtree[serve]")

from crowdtree.core.errors import CrowdtreeError
from crowdtree.server.web.plans import problem_from_bytes
from tests.weblab import Lab, lab

DEEP = 200_000


@pytest.fixture(scope="module")
def app() -> Iterator[Lab]:
    with lab(process=True) as made:
        yield made


def workbook(*sheets: bytes, name: str = "xl/worksheets/sheet{}.xml") -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, sheet in enumerate(sheets, start=1):
            archive.writestr(name.format(place), sheet)
    return content.getvalue()


def laughs(levels: int = 30) -> bytes:
    """A billion laughs: each line names the one before ten times."""
    lines = [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, levels)]
    first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"
    return "\n".join([first, *lines, f"classes: *a{levels - 1}"]).encode()


def lies_about_its_size() -> bytes:
    """A workbook whose directory says it is small."""
    made = bytearray(workbook(b"0" * (80 * 2**20)))
    size = (80 * 2**20).to_bytes(4, "little")
    small = (1000).to_bytes(4, "little")
    return bytes(made.replace(size, small))


FILES: dict[str, tuple[str, bytes | Callable[[], bytes]]] = {
    "aliases": ("x.yaml", laughs()),
    "merged aliases": ("x.yaml", b"a: &a {b: 1}\n" + b"c: &c {<<: [" + b"*a, " * 10_000 + b"*a]}"),
    "alias of itself": ("x.yaml", b"classes: &a [*a]"),
    "deep yaml": ("x.yaml", b"[" * DEEP),
    "deep yaml by lines": ("x.yaml", b"".join(b" " * k + b"a:\n" for k in range(1500))),
    "objects in yaml": ("x.yaml", b"classes: !!python/object/apply:os.system ['true']"),
    "date in yaml": ("x.yaml", b"classes: [2020-13-45]"),
    "deep json": ("x.json", b"[" * DEEP),
    "deep json, closed": ("x.json", b"[" * DEEP + b"]" * DEEP),
    "deep objects": ("x.json", b'{"a":' * DEEP),
    "long number": ("x.json", b'{"prior": [' + b"9" * 100_000 + b"]}"),
    "infinite number": ("x.json", b'{"classes": ["a","b"], "prior": [1e400, 1], "questions": []}'),
    "not a number": ("x.json", b'{"classes": ["a","b"], "prior": [NaN, 1], "questions": []}'),
    "many classes": ("x.json", json.dumps({"classes": ["a"] * 500_000}).encode()),
    "many columns": ("x.csv", b"question,error" + b",a" * 500_000 + b"\n"),
    "many blank lines": ("x.csv", b"\n" * 3_000_000),
    "one long line": ("x.csv", b"question,error,a,b\n" + b"x" * 4_000_000),
    "open quote": ("x.csv", b'question,error,a,b\n"' + b"x\n" * 1_000_000),
    "long number in a table": (
        "x.csv",
        b"question,error,a,b\nprior,," + b"9" * 50_000 + b",1\nq,1e-999,0,1\n",
    ),
    "zip bomb": ("x.xlsx", lambda: workbook(b"0" * (80 * 2**20))),
    "zip of many": ("x.xlsx", lambda: workbook(*[b"0" * 2**20] * 70)),
    "zip that lies": ("x.xlsx", lies_about_its_size),
    "zip with a way out": ("x.xlsx", workbook(b"x", name="../../evil{}.xml")),
    "not a zip": ("x.xlsx", b"PK no"),
    "nul bytes": ("x.csv", b"question,error,a,b\nprior,,1,1\nq\x00,0.1,0,1\n"),
    "not text": ("x.csv", bytes(range(256)) * 100),
    "nothing": ("x.json", b""),
    "no such kind": ("x.exe", b"MZ"),
    "a way out": ("../../x.csv\x00.png", b"x"),
}


@pytest.mark.parametrize("name", FILES)
def test_bad_files_are_refused_in_one_line(app: Lab, name: str) -> None:
    """As an upload of the wizard; the same file to the reader gives one line as well."""
    file, made = FILES[name]
    content = made if isinstance(made, bytes) else made()
    before = spent()
    with pytest.raises(CrowdtreeError) as error:
        problem_from_bytes(content, file)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    # Processor time, not the clock on the wall: a bomb would take minutes.
    assert spent() - before < 20
    found = app.client.post(
        "/new",
        files={"table": (file.replace("\x00", ""), content)},
        headers={**app.owner, "accept": "application/json"},
    )
    # The response is a stream of progress lines; the last one has the result.
    last = json.loads(found.text.splitlines()[-1])
    assert last["error"] in ("input", "large"), (found.status_code, found.text[:300])
    assert tempfile.gettempdir() not in found.text
    assert "Traceback" not in found.text
    assert app.client.get("/healthz").status_code == 200


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


BODIES = {
    "deep": b'{"policy": {"problem": ' + b'{"a":' * DEEP,
    "deep list": b'{"policy": {"example": ' + b"[" * DEEP + b"]" * DEEP + b"}}",
    "deep settings": b'{"policy": {"example": "table1"}, "settings": {"tasks": {"examples": '
    + b'{"a":' * 50_000
    + b"1"
    + b"}" * 50_000
    + b"}}}",
    "long number": b'{"policy": {"example": "table1", "workers": ' + b"9" * 50_000 + b"}}",
    "infinite": b'{"policy": {"example": "table1", "workers": 1e999}}',
    "nan": b'{"policy": {"example": "table1", "answers": NaN}}',
    "nan price": b'{"policy": {"example": "table1"}, "settings": {"money": {"price": NaN}}}',
    "infinite price": b'{"policy": {"example": "table1"}, '
    b'"settings": {"money": {"price": Infinity}}}',
    "half a character": b'{"name": "\\ud800", "policy": {"example": "table1"}}',
    "not utf-8": b'{"name": "\xff\xfe"}',
    "plan": json.dumps({"policy": {"plan": {"a": [[]] * 1000}}}).encode(),
    "plan of numbers": b'{"policy": {"plan": {"votes": [1e400], "tree": {}}}}',
    "problem of nothing": b'{"policy": {"problem": {}}}',
    "list": b"[]",
    "text": b'"x"',
    "null": b"null",
    "many keys": json.dumps({f"k{k}": k for k in range(100_000)}).encode(),
}


@pytest.mark.parametrize("name", BODIES)
def test_bad_bodies_are_refused(app: Lab, name: str) -> None:
    """To every route of the owner that takes JSON."""
    number = app.campaign(start=False)
    for method, path in (
        ("POST", "/api/campaigns"),
        ("PATCH", f"/api/campaigns/{number}/settings"),
        ("POST", f"/api/campaigns/{number}/workers/invite"),
        ("POST", f"/api/campaigns/{number}/webhooks"),
        ("POST", "/api/tokens"),
        ("POST", "/api/session"),
        ("POST", "/api/join"),
    ):
        headers = {**app.owner, "content-type": "application/json"}
        found = app.client.request(method, path, content=BODIES[name], headers=headers)
        good = name == "half a character" and path == "/api/campaigns"
        assert found.status_code in (400, 401, 413, 422, 429) or good, (path, found.text[:200])
        assert found.status_code < 500
    assert app.client.get("/healthz").status_code == 200


ITEMS = {
    "deep": b'{"task": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "long number": b'{"task": ' + b"9" * 100_000 + b"}\n",
    "nan": b'{"task": "a", "x": NaN}\n',
    "infinite": b'{"task": "a", "x": 1e999}\n',
    "nul": b'{"task": "a\\u0000"}\n',
    "half a character": b'{"task": "a\\ud800"}\n',
    "half a character in the text": '{"task": "a", "text": "\\ud800 \U0001f600"}\n'.encode(),
    "many columns": json.dumps({"task": "a", **{f"k{k}": 1 for k in range(300)}}).encode(),
    "list as name": b'{"task": ["a"]}\n',
    "not utf-8": b'{"task": "\xff"}\n',
    "gold of another table": b'{"task": "a", "gold": "c99"}\n',
}


@pytest.mark.parametrize("name", ITEMS)
def test_bad_items_do_not_break_anything(app: Lab, name: str) -> None:
    number = app.campaign(start=False)
    headers = {**app.owner, "content-type": "application/x-ndjson"}
    found = app.client.post(f"/api/campaigns/{number}/items", content=ITEMS[name], headers=headers)
    assert found.status_code in (200, 422), found.text[:200]
    for path in (f"/c/{number}/items", f"/api/campaigns/{number}", f"/c/{number}"):
        assert app.get(path).status_code == 200
    if found.status_code == 200:  # accepted items can be answered, shown and exported
        app.post(f"/api/campaigns/{number}/start")
        assert app.get(f"/api/campaigns/{number}/items").status_code == 200
        worker = app.worker(number)
        while task := worker.next()["task"]:
            assert worker.answer(task["lease"]).status_code == 200
        for kind in ("csv", "jsonl", "parquet"):
            for what in ("answers?log=true&", "labels?"):
                export = app.get(f"/api/campaigns/{number}/{what}format={kind}")
                assert export.status_code == 200, (what, kind)


def test_half_a_character_does_not_break_an_item(app: Lab) -> None:
    number = app.campaign("task,text\na,x\n")
    listed = app.get(f"/api/campaigns/{number}/items").json()
    path = f"/api/campaigns/{number}/items/{listed['items'][0]['id']}"
    body = b'{"columns": {"text": "cut \\ud83d", "k\\ud800": "\\udc00"}}'
    headers = {**app.owner, "content-type": "application/json"}
    assert app.client.patch(path, content=body, headers=headers).status_code == 200
    assert app.worker(number).next()["task"]["item"]["text"] == "cut \ufffd"
    assert app.get(path).status_code == 200


def test_names_with_lone_surrogates_can_be_shown(app: Lab) -> None:
    for name in ("\ud800", "a\x00b", "\u202e\u2066", "x" * 200):
        body = json.dumps({"name": name, "policy": {"example": "table1"}})
        headers = {**app.owner, "content-type": "application/json"}
        made = app.client.post("/api/campaigns", content=body, headers=headers)
        assert made.status_code in (201, 422), made.text
    for path in ("/", "/api/campaigns"):
        assert app.get(path).status_code == 200
