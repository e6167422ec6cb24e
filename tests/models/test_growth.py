"""New rows of a table start where their features put them."""

import numpy as np
import pytest
import torch

from towpath.data.features import Feature, FeatureTable, Labels, pack
from towpath.models.growth import SideFeatures, take_over
from towpath.models.registry import build
from towpath.models.scorer import Scorer, Sizes

KNOWN = 200
KIND = Feature("kind", "categorical", ("a", "b"))


def items_of(kinds: list[str | None], price: list[float]) -> FeatureTable:
    """Items of these kinds, None where nothing is known."""
    given = [(row, "ab".index(kind)) for row, kind in enumerate(kinds) if kind]
    labels = Labels(*np.array(given, dtype=np.int64).T)
    return pack((KIND, Feature("price", "numeric")), len(kinds), [labels], [np.array(price)])


def factorization(items: int) -> Scorer:
    scorer = build("mf", {"embedding_dim": 2}, Sizes(5, items))
    with torch.no_grad():
        scorer.users.weight.fill_(0.5)
        scorer.items.weight.zero_()
    return scorer


def learned(noise: float = 0.01) -> Scorer:
    """Items of kind a at (1, 0) and of kind b at (0, 1), with a bias of twice their price."""
    old, rng = factorization(KNOWN), np.random.default_rng(0)
    table = np.zeros((KNOWN, 3))
    table[0::2, 0] = table[1::2, 1] = 1
    table[:, 2] = 2 * prices()
    with torch.no_grad():
        old.items.weight.copy_(torch.from_numpy(table + noise * rng.normal(size=table.shape)))
    return old


def prices() -> np.ndarray:
    values = np.random.default_rng(1).normal(size=KNOWN)
    return (values - values.mean()) / values.std()


def test_new_items_start_from_their_features() -> None:
    old, new = learned(), factorization(KNOWN + 4)
    kinds = ["a", "b"] * (KNOWN // 2) + ["a", "b", None, "a"]
    features = items_of(kinds, [*prices(), 0.0, 0.0, np.nan, 1.0])
    take_over(old, new, SideFeatures(items=features))
    assert torch.equal(new.items.weight[:KNOWN], old.items.weight)
    a, b, unknown, dear = new.items.weight[KNOWN:].detach()
    assert a.tolist() == pytest.approx([1, 0, 0], abs=0.1)
    assert b.tolist() == pytest.approx([0, 1, 0], abs=0.1)
    assert torch.allclose(unknown, old.items.weight.mean(0))
    assert dear.tolist() == pytest.approx([1, 0, 2], abs=0.15)
    assert torch.equal(new.users.weight, old.users.weight)


def test_without_features_new_items_start_at_the_mean() -> None:
    old, new = learned(), factorization(KNOWN + 2)
    take_over(old, new)
    assert torch.allclose(new.items.weight[KNOWN:], old.items.weight.mean(0).expand(2, 3))


def test_where_there_are_as_many_users_as_items_the_name_of_a_table_tells_them_apart() -> None:
    old, new = (build("mf", {"embedding_dim": 2}, Sizes(n, n)) for n in (KNOWN, KNOWN + 1))
    with torch.no_grad():
        for table in (old.users, old.items):
            table.weight.copy_(learned().items.weight)
    features = items_of(["a", "b"] * (KNOWN // 2) + ["a"], [*prices(), 0.0])
    take_over(old, new, SideFeatures(items=features))
    assert new.items.weight[KNOWN].tolist() == pytest.approx([1, 0, 0], abs=0.1)
    assert torch.allclose(new.users.weight[KNOWN], old.users.weight.mean(0))
