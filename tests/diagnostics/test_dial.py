import pytest

from small import small_split
from small_impressions import small_log
from towpath.diagnostics.dial import dial_of
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit

LOG = small_log(users=150, items=80, shown=20, exploration=0.0)


def test_copying_the_log_stands_nearer_to_it_than_shown_pairs_alone() -> None:
    quick = {"embedding_dim": 8, "epochs": 20, "patience": 20}
    copied, own = (
        dial_of(fit(LOG, Recipe("mf", method, quick)).scorer, LOG) for method in ("imitation", "shown")
    )
    assert copied is not None
    assert own is not None
    assert own.shown_share < copied.shown_share
    assert own.likeness < copied.likeness
    assert copied.likeness == pytest.approx(1, abs=0.5)


def test_a_log_of_clicks_alone_has_no_dial() -> None:
    assert dial_of(fit(small_split(), Recipe("popularity")).scorer, small_split()) is None
