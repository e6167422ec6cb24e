"""The features of one side (users or items) as a model takes them in: vectors, weights and indicators."""

import torch
from torch import Tensor, nn

from towpath.data.features import FIRST_VALUE, FeatureTable, SideSchema
from towpath.rng import Rng


class SideInputs(nn.Module):
    """For each row: the mean vector of its labels by feature, its numbers, and the weights of both.

    The encoded features lie in buffers, so that a model carries what it needs to score.
    """

    starts: Tensor  # (rows * c + 1,)
    codes: Tensor  # (entries,) over all features of the side
    numbers: Tensor  # (rows, numbers), standardised, and whether each is missing
    columns: Tensor  # (codes,) the indicator of each code

    def __init__(self, schema: SideSchema, rows: int, width: int, cross_values: int) -> None:
        super().__init__()
        self.schema = schema
        self._labels = len(schema.labels)
        self.table = nn.Parameter(torch.zeros(sum(schema.codes), width + 1))  # last: the weight of the label
        self.number_weights = nn.Parameter(torch.zeros(2 * len(schema.numbers)))
        self.register_buffer("starts", torch.zeros(rows * self._labels + 1, dtype=torch.long))
        self.register_buffer("codes", torch.zeros(schema.entries, dtype=torch.long))
        self.register_buffer("numbers", torch.zeros(rows, 2 * len(schema.numbers)))
        # Rare values of a feature with many share its last indicator.
        self.indicators = [min(codes, FIRST_VALUE + cross_values) for codes in schema.codes]
        places = [
            torch.arange(codes).clamp(max=most - 1) + sum(self.indicators[:place])
            for place, (codes, most) in enumerate(zip(schema.codes, self.indicators, strict=True))
        ]
        none = torch.zeros(0, dtype=torch.long)
        self.register_buffer("columns", torch.cat([none, *places]), persistent=False)

    @property
    def width(self) -> int:
        """Length of a row's vector."""
        return self._labels * (self.table.shape[1] - 1) + self.numbers.shape[1]

    def initialise(self, features: FeatureTable | None, rng: Rng, name: str, std: float) -> None:
        """Take in the features and draw the vectors; those of no known value, and weights, start at zero."""
        with torch.no_grad():
            self.table.normal_(0, std, generator=rng.torch("initialise", name))
            self.table[:, -1] = 0
            ends = torch.tensor([0, *self.schema.codes]).cumsum(0)
            for code in range(FIRST_VALUE):
                self.table[ends[:-1] + code] = 0
            self.number_weights.zero_()
            if features is not None and self.width:
                self.starts.copy_(torch.from_numpy(features.starts))
                self.codes.copy_(torch.from_numpy(features.stacked_codes()))
                self.numbers.copy_(torch.from_numpy(features.standardised()))

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors (..., width), weights (...) and indicators (..., i) of rows of any shape.

        Each different row is looked up once, however often it occurs.
        """
        if not self.width:
            empty = self.table.new_zeros(*rows.shape, 0)
            return empty, self.table.new_zeros(rows.shape), empty
        different, places = torch.unique(rows, return_inverse=True)
        vectors, weights, indicators = self._look_up(different)
        return vectors[places], weights[places], indicators[places]

    def _look_up(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        numbers = self.numbers[rows]
        weights = numbers @ self.number_weights
        indicators = self.table.new_zeros(len(rows), sum(self.indicators))
        if not self._labels:
            return numbers, weights, indicators
        owners, codes, bags = self._entries(rows)
        indicators[owners, self.columns[codes]] = 1
        means = nn.functional.embedding_bag(codes, self.table, bags, mode="mean")
        by_label = means.view(len(rows), self._labels, -1)
        return (
            torch.cat([by_label[:, :, :-1].flatten(1), numbers], dim=1),
            weights + by_label[:, :, -1].sum(1),
            indicators,
        )

    def _entries(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The place in `rows` and the code of each label (m,), and where each feature's begin: (r * c,)."""
        first = self.starts[rows * self._labels]
        counts = self.starts[(rows + 1) * self._labels] - first
        shift = first - (counts.cumsum(0) - counts)  # from a place in the answer to one in the packed codes
        owners = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), counts)
        codes = self.codes[torch.arange(len(owners), device=rows.device) + shift[owners]]
        features = torch.arange(self._labels, device=rows.device)
        bags = self.starts[rows[:, None] * self._labels + features] - shift[:, None]
        return owners, codes, bags.flatten()
