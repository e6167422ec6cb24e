import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from towpath.abtest.sequences import (
    Ratio,
    Sequence,
    absolute_lift,
    linearised,
    p_value,
    ratio_of,
    relative_lift,
)


def test_a_ratio_and_its_variance_by_hand():
    # R = 6 / 4 = 1.5; errors (1 - 1.5, 5 - 4.5) = (-.5, .5), variance .5; mean denominator 2, two users.
    one = ratio_of(np.array([1.0, 5.0]), np.array([1.0, 3.0]))
    assert one.value == 1.5
    assert one.variance == pytest.approx(0.5 / 4 / 2)


def test_a_mean_has_the_usual_variance():
    values = np.array([1.0, 2.0, 4.0, 9.0])
    assert ratio_of(values, np.ones(4)).variance == pytest.approx(values.var(ddof=1) / 4)
    assert linearised(values, np.ones(4)).sum() == pytest.approx(0)


def test_a_ratio_without_a_denominator_is_unusable():
    assert not ratio_of(np.zeros(100), np.zeros(100)).usable


def test_the_multiplier_is_lowest_where_it_was_asked_to_be():
    sequence = Sequence(alpha=0.05, tightest_at=2_000)
    # Among all rho the one for 2,000 users is best at 2,000 users.
    there = sequence.multiplier(2_000)
    others = [Sequence(alpha=0.05, tightest_at=n).multiplier(2_000) for n in (200, 1_000, 4_000, 20_000)]
    assert there < min(others)
    assert there / 1.96 == pytest.approx(1.55, abs=0.01)


def test_the_p_value_belongs_to_the_interval():
    sequence, users = Sequence(alpha=0.05), 3_000
    c = sequence.multiplier(users)
    assert sequence.p_value(c, users) == pytest.approx(0.05)
    assert sequence.p_value(1.01 * c, users) < 0.05 < sequence.p_value(0.99 * c, users)
    assert sequence.p_value(0.0, users) == 1.0


ratios = st.builds(
    Ratio,
    st.floats(0.01, 100),
    st.floats(1e-6, 1),
    st.integers(30, 10_000),
)


@given(ratios, ratios)
def test_relative_and_absolute_intervals_agree_about_zero(treated, control):
    sequence = Sequence()
    absolute = absolute_lift(treated, control, sequence)
    relative = relative_lift(treated, control, sequence)
    if min(abs(absolute.low), abs(absolute.high)) > 1e-9 * (treated.value + control.value):
        assert absolute.covers(0) == relative.covers(0)
        assert absolute.covers(0) == (p_value(treated, control, sequence) >= sequence.alpha)
    assert relative.covers(relative.mean)
    assert relative.low >= -1


@given(ratios, ratios, st.floats(0, 3))
def test_the_relative_interval_holds_what_the_sequence_does_not_refute(treated, control, q):
    c = Sequence().multiplier(treated.users + control.users)
    wide = c * math.sqrt(treated.variance + q * q * control.variance)
    off = abs(treated.value - q * control.value)
    inside = relative_lift(treated, control, Sequence()).covers(q - 1)
    if off < 0.999 * wide:
        assert inside
    if off > 1.001 * wide and control.value**2 > 1.01 * c * c * control.variance:
        assert not inside


def test_a_control_near_zero_leaves_no_upper_bound():
    lift = relative_lift(Ratio(1.0, 0.01, 100), Ratio(0.1, 0.01, 100), Sequence())
    assert lift.high == math.inf
    # Treated is far from zero, so it is still surely better.
    assert lift.low == pytest.approx(-1 + 1.0 / (0.1 + 0.1 * Sequence().multiplier(200)), rel=0.5)


def test_too_few_users_or_nothing_done_say_nothing():
    few, many, nothing = Ratio(1.0, 0.1, 29), Ratio(1.0, 0.1, 1_000), Ratio(0.0, 0.0, 1_000)
    for pair in ((few, many), (many, few), (nothing, nothing)):
        assert absolute_lift(*pair, Sequence()).width == math.inf
        assert relative_lift(*pair, Sequence()).width == math.inf
        assert p_value(*pair, Sequence()) == 1.0
