"""Sequences of different lengths without padding: steps one after the other, in rows that sequences share."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from towpath.data.interactions import PADDING

# What is added to a logit that must not count: its exponential is zero. Not -inf, which times zero is NaN.
HIDDEN = -1e9


@dataclass(frozen=True)
class Layout:
    """Where the n steps of padded sequences (s, h) lie when they are packed, in order, and when in rows.

    Whatever is done at each step alone is done on (n, d). Attention needs rows (r, h, d): short sequences
    share one, and the mask keeps them apart.
    """

    mask: Tensor  # (r, h, h): 0 where a step sees another or itself, HIDDEN or twice that elsewhere
    steps: Tensor  # (n,) places of the steps in the sequences: row * h + column
    columns: Tensor  # (n,) of these the column
    real: Tensor  # (n, 1): 1, or 0 for the one step of a sequence that is all padding
    packed: Tensor  # (s * h,) the number of the step at each such place; of its follower at padding
    last: Tensor  # (s,) the number of the last step of each sequence
    places: Tensor  # (n,) places of the steps in the rows
    slice_of: tuple[int, int] | None = field(default=None, kw_only=True)  # as in Context

    def to_rows(self, values: Tensor) -> Tensor:
        """The values (n, d) in rows (r, h, d), with zeros where no step is."""
        rows, width, _ = self.mask.shape
        empty = values.new_zeros(rows * width, values.shape[1])
        return empty.index_copy(0, self.places, values).view(rows, width, -1)

    def from_rows(self, values: Tensor) -> Tensor:
        """The values (r, h, d) of the steps alone: (n, d)."""
        return functional.embedding(self.places, values.flatten(0, 1))


def lay_out(histories: Tensor) -> Layout:
    """The layout of sequences (s, h), right-aligned, h at least one.

    The last column counts as a step even if it is padding, so that every sequence has a state.
    """
    padded = histories.cpu().numpy()
    width = padded.shape[1]
    kept = padded != PADDING
    kept[:, -1] = True
    steps, lengths = np.flatnonzero(kept), kept.sum(1)
    ends = np.cumsum(lengths)
    nth = np.arange(len(steps)) - np.repeat(ends - lengths, lengths)
    places = np.repeat(share_rows(lengths, width), lengths) + nth
    owners = np.full(-(-(int(places.max(initial=-1)) + 1) // width) * width, -1, dtype=np.float32)
    owners[places] = np.repeat(np.arange(len(lengths)), lengths)
    real = (padded.ravel()[steps, None] != PADDING).astype(np.float32)
    packed = np.cumsum(kept) - kept.ravel()
    arrays = (owners.reshape(-1, width), steps, steps % width, real, packed, ends - 1, places)
    sequences, *tensors = (torch.from_numpy(a).to(histories.device) for a in arrays)
    return Layout(_mask(sequences), *tensors)


def share_rows(lengths: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Where each sequence (s,) begins in rows of this width, row * width + column; none goes over an end.

    The longest first, each into the first row that has room.
    """
    begins = np.empty(len(lengths), dtype=np.int64)
    shortest, rows = int(lengths.min(initial=width)), 0
    open_rows: list[list[int]] = []  # the next free place and the room, of rows that still have some
    for sequence in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[sequence])
        row = next((row for row in open_rows if row[1] >= length), None)
        if row is None:
            row = [rows * width, width]
            rows += 1
            open_rows.append(row)
        begins[sequence] = row[0]
        row[0] += length
        row[1] -= length
        if row[1] < shortest:
            open_rows.remove(row)
    return begins


def _mask(owners: Tensor) -> Tensor:
    """0 or HIDDEN (r, h, h): a step sees those of its own sequence, owners (r, h), up to itself."""
    rows, width = owners.shape
    # Written as float32 at once: comparing into bools and filling by them takes four times as long.
    others = torch.empty(rows, width, width, device=owners.device)
    torch.ne(owners[:, :, None], owners[:, None, :], out=others)
    return others.mul_(HIDDEN).add_(torch.full((width, width), HIDDEN, device=owners.device).triu(1))
