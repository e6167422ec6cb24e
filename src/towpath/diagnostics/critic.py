"""A critic fitted to tell two samples of pairs apart, as the g of a transport game is."""

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torch import Tensor, nn

from towpath.diagnostics.wasserstein import Values, critic_distance
from towpath.rng import Rng
from towpath.training.optimiser import Optimiser

HIDDEN, STEPS, LEARNING_RATE = 64, 300, 0.003
# How hard slopes above one are punished, and between how many pairs of points they are looked for in a step.
PENALTY, PROBES = 10.0, 4096


def fitted_critic_distance(first: Values, second: Values, rng: Rng) -> float:
    """What a small network makes of the distance between two samples (m, d): never above the exact one.

    It is trained to be high on the first and low on the second, slopes above one between points are
    punished, and what is left above one is divided out (`critic_distance`).
    """
    points = torch.from_numpy(np.concatenate([first, second])).float()
    sides = ((first, 1.0), (second, -1.0))
    signs = torch.cat([torch.full((len(side),), sign / len(side)) for side, sign in sides])
    network = _network(points.shape[1], rng)
    optimiser = Optimiser([network], LEARNING_RATE)
    draw = rng.torch("critic", "probes")
    for _ in range(STEPS):
        values = network(points)[:, 0]
        optimiser.step(PENALTY * _steepness(values, points, draw) - signs @ values)
    with torch.no_grad():
        values = network(points)[:, 0].double().numpy()
    masses = signs.double().numpy()
    distances = cdist(points.double().numpy(), points.double().numpy())
    return critic_distance(values, masses.clip(min=0), (-masses).clip(min=0), distances)


def _network(width: int, rng: Rng) -> nn.Module:
    """Two layers, started by our own generator."""
    network = nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
    draw = rng.torch("critic", "start")
    with torch.no_grad():
        for parameter in network.parameters():
            fan_in = parameter.shape[1] if parameter.dim() > 1 else width
            parameter.uniform_(-(fan_in**-0.5), fan_in**-0.5, generator=draw)
    return network


def _steepness(values: Tensor, points: Tensor, draw: torch.Generator) -> Tensor:
    """The mean square of what slopes between random points exceed one by."""
    one, other = torch.randint(len(points), (2, PROBES), generator=draw)
    apart = (points[one] - points[other]).norm(dim=1)
    slopes = (values[one] - values[other]).abs() / apart.clamp(min=1e-6)
    return torch.where(apart > 0, (slopes - 1).clamp(min=0), 0.0).square().mean()
