"""Steps by a scorer's own gradients, against the same steps by autograd."""

import pytest
import torch

from small import small_split
from towpath.methods.recipe import Recipe
from towpath.methods.registry import method_named
from towpath.models.registry import build
from towpath.models.scorer import Context, sizes_of
from towpath.rng import Rng
from towpath.training.scored_pairs import added, score_pairs
from towpath.training.task import TrainingTask

SPLIT = small_split()
METHODS = [
    ("ipw", {}),
    ("ipw", {"variant": "unbiased"}),
    ("ipw", {"variant": "squared"}),
    ("ipw", {"variant": "non-negative"}),
    ("adversarial", {"warm_epochs": 1}),
    ("doubly-robust", {}),
    ("causal-embedding", {"treatment_share": 0.4, "pull": 0.1}),
    ("causal-embedding", {"treatment_share": 0.4, "pull": 0.1, "distance": "cosine"}),
]


def trained(method: str, settings: dict[str, object], epochs: int = 2) -> list[torch.Tensor]:
    """All parameters after some epochs, and the loss."""
    recipe = Recipe("mf", method, {"embedding_dim": 4, "batch_size": 64, "clip_norm": 0.5, **settings})
    resolved, rng = recipe.resolve(), Rng(0)
    scorer = build("mf", resolved.model.model_dump(), sizes_of(SPLIT.train))
    scorer.initialise(SPLIT.train, rng)
    task = TrainingTask(scorer, SPLIT.train, resolved.training, rng)
    learner = method_named(method).learner(task, resolved.method)
    loss = [learner.epoch(number)["loss"] for number in range(1, epochs + 1)][-1]
    modules = [learner.scorer, *learner.players().values()]
    return [torch.tensor(loss), *(p.detach() for module in modules for p in module.parameters())]


@pytest.mark.parametrize(("method", "settings"), METHODS)
@pytest.mark.parametrize("sparse", [False, True])
def test_every_method_takes_the_steps_of_autograd(
    method: str, settings: dict[str, object], sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    if sparse:
        monkeypatch.setattr("towpath.models.pair_tables.SPARSE_FROM_ROWS", 1)
    own = trained(method, settings)
    monkeypatch.setattr("towpath.training.scored_pairs.manual_backward", lambda *_: None)
    for ours, theirs in zip(own, trained(method, settings), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_the_graph_ends_at_the_scores_where_the_scorer_knows_its_gradients() -> None:
    pytest.importorskip("numba")
    scorer = build("mf", {"embedding_dim": 4}, sizes_of(SPLIT.train))
    scorer.initialise(SPLIT.train, Rng(0))
    context = Context(torch.tensor([0, 1]), torch.zeros(2, 0, dtype=torch.long))
    scored = score_pairs(scorer, context, torch.tensor([[1, 2], [3, 4]]))
    assert scored.manual is scorer
    assert scored.scores.is_leaf
    found = scored.gradients(scored.scores.square().sum(), 0.1)
    plain, norm = scorer.score_with_norm(context, scored.items)
    parameters = list(found)
    wanted = torch.autograd.grad(plain.square().sum() + 0.1 * norm, parameters)
    for parameter, gradient in zip(parameters, wanted, strict=True):
        torch.testing.assert_close(found[parameter], gradient)


def test_gradients_of_several_parts_are_added() -> None:
    a, b = torch.zeros(2), torch.zeros(3)
    total = added([{a: torch.ones(2)}, {a: torch.ones(2), b: torch.ones(3)}])
    assert total[a].tolist() == [2, 2]
    assert total[b].tolist() == [1, 1, 1]
