"""Learners from bandit feedback: they beat the logging policy, resume, and warn."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from towpath.bandit.learning import overlap_warning
from towpath.data.interactions import Interactions
from towpath.data.vocabulary import Vocabulary
from towpath.errors import DataError
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_named
from towpath.models.factorization import Factorization
from towpath.models.scorer import context_of, sizes_of
from towpath.rng import Rng
from towpath.training.loop import Learner
from towpath.training.task import TrainingTask

USERS, ITEMS = 30, 8
CHANCES = np.where(np.arange(USERS)[:, None] % 2 == np.arange(ITEMS)[None, :] % 2, 0.8, 0.1)
METHODS = ("bandit-ips", "bandit-snips", "poem", "norm-poem", "bandit-dm", "bandit-dr")


def logged(rows: int = 3000, seed: int = 0) -> Interactions:
    """Positives with the log behind them: a popular-items policy, clicks by taste."""
    rng = Rng(seed).numpy("log")
    shown = np.array([0.24, 0.2, 0.16, 0.12, 0.1, 0.08, 0.06, 0.04])
    users = np.sort(rng.integers(USERS, size=rows)).astype(np.int32)
    items = rng.choice(ITEMS, size=rows, p=shown).astype(np.int32)
    log = Interactions(
        users=users,
        items=items,
        user_ids=Vocabulary(pa.array([f"u{n}" for n in range(USERS)])),
        item_ids=Vocabulary(pa.array([f"i{n}" for n in range(ITEMS)])),
        labels=rng.random(rows) < CHANCES[users, items],
        propensities=shown[items].astype(np.float32),
    )
    return log.positives


def learner_of(method: str, train: Interactions, **settings: object) -> Learner:
    common = {"embedding_dim": 4, "learning_rate": 0.03, "l2": 0.0, "epochs": 12, "batch_size": 500}
    recipe = Recipe("mf", method, {**common, **settings})
    resolved = recipe.resolve()
    scorer = Factorization(resolved.model, sizes_of(train))
    scorer.initialise(train, Rng(0))
    task = TrainingTask(scorer, train, resolved.training, Rng(0))
    return method_named(method).learner(task, resolved.method)


def value(learner: Learner, train: Interactions) -> float:
    """The true reward of showing everyone their best item."""
    context = context_of(learner.scorer, np.arange(USERS), train.histories)
    with torch.no_grad():
        best = learner.scorer.score(context, torch.arange(ITEMS)[None]).argmax(1).numpy()
    return float(CHANCES[np.arange(USERS), best].mean())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_what_users_like(method: str) -> None:
    train = logged()
    learner = learner_of(method, train)
    for epoch in range(1, 13):
        row = learner.epoch(epoch)
    assert all(np.isfinite(number) for number in row.values())
    assert value(learner, train) > 0.75  # the log earns .46, the best possible is .8


@pytest.mark.parametrize("method", METHODS)
def test_a_resumed_run_gives_the_same_floats(method: str) -> None:
    train = logged(600)
    straight = learner_of(method, train)
    straight.epoch(1)
    kept = straight.state()
    straight.epoch(2)
    resumed = learner_of(method, train)
    resumed.load_state(kept)
    resumed.epoch(2)
    for name, tensor in straight.state().items():
        assert torch.equal(tensor, resumed.state()[name]), name


@pytest.mark.parametrize("method", METHODS)
def test_the_step_size_falls(method: str) -> None:
    train = logged(600)
    constant, falling = (learner_of(method, train, final_lr_factor=rate) for rate in (1.0, 0.0))
    for learner in (constant, falling):
        for epoch in (1, 2, 3):
            learner.epoch(epoch)
    states = zip(constant.state().values(), falling.state().values(), strict=True)
    assert not all(torch.equal(a, b) for a, b in states)


def test_one_batch_is_an_exact_step_down_the_risk() -> None:
    train = logged(600)
    learner = learner_of("norm-poem", train, batch_size=600, learning_rate=0.001)
    losses = [learner.epoch(epoch)["loss"] for epoch in range(1, 15)]
    assert losses[-1] < losses[0]


def test_positives_alone_and_logs_without_propensities_are_refused() -> None:
    train = logged(200)
    with pytest.raises(DataError, match="positives alone"):
        learner_of("poem", replace(train, impressions=None))
    assert train.impressions is not None
    bare = replace(train, impressions=replace(train.impressions, propensities=None))
    with pytest.raises(DataError, match="without propensities"):
        learner_of("bandit-ips", bare)
    some = train.impressions.propensities.copy()
    some[7] = np.nan
    holes = replace(train, impressions=replace(train.impressions, propensities=some))
    with pytest.raises(DataError, match="1 of 200 training rows have none"):
        learner_of("bandit-ips", holes)


def test_a_policy_that_left_its_log_is_warned_about() -> None:
    left = {"weight_mean": 0.04, "ess_share": 0.3}
    warning = overlap_warning(left, normalised=True)
    assert warning is not None
    assert "avoid what was logged" in warning
    plain = overlap_warning(left, normalised=False)
    assert plain is not None
    assert "avoid" not in plain
    assert overlap_warning({"weight_mean": 0.98, "ess_share": 0.4}, normalised=True) is None


def test_snips_without_overlap_walks_into_the_trap_and_says_so() -> None:
    """Only items that nobody likes were logged: SNIPS can only move weight off them, and remarks on it."""
    train = logged(800)
    log = train.impressions
    assert log is not None
    none = replace(log, items=(log.users % 2 + 1).astype(np.int32) % 2, labels=np.arange(800) % 97 == 0)
    never = replace(none, propensities=np.full(800, 1.0, dtype=np.float32)).positives
    learner = learner_of("bandit-snips", never, epochs=40)
    for epoch in range(1, 41):
        learner.epoch(epoch)
    assert any("self-normalised risk" in remark for remark in learner.scorer.remarks)


def test_a_log_whose_repeated_rows_were_dropped_is_remarked_on() -> None:
    """Kept once, pairs that are shown often no longer stand for their propensity."""
    train = logged(6000)
    assert learner_of("bandit-ips", train).scorer.remarks == ()
    log = train.impressions
    assert log is not None
    _, first = np.unique(log.users * ITEMS + log.items, return_index=True)
    kept = log.where(np.isin(np.arange(len(log)), first)).positives
    (remark,) = learner_of("bandit-ips", kept).scorer.remarks
    assert "--repeats allow" in remark
    assert learner_of("bandit-dm", kept).scorer.remarks == ()  # it does not look at propensities
