import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from small import small_split
from towpath.models.registry import build
from towpath.models.scorer import Sizes
from towpath.rng import Rng
from towpath.training.batches import make_batches
from towpath.training.candidates import CandidateSampler, inclusion_chances
from towpath.training.settings import TrainingSettings

SPLIT = small_split()
CPU = torch.device("cpu")


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40), st.data())
@settings(max_examples=50, deadline=None)
def test_chances_sum_to_the_size_of_the_sample_and_keep_to_the_weights(
    weights: list[float], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(weights)))
    chances = inclusion_chances(np.array(weights), k)
    assert chances.sum() == pytest.approx(k)
    assert ((chances > 0) & (chances <= 1)).all()
    ratios = (chances / np.array(weights))[chances < 1]
    np.testing.assert_allclose(ratios, ratios[:1].repeat(len(ratios)))


def test_each_item_is_drawn_as_often_as_its_chance_says_and_never_twice() -> None:
    sampler, generator, draws = CandidateSampler(SPLIT.train, 15, CPU), np.random.default_rng(0), 4_000
    seen = np.zeros(SPLIT.train.n_items)
    for _ in range(draws):
        drawn = sampler.draw(generator)
        assert (np.diff(drawn.items.numpy()) > 0).all()
        assert len(drawn.items) == 15
        np.testing.assert_allclose(drawn.log_chances.exp(), sampler.chances[drawn.items], rtol=1e-6)
        seen[drawn.items] += 1
    error = np.sqrt(sampler.chances * (1 - sampler.chances) / draws)
    assert (np.abs(seen / draws - sampler.chances) <= 4.5 * error + 1e-12).all()
    popular = np.bincount(SPLIT.train.items, minlength=SPLIT.train.n_items)
    assert sampler.chances[popular.argmax()] > 1.2 * sampler.chances[popular.argmin()]


def test_the_sum_over_a_sample_is_right_on_average() -> None:
    sampler, generator = CandidateSampler(SPLIT.train, 15, CPU), np.random.default_rng(0)
    exponentials = torch.linspace(-2, 2, SPLIT.train.n_items).exp()
    found = [
        float((exponentials[drawn.items] / drawn.log_chances.exp()).sum())
        for drawn in (sampler.draw(generator) for _ in range(2_000))
    ]
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - float(exponentials.sum())) < 4 * error


@pytest.mark.parametrize(("negatives", "drawn"), [(0, None), (10, 10), (39, 39), (40, None), (500, None)])
def test_a_batch_has_candidates_where_they_are_fewer_than_all_items(
    negatives: int, drawn: int | None
) -> None:
    scorer = build("attention", {"embedding_dim": 8}, Sizes(SPLIT.train.n_users, SPLIT.train.n_items))
    softmax = TrainingSettings(loss="softmax", pairs="catalogue", softmax_negatives=negatives, batch_size=99)
    batches = make_batches(SPLIT.train, scorer, softmax)
    first, second = ([batch.candidates for batch in batches.epoch(1, Rng(0))] for _ in range(2))
    assert len(first) > 1
    if drawn is None:
        assert first == [None] * len(first)
        return
    for one, again in zip(first, second, strict=True):
        assert one is not None
        assert again is not None
        assert len(one.items) == drawn
        assert torch.equal(one.items, again.items)
    assert not torch.equal(first[0].items, first[1].items)
