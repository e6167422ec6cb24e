import pytest
import torch

from towpath.models.dropout import Dropout
from towpath.rng import Rng


def dropout(share: float = 0.25, seed: int = 0, name: str = "here") -> Dropout:
    made = Dropout(share)
    made.initialise(Rng(seed), name)
    return made


def test_the_mean_is_kept_and_the_share_is_dropped() -> None:
    values = dropout()(torch.ones(200, 500))
    assert float((values == 0).float().mean()) == pytest.approx(0.25, abs=0.01)
    assert float(values.mean()) == pytest.approx(1, abs=0.01)
    assert values.unique().tolist() == [0, pytest.approx(4 / 3)]


def test_every_draw_is_another_and_each_name_and_seed_has_its_own() -> None:
    ones = torch.ones(100)
    first = dropout()
    draws = [first(ones), first(ones), dropout(seed=1)(ones), dropout(name="there")(ones)]
    assert all(not torch.equal(a, b) for i, a in enumerate(draws) for b in draws[:i])


def test_the_state_is_all_that_the_next_draw_depends_on() -> None:
    ones, first, second = torch.ones(100), dropout(), Dropout(0.25)
    first(ones)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(ones), second(ones))


def test_nothing_is_dropped_outside_of_training() -> None:
    ones, made = torch.ones(100), dropout().eval()
    assert torch.equal(made(ones), ones)
    assert int(made.draws) == 0
    assert torch.equal(dropout(0.0)(ones), ones)


def test_rows_of_a_larger_batch_lose_what_they_lose_there() -> None:
    whole = dropout()(torch.ones(30, 7))
    parts = [dropout()(torch.ones(n, 7), (first, 30)) for first, n in ((0, 11), (11, 0), (11, 19))]
    assert torch.equal(torch.cat(parts), whole)
