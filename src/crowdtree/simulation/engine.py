"""Run a policy over a block of items: vectorised, and step by step for any policy.

Both give the same labels for the same answers, which ``tests/simulation/test_simulate.py`` checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.likelihood import UNSURE, AnswerModel, answers_before
from crowdtree.core.tally import cast, leaders, vote_counts
from crowdtree.policies import AdaptivePolicy, BatchPolicy, PlanPolicy, Policy
from crowdtree.policies.base import decide, label_errors, normalised, product
from crowdtree.policies.batch import nearest_codeword
from crowdtree.policies.walk import MISSING, Walk
from crowdtree.simulation.crowd import Answers, Block

__all__ = ["REASONS", "BlockRun", "blank", "run_block", "run_steps", "walk_of", "write_label"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
REASONS = ("target", "budget", "questions", "leaf", "skipped", "undecided", "referred")
CHUNK = 2048
"""Rows of posteriors scored at once: the scores of a chunk stay in the processor's cache."""


class BlockRun(NamedTuple):
    """Results for the items of a block."""

    truth: IntArray
    label: IntArray
    answers: NDArray[np.int32]
    posterior_error: FloatArray
    reason: NDArray[np.int8]
    asked: IntArray
    """Answers to each question (with several sources: option), over all items."""
    stated_loss: FloatArray
    """Stated expected loss of each decision; for 0/1 loss the stated error."""


def run_block(policy: Policy[Any], block: Block) -> BlockRun:
    """Run a policy over a block, vectorised where the policy supports it."""
    return run_steps(policy, block) if policy.bulk is None else BULK[policy.bulk](policy, block)


def run_steps(policy: Policy[Any], block: Block) -> BlockRun:
    """Run any policy item by item through its own steps, as a live campaign would."""
    found = blank(block, policy.problem.n_options)
    for row in range(len(block.truth)):
        walk = walk_of(policy, block, row)
        while walk.label is None:
            walk.step()
        write_label(found, row, walk)
    return found


def walk_of(policy: Policy[Any], block: Block, row: int) -> Walk:
    """Start an item of a block on its way through the policy's own steps."""
    sources, first, item = len(policy.problem.sources), np.zeros(1, np.int64), np.array([row])

    def hear(option: int, repeat: int, counts: IntArray) -> tuple[int, float]:
        asked = np.array([option])
        before = answers_before(counts[:, None], first, asked, sources)
        said = block.answer(item, asked, np.array([repeat]), before)
        return int(said.value[0]), 0.0 if said.skill is None else float(said.skill[0])

    return Walk(policy, hear, None if block.prior is None else block.prior[row])


def write_label(found: BlockRun, row: int, walk: Walk) -> None:
    """Write the label of an item and what it took."""
    label, policy = walk.label, walk.policy
    assert label is not None
    found.label[row] = label.label
    found.posterior_error[row] = found.stated_loss[row] = label.posterior_error
    loss = policy.problem.loss
    if loss is not None:
        posterior, referred = policy.posterior(walk.state), label.reason == "referred"
        found.stated_loss[row] = loss.risk_of(posterior, label.label, referred)
    found.reason[row] = REASONS.index(label.reason)
    found.answers[row] = walk.counts.sum()
    found.asked[:] += walk.counts.sum(axis=0)


def blank(block: Block, questions: int) -> BlockRun:
    """Room for the results of a block."""
    n = len(block.truth)
    return BlockRun(
        truth=block.truth,
        label=np.full(n, -1, dtype=np.int64),
        answers=np.zeros(n, dtype=np.int32),
        posterior_error=np.zeros(n),
        reason=np.zeros(n, dtype=np.int8),
        asked=np.zeros(questions, dtype=np.int64),
        stated_loss=np.zeros(n),
    )


class _Adaptive:
    """An adaptive policy for all items of a block at once; its hypotheses may be sub-types.

    Items with the same prior and answers so far share one row of the tables until an answer
    separates them, so the first dozen steps cost almost nothing. Where answers are missing, items
    have different numbers of answers at the same time.
    """

    def __init__(self, policy: AdaptivePolicy, block: Block) -> None:
        self.policy, self.block = policy, block
        self.found = blank(block, policy.problem.n_options)
        self.item = np.arange(len(block.truth))
        self.state = np.zeros(len(block.truth), dtype=np.int64)
        self.prior: FloatArray | None = None
        """Prior of each state over the classes, where items have their own."""
        if block.prior is not None:
            rows, self.state = np.unique(block.prior, axis=0, return_inverse=True)
            self.prior = policy.own_prior(rows)
        self.log_posterior = np.atleast_2d(policy.log_start(self.prior))
        states = len(self.log_posterior)
        shape = (policy.model.slots, states, policy.problem.n_options)
        self.counts = np.zeros(shape, dtype=np.int16)
        self.answers = np.zeros(states, dtype=np.int64)
        self.closed: NDArray[np.bool_] | None = None

    def run(self) -> BlockRun:
        """Ask, answer, update, until every item has its label."""
        while True:
            question = self._settle()
            if not len(self.item):
                break
            here = question[self.state]
            states = np.arange(len(question))
            before = self.policy.model.before(self.counts, states, question)
            asked = self.counts[:, states, question].sum(axis=0)[self.state]
            said = self.block.answer(self.item, here, asked, before.take(self.state, axis=1))
            heard = here[said.value != MISSING]
            self.found.asked[:] += np.bincount(heard, minlength=len(self.found.asked))
            self._update(question, said)
        return self.found

    def _settle(self) -> IntArray:
        """Label what is sure enough or cannot go on; return the next question of every state."""
        policy = self.policy
        by_class = policy.by_class(self.log_posterior)
        log_prior = policy.log_prior_of(self.prior)
        stated = policy.stated(by_class, self.answers, log_prior)
        best = decide(stated, policy.problem.loss)
        posterior = np.exp(self.log_posterior)
        few = self.answers < policy.least_answers
        reason = np.where(policy.sure(best) & ~few, 0, -1)
        reason = np.where((reason < 0) & (self.answers >= policy.max_answers), 1, reason)
        if policy.may_give_up:
            rows = np.flatnonzero((reason < 0) & ~few)
            asked = self.counts[:, rows].sum(axis=0)
            start = log_prior if self.prior is None else log_prior[rows]
            given_up = policy.hopeless(
                stated[rows], by_class[rows], asked, self.answers[rows], log_prior=start
            )
            reason[rows[given_up[:, 0]]] = REASONS.index("undecided")
        question = self._questions(np.flatnonzero(reason < 0), posterior)
        lacking = np.flatnonzero((reason < 0) & few & (question < 0))
        if len(lacking):  # nothing is in doubt: ask what told most at first
            first = np.broadcast_to(np.exp(policy.log_start(self.prior)), posterior.shape)
            question[lacking] = self._questions(lacking, first)[lacking]
        reason = np.where((reason < 0) & (question < 0), 2, reason)
        reason = np.where((reason >= 0) & best.referred, REASONS.index("referred"), reason)
        done = reason[self.state] >= 0
        rows, state = self.item[done], self.state[done]
        self.found.label[rows] = best.label[state]
        self.found.posterior_error[rows] = best.error[state]
        self.found.stated_loss[rows] = best.risk[state]
        self.found.reason[rows] = reason[state]
        self.found.answers[rows] = self.answers[state]
        self.item, self.state = self.item[~done], self.state[~done]
        return question

    def _questions(self, go_on: NDArray[np.intp], posterior: FloatArray) -> IntArray:
        """Next question of each of some states, -1 for the others and where none helps."""
        policy = self.policy
        question = np.full(len(posterior), -1, dtype=np.int64)
        left = np.minimum(policy.max_answers - self.answers[go_on], policy.endgame + 1)
        for rest in np.unique(left).tolist():
            mine = go_on[left == rest]
            for start in range(0, len(mine), CHUNK):
                rows = mine[start : start + CHUNK]
                counts = self.counts[:, rows] if policy.counts_matter else None
                closed = None if self.closed is None else self.closed[rows]
                question[rows] = policy.choose(posterior[rows], counts, rest, closed)
        return question

    def _update(self, question: IntArray, said: Answers) -> None:
        """Split the items by their answers and update the posterior of every remaining state."""
        if said.skill is None:
            ways = len(self.counts) + 2  # answers, "can't tell", and none
            key = ways * self.state + said.value + 2
            used = np.flatnonzero(np.bincount(key, minlength=ways * len(question)))
            place = np.zeros(ways * len(question), dtype=np.int64)
            place[used] = np.arange(len(used))
            parent, value, self.state = used // ways, used % ways - 2, place[key]
        else:  # different people: every item has its own row
            parent, value = self.state, said.value.astype(np.int64)
            self.state = np.arange(len(parent))
        asked = question[parent]
        rows = np.arange(len(parent))
        self.counts, self.answers = self.counts[:, parent], self.answers[parent]
        self.prior = None if self.prior is None else self.prior[parent]
        model = self.policy.model
        before = model.before(self.counts, rows, asked)
        evidence = model.evidence(asked, value, said.skill, before)
        gone = value == MISSING
        if gone.any() or self.closed is not None:
            evidence = np.where(gone[:, None], 0.0, evidence)
            blank_ = np.zeros(self.counts.shape[1:], bool)
            closed = blank_ if self.closed is None else self.closed[parent]
            closed[rows[gone], asked[gone]] = True
            self.closed = closed
        before_answer = self.log_posterior[parent]
        self.log_posterior = normalised(before_answer + evidence)
        if gone.any():  # bitwise the same as before
            self.log_posterior = np.where(gone[:, None], before_answer, self.log_posterior)
        slot = np.where(value == UNSURE, len(self.counts) - 1, value)[~gone]
        self.counts[slot, rows[~gone], asked[~gone]] += 1
        self.answers += ~gone


def _run_plan(policy: PlanPolicy, block: Block) -> BlockRun:
    """All items go down the tree together, one answer each per round."""
    found = blank(block, policy.problem.n_questions)
    tree = policy.plan.tree
    logs, rho = _finite_logs(policy.model), policy.model.shared_difficulty
    n = len(block.truth)
    prior = policy.own_prior(block.prior)
    log_posterior = _first(policy, prior, n)
    item, node = np.arange(n), np.zeros(n, dtype=np.int64)
    tally, given = np.zeros((policy.model.slots, n), dtype=np.int64), np.zeros(n, dtype=np.int64)
    children, questions = tree.children.astype(np.int64), tree.question.astype(np.int64)
    reason = np.full(tree.n_leaves, REASONS.index("leaf"), dtype=np.int8)
    reason[list(policy.voted.handed_over)] = REASONS.index(policy.handing_over)

    def voted(rows: NDArray[np.intp]) -> FloatArray:
        """Evidence of the votes at the nodes of some items."""
        votes, asked = vote_counts(tally[: len(logs)].take(rows, axis=1)), question[rows]
        return np.asarray(
            sum(n[:, None] * table[asked] for n, table in zip(votes, logs, strict=True))
        )

    while len(item):
        question = questions[node]
        before = vote_counts(tally)
        said = block.answer(item, question, given, before)
        there = said.value != MISSING
        found.asked[:] += np.bincount(question[there], minlength=len(found.asked))
        found.answers[item] += there
        value = said.value.astype(np.int64)
        at_once = said.skill is None and not rho
        if not at_once:
            told = policy.model.evidence(question, value, said.skill, before)
            log_posterior[item] += np.where(there[:, None], told, 0.0)
        slot = _slots(value, len(tally))
        if there.all():
            cast(tally, slot, given)
        else:
            cast(tally, slot[there], given[there], np.flatnonzero(there))
        given = given + there
        verdict = policy.verdicts(node, found.answers[item], given, tally)
        if not there.all():
            gone = np.flatnonzero(~there)
            left = log_posterior[item[gone]] + (voted(gone) if at_once else 0.0)
            verdict[gone] = policy.passed_over(left, node[gone], tally[:, gone])
        over = np.flatnonzero(verdict >= 0)
        if at_once:
            log_posterior[item[over]] += voted(over)
        node[over] = children[node[over], verdict[over]]
        tally[:, over] = given[over] = 0
        leaf = node < 0
        if leaf.any():
            found.label[item[leaf]] = policy.voted.leaf_label[~node[leaf]]
            found.reason[item[leaf]] = reason[~node[leaf]]
            stay = np.flatnonzero(~leaf)
            item, node, given, tally = item[stay], node[stay], given[stay], tally.take(stay, axis=1)
    _state(policy, log_posterior, found, prior)
    return found


def _first(policy: PlanPolicy | BatchPolicy, prior: FloatArray | None, items: int) -> FloatArray:
    """Log posterior of each item before any answer."""
    return np.log(np.tile(policy.problem.prior, (items, 1)) if prior is None else prior)


def _slots(value: IntArray, slots: int) -> IntArray:
    """Places of answers in a tally: the last one is that of "can't tell"."""
    unsure = value == UNSURE
    return np.where(unsure, slots - 1, value) if unsure.any() else value


def _finite_logs(model: AnswerModel) -> FloatArray:
    """Logarithms of the answers that are evidence, 0 for answers that a question does not have."""
    logs = model.logs[: len(model.answers)]
    return np.where(np.isfinite(logs), logs, 0.0)


def _run_batch(policy: BatchPolicy, block: Block) -> BlockRun:
    problem, n = policy.problem, len(block.truth)
    found = blank(block, problem.n_questions)
    prior = policy.own_prior(block.prior)
    log_posterior = _first(policy, prior, n)
    verdict = np.zeros((n, problem.n_questions), dtype=np.int64)
    alike = np.zeros((len(policy.model.answers), problem.n_questions, n))
    """Answers of people who are all alike: their order does not matter."""
    item = np.arange(n)
    for q in range(problem.n_questions):
        tally = np.zeros((policy.model.slots, n), dtype=np.int64)
        questions, at_once = np.full(n, q), True
        at: Any = slice(None)  # who is asked on; a view, as long as that is everybody
        for repeat in range(policy.votes_per_question):
            rows, question, before = item[at], questions[at], tally[:, at]
            if repeat:  # before the first answer the tally is all 0
                before = vote_counts(before)
            said = block.answer(rows, question, np.full(len(rows), repeat), before)
            value, skill = said.value.astype(np.int64), said.skill
            there = value != MISSING
            if not there.all():  # a missing answer ends the vote
                at, before, value = rows[there], before[:, there], value[there]
                skill = None if skill is None else skill[there]
            if skill is not None or policy.model.shared_difficulty:
                log_posterior[at] += policy.model.evidence(questions[at], value, skill, before)
                at_once = False
            cast(tally, _slots(value, len(tally)), repeat, item[at])
        counts = vote_counts(tally)
        if at_once:
            alike[:, q] = counts[: len(alike)]
        verdict[:, q] = leaders(tally[:-1])
        given = counts.sum(axis=0)
        np.add(found.answers, given, out=found.answers, casting="same_kind")
        found.asked[q] = int(given.sum())
    for votes, logs in zip(alike, _finite_logs(policy.model), strict=True):
        log_posterior += product(votes.T, logs)
    found.reason[:] = REASONS.index("questions")
    if policy.decoder == "nearest":
        found.label[:] = nearest_codeword(problem, verdict, prior)
    else:
        log_prior = policy.log_prior_of(prior)
        stated = policy.stated(normalised(log_posterior), found.answers, log_prior)
        best = decide(stated, problem.loss)
        found.label[:] = best.label
        found.reason[best.referred] = REASONS.index("referred")
    _state(policy, log_posterior, found, prior)
    return found


def _state(
    policy: PlanPolicy | BatchPolicy,
    log_posterior: FloatArray,
    found: BlockRun,
    prior: FloatArray | None,
) -> None:
    """State the error and the expected loss of each label."""
    log_prior = policy.log_prior_of(prior)
    posterior = np.exp(policy.stated(normalised(log_posterior), found.answers, log_prior))
    found.posterior_error[:] = label_errors(posterior, found.label)
    loss = policy.problem.loss
    if loss is None:
        found.stated_loss[:] = found.posterior_error
    else:
        referred = found.reason == REASONS.index("referred")
        found.stated_loss[:] = loss.risk_of(posterior, found.label, referred)


def _run_adaptive(policy: AdaptivePolicy, block: Block) -> BlockRun:
    return _Adaptive(policy, block).run()


BULK: Mapping[str, Callable[[Any, Block], BlockRun]] = {
    "adaptive": _run_adaptive,
    "tree": _run_plan,
    "batch": _run_batch,
}
