"""Tables that are spread over processes do what tables in one process do."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file

from processes import group, run_together
from small import small_split
from towpath.errors import ArtifactError, ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit, refuse_unshardable
from towpath.models import sharded_table
from towpath.models.factorization import Factorization, FactorizationSettings
from towpath.models.scorer import Context, Sizes
from towpath.models.sharded_factorization import ShardedFactorization
from towpath.models.sharded_table import ShardedTable
from towpath.rng import Rng

SPLIT = small_split(users=41, items=30)
SIZES = Sizes(203, 101)
SETTINGS = FactorizationSettings(embedding_dim=6)


def recipe(epochs: int, **settings: object) -> Recipe:
    return Recipe("mf", settings={"embedding_dim": 4, "batch_size": 64, "epochs": epochs, **settings})


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    with group(tmp_path / "store"):
        yield


def pairs_of(rank: int) -> tuple[Context, torch.Tensor]:
    """Pairs that differ from process to process, some of them asked for by both."""
    draw = torch.Generator().manual_seed(rank)
    users = torch.randint(SIZES.users, (17,), generator=draw)
    return Context(users, torch.empty(17, 0, dtype=torch.long)), torch.randint(
        SIZES.items, (17, 5), generator=draw
    )


def check_against_one_table(sparse_from: int) -> None:
    """The same start, scores and gradients as a factorisation that has all rows."""
    sharded_table.SPARSE_FROM_ROWS = sparse_from
    sharded_table._ROWS_AT_ONCE = 32
    whole, mine = Factorization(SETTINGS, SIZES), ShardedFactorization(SETTINGS, SIZES)
    for scorer in (whole, mine):
        scorer.initialise(SPLIT.train, Rng(3))
    size, loss = dist.get_world_size(), torch.zeros(())
    for rank in range(size):
        scores, norm = whole.score_with_norm(*pairs_of(rank))
        loss = loss + scores.square().sum() + norm
        if rank == dist.get_rank():
            own, own_norm = mine.score_with_norm(*pairs_of(rank))
            torch.testing.assert_close(own, scores)
    (own.square().sum() + own_norm).backward()
    loss.backward()
    for name in ("users", "items"):
        table, all_rows = getattr(mine, name), getattr(whole, name).weight
        rows = slice(table.begin, table.end)
        assert torch.equal(table.weight, all_rows[rows])
        assert table.weight.grad.is_sparse == table.sparse
        torch.testing.assert_close(table.weight.grad.to_dense(), all_rows.grad[rows])
    context, everything = pairs_of(0)[0], torch.arange(SIZES.items)[None]
    with torch.no_grad():
        torch.testing.assert_close(mine.score(context, everything), whole.score(context, everything))
        some = everything[:, 5:90:3]
        torch.testing.assert_close(mine.score(context, some), whole.score(context, some))
    gathered = mine.gathered()
    assert (gathered is None) == (dist.get_rank() > 0)
    if gathered is not None:
        assert all(torch.equal(v, whole.state_dict()[k]) for k, v in gathered.state_dict().items())


def work(folder: Path) -> None:
    for sparse_from in (100, 10**6):
        check_against_one_table(sparse_from)
    done = fit(
        SPLIT, recipe(2, hard_negatives=1, clip_norm=0.02), checkpoint=folder / "checkpoint.x", sharded=True
    )
    if dist.get_rank() == 0:
        (folder / "history.json").write_text(json.dumps(done.history))


def go_on(folder: Path) -> None:
    """Go on from the checkpoint of another number of processes."""
    settings = {"hard_negatives": 1, "clip_norm": 0.02, "patience": 9}
    done = fit(SPLIT, recipe(4, **settings), checkpoint=folder / "checkpoint.x", sharded=True)
    one = fit(SPLIT, recipe(4, **settings))
    if dist.get_rank() == 0:
        assert [row["loss"] for row in done.history] == pytest.approx(
            [row["loss"] for row in one.history], abs=1e-6
        )
        for key, tensor in one.scorer.state_dict().items():
            torch.testing.assert_close(done.scorer.state_dict()[key], tensor, atol=1e-4, rtol=1e-4)


def test_two_processes_share_the_rows_and_one_goes_on(tmp_path: Path) -> None:
    run_together("training.test_sharded", "work", 2, tmp_path)
    assert len(json.loads((tmp_path / "history.json").read_text())) == 2
    with group(tmp_path / "store"):
        go_on(tmp_path)


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("size", [2, 3])
def test_another_number_of_processes_goes_on(tmp_path: Path, size: int) -> None:
    run_together("training.test_sharded", "work", 5 - size, tmp_path)
    run_together("training.test_sharded", "go_on", size, tmp_path)


def test_a_checkpoint_that_was_changed_is_refused(tmp_path: Path, alone: None) -> None:
    checkpoint = tmp_path / "checkpoint.x"
    fit(SPLIT, recipe(1), checkpoint=checkpoint, sharded=True)
    shard = next((tmp_path / "checkpoint").glob("*.safetensors"))
    tensors = load_file(shard)
    save_file({key: tensor + 1 for key, tensor in tensors.items()}, shard)
    with pytest.raises(ArtifactError, match="changed or cut short"):
        fit(SPLIT, recipe(2), checkpoint=checkpoint, sharded=True)


def test_the_last_process_may_have_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist, "get_world_size", lambda: 4)
    runs = []
    for rank in range(4):
        monkeypatch.setattr(dist, "get_rank", lambda rank=rank: rank)
        table = ShardedTable(10, 3)
        runs.append((table.begin, table.end))
    assert runs == [(0, 3), (3, 6), (6, 9), (9, 10)]


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (Recipe("wide_deep"), "the model is wide_deep"),
        (Recipe("mf", "ipw"), "the method is ipw"),
        (Recipe("mf", "transport", {"w": "mf"}), "w and g are models"),
        (Recipe("mf", settings={"pairs": "catalogue"}), "pairs=catalogue"),
        (Recipe("mf", settings={"start": "svd"}), "do not start at random"),
    ],
)
def test_what_cannot_be_spread_is_refused(recipe: Recipe, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        refuse_unshardable(recipe)
