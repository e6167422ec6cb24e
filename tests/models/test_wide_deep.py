"""Wide and deep learning against a slow version of itself, with and without features, in every part."""

from pathlib import Path

import numpy as np
import pytest
import torch

from feature_tables import values_of, with_features
from small import small_split
from towpath.data.features import FeatureTable
from towpath.data.split import Split
from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import build
from towpath.models.scorer import Context, context_of, sizes_of
from towpath.models.wide_deep import WideDeep
from towpath.rng import Rng
from towpath.serving.artifact import artifact_of, load_artifact, save_artifact

PLAIN = small_split()
SPLIT = with_features(PLAIN)
SMALL = {"embedding_dim": 6, "side_dim": 3, "hidden": (8, 4)}


def scrambled(split: Split = SPLIT, **settings: object) -> WideDeep:
    """A filled model none of whose parameters is zero, so that every part of the score counts."""
    model = build("wide_deep", SMALL | settings, sizes_of(split.train))
    assert isinstance(model, WideDeep)
    model.initialise(split.train, Rng(0))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(0, 0.3, generator=Rng(1).torch(name))
    return model.eval()


def context(users: list[int], pages: list[int]) -> Context:
    return Context(torch.tensor(users), torch.tensor(pages)[:, None])


class Slowly:
    """The same model written out for one pair at a time, over values instead of codes."""

    def __init__(self, model: WideDeep, users: FeatureTable, items: FeatureTable) -> None:
        self.model, self.tables = model, {"user": users, "item": items}

    def vector(self, side: str, row: int) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
        """A row's vector, its weight, and its codes over all features of the side."""
        table, inputs = self.tables[side], getattr(self.model, f"{side}_side")
        parts, weight, codes, offset = [], torch.zeros(()), [], 0
        for column, label in enumerate(table.labels):
            bag = row * len(table.labels) + column
            found = [offset + int(c) for c in table.codes[table.starts[bag] : table.starts[bag + 1]]]
            mean = torch.stack([inputs.table[code] for code in found]).mean(0)
            parts.append(mean[:-1])
            weight, codes, offset = weight + mean[-1], codes + found, offset + label.codes
        numbers = torch.from_numpy(table.standardised()[row])
        ids = getattr(self.model.tables, f"{side}s").weight[row]
        weight = weight + numbers @ inputs.number_weights
        return torch.cat([ids, *parts, numbers]), weight, codes

    def score(self, user: int, page: int, item: int) -> float:
        model = self.model
        x_user, w_user, c_user = self.vector("user", user)
        x_item, w_item, c_item = self.vector("item", item)
        first = model.of_user(x_user) + model.of_item(x_item)
        left = c_user
        if page >= 0:
            x_page, _, c_page = self.vector("item", page)
            first = first + model.of_page(x_page)
            left = left + [model.user_side.table.shape[0] + code for code in c_page]
        crosses = sum(float(model.cross_weights[x, y]) for x in left for y in c_item)
        ids = model.weights.users.weight[user, 0] + model.weights.items.weight[item, 0]
        return float(model.tower(first[None])[0] + w_user + w_item + ids) + crosses


def test_scores_are_those_of_the_slow_version() -> None:
    model = scrambled()
    users, items = SPLIT.train.user_features, SPLIT.train.item_features
    assert users is not None
    assert items is not None
    slow = Slowly(model, users, items)
    with torch.no_grad():
        fast = model.score(context([3, 7, 14], [5, -1, 20]), torch.tensor([[0, 7], [1, 2], [39, 5]]))
        expected = [
            [slow.score(3, 5, 0), slow.score(3, 5, 7)],
            [slow.score(7, -1, 1), slow.score(7, -1, 2)],
            [slow.score(14, 20, 39), slow.score(14, 20, 5)],
        ]
    torch.testing.assert_close(fast, torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_similar_items_are_the_scores_on_a_page_for_the_mean_user() -> None:
    """Without hidden units that bend, the mean of scores is the score of the mean."""
    model = scrambled()
    with torch.no_grad():
        model.tower.head.weight.zero_()
        every = torch.arange(40)[None]
        everyone = model.score(context(list(range(60)), [5] * 60), every)
        torch.testing.assert_close(model.item_similarity(torch.tensor([5]))[0], everyone.mean(0))
        pages = scrambled().item_similarity(torch.tensor([5, 6]))
    assert pages.shape == (2, 40)
    assert not torch.allclose(pages[0], pages[1])


def test_without_a_page_similarity_is_the_cosine_of_vectors() -> None:
    model = scrambled(page=False)
    assert model.history_length == 0
    alike = model.item_similarity(torch.tensor([4]))
    assert float(alike[0, 4].detach()) == pytest.approx(1)
    assert not any("of_page" in name for name in model.state_dict())


def test_only_the_crosses_that_were_named_count() -> None:
    model = scrambled(crosses="group*tags, page.tags*group")
    pairs, with_page = model.crossed, context([1], [2])
    assert int(pairs.sum()) == 4 * 7 + 7 * 4
    none = scrambled(crosses="none")
    assert int(none.crossed.sum()) == 0
    with torch.no_grad():
        before = model.score(with_page, torch.tensor([[3]]))
        model.cross_weights[pairs == 0] += 1
        assert torch.equal(model.score(with_page, torch.tensor([[3]])), before)
        model.cross_weights[pairs == 1] += 1
        assert not torch.equal(model.score(with_page, torch.tensor([[3]])), before)


@pytest.mark.parametrize(
    ("crosses", "words"),
    [
        ("group*colour", "no feature to cross 'colour'"),
        ("colour*group", "no feature to cross 'colour'"),
        ("group", "pairs such as gender"),
        ("amount*group", "no feature to cross 'amount'"),
    ],
)
def test_crosses_that_do_not_exist_are_refused(crosses: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        scrambled(crosses=crosses)


def test_rare_values_share_one_indicator() -> None:
    model = scrambled(cross_values=2)
    # Of group there are two values and of tags five: the three rarest tags are one, the last.
    assert model.item_side.indicators == [4, 4]
    assert model.item_side.columns.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7]
    assert model.cross_weights.shape == (16, 8)


def test_missing_and_unseen_values_start_without_influence() -> None:
    model = build("wide_deep", SMALL, sizes_of(SPLIT.train))
    assert isinstance(model, WideDeep)
    model.initialise(SPLIT.train, Rng(0))
    zero = (model.user_side.table == 0).all(1)
    assert zero.tolist() == [True, True, False, False, True, True, False, False, False, False, False]


def test_data_without_features_leave_ids_and_the_page() -> None:
    model, ignoring = scrambled(PLAIN), scrambled(SPLIT, side_features=False)
    assert model.user_side.width == 0
    assert {k: v.shape for k, v in model.state_dict().items()} == {
        k: v.shape for k, v in ignoring.state_dict().items()
    }
    with torch.no_grad():
        items = torch.tensor([[0, 7], [1, 2]])
        first, second = (model.score(context([3, 3], [5, page]), items) for page in (5, 6))
        assert torch.equal(first[0], second[0])
        assert not torch.equal(first[1], second[1])
        no_history = Context(torch.tensor([3, 3]), torch.empty(2, 0, dtype=torch.long))
        torch.testing.assert_close(
            model.score(no_history, items), model.score(context([3, 3], [-1, -1]), items)
        )


def test_the_page_of_a_step_in_a_window_is_the_item_there() -> None:
    model = scrambled()
    histories, items = torch.tensor([[4, 9, 2], [-1, 7, 3]]), torch.tensor([[0], [1]])
    stepped = Context(torch.tensor([3, 7]), histories, torch.tensor([1, 4]))
    with torch.no_grad():
        torch.testing.assert_close(model.score(stepped, items), model.score(context([3, 7], [9, 7]), items))


def test_an_artifact_serves_without_the_feature_files(tmp_path: Path) -> None:
    done = fit(SPLIT, Recipe("wide_deep", settings=SMALL | {"epochs": 2, "batch_size": 200}))
    save_artifact(artifact_of(done, SPLIT), tmp_path / "model")
    loaded = load_artifact(tmp_path / "model").scorer
    assert loaded.sizes == sizes_of(SPLIT.train)
    users, every = np.arange(10), torch.arange(40)[None]
    with torch.no_grad():
        scores = [
            s.eval().score(context_of(s, users, SPLIT.train.histories), every) for s in (done.scorer, loaded)
        ]
    assert torch.equal(*scores)


def test_features_that_say_who_likes_what_help() -> None:
    """Tastes of the small data follow the parity that the feature `group` tells, so it is learned sooner."""
    losses = {True: 0.0, False: 0.0}
    for seed in range(3):
        for side in losses:
            settings = SMALL | {"epochs": 3, "batch_size": 200, "side_features": side, "page": False}
            losses[side] += fit(SPLIT, Recipe("wide_deep", settings=settings, seed=seed)).history[-1]["loss"]
    assert losses[True] < 0.95 * losses[False]


@pytest.mark.parametrize("lipschitz", ["max-norm", "gradient-penalty", "frozen"])
def test_it_plays_every_part_of_the_game(lipschitz: str) -> None:
    settings = SMALL | {"epochs": 3, "warm_epochs": 1, "batch_size": 200, "players": "models"}
    done = fit(SPLIT, Recipe("wide_deep", "transport", settings | {"lipschitz": lipschitz}))
    assert len(done.history) == 3
    assert all(np.isfinite(value) for row in done.history for value in row.values())
    mixed = settings | {"w": "wide_deep", "g": "wide_deep", "lipschitz": lipschitz}
    others = {key: mixed[key] for key in mixed if key not in ("side_dim", "hidden")}
    assert len(fit(SPLIT, Recipe("mf", "transport", others)).history) == 3


def test_a_killed_run_goes_on_to_the_same_floats(tmp_path: Path) -> None:
    def recipe(epochs: int) -> Recipe:
        settings = SMALL | {"epochs": epochs, "batch_size": 200, "item_rate": 0.1}
        return Recipe("wide_deep", settings=settings)

    whole = fit(SPLIT, recipe(4))
    fit(SPLIT, recipe(2), checkpoint=tmp_path / "state")
    resumed = fit(SPLIT, recipe(4), checkpoint=tmp_path / "state")
    assert whole.history[-1]["loss"] == resumed.history[-1]["loss"]
    states = whole.scorer.state_dict(), resumed.scorer.state_dict()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_item_vectors_learn_at_their_own_rate() -> None:
    frozen = build("wide_deep", SMALL | {"item_rate": 0.0}, sizes_of(SPLIT.train))
    frozen.initialise(SPLIT.train, Rng(0))
    start = frozen.get_parameter("tables.items.weight").clone()
    settings = SMALL | {"item_rate": 0.0, "epochs": 1, "batch_size": 200, "patience": 9}
    done = fit(SPLIT, Recipe("wide_deep", settings=settings))
    assert torch.equal(done.scorer.get_parameter("tables.items.weight"), start)


def test_features_of_the_small_data_are_what_the_tests_say() -> None:
    assert SPLIT.train.user_features is not None
    assert values_of(SPLIT.train.user_features, 2, 0) == ["even"]


@pytest.mark.parametrize("split", [SPLIT, PLAIN])
@pytest.mark.parametrize("width", [2, 60])  # fewer and more pairs than the catalogue has items
def test_compiled_layers_give_the_gradients_of_autograd(
    split: Split, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    items = torch.arange(3 * width).view(3, width) % split.train.n_items
    found = []
    for compiled in (True, False):
        if not compiled:
            for module in ("tower", "pair_tables", "wide_deep"):
                monkeypatch.setattr(f"towpath.models.{module}.usable", lambda *_: False)
        model = scrambled(split)
        scores, norm = model.score_with_norm(context([3, 0, 3], [2, -1, 7]), items)
        loss = (scores * torch.linspace(-1, 1, scores.numel()).view(scores.shape)).sum() + 0.3 * norm
        reached = [p for p in model.parameters() if p.numel()]
        found.append([scores, norm, *torch.autograd.grad(loss, reached)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
