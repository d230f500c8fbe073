"""Many items on their way down the tree of a plan at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crowdtree.core.likelihood import AnswerModel
from crowdtree.core.tally import cast, vote_counts
from crowdtree.policies.base import FloatArray, normalised
from crowdtree.policies.walk import MISSING, REASONS, Answers, Items, Round, Source, answer_slots

if TYPE_CHECKING:
    from crowdtree.policies.plan import PlanPolicy

__all__ = ["PlanItems", "finite_logs"]


class PlanItems(Items):
    """All items go down the tree together, one answer each per round."""

    def __init__(self, policy: PlanPolicy, source: Source, items: int) -> None:
        super().__init__(source, items, policy.problem.n_questions)
        self.policy, tree = policy, policy.plan.tree
        self.prior = policy.own_prior(source.prior)
        self.log_posterior = policy.first_log_posterior(self.prior, items)
        self.node, self.given = (np.zeros(items, dtype=np.int64) for _ in range(2))
        """Node of each open item, and its votes there."""
        self.tally = np.zeros((policy.model.slots, items), dtype=np.int64)
        self._none = np.zeros((policy.model.slots, 1), dtype=np.int64)
        self._logs = finite_logs(policy.model)
        self._children = tree.children.astype(np.int64)
        self._questions = tree.question.astype(np.int64)
        self._reason = np.full(tree.n_leaves, REASONS.index("leaf"), dtype=np.int8)
        self._reason[list(policy.voted.handed_over)] = REASONS.index(policy.handing_over)

    def ask(self) -> Round | None:
        """Ask the question of each item's node."""
        if len(self.item):
            question = self._questions[self.node]
            return Round(self.item, question, self.given, lambda: vote_counts(self.tally))
        policy, labels = self.policy, self.labels
        log_prior = policy.log_prior_of(self.prior)
        stated = policy.stated(normalised(self.log_posterior), labels.answers, log_prior)
        labels.state_errors(np.exp(stated), policy.problem.loss)
        return None

    def update(self, asked: Round, answers: Answers) -> None:
        """Count the votes, and move the items on whose votes are over."""
        policy, labels, item, tally = self.policy, self.labels, self.item, self.tally
        question, there = asked.option, answers.value != MISSING
        labels.asked[:] += np.bincount(question[there], minlength=len(labels.asked))
        labels.answers[item] += there
        value = answers.value.astype(np.int64)
        # evidence of people who are all alike is added when the vote is over
        at_once = answers.skill is None and not policy.model.shared_difficulty
        if not at_once:
            before = asked.before() if policy.model.depends else self._none
            evidence = policy.model.evidence(question, value, answers.skill, before)
            self.log_posterior[item] += np.where(there[:, None], evidence, 0.0)
        slot = answer_slots(value, len(tally))
        if there.all():
            cast(tally, slot, self.given)
        else:
            cast(tally, slot[there], self.given[there], np.flatnonzero(there))
        self.given = given = self.given + there
        node, verdict = self.node, policy.verdicts(self.node, labels.answers[item], given, tally)
        if not there.all():
            gone = np.flatnonzero(~there)
            left = self.log_posterior[item[gone]]
            left += self._evidence(gone, question) if at_once else 0.0
            verdict[gone] = policy.passed_over(left, node[gone], tally[:, gone])
        over = np.flatnonzero(verdict >= 0)
        if at_once:
            self.log_posterior[item[over]] += self._evidence(over, question)
        node[over] = self._children[node[over], verdict[over]]
        tally[:, over] = given[over] = 0
        leaf = node < 0
        if leaf.any():
            labels.label[item[leaf]] = policy.voted.leaf_label[~node[leaf]]
            labels.reason[item[leaf]] = self._reason[~node[leaf]]
            stay = np.flatnonzero(~leaf)
            self.item, self.node, self.given = item[stay], node[stay], given[stay]
            self.tally = tally.take(stay, axis=1)

    def _evidence(self, rows: NDArray[np.intp], question: NDArray[np.int64]) -> FloatArray:
        """Evidence of the votes at the nodes of some open items."""
        votes, asked = vote_counts(self.tally[: len(self._logs)].take(rows, axis=1)), question[rows]
        tables = zip(votes, self._logs, strict=True)
        return np.asarray(sum(count[:, None] * table[asked] for count, table in tables))


def finite_logs(model: AnswerModel) -> FloatArray:
    """Logarithms of the answers that are evidence, 0 for answers that a question does not have."""
    logs = model.logs[: len(model.answers)]
    return np.where(np.isfinite(logs), logs, 0.0)
