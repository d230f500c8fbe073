"""A memo of bounded size over class sets, which evicts entries when it is full."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ._jit import compiled
from .bitset import Words, mix

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
WINDOW = 8
FIRST_CAPACITY = 1 << 12
CAPACITY, USED, FORGOTTEN = 0, 1, 2
BOUND_ONLY = -1


class Cache(NamedTuple):
    """Open addressing with a window of eight slots; the entry that cost least work is evicted.

    A row of `words` holds the set, the bits of its value (as floats: `values`, the same memory),
    then question + 2 (0: empty) in the high half and the work spent in the low half. `state`:
    capacity in use (a power of two), slots used, entries evicted.
    """

    words: Words
    values: Floats
    state: Counts


def create(width: int, memory_limit_bytes: int) -> Cache:
    """Reserve a cache; pages are only touched as it fills, so a large limit costs nothing."""
    capacity = FIRST_CAPACITY
    entry = 8 * (width + 2)
    while capacity * 2 * entry <= memory_limit_bytes:
        capacity *= 2
    while capacity > 2 * WINDOW and capacity * entry > memory_limit_bytes:
        capacity //= 2
    words = np.zeros((capacity + 1, width + 2), dtype=np.uint64)  # the last row is scratch
    state = np.array([min(capacity, FIRST_CAPACITY), 0, 0], dtype=np.int64)
    return Cache(words, words.view(np.float64), state)


@compiled
def find(sets: Words, row: int, words: Words, state: Counts) -> int:
    """Slot of the set in a row of `sets`, or -1."""
    width = words.shape[1] - 2
    wrap = state[CAPACITY] - 1
    start = np.int64(mix(sets, row, width) & np.uint64(wrap))
    for step in range(WINDOW):
        slot = (start + step) & wrap
        if words[slot, width + 1] == np.uint64(0):
            return -1
        same = True
        for position in range(width):
            if words[slot, position] != sets[row, position]:
                same = False
                break
        if same:
            return int(slot)
    return -1


@compiled
def question_at(slot: int, words: Words) -> int:
    """Best question kept in a slot, or BOUND_ONLY."""
    return int(words[slot, words.shape[1] - 1] >> np.uint64(32)) - 2


@compiled
def _work_at(slot: int, words: Words) -> int:
    return int(words[slot, words.shape[1] - 1] & np.uint64(0xFFFFFFFF))


@compiled
def _write(
    slot: int, sets: Words, row: int, value: float, meta: np.uint64, words: Words, values: Floats
) -> None:
    width = words.shape[1] - 2
    for position in range(width):
        words[slot, position] = sets[row, position]
    values[slot, width] = value
    words[slot, width + 1] = meta


@compiled
def _place(
    sets: Words,
    row: int,
    value: float,
    meta: np.uint64,
    words: Words,
    values: Floats,
    state: Counts,
) -> None:
    """Insert an entry that is known to be absent; a full window evicts what cost least work."""
    width = words.shape[1] - 2
    wrap = state[CAPACITY] - 1
    start = np.int64(mix(sets, row, width) & np.uint64(wrap))
    victim = -1
    least = 1 << 40
    for step in range(WINDOW):
        slot = (start + step) & wrap
        if words[slot, width + 1] == np.uint64(0):
            _write(slot, sets, row, value, meta, words, values)
            state[USED] += 1
            return
        work = _work_at(slot, words)
        if work < least:
            least = work
            victim = slot
    state[FORGOTTEN] += 1
    _write(victim, sets, row, value, meta, words, values)


@compiled
def _grow(words: Words, values: Floats, state: Counts) -> None:
    """Double the capacity inside the reserved memory and place every entry again.

    In place: an entry that `find` cannot reach across a gap counts as evicted.
    """
    old = state[CAPACITY]
    spare = words.shape[0] - 1
    width = words.shape[1] - 2
    state[CAPACITY] = 2 * old
    state[USED] = 0
    for slot in range(old):
        meta = words[slot, width + 1]
        if meta == np.uint64(0):
            continue
        _write(spare, words, slot, values[slot, width], meta, words, values)
        words[slot, width + 1] = np.uint64(0)
        _place(words, spare, values[slot, width], meta, words, values, state)


@compiled
def store(
    sets: Words,
    row: int,
    value: float,
    question: int,
    work: int,
    words: Words,
    values: Floats,
    state: Counts,
) -> None:
    """Remember a value (question >= 0) or a lower bound (question = BOUND_ONLY)."""
    spent = max(work, 1)
    slot = find(sets, row, words, state)
    if slot >= 0:
        spent += _work_at(slot, words)
    spent = min(spent, 0xFFFFFFFF)
    meta = (np.uint64(question + 2) << np.uint64(32)) | np.uint64(spent)
    if slot >= 0:
        _write(slot, sets, row, value, meta, words, values)
        return
    capacity = state[CAPACITY]
    if 2 * state[USED] > capacity and 2 * capacity < words.shape[0]:
        _grow(words, values, state)
    _place(sets, row, value, meta, words, values, state)
