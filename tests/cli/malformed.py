"""A table of malformed inputs over all verbs: the files, and the commands that must refuse them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from crowdtree.cli.app import app
from tests.cli.helpers import TABLE

HEAD, PRIOR, *ROWS = TABLE.splitlines()
ANSWERS = "task,worker,label\n1,ann,cat\n1,ben,dog\n2,ann,cat\n2,ben,cat\n"
LABELS = "item,label,error\n" + "".join(f"i{n},cat,0.01\n" for n in range(30))
ITEMS = "task,text\na,one\n"
YAML = "classes: [a, b]\nquestions: [{name: q, error: 0.1, outcome: [0, 1]}]\n"
PROBLEM = {"classes": ["a", "b"], "questions": [{"name": "q", "error": 0.1, "outcome": [0, 1]}]}
PLAN: dict[str, Any] = {
    "crowdtree": 1,
    "kind": "plan",
    "problem": PROBLEM,
    "tree": {"question": "q", "no": {"label": "a"}, "yes": {"label": "b"}},
}
GOOD = {
    "birds.csv": TABLE,
    "answers.csv": ANSWERS,
    "labels.csv": LABELS,
    "items.csv": ITEMS,
    "plan.json": json.dumps(PLAN),
    "note.txt": "a file\n",
}
"""Files that are fine."""


def _zip(**members: str) -> bytes:
    with zipfile.ZipFile(made := io.BytesIO(), "w") as packed:
        for name, text in members.items():
            packed.writestr(name.replace("_", "."), text)
    return made.getvalue()


def _table(*, head: str = HEAD, prior: str = PRIOR, rows: list[str] | None = None) -> str:
    return "\n".join([head, prior, *(ROWS if rows is None else rows)]) + "\n"


def _first(row: str) -> str:
    """The table with another first question."""
    return _table(rows=[row, *ROWS[1:]])


ANY_TEXT: dict[str, bytes | str] = {
    "empty.csv": "",
    "blank.csv": "\n\n   \n,,,\n",
    "nul.csv": b"question,error,a,b\nq,0.1,0,\0\n",
    "utf16.csv": TABLE.encode("utf-16"),
    "latin1.csv": TABLE.replace("robin", "pájaro").encode("latin-1"),
    "cut.csv.gz": b"\x1f\x8b\x08\x00",
    "quote.csv": TABLE + '"never closed,0.1,0,1,0,1\n',
    "picture.csv": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "zip.csv": _zip(a_txt="hello"),
}
"""Files that no verb reads as a table, whatever it should hold."""
PROBLEMS: dict[str, bytes | str] = {
    **ANY_TEXT,
    "header.csv": HEAD + "\n",
    "only_prior.csv": f"{HEAD}\n{PRIOR}\n",
    "prose.csv": "Dear all,\nplease find the table attached.\n",
    "one_class.csv": "question,error,a\nq,0.1,1\n",
    "no_class.csv": "question,error\nq,0.1\n",
    "twin_class.csv": _table(head=HEAD.replace("eagle", "robin")),
    "no_name.csv": _table(head=HEAD.replace("eagle", "")),
    "twin_question.csv": _table(rows=[ROWS[0], ROWS[0], ROWS[1]]),
    "cell_2.csv": _first("flies,0.05,2,1,0,0"),
    "cell_word.csv": _first("flies,0.05,perhaps,1,0,0"),
    "cell_blank.csv": _first("flies,0.05,,1,0,0"),
    "cell_unicode.csv": _first("flies,0.05,東,1,0,0"),
    "short.csv": _first("flies,0.05,1,1"),
    "long.csv": _first("flies,0.05,1,1,0,0,1,1"),
    "prior_sum.csv": _table(prior="prior,,0.4,0.1,0.3,0.9"),
    "prior_word.csv": _table(prior="prior,,0.4,0.1,0.3,rare"),
    "prior_negative.csv": _table(prior="prior,,0.9,-0.2,0.2,0.1"),
    "prior_blank.csv": _table(prior="prior,,0.4,,0.4,0.2"),
    "prior_nan.csv": _table(prior="prior,,nan,0.1,0.3,0.2"),
    "prior_twice.csv": _table(rows=[PRIOR, *ROWS]),
    "error_2.csv": _first("flies,2,1,1,0,0"),
    "error_word.csv": _first("flies,seldom,1,1,0,0"),
    "error_blank.csv": _first("flies,,1,1,0,0"),
    "error_negative.csv": _first("flies,-0.1,1,1,0,0"),
    "error_inf.csv": _first("flies,inf,1,1,0,0"),
    "no_error.csv": "question,a,b\nq,0,1\n",
    "dash.csv": _table(rows=["dash,,sometimes,,,", *ROWS]),
    "dependence.csv": _table(rows=["dependence,,7,,,", *ROWS]),
    "book.xlsx": "not a workbook",
    "hollow.xlsx": _zip(a_txt="hello"),
    "cut.xlsx": _zip(a_txt="hello")[:40],
    "words_mixed.csv": _first("flies,0.05,often,seldom,1,never"),
    "words_sign.csv": _first("flies,0.05,often,seldom,?,-"),
    "words_many.csv": _first("flies,0.05," + "|".join(f"w{n}" for n in range(40)) + ",u,v,w"),
    "words_typo.csv": "question,error,answers,a,b\nq,0.1,red|brown,red,brwon\n",
    "words_twice.csv": _first("flies,0.05,red|red,brown,brown,-"),
    "words_edge.csv": _first("flies,0.05,red|,brown,brown,-"),
    "answers_list.csv": "question,error,answers,a,b\nq,0.1,red/brown,red,brown\nr,0.1,,1,0\n",
    "answers_unsure.csv": "question,error,answers,a,b\nq,0.1,red|can't tell,red,red\n",
    "answers_null.yaml": YAML.replace("[0, 1]}", "[x, y], answers: [x, null, y]}"),
    "answers_rows.yaml": YAML.replace("[0, 1]}", "[x, y], confusion: {x: [1, 0]}}"),
    "confusion_nan.yaml": YAML.replace("[0, 1]}", "[0, 1], confusion: [[.nan, 0], [0, 1]]}"),
    "table_shape.yaml": YAML.replace("[0, 1]}", "[x, y], table: {x: [1], y: [0]}}"),
    "unsure_class.yaml": YAML.replace("[0, 1]}", "[0, 1], unsure: {c: 0.1}}"),
    "words.yaml": YAML.replace("[0, 1]}", "[red, 1]}"),
    "answers.yaml": YAML.replace("[0, 1]}", "[x, y], answers: [x, z]}"),
    "table.yaml": YAML.replace("[0, 1]}", "[x, y], table: [[0.5, 0.5], [0.4, 0.5]]}"),
    "unsure.json": json.dumps(PROBLEM | {"unsure": 1}),
    "confusion.json": json.dumps(PROBLEM).replace(
        '"error"', '"confusion": [[1, 0], [1, 1]], "error"'
    ),
    "list.yaml": "- a\n- b\n",
    "tabs.yaml": "classes:\n\t- a\n",
    "alias.yaml": "classes: &x [a, b]\nquestions: *x\n",
    "word.yaml": "just words",
    "missing.yaml": "classes: [a, b]\n",
    "field.yaml": YAML + "colour: red\n",
    "twice.yaml": YAML + YAML,
    "number.yaml": YAML.replace("[a, b]", "[1, 2]"),
    "cells.yaml": YAML.replace("[0, 1]}", "[0]}"),
    "unknown.yaml": YAML.replace("[0, 1]}", "{a: 0, c: 1}}"),
    "version.yaml": "crowdtree: 7\n" + YAML,
    "kind.yaml": "kind: poem\n" + YAML,
    "deep.yaml": "[" * 200,
    "cut.json": '{"classes": ["a",',
    "nan.json": '{"classes": ["a", "b"], "dependence": NaN, "questions": []}',
    "twins.json": '{"classes": [], "classes": []}',
    "deep.json": "[" * 100_000,
    "number.json": "1" * 5000,
    "no_question.json": '{"classes": ["a", "b"], "questions": []}',
    "name.txt": TABLE,
    "old.xls": TABLE,
}
YAML_SOURCES = YAML + "sources: [people, {name: m, kind: model, FIELD}]\n"
PROBLEMS |= {
    f"sources_{name}.yaml": YAML_SOURCES.replace("FIELD", field)
    for name, field in {
        "price": "price: 0",
        "kind": "kind: robot",
        "field": "colour: red",
        "error": "worker_error: [2]",
        "question": "worker_error: {swims: 0.1}",
        "both": "worker_error: 0.1, error_factor: 2",
        "factor": "error_factor: -1",
        "confusion": "confusion: {q: [[1, 0], [1, 1]]}",
        "table": "table: [[x]]",
        "unsure": "unsure: 7",
        "dependence": "dependence: 1",
        "repeatable": "repeatable: maybe",
        "most": "most_per_item: 0",
        "refers": "refers: true, dependence: 0.1",
    }.items()
}
PROBLEMS |= {
    "sources_word.yaml": YAML + "sources: people\n",
    "sources_none.yaml": YAML + "sources: []\n",
    "sources_twice.yaml": YAML + "sources: [people, People]\n",
    "sources_only_expert.yaml": YAML + "sources: [{name: ann, refers: true}]\n",
    "sources_together.yaml": YAML + "source_dependence: 1\n",
}
"""With sources of answers."""
WHO: dict[str, bytes | str] = {
    "w_header.csv": "who,price\nm,1\n",
    "w_column.csv": "source,colour\nm,red\n",
    "w_twins.csv": "source,flies,flies\nm,0.1,0.1\n",
    "w_blank.csv": "source,price\n,1\n",
    "w_price.csv": "source,price\nm,dear\n",
    "w_free.csv": "source,price\nm,0\n",
    "w_kind.csv": "source,kind\nm,robot\n",
    "w_error.csv": "source,error\nm,2\n",
    "w_some.csv": "source,flies\nm,0.1\n",
    "w_factor.csv": "source,error_factor\np,\nm,-2\n",
    "w_dependence.csv": "source,dependence\nm,1\n",
    "w_repeatable.csv": "source,repeatable\nm,perhaps\n",
    "w_most.csv": "source,most_per_item\nm,1.5\n",
    "w_refers.csv": "source,refers\nm,2\n",
    "w_long.csv": "source,price\nm,1,2\n",
    "w_together.csv": "source,price\nm,1\nsource_dependence,2\n",
    "w_twice.csv": "source,price\nm,1\nM,1\n",
    "w_fields.yaml": "sources: [people]\ncolour: red\n",
    "w_unknown.yaml": "sources: [{name: m, worker_error: {swims: 0.1}}]\n",
}
"""Tables of sources."""
YAML_WORDS = (
    "worker_error: 0.1\nclasses: [a, b, c]\nquestions:\n"
    "  - {name: cap, answers: [red, brown, white], outcome: [red, brown|white, white], FIELD}\n"
)
ROW_SUMS = "red: [0.9, 0.1, 0], brown: [0.1, 0.8, 0.1]"
SEVERAL_ANSWERS: dict[str, bytes | str] = {
    f"s_{name}.csv": f"question,error,answers,a,b,c\n{row}\n"
    for name, row in {
        "33": f"q,0.1,{'|'.join(f'x{n}' for n in range(33))},x0,x1,x2",
        "one": "q,0.1,red,red,red,red\nr,0.1,,1,0,1",
        "gap": "q,0.1,red||brown,red,brown,red",
        "end": "q,0.1,red|brown|,red,brown,red",
        "twins": "q,0.1,red|brown|red,red,brown,red",
        "case": "q,0.1,red|Red,red,red,red",
        "dash": "q,0.1,red|-,red,red,-",
        "unlisted": "q,0.1,red|brown,red,brown,white",
        "codes": "q,0.1,red|brown,1,0,1",
        "alphabet": "q,0.1,red|brown,r\u0435d,brown,red",
        "hidden": "q,0.1,red|brown,re\u200bd,brown,red",
        "empty": "q,0.1,red|brown,red,,brown",
        "bar": "q,0.1,red|brown,|,red,brown",
        "bars": "q,0.1,red|brown,red||brown,red,brown",
        "right_twice": "q,0.1,red|brown,red|red,red,brown",
        "right_dash": "q,0.1,red|brown,red|-,red,brown",
        "error": "q,1.5,red|brown,red,brown,red",
        "error_nan": "q,nan,red|brown,red,brown,red",
        "unsure": "q,0.1,red|can\u2019t tell,red,red,red",
    }.items()
}  # fmt: skip
SEVERAL_ANSWERS |= {
    "s_words_0.csv": "question,error,a,b\nq,0.1,red,0\n",
    "s_words_blank.csv": "question,error,a,b\nq,0.1,red,\n",
    "s_words_decimal.csv": "question,error,a,b\nq,0.1,2.5,4\n",
    "s_words_unsure.csv": "question,error,a,b\nq,0.1,red,can't tell\n",
    "s_words_200.csv": "question,error,{}\nq,0.1,{}\n".format(
        ",".join(f"c{n}" for n in range(200)), ",".join(f"w{n}" for n in range(200))
    ),
}
SEVERAL_ANSWERS |= {
    f"s_{name}.yaml": YAML_WORDS.replace("FIELD", field)
    for name, field in {
        "sum": f"confusion: {{{ROW_SUMS}, white: [0, 0.3, 0.9]}}",
        "row": f"confusion: {{{ROW_SUMS}}}",
        "typo": f"confusion: {{{ROW_SUMS}, wite: [0, 0.1, 0.9]}}",
        "width": f"confusion: {{{ROW_SUMS}, white: [0.1, 0.9]}}",
        "negative": f"confusion: {{{ROW_SUMS}, white: [-0.1, 0.2, 0.9]}}",
        "nan": f"confusion: {{{ROW_SUMS}, white: [.nan, 0.1, 0.9]}}",
        "words": f"confusion: {{{ROW_SUMS}, white: [never, 0.1, 0.9]}}",
        "grid": "confusion: [[1, 0, 0], [0, 1, 0]]",
        "number": "confusion: 0.1",
        "columns": "table: {red: [0.9, 0, 0.3], brown: [0.1, 0.5, 0], white: [0, 0.5, 1]}",
        "missing": "table: {red: [0.9, 0, 0], brown: [0.1, 1, 1]}",
        "extra": "table: {red: [1, 0, 0], brown: [0, 1, 0], white: [0, 0, 1], blue: [0, 0, 0]}",
        "ragged": "table: {red: [0.9, 0], brown: [0.1, 0.5, 0], white: [0, 0.5, 1]}",
        "flat": "table: 3",
        "both": f"confusion: {{{ROW_SUMS}, white: [0, 0, 1]}}, table: [[1, 0], [0, 1], [0, 0]]",
        "field": "confusoin: 3",
        "unsure_1": "unsure: 1",
        "unsure_word": "unsure: often",
        "unsure_nan": "unsure: .nan",
        "unsure_short": "unsure: [0.1, 0.2]",
        "unsure_class": "unsure: {d: 0.1}",
    }.items()
}  # fmt: skip
SEVERAL_ANSWERS |= {
    f"s_{name}.yaml": YAML.replace("outcome: [0, 1]}", f"{fields}}}")
    for name, fields in {
        "scalar": "answers: red, outcome: [red, brown]",
        "none": "answers: [], outcome: [red, brown]",
        "flags": "answers: [true, no], outcome: [yes, no]",
        "nested": "answers: [[red], brown], outcome: [red, brown]",
        "mapping": "answers: {red: 1}, outcome: [red, brown]",
        "many": f"answers: [{', '.join(f'x{n}' for n in range(33))}], outcome: [x0, x1]",
        "short": "answers: [red, brown], outcome: [red]",
        "class": "answers: [red, brown], outcome: {a: red, d: brown}",
        "blank": "answers: [red, brown], outcome: [red, null]",
        "cycle": "answers: &x [red, *x], outcome: [red, red]",
    }.items()
}
SEVERAL_ANSWERS |= {
    "s_top.yaml": "unsure: maybe\n" + YAML,
    "s_unsure.yaml": YAML.replace("[a, b]", "[{name: a, unsure: lots}, b]"),
    "s_nan.json": json.dumps(PROBLEM).replace('"error": 0.1', '"confusion": [[NaN, 1], [0, 1]]'),
}
"""Tables whose questions have several answers."""
DELTA = {
    "specs": "*NUMBER OF CHARACTERS 2\n*NUMBERS OF STATES 1,2 2,2\n",
    "chars": "*CHARACTER LIST\n#1. cap/\n1. red/\n2. brown/\n#2. ring/\n1. no/\n2. yes/\n",
    "items": "*ITEM DESCRIPTIONS\n# A/\n1,1 2,1\n# B/\n1,2 2,2\n",
}
GUIDES: dict[str, bytes | str] = {
    f"d_{name}/{file}": text.replace(old, new) if file == part else text
    for name, (part, old, new) in {
        "state": ("items", "1,2 ", "1,7 "),
        "character": ("items", "2,2", "9,1"),
        "letter": ("items", "1,2 ", "1,x "),
        "twice": ("items", "1,2 ", "1,2 1,1 "),
        "slash": ("items", "# A/", "# A"),
        "nameless": ("items", "# A/", "# /"),
        "comment": ("items", "1,2 ", "1,2<red "),
        "alone": ("items", "# B/\n1,2 2,2\n", ""),
        "no_items": ("items", DELTA["items"], ""),
        "nul": ("items", "# A/", "\0\1"),
        "no_chars": ("chars", DELTA["chars"], ""),
        "fewer": ("chars", "#2. ring/\n1. no/\n2. yes/\n", ""),
        "unnamed": ("chars", "2. brown/\n", ""),
        "count": ("specs", "CHARACTERS 2", "CHARACTERS two"),
        "states": ("specs", "2,2", "2,many"),
        "type": ("specs", "*NUMBERS", "*CHARACTER TYPES 1,ZZ\n*NUMBERS"),
        "implicit": ("specs", "*NUMBERS", "*IMPLICIT VALUES 9,1\n*NUMBERS"),
        "depends": ("specs", "2,2\n", "2,2\n*DEPENDENT CHARACTERS 1,9:2\n"),
        "entry": ("specs", "2,2\n", "2,2\n*DEPENDENT CHARACTERS 1:2\n"),
    }.items()
    for file, text in DELTA.items()
}
GUIDES |= {
    "d_part/specs": DELTA["specs"],
    "d_part/items": DELTA["items"],
    "d_none/readme": "no guide",
}
"""Folders of the DELTA format."""
EXPORTS: dict[str, bytes | str] = {
    "x_object.json": '{"a": 1}',
    "x_empty.json": '[{"id": 1, "data": {}}]',
    "x_cut.json": '[{"id": 1, "annotations": [',
    "x_zoo.csv": "user_name,annotations,subject_ids\nx,[{oops,1\n",
    "x_text.csv": 'user_name,annotations,subject_ids\nx,"[{""task"": ""T0"", ""value"": 3}]",1\n',
    "x_subject.csv": 'user_name,annotations\nx,"[]"\n',
    "x_words.csv": "task,worker,question,label\n1,ann,flies,brwon\n1,ben,flies,yes\n",
    "x_asks.csv": "task,worker,question,label\n1,ann,swims,yes\n1,ben,swims,yes\n",
    "x_33.csv": "task,worker,question,label\n" + "".join(
        f"{n},{who},{q},v{n}\n" for n in range(40) for who in ("ann", "ben") for q in "qr"
    ),
    "x_gold.csv": "task,truth\n1,unicorn\n",
    "x_who.csv": "who,what\nann,people\n",
    "x_who_some.csv": "worker,source\nann,people\n",
    "x_who_kind.csv": "worker,source,kind\nann,p,robot\nben,p,robot\n",
    "x_who_kinds.csv": "worker,source,kind\nann,p,people\nben,p,model\n",
    "x_who_price.csv": "worker,source,price\nann,p,-1\nben,p,-1\n",
    "x_who_prices.csv": "worker,source,price\nann,p,1\nben,p,2\n",
    "x_kinds.csv": "worker,kind\nann,robot\nben,person\n",
    "x_alien.csv": "task,worker,label,kind\n1,ann,cat,alien\n1,ben,cat,person\n",
    "x_both.csv": "task,worker,label,kind\n1,ann,a,person\n2,ann,a,model\n1,ben,a,person\n",
}  # fmt: skip
"""Answers, and tables beside them, with several answers, sources and models."""
PLANS: dict[str, bytes | str] = {
    name: json.dumps({**PLAN, **change})
    for name, change in {
        "p_vote.json": {"vote": "loudest"},
        "p_field.json": {"colour": "red"},
        "p_version.json": {"crowdtree": 3},
        "p_text.json": {"crowdtree": "1"},
        "p_leaf.json": {"tree": {"label": "c"}},
        "p_open.json": {"tree": {"question": "q"}},
        "p_unknown.json": {"tree": {"question": "x", "no": {"label": "a"}, "yes": {"label": "b"}}},
        "p_swapped.json": {"tree": {"question": "q", "no": {"label": "b"}, "yes": {"label": "a"}}},
        "p_votes.json": {"tree": {**PLAN["tree"], "votes": -3}},
        "p_list.json": {"tree": []},
        "p_nodes.json": {"tree": None, "nodes": [{"question": "q", "no": 0, "yes": 0}]},
        "p_problem.json": {"problem": {"classes": ["a"]}},
        "p_branch.json": {"tree": {"question": "q", "branches": {"no": {"label": "a"}}}},
        "p_branches.json": {"tree": {"question": "q", "branches": {"red": {"label": "a"}}}},
    }.items()
}
FRAMES: dict[str, bytes | str] = {
    "f_columns.csv": "who,what\nann,cat\n",
    "f_header.csv": "task,worker,label\n",
    "f_twins.csv": "task,task,worker,label\n1,1,ann,cat\n",
    "f_long.csv": "task,worker,label\n1,ann,cat,dog\n",
    "f_parquet.parquet": b"PAR1 nonsense PAR1",
    "f_json.json": '{"task": 1}',
}
CHECKS: dict[str, bytes | str] = {
    "l_columns.csv": "name,animal\na,cat\n",
    "l_header.csv": "item,label,error\n",
    "l_error.csv": "item,label,error\na,cat,often\n",
    "l_beyond.csv": "item,label,error\na,cat,1.5\n",
    "l_twice.csv": "item,label,error\na,cat,0.1\na,cat,0.1\n",
    "l_blank.csv": "item,label,error\n,cat,0.1\n",
    "l_short.csv": "item,label,error\na,cat\n",
    "l_list.json": '{"item": "a"}',
    "l_lines.jsonl": '{"item": "a", "label": "cat", "error": 0.1}\n[1]\n',
    "l_broken.jsonl": '{"item": "a"\n',
}
AUDITS: dict[str, bytes | str] = {
    "a_empty.json": "",
    "a_list.json": "[]",
    "a_fields.json": '{"crowdtree": 1, "kind": "audit"}',
    "a_kind.json": json.dumps(PLAN),
    "a_version.json": '{"crowdtree": 2, "kind": "audit"}',
}
THINGS: dict[str, bytes | str] = {
    "i_columns.csv": "name\na\n",
    "i_header.csv": "task,text\n",
    "i_twins.csv": "task,task\na,b\n",
    "i_short.csv": "task,text\na\n",
    "i_gold.csv": "task,gold\na,unicorn\n",
    "i_blank.csv": "task,text\n,one\n",
    "i_lines.jsonl": '{"text": "no task"}\n',
    "i_list.jsonl": "[1, 2]\n",
    "i_broken.jsonl": "{\n",
    "i_name.txt": ITEMS,
}
FILES: dict[str, bytes | str] = {
    **GOOD, **PROBLEMS, **PLANS, **FRAMES, **CHECKS, **AUDITS, **THINGS, **WHO,
    **SEVERAL_ANSWERS, **GUIDES, **EXPORTS,
}  # fmt: skip

READERS = [
    ["design", "FILE"],
    ["staff", "FILE", "--workers", "4"],
    ["frontier", "FILE"],
    ["simulate", "FILE", "--items", "5"],
    ["simulate", "FILE", "--compare"],
    ["explain", "FILE"],
    ["pilot", "FILE"],
    ["check", "FILE"],
    ["report", "FILE"],
    ["campaign", "create", "FILE"],
    ["campaign", "revise", "1", "FILE"],
    ["learn", "answers.csv", "--problem", "FILE"],
]
SEVERAL_READERS = [["check", "FILE", "--worker-error", "0.1"]]
PLAN_READERS = [
    ["evaluate", "FILE"],
    ["staff", "FILE", "--workers", "4"],
    ["simulate", "FILE", "--policy", "plan"],
    ["report", "FILE"],
    ["campaign", "create", "FILE"],
    ["learn", "answers.csv", "--plan", "FILE"],
]
WHO_READERS = [
    [*words.split(), "--sources", "FILE"]
    for words in ("simulate birds.csv --items 5", "check birds.csv", "explain example:animals")
]
LEARN = [
    ["learn", "FILE"],
    ["learn", "answers.csv", "--gold", "FILE"],
    ["judge", "FILE"],
    ["judge", "answers.csv", "--gold", "FILE"],
]
AUDIT = [
    ["audit", "plan", "FILE", "--bound", "0.1"],
    ["audit", "start", "FILE", "-o", "new.json"],
    ["audit", "start", "labels.csv", "-o", "new.json", "--known", "FILE"],
    ["audit", "record", "audit.json", "FILE"],
    ["audit", "verify", "audit.json", "--labels", "FILE"],
]
AUDIT_FILES = [
    ["audit", "next", "FILE"],
    ["audit", "record", "FILE", "labels.csv"],
    ["audit", "show", "FILE"],
    ["audit", "verify", "FILE"],
]
FORMATS = [
    ["learn", "FILE", "--format", "label-studio"],
    ["learn", "FILE", "--format", "zooniverse"],
    ["learn", "FILE", "--format", "wide"],
]
COMMANDS = """
learn x_object.json --format label-studio
learn x_empty.json --format label-studio
learn x_cut.json
learn x_zoo.csv
learn x_text.csv
learn x_subject.csv --format zooniverse
learn x_words.csv --problem birds.csv
learn x_asks.csv --problem birds.csv
learn x_33.csv --gold x_gold.csv
learn answers.csv --sources x_who.csv
learn answers.csv --sources x_who_some.csv
learn answers.csv --sources x_who_kind.csv
learn answers.csv --sources x_who_kinds.csv
learn answers.csv --sources x_who_price.csv
learn answers.csv --sources x_who_prices.csv
learn answers.csv --sources nowhere.csv
learn answers.csv --question cap
judge x_alien.csv
judge x_both.csv
judge answers.csv --models x_kinds.csv
judge answers.csv --models nowhere.csv
judge answers.csv --margin nan
judge answers.csv --gold x_gold.csv
evaluate p_branch.json
evaluate p_branches.json
check d_state
explain example:leaves --answers fruit=nutz
explain example:leaves --answers froot=nuts
explain example:leaves --class beach
plan example:leaves --error 0.01 --price froot=2
plan example:leaves --error 0.01 --price -1
campaign create example:leaves
campaign create example:triage
judge answers.csv --models zoe
judge answers.csv --models ,
judge answers.csv --models birds.csv
judge answers.csv --models ann,ben
judge answers.csv --margin 2
judge answers.csv -o judge.txt
design birds.csv --method best
design birds.csv --worker-error 2
design birds.csv --worker-error nan
design birds.csv --dependence 7
design birds.csv --errors birds.csv
design birds.csv --errors nowhere.csv
design birds.csv --strengths
design birds.csv --time-limit 5
design birds.csv --method optimal --time-limit -1
design birds.csv --method optimal --node-limit 0
design birds.csv --method optimal --gap-limit -1
design birds.csv --price nan
design example:unicorns
design example:
design .
design birds.csv/inner.csv
staff birds.csv
staff birds.csv --workers -1
staff birds.csv --workers 4 --answers 9
staff birds.csv --answers nan
staff birds.csv --answers 0.1
staff birds.csv --workers 99999999999999999999
staff birds.csv --workers 4 --method best
staff plan.json --workers 4 --normalise
frontier birds.csv --error 0
frontier birds.csv --error 1e-40
frontier birds.csv --error nan
frontier birds.csv --error -1
frontier birds.csv --error 1
frontier birds.csv --answers 0.1
frontier birds.csv --answers nan
frontier birds.csv --error 0.1 --answers 5
frontier birds.csv --undecided 0.1
frontier birds.csv --error 0.1 --undecided 7
frontier birds.csv --price free
frontier birds.csv --price swims=2
frontier birds.csv --price -1
frontier birds.csv --max-votes 0
frontier birds.csv --max-points 0
frontier birds.csv --time-limit -1
frontier birds.csv -o plan2.json
frontier plan.json
simulate birds.csv --items 0
simulate birds.csv --items -5
simulate birds.csv --target-error 0
simulate birds.csv --target-error 1
simulate birds.csv --target-error nan
simulate birds.csv --max-answers 0
simulate birds.csv --max-answers 1
simulate birds.csv --spammers 2
simulate birds.csv --skill-sd -1
simulate birds.csv --true-errors -1
simulate birds.csv --true-errors nan
simulate birds.csv --shared-difficulty 2
simulate birds.csv --certify 2
simulate birds.csv --people-per-item 0
simulate birds.csv --people-per-item 3 --max-answers 2
simulate birds.csv --compare --adapt
simulate birds.csv --compare --people-per-item 2
simulate birds.csv --compare --spammers 0.1
simulate birds.csv --compare --target-error 0
simulate birds.csv --engine cloud
simulate birds.csv --jobs 0
simulate birds.csv --policy plan --workers -1
simulate plan.json --sources birds.csv
simulate birds.csv --sources nowhere.csv
explain example:triage --answers topic=dear
explain example:triage --answers "topic (parrot)=money"
explain birds.csv --class unicorn
explain birds.csv --answers swims=yes
explain birds.csv --answers flies
explain birds.csv --answers flies=perhaps
explain birds.csv --class robin --answers flies=yes
pilot birds.csv --half-width 0
pilot birds.csv --half-width nan
pilot birds.csv --level 1
pilot birds.csv --answers-per-item 0
evaluate birds.csv
evaluate example:table1
report birds.csv --workers -1
report birds.csv --design best
check plan.json
new birds.csv
new birds.json
new birds
new .
new nowhere/new.csv
learn answers.csv --level 2
learn answers.csv --level nan
learn answers.csv --class cat
learn answers.csv --class cat --class cat
learn answers.csv --plan birds.csv
learn answers.csv --problem birds.csv
learn nowhere.csv
audit plan labels.csv
audit plan labels.csv --bound 0
audit plan labels.csv --bound 2
audit plan labels.csv --bound nan
audit plan labels.csv --bound 0.1 --confidence 1
audit plan labels.csv --bound 0.1 --replays 0
audit start labels.csv
audit start labels.csv -o new.csv
audit start labels.csv -o audit.json
audit start labels.csv -o new.json --confidence 0
audit start labels.csv -o new.json --key note.txt
audit start labels.csv -o new.json --key nowhere.txt
audit next audit.json -n 0
audit next audit.json -o sheet.json
audit show audit.json --draw audit.gif
audit verify audit.json --key note.txt
owner link --url ftp://label.example
owner link --hours -1
owner list --database nowhere.db
owner revoke
owner revoke 0123 --all
owner revoke nobody
campaign create birds.csv --set nope=1
campaign create birds.csv --set price
campaign create birds.csv --set price=dear
campaign create birds.csv --set gold_rate=2
campaign create birds.csv --who friends
campaign create birds.csv --workers -1
campaign create birds.csv --adaptive --target-error 0
campaign create birds.csv --adaptive --target-error 2
campaign create birds.csv --adaptive --max-answers 0
campaign create birds.csv --database nowhere/new.db
campaign create birds.csv --database oracle://host/x
campaign items 1 nowhere.csv
campaign items 9 items.csv
campaign items one items.csv
campaign start 1
campaign start 9
campaign pause 1
campaign status 9
campaign status 1 --database nowhere.db
campaign status 1 --database note.txt
campaign revise 1 birds.csv
campaign revise 9 birds.csv
campaign exclude 1
campaign exclude 1 --worker ann
campaign exclude 1 --worker 0
campaign exclude 1 --worker 1 --since noon
campaign exclude 9 --worker 1
campaign include 1 --worker 1
campaign reopen 1
campaign reopen 1 nowhere
campaign reopen 1 a --all
campaign labels 1 -o labels.xml
campaign labels 1 -o nowhere/labels.csv
campaign labels 9
campaign answers 9
campaign answers 1 --format xml
campaign audit 1 --bound 0.1
campaign audit 1 --certificate audit.csv
campaign audit 9
campaign verify 9
reproduce
reproduce -o note.txt
demo -o note.txt
serve --url nonsense
serve --url ftp://host
serve --processes 0
serve --processes 2
serve --joins-per-minute 0
serve --database nowhere/new.db
serve --database note.txt
serve --port 99999
backup new.backup --database nowhere.db
backup new.backup --database note.txt
backup nowhere/new.backup
backup
restore nowhere.backup --database new.db
restore note.txt --database new.db
restore note.txt --replace
restore zip.csv --database new.db
restore hollow.xlsx --database new.db
restore cut.xlsx --database new.db
restore empty.csv --database new.db
restore . --database new.db
backup .
owner list --database note.txt
owner link --hours nan
owner revoke 0123 --database nowhere.db
prolific create 99 --places 5 --url https://label.example --seconds 9
prolific create 1 --places 0 --url https://label.example --seconds 9
prolific create 1 --places 5 --url http://label.example --seconds 9
prolific create 1 --places 5 --url https://label.example --seconds -1
prolific create 1 --places 5 --url https://label.example --seconds nan
prolific create x --places 5
prolific publish 1
prolific publish 99 --dry-run
prolific pause 1 --database nowhere.db
prolific resume 1 --database note.txt
prolific stop -1
prolific submissions 99
prolific approve 1
prolific approve 1 --complete --submission 5
prolific reject 1 --submission 5
prolific reject 1 --submission 5 --category RUDE --message short
prolific bonus 1 --outcome maybe
design birds.csv --errors - -
design escape\x1b[2J.csv
design birds.csv --method \x1b[31m
design birds.csv --seed -1
design birds.csv --seed 1.5
design birds.csv --dash perhaps
design birds.csv --rows columns
design birds.csv --objective cheapest
design birds.csv --gap-limit 5%
design birds.csv --price 5,00
design birds.csv --worker-error 110%
design birds.csv --loss nowhere.csv
design birds.csv --loss birds.csv
design birds.csv birds.csv
design --method fm
designs birds.csv
staff birds.csv --workers 4.5
staff birds.csv --workers many
staff birds.csv --answers -3
staff birds.csv --workers 4 --price -2
staff plan.json --workers 4 --dash either
frontier birds.csv --vote loudest
frontier birds.csv --method best
frontier birds.csv --error 105%
frontier birds.csv --error 0.1 --price inf
frontier birds.csv --max-votes 1.5
frontier birds.csv --undecided nan
simulate birds.csv --items 1e3
simulate birds.csv --policy best
simulate birds.csv --seed -4
simulate birds.csv --engine dask://
simulate birds.csv --engine dask
simulate plan.json --worker-error 0.1
explain birds.csv --class
explain birds.csv --answers =yes
explain birds.csv --policy best
pilot birds.csv --level 95%
evaluate plan.json --normalise
evaluate plan.json plan.json
report birds.csv --seed x
check birds.csv --worker-error 3
check nowhere.csv
new birds.txt
new nowhere/deeper/t.yaml
learn answers.csv --format spreadsheet
learn answers.csv --gold nowhere.csv
learn answers.csv --level 95%
audit plan labels.csv --bound 105%
audit start labels.csv -o new.json --seed x
audit next audit.json -n 1.5
audit show nowhere.json
campaign join-link
campaign join-link 9
campaign join-link one
campaign join-link 1 --url label.example
campaign join-link 1 --url https://label.example/path
campaign join-link 1 --database nowhere.db
campaign invite 1
campaign invite 9 Ann
campaign invite 1 Ann --url ftp://label.example
campaign invite 1 Ann --database note.txt
explain plan.json --class unicorn
explain birds.csv --answers flies==yes
explain labels.csv
staff p_vote.json --workers 3
staff birds.csv --answers 1e400
simulate birds.csv --items 99999999999999999999
simulate birds.csv --max-answers 99999999999999999999
simulate plan.json --target-error 0.1
simulate answers.csv
backup crowdtree.db
backup ./crowdtree.db --database sqlite:///crowdtree.db
backup new.backup --media note.txt
backup new.backup --media s3://
backup new.backup --database sqlite://
restore good.backup
restore good.backup --database .
restore good.backup --database sqlite://
restore good.backup --database sqlite:///:memory:
restore good.backup --database nowhere/new.db
restore good.backup --database new.db --media note.txt
restore plan.json --database new.db
campaign create birds.csv --database :memory:
campaign create birds.csv --database .
audit record audit.json audit.json
audit record audit.json .
audit record audit.json labels.csv
audit record labels.csv labels.csv
audit record - labels.csv
""".strip().splitlines()
BAD_OUTPUTS = [
    *(f"{verb} birds.csv {option} {path}"
      for verb in ("design", "staff --workers 4", "frontier --error 0.1")
      for option, path in (("-o", "plan.txt"), ("-o", "nowhere/plan.json"), ("--draw", "tree.gif"),
                           ("--draw", "tree"), ("--draw", "nowhere/tree.svg"))),
    "design birds.csv -o x.json --draw x.json",
    "simulate birds.csv --draw run.gif",
    "explain birds.csv --html run.svg",
    "explain birds.csv --html nowhere/run.html",
    "report birds.csv -o page.pdf",
    "report birds.csv -o nowhere/page.html",
    "learn answers.csv -o problem.doc",
    "learn answers.csv --upper problem.doc",
    "learn answers.csv --labels labels.json",
    "learn answers.csv --report report.txt",
    "learn answers.csv --report nowhere/report.html",
    "learn answers.csv -o x.csv --labels x.csv",
    "learn answers.csv --labels answers.csv",
    "learn answers.csv --gold labels.csv --labels=./labels.csv",
    "design birds.csv -o .",
    "design birds.csv -o birds.csv/plan.json",
    "design plan.json -o plan.json",
    "simulate plan.json --draw plan.json",
]  # fmt: skip


def verbs(group: typer.Typer = app) -> Iterator[tuple[list[str], Any]]:
    """The words of every verb, and its function."""
    for command in group.registered_commands:
        yield [str(command.name)], command.callback
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        for words, verb in verbs(inner.typer_instance):
            yield [str(inner.name), *words], verb


def _of_options() -> Iterator[list[str]]:
    """For every verb an unknown option and a word too many; for every option a wrong value."""
    for words, verb in verbs():
        hints = get_type_hints(verb, include_extras=True)
        notes = {name: (kind.__origin__, kind.__metadata__[0]) for name, kind in hints.items()
                 if hasattr(kind, "__metadata__")}  # fmt: skip
        files = [
            "1" if name == "number" else "birds.csv"
            for name, (_, note) in notes.items()
            if type(note).__name__ == "ArgumentInfo"
        ]
        yield [*words, *files, "--unknown-option"]
        if words != ["campaign", "invite"]:  # takes any number of names
            yield [*words, *files, "one", "more", "word"]
        if files and words not in (["campaign", "status"], ["owner", "link"]):  # need none
            yield words
        for kind, note in notes.values():
            names = [name for name in note.param_decls or () if name.startswith("--")]
            if names and not {bool, str, Path, list[str]} & {kind, *get_args(kind)}:
                yield [*words, *files, names[0], "wörd"]
                yield [*words, *files, names[0]]


def _of_files() -> Iterator[list[str]]:
    """Every malformed file, with two of the verbs that read such files, in turn."""
    for readers, files in (
        (READERS, PROBLEMS),
        (PLAN_READERS, PLANS),
        (SEVERAL_READERS, SEVERAL_ANSWERS),
        (SEVERAL_READERS, {name.partition("/")[0]: text for name, text in GUIDES.items()}),
        (WHO_READERS[:2], WHO | ANY_TEXT),
        (LEARN[:1], FRAMES | ANY_TEXT),
        (LEARN[1:], ANY_TEXT),
        (AUDIT, CHECKS | ANY_TEXT),
        (AUDIT_FILES, AUDITS),
        (FORMATS, {"f_columns.csv": "", "cut.json": "", "f_header.csv": "", "empty.csv": ""}),
        ([["campaign", "items", "1", "FILE"]], THINGS | ANY_TEXT),
    ):
        for place, name in enumerate(files):
            for reader in {2 * place % len(readers), (2 * place + 1) % len(readers)}:
                yield [name if word == "FILE" else word for word in readers[reader]]
    for reader in [*READERS, *PLAN_READERS, *WHO_READERS, *LEARN, *AUDIT, *AUDIT_FILES, *FORMATS]:
        yield ["nowhere.csv" if word == "FILE" else word for word in reader]


def cases() -> list[list[str]]:
    """Every command that must be refused."""
    written = [line.split() for line in [*COMMANDS, *BAD_OUTPUTS]]
    return [*written, *_of_files(), *_of_options()]
