"""A critic on vectors that stay where they are, so that distance means the same from first to last."""

import copy

import torch
from torch import Tensor, nn

from towpath.data.interactions import PADDING, Interactions
from towpath.models.capabilities import with_pair_features
from towpath.models.scorer import Context, Scorer
from towpath.rng import Rng

_ANCHORS = 256


class FrozenFeatures(Scorer):
    """The lowest of cones that stand on anchor pairs in the space of a frozen model's pair vectors.

        g(z) = min over anchors j of (height_j + |z - z_j|)

    Whatever the heights, g is exactly 1-Lipschitz, and with an anchor on every point it can be the best
    critic there is: the one critic model whose value can be held against an exact Wasserstein distance.
    """

    anchor_users: Tensor  # (anchors,)
    anchor_items: Tensor  # (anchors,)
    anchor_histories: (
        Tensor  # (anchors, h) what the users had interacted with before, as far as the source looks back
    )
    scale: Tensor

    def __init__(self, source: Scorer, anchors: int = _ANCHORS) -> None:
        super().__init__(source.settings, source.sizes)
        self.source = copy.deepcopy(source).requires_grad_(False).eval()  # without dropout
        self.heights = nn.Parameter(torch.zeros(anchors))
        self.register_buffer("anchor_users", torch.zeros(anchors, dtype=torch.long))
        self.register_buffer("anchor_items", torch.zeros(anchors, dtype=torch.long))
        nothing = torch.full((anchors, source.history_length), PADDING)
        self.register_buffer("anchor_histories", nothing)
        self.register_buffer("scale", torch.ones(()))

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Choose the anchors: random users, each with an item interacted with or not, half and half."""
        generator, count = rng.numpy("initialise", "anchors"), len(self.heights)
        rows = generator.integers(len(train), size=count)
        items = train.items[rows]
        items[::2] = generator.integers(train.n_items, size=len(items[::2]))
        self.anchor_users.copy_(torch.from_numpy(train.users[rows]))
        self.anchor_items.copy_(torch.from_numpy(items))
        past = torch.from_numpy(train.histories.padded_before(rows, self.source.history_length))
        self.anchor_histories[:, self.anchor_histories.shape[1] - past.shape[1] :] = past

    def take(self, source: Scorer) -> None:
        """Freeze the vectors that `source` has now; one scale for all keeps their proportions."""
        self.source.load_state_dict(source.state_dict())
        with torch.no_grad():
            places = self._anchors()
            self.scale.copy_((places - places.mean(0)).square().sum(1).mean().sqrt().clamp(min=1e-6))

    def features(self, context: Context, items: Tensor) -> Tensor:
        """Where each pair lies, (b, k, p); the anchors lie about one away from their centre."""
        return with_pair_features(self.source).pair_features(context, items) / self.scale

    def score(self, context: Context, items: Tensor) -> Tensor:
        """The height of the lowest cone above each pair."""
        anchors = self._anchors() / self.scale
        places = self.features(context, items)
        distances = torch.cdist(places.reshape(-1, places.shape[2]), anchors)  # (b k, anchors)
        return (distances + self.heights).amin(1).view(places.shape[:2])

    def _anchors(self) -> Tensor:
        """The source's vectors of the anchors, unscaled: (anchors, p)."""
        context = Context(self.anchor_users, self.anchor_histories)
        return with_pair_features(self.source).pair_features(context, self.anchor_items[:, None])[:, 0]
