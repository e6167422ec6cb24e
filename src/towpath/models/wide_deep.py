"""Wide and deep learning (Cheng et al. 2016) over ids, side features and the item on the page."""

from dataclasses import dataclass, replace

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import embedding

from towpath.data.features import FeatureSchema
from towpath.data.interactions import PADDING, Interactions
from towpath.errors import ConfigError, unknown_name
from towpath.kernels.inner_products import inner_products, usable
from towpath.models.item_table import ItemRate, ItemStart
from towpath.models.pair_tables import PairTables, mean_norm
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.models.side_inputs import SideInputs
from towpath.models.tower import Tower
from towpath.rng import Rng

# A user of whom nothing is known stands at the mean of so many users, which is the mean of all, nearly.
_USERS_OF_A_MEAN = 4096
PAGE = "page."


class WideDeepSettings(Settings):
    """Settings of wide and deep learning."""

    embedding_dim: int = Field(32, ge=1, description="Length of the user and item vectors.")
    side_dim: int = Field(8, ge=1, description="Length of the vectors of each categorical side feature.")
    hidden: tuple[int, ...] = Field(
        (128, 64, 32), min_length=1, description="Widths of the hidden layers of the deep part."
    )
    side_features: bool = Field(
        True, description="Whether user and item features are used where the data have them."
    )
    page: bool = Field(
        True,
        description="Whether the user's latest item (the one on the page) is an input; similar items are "
        "then those that score best after it.",
    )
    crosses: str = Field(
        "all",
        description="Pairs of features whose values together have a weight in the wide part, such as "
        "`gender*genres,page.genres*genres` (left of the user or of the item on the page, right of the "
        "item); `all`, or `none`.",
    )
    cross_values: int = Field(
        100,
        ge=1,
        description="How many of a feature's most frequent values have crosses of their own; the others "
        "share one.",
    )
    init_std: float = Field(0.1, gt=0, description="Standard deviation of the vectors' random start.")
    item_start: ItemStart = "random"
    item_rate: ItemRate = 1.0


@dataclass(frozen=True)
class Part:
    """What one side adds to each score: to the first layer (..., h), to the sum (...), and to crosses."""

    first: Tensor
    weight: Tensor
    crossed: Tensor  # (..., i): indicators of an item, or what a context gives to each of them
    who: Tensor | None = None  # (b,): which of these rows each context of a batch has; None: one each

    def spread(self) -> "Part":
        """The same with a row for each context."""
        if self.who is None:
            return self
        return Part(*(values[self.who] for values in (self.first, self.weight, self.crossed)))


class WideDeep(Scorer):
    """score(u, i) = wide + deep

        wide = w_u + w_i + sum of the weights of single features + c_(u,page)' W c_i
        deep = tower(A x_u + B x_i + C x_page + b)

    x: an id's vector and those of its features end to end, multi-valued ones as their mean. c: indicators of
    feature values, so that W has one weight for each pair of values, of which any number may meet. Everything
    that belongs to one side is computed once for it, and the catalogue is scored by matrix products.
    """

    settings_type = WideDeepSettings
    settings: WideDeepSettings
    crossed: Tensor

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        own = self.settings
        schema = (sizes.features if own.side_features else None) or FeatureSchema()
        self.history_length = 1 if own.page else 0
        self.tables = PairTables(sizes, own.embedding_dim)
        self.weights = PairTables(sizes, 1)
        self.user_side = SideInputs(schema.users, sizes.users, own.side_dim, own.cross_values)
        self.item_side = SideInputs(schema.items, sizes.items, own.side_dim, own.cross_values)
        user, item = (own.embedding_dim + side.width for side in (self.user_side, self.item_side))
        self.of_user = nn.Linear(user, own.hidden[0])
        self.of_item = nn.Linear(item, own.hidden[0], bias=False)
        self.of_page = nn.Linear(item, own.hidden[0], bias=False) if own.page else None
        self.tower = Tower(own.hidden)
        self.register_buffer("crossed", self._crossed(schema), persistent=False)
        self.cross_weights = nn.Parameter(torch.zeros_like(self.crossed))

    def _crossed(self, schema: FeatureSchema) -> Tensor:
        """1 where the value on the left (user, then page) is crossed with that on the right, else 0."""
        users, items = self.user_side.indicators, self.item_side.indicators
        left = dict(zip(schema.users.labels, users, strict=True))
        if self.settings.page:
            left |= {PAGE + name: count for name, count in zip(schema.items.labels, items, strict=True)}
        right = dict(zip(schema.items.labels, items, strict=True))
        wanted = _wanted(self.settings.crosses, list(left), list(right))
        rows = [
            torch.cat(
                [torch.zeros(a, 0), *(torch.full((a, c), float((x, y) in wanted)) for y, c in right.items())],
                1,
            )
            for x, a in left.items()
        ]
        return torch.cat([torch.zeros(0, sum(right.values())), *rows])

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Take in the features, draw vectors and layers; all weights of the wide part start at zero."""
        own = self.settings
        self.remarks = self.tables.initialise(train, rng, own.item_start, own.init_std)
        self.user_side.initialise(train.user_features, rng, "user features", own.init_std)
        self.item_side.initialise(train.item_features, rng, "item features", own.init_std)
        layers = [layer for layer in (self.of_user, self.of_item, self.of_page) if layer is not None]
        inputs = sum(layer.in_features for layer in layers)
        bound = (6 / (inputs + own.hidden[0])) ** 0.5  # Glorot's, as if they were one layer
        with torch.no_grad():
            for place, layer in enumerate(layers):
                layer.weight.uniform_(-bound, bound, generator=rng.torch("initialise", "first", place))
            for zero in (self.of_user.bias, self.weights.users.weight, self.weights.items.weight):
                zero.zero_()
            self.cross_weights.zero_()
        self.tower.initialise(rng)

    def rates(self) -> dict[str, float]:
        """The item vectors may have a rate of their own."""
        return {"tables.items.weight": self.settings.item_rate}

    def score(self, context: Context, items: Tensor) -> Tensor:
        """The sum of both parts."""
        return self.score_with_norm(context, items)[0]

    def score_with_norm(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and the mean squared length of the vectors of user and item."""
        users = self.tables.users_once(context.users)
        left = replace(self._of_users(users.users, users.vectors), who=users.places)
        left = self._of_context(left, _page(context))
        once = self.tables.items_once(items)
        if once is None:  # somebody wants to hear of every pair
            item = self.tables.items(items)
            return self._together(left, self._of_items(items, item)), mean_norm(users.vectors, item)
        right = self._of_items(once.items, once.vectors)
        norm = users.mean(users.vectors.square().sum(1)) + once.mean(once.vectors.square().sum(1))
        return self._together(left, right, once.places), norm

    def _together(self, left: Part, right: Part, places: Tensor | None = None) -> Tensor:
        """Scores (b, k) of contexts (b, ...) and items: (n, ...), as `Tower.of_parts` takes them."""
        deep = self.tower.of_parts(left.first, right.first, places, left.who)
        return deep + self._wide(left, right, places)

    def _wide(self, left: Part, right: Part, places: Tensor | None) -> Tensor:
        """What the weights of both sides and of crosses add to the scores: (b, k)."""
        together = places is not None and usable(left.first, right.first)
        left = left if together else left.spread()
        user, item = left.weight[:, None], right.weight
        if right.crossed.dim() == 3:
            return user + item + torch.einsum("bc,bkc->bk", left.crossed, right.crossed)
        if places is None:
            return user + item + left.crossed @ right.crossed.T
        if not together:
            return user + embedding(places, item[:, None])[..., 0] + _crosses(left, right, places)
        tables = torch.cat([left.crossed, user], dim=1), torch.cat([right.crossed, item[:, None]], dim=1)
        who = torch.arange(len(user)) if left.who is None else left.who
        return inner_products(*tables, who, places, torch.zeros(()))[0]

    def _of_users(self, users: Tensor, vectors: Tensor) -> Part:
        """The part of users (b,) whose vectors have been looked up."""
        side, weight, indicators = self.user_side(users)
        first = self.of_user(_end_to_end(vectors, side))
        crossed = indicators @ self._weights_of_crosses()[: indicators.shape[1]]
        return Part(first, weight + self.weights.users(users)[:, 0], crossed)

    def _of_items(self, items: Tensor, vectors: Tensor) -> Part:
        """The part of items (b, k) or (k,) whose vectors have been looked up."""
        side, weight, indicators = self.item_side(items)
        first = self.of_item(_end_to_end(vectors, side))
        return Part(first, weight + self.weights.items(items)[..., 0], indicators)

    def _of_context(self, user: Part, page: Tensor | None) -> Part:
        """The part of users on a page (b,): PADDING where there is none; `user` may be one for all."""
        if page is None or self.of_page is None:
            return user
        user = user.spread()
        there = (page != PADDING)[:, None]
        items = page.clamp(min=0)
        side, _, indicators = self.item_side(items)
        first = self.of_page(_end_to_end(self.tables.items(items), side))
        crossed = (
            indicators @ self._weights_of_crosses()[-indicators.shape[1] :] if indicators.shape[1] else 0
        )
        return Part(user.first + first * there, user.weight, user.crossed + crossed * there)

    def _weights_of_crosses(self) -> Tensor:
        return self.cross_weights * self.crossed

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """The vectors of user and item end to end."""
        return self.tables.pair_features(context, items)

    def item_similarity(self, items: Tensor) -> Tensor:
        """Scores of everything on the page of each item, for a user at the mean of all; cosine without pages.

        (b, n_items)
        """
        if self.of_page is None:
            return self.tables.item_similarity(items)
        some = torch.linspace(0, self.sizes.users - 1, min(self.sizes.users, _USERS_OF_A_MEAN)).long()
        users = self._of_users(some.to(items.device), self.tables.users(some.to(items.device)))
        mean = Part(*(values.mean(0, keepdim=True) for values in (users.first, users.weight, users.crossed)))
        every = torch.arange(self.sizes.items, device=items.device)
        left = self._of_context(mean, items)
        return self._together(left, self._of_items(every, self.tables.items(every)))


def _end_to_end(vectors: Tensor, side: Tensor) -> Tensor:
    return torch.cat([vectors, side], dim=-1) if side.shape[-1] else vectors


def _crosses(left: Part, right: Part, places: Tensor) -> Tensor:
    """Inner products of what the contexts give to the indicators of items with the indicators: (b, k)."""
    return torch.einsum("bc,bkc->bk", left.crossed, embedding(places, right.crossed))


def _page(context: Context) -> Tensor | None:
    """The latest item of each instance (b,); None where no history was asked for."""
    if context.steps is not None:
        return context.histories.flatten()[context.steps]
    return context.histories[:, -1] if context.histories.shape[1] else None


def _wanted(crosses: str, left: list[str], right: list[str]) -> set[tuple[str, str]]:
    """The pairs of features that the setting asks for."""
    if crosses in ("all", "none"):
        return {(x, y) for x in left for y in right} if crosses == "all" else set()
    pairs = [tuple(name.strip() for name in pair.split("*")) for pair in crosses.split(",")]
    for pair in pairs:
        if len(pair) != 2:
            raise ConfigError(
                "crosses should be all, none, or pairs such as gender*genres with commas between them, but "
                f"{'*'.join(pair)!r} came."
            )
        for name, known in zip(pair, (left, right), strict=True):
            if name not in known:
                raise unknown_name("feature to cross", name, known)
    return {(x, y) for x, y in pairs}
