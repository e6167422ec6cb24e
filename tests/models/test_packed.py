import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from towpath.data.interactions import PADDING
from towpath.models.packed import HIDDEN, lay_out, share_rows

WIDTH = 7
lengths = st.lists(st.integers(1, WIDTH), min_size=1, max_size=12).map(lambda some: [WIDTH, *some])


def padded(counts: list[int]) -> torch.Tensor:
    """Right-aligned sequences of these lengths, all items different: (s, WIDTH)."""
    items = iter(range(sum(counts)))
    return torch.tensor([[PADDING] * (WIDTH - n) + [next(items) for _ in range(n)] for n in counts])


@given(lengths)
@settings(deadline=None)
def test_sequences_in_shared_rows_neither_overlap_nor_go_over_an_end(counts: list[int]) -> None:
    begins = share_rows(np.array(counts), WIDTH)
    taken = np.concatenate([np.arange(b, b + n) for b, n in zip(begins, counts, strict=True)])
    assert len(set(taken.tolist())) == sum(counts)
    assert np.all(begins // WIDTH == (begins + counts - 1) // WIDTH)


def test_short_sequences_fill_up_the_rows_of_longer_ones() -> None:
    begins = share_rows(np.array([2, 7, 3, 5, 4]), WIDTH)
    assert begins.tolist() == [WIDTH + 5, 0, 2 * WIDTH + 4, WIDTH, 2 * WIDTH]


@given(lengths)
@settings(deadline=None)
def test_a_step_sees_its_own_sequence_up_to_itself_and_nothing_else(counts: list[int]) -> None:
    histories = padded(counts)
    layout = lay_out(histories)
    rows, columns = layout.places // WIDTH, layout.places % WIDTH
    seen = layout.mask[rows, columns][:, None, :].expand(-1, len(layout.mask), -1) == 0
    seen = seen & (torch.arange(len(layout.mask)) == rows[:, None])[:, :, None]
    own, column = layout.steps // WIDTH, layout.steps % WIDTH
    expected = (own[:, None] == own) & (column[:, None] >= column)
    assert torch.equal(seen.flatten(1)[:, layout.places], expected)
    assert seen.sum() == expected.sum()
    assert set(layout.mask.unique().tolist()) <= {0, HIDDEN, 2 * HIDDEN}


@given(lengths)
@settings(deadline=None)
def test_what_goes_into_rows_comes_out_again(counts: list[int]) -> None:
    histories = padded(counts)
    layout = lay_out(histories)
    values = histories.flatten()[layout.steps][:, None] + 0.5
    in_rows = layout.to_rows(values)
    assert in_rows.shape == (len(layout.mask), WIDTH, 1)
    assert torch.equal(layout.from_rows(in_rows), values)
    assert in_rows.sum() == values.sum()
    assert torch.equal(layout.packed[layout.steps], torch.arange(len(values)))


def test_a_sequence_without_items_has_one_step() -> None:
    layout = lay_out(torch.full((3, 4), PADDING))
    assert layout.steps.tolist() == [3, 7, 11]
    assert layout.mask.shape == (1, 4, 4)


def test_no_sequences_have_no_steps() -> None:
    layout = lay_out(torch.zeros(0, 4, dtype=torch.long))
    assert len(layout.steps) == 0
    assert layout.mask.shape == (0, 4, 4)
