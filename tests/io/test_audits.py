"""Files of audits: labels, sheets, certificates, and fifty ways to tamper with one."""

from __future__ import annotations

import copy
import gzip
import json

import polars as pl
import pytest

import crowdtree as ct
from crowdtree.io import audits
from crowdtree.io.gold import load_gold
from crowdtree.io.grids import write_delimited

KEY = b"a secret of sixteen bytes or more"


@pytest.fixture(scope="module")
def audit():
    """An audit of 40 labels with 12 checks, two of them wrong, and three that wait."""
    items = [f"i{k}" for k in range(40)]
    made = ct.Audit(
        items,
        ["cat" if k % 3 else "dog" for k in range(40)],
        [round(0.01 + 0.3 * (k % 7 == 0), 3) for k in range(40)],
        bound=0.4,
        seed=5,
        known={"i1": "cat", "i2": "dog"},
    )
    for _ in range(2):
        for number, item in enumerate(made.next(6)):
            label = made.labels[items.index(item)]
            made.record(item, "fox" if number == WRONG else label, by="ann")
    made.next(3)
    return made


@pytest.fixture(scope="module")
def data(audit):
    return json.loads(json.dumps(audits.audit_to_dict(audit)))


def verify(data, **options):
    return ct.verify_audit(json.dumps(data).encode(), name="audit.json", **options)


def _set(*path, to):
    def change(data):
        for part in path[:-1]:
            data = data[part]
        old = data[path[-1]]
        data[path[-1]] = to(old) if callable(to) else to
        assert data[path[-1]] != old or type(data[path[-1]]) is not type(old)

    return change


def _drop(*path):
    def change(data):
        for part in path[:-1]:
            data = data[part]
        del data[path[-1]]

    return change


def _swap(name, one, two):
    def change(data):
        rows = data[name]
        rows[one], rows[two] = rows[two], rows[one]

    return change


def _both(*changes):
    def change(data):
        for one in changes:
            one(data)

    return change


def _copy(name, row):
    return lambda data: data[name].append(copy.deepcopy(data[name][row]))


WRONG = 3
"""A draw that was found wrong."""
TAMPERING = {
    "version": _set("crowdtree", to=2),
    "kind": _set("kind", to="plan"),
    "confidence raised": _set("confidence", to=0.99),
    "confidence lowered": _set("confidence", to=0.9),
    "confidence of 1": _set("confidence", to=1.0),
    "bound lowered": _set("bound", to=0.1),
    "bound removed": _set("bound", to=None),
    "plan added": _set("planned", to=10),
    "seed": _set("seed", to=6),
    "seed as text": _set("seed", to="5"),
    "labels digest": _set("labels_digest", to="0" * 64),
    "digest": _set("digest", to="0" * 64),
    "digest dropped": _drop("digest"),
    "a field added": lambda data: data.update(note="all is well"),
    "a field dropped": _drop("draws"),
    "claims dropped": _drop("claims"),
    "claims emptied": _set("claims", to={}),
    "upper": _set("claims", "upper", to=lambda x: x / 2),
    "upper by a little": _set("claims", "upper", to=lambda x: x - 1e-6),
    "low": _set("claims", "low", to=lambda x: x + 0.01),
    "high": _set("claims", "high", to=lambda x: x - 0.01),
    "estimate": _set("claims", "estimate", to=lambda x: x / 2),
    "estimate removed": _set("claims", "estimate", to=None),
    "checks": _set("claims", "checks", to=lambda x: x + 1),
    "wrong": _set("claims", "wrong", to=0),
    "items": _set("claims", "items", to=4000),
    "state": _set("claims", "state", to="impossible"),
    "wanted": _set("claims", "wanted", to=0.01),
    "claimed confidence": _set("claims", "confidence", to=0.999),
    "stated": _set("claims", "stated", to=0.5),
    "drawn": _set("claims", "drawn", to=12),
    "known count": _set("claims", "known", to=0),
    "a claim of a label": _set("claims", "labels", "cat", "upper", to=0.0),
    "a label's claims dropped": _drop("claims", "labels", "dog"),
    "a claim added": _set("claims", "labels", to=lambda x: x | {"fox": x["cat"]}),
    "a number as text": _set("claims", "upper", to=str),
    "a wrong one made right": _both(
        _set("draws", WRONG, "right", to=True),
        lambda d: d["draws"][WRONG].update(
            truth=next(r["label"] for r in d["labels"] if r["item"] == d["draws"][WRONG]["item"])
        ),
    ),
    "result flipped alone": _set("draws", WRONG, "right", to=True),
    "result removed": _both(
        _set("draws", WRONG, "right", to=None),
        _set("draws", WRONG, "truth", to=None),
        _set("draws", WRONG, "by", to=[]),
    ),
    "truth renamed": _set("draws", WRONG, "truth", to="wolf"),
    "truth kept without result": _set("draws", WRONG, "right", to=None),
    "person renamed": _set("draws", 0, "by", to=["eve"]),
    "person removed": _set("draws", 0, "by", to=[]),
    "person added": _set("draws", 0, "by", to=["ann", "eve"]),
    "item of a draw": _set("draws", 4, "item", to="i39"),
    "unknown item drawn": _set("draws", 4, "item", to="i99"),
    "draws swapped": _swap("draws", 0, 1),
    "last draw dropped": _drop("draws", -1),
    "first draw dropped": _drop("draws", 0),
    "wrong draw dropped": _drop("draws", WRONG),
    "draw repeated": _copy("draws", 0),
    "after raised": _set("draws", 2, "after", to=2),
    "after lowered": _set("draws", 8, "after", to=0),
    "after too large": _set("draws", 8, "after", to=400),
    "after negative": _set("draws", 8, "after", to=-1),
    "field added to a draw": _set("draws", 0, to=lambda x: x | {"why": "luck"}),
    "label changed": _set("labels", 0, "label", to="cat"),
    "item renamed": _set("labels", 39, "item", to="other"),
    "error changed": _set("labels", 3, "error", to=0.02),
    "error out of range": _set("labels", 3, "error", to=1.5),
    "error as text": _set("labels", 3, "error", to="0.01"),
    "labels swapped": _swap("labels", 3, 4),
    "label dropped": _drop("labels", 39),
    "label repeated": _copy("labels", 3),
    "item added": lambda d: d["labels"].append({"item": "new", "label": "cat", "error": 0.0}),
    "known truth changed": _set("known", 1, "truth", to="cat"),
    "known item dropped": _drop("known", 0),
    "known item repeated": _copy("known", 0),
    "known item added": lambda d: d["known"].append({"item": "i5", "truth": "cat"}),
}
UNSEEN = {"truth renamed", "person renamed", "person removed", "person added"}
"""What changes no number: a forger who makes the digest anew is found by a signature alone."""
DIGESTS = {"digest", "digest dropped"}


def test_there_are_fifty_sorts_of_tampering():
    assert len(TAMPERING) >= 50


@pytest.mark.parametrize("sort", TAMPERING)
def test_tampering_is_found(sort, data):
    edited = copy.deepcopy(data)
    TAMPERING[sort](edited)
    with pytest.raises(ct.CrowdtreeError) as error:
        verify(edited)
    assert str(error.value).startswith("audit.json")
    assert "\n" not in str(error.value)
    if sort in DIGESTS:
        return
    edited["digest"] = audits._digest(edited)  # a forger who knows how the digest is made
    if sort in UNSEEN:
        verify(edited)
    else:
        with pytest.raises(ct.CrowdtreeError):
            verify(edited)


def test_what_was_not_edited_verifies(audit, data):
    found = verify(data)
    assert found.to_dict() == audit.to_dict()
    assert found.pending == audit.pending
    assert [s.upper for s in found.history] == [s.upper for s in audit.history]
    assert found.next(4) == copy.deepcopy(audit).next(4)


@pytest.mark.parametrize("sort", sorted(UNSEEN))
def test_a_signature_finds_what_recomputing_cannot(sort, audit, tmp_path):
    path = tmp_path / "audit.json"
    ct.save(audit, path, key=KEY)
    assert ct.verify_audit(path, key=KEY).signed
    edited = json.loads(path.read_text())
    TAMPERING[sort](edited)
    edited["digest"] = audits._digest(edited)
    with pytest.raises(ct.CrowdtreeError, match="signature does not match"):
        verify(edited, key=KEY)
    with pytest.raises(ct.CrowdtreeError, match="signature does not match"):
        ct.verify_audit(path, key=KEY + b"x")


def test_a_signed_audit_stays_signed(audit, data, tmp_path):
    path = tmp_path / "audit.json"
    ct.save(audit, path, key=KEY)
    loaded = ct.load_audit(path)
    with pytest.raises(ct.CrowdtreeError, match="is signed; give its key"):
        ct.save(loaded, path)
    with pytest.raises(ct.CrowdtreeError, match="is not signed"):
        verify(data, key=KEY)


def test_labels_beside_a_certificate(audit, data):
    rows = {"item": audit.items, "label": audit.labels, "error": audit.errors}
    verify(data, labels=rows)
    other = {name: list(cells) for name, cells in rows.items()}
    other["label"][7] = "fox"
    with pytest.raises(ct.CrowdtreeError, match="'i7' was audited as"):
        verify(data, labels=other)
    fewer = {name: cells[:-1] for name, cells in rows.items()}
    with pytest.raises(ct.CrowdtreeError, match="'i39' is not among the given labels"):
        verify(data, labels=fewer)
    more = {"item": [*audit.items, "x"], "label": [*audit.labels, "a"],
            "error": [*audit.errors, 0.1]}  # fmt: skip
    with pytest.raises(ct.CrowdtreeError, match="never audited"):
        verify(data, labels=more)
    stated = rows | {"error": [0.5, *audit.errors[1:]]}
    with pytest.raises(ct.CrowdtreeError, match="stated error"):
        verify(data, labels=stated)


def test_labels_come_from_every_kind_of_file(tmp_path):
    expected = ct.load({"item": ["007", "b"], "label": ["x", "y"], "error": [0.25, 0.0]})
    text = "task;label;posterior_error;status\n007;x;0.25;done\nb;y;0;done\nc;;;set aside\n"
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "b.csv").write_text("Task,Label,Probability\n007,x,0.75\nb,y,1\n")
    rows = [{"item": "007", "label": "x", "error": 0.25}, {"item": "b", "label": "y", "error": 0}]
    (tmp_path / "c.json").write_text(json.dumps(rows))
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pl.DataFrame(rows, strict=False).write_parquet(tmp_path / "e.parquet")
    for name in ("a.csv", "a.csv.gz", "b.csv", "c.json", "d.jsonl", "e.parquet"):
        assert ct.load(tmp_path / name) == expected, name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("item,label,error\nx,a,1.2\n", "labels.csv, line 2: item 'x' has the error '1.2'"),
        ("item,label,error\nx,a,-0.1\n", "expected a number from 0 to 1"),
        ("item,label,error\nx,a,\n", "expected a number from 0 to 1"),
        ("item,label,error\n,a,0.1\n", "line 2: the item is blank"),
        ("item,label,error\nx,,0.1\n", "line 2: the label is blank"),
        ("label,error\na,0.1\n", "no column item"),
        ("item,error\na,0.1\n", "no column label"),
        ("item,label\nx,a\n", "no column error"),
        ("item,item,label,error\nx,x,a,0\n", "same name"),
        ("item,label,error\nx,a\n", "has 2 cells"),
        ("item,label,error\n", "no rows"),
    ],
)
def test_labels_that_are_wrong_are_refused(text, words):
    with pytest.raises(ct.CrowdtreeError) as error:
        ct.load(text.encode(), "labels", name="labels.csv")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_foreign_files_are_refused(tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1}')
    (tmp_path / "a.parquet").write_bytes(b"nothing")
    for name in ("a.json", "a.parquet"):
        with pytest.raises(ct.CrowdtreeError):
            ct.load(tmp_path / name)
    with pytest.raises(ct.CrowdtreeError):
        ct.verify_audit(tmp_path / "a.json")
    with pytest.raises(ct.CrowdtreeError, match="expected yes or no"):
        list(audits.read_checks(b"item,right\nx,maybe\n", name="s.csv"))


def test_a_replaced_result_is_kept_and_the_bound_recomputed(tmp_path):
    def checked(planned: int, mistakes: int, checks: int = 24) -> ct.Audit:
        made = ct.Audit([0.05] * 30 + [0.3] * 30, planned=planned, bound=0.2, seed=5)
        for k in range(checks):
            drawn = made.draw()
            made.record(drawn, wrong=k < mistakes, by="ann")
            if k == 15:
                for check in made.checks[:mistakes]:
                    made.record(made.items[check.place], wrong=False, by="ben", replace=True)
        return made

    # Draws of equal chances do not depend on results: nothing of the mistakes is left.
    assert checked(24, 3).upper == checked(24, 0).upper < checked(24, 3, checks=15).upper
    made = checked(0, 3)
    assert (made.replaced, made.standing.wrong, made.to_dict()["replaced"]) == (3, 0, 3)
    assert made.checks[0].by == ["ben"]
    assert made.checks[0].replaced[0].by == ("ann",)
    ct.save(made, path := tmp_path / "audit.json")
    assert ct.verify_audit(path).to_dict() == made.to_dict()
    assert ct.load(path).checks == made.checks
    data = audits.audit_to_dict(made)
    for tamper in (
        lambda draws: draws[0].pop("replaced"),  # then other items would have been drawn
        lambda draws: draws[0]["replaced"][0].update(draws=20),
        lambda draws: draws[20].update(replaced=draws[0]["replaced"]),
    ):
        tamper((edited := copy.deepcopy(data))["draws"])
        edited["digest"] = audits._digest(edited)
        with pytest.raises(ct.CrowdtreeError, match=r"draws\[|claims"):
            ct.verify_audit(json.dumps(edited).encode(), name="audit.json")


def test_items_that_were_known_are_marked_and_never_drawn(tmp_path):
    answers = {"task": [*"aabbccdd"], "worker": [*"xyxyxyxy"], "label": [*"ccddccdc"]}
    learned = ct.learn(answers, gold={"a": "c", "b": "d"})
    path = tmp_path / "labels.csv"
    write_delimited(
        path, [list(table := learned.label_columns()), *zip(*table.values(), strict=True)]
    )
    labels = audits.load_labels(path)
    assert labels.known == {"a": "c", "b": "d"} == audits.load_labels(learned).known
    audit = ct.Audit(*labels)
    assert sorted(audit.next(9)) == ["c", "d"]
    audits.save_labels(labels, path)
    assert audits.load_labels(path) == labels
    assert load_gold(path).rows() == [("a", "c"), ("b", "d")]
    by_hand = b"task,label,posterior_error,corrected\nx,c,0,true\ny,c,0.1,false\n"
    assert audits.load_labels(by_hand, name="export.csv").known == {"x": "c"}


def test_a_loaded_audit_equals_the_saved_one(tmp_path):
    made = ct.Audit([0.01, 0.3, 0.05, 0.1], rng=0)
    made.record(made.draw(), wrong=True)
    again = ct.load(made.save(tmp_path / "audit.json"))
    assert again == made
    assert hash(again) == hash(made)
    drawn = again.draw()
    assert isinstance(drawn, int)
    assert again != made
    assert drawn == made.draw()


def test_an_item_has_one_label():
    with pytest.raises(ct.CrowdtreeError, match=r"line 4: item 'a' occurs twice \(before: .*2\)"):
        ct.load(b"item,label,error\na,x,0.1\nb,x,0.1\na,y,0.1\n", name="labels.csv")
    with pytest.raises(ct.CrowdtreeError, match="load a file first"):
        ct.Audit("labels.csv")
