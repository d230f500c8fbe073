"""Lower limits on the answers that any policy needs (docs/model.md, section 8).

The Fano floor is rigorous for independent answers; Burnashev's line is asymptotic, a guide only,
and a good policy goes below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from crowdtree.core.arrays import FloatArray
from crowdtree.core.checking import check_share
from crowdtree.core.errors import CrowdtreeError, listing
from crowdtree.core.likelihood import AnswerModel, binary_entropy
from crowdtree.core.problem import Problem


def capacity(problem: Problem, answers: Sequence[FloatArray] | None = None) -> FloatArray:
    """Most bits that one answer to each question can carry.

    Two answers: the capacity of the binary channel between the question's smallest and largest
    ``P(yes | class)``, as other classes lie between and cannot add to it. More answers: by the
    algorithm of Blahut and Arimoto, from above, so that floors stay floors.

    `answers`: ``P(answer | class)``, a table per answer, in place of the problem's.

    >>> problem = Problem(["a", "b"], None, ["q", "r"], [[0, 1], [0, 0]], [0.11, 0.11])
    >>> capacity(problem).round(3).tolist()
    [0.5, 0.0]
    >>> cap = Problem(["a", "b", "c"], None, ["cap"], [["red", "brown", "white"]], 0.0,
    ...               answers=[["red", "brown", "white"]])
    >>> capacity(cap).round(3).tolist()
    [1.585]
    """
    tables = AnswerModel.of(problem).answers if answers is None else list(answers)
    if len(tables) > 2:
        return np.array(
            [
                blahut_arimoto(np.stack([table[q] for table in tables]))
                for q in range(len(tables[0]))
            ]
        )
    low, high = _extremes(problem, answers)
    gap = high - low
    useless = gap < 1e-12
    width = np.where(useless, 1.0, gap)
    h_low, h_high = binary_entropy(low), binary_entropy(high)
    bits = (low * h_high - high * h_low) / width + np.logaddexp2(0.0, (h_low - h_high) / width)
    return np.asarray(np.where(useless, 0.0, np.clip(bits, 0.0, 1.0)))


def blahut_arimoto(channel: FloatArray, tolerance: float = 1e-6) -> float:
    """Capacity in bits of a channel ``P(answer | class)``, one row per answer; an upper limit.

    References
    ----------
    Arimoto (1972), Blahut (1972): ``max_c D(P(.|c) || output)`` is never below the capacity.

    Examples
    --------
    >>> round(blahut_arimoto(np.array([[0.89, 0.11], [0.11, 0.89]])), 6)
    0.500084
    """
    rows = np.unique(channel.T, axis=0)  # classes that answer alike count once
    inputs = np.full(len(rows), 1 / len(rows))
    logs = np.log2(np.maximum(rows, 1e-300))
    upper = np.inf
    for _ in range(10_000):
        output = inputs @ rows
        divergence = (rows * (logs - np.log2(np.maximum(output, 1e-300)))).sum(axis=1)
        upper = min(upper, float(divergence.max()))
        if upper - float(inputs @ divergence) < tolerance:
            break
        inputs = inputs * np.exp2(divergence)
        inputs /= inputs.sum()
    return max(0.0, upper)


def fano_bits(problem: Problem, error: float) -> float:
    """Bits about the class that a label of some final error needs: ``H - h(Pe) - Pe log2(N - 1)``.

    Never below 0. Above the error of blind guessing no question is necessary.

    >>> problem = Problem(["a", "b", "c", "d"], None, ["q"], [[0, 0, 1, 1]], 0.1)
    >>> fano_bits(problem, 0.0), fano_bits(problem, 0.9)
    (2.0, 0.0)
    """
    check_share("error", error, zero=True)
    n = problem.n_classes
    if error >= 1 - 1 / n:  # above it the formula is no longer monotone, and guessing suffices
        return 0.0
    entropy = float(-(problem.prior @ np.log2(problem.prior)))
    lost = float(binary_entropy(error)) + error * float(np.log2(n - 1))
    return max(0.0, entropy - lost)


def fano_floor(
    problem: Problem,
    error: float,
    *,
    price: ArrayLike | None = None,
    answers: Sequence[FloatArray] | None = None,
) -> float:
    """Fewest expected answers per item with which any policy reaches a final error. A floor.

    ``E[answers] >= (H - h(Pe) - Pe log2(N - 1)) / C``, with ``C`` the largest capacity of any
    question; with prices the least expected cost, with the largest capacity per price. Rigorous
    for answers that are independent given the class, including policies that choose when to stop.

    `price`: price of one answer, one number per question; the floor is then in that currency.
    `answers`: ``P(answer | class)``, a table per answer, in place of the problem's.

    >>> problem = Problem(["a", "b", "c", "d"], None, ["q", "r"],
    ...                   [[0, 0, 1, 1], [0, 1, 0, 1]], 0.11)
    >>> round(fano_floor(problem, 0.01), 3)
    3.806
    """
    needed = fano_bits(problem, error)
    if needed == 0:
        return 0.0
    rate = float((capacity(problem, answers) / checked_price(price, problem)).max())
    return needed / rate if rate > 0 else float("inf")


def burnashev_guide(
    problem: Problem,
    error: float,
    *,
    price: ArrayLike | None = None,
    answers: Sequence[FloatArray] | None = None,
) -> float:
    """Burnashev's ``H / C + log2(1 / Pe) / D``: an asymptotic guide line, not a floor.

    ``D`` is the largest divergence between two classes' answers to one question, in bits (per
    price).

    >>> problem = Problem(["a", "b", "c", "d"], None, ["q", "r"],
    ...                   [[0, 0, 1, 1], [0, 1, 0, 1]], 0.11)
    >>> round(burnashev_guide(problem, 0.01), 3)
    6.823
    """
    check_share("error", error)
    cost = checked_price(price, problem)
    bits = capacity(problem, answers) / cost
    tables = AnswerModel.of(problem).answers if answers is None else list(answers)
    if len(tables) == 2:
        low, high = _extremes(problem, answers)
        divergence = np.maximum(_divergence(low, high), _divergence(high, low)) / cost
    else:
        divergence = _largest_divergence(tables) / cost
    if bits.max() <= 0:
        return float("inf")
    entropy = float(-(problem.prior @ np.log2(problem.prior)))
    return float(entropy / bits.max() - np.log2(error) / divergence.max())


def checked_price(price: ArrayLike | Mapping[str, float] | None, problem: Problem) -> FloatArray:
    """Price of one answer to each question: one number, one per question, or by name; default 1.

    Times the price of the source; with several sources one price per option, source by source.

    >>> problem = Problem(["a", "b"], None, ["q", "r"], [[0, 1], [1, 0]], 0.1)
    >>> checked_price({"q": 1.0, "r": 2.5}, problem).tolist()
    [1.0, 2.5]
    """
    by_question = price_by_question(price, problem)
    by_source = np.array([source.price for source in problem.sources])
    return np.outer(by_source, by_question).ravel()


def price_by_question(
    price: ArrayLike | Mapping[str, float] | None, problem: Problem
) -> FloatArray:
    """Price of one answer to each question, whoever gives it."""
    if price is None:
        whole = problem.whole
        return np.ones(problem.n_questions) if whole is None else checked_price(None, whole)
    if isinstance(price, Mapping):
        named = {problem.question_index(name): amount for name, amount in price.items()}
        absent = [problem.questions[q] for q in range(problem.n_questions) if q not in named]
        if absent:
            raise CrowdtreeError(
                f"price: {listing(map(repr, absent), 3)} missing; give every question a price, or "
                "one number for all"
            )
        price = [named[q] for q in range(problem.n_questions)]
    try:
        cost = np.asarray(price, dtype=np.float64)
        if cost.shape not in ((), (problem.n_questions,)):
            raise ValueError
        cost = np.array(np.broadcast_to(cost, (problem.n_questions,)))
    except (TypeError, ValueError):
        raise CrowdtreeError(
            f"price: expected one number, or one per question ({problem.n_questions})"
        ) from None
    bad = np.flatnonzero(~(np.isfinite(cost) & (cost > 0)))
    if len(bad):
        raise CrowdtreeError(
            f"price: question {problem.questions[bad[0]]!r} costs {cost[bad[0]]:g}; "
            "a price must be positive and finite"
        )
    return cost


def prices_by_question(prices: FloatArray, problem: Problem) -> FloatArray:
    """Undo :func:`checked_price`: prices of questions, from those of options."""
    return prices[: problem.n_questions] / problem.sources[0].price


def _extremes(
    problem: Problem, answers: Sequence[FloatArray] | None
) -> tuple[FloatArray, FloatArray]:
    plain = answers is None and problem.is_yes_no
    tables = AnswerModel.of(problem).answers if answers is None else answers
    yes = problem.channel[0, 1] if plain else tables[1]
    return yes.min(axis=1), yes.max(axis=1)


def _largest_divergence(tables: Sequence[FloatArray]) -> FloatArray:
    """Largest divergence between two classes' answers to each question, in bits."""
    found = np.empty(len(tables[0]))
    for q in range(len(found)):
        rows = np.unique(np.stack([table[q] for table in tables], axis=1), axis=0)
        logs = np.log2(np.maximum(rows, 1e-300))
        found[q] = ((rows * logs).sum(axis=1)[:, None] - rows @ logs.T).max()
    return found


def _divergence(a: FloatArray, b: FloatArray) -> FloatArray:
    """Kullback-Leibler divergence of coin `a` from coin `b`, in bits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yes = np.where(a > 0, a * np.log2(a / b), 0.0)
        no = np.where(a < 1, (1 - a) * np.log2((1 - a) / (1 - b)), 0.0)
    return np.asarray(yes + no)
