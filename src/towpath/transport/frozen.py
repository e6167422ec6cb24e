"""A critic on vectors that stay where they are, so that distance means the same from first to last."""

import copy
import itertools

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from towpath.data.interactions import Interactions
from towpath.models.scorer import Context, Scorer
from towpath.rng import Rng

_HIDDEN = 64


class FrozenFeatures(Scorer):
    """A 1-Lipschitz network on the standardised pair vectors of a frozen model.

    The only critic model whose value can be held against an exact Wasserstein distance: every layer has
    spectral norm one and the features no longer move.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, source: Scorer) -> None:
        super().__init__(source.settings, source.sizes)
        self.source = copy.deepcopy(source).requires_grad_(False)
        nobody = Context(torch.zeros(1, dtype=torch.long), torch.zeros(1, 0, dtype=torch.long))
        width = source.pair_features(nobody, torch.zeros(1, 1, dtype=torch.long)).shape[2]
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(()))
        sizes = [width, _HIDDEN, _HIDDEN, 1]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Draw the network; every layer is then held at spectral norm one."""
        for n, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)
            nn.init.orthogonal_(layer.weight, generator=rng.torch("initialise", "frozen", n))
            nn.init.zeros_(layer.bias)
            parametrizations.spectral_norm(layer, n_power_iterations=3)

    def take(self, source: Scorer) -> None:
        """Freeze the vectors that `source` has now, and standardise by one scale, which keeps distances."""
        self.source.load_state_dict(source.state_dict())
        with torch.no_grad():
            some = torch.arange(min(self.sizes.users, 2048))
            context = Context(some, torch.zeros(len(some), 0, dtype=torch.long))
            items = torch.arange(len(some))[:, None] % self.sizes.items
            features = self.features(context, items, raw=True).reshape(-1, len(self.mean))
            self.mean.copy_(features.mean(0))
            self.scale.copy_((features - self.mean).square().sum(1).mean().sqrt())

    def features(self, context: Context, items: Tensor, *, raw: bool = False) -> Tensor:
        """Where each pair lies in the frozen space, (b, k, p); root mean square length one unless raw."""
        vectors = self.source.pair_features(context, items)
        return vectors if raw else (vectors - self.mean) / self.scale

    def score(self, context: Context, items: Tensor) -> Tensor:
        """The network's value of each pair."""
        hidden = self.features(context, items)
        for n, layer in enumerate(self.layers):
            hidden = layer(hidden if n == 0 else group_sort(hidden))
        return hidden[:, :, 0]


def group_sort(values: Tensor) -> Tensor:
    """Each pair of neighbours in the last dimension in ascending order.

    A 1-Lipschitz nonlinearity that keeps lengths (Anil et al. 2019); with rectifiers a norm-bounded network
    cannot come near the best critic.

    >>> group_sort(torch.tensor([3.0, 1.0, 2.0, 5.0]))
    tensor([1., 3., 2., 5.])
    """
    pairs = values.reshape(*values.shape[:-1], -1, 2)
    return torch.cat([pairs.amin(-1, keepdim=True), pairs.amax(-1, keepdim=True)], dim=-1).flatten(-2)
