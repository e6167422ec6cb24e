from pathlib import Path

import numpy as np
import pytest
import torch

from small import small_split
from towpath.data.interactions import PADDING
from towpath.errors import ConfigError, DataError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.registry import build
from towpath.models.scorer import Scorer, Sizes
from towpath.rng import Rng
from towpath.training.batch import Batch
from towpath.training.batches import make_batches
from towpath.training.fit import EpochMetrics
from towpath.training.losses import catalogue_softmax_risk, softmax_loss
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask
from towpath.training.windows import WindowBatches

SPLIT = small_split()  # sixty users with ten training items each
LENGTH = 4


def attention(**changes: object) -> Scorer:
    settings = {"embedding_dim": 8, "history_length": LENGTH} | changes
    scorer = build("attention", settings, Sizes(SPLIT.train.n_users, SPLIT.train.n_items))
    scorer.initialise(SPLIT.train, Rng(0))
    return scorer


def batches_of(**changes: object) -> tuple[WindowBatches, list[Batch]]:
    made = make_batches(SPLIT.train, attention(), TrainingSettings(**({"batch_size": 50} | changes)))
    assert isinstance(made, WindowBatches)
    return made, list(made.epoch(1, Rng(0)))


def instances(batch: Batch) -> list[tuple[int, tuple[int, ...], int]]:
    """Each instance as (user, what they had interacted with within the window, the next item)."""
    context = batch.context
    assert context.steps is not None
    width = context.histories.shape[1]
    found = []
    for user, step, item in zip(
        context.users.tolist(), context.steps.tolist(), batch.items[:, 0], strict=True
    ):
        row, column = divmod(step, width)
        seen = context.histories[row, : column + 1]
        found.append((user, tuple(seen[seen != PADDING].tolist()), int(item)))
    return found


def history_of(user: int) -> list[int]:
    return SPLIT.train.items[SPLIT.train.users == user].tolist()


def test_all_windows_cover_every_step_once() -> None:
    source, batches = batches_of(windows="all")
    found = [instance for batch in batches for instance in instances(batch)]
    followed = sorted((user, item) for user, _, item in found)
    expected = sorted((user, item) for user in range(60) for item in history_of(user)[1:])
    assert followed == expected
    assert len(batches) == len(source) == -(-60 * 9 // 50)


@pytest.mark.parametrize("windows", ["all", "random", "last"])
def test_an_instance_has_seen_what_came_right_before_its_positive(windows: str) -> None:
    for batch in batches_of(windows=windows)[1]:
        for user, seen, item in instances(batch):
            history = history_of(user)
            at = history.index(item)
            assert 1 <= len(seen) <= LENGTH
            assert history[at - len(seen) : at] == list(seen)


@pytest.mark.parametrize(("windows", "places"), [("last", {6, 7, 8, 9}), ("random", set(range(1, 10)))])
def test_one_window_of_each_user(windows: str, places: set[int]) -> None:
    source, batches = batches_of(windows=windows)
    found = [instance for batch in batches for instance in instances(batch)]
    assert len(found) == 60 * LENGTH
    assert len(source) == len(batches)
    assert {history_of(user).index(item) for user, _, item in found} == places


@pytest.mark.parametrize("windows", ["all", "random"])
def test_epochs_and_passes_cut_in_other_places(windows: str) -> None:
    source, first = batches_of(windows=windows)
    others = [list(source.epoch(2, Rng(0))), list(source.epoch(1, Rng(0), name="inner "))]
    again = list(source.epoch(1, Rng(0)))
    assert all(
        torch.equal(a.context.histories, b.context.histories) for a, b in zip(first, again, strict=True)
    )
    for other in others:
        assert sorted(instances(first[0])) != sorted(instances(other[0]))


def test_the_last_column_of_every_sequence_is_an_instance() -> None:
    """Which the probing of critics relies on."""
    for batch in batches_of()[1]:
        assert batch.context.steps is not None
        ends = (batch.context.steps + 1) % batch.context.histories.shape[1] == 0
        assert int(ends.sum()) == len(batch.context.histories)


def test_negatives_are_sampled_or_left_to_the_loss() -> None:
    for batch in batches_of(negatives=2)[1]:
        assert batch.items.shape == (len(batch.context.users), 3)
        assert batch.labels.sum(1).unique().tolist() == [1]
        assert not any(
            item in history_of(user)
            for user, row in zip(batch.context.users.tolist(), batch.items[:, 1:].tolist(), strict=True)
            for item in row
        )
    assert batches_of(pairs="catalogue", loss="softmax")[1][0].items.shape[1] == 1


def test_head_negatives_come_from_the_ranking() -> None:
    source, _ = batches_of(negatives=2, hard_negatives=2, hard_negative_depth=1)
    source.refresh()
    drawn = [
        (user, item)
        for batch in source.epoch(1, Rng(0))
        for user, row in zip(batch.context.users.tolist(), batch.items[:, 1:].tolist(), strict=True)
        for item in row
    ]
    assert len(set(drawn)) == 60  # the one best item of each user, again and again


def test_a_batch_holds_a_window_even_if_it_should_hold_less() -> None:
    source, batches = batches_of(batch_size=1, windows="all")
    assert len(source) == len(batches)
    assert sum(len(batch.context.users) for batch in batches) == 60 * 9


def test_users_with_one_item_are_no_sequences() -> None:
    first = SPLIT.train.where(np.diff(SPLIT.train.users, prepend=-1) != 0)
    with pytest.raises(DataError, match="none of 60 users has two"):
        make_batches(first, attention(), TrainingSettings())


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_training_on_windows_lowers_the_loss(loss: str) -> None:
    pairs = "catalogue" if loss == "softmax" else "sampled"
    steps = {"windows": "all", "batch_size": 64, "learning_rate": 0.01, "l2": 0}
    training = TrainingSettings(loss=loss, pairs=pairs, **steps)
    learner = PlainLearner(TrainingTask(attention(dropout=0.1), SPLIT.train, training, Rng(0)))
    losses = [learner.epoch(number)["loss"] for number in range(1, 11)]
    assert losses[-1] < 0.95 * losses[0]


@pytest.mark.parametrize("method", ["plain", "transport"])
def test_a_run_with_dropout_resumes_to_the_same_floats(method: str, tmp_path: Path) -> None:
    settings = {"embedding_dim": 8, "history_length": 4, "dropout": 0.3, "batch_size": 64, "epochs": 4}
    if method == "transport":
        settings |= {"players": "models", "list_length": 5}
    recipe = Recipe("attention", method, settings | {"patience": 9})
    whole = fit(SPLIT, recipe)
    checkpoint = tmp_path / "checkpoint.safetensors"

    def killed_after_two(row: EpochMetrics) -> None:
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(SPLIT, recipe, checkpoint=checkpoint, watch=killed_after_two)
    resumed = fit(SPLIT, recipe, checkpoint=checkpoint)
    assert [row["loss"] for row in whole.history] == [row["loss"] for row in resumed.history]
    state = resumed.scorer.state_dict()
    assert all(torch.equal(value, state[key]) for key, value in whole.scorer.state_dict().items())


def test_the_risk_over_the_catalogue_is_the_mean_of_the_loss() -> None:
    generator = Rng(0).torch("states")
    states, table = (torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in (9, 5))
    targets = torch.arange(9) % 5
    labels = torch.nn.functional.one_hot(targets, 5).double()
    expected = softmax_loss(states @ table.T, labels).mean()
    torch.testing.assert_close(catalogue_softmax_risk(states, table, targets), expected)


@pytest.mark.parametrize("softmax_items", ["all", "unseen"])
def test_a_positive_is_compared_with_all_items_or_with_those_that_are_new_to_the_user(
    softmax_items: str,
) -> None:
    softmax = {"loss": "softmax", "pairs": "catalogue", "softmax_items": softmax_items, "batch_size": 50}
    learner = PlainLearner(TrainingTask(attention(), SPLIT.train, TrainingSettings(**softmax), Rng(0)))
    learner.scorer.eval()
    batch = batches_of(**softmax)[1][0]
    scores = learner.scorer.score(batch.context, torch.arange(SPLIT.train.n_items)[None]).detach()
    own = scores.gather(1, batch.items)[:, 0]
    if softmax_items == "unseen":
        for row, (_, seen, item) in zip(scores, instances(batch), strict=True):
            row[[other for other in seen if other != item]] = -torch.inf
    torch.testing.assert_close(
        learner._loss(learner.scorer, batch).detach(), (scores.logsumexp(1) - own).mean()
    )


def test_several_positives_share_a_row_evenly() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)
    expected = logits.logsumexp(1) - 2.0
    torch.testing.assert_close(softmax_loss(logits, labels), expected)
    assert torch.autograd.gradcheck(lambda s: softmax_loss(s, labels), logits)


@pytest.mark.parametrize("pairs", ["sampled", "catalogue"])
def test_factorisation_learns_by_softmax_too(pairs: str) -> None:
    settings = {"embedding_dim": 8, "loss": "softmax", "pairs": pairs, "epochs": 8, "learning_rate": 0.03}
    done = fit(SPLIT, Recipe("mf", "plain", settings | {"batch_size": 64}))
    assert done.history[-1]["loss"] < 0.95 * done.history[0]["loss"]


@pytest.mark.parametrize("method", ["transport", "ipw"])
def test_methods_that_weigh_pairs_refuse_softmax(method: str) -> None:
    with pytest.raises(ConfigError, match="weighs single pairs"):
        Recipe("mf", method, {"loss": "softmax"}).resolve()
    suited = Recipe("attention", method).resolve().training
    assert (suited.loss, suited.pairs, suited.learning_rate) == ("logistic", "sampled", 0.001)


def test_every_item_as_a_pair_at_every_step_is_refused() -> None:
    with pytest.raises(ConfigError, match="pairs=sampled"):
        Recipe("attention", "plain", {"loss": "logistic"}).resolve()
