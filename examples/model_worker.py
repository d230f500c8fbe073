"""A program answers beside people in a live campaign.

    crowdtree serve --example    # then copy the join link from Links and settings
    python examples/model_worker.py LINK

Put your model in the place of `answer`. The server learns how far it can be trusted, as with
everybody else.
"""

import sys
from typing import Any

import crowdtree as ct
from crowdtree.client import Client, work

ANIMALS = ct.example("animals")


def answer(item: dict[str, Any], question: dict[str, Any]) -> bool | None:
    """Look the animal of the text up in the table; a real model would look at the item."""
    name = item["text"].rpartition(": ")[2]
    outcome = ANIMALS.outcome[ANIMALS.questions.index(question["name"])]
    found = outcome[ANIMALS.classes.index(name)]
    return None if found < 0 else bool(found)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    given = work(Client.of_link(sys.argv[1], participant="model"), answer)
    print(f"{given} answers given; there is nothing left to answer.")
