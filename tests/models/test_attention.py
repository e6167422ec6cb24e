import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from small import small_split
from towpath.data.interactions import PADDING
from towpath.errors import ConfigError
from towpath.models.attention import Attention, by_distance
from towpath.models.registry import build
from towpath.models.scorer import Context, Sizes, context_of
from towpath.rng import Rng
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

SPLIT = small_split()
ITEMS, LENGTH = 40, 6


def attention(**changes: object) -> Attention:
    scorer = build("attention", {"embedding_dim": 8, "history_length": LENGTH} | changes, Sizes(60, ITEMS))
    scorer.initialise(SPLIT.train, Rng(0))
    assert isinstance(scorer, Attention)
    return scorer.eval()


ONE, TWO_HEADS = attention(), attention(heads=2, blocks=1)


def state(scorer: Attention, *history: int) -> torch.Tensor:
    """The state after this history: (d,)."""
    with torch.no_grad():
        return scorer.states(Context(torch.tensor([0]), torch.tensor([history])))[0]


def at_steps(scorer: Attention, histories: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return scorer.states(Context(torch.zeros(len(steps), dtype=torch.long), histories, steps))


histories = st.lists(st.integers(0, ITEMS - 1), min_size=2, max_size=LENGTH)


@given(histories, st.data())
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("scorer", [ONE, TWO_HEADS], ids=["one head", "two heads"])
def test_what_comes_later_never_changes_an_earlier_state(
    scorer: Attention, history: list[int], data: st.DataObject
) -> None:
    """Oracle 13 of the method sheets."""
    at = data.draw(st.integers(0, len(history) - 2))
    other = history[: at + 1] + [(item + 1) % ITEMS for item in history[at + 1 :]]
    steps = torch.arange(at + 1)
    before, after = (at_steps(scorer, torch.tensor([h]), steps) for h in (history, other))
    assert torch.equal(before, after)
    last = torch.tensor([len(history) - 1])
    assert not torch.equal(*(at_steps(scorer, torch.tensor([h]), last) for h in (history, other)))


@given(histories, st.integers(0, LENGTH))
@settings(max_examples=25, deadline=None)
def test_how_much_padding_there_is_does_not_matter(history: list[int], padding: int) -> None:
    padded = [PADDING] * min(padding, LENGTH - len(history)) + history
    torch.testing.assert_close(state(ONE, *history), state(ONE, *padded))


def test_a_longer_neighbour_in_the_batch_does_not_matter() -> None:
    both = torch.tensor([[PADDING, PADDING, 3, 4], [9, 8, 7, 6]])
    with torch.no_grad():
        states = ONE.states(Context(torch.tensor([0, 1]), both))
    torch.testing.assert_close(states[0], state(ONE, 3, 4))
    torch.testing.assert_close(states[1], state(ONE, 9, 8, 7, 6))


@pytest.mark.parametrize("scorer", [ONE, TWO_HEADS], ids=["one head", "two heads"])
def test_the_state_after_a_history_is_that_of_its_last_step(scorer: Attention) -> None:
    """Which the last block works out alone."""
    batch = torch.tensor([[PADDING, PADDING, 3, 4], [9, 8, 7, 6], [PADDING, PADDING, PADDING, 5]])
    with torch.no_grad():
        alone = scorer.states(Context(torch.arange(3), batch))
    torch.testing.assert_close(alone, at_steps(scorer, batch, torch.tensor([3, 7, 11])))


def test_gradients_of_a_batch_are_the_sum_of_those_of_its_sequences() -> None:
    """Short sequences share rows in a batch, and must not notice."""
    batch = torch.tensor([[PADDING, PADDING, PADDING, 3], [9, 8, 7, 6], [PADDING, PADDING, 5, 4]])
    steps = torch.tensor([3, 4, 5, 6, 7, 10, 11])
    rows = [(batch[:1, 3:], [0]), (batch[1:2], [0, 1, 2, 3]), (batch[2:, 2:], [0, 1])]

    def gradients(histories: torch.Tensor, places: torch.Tensor) -> list[torch.Tensor]:
        states = ONE.states(Context(torch.zeros(len(places), dtype=torch.long), histories, places))
        return list(torch.autograd.grad(states.pow(3).sum(), list(ONE.parameters())))

    alone = [gradients(history, torch.tensor(places)) for history, places in rows]
    for together, parts in zip(gradients(batch, steps), zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(together, sum(parts), rtol=1e-4, atol=1e-5)  # sums in another order


def test_nothing_but_padding_gives_a_finite_state_and_gradient() -> None:
    scorer = attention()
    context = Context(torch.tensor([0, 1]), torch.tensor([[PADDING] * 4, [PADDING, PADDING, 5, 6]]))
    scores = scorer.score(context, torch.arange(ITEMS)[None])
    gradients = torch.autograd.grad(scores.sum(), list(scorer.parameters()), allow_unused=True)
    assert torch.isfinite(scores).all()
    assert all(torch.isfinite(g).all() for g in gradients if g is not None)
    nothing = Context(torch.tensor([0]), torch.zeros(1, 0, dtype=torch.long))
    torch.testing.assert_close(scorer.score(nothing, torch.arange(ITEMS)[None]), scores[:1])


def test_a_history_that_is_too_long_is_cut_to_its_latest_items() -> None:
    whole = list(range(10))
    assert torch.equal(state(ONE, *whole), state(ONE, *whole[-LENGTH:]))
    assert not torch.equal(state(ONE, *whole), state(ONE, *whole[:LENGTH]))


def test_a_longer_window_made_for_another_player_is_cut_at_every_step() -> None:
    window = torch.tensor([[PADDING, 1, 2, 3, 4, 5, 6, 7, 8, 9], [*range(20, 30)]])
    steps = torch.tensor([1, 4, 9, 12, 19])
    found = at_steps(ONE, window, steps)
    seen = [(1,), (1, 2, 3, 4), (4, 5, 6, 7, 8, 9), (20, 21, 22), (24, 25, 26, 27, 28, 29)]
    torch.testing.assert_close(found, torch.stack([state(ONE, *history) for history in seen]))


def test_the_state_at_a_step_is_that_of_a_window_which_begins_alike_and_ends_there() -> None:
    """Positions count from the right, so the same columns must be compared."""
    window = torch.tensor([[1, 2, 3, 4, 5, 6]])
    at_four = at_steps(ONE, window, torch.tensor([3]))[0]
    other = at_steps(ONE, torch.tensor([[1, 2, 3, 4, 30, 31]]), torch.tensor([3]))[0]
    assert torch.equal(at_four, other)


def test_factors_multiply_to_the_scores() -> None:
    context = context_of(ONE, np.array([3, 0, 41]), SPLIT.train.histories)
    states, table = ONE.factors(context)
    torch.testing.assert_close(states @ table.T, ONE.score(context, torch.arange(ITEMS)[None]))


def test_pairs_are_state_and_item_end_to_end() -> None:
    context = context_of(ONE, np.array([3, 0]), SPLIT.train.histories)
    items = torch.tensor([[5, 1, 9], [0, 39, 2]])
    features = ONE.pair_features(context, items)
    torch.testing.assert_close((features[..., :8] * features[..., 8:]).sum(2), ONE.score(context, items))


def test_an_item_is_most_like_itself() -> None:
    alike = ONE.item_similarity(torch.tensor([4, 7]))
    assert alike.argmax(1).tolist() == [4, 7]


def test_heads_must_divide_the_dimension() -> None:
    with pytest.raises(ConfigError, match=r"heads \(3\) must divide embedding_dim \(8\)"):
        attention(heads=3)


def test_distances_are_looked_up_by_how_far_back_a_step_looks() -> None:
    table = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
    first, second = by_distance(table, 3)
    assert first.tolist() == [[1, 0, 0], [2, 1, 0], [3, 2, 1]]
    assert torch.equal(second, 10 * first)


@pytest.mark.parametrize("heads", [1, 2])
def test_a_step_that_looks_at_one_distance_only_sees_that_item(heads: int) -> None:
    """With a huge bias for distance 2, attention gives the value of the item two steps back and no other."""
    scorer = attention(heads=heads, blocks=1)
    with torch.no_grad():
        scorer.blocks[0].distances[2] = 1e4
    # The last item itself goes past attention, and the one two steps back through it.
    same = [state(scorer, *history) for history in ([1, 2, 3, 4, 5, 6], [9, 8, 7, 4, 30, 6])]
    torch.testing.assert_close(*same)
    assert not torch.allclose(same[0], state(scorer, 1, 2, 3, 7, 5, 6))


def test_a_model_of_before_distances_scores_as_it_did() -> None:
    old = {name: value for name, value in ONE.state_dict().items() if not name.endswith("distances")}
    other = attention()
    with torch.no_grad():
        for block in other.blocks:
            block.distances.fill_(3.0)
            block.distances[0] = 0
    assert not torch.equal(state(other, 1, 2, 3), state(ONE, 1, 2, 3))
    other.load_state_dict(old)
    assert torch.equal(state(other, 1, 2, 3), state(ONE, 1, 2, 3))


@pytest.mark.parametrize("pairs", ["catalogue", "sampled"])
def test_a_large_catalogue_is_stepped_by_the_rows_of_a_batch(
    pairs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One batch: the first step of lazy Adam is that of Adam, since other rows have no moments yet.
    settings = TrainingSettings(batch_size=10**6, pairs=pairs, softmax_negatives=5, loss="softmax")

    def trained() -> Attention:
        scorer = attention(dropout=0)
        PlainLearner(TrainingTask(scorer, SPLIT.train, settings, Rng(0))).epoch(1)
        return scorer

    dense, start = trained(), attention(dropout=0)
    for module in ("models.pair_tables", "kernels.softmax_loss"):
        monkeypatch.setattr(f"towpath.{module}.SPARSE_FROM_ROWS", 10)
    sparse = trained()
    assert sparse.items.sparse
    assert not dense.items.sparse
    assert not torch.allclose(sparse.items.weight, start.items.weight, atol=1e-3)
    # A step is 3e-3; where a gradient is next to nothing, Adam makes a part of it of its rounding.
    torch.testing.assert_close(sparse.items.weight, dense.items.weight, atol=2e-4, rtol=0)
