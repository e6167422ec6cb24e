import pytest
import torch

from towpath.kernels.heads import Tables, head_logits
from towpath.models.registry import build
from towpath.models.scorer import Context, Sizes
from towpath.transport.impressions.deploy import compress, fill, sum_of_members

USERS, ITEMS, MEMBERS, DIM, HEADS = 20, 15, 2, 3, 3


def tables() -> Tables:
    rng = torch.Generator().manual_seed(0)
    width = MEMBERS * (DIM + HEADS)
    return Tables(
        *(torch.randn(*s, generator=rng) for s in ((USERS, width), (ITEMS, width), (HEADS, MEMBERS)))
    )


@pytest.mark.parametrize(("rank", "exact"), [(8, True), (6, True), (2, False)])
def test_a_factorisation_scores_what_the_weighted_heads_do(rank: int, exact: bool) -> None:
    weights = torch.tensor([[0.5, -1.0], [-0.2, 0.3], [0.0, 0.1]])
    users, items = torch.arange(USERS), torch.arange(ITEMS).expand(USERS, ITEMS)
    logits, _ = head_logits(tables(), users, items)
    wanted = (logits * weights).sum((2, 3))
    scorer = build("mf", {"embedding_dim": rank}, Sizes(USERS, ITEMS))
    lost = fill(scorer, sum_of_members(tables(), weights))
    with torch.no_grad():
        found = scorer.score(Context(users, torch.empty(USERS, 0, dtype=torch.long)), items[:1])
    if exact:
        assert lost < 1e-6
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    else:
        product = sum_of_members(tables(), weights)
        whole = (product.users @ product.items.T).square().sum()
        assert lost == pytest.approx(float((found - wanted).square().sum() / whole), rel=1e-3)


def test_what_is_lost_is_the_least_that_a_rank_can_lose() -> None:
    x, y = tables().users, tables().items
    users, items, lost = compress(x, y, 3)
    left, values, right = torch.linalg.svd(x @ y.T)
    best = left[:, :3] * values[:3] @ right[:3]
    torch.testing.assert_close(users @ items.T, best, rtol=1e-3, atol=1e-3)
    assert lost == pytest.approx(float(values[3:].square().sum() / values.square().sum()), rel=1e-4)
