"""Every format in and out; the only code that serialises problems and plans.

`problems` and `plans` load and save, `interchange` holds the answer formats of other tools, `items`
reads item files and `exports` writes downloads. Below them, `grids` turns CSV, workbooks and
frames into rows of text, `layouts` finds their header and direction, `cells` reads spellings,
`table_reader` and `table_writer` turn rows into problems and back, `losses` and `sources` read and
write the tables beside them;
`yaml_json`, `schema` and `documents` do YAML and JSON; `formats` lists the endings, `atomic` writes
files. Files are opened by :mod:`crowdtree.core.reading`.
"""

from crowdtree.io.documents import problem_from_dict, problem_to_dict
from crowdtree.io.losses import read_loss
from crowdtree.io.plans import (
    find_plan,
    kind_of,
    load_plan,
    plan_from_dict,
    plan_to_dict,
    save_plan,
)
from crowdtree.io.problems import EXAMPLES, example, load_problem, save_problem
from crowdtree.io.sources import read_sources

__all__ = [
    "EXAMPLES",
    "example",
    "find_plan",
    "kind_of",
    "load_plan",
    "load_problem",
    "plan_from_dict",
    "plan_to_dict",
    "problem_from_dict",
    "problem_to_dict",
    "read_loss",
    "read_sources",
    "save_plan",
    "save_problem",
]
