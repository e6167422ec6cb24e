"""GMF, MLP and NeuMF against their formulas, and the pre-training of the two halves."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from small import small_split
from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.neural import Gmf, Mlp, Ncf
from towpath.models.registry import build
from towpath.models.scorer import Context, Scorer, Sizes, context_of
from towpath.rng import Rng
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

SPLIT = small_split()
SIZES = Sizes(SPLIT.train.n_users, SPLIT.train.n_items)
SMALL = {"embedding_dim": 4, "hidden": (6, 3)}
QUICK = {**SMALL, "batch_size": 64, "epochs": 2, "pretrain_epochs": 0}
USERS = torch.tensor([3, 0, 41])
ITEMS = torch.tensor([[5, 1], [0, 39], [7, 7]])


def context(users: Tensor = USERS) -> Context:
    return Context(users, torch.zeros(len(users), 0, dtype=torch.long))


def filled(name: str, **settings: object) -> Scorer:
    own = {key: value for key, value in SMALL.items() if name != "gmf" or key != "hidden"}
    scorer = build(name, {**own, **settings}, SIZES)
    scorer.initialise(SPLIT.train, Rng(0))
    return scorer


def test_gmf_by_hand() -> None:
    gmf = build("gmf", {"embedding_dim": 2}, Sizes(2, 2))
    assert isinstance(gmf, Gmf)
    with torch.no_grad():
        gmf.tables.users.weight[:] = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
        gmf.tables.items.weight[:] = torch.tensor([[3.0, 4.0], [5.0, -1.0]])
        gmf.head.weight[:] = torch.tensor([[2.0, -1.0]])
        gmf.head.bias.fill_(0.5)
    pairs = torch.tensor([[0, 1], [1, 0]])
    scores, norm = gmf.score_with_norm(context(torch.tensor([0, 1])), pairs)
    # <(2, -1), (1, 2) * (3, 4)> + .5 = 6 - 8 + .5, and so on; |h * p|^2 + |q|^2 is 8 + 25, 34, 27 and 26
    assert scores.tolist() == [[-1.5, 12.5], [1.5, -3.5]]
    assert norm.tolist() == 30


def test_mlp_is_a_perceptron_on_both_vectors_end_to_end() -> None:
    mlp = filled("mlp")
    assert isinstance(mlp, Mlp)
    both = mlp.pair_features(context(), ITEMS)  # (b, k, 2 d)
    layers = [mlp.first, *mlp.tower.layers]
    for layer in layers:
        both = torch.relu(layer(both))
    torch.testing.assert_close(mlp.score(context(), ITEMS), mlp.tower.head(both)[..., 0])


def test_an_mlp_is_charged_for_what_enters_its_first_layer() -> None:
    """Longer vectors under a weaker layer are the same model, and cost the same."""
    mlp = filled("mlp")
    assert isinstance(mlp, Mlp)
    before = mlp.score_with_norm(context(), ITEMS)
    with torch.no_grad():
        mlp.tables.users.weight.mul_(2)
        mlp.tables.items.weight.mul_(2)
        mlp.first.weight.mul_(0.5)
    for now, then in zip(mlp.score_with_norm(context(), ITEMS), before, strict=True):
        torch.testing.assert_close(now, then)


def test_an_mlp_is_charged_for_its_layers() -> None:
    with_layers, without = (
        filled("mlp", layer_charge=c).score_with_norm(context(), ITEMS)[1] for c in (2, 0)
    )
    mlp = filled("mlp")
    assert isinstance(mlp, Mlp)
    weights = [layer.weight for layer in mlp.tower.layers] + [mlp.tower.head.weight]
    squares = sum(float(w.detach().square().sum()) for w in weights)
    torch.testing.assert_close(with_layers - without, torch.tensor(2 * squares))


def test_layers_without_width_are_refused() -> None:
    for hidden in ((), (8, 0)):
        with pytest.raises(ConfigError, match="hidden"):
            build("ncf", {"hidden": hidden}, SIZES)


def test_neumf_is_one_output_layer_over_both_halves() -> None:
    """The formula of the paper: h over (p * q, a_n) end to end."""
    ncf = filled("ncf")
    assert isinstance(ncf, Ncf)
    user, item = ncf.gmf.tables.users(USERS)[:, None], ncf.gmf.tables.items(ITEMS)
    above = ncf.mlp.pair_features(context(), ITEMS)
    for layer in [ncf.mlp.first, *ncf.mlp.tower.layers]:
        above = torch.relu(layer(above))
    last = torch.cat([user * item, above], dim=2)
    weight = torch.cat([ncf.gmf.head.weight, ncf.mlp.tower.head.weight], dim=1)
    expected = nn.functional.linear(last, weight, ncf.gmf.head.bias + ncf.mlp.tower.head.bias)[..., 0]
    torch.testing.assert_close(ncf.score(context(), ITEMS), expected)


@pytest.mark.parametrize("name", ["gmf", "mlp", "ncf"])
def test_the_output_layer_is_trained(name: str) -> None:
    """The authors' earlier code left it at its random start."""
    scorer = filled(name)
    before = {key: value.clone() for key, value in scorer.state_dict().items()}
    learner = PlainLearner(TrainingTask(scorer, SPLIT.train, TrainingSettings(batch_size=64), Rng(0)))
    learner.epoch(1)
    still = [key for key, value in scorer.state_dict().items() if torch.equal(value, before[key])]
    assert still == []


@pytest.mark.parametrize("pairs_at_once", [1, 7, 64])
def test_blocks_do_not_change_the_catalogue(pairs_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ncf, everything = filled("ncf"), torch.arange(SIZES.items)[None]
    whole = ncf.score(context(), everything)
    monkeypatch.setattr(
        "towpath.kernels.pair_layers.usable", lambda *_: False
    )  # torch takes blocks of any size
    monkeypatch.setattr("towpath.kernels.pair_layers._PAIRS_AT_ONCE", pairs_at_once)
    torch.testing.assert_close(ncf.score(context(), everything), whole)


def test_starts_have_the_published_bounds() -> None:
    """Glorot's sqrt(6 / (in + out)) and LeCun's sqrt(3 / in), nearly reached; biases at zero."""
    ncf = build("ncf", {"embedding_dim": 64, "hidden": (128, 64)}, SIZES)
    ncf.initialise(SPLIT.train, Rng(0))
    assert isinstance(ncf, Ncf)
    for layer, bound in [
        (ncf.mlp.first, (6 / 256) ** 0.5),
        (ncf.mlp.tower.layers[0], (6 / 192) ** 0.5),
        (ncf.mlp.tower.head, (3 / 64) ** 0.5),
        (ncf.gmf.head, (3 / 64) ** 0.5),
    ]:
        assert isinstance(layer, nn.Linear)
        assert 0.85 * bound < float(layer.weight.detach().abs().max()) <= bound
        assert (layer.bias == 0).all()


def test_the_halves_do_not_start_from_the_same_numbers() -> None:
    ncf = filled("ncf")
    assert isinstance(ncf, Ncf)
    assert not torch.equal(ncf.gmf.tables.users.weight, ncf.mlp.tables.users.weight)


def test_similar_items_are_those_that_both_halves_find_alike() -> None:
    ncf = filled("ncf")
    assert isinstance(ncf, Ncf)
    found = ncf.item_similarity(torch.tensor([4, 9]))
    assert found.shape == (2, SIZES.items)
    assert found[0, 4].item() == pytest.approx(1, abs=1e-5)
    assert found[0, 9].item() == pytest.approx(found[1, 4].item(), abs=1e-5)


def pretrained(**settings: object) -> dict[str, Tensor]:
    return fit(SPLIT, Recipe("ncf", settings={**QUICK, "pretrain_epochs": 2, **settings})).scorer.state_dict()


def test_pretraining_gives_the_same_floats_every_time() -> None:
    first, second = pretrained(), pretrained()
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_pretraining_copies_the_halves_and_halves_their_output() -> None:
    """Together they say what the mean of the two alone says."""
    ncf = filled("ncf", pretrain_epochs=3)
    assert isinstance(ncf, Ncf)
    epochs, halves = ncf.to_pretrain()
    assert (epochs, list(halves)) == (3, [ncf.gmf, ncf.mlp])
    users, everything = np.array([3, 0, 41]), torch.arange(SIZES.items)[None]
    before = [half.score(context_of(half, users, SPLIT.train.histories), everything) for half in halves]
    ncf.pretrained()
    together = ncf.score(context_of(ncf, users, SPLIT.train.histories), everything)
    torch.testing.assert_close(together, (before[0] + before[1]) / 2)


def test_pretraining_helps_the_first_epoch() -> None:
    plain = fit(SPLIT, Recipe("ncf", settings=QUICK)).history[0]["loss"]
    warm = fit(SPLIT, Recipe("ncf", settings={**QUICK, "pretrain_epochs": 10})).history[0]["loss"]
    assert warm < 0.9 * plain


def test_a_resumed_run_does_not_pretrain_again(tmp_path: Path) -> None:
    settings = {**QUICK, "pretrain_epochs": 2, "epochs": 4, "patience": 9}
    whole = fit(SPLIT, Recipe("ncf", settings=settings))

    class StoppedError(Exception): ...

    def stop(row: dict) -> None:
        if row["epoch"] == 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        fit(SPLIT, Recipe("ncf", settings=settings), checkpoint=tmp_path / "c", watch=stop)
    resumed = fit(SPLIT, Recipe("ncf", settings=settings), checkpoint=tmp_path / "c")
    other = resumed.scorer.state_dict()
    assert len(resumed.history) == len(whole.history)
    assert all(torch.equal(value, other[key]) for key, value in whole.scorer.state_dict().items())


@pytest.mark.parametrize("items", [ITEMS, ITEMS.repeat(1, 40)])  # fewer and more than the catalogue has
@pytest.mark.parametrize("name", ["mlp", "ncf"])
def test_compiled_layers_give_the_gradients_of_autograd(
    name: str, items: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    found = []
    for compiled in (True, False):
        if not compiled:
            monkeypatch.setattr("towpath.models.tower.usable", lambda *_: False)
            monkeypatch.setattr("towpath.models.pair_tables.usable", lambda *_: False)
        scorer = filled(name)
        scores, norm = scorer.score_with_norm(context(), items)
        loss = (scores * torch.linspace(-1, 1, scores.numel()).view(scores.shape)).sum() + 0.3 * norm
        found.append([scores, norm, *torch.autograd.grad(loss, list(scorer.parameters()))])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
