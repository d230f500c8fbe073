"""Classes that no question separates, and what they weigh."""

import numpy as np
import numpy.typing as npt

from .solution import Floats


def final_groups(outcome: npt.NDArray[np.int8]) -> list[npt.NDArray[np.int64]]:
    """Split the classes until nothing splits; the result is the same for every order."""
    waiting = [np.arange(outcome.shape[1])]
    groups = []
    while waiting:
        members = waiting.pop()
        part = outcome[:, members]
        splits = (part >= 0).all(1) & (part != part[:, :1]).any(1)
        if not splits.any():
            groups.append(members)
            continue
        answers = part[int(np.argmax(splits))]
        waiting += [members[answers == 0], members[answers == 1]]
    return groups


def label_weights(outcome: npt.NDArray[np.int8], weight: Floats) -> tuple[Floats, float]:
    """Weights of the classes that can be right, and the weight of those that never are.

    A group that no question separates gets the label of its heaviest class.
    """
    labelled = np.zeros_like(weight)
    for group in final_groups(outcome):
        label = group[int(np.argmax(weight[group]))]
        labelled[label] = weight[label]
    return labelled, float(weight.sum() - labelled.sum())


def class_free(outcome: npt.NDArray[np.int8], error: Floats) -> bool:
    """Whether every question errs equally for all classes that it applies to."""
    known = outcome >= 0
    highest = np.where(known, error, -np.inf).max(axis=1)
    lowest = np.where(known, error, np.inf).min(axis=1)
    return bool((highest <= lowest).all())
