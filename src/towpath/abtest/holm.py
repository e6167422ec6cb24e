"""Several arms against one control: p-values that account for there being several."""

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given: whichever is below alpha may be believed.

        sorted:  p~_(j) = max over i <= j of min(1, (m - i + 1) p_(i))

    The chance that any arm without an effect gets below alpha is at most alpha, however the p-values depend
    on each other. Always-valid p-values stay always valid.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    adjusted, worst = [1.0] * len(p_values), 0.0
    for place, which in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - place) * p_values[which]))
        adjusted[which] = round(worst, 15)
    return adjusted
