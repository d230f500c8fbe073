"""Updates of what was learned with new answers, in time proportional to their number.

Incremental EM (Neal and Hinton 1998): the answers of a touched item are taken out of the expected
counts with their old posterior and put back with the new one. The counts are then those that a
full pass would find at the same parameters; a refit differs only in the items that were not
touched, whose posteriors would have moved a little. To bound the cost of one new answer about an
item with very many answers, at most :data:`MOST_REVISITED` old answers are moved per new one.
Beyond that the posterior of the item is the prior of the new answers, and older answers keep their
mass.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdtree.errors import CrowdtreeError, CrowdtreeWarning, listing
from crowdtree.learning import learned_problem
from crowdtree.learning.answers import YES_NO, Answers, as_yes_no, read_answers, read_names
from crowdtree.learning.frames import Columns
from crowdtree.learning.skills import ClassFit
from crowdtree.learning.worker_tracker import SPREAD
from crowdtree.text import plural

if TYPE_CHECKING:
    from crowdtree.learning.label_models import FittedModel
    from crowdtree.learning.labels import CountRates, LabelFit
    from crowdtree.learning.model import Learned

__all__ = ["Current", "Online", "classify"]

FloatArray = NDArray[np.float64]
Row = tuple[int, int, int]  # question, worker, label

MOST_REVISITED = 50
"""Old answers that are looked at again for each new one, at most."""


class Current(NamedTuple):
    """Answers and items with all updates; `posterior` is that before the discount."""

    answers: Answers
    posterior: FloatArray
    gold: NDArray[np.int32]


class Online:
    """State of the updates of a :class:`Learned`; made at the first update."""

    def __init__(self, learned: Learned) -> None:
        self.learned = learned
        self.base = learned.answers
        self.task = dict(learned._task_index)
        self.posterior: dict[int, FloatArray] = {}
        self.rows: dict[int, list[Row]] = {}
        self.question = {name: i for i, name in enumerate(self.base.questions)}
        self.new_tasks: list[str] = []
        self.counts = np.ones(self.base.n_answers, bool)  # learned answers that were not replaced

    def item(self, task: Any) -> FloatArray:
        """Posterior of an item."""
        place = self.task.get(str(task))
        if place is None:
            raise CrowdtreeError(f"task {task!s} is unknown; it was never answered")
        return self._stated(place)

    def items(self) -> Iterator[tuple[str, FloatArray]]:
        """Items that updates touched, and their posteriors."""
        names = {place: name for name, place in self.task.items() if place in self.posterior}
        places, discount = list(self.posterior), self.learned.discount
        if not places:
            return
        made = plain = np.stack([self.posterior[place] for place in places])
        if discount is not None:
            made = discount.stated(plain, np.array([self._count(place) for place in places]))
        for place, before, after in zip(places, plain, made, strict=True):
            yield names[place], before if self._is_known(place) else after

    def _is_known(self, place: int) -> bool:
        return place < self.base.n_tasks and bool(self.learned.gold[place] >= 0)

    def _count(self, place: int) -> int:
        """Answers about an item."""
        return len(self.rows.get(place, [])) + len(self._base_places(place))

    def _stated(self, place: int) -> FloatArray:
        """Probabilities to state about an item: discounted because people err together."""
        if place not in self.posterior and place < self.base.n_tasks:
            return np.asarray(self.learned.stated_posterior[place])
        discount, plain = self.learned.discount, self._posterior(place)
        if discount is None or self._is_known(place):
            return plain
        return np.asarray(discount.stated(plain[None], np.array([self._count(place)]))[0])

    def _posterior(self, place: int) -> FloatArray:
        """Posterior of an item before the discount."""
        found = self.posterior.get(place)
        if found is not None:
            return found
        if place < self.base.n_tasks:
            return np.asarray(self.learned.fit.posterior[place])
        return np.zeros(self.learned.problem.n_classes)

    def update(self, source: Any) -> None:
        """Add new answers; what a worker answers again replaces the earlier answer."""
        # everything is read before anything changes: a refused update leaves no trace
        new = read_names(source, known=self.base.labels, questions=self.base.questions)
        for note in new.notes:
            warnings.warn(f"update: {note}", CrowdtreeWarning, stacklevel=3)
        tasks, workers, questions = new["task"], new["worker"], self._questions(new)
        labels = [self._label(name) for name in new["label"]]
        self._add_workers(workers)
        index, before = self.learned.worker_index, _count_rates(self.learned)
        touched: dict[int, list[Row]] = {}
        for task, question, worker, label in zip(tasks, questions, workers, labels, strict=True):
            touched.setdefault(self._place(task), []).append((question, index[worker], label))
        repeats = sum(self._absorb(place, rows) for place, rows in touched.items())
        self._refresh(before)
        if repeats:
            warnings.warn(
                f"update: {plural(repeats, 'answer')} given again by the same worker; the last one "
                "counts",
                CrowdtreeWarning,
                stacklevel=3,
            )

    def _place(self, name: str) -> int:
        place = self.task.get(name)
        if place is None:
            place = self.task[name] = self.base.n_tasks + len(self.new_tasks)
            self.new_tasks.append(name)
        return place

    def _questions(self, new: Columns) -> list[int]:
        if len(self.base.questions) == 1:
            return [0] * new.n_rows
        if "question" not in new:
            raise CrowdtreeError(
                f"answers: column question is missing, and {len(self.base.questions)} questions "
                f"were learned ({listing(self.base.questions)}); add it"
            )
        names = new["question"]
        unknown = next((name for name in names if name not in self.question), None)
        if unknown is not None:
            raise CrowdtreeError(
                f"answers: question {unknown!r} was not learned; known are "
                f"{listing(self.base.questions)}"
            )
        return [self.question[name] for name in names]

    def _add_workers(self, names: list[str]) -> None:
        """Add the workers who are new, once per update."""
        index = self.learned.worker_index
        new = [name for name in dict.fromkeys(names) if name not in index]
        if new:
            index.update({name: len(self.learned.fit.skill) + i for i, name in enumerate(new)})
            _add_workers(self.learned, new)

    def _label(self, name: str) -> int:
        if name in self.base.labels:
            return self.base.labels.index(name)
        if self.learned.kind == "classes" and name.lower() in YES_NO:
            return YES_NO[name.lower()]
        raise CrowdtreeError(
            f"answers: label {name!r} was not learned; known are {listing(self.base.labels)}"
        )

    def _old_rows(self, place: int, most: int) -> tuple[list[Row], bool]:
        """Answers of an item so far, the latest `most` of them, and whether these are all."""
        later = self.rows.get(place, [])
        rows = later[-most:]
        base = self._base_places(place)
        at = base[max(0, len(base) - (most - len(rows))) :]
        asked = np.zeros(len(at), int) if self.base.question is None else self.base.question[at]
        columns = asked.tolist(), self.base.worker[at].tolist(), self.base.label[at].tolist()
        rows = rows + list(zip(*columns, strict=True))
        return rows, len(rows) == len(later) + len(base)

    def _base_places(self, place: int) -> NDArray[np.int64]:
        """Places of the learned answers about an item that still count."""
        if place >= self.base.n_tasks:
            return np.zeros(0, np.int64)
        at = np.arange(self.base.start[place], self.base.start[place + 1])
        return at[self.counts[at]]

    def _taken_out(self, place: int, rows: list[Row]) -> list[Row]:
        """Take out the answers that these rows give again."""
        again = {row[:2] for row in rows}
        later = self.rows.get(place, [])
        out = [row for row in later if row[:2] in again]
        self.rows[place] = [row for row in later if row[:2] not in again]
        base = self._base_places(place)
        asked = np.zeros(len(base), int) if self.base.question is None else self.base.question[base]
        same = np.isin(self.base.worker[base], [worker for _, worker in again])
        for j, question in zip(base[same].tolist(), asked[same].tolist(), strict=True):
            row = question, int(self.base.worker[j]), int(self.base.label[j])
            if row[:2] in again:
                self.counts[j] = False
                out.append(row)
        return out

    def _absorb(self, place: int, rows: list[Row]) -> int:
        """Move one item to its new posterior, and the counts with it; count the repeats."""
        before, given, every = self._posterior(place), len(rows), self.learned.keep_repeats
        out: list[Row] = []
        if not every or self.learned.kind == "labels":
            out = self._taken_out(place, rows)
            rows = _one_each([*out, *rows] if every else rows, every)
        if out:  # the posterior holds them already: start again from all answers that count
            _shift_counts(self.learned, out, -self._counted(place, before))
        most = self.base.n_answers if out else MOST_REVISITED * len(rows)
        old_rows, all_ = self._old_rows(place, most)
        if place < self.base.n_tasks and self.learned.gold[place] >= 0:
            after = before
        elif all_:
            after = _posterior_of(self.learned, [*old_rows, *rows])
        else:
            after = _posterior_of(self.learned, rows, before)
        counted = self._counted(place, after)
        _shift_counts(self.learned, old_rows, counted - self._counted(place, before))
        _shift_counts(self.learned, rows, counted)
        self.posterior[place] = after
        self.rows.setdefault(place, []).extend(rows)
        return 0 if every else len(out) + given - len(rows)

    def _counted(self, place: int, posterior: FloatArray) -> FloatArray:
        """Probabilities by which the answers of an item count: of one question, the stated ones."""
        discount = self.learned.fitted_discount
        if self.learned.kind != "labels" or discount is None or not posterior.any():
            return posterior
        if self._is_known(place):
            return posterior
        return np.asarray(discount.stated(posterior[None], np.array([1]))[0])

    def current(self) -> Current:
        """All answers that count, those of updates included, and the items that they are about."""
        base, kept = self.base, self.counts
        new = [(place, *row) for place, rows in self.rows.items() for row in rows]
        place, question, worker, label = np.array(new, np.int64).reshape(-1, 4).T
        task = np.concatenate([base.task[kept], place])
        order = np.argsort(task, kind="stable")
        count = base.n_tasks + len(self.new_tasks)
        answers = replace(
            self.learned.answers,
            tasks=np.append(base.tasks.astype(object), self.new_tasks),
            start=np.concatenate([[0], np.cumsum(np.bincount(task, minlength=count))]),
            worker=np.append(base.worker[kept], worker)[order].astype(np.int32),
            label=np.append(base.label[kept], label)[order].astype(np.int8),
            question=None
            if base.question is None
            else np.append(base.question[kept], question)[order].astype(np.int32),
        )
        posterior = np.zeros((count, self.learned.problem.n_classes))
        posterior[: base.n_tasks] = self.learned.fit.posterior
        for touched, found in self.posterior.items():
            posterior[touched] = found
        gold = np.append(self.learned.gold, np.full(len(self.new_tasks), -1)).astype(np.int32)
        return Current(answers, posterior, gold)

    def _refresh(self, before: CountRates | None) -> None:
        """Drop what was computed from the old state."""
        computed = "accuracy", "expected_loss", "workers", "intervals", "flags"
        for name in (*computed, "_worker_columns", "_current"):
            self.learned.__dict__.pop(name, None)
        _write_back(self.learned, self, before)


def _one_each(rows: list[Row], every: bool) -> list[Row]:
    """One answer per question and worker: the last or, of `every` one, the most frequent."""
    said: dict[tuple[int, int], list[int]] = {}
    for question, worker, label in rows:
        said.setdefault((question, worker), []).append(label)
    return [
        (*key, max(reversed(given), key=given.count) if every else given[-1])
        for key, given in said.items()
    ]


def _posterior_of(
    learned: Learned, rows: list[Row], before: FloatArray | None = None
) -> FloatArray:
    """Posterior of one item from answers, each with its worker's own error.

    `before` is the prior of the classes; by default their learned shares.
    """
    prior = learned.problem.prior if before is None else before
    labelling = learned.labelling
    if labelling is not None and labelling.models:
        votes = np.bincount([label for *_, label in rows], minlength=len(prior)) / len(rows)
        if before is not None:  # `rows` are some of the answers: their shares say little
            votes = before
        parts = [
            model.item_posterior(_log_rows(labelling, model, rows), before)
            for model in labelling.models
        ]
        return np.asarray((votes + sum(parts)) / (1 + len(parts)))
    score = np.log(np.maximum(prior, 1e-300))
    if learned.kind == "labels":
        for _, worker, label in rows:
            score = score + np.log(_confusion(learned, worker)[label])
    elif rows:
        question, worker, label = np.array(rows).T
        skill = np.append(learned.fit.skill, 0.0)[worker]  # -1: somebody new, a typical worker
        score = score + _class_fit(learned).log_likelihood(question, skill, label).sum(axis=0)
    made = np.exp(score - score.max())
    return np.asarray(made / made.sum())


def _log_rows(labelling: LabelFit, model: FittedModel, rows: list[Row]) -> FloatArray:
    """Log P(answer | state), one row per answer; a new worker is a typical one."""
    known = len(labelling.row)
    return np.array(
        [
            model.table[labelling.row[worker], label]
            if 0 <= worker < known
            else model.typical[label]
            for _, worker, label in rows
        ]
    )


def _confusion(learned: Learned, worker: int) -> FloatArray:
    """P(label | class) of a worker (label, class), few answers filled up with the crowd's."""
    counts = learned.counts[worker] if worker >= 0 else 0.0
    held = counts + learned_problem.crowd_confusion(learned.counts)
    return np.asarray(held / held.sum(axis=0))


def _shift_counts(learned: Learned, rows: list[Row], mass: FloatArray) -> None:
    """Add answers to the statistics with some mass on each class (negative takes them out)."""
    if learned.kind == "labels":
        for _, worker, label in rows:
            learned.counts[worker, label] += mass
        return
    fit = learned.fit
    for question, worker, label in rows:
        slope, bend = _cell_counts(_class_fit(learned), question, worker, label, mass)
        precision = max(fit.skill_sd[worker] ** -2 + bend, 1e-6)
        fit.skill[worker] += float(np.clip(slope / precision, -1, 1))
        fit.skill_sd[worker] = precision**-0.5


def _cell_counts(
    fit: ClassFit, question: int, worker: int, label: int, mass: FloatArray
) -> tuple[float, float]:
    """Count the answer in the Beta posteriors of its cells; slope and curvature of the skill."""
    tilt, sign = fit.tilt[question], fit.sign[question]
    yes = 1 / (1 + np.exp(-fit.x[question] - tilt * fit.skill[worker]))
    slope, bend = mass * tilt * ((label == 1) - yes), mass * tilt**2 * yes * (1 - yes)
    before = fit.error[question]
    right = sign == (1 if label == 1 else -1)
    told = mass * (sign != 0)
    fit.wrong[question] = np.maximum(fit.wrong[question] + told * ~right, 1e-3)
    fit.right[question] = np.maximum(fit.right[question] + told * right, 1e-3)
    after = fit.error[question]
    move = np.log(after / (1 - after)) - np.log(before / (1 - before))
    fit.x[question] -= sign * move
    fit.cell[question] -= move
    return float(slope.sum()), float(bend.sum())


def _class_fit(learned: Learned) -> ClassFit:
    """The fit of yes/no questions, for the type checker."""
    fit = learned.fit
    if not isinstance(fit, ClassFit):
        raise CrowdtreeError("update: expected answers to yes/no questions")
    return fit


def _add_workers(learned: Learned, new: list[str]) -> None:
    """Add new workers, typical ones."""
    fit, count = learned.fit, len(new)
    learned.fit = replace(
        fit,
        skill=np.append(fit.skill, np.zeros(count)),
        skill_sd=np.append(fit.skill_sd, np.full(count, fit.spread or SPREAD)),
    )
    names = np.append(learned.answers.workers.astype(object), new)
    learned.answers = replace(learned.answers, workers=names)
    if learned.kind == "labels":
        room = np.zeros((count, *learned.counts.shape[1:]))
        learned.counts = np.concatenate([learned.counts, room])


def _count_rates(learned: Learned) -> CountRates | None:
    """What the expected answers to one question say of workers."""
    from crowdtree.learning.labels import CountRates

    return CountRates.of(learned.counts) if learned.kind == "labels" else None


def _write_back(learned: Learned, online: Online, before: CountRates | None) -> None:
    """Show the new errors in the problem; items stay in the online state."""
    problem, after = learned.problem, _count_rates(learned)
    if before is not None and after is not None:
        from crowdtree.learning.labels import skills_of_counts

        learned.fit = skills_of_counts(learned.fit, before, after)
        confusion = learned_problem.crowd_confusion(learned.counts)
        made = learned_problem.label_problem(
            problem.classes,
            learned.fit,
            confusion,
            problem.prior,
            online.base.questions[0],
            problem.dependence,
        )
        learned.problem = learned_problem.quietly_replaced(made, loss=problem.loss)
        return
    learned.problem = learned_problem.make_problem(
        problem.classes,
        problem.prior,
        problem.questions,
        problem.outcome,
        learned.fit.error if learned.assumed else np.minimum(learned.fit.error, 0.499),
        like=problem,
    )


def classify(learned: Learned, source: Any, plain: bool = False) -> tuple[list[str], FloatArray]:
    """Posteriors of the items of other answers; their workers may be known or new.

    `plain` posteriors are those before the discount.
    """
    known = learned.answers
    read: Answers = read_answers(
        source,
        questions=known.questions if learned.kind == "classes" else None,
        labels=known.labels if learned.kind == "labels" else None,
        duplicates="all",
    )
    read = as_yes_no(read) if learned.kind == "classes" else read.one_each()
    index = learned.worker_index
    place = np.array([index.get(str(name), -1) for name in read.workers.tolist()])
    asked = read.question_column()
    names, made = list(map(str, read.tasks.tolist())), []
    asked_by = place[read.worker]
    for t in range(read.n_tasks):
        at = slice(int(read.start[t]), int(read.start[t + 1]))
        columns = asked[at].tolist(), asked_by[at].tolist(), read.label[at].tolist()
        rows = list(zip(*columns, strict=True))
        made.append(_posterior_of(learned, rows))
    posterior = np.array(made)
    if plain or learned.discount is None:
        return names, posterior
    return names, learned.discount.stated(posterior, np.diff(read.start))
