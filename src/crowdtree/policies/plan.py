"""The tree with its votes as a policy, with early stopping (docs/model.md, section 6)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdtree.core.calibration import INDEPENDENT, Calibration
from crowdtree.core.checking import check_call
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.evaluation import Evaluation, evaluate
from crowdtree.core.fixed_plan import Plan, as_plan
from crowdtree.core.likelihood import AnswerModel
from crowdtree.core.outcomes import DASH
from crowdtree.core.problem import Problem
from crowdtree.core.tree import NO_BRANCH, Tree
from crowdtree.core.votes import (
    VOTES,
    Standing,
    Stopping,
    Tally,
    Vote,
    VoteRule,
    cast,
    leaders,
    standing,
    standings,
    vote_counts,
)
from crowdtree.policies.base import (
    Answer,
    Ask,
    FloatArray,
    Label,
    check_answer,
    decide,
    label_error,
    normalised,
)
from crowdtree.policies.calibrating import Calibrated, check_calibration
from crowdtree.policies.item_prior import dump_prior, load_prior
from crowdtree.policies.walk import (
    MISSING,
    REASONS,
    Answers,
    Items,
    Round,
    Source,
    answer_slots,
    finite_logs,
)

__all__ = ["PlanPolicy", "PlanState", "expected_answers", "with_votes_by"]


@dataclass(frozen=True, eq=False)
class PlanState:
    """Where an item stands in the tree: the node, and the votes there so far.

    `node` is an inner node, or ``~leaf`` at the end; `counts` are the votes for each answer, the
    last for "can't tell"; `order` are the answers in the order in which each was first given.
    """

    node: int
    counts: tuple[int, ...]
    order: tuple[int, ...]
    answers: int
    log_posterior: FloatArray
    prior: FloatArray | None = None
    """Prior of the item, where it has its own: it changes what is stated, and the path only
    where an answer cannot be had."""


@dataclass(frozen=True, eq=False)
class PlanPolicy(Calibrated):
    """Ask the tree's questions with the plan's votes.

    Every answer counts alike, as in the paper; only the stated posterior error uses the skill of
    the worker.

    Parameters
    ----------
    plan
        The plan, or a tree, which is the plan of one worker per node.
    stopping
        ``"none"``: all votes of a node are collected; ``"curtailed"``: a vote ends once its
        verdict is certain (same verdicts, fewer answers); ``"margin"``: a vote ends when one
        side leads by a margin. For a majority plan the margin of each node is the smallest whose
        error is no worse for any class on its way. A plan made with ``vote="margin"`` always
        votes by its margins.
    calibration
        How far the evidence is discounted before an error is stated (see :meth:`calibrate`).

    Examples
    --------
    >>> import crowdtree as ct
    >>> plan = ct.staff(ct.design(ct.example("table1")), workers=8)
    >>> policy = PlanPolicy(plan, "curtailed")
    >>> state = policy.start()
    >>> policy.ask(state)
    Ask(questions=(0, 0, 0))
    >>> for _ in range(3):
    ...     state = policy.update(state, Answer(question=0, value=1))
    >>> policy.ask(state).label, policy.ask(state).reason
    (3, 'leaf')
    """

    plan: Plan = field()
    stopping: Stopping = "none"
    calibration: Calibration = INDEPENDENT
    kind = "tree"
    has_alternatives = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", as_plan(self.plan))
        check_call(PlanPolicy, vars(self))
        check_calibration(self.problem, self.calibration)
        if self.stopping == "curtailed" and self.plan.rule.curtailed is None:
            raise CrowdtreeError(
                f'stopping: a plan of {self.plan.vote} votes cannot be "curtailed"; it stops by '
                "itself"
            )

    @property
    def problem(self) -> Problem:  # type: ignore[override]
        """The problem of the plan's tree."""
        return self.plan.tree.problem

    @cached_property
    def voted(self) -> Plan:
        """The plan as it is voted: by another rule where that is the stopping."""
        other = VOTES.get(self.stopping)
        if other is None or not self.plan.rule.always_all:
            return self.plan
        return with_votes_by(self.plan, other.name)

    @cached_property
    def rule(self) -> VoteRule:
        """The rule by which votes end."""
        rule = self.voted.rule
        return rule.curtailed or rule if self.stopping == "curtailed" else rule

    @cached_property
    def model(self) -> AnswerModel:
        """Likelihood of the answers, for the posterior error of a label."""
        return AnswerModel.of(self.problem)

    def many(self, source: Source, items: int) -> PlanItems | None:
        """Many items at once, if no path asks a question twice.

        Answers that are out (:meth:`_is_out`) are followed item by item.
        """
        if type(self) is not PlanPolicy or not self._has_plain_votes:
            return None
        return PlanItems(self, source, items)

    @cached_property
    def _has_plain_votes(self) -> bool:
        """Whether no path asks a question twice, and votes leave no answer out."""
        votes = not self.rule.leaves_out or self.problem.is_yes_no
        return votes and not _repeats_on_a_path(self.plan.tree)

    def questions_used(self) -> tuple[int, ...]:
        """Questions of the tree, from its root on."""
        return tuple(dict.fromkeys(self._questions))

    def evaluated(self) -> tuple[Evaluation, float]:
        """Exact evaluation and expected answers per item, wrong turns included."""
        voted = self.voted
        value = evaluate(voted)
        if self.rule is voted.rule:
            return value, value.expected_answers
        early = _Curtailed(voted.tree, voted.votes, voted.vote, voted.method, voted.pool)
        return value, evaluate(early).expected_answers

    @cached_property
    def most_answers(self) -> int:
        """Votes on the longest path through the tree.

        A vote by margin has no largest number. It counts as long as it lasts on average when both
        answers are equally likely, the square of its margin.

        >>> import crowdtree as ct
        >>> plan = ct.staff(ct.design(ct.example("table1")), workers=8)
        >>> PlanPolicy(plan).most_answers, PlanPolicy(plan, "margin").most_answers
        (12, 18)
        """
        return self.plan.tree.longest_path(self.rule.most(self.voted.votes))

    def start(self, prior: ArrayLike | None = None) -> PlanState:
        """State of an item at the root; `prior` in place of the problem's prior."""
        own = self.own_prior(prior)
        if own is None:
            return self._root
        return replace(self._root, log_posterior=normalised(np.log(own)), prior=own)

    @cached_property
    def _root(self) -> PlanState:
        return PlanState(0, self._none, (), 0, normalised(np.log(self.problem.prior)))

    @cached_property
    def _none(self) -> tuple[int, ...]:
        return (0,) * self.model.slots

    def wants(self, state: PlanState, question: int) -> bool:
        """Whether this is the question of the node where the item stands."""
        return state.node >= 0 and self._questions[state.node] == question

    def update(self, state: PlanState, answer: Answer) -> PlanState:
        """Count a vote, and continue at the next node once the majority is decided."""
        check_answer(self.problem, answer)
        if not self.wants(state, answer.question):
            return state
        evidence = answer.weight * self.model.log_likelihood(
            answer.question, answer.value, answer.skill, np.array(state.counts)
        )
        slot = self.model.slot(answer.value)
        counts = list(state.counts)
        if self._is_out(state, slot):
            slot = self.model.slots - 1
        counts[slot] += 1
        new = answer.value >= 0 and answer.value not in state.order
        state = PlanState(
            node=state.node,
            counts=tuple(counts),
            order=(*state.order, answer.value) if new else state.order,
            answers=state.answers + 1,
            log_posterior=normalised(state.log_posterior + evidence),
            prior=state.prior,
        )
        verdict = self.verdict(state)
        return state if verdict < 0 else self._decided(state, verdict)

    def _decided(self, state: PlanState, verdict: int) -> PlanState:
        node = int(self.plan.tree.children[state.node, verdict])
        return replace(state, node=node, counts=self._none, order=())

    def node(self, state: PlanState) -> int:
        """Node where the item stands, ``~leaf`` at the end."""
        return state.node

    def pass_over(self, state: PlanState) -> PlanState:
        """Go on where no answer can be had: by the votes so far, else by the likeliest answer."""
        verdict = self._standing(state).leader
        if verdict < 0:
            verdict = int(self._likeliest(state.log_posterior[None], np.array([state.node]))[0])
        return self._decided(state, verdict)

    def passed_over(
        self, log_posterior: FloatArray, node: NDArray[Any], tally: Tally
    ) -> NDArray[np.int64]:
        """Verdicts of votes that end because no more answers can be had, one row per item."""
        leader = leaders(self._counted(tally, node))
        return np.where(leader < 0, self._likeliest(log_posterior, node), leader)

    def _likeliest(self, log_posterior: FloatArray, node: NDArray[Any]) -> NDArray[np.int64]:
        """Answer of each item's node that is likeliest by its posterior, one row per item."""
        posterior = np.exp(normalised(log_posterior))
        tables = self.model.answers[1 : self._branches.shape[1]]
        chance = [
            (posterior * table[self.plan.tree.question[node]]).sum(axis=1) for table in tables
        ]
        every = np.stack([1 - np.sum(chance, axis=0), *chance])
        return np.asarray(np.where(self._branches[node].T, every, -1.0).argmax(axis=0))

    def verdict(self, state: PlanState) -> int:
        """Verdict of the node, an answer, or -1 while the vote is open.

        A vote that would end at a leaf with fewer than `least_answers` answers goes on, beyond its
        number of votes until one side leads.
        """
        found = self._majority(state)
        if found >= 0 and state.answers < self.least_answers:
            return -1 if self.plan.tree.children[state.node, found] < 0 else found
        return found

    def _majority(self, state: PlanState) -> int:
        """Verdict of the votes at the node, however few answers the item has."""
        now, given = self._standing(state), sum(state.counts)
        if not self.rule.is_over(self._votes[state.node], given, now):
            return -1
        return self.plan.tree.usual_answer[state.node] if now.leader < 0 else int(now.leader)

    def _standing(self, state: PlanState) -> Standing:
        if self._all_count:
            return standing(state.counts, state.order)
        branches = self._branches[state.node]
        return standing(state.counts, [answer for answer in state.order if branches[answer]])

    def verdicts(
        self,
        node: NDArray[np.int64],
        answers: NDArray[np.integer[Any]],
        given: NDArray[np.int64],
        tally: Tally,
    ) -> NDArray[np.int64]:
        """Verdict of each of many items, -1 while its vote is open: the rule of :meth:`verdict`.

        `given` are the votes at the node, those that count for no answer included.
        """
        found, votes = np.full(len(node), -1), self.voted.votes[node]
        may = np.flatnonzero(given >= self._least[node])
        node, now = node[may], standings(self._counted(tally.take(may, axis=1), node[may]))
        over = self.rule.is_over(votes[may], given[may], now)
        if (nobody := over & (now.leader < 0)).any():
            usual = np.array(self.plan.tree.usual_answer)[node]
            now = now._replace(leader=np.where(nobody, usual, now.leader))
        if self.least_answers > 1:
            enough = answers[may] >= self.least_answers
            over &= enough | (self.plan.tree.children[node, now.leader] >= 0)
        found[may] = np.where(over, now.leader, -1)
        return found

    def _counted(self, tally: Tally, node: NDArray[Any]) -> Tally:
        """Votes for answers that have a branch at the node of each item."""
        heard = tally[: self._branches.shape[1]]
        return heard if self._all_count else np.where(self._branches[node].T, heard, 0)

    @cached_property
    def _branches(self) -> NDArray[np.bool_]:
        """Answers of each node that have a branch."""
        return np.asarray(self.plan.tree.children != NO_BRANCH)

    @cached_property
    def _all_count(self) -> bool:
        return bool(self._branches.all())

    @cached_property
    def _questions(self) -> list[int]:
        """Question of each node, as numbers of Python, which are faster one at a time."""
        return [int(question) for question in self.plan.tree.question]

    @cached_property
    def _votes(self) -> list[int]:
        """Votes of each node."""
        return [int(votes) for votes in self.voted.votes]

    @cached_property
    def _least(self) -> NDArray[np.int64]:
        """Votes before which no vote of a node is over."""
        none = standing((), ())
        return np.array([self.rule.sure_votes(votes, 0, none) for votes in self._votes])

    def ask(
        self, state: PlanState, outstanding: Sequence[int] = (), exclude: Collection[int] = ()
    ) -> Ask | Label:
        """Hand out the votes that the node is sure to need, or label the item at a leaf."""
        if state.node < 0:
            return self.conclude(state, "leaf")
        question = self._questions[state.node]
        if question in exclude:
            return Ask(())
        votes, given = self._votes[state.node], sum(state.counts)
        sure = self.rule.sure_votes(votes, given, self._standing(state))
        return Ask((question,) * max(0, max(1, sure) - outstanding.count(question)))

    def _is_out(self, state: PlanState, slot: int) -> bool:
        """Whether an answer is out, so that more votes for it do not count.

        With two answers the vote is over then; one that goes on for `least_answers` counts all.
        """
        if not self.rule.leaves_out:
            return False
        now, votes = self._standing(state), self._votes[state.node]
        if now.leader < 0:
            return False
        return bool(now.lead < votes <= state.counts[now.leader] - state.counts[slot])

    def conclude(self, state: PlanState, reason: str) -> Label:
        """Give the plan's label at a leaf, else the best label on present evidence."""
        stated = self.stated_of(state)
        if state.node < 0:
            label = int(self.voted.leaf_label[~state.node])
            if reason == "leaf" and ~state.node in self.voted.handed_over:
                reason = self.handing_over
            return Label(label, label_error(stated, label), reason)
        return decide(stated[None], self.problem.loss).as_label(reason)

    @property
    def handing_over(self) -> str:
        """Reason of the labels at leaves whose items are handed over."""
        loss = self.problem.loss
        return "undecided" if loss is None or loss.refer is None else "referred"

    def dump(self, state: PlanState) -> dict[str, Any]:
        """Write a state as plain JSON."""
        return {
            "node": state.node,
            "counts": list(state.counts),
            "order": list(state.order),
            "answers": state.answers,
            "log_posterior": state.log_posterior.tolist(),
            **dump_prior(state.prior),
        }

    def load(self, data: dict[str, Any]) -> PlanState:
        """Read a state back."""
        counts, order = tuple(data["counts"]), tuple(data["order"])
        posterior = np.array(data["log_posterior"])
        return PlanState(data["node"], counts, order, data["answers"], posterior, load_prior(data))

    def to_dict(self) -> dict[str, Any]:
        """Write the policy as plain JSON."""
        form = {"policy": "plan", "stopping": self.stopping}
        return {**form, **self.plan.to_dict(), **self.discounting}

    @classmethod
    def from_dict(cls, problem: Problem, data: dict[str, Any]) -> PlanPolicy:
        """Read what :meth:`to_dict` wrote."""
        calibration = Calibration.from_dict(data.get("calibration"))
        return cls(Plan.from_dict(problem, data), data["stopping"], calibration)

    def __repr__(self) -> str:
        return f"PlanPolicy({self.plan!r}, stopping={self.stopping!r})"


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


def _repeats_on_a_path(tree: Tree) -> bool:
    """Whether some path through the tree asks a question twice, which no designer does."""
    above: list[frozenset[int]] = [frozenset()] * tree.n_nodes
    for node, question in enumerate(tree.question.tolist()):
        if question in above[node]:
            return True
        for child in tree.children[node].tolist():
            if child >= 0:
                above[child] = above[node] | {question}
    return False


def with_votes_by(plan: Plan, vote: Vote) -> Plan:
    """Turn a plan into votes by another rule that err no more at any node, for any class there.

    >>> import crowdtree as ct
    >>> plan = ct.staff(ct.design(ct.example("table1")), workers=20)
    >>> plan.votes.tolist(), with_votes_by(plan, "margin").votes.tolist()
    ([7, 7, 5, 5], [3, 3, 3, 3])
    """
    tree = plan.tree
    votes = np.ones(tree.n_nodes, dtype=np.int64)
    for step in tree.steps:
        definite = step.answer != DASH
        node, cls = step.node[definite], step.cls[definite]
        np.maximum.at(votes, node, _votes_by(VOTES[vote], plan, node, cls))
    return replace(plan, votes=votes, vote=vote)


def _votes_by(rule: VoteRule, plan: Plan, node: NDArray[Any], cls: NDArray[Any]) -> Any:
    """Fewest votes by a rule whose error is at most that of the plan, for each (node, class)."""
    problem, fused = plan.tree.problem, plan.error_at(node, cls)
    error, several = problem.worker_error[plan.tree.question[node], cls], not problem.is_yes_no
    found = None if several else rule.votes_for(error, fused, problem.dependence)
    if found is not None:
        return found
    open_ = np.flatnonzero((error < 0.5) | several)  # no formula: try one after the other
    votes = np.ones(node.shape, dtype=np.int64)
    for tried in range(1, rule.max_several if several else rule.max_votes):
        if not len(open_):
            break
        every = np.full(plan.tree.n_nodes, tried)
        voted = replace(plan, votes=every, vote=rule.name, pool="node")
        worse = voted.error_at(node[open_], cls[open_]) > fused[open_] * (1 + 1e-9)
        open_ = open_[worse]
        votes[open_] += 1
    return votes


class _Curtailed(Plan):
    """A plan whose votes stop when they are decided: its errors, fewer answers."""

    @property
    def rule(self) -> VoteRule:
        return super().rule.curtailed or super().rule


def expected_answers(plan: Plan | Tree, stopping: Stopping = "none") -> float:
    """Exact expected answers per item of a plan with early stopping, wrong turns included.

    >>> import crowdtree as ct
    >>> plan = ct.staff(ct.design(ct.example("table1")), workers=20)
    >>> [round(expected_answers(plan, how), 3) for how in ("none", "curtailed", "margin")]
    [11.3, 6.841, 5.666]
    """
    return PlanPolicy(as_plan(plan), stopping).evaluated()[1]
