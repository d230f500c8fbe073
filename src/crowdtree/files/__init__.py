"""Every format in and out; the only (de)serialiser.

Rooms: `reading` and `atomic` handle files, `sources` turns CSV, workbooks and frames into rows,
`tables` reads rows and `rows` makes them, `markup`, `schema` and `documents` do YAML and JSON,
`problems` and `plans` are the public face.
"""

from crowdtree.files.plans import (
    is_plan,
    load_plan,
    load_tree,
    plan_to_dict,
    save_plan,
    tree_to_json,
)
from crowdtree.files.problems import EXAMPLES, example, load_problem, save_problem, to_frame

__all__ = [
    "EXAMPLES",
    "example",
    "is_plan",
    "load_plan",
    "load_problem",
    "load_tree",
    "plan_to_dict",
    "save_plan",
    "save_problem",
    "to_frame",
    "tree_to_json",
]
