"""Models other than mf learn what the library would show, and are deployed themselves."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from small_impressions import small_log
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import build, model_type
from towpath.models.scorer import context_of, sizes_of
from towpath.rng import Rng
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask
from towpath.transport.impressions.settings import LibrarySettings
from towpath.transport.impressions.tower import TowerLearner

LOG = small_log()
TOWERS = ("ncf", "wide_deep", "attention")
FAST = {"library_epochs": 6, "member_dim": 4, "tower_epochs": 3, "embedding_dim": 6}
RECIPES = {
    name: Recipe(name, "transport", FAST | ({"pretrain_epochs": 0} if name == "ncf" else {}))
    for name in TOWERS
}


def with_settings(recipe: Recipe, **settings: float) -> Recipe:
    return replace(recipe, settings={**recipe.settings, **settings})


def a_learner(model: str = "ncf") -> TowerLearner:
    scorer = build(model, {"embedding_dim": 6}, sizes_of(LOG.train))
    scorer.initialise(LOG.train, Rng(0))
    settings = LibrarySettings(library_epochs=6, member_dim=4, tower_epochs=8, tower_rate=0.01)
    return TowerLearner(TrainingTask(scorer, LOG.train, TrainingSettings(), Rng(0)), settings)


@pytest.mark.parametrize("model", TOWERS)
def test_what_is_deployed_is_the_model_itself_and_the_last_epoch(model: str) -> None:
    found = fit(LOG, RECIPES[model])
    assert type(found.scorer) is model_type(model)
    assert found.best_epoch == len(found.history) == 2 + 3  # ten epochs of the library's twelve at a time
    assert found.history[-1]["loss"] < found.history[2]["loss"]
    assert "penalty" not in found.history[-1]


@pytest.mark.parametrize("model", TOWERS)
def test_a_tower_ranks_more_and_more_like_the_library(model: str) -> None:
    learner = a_learner(model)
    teacher, users = learner._teacher.scorer, np.arange(LOG.train.n_users)
    every = torch.arange(LOG.train.n_items)[None]

    def agreement() -> float:
        """Mean correlation over users of the scores of tower and library."""
        learner.scorer.eval()
        with torch.no_grad():
            scores = [
                s.score(context_of(s, users, LOG.train.histories), every) for s in (learner.scorer, teacher)
            ]
        a, b = (torch.nn.functional.normalize(s - s.mean(1, keepdim=True), dim=1) for s in scores)
        return float((a * b).sum(1).mean())

    for epoch in range(1, 3):
        learner.epoch(epoch)
    before = agreement()
    for epoch in range(3, learner.own_epochs + 1):
        learner.epoch(epoch)
    assert agreement() > max(0.6, before + 0.3)


def test_the_divergence_by_hand() -> None:
    learner = a_learner()
    learner._sampler = type(learner._sampler)(LOG.train, LOG.train.n_items, torch.device("cpu"))  # all items
    learner.epoch(1)
    users, every = np.array([0, 1]), torch.arange(LOG.train.n_items)[None]
    with torch.no_grad():
        found = learner._divergence(users, np.random.default_rng(0))
        wanted = []
        for user in users:
            open_items = np.setdiff1d(every[0], LOG.train.items[LOG.train.users == user])
            p, q = (
                s.score(context_of(s, np.array([user]), LOG.train.histories), every)[
                    0, open_items
                ].log_softmax(0)
                for s in (learner._teacher.scorer, learner.scorer)
            )
            wanted.append(float((p.exp() * (p - q)).sum()))
    assert float(found) == pytest.approx(np.mean(wanted), rel=1e-4)


def test_histories_are_whole_or_the_beginning_of_one() -> None:
    learner, histories = a_learner("attention"), LOG.train.histories
    users = np.repeat(np.flatnonzero(histories.lengths > 3), 20)
    context = learner._context(users, np.random.default_rng(0))
    shares = []
    for user, past in zip(users, context.histories.numpy(), strict=True):
        own = histories.items[histories.starts[user] : histories.starts[user + 1]]
        kept = past[past >= 0]
        assert np.array_equal(kept, own[: len(kept)])
        shares.append(len(kept) / len(own))
    assert 0.4 < np.mean(np.array(shares) == 1) < 0.8
    assert min(shares) == 0


@pytest.mark.parametrize("done", [1, 2, 3])
@pytest.mark.parametrize("model", ["ncf", "attention"])
def test_a_resumed_fit_ends_where_an_undisturbed_one_does(tmp_path: Path, model: str, done: int) -> None:
    whole = fit(LOG, RECIPES[model])
    stopped: list[float] = []

    def stop(row: dict[str, float]) -> None:
        stopped.append(row["epoch"])
        if len(stopped) == done:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        fit(LOG, RECIPES[model], checkpoint=checkpoint, watch=stop)
    resumed = fit(LOG, RECIPES[model], checkpoint=checkpoint).scorer.state_dict()
    for name, tensor in whole.scorer.state_dict().items():
        assert torch.equal(tensor, resumed[name]), name


def test_the_dial_is_that_of_the_library() -> None:
    assert fit(LOG, with_settings(RECIPES["ncf"], penalty=0.5)).history[-1]["penalty"] == 0.5
    near = with_settings(RECIPES["ncf"], target_distance=0.0, library_epochs=15, tower_epochs=1)
    assert fit(LOG, near).history[-1]["penalty"] > 0
