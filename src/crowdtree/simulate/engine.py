"""Run a policy over a block of items: vectorised, and step by step for any policy.

Both give the same labels for the same answers; ``tests/test_simulate.py`` holds them to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.policy import AdaptivePolicy, Answer, BatchPolicy, Label, PlanPolicy, Policy
from crowdtree.policy.base import normalised
from crowdtree.policy.batch import nearest_codeword
from crowdtree.simulate.crowd import Answers, Block, CrowdBlock

__all__ = ["REASONS", "BlockRun", "run_block", "run_steps"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
REASONS = ("target", "budget", "questions", "leaf", "skipped")
CHUNK = 2048
"""Rows of posteriors scored at once: the scores of a chunk stay in the processor's cache."""
COMPILE_FROM = 5000
"""Items from which a plan is worth the time to load (or once compile) its kernel."""


class BlockRun(NamedTuple):
    """What came out for the items of a block."""

    truth: IntArray
    label: IntArray
    answers: NDArray[np.int32]
    posterior_error: FloatArray
    reason: NDArray[np.int8]
    asked: IntArray
    """Answers to each question, over all items."""


def run_block(policy: Policy[Any], block: Block) -> BlockRun:
    """Run a policy over a block, vectorised where the policy is one that can be."""
    if type(policy) is AdaptivePolicy and policy.width == 1:
        return _Adaptive(policy, block).run()
    if type(policy) is PlanPolicy and not _repeats_on_a_path(policy):
        if isinstance(block, CrowdBlock) and block.plain and len(block.truth) >= COMPILE_FROM:
            return _run_plan_compiled(policy, block)
        return _run_plan(policy, block)
    if type(policy) is BatchPolicy:
        return _run_batch(policy, block)
    return run_steps(policy, block)


def run_steps(policy: Policy[Any], block: Block) -> BlockRun:
    """Run any policy item by item through its own steps, as a live campaign would.

    Questions that are handed out together come back in the order in which they went out.
    """
    n = len(block.truth)
    found = _blank(block, policy.problem.n_questions)
    one = np.ones(1, dtype=np.int64)
    for row in range(n):
        state, out = policy.start(), []  # type: ignore[var-annotated]
        counts = np.zeros((2, policy.problem.n_questions), dtype=np.int64)
        handed = np.zeros(policy.problem.n_questions, dtype=np.int64)
        while True:
            step = policy.ask(state, [q for q, _ in out])
            if isinstance(step, Label):
                break
            for q in step.questions:
                out.append((q, int(handed[q])))
                handed[q] += 1
            q, repeat = out.pop(0)
            said = block.answer(row * one, q * one, repeat * one, counts[1, q] * one)
            value = int(said.value[0])
            counts[value, q] += 1
            skill = 0.0 if said.skill is None else float(said.skill[0])
            state = policy.update(state, Answer(q, value, skill))
        found.label[row] = step.label
        found.posterior_error[row] = step.posterior_error
        found.reason[row] = REASONS.index(step.reason)
        found.answers[row] = counts.sum()
        found.asked[:] += counts.sum(axis=0)
    return found


def _blank(block: Block, questions: int) -> BlockRun:
    n = len(block.truth)
    return BlockRun(
        truth=block.truth,
        label=np.full(n, -1, dtype=np.int64),
        answers=np.zeros(n, dtype=np.int32),
        posterior_error=np.zeros(n),
        reason=np.zeros(n, dtype=np.int8),
        asked=np.zeros(questions, dtype=np.int64),
    )


class _Adaptive:
    """The adaptive policy for all items of a block at once.

    Items that have heard the same answers share one row of the tables until an answer parts
    them, so the first dozen steps cost next to nothing.
    """

    def __init__(self, policy: AdaptivePolicy, block: Block) -> None:
        self.policy, self.block = policy, block
        self.found = _blank(block, policy.problem.n_questions)
        self.item = np.arange(len(block.truth))
        self.state = np.zeros(len(block.truth), dtype=np.int64)
        self.log_posterior = normalised(np.log(policy.problem.prior))[None, :]
        self.yes = np.zeros((1, policy.problem.n_questions), dtype=np.int16)
        self.no = self.yes.copy()

    def run(self) -> BlockRun:
        """Ask, answer, update, until every item has its label."""
        for step in range(self.policy.max_answers + 1):
            question = self._settle(step)
            if not len(self.item):
                break
            here = question[self.state]
            y, n = self.yes[self.state, here], self.no[self.state, here]
            said = self.block.answer(self.item, here, y + n, y)
            self.found.asked[:] += np.bincount(here, minlength=len(self.found.asked))
            self._update(question, said)
        return self.found

    def _settle(self, step: int) -> IntArray:
        """Label what is sure enough or cannot go on; return the next question of every state."""
        posterior = np.exp(self.log_posterior)
        top = self.log_posterior.max(axis=1, keepdims=True)
        label = np.argmax(self.log_posterior >= top - 1e-9, axis=1)
        rest = posterior.copy()
        rest[np.arange(len(rest)), label] = 0.0
        error = np.minimum(1.0, rest.sum(axis=1))
        reason = np.where(self.policy.sure(error), 0, -1)
        left = self.policy.max_answers - step
        if left <= 0:
            reason = np.where(reason < 0, 1, reason)
        question = np.full(len(label), -1, dtype=np.int64)
        go_on = np.flatnonzero(reason < 0)
        for start in range(0, len(go_on), CHUNK):
            rows = go_on[start : start + CHUNK]
            yes, no = (self.yes[rows], self.no[rows]) if self.policy.counts_matter else (None, None)
            question[rows] = self.policy.choose(posterior[rows], yes, no, left)
        reason = np.where((reason < 0) & (question < 0), 2, reason)
        done = reason[self.state] >= 0
        rows, state = self.item[done], self.state[done]
        self.found.label[rows] = label[state]
        self.found.posterior_error[rows] = error[state]
        self.found.reason[rows] = reason[state]
        self.found.answers[rows] = step
        self.item, self.state = self.item[~done], self.state[~done]
        return question

    def _update(self, question: IntArray, said: Answers) -> None:
        """Part the items by their answers and update the posterior of every state that is left."""
        model = self.policy.model
        if said.skill is None:
            key = 2 * self.state + said.value
            used = np.flatnonzero(np.bincount(key, minlength=2 * len(question)))
            place = np.zeros(2 * len(question), dtype=np.int64)
            place[used] = np.arange(len(used))
            parent, value, self.state = used // 2, used % 2, place[key]
        else:  # different people: every item goes its own way
            parent, value = self.state, said.value.astype(np.int64)
            self.state = np.arange(len(parent))
        asked = question[parent]
        rows = np.arange(len(parent))
        self.yes, self.no = self.yes[parent], self.no[parent]
        if said.skill is None and not model.shared_difficulty:
            evidence = model.logs[value, asked]
        else:
            evidence = self._evidence(asked, value, said.skill)
        self.log_posterior = normalised(self.log_posterior[parent] + evidence)
        self.yes[rows, asked] += (value == 1).astype(np.int16)
        self.no[rows, asked] += (value == 0).astype(np.int16)

    def _evidence(self, asked: IntArray, value: IntArray, skill: FloatArray | None) -> FloatArray:
        from crowdtree.likelihood import skilled, urn

        model, rows = self.policy.model, np.arange(len(asked))
        share = model.yes[asked]
        if skill is not None:
            share = skilled(share, model.sign[asked], skill[:, None])
        y = self.yes[rows, asked][:, None]
        n = y + self.no[rows, asked][:, None]
        share = urn(share, model.shared_difficulty, y, n)
        return np.where(value[:, None] == 1, np.log(share), np.log1p(-share))


def _repeats_on_a_path(policy: PlanPolicy) -> bool:
    """Whether some way through the tree asks a question twice, which no designer does."""
    tree = policy.plan.tree
    above: list[frozenset[int]] = [frozenset()] * tree.n_nodes
    for node, question in enumerate(tree.question.tolist()):
        if question in above[node]:
            return True
        for child in tree.children[node].tolist():
            if child >= 0:
                above[child] = above[node] | {question}
    return False


def _run_plan(policy: PlanPolicy, block: Block) -> BlockRun:
    """All items go down the tree together, one answer each a round."""
    found = _blank(block, policy.problem.n_questions)
    tree, votes = policy.plan.tree, policy.voted.votes
    logs = policy.model.logs
    n = len(block.truth)
    log_posterior = np.tile(np.log(policy.problem.prior), (n, 1))
    item, node = np.arange(n), np.zeros(n, dtype=np.int64)
    yes, no, first = (np.zeros(n, dtype=np.int64) for _ in range(3))
    children, questions = tree.children.astype(np.int64), tree.question.astype(np.int64)
    while len(item):
        question = questions[node]
        said = block.answer(item, question, yes + no, yes)
        found.asked[:] += np.bincount(question, minlength=len(found.asked))
        found.answers[item] += 1
        value = said.value.astype(np.int64)
        if said.skill is not None:
            log_posterior[item] += _skilled_logs(policy, question, value, said.skill)
        first = np.where(yes + no == 0, value, first)
        yes, no = yes + value, no + 1 - value
        verdict = _verdicts(policy, votes[node], yes, no, first)
        over = verdict >= 0
        if said.skill is None:
            rows, q = item[over], question[over]
            log_posterior[rows] += yes[over, None] * logs[1, q] + no[over, None] * logs[0, q]
        node = np.where(over, children[node, np.maximum(verdict, 0)], node)
        yes, no = np.where(over, 0, yes), np.where(over, 0, no)
        leaf = node < 0
        if leaf.any():
            found.label[item[leaf]] = tree.leaf_label[~node[leaf]]
            stay = ~leaf
            item, node, yes, no, first = item[stay], node[stay], yes[stay], no[stay], first[stay]
    found.reason[:] = REASONS.index("leaf")
    found.posterior_error[:] = _errors(log_posterior, found.label)
    return found


def _run_plan_compiled(policy: PlanPolicy, block: CrowdBlock) -> BlockRun:
    """Walk item by item in compiled code, for crowds whose people are all alike."""
    from crowdtree.simulate import kernels

    tree = policy.plan.tree
    how = kernels.MARGIN if policy.voted.vote == "margin" else kernels.FULL
    if policy.stopping == "curtailed":
        how = kernels.CURTAILED
    walked = kernels.walk_plan(
        block.stream,
        block.truth,
        block.model.yes,
        block.crowd.shared_difficulty,
        (tree.question.astype(np.int64), tree.children.astype(np.int64), policy.voted.votes),
        how,
        policy.model.logs,
        np.log(policy.problem.prior),
        tree.leaf_label.astype(np.int64),
    )
    reason = np.full(len(block.truth), REASONS.index("leaf"), dtype=np.int8)
    return BlockRun(block.truth, walked.label, walked.answers, walked.error, reason, walked.asked)


def _skilled_logs(
    policy: PlanPolicy | BatchPolicy, question: IntArray, value: IntArray, skill: FloatArray
) -> FloatArray:
    from crowdtree.likelihood import skilled

    share = skilled(policy.model.yes[question], policy.model.sign[question], skill[:, None])
    return np.where(value[:, None] == 1, np.log(share), np.log1p(-share))


def _verdicts(
    policy: PlanPolicy, votes: IntArray, yes: IntArray, no: IntArray, first: IntArray
) -> IntArray:
    """Verdict of each vote, -1 while it is open: the rule of :meth:`PlanPolicy.verdict`."""
    if policy.voted.vote == "margin":
        return np.where(yes - no >= votes, 1, np.where(no - yes >= votes, 0, -1))
    need, tie = votes // 2 + 1, votes % 2 == 0
    win_yes = yes >= need - (tie & (first == 1))
    if policy.stopping == "none":
        return np.where(yes + no < votes, -1, win_yes)
    win_no = no >= need - (tie & (first == 0))
    return np.where(win_no, 0, np.where(win_yes, 1, -1))


def _run_batch(policy: BatchPolicy, block: Block) -> BlockRun:
    problem, n = policy.problem, len(block.truth)
    found = _blank(block, problem.n_questions)
    log_posterior = np.tile(np.log(problem.prior), (n, 1))
    verdict = np.zeros((n, problem.n_questions))
    item = np.arange(n)
    for q in range(problem.n_questions):
        question = np.full(n, q)
        yes, first = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        for repeat in range(policy.votes):
            said = block.answer(item, question, np.full(n, repeat), yes)
            value = said.value.astype(np.int64)
            first = value if repeat == 0 else first
            yes = yes + value
            if said.skill is not None:
                log_posterior += _skilled_logs(policy, question, value, said.skill)
            else:
                log_posterior += policy.model.logs[value, q]
        verdict[:, q] = np.where(2 * yes == policy.votes, first, 2 * yes > policy.votes)
    if policy.decoder == "nearest":
        found.label[:] = nearest_codeword(problem, verdict)
    else:
        top = log_posterior.max(axis=1, keepdims=True)
        found.label[:] = np.argmax(log_posterior >= top - 1e-9, axis=1)
    found.answers[:] = policy.votes * problem.n_questions
    found.asked[:] = policy.votes * n
    found.reason[:] = REASONS.index("questions")
    found.posterior_error[:] = _errors(log_posterior, found.label)
    return found


def _errors(log_posterior: FloatArray, label: IntArray) -> FloatArray:
    posterior = np.exp(normalised(log_posterior))
    posterior[np.arange(len(label)), label] = 0.0
    return np.asarray(np.minimum(1.0, posterior.sum(axis=1)))
