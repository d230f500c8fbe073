"""Models of the answers to one question: their formulas, and bounds that never fall."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma

from crowdtree.learning import label_models, labels, learn
from crowdtree.learning.answers import read_answers
from crowdtree.learning.label_models import Coin, Confusion, Effects, Leaning, ModelFit

EFFECTS = {
    "none": Effects.none,
    "difficulty": Effects.difficulty,
    "decoys": Effects.decoys,
}
CHANNELS = {
    "coin": Coin,
    "shape": lambda workers, k: Coin(workers, k, shaped=True),
    "leaning": Leaning,
    "confusion": Confusion,
}


def crowd_of(seed: int):
    """A random crowd: 2 to 8 labels, spammers, sometimes tiny, sometimes some known items."""
    rng = np.random.default_rng([77, seed])
    k, items, workers = (int(rng.integers(*ends)) for ends in ((2, 9), (2, 90), (2, 25)))
    each = rng.integers(1, min(7, workers) + 1, items)
    truth = rng.choice(k, items, p=rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0]))))
    task = np.repeat(np.arange(items), each)
    worker = np.concatenate([rng.choice(workers, n, replace=False) for n in each])
    said = np.where(rng.random(len(task)) < rng.beta(4, 2, workers)[worker], truth[task], -1)
    said = np.where(said < 0, rng.integers(0, k, len(task)), said)
    kind = rng.choice(4, workers, p=[0.7, 0.1, 0.1, 0.1])[worker]
    said = np.where(kind == 1, 0, np.where(kind == 2, rng.integers(0, k, len(task)), said))
    said = np.where(kind == 3, (said + 1) % k, said)
    gold = np.where(rng.random(items) < rng.choice([0, 0, 0.1, 1.0]), truth, -1).astype(np.int32)
    read = read_answers(
        {"task": task, "worker": worker, "label": said}, labels=tuple(map(str, range(k)))
    )
    return read, gold


def rises(trace) -> bool:
    trace = np.array(trace)
    return bool((np.diff(trace) >= -1e-7 * np.maximum(np.abs(trace[1:]), 1)).all())


@pytest.mark.parametrize("seed", range(25))
def test_the_bound_of_every_model_never_falls(seed):
    read, gold = crowd_of(seed)
    start = labels.fit_labels(read, gold, "majority").posterior
    for name, channel in CHANNELS.items():
        for effect, effects in EFFECTS.items():
            k = len(read.labels)
            model = ModelFit(name, channel(read.n_workers, k), effects(k), k)
            fit = model.fit(read.votes, gold, start)
            assert rises(fit.trace), (name, effect)
            assert np.isfinite(fit.posterior).all()
            assert fit.posterior.sum(axis=1) == pytest.approx(1)
            known = gold >= 0
            assert fit.posterior[known, gold[known]] == pytest.approx(1)


@pytest.mark.parametrize("seed", range(25, 60))
def test_the_trace_of_what_is_learned_never_falls(seed):
    read, gold = crowd_of(seed)
    fit = labels.fit_labels(read, gold)
    assert rises(fit.trace)
    assert all(rises(model.trace) for model in fit.models)
    for posterior in (fit.posterior, fit.blind):
        assert np.isfinite(posterior).all()
        assert posterior.sum(axis=1) == pytest.approx(1)
    if len(read.workers) > 1:
        known = {str(t): str(c) for t, c in zip(read.tasks, gold, strict=True) if c >= 0}
        learned = learn(read, known or None, classes=read.labels)
        assert rises(learned.trace)
        assert learned.converged == (not learned.labelling.left_out)
        assert learned.posterior.sum(axis=1) == pytest.approx(1)
        assert 0 <= learned.accuracy.low <= learned.accuracy.value <= learned.accuracy.high <= 1


@pytest.mark.parametrize("name", CHANNELS)
def test_tables_are_what_the_model_says(name):
    """P(l | w, k, e) = (1 - strength) channel + strength target, of expected log rates."""
    k, workers = 4, 5
    counts = np.random.default_rng(3).gamma(2.0, 3.0, (workers, k, k))
    channel = CHANNELS[name](workers, k)
    before = channel.table
    channel.update(counts)

    def weight(count, common):
        return np.exp(digamma(count + common) - digamma((count + common).sum()))

    if name == "leaning":  # its update splits right answers by what was believed before
        start = Leaning(workers, k)
        known = np.einsum("wkk->wk", counts) * start._knows[:, :1]
        known /= np.einsum("wkk->wk", before)
    for w in range(workers):
        right, total = np.trace(counts[w]), counts[w].sum()
        for label, cls in np.ndindex(k, k):
            if name in ("coin", "shape"):
                rate = weight(np.array([right, total - right]), channel._common)
                wrong = counts.sum(axis=0) + 1
                share = wrong[label, cls] / (wrong[:, cls].sum() - wrong[cls, cls])
                expected = (
                    rate[0]
                    if label == cls
                    else rate[1] * (share if name == "shape" else 1 / (k - 1))
                )
            elif name == "leaning":
                guessed = counts[w].sum(axis=1) - known[w]
                knows = weight(np.array([known[w].sum(), guessed.sum()]), channel._knows_common)
                habit = weight(guessed, channel._habit_common)
                expected = knows[0] * (label == cls) + knows[1] * habit[label]
            else:
                expected = weight(counts[w, :, cls], channel._common[cls])[label]
            assert channel.table[w, label, cls] == pytest.approx(expected)
    assert channel.typical.sum(axis=0) == pytest.approx(1)
    for effects in (effects(k) for effects in EFFECTS.values()):
        table = np.exp(label_models._log_table(channel.table, effects))
        assert effects.strength[0] == 0
        for e, (strength, target) in enumerate(zip(effects.strength, effects.target, strict=True)):
            assert target.sum() == pytest.approx(1)
            for w, label, cls in np.ndindex(workers, k, k):
                expected = (1 - strength) * channel.table[w, label, cls] + strength * target[label]
                assert table[w, label, cls * len(effects) + e] == pytest.approx(expected)


@pytest.mark.parametrize("k", [2, 4])
def test_a_model_that_does_not_converge_is_named_and_not_used(monkeypatch, k):
    rng = np.random.default_rng(5)
    truth, task = rng.integers(0, k, 200), np.repeat(np.arange(200), 5)
    said = np.where(rng.random(1000) < 0.7, truth[task], rng.integers(0, k, 1000))
    answers = {"task": task, "worker": np.tile(np.arange(5), 200), "label": said}
    whole = learn(answers)
    assert whole.converged
    assert "unsettled" not in {flag.kind for flag in whole.flags}
    steps = {model.name: len(model.trace) for model in whole.labelling.models}
    slow = max(steps, key=steps.get)
    given = ModelFit.fit

    def short(self, votes, gold, start):
        with monkeypatch.context() as patch:
            patch.setattr(label_models, "MAX_STEPS", 3 if self.name == slow else 500)
            return given(self, votes, gold, start)

    monkeypatch.setattr(ModelFit, "fit", short)
    learned = learn(answers)
    assert not learned.converged
    assert learned.labelling.left_out == (slow,)
    assert [flag.subject for flag in learned.flags if flag.kind == "unsettled"] == [slow]
    kept = [model.posterior for model in learned.labelling.models]
    shares = labels.fit_labels(learned.answers, learned.gold, "majority").posterior
    expected = (shares + sum(kept)) / (1 + len(kept))
    assert learned.labelling.posterior == pytest.approx(expected)


def test_no_model_converges_leaves_the_votes(monkeypatch):
    monkeypatch.setattr(label_models, "MAX_STEPS", 1)
    rng = np.random.default_rng(6)
    answers = {"task": np.repeat(np.arange(60), 3), "worker": np.tile(range(3), 60),
               "label": rng.integers(0, 2, 180)}  # fmt: skip
    learned = learn(answers)
    assert not learned.converged
    assert "unsettled" in {flag.kind for flag in learned.flags}
    shares = learned.answers.votes.shares()
    assert learned.labelling.posterior == pytest.approx(shares)
    assert learned.accuracy.low < learned.accuracy.high
    learned.update({"task": [0, 99], "worker": ["7", "8"], "label": [1, 1]})
    assert learned.item(99).sum() == pytest.approx(1)
