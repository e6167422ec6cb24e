"""Everything works on another device than the CPU, and a tensor that stayed behind is noticed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import towpath
from impressions import impressions_split
from pretended_device import MixedDevicesError, pretended_device
from small import small_split
from towpath.device import device_named, device_of
from towpath.diagnostics.weights import weigh_pairs
from towpath.errors import ConfigError
from towpath.evaluation.protocols import EvalProtocol
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.transport import domain

SPLIT = small_split(users=30, items=40, per_user=12)
SMALL = {"epochs": 2, "batch_size": 64}
NARROW = {"embedding_dim": 4}
GAME = {**NARROW, "warm_epochs": 1}
FITS = {
    "popularity": ("popularity", "plain", {}),
    "ease": ("ease", "plain", {}),
    "mf": ("mf", "plain", NARROW),
    "mf, hard negatives": ("mf", "plain", {**NARROW, "hard_negatives": 1, "hard_negative_depth": 5}),
    "mf, catalogue": ("mf", "plain", {**NARROW, "pairs": "catalogue"}),
    "mf, softmax": ("mf", "plain", {**NARROW, "loss": "softmax"}),
    "mf, svd": ("mf", "plain", {**NARROW, "start": "svd"}),
    "gmf": ("gmf", "plain", NARROW),
    "mlp": ("mlp", "plain", NARROW),
    "ncf": ("ncf", "plain", {**NARROW, "pretrain_epochs": 1}),
    "sgns": ("sgns", "plain", NARROW),
    "wide_deep": ("wide_deep", "plain", {}),
    "attention": ("attention", "plain", {}),
    "attention, softmax": ("attention", "plain", {"loss": "softmax", "pairs": "catalogue"}),
    "transport": ("mf", "transport", GAME),
    "transport, exact": ("mf", "transport", {**GAME, "domain": "exact"}),
    "transport, sampled": ("mf", "transport", {**GAME, "domain": "sampled", "pool": 15}),
    "transport, ranking": ("mf", "transport", {**GAME, "domain": "ranking"}),
    "transport, models": ("mf", "transport", {**GAME, "players": "models"}),
    "transport, frozen": ("mf", "transport", {**GAME, "players": "models", "lipschitz": "frozen"}),
    "transport, soft": ("mf", "transport", {**GAME, "relaxation": "soft"}),
    "transport, simultaneous": ("mf", "transport", {**GAME, "schedule": "simultaneous"}),
    "transport, attention": ("attention", "transport", {"warm_epochs": 1}),
    "ipw": ("mf", "ipw", NARROW),
    "ipw, model": ("mf", "ipw", {**NARROW, "propensity": "model", "exposure_epochs": 1}),
    "doubly-robust": ("mf", "doubly-robust", NARROW),
    "adversarial": ("mf", "adversarial", NARROW),
    "expomf": ("mf", "expomf", NARROW),
    "causal-embedding": ("mf", "causal-embedding", NARROW),
}


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with pretended_device(monkeypatch) as found:
        yield found


def test_names_of_devices() -> None:
    assert device_named("cpu") == torch.device("cpu")
    with pytest.raises(ConfigError, match="no device 'gpu'"):
        device_named("gpu")
    with pytest.raises(ConfigError, match="no device 'cpu:1'; torch finds 1 of kind cpu"):
        device_named("cpu:1")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused() -> None:
    for asked in (lambda: device_named("cuda"), lambda: towpath.fit(SPLIT, device="cuda:0")):
        with pytest.raises(ConfigError, match="torch finds"):
            asked()


def test_the_stand_in_refuses_what_a_device_refuses(name: str) -> None:
    here, there = torch.ones(3), torch.ones(3, device=name)
    assert there.device.type == name
    assert (2 * there + torch.tensor(1.0)).cpu().tolist() == [3, 3, 3]
    assert there.sum().item() == 3
    refused = (
        lambda: here + there,
        lambda: here[there.long()],
        lambda: here.add_(there),
        lambda: torch.zeros(()).add_(there.sum()),
        lambda: there.double(),
        lambda: torch.rand(3, generator=torch.Generator(), device=name),
        lambda: there.numpy(),
    )
    for ask in refused:
        with pytest.raises(RuntimeError):
            ask()


@pytest.mark.parametrize("label", FITS)
def test_every_model_and_method_trains_elsewhere(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, method, settings = FITS[label]
    here = towpath.fit(SPLIT, model, method, seed=1, **SMALL, **settings)
    with pretended_device(monkeypatch, doubles=method == "expomf") as name:
        there = towpath.fit(SPLIT, model, method, seed=1, device=name, **SMALL, **settings)
        tensors = [*there.scorer.parameters(), *there.scorer.buffers(), *there.auxiliary_state.values()]
        assert all(tensor.device.type == name for tensor in tensors)
        found = towpath.evaluate(there, SPLIT).metrics()
    losses = [[row["loss"] for row in fit.history] for fit in (there, here)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)  # the same draws; kernels differ by rounding
    assert found == pytest.approx(towpath.evaluate(here, SPLIT).metrics(), abs=0.05)


@pytest.mark.parametrize("method", ["bandit-snips", "norm-poem", "bandit-dm", "bandit-dr"])
def test_policies_train_elsewhere(method: str, name: str) -> None:
    split = impressions_split(users=30, items=12, rows=600)
    here, there = (
        towpath.fit(split, "mf", method, device=device, **SMALL, **NARROW).history for device in ("cpu", name)
    )
    assert [row["loss"] for row in there] == pytest.approx([row["loss"] for row in here], rel=1e-3)


# Each of these decides where something is put; that the CPU is no answer must be noticed.
MOVES = {
    "context of a list": ("mf", "models.scorer"),
    "batches": ("mf", "training.batches"),
    "sum of the losses": ("mf", "training.plain"),
    "windows": ("attention", "training.windows"),
    "thresholds": ("transport", "ranking.snapshot"),
    "critic": ("transport, frozen", "transport.players"),
    "sum of the game's losses": ("transport", "transport.game"),
    "players that are models": ("transport, models", "models.players"),
    "propensities": ("ipw", "baselines.inverse_propensity"),
    "imputation": ("doubly-robust", "baselines.doubly_robust"),
    "regressions": ("expomf", "baselines.exposure"),
}


@pytest.mark.parametrize("what", MOVES)
def test_a_missing_move_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    label, module = MOVES[what]
    model, method, settings = FITS[label]
    monkeypatch.setattr(f"towpath.{module}.device_of", lambda module: torch.device("cpu"))
    with pretended_device(monkeypatch, doubles=True) as name, pytest.raises(MixedDevicesError):
        towpath.fit(SPLIT, model, method, device=name, **SMALL, **settings)


@pytest.mark.parametrize("protocol", ["full", "sampled"])
def test_evaluation_elsewhere_gives_the_same_numbers(protocol: EvalProtocol, name: str) -> None:
    split = small_split(users=30, items=150, per_user=12)
    fit = towpath.fit(split, "mf", **SMALL)
    here = towpath.evaluate(fit, split, protocol=protocol)
    there = towpath.evaluate(fit, split, protocol=protocol, device=name)
    assert device_of(fit.scorer).type == name
    assert there.metrics() == pytest.approx(here.metrics(), abs=0.05)


@pytest.mark.parametrize("model", ["mf", "attention", "ease", "wide_deep"])
def test_an_artifact_goes_from_any_device_to_any(model: str, name: str, tmp_path: Path) -> None:
    fit = towpath.fit(SPLIT, model, device=name, **({} if model == "ease" else SMALL))
    towpath.save(fit, SPLIT, tmp_path / "model")
    here, there = towpath.load(tmp_path / "model"), towpath.load(tmp_path / "model", device=name)
    assert device_of(here.artifact.scorer).type == "cpu"
    assert device_of(there.artifact.scorer).type == name
    for user in ("u1", "nobody"):
        one, other = here.recommend(user, 4), there.recommend(user, 4)
        assert one.fallback == other.fallback == (user == "nobody")
        assert one.scores == pytest.approx(other.scores, rel=1e-4)
    assert here.similar("i3", 4).scores == pytest.approx(there.similar("i3", 4).scores, rel=1e-4)


@pytest.mark.parametrize("method", ["plain", "transport"])
def test_a_checkpoint_goes_from_any_device_to_any(method: str, name: str, tmp_path: Path) -> None:
    def run(recipe: Recipe, checkpoint: Path | None = None) -> float:
        return fit(SPLIT, recipe, checkpoint=checkpoint).history[-1]["loss"]

    begins = {"warm_epochs": 0} if method == "transport" else {}
    whole = Recipe("mf", method, {**NARROW, **SMALL, **begins, "epochs": 3})
    begun = replace(whole, settings={**whole.settings, "epochs": 1})
    for first, then in ((name, "cpu"), ("cpu", name)):
        path = tmp_path / f"{first}.safetensors"
        run(replace(begun, device=first), path)
        assert run(replace(whole, device=then), path) == pytest.approx(run(whole), rel=1e-3)


def test_large_games_are_played_on_some_columns_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain, "_MOST_PAIRS", 100)
    monkeypatch.setattr(domain, "_COLUMNS", 15)
    settings = {**GAME, "pairs": "catalogue", "domain": "exact"}
    assert towpath.fit(SPLIT, "mf", "transport", device=name, **SMALL, **settings).history[-1]["ess"] > 0


def test_learned_weights_are_looked_at_elsewhere(name: str) -> None:
    recipe = Recipe("mf", "transport", {**NARROW, **SMALL, "warm_epochs": 0}, device=name)
    fitted = fit(SPLIT, recipe)
    pairs = weigh_pairs(fitted.scorer, fitted.auxiliary_state, SPLIT.train, recipe)
    assert pairs.weights[pairs.reweight_mask].mean() == pytest.approx(1)


def test_expomf_says_that_it_needs_double_precision(name: str) -> None:
    with pytest.raises(ConfigError, match="double precision"):
        towpath.fit(SPLIT, "mf", "expomf", device=name)
