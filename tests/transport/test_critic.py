"""A critic on frozen vectors against the exact Wasserstein distance."""

import ot
import pytest
import torch

from towpath.models.registry import build
from towpath.models.scorer import Context, Sizes
from towpath.rng import Rng
from towpath.transport.critic import ModelCritic
from towpath.transport.frozen import FrozenFeatures
from towpath.transport.game_batch import CandidatePairs, GameBatch
from towpath.transport.lipschitz import Control, GradientPenalty, MaxNorm, gradient_lengths
from towpath.transport.objective import transport_gap

POINTS = 50


def fifty_pairs() -> tuple[FrozenFeatures, GameBatch, torch.Tensor]:
    """Fifty pairs of a frozen factorisation, one measure uniform, the other on ten of them."""
    source = build("mf", {"embedding_dim": 4, "init_std": 1.0}, Sizes(POINTS, POINTS))
    from small import small_split

    source.initialise(small_split(users=POINTS, items=POINTS).train, Rng(0))
    frozen = FrozenFeatures(source, anchors=POINTS)
    frozen.anchor_users.copy_(torch.arange(POINTS))
    frozen.anchor_items.copy_(torch.arange(POINTS).flip(0))
    frozen.take(source)
    context = Context(torch.arange(POINTS), torch.zeros(POINTS, 0, dtype=torch.long))
    items = torch.arange(POINTS).flip(0)[:, None]
    pairs = CandidatePairs(context, items, torch.zeros(POINTS, 1))
    mass_f = torch.zeros(POINTS, 1)
    mass_f[::5] = 0.1
    flat = torch.ones(POINTS, 1)
    mass_w = flat / POINTS
    return frozen, GameBatch(pairs, flat, flat, flat.bool(), mass_f, pairs, mass_f), mass_w


def exact_distance(frozen: FrozenFeatures, table: GameBatch, mass_w: torch.Tensor) -> float:
    places = frozen.features(table.pairs.context, table.pairs.items)[:, 0].double()
    costs = torch.cdist(places, places).numpy()
    a, b = (m[:, 0].double().numpy() for m in (mass_w, table.mass_f))
    return float(ot.emd2(a / a.sum(), b / b.sum(), costs))


def value(critic: ModelCritic, table: GameBatch, mass_w: torch.Tensor) -> float:
    with torch.no_grad():
        return float(transport_gap(critic(table.pairs), mass_w, critic(table.deployed), table.mass_f))


def test_the_critic_stays_below_the_distance_and_comes_within_five_per_cent() -> None:
    frozen, table, mass_w = fifty_pairs()
    distance = exact_distance(frozen, table, mass_w)
    critic = ModelCritic(frozen, Control(), learning_rate=0.01, bound=1e4)
    values = []
    for step in range(400):
        critic.respond(table, mass_w)
        if step % 50 == 49:
            values.append(value(critic, table, mass_w))
    assert max(values) <= 1.001 * distance
    assert values[-1] >= 0.95 * distance


def test_the_critic_is_one_lipschitz_whatever_its_heights() -> None:
    frozen, table, _ = fifty_pairs()
    with torch.no_grad():
        frozen.heights.normal_(0, 3, generator=torch.Generator().manual_seed(0))
        values = frozen.score(table.pairs.context, table.pairs.items)[:, 0]
        places = frozen.features(table.pairs.context, table.pairs.items)[:, 0]
    rises = (values[:, None] - values[None, :]).abs()
    assert (rises <= torch.cdist(places, places) + 1e-4).all()


def model_critic(control: Control, bound: float = 4.0) -> tuple[ModelCritic, GameBatch, torch.Tensor]:
    _, table, mass_w = fifty_pairs()
    model = build("mf", {"embedding_dim": 4, "init_std": 0.3}, Sizes(POINTS, POINTS))
    from small import small_split

    model.initialise(small_split().train, Rng(2))
    return ModelCritic(model, control, learning_rate=0.05, bound=bound), table, mass_w


def test_max_norm_bounds_rows_range_and_steepness() -> None:
    critic, table, mass_w = model_critic(MaxNorm(2.0))
    for _ in range(300):
        critic.respond(table, mass_w)
    rows = torch.cat([critic.scorer.users.weight, critic.scorer.items.weight]).norm(dim=1)
    assert rows.max() <= 2.0 + 1e-5
    assert critic(table.pairs).abs().max() <= 4.0
    assert critic.steepness(table) <= (2 * (2.0**2 + 1)) ** 0.5 + 1e-5


def test_a_gradient_penalty_holds_the_steepness_down() -> None:
    steepness = {}
    for control in (Control(), GradientPenalty()):
        critic, table, mass_w = model_critic(control, bound=1e4)
        for _ in range(300):
            critic.respond(table, mass_w)
        steepness[type(control).__name__] = critic.steepness(table)
    assert steepness["GradientPenalty"] < 1.5 < steepness["Control"]


def test_gradient_lengths_by_hand() -> None:
    critic, table, _ = model_critic(Control())
    users, items = critic.scorer.users.weight[:, :-1], critic.scorer.items.weight[:, :-1].flip(0)
    expected = (users.square().sum(1) + items.square().sum(1) + 2).sqrt()  # two biases of slope one
    critic.bound = 1e4
    lengths = gradient_lengths(critic, table.pairs, create_graph=False)
    assert lengths.tolist() == pytest.approx(expected.tolist(), rel=1e-3)
