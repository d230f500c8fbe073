"""Plurality votes over any number of answers: who wins, exactly (docs/model.md, section 12).

The answer with the most votes wins; leaders that tie are drawn evenly. Votes that go to no branch
("can't tell", or an answer that no class of the node has) count for nobody, but are paid for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.arrays import FloatArray
from crowdtree.core.channel import read_floats
from crowdtree.core.checking import check_call, check_share, is_number
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.voting import majority_error

_BLOCK = 4_000_000
"""Numbers of one array of the convolutions."""
_TOGETHER = 256
"""Votes up to which several numbers of them share one convolution."""
_FEW_ROWS = 4
"""Rows of one call up to which their winners are kept for later calls."""
MAX_STATES = 200_000
"""Counts of votes that a curtailed vote may pass through."""
MAX_MARGIN_STATES = 20_000
STILL_OPEN = 1e-17
"""Probability that a vote is open below which it is not followed."""
ENDLESS = 1e12
"""Expected answers of a vote that never ends."""


def plurality_error(
    channel_row: ArrayLike, right: int | Sequence[int], votes: int, dependence: float = 0.0
) -> float:
    """Probability that a plurality of equally good workers does not settle on a right answer.

    Parameters
    ----------
    channel_row
        Probability of each answer of one worker. What lacks to 1 are votes that do not count.
    right
        The right answer, or several, by number.
    votes
        Number of votes, at least 1.
    dependence
        Correlation of two workers' answers about one item.

    Examples
    --------
    >>> round(plurality_error([0.8, 0.2], 0, 3), 4)
    0.104
    >>> round(plurality_error([0.6, 0.2, 0.2], 0, 3), 4)  # 1 - 0.6**3 - 3*0.6**2*0.4 - 0.6*0.08*2
    0.304
    """
    check_call(plurality_error, {"right": right, "votes": votes, "dependence": dependence})
    check_share("dependence", dependence, zero=True)
    row = read_floats(channel_row, "channel_row")
    places = [right] if isinstance(right, int | np.integer) else list(dict.fromkeys(right))
    if row.ndim != 1 or len(row) < 2 or not np.all((row >= 0) & (row <= 1)):
        raise CrowdtreeError("channel_row: expected the probabilities of two or more answers")
    if row.sum() > 1 + 1e-9:
        raise CrowdtreeError(f"channel_row: expected a sum of at most 1, got {row.sum():.6g}")
    if not places or not all(is_number(p) and p in range(len(row)) for p in places):
        raise CrowdtreeError(
            f"right: expected the number of an answer, 0 to {len(row) - 1}, got {right!r}"
        )
    if votes < 1:
        raise CrowdtreeError(f"votes: expected at least 1, got {votes!r}")
    others = [place for place in range(len(row)) if place not in places]
    wins = plurality_wins(row, votes, dependence)
    return float(min(1.0, wins[others].sum()))


def plurality_wins(rows: ArrayLike, votes: ArrayLike, dependence: float = 0.0) -> FloatArray:
    """Probability that each answer wins the vote, along the last axis. Exact up to rounding.

    `rows` holds the probability of each answer of one worker, `votes` is broadcast against the
    other axes.

    >>> plurality_wins([[0.5, 0.3, 0.2]], 1).tolist()
    [[0.5, 0.3, 0.2]]
    >>> plurality_wins([0.5, 0.3], 1).round(3).tolist()  # one vote in five is for neither
    [0.6, 0.4]
    """
    shares = np.asarray(rows, dtype=np.float64)
    count = np.broadcast_to(np.asarray(votes), shares.shape[:-1])
    if np.any(count < 1):
        raise CrowdtreeError(f"votes: expected at least 1 per question, got {count.min()}")
    flat, each = shares.reshape(-1, shares.shape[-1]), count.reshape(-1)
    order = np.arange(flat.shape[1])
    if flat.shape[1] > 2:  # by symmetry, computed once for all orders of the answers
        order = np.argsort(-flat, axis=1, kind="stable")
        flat = np.take_along_axis(flat, order, axis=1)
    rows, place = np.unique(flat, axis=0, return_inverse=True)
    numbers, which = np.unique(each.astype(np.int64), return_inverse=True)
    if len(rows) > _FEW_ROWS:
        found = _winners(rows, numbers, dependence)
    else:  # searches ask about the same few rows again and again
        keys = [(row.tobytes(), numbers.tobytes(), dependence) for row in rows]
        found = np.stack([_winners_of(*key) for key in keys], axis=1)
    wins = np.empty((len(flat), flat.shape[1]))
    np.put_along_axis(
        wins, np.broadcast_to(order, wins.shape), found[np.ravel(which), np.ravel(place)], axis=1
    )
    return wins.reshape(shares.shape)


@lru_cache(maxsize=4096)
def _winners_of(row: bytes, votes: bytes, rho: float) -> FloatArray:
    """Probability that each answer wins, one row per number of votes."""
    return _winners(np.frombuffer(row)[None], np.frombuffer(votes, dtype=np.int64), rho)[:, 0]


def _winners(rows: FloatArray, votes: NDArray[np.int64], rho: float) -> FloatArray:
    """Probability that each answer wins, one table per number of votes."""
    found = np.empty((len(votes), *rows.shape))
    together = max(1, int(np.searchsorted(votes, _TOGETHER, side="right")))
    for some in (slice(0, together), *(slice(k, k + 1) for k in range(together, len(votes)))):
        found[some] = _wins(rows, votes[some], rho)
    return found


def _wins(rows: FloatArray, votes: NDArray[np.int64], rho: float) -> FloatArray:
    """The same for numbers of votes that share one convolution."""
    answers, most = rows.shape[1], int(votes[-1])
    rest = np.maximum(1 - rows.sum(axis=1), 0.0)
    rest[rest < 1e-12] = 0.0
    if most == 1:
        return np.asarray(rows + rest[:, None] / answers)[None]
    if answers == 2 and not rest.any():
        second = majority_error(rows[None, :, 1], votes[:, None], rho)
        return np.stack([1 - second, second], axis=2)
    if answers == 1:
        return np.ones((len(votes), *rows.shape))
    step = max(1, _BLOCK // (answers * (most + 1) * (answers // 2 + 1)))
    blocks = [
        _convolved(rows[first : first + step], rest[first : first + step], votes, rho)
        for first in range(0, len(rows), step)
    ]
    return np.concatenate(blocks, axis=1)


def _convolved(
    rows: FloatArray, rest: FloatArray, votes: NDArray[np.int64], rho: float
) -> FloatArray:
    """Sum over the winner's votes the chance that no other answer has more.

    Numbers of votes are independent Poisson (with dependence: negative binomial) variables, given
    their sum. A tie is won by the answer with the largest random mark: given the winner's mark
    ``u`` it beats each of the others with chance ``u``, and a polynomial in ``u`` is integrated
    exactly by Gauss' rule.
    """
    n_rows, answers = rows.shape
    most = int(votes[-1])
    weights = _weights(rows, most, rho)  # [row, answer, votes]
    nobody = _weights(rest[:, None], most, rho)[:, 0]
    total = _weights(np.ones((1, 1)), most, rho)[0, 0, votes]  # that they add up to their number
    node, width = np.polynomial.legendre.leggauss(answers // 2 + 1)
    mark, width = (node + 1) / 2, width / 2
    found = np.zeros((len(votes), n_rows, answers))
    for top in range(most + 1):
        wanted = [
            (place, number - top)
            for place, number in enumerate(votes.tolist())
            if number >= top and (rest.any() or top * answers >= number)  # else one has more
        ]
        if not wanted:
            continue
        below = weights[:, :, : top + 1].copy()
        # [mark, row, answer, votes]: fewer than the winner, or as many and the smaller mark
        polynomials = np.repeat(below[None], len(mark), axis=0)
        polynomials[..., top] *= mark[:, None, None]
        left = wanted[-1][1]
        start = np.zeros((len(mark), n_rows, left + 1))
        start[:] = nobody[None, :, : left + 1]
        ahead = [start]
        for answer in range(answers - 1):
            ahead.append(_multiply(ahead[-1], polynomials[:, :, answer], left))
        behind = np.zeros((len(mark), n_rows, left + 1))
        behind[..., 0] = 1.0
        for answer in reversed(range(answers)):
            for place, others in wanted:
                pairs = (ahead[answer][..., : others + 1] * behind[..., others::-1]).sum(axis=-1)
                found[place, :, answer] += weights[:, answer, top] * (width @ pairs)
            if answer:
                behind = _multiply(behind, polynomials[:, :, answer], left)
    return np.asarray(found / total[:, None, None])


def _multiply(one: FloatArray, two: FloatArray, most: int) -> FloatArray:
    """Product of polynomials, along the last axis, up to the power `most`."""
    found = np.zeros((*one.shape[:-1], most + 1))
    for power in range(min(two.shape[-1], most + 1)):
        found[..., power:] += two[..., power, None] * one[..., : most + 1 - power]
    return found


def _weights(rows: FloatArray, votes: int, rho: float) -> FloatArray:
    """Chances of 0, 1, ... votes for each answer, before their sum is known."""
    from scipy.special import gammaln, xlogy

    count = np.arange(votes + 1)
    share = rows[..., None]
    if not rho:
        mean = votes * share
        return np.asarray(np.exp(xlogy(count, mean) - mean - gammaln(count + 1)))
    size = share * (1 - rho) / rho
    whole = (1 - rho) / rho
    odds = votes / (votes + whole)
    with np.errstate(invalid="ignore", divide="ignore"):
        log_chance = (
            gammaln(count + size)
            - gammaln(size)
            - gammaln(count + 1)
            + count * math.log(odds)
            + size * math.log1p(-odds)
        )
    return np.where(size > 0, np.exp(log_chance), (count == 0) * 1.0)


class Race(NamedTuple):
    """A vote that stops early: who wins, and how many answers it takes on average."""

    wins: tuple[float, ...]
    answers: float


def nobody_votes(rest: FloatArray, votes: int, dependence: float) -> FloatArray:
    """Probability that no vote counts, from the chance that one does not."""
    turn = np.arange(votes)
    chances = ((1 - dependence) * rest[..., None] + dependence * turn) / (
        (1 - dependence) + dependence * turn
    )
    return np.asarray(chances.prod(axis=-1))


@lru_cache(maxsize=4096)
def curtailed_race(row: tuple[float, ...], votes: int, dependence: float = 0.0) -> Race:
    """Plurality of `votes` that stops as soon as the rest cannot change the winner. Exact.

    >>> race = curtailed_race((0.8, 0.2), 3)
    >>> [round(win, 4) for win in race.wins], round(race.answers, 4)
    ([0.896, 0.104], 2.32)
    """
    answers, rest = len(row), _rest(row)
    shares = (*row, rest)
    wins = [0.0] * answers
    expected = 1.0
    followed: dict[tuple[int, ...], float] = {(0,) * (answers + 1): 1.0}
    for turn in range(votes):
        following: dict[tuple[int, ...], float] = {}
        filled = (1 - dependence) + dependence * turn
        for counts, chance in followed.items():
            for answer, share in enumerate(shares):
                p = ((1 - dependence) * share + dependence * counts[answer]) / filled
                if p <= 0:
                    continue
                after = (*counts[:answer], counts[answer] + 1, *counts[answer + 1 :])
                following[after] = following.get(after, 0.0) + chance * p
        followed = {}
        for counts, chance in following.items():
            winners, still_open = _settled(counts[:answers], votes - turn - 1)
            expected += chance * still_open
            for winner in winners:
                wins[winner] += chance / len(winners)
            if not winners:
                followed[counts] = chance
        if len(followed) > MAX_STATES:
            raise CrowdtreeError(
                f"votes: {votes} on a question with {answers} answers are too many to follow one "
                "by one; ask fewer, or do not stop early"
            )
    return Race(tuple(wins), expected)


def _settled(counts: tuple[int, ...], left: int) -> tuple[tuple[int, ...], float]:
    """Answers among which the winner is drawn, and the chance that the vote is still open.

    Where only a tie could change the winner, the vote is over if the leader came before the answers
    that may tie. All orders of the votes so far are equally likely; the winner is drawn later, as a
    tie would be.
    """
    first, second = sorted(counts)[:-3:-1]
    if not left or first - second > left:
        return tuple(answer for answer, count in enumerate(counts) if count == first), 0.0
    if first - second < left:
        return (), 1.0
    rivals = second * counts.count(second)
    return (), rivals / (first + rivals)


@lru_cache(maxsize=4096)
def margin_race(row: tuple[float, ...], margin: int) -> Race:
    """Vote in which an answer that trails the leader by `margin` is out, until one is left. Exact.

    With two answers it stops when one leads by `margin`. Where no vote can count it never stops:
    its answers are ENDLESS.

    >>> race = margin_race((0.8, 0.2), 3)
    >>> [round(win, 4) for win in race.wins], round(race.answers, 3)
    ([0.9846, 0.0154], 4.846)
    >>> race = margin_race((0.6, 0.2, 0.2), 2)
    >>> [round(win, 3) for win in race.wins], round(race.answers, 2)
    ([0.824, 0.088, 0.088], 4.5)
    """
    from scipy.sparse import csr_array

    counted = 1 - _rest(row)
    if counted <= 0:
        return Race((1 / len(row),) * len(row), ENDLESS)
    shares, group, sizes = np.unique(row, return_inverse=True, return_counts=True)
    shares = shares / counted
    steps = _margin_steps(tuple(sizes.tolist()), margin)
    lost = steps.out @ shares  # votes for what is out
    lost[lost > 1 - 1e-14] = 0.0  # never reached: nobody votes for what is left
    turns = 1 / (1 - lost)  # votes until one counts
    chance = shares[steps.group] * steps.alike * turns[steps.state]
    goes_on, size = steps.following != WON, len(turns)
    places = steps.following[goes_on], steps.state[goes_on]
    visits = _visits(csr_array((chance[goes_on], places), shape=(size, size)), len(row))
    ends = np.where(goes_on, 0.0, chance * visits[steps.state])
    wins = np.bincount(steps.group, ends, minlength=len(sizes)) / sizes
    return Race(tuple(wins[group].tolist()), float((visits * turns).sum() / counted))


def _visits(flow: Any, answers: int) -> FloatArray:
    """Expected visits of each state, given the chances to go from one to the next.

    The equations are solved at once where a plane has room for the states; with more answers that
    takes minutes, and following the votes until none is open takes milliseconds.
    """
    from scipy.sparse import identity
    from scipy.sparse.linalg import spsolve

    now = np.zeros(flow.shape[0])
    now[0] = 1.0
    if answers <= 3:
        return np.asarray(spsolve((identity(len(now)) - flow).tocsc(), now))
    visits = now.copy()
    while now.sum() > STILL_OPEN:
        now = flow @ now
        visits += now
    return visits


class _Steps(NamedTuple):
    """Moves of a margin vote between states, by votes for any of some answers that are `alike`.

    `following` is the next state, or WON; `out` counts what is out, ``[state, group]``.
    """

    state: NDArray[np.int64]
    following: NDArray[np.int64]
    group: NDArray[np.int64]
    alike: NDArray[np.int64]
    out: NDArray[np.int64]


WON = -1


@lru_cache(maxsize=64)
def _margin_steps(sizes: tuple[int, ...], margin: int) -> _Steps:
    """Follow the distances to the leader; a distance of `margin` means out.

    Answers of one group (`sizes` of them) are equally likely, so that only the sorted distances
    within each group matter.
    """
    state = tuple((0,) * size for size in sizes)
    place, queue, moves = {state: 0}, [state], list[tuple[int, int, int, int]]()
    for number, state in enumerate(queue):
        for voted, own in enumerate(state):
            for distance in sorted(set(own) - {margin}):
                after, to = _voted(state, voted, own.index(distance), margin), WON
                if sum(gap < margin for gaps in after for gap in gaps) > 1:
                    to = place.setdefault(after, len(queue))
                    if to == len(queue):
                        queue.append(after)
                moves.append((number, to, voted, own.count(distance)))
        if len(queue) > MAX_MARGIN_STATES:
            raise CrowdtreeError(
                f"vote: a margin of {margin} over {sum(sizes)} answers has more than "
                f'{MAX_MARGIN_STATES:,} states; use a smaller one, or vote="majority"'
            )
    out = [[gaps.count(margin) for gaps in state] for state in queue]
    before, following, group, alike = np.array(moves).T
    return _Steps(before, following, group, alike, np.array(out))


def _voted(
    state: tuple[tuple[int, ...], ...], group: int, place: int, margin: int
) -> tuple[tuple[int, ...], ...]:
    """Distances after one more vote for an answer of a group."""
    after = [list(gaps) for gaps in state]
    if after[group][place]:
        after[group][place] -= 1
    else:  # a leader draws away
        after = [[min(margin, gap + 1) for gap in gaps] for gaps in after]
        after[group][place] = 0
    return tuple(tuple(sorted(gaps)) for gaps in after)


def _rest(row: tuple[float, ...]) -> float:
    rest = 1 - math.fsum(row)
    return 0.0 if rest < 1e-12 else rest
