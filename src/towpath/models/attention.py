"""Causal self-attention over a user's history (SASRec, Kang and McAuley 2018)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from towpath.data.interactions import PADDING, Histories, Interactions
from towpath.models.dropout import Dropout
from towpath.models.packed import Layout, lay_out
from towpath.models.pair_tables import table_of
from towpath.models.scorer import Context, Scorer, Settings, Sizes
from towpath.rng import Rng

# Steps that are encoded at once where only the last states are asked for: what they need stays in cache.
_STEPS_AT_ONCE = 4096


class AttentionSettings(Settings):
    """Settings of self-attention over histories."""

    embedding_dim: int = Field(64, ge=1, description="Length of the item vectors and of every state.")
    history_length: int = Field(200, ge=1, description="How many of a user's latest items are used.")
    blocks: int = Field(2, ge=1, description="Blocks of attention and feed-forward layers.")
    heads: int = Field(2, ge=1, description="Heads of attention in each block; must divide embedding_dim.")
    feedforward: int = Field(2, ge=1, description="Width of a feed-forward layer, in embedding_dim.")
    relative_positions: bool = Field(
        True,
        description="Learn for each distance how much attention prefers items that lie so far back; false: "
        "positions alone, as in the SASRec paper.",
    )
    dropout: float = Field(
        0.2, ge=0, lt=1, description="Share of numbers set to zero while training, to the nearest 1/256."
    )

    @model_validator(mode="after")
    def _heads_fit(self) -> "AttentionSettings":
        if self.embedding_dim % self.heads:
            raise ValueError(
                f"heads ({self.heads}) must divide embedding_dim ({self.embedding_dim}); change one of them"
            )
        return self


class Attention(Scorer):
    """score(u, i) = <h, e_i>: h is the state after the last item of u's history, e the table of item vectors.

        x = sqrt(d) e_history + position          positions count back from the latest item
        x = x + attention(norm(x))                each step sees itself and the steps before it, by
                                                  softmax(<q, k> / sqrt(d) + r) with r for each distance
        x = x + feedforward(norm(x))              as many blocks as set
        h = norm(x)

    The user's code is not looked at: a user is their history, so new events count without training.
    A history longer than history_length is cut to its latest items.
    """

    settings_type = AttentionSettings
    settings: AttentionSettings
    suited_training: ClassVar[Mapping[str, Any]] = {
        "loss": "softmax",
        "pairs": "catalogue",
        "softmax_negatives": 1024,
        "softmax_items": "unseen",
        "batch_size": 1024,
        "learning_rate": 3e-3,
        "l2": 0.0,
        "epochs": 40,
        "final_lr_factor": 0.0,
        "patience": 20,
    }
    suited_pairwise: ClassVar[Mapping[str, Any]] = {
        "loss": "logistic",
        "pairs": "sampled",
        "learning_rate": 1e-3,
    }
    trains_on_sequences = True

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__(settings, sizes)
        dim = self.settings.embedding_dim
        self.history_length = self.settings.history_length
        self.items = table_of(sizes.items, dim)
        self.positions = nn.Parameter(torch.zeros(self.history_length, dim))
        self.dropout = Dropout(self.settings.dropout)
        self.blocks = nn.ModuleList(_Block(self.settings) for _ in range(self.settings.blocks))
        self.norm = nn.LayerNorm(dim)

    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Draw every matrix; offsets start at zero and gains at one."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.ndim == 1:
                    parameter.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
                    continue
                if name.endswith("distances"):
                    parameter.zero_()
                    continue
                table = parameter is self.items.weight or parameter is self.positions
                std = 0.02 if table else parameter.shape[1] ** -0.5
                parameter.normal_(0, std, generator=rng.torch("initialise", name))
        for name, module in self.named_modules():
            if isinstance(module, Dropout):
                module.initialise(rng, name)

    def states(self, context: Context) -> Tensor:
        """The state of each instance, after the items that it has seen: (b, d)."""
        histories, steps = context.histories, context.steps
        if steps is None:
            return self._last_states(histories[:, -self.history_length :])
        if histories.shape[1] > self.history_length:  # made for another player, who looks back further
            return self._last_states(_own_histories(histories, steps, self.history_length))
        layout = replace(lay_out(histories), slice_of=context.slice_of)
        return self._encode(self._look_up(histories), layout)[layout.packed[steps]]

    def _last_states(self, histories: Tensor) -> Tensor:
        """The states after whole sequences (s, h), some sequences at a time: (s, d)."""
        if histories.shape[1] == 0:
            histories = histories.new_full((len(histories), 1), PADDING)
        some = max(1, _STEPS_AT_ONCE // histories.shape[1])
        vectors = torch.split(self._look_up(histories), some)
        layouts = [lay_out(part) for part in torch.split(histories, some)]
        encoded = [self._encode(v, layout, last=True) for v, layout in zip(vectors, layouts, strict=True)]
        return torch.cat(encoded)

    def _look_up(self, histories: Tensor) -> Tensor:
        """The vectors of the items of all sequences, padding too: (s, h, d)."""
        # One look-up with a row for each sequence, which the critics' gradient penalty listens to.
        vectors: Tensor = self.items(histories.clamp(min=0))
        return vectors

    def _encode(self, vectors: Tensor, layout: Layout, *, last: bool = False) -> Tensor:
        """The states after every step of sequences whose items have these vectors (s, h, d): (n, d).

        With `last`, after the last step of each alone: (s, d).
        """
        items = functional.embedding(layout.steps, vectors.flatten(0, 1)) * self.settings.embedding_dim**0.5
        positions = functional.embedding(layout.columns, self.positions[-vectors.shape[1] :])
        values = self.dropout(items + positions, layout.slice_of) * layout.real
        for block in self.blocks[:-1]:
            values = block(values, layout)
        # What the other steps come out as is asked for by nobody, and costs almost the whole block.
        values = self.blocks[-1](values, layout, layout.last if last else None)
        return self.norm(values)

    def score(self, context: Context, items: Tensor) -> Tensor:
        """Inner products of states and item vectors."""
        states = self.states(context)
        if len(items) != len(states):
            return states @ self.items(items[0]).T
        return torch.einsum("bd,bkd->bk", states, self.items(items))

    def factors(self, context: Context) -> tuple[Tensor, Tensor]:
        """The states, and the table of item vectors."""
        return self.states(context), self.items.weight

    def fold_in(self, histories: Histories) -> Scorer:
        """Itself: a user is their history."""
        return self

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """State and item vector end to end."""
        state, item = self.states(context)[:, None], self.items(items)
        shape = (len(state), items.shape[1], -1)
        return torch.cat([state.expand(shape), item.expand(shape)], dim=2)

    def item_similarity(self, items: Tensor) -> Tensor:
        """Cosine of the item vectors."""
        unit = functional.normalize(self.items.weight, dim=1)
        return unit[items] @ unit.T


def _own_histories(histories: Tensor, steps: Tensor, longest: int) -> Tensor:
    """The latest items that each instance has seen, as a history of its own: (b, longest)."""
    rows, columns = steps // histories.shape[1], steps % histories.shape[1]
    places = columns[:, None] - torch.arange(longest - 1, -1, -1, device=steps.device)
    return histories[rows[:, None], places.clamp(min=0)].where(places >= 0, PADDING)


class _Block(nn.Module):
    """One block: attention, then a feed-forward layer at each step, each on normalised input and added."""

    def __init__(self, settings: AttentionSettings) -> None:
        super().__init__()
        dim, wide = settings.embedding_dim, settings.feedforward * settings.embedding_dim
        self.heads = settings.heads
        self.norm = nn.LayerNorm(dim)
        self.inputs = nn.Linear(dim, 3 * dim)
        self.distances: nn.Parameter | None = None
        if settings.relative_positions:
            self.distances = nn.Parameter(torch.zeros(settings.history_length, settings.heads))
        self.register_load_state_dict_pre_hook(_without_distances)  # type: ignore[no-untyped-call]  # in torch
        self.output = nn.Linear(dim, dim)
        self.dropout = Dropout(settings.dropout)
        self.wide_norm = nn.LayerNorm(dim)
        self.widen = nn.Linear(dim, wide)
        self.narrow = nn.Linear(wide, dim)
        self.wide_dropout = Dropout(settings.dropout)

    def forward(self, values: Tensor, layout: Layout, only: Tensor | None = None) -> Tensor:
        """The values (n, d) of all steps after this block, or of those in `only` (s,): (s, d)."""
        normed = self.norm(values)
        if only is None:
            seen = self._attend(normed, layout)
        else:
            values, seen = values[only], self._attend_at(normed, layout, only)
        values = values + self.dropout(seen, layout.slice_of)
        wide = functional.relu(self.widen(self.wide_norm(values)))
        return values + self.wide_dropout(self.narrow(wide), layout.slice_of)

    def _attend(self, values: Tensor, layout: Layout) -> Tensor:
        # Written out: faster here than torch's fused attention, which has no second derivative either.
        parts = layout.to_rows(self.inputs(values))
        parts = parts.view(*parts.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.flatten(1, 2)  # (r m, w, d / m) each
        bias = layout.mask[:, None].expand(-1, self.heads, -1, -1)  # (r, m, w, w)
        if self.distances is not None:
            bias = bias + by_distance(self.distances, parts.shape[3])
        logits = torch.baddbmm(bias.flatten(0, 1), query, key.transpose(1, 2), alpha=query.shape[2] ** -0.5)
        seen = logits.softmax(2) @ value
        seen = seen.view(-1, self.heads, *seen.shape[1:]).transpose(1, 2).flatten(2)
        return self.output(layout.from_rows(seen))

    def _attend_at(self, values: Tensor, layout: Layout, steps: Tensor) -> Tensor:
        """What `_attend` gives at these steps (s,) alone: (s, d)."""
        dim = values.shape[1]
        (to_query, to_rest), (offset, offsets) = (
            (p[:dim], p[dim:]) for p in (self.inputs.weight, self.inputs.bias)
        )
        query = functional.linear(values[steps], to_query, offset).view(len(steps), self.heads, 1, -1)
        rest = layout.to_rows(functional.linear(values, to_rest, offsets))
        places, width = layout.places[steps], rest.shape[1]
        rows, columns = places // width, places % width
        parts = rest[rows].view(len(steps), width, 2, self.heads, -1)
        key, value = parts.permute(2, 0, 3, 1, 4)  # (s, m, w, d / m) each
        bias = layout.mask[rows, columns][:, None, None]  # (s, 1, 1, w)
        if self.distances is not None:
            bias = bias + by_distance(self.distances, width)[:, columns].transpose(0, 1)[:, :, None]
        logits = query @ key.transpose(2, 3) * query.shape[3] ** -0.5 + bias
        return self.output((logits.softmax(3) @ value).flatten(1))


def by_distance(table: Tensor, width: int) -> Tensor:
    """The numbers of a table (h, m) of distances, for w steps that each look back: (m, w, w).

    Entry (q, k) is that of distance q - k; zero where q < k.
    """
    farthest_first = functional.pad(table[:width].flip(0).T, (0, width - 1))
    return farthest_first.unfold(1, width, 1).flip(1)


def _without_distances(block: _Block, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """A model that was stored before blocks knew distances has learned nothing of them."""
    if block.distances is not None:
        state.setdefault(f"{prefix}distances", torch.zeros_like(block.distances))
