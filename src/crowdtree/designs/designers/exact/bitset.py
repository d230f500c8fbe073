"""Sets of classes as rows of 64-bit words, of any width."""

import numpy as np
import numpy.typing as npt

from ._jit import compiled, lowest_bit, popcount

Words = npt.NDArray[np.uint64]
WORD = 64


def pack(flags: npt.NDArray[np.bool_]) -> Words:
    """Pack the last axis of a table of flags into 64-bit words.

    Examples
    --------
    >>> pack(np.array([True, False, True])).tolist()
    [5]
    """
    count = flags.shape[-1]
    width = max(1, -(-count // WORD))
    padded = np.zeros((*flags.shape[:-1], width * WORD), dtype=np.uint8)
    padded[..., :count] = flags
    octets = np.packbits(padded, axis=-1, bitorder="little")
    return np.ascontiguousarray(octets).view("<u8").astype(np.uint64)


@compiled
def count(sets: Words, row: int) -> int:
    """Number of classes in the set of a row."""
    total = 0
    for position in range(sets.shape[1]):
        total += popcount(sets[row, position])
    return total


@compiled
def list_members(sets: Words, row: int, members: npt.NDArray[np.int64]) -> int:
    """Write the classes of a set into `members` in ascending order; return how many."""
    size = 0
    for position in range(sets.shape[1]):
        word = sets[row, position]
        while word != np.uint64(0):
            members[size] = lowest_bit(word) + WORD * position
            size += 1
            word &= word - np.uint64(1)
    return size


@compiled
def mix(sets: Words, row: int, width: int) -> np.uint64:
    """Hash the first `width` words of a row (the finaliser of splitmix64 over the words)."""
    state = np.uint64(0x9E3779B97F4A7C15)
    for position in range(width):
        state ^= sets[row, position]
        state ^= state >> np.uint64(30)
        state *= np.uint64(0xBF58476D1CE4E5B9)
        state ^= state >> np.uint64(27)
        state *= np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state
