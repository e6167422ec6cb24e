"""Less noise by what users did before the experiment (CUPED, Deng et al. 2013)."""

import numpy as np
from numpy.typing import NDArray

from towpath.abtest.sequences import Ratio, linearised, ratio_of

Floats = NDArray[np.float64]


def adjusted_ratios(sums: list[tuple[Floats, Floats]], earlier: list[Floats]) -> list[Ratio]:
    """The ratio of each arm, less what its users' past explains of it.

        R_k - theta (mean x_k - mean x),     theta = cov(psi, x) / var(x) over the users of all arms

    sums: numerator and denominator (n_k,) of each arm. earlier: a number x (n_k,) for each user from before
    the assignment, so that the arms cannot have changed it. psi is what a user adds to the ratio's error. The
    mean over all arms takes the place of the true mean of x; that is the same shift for every arm, so
    differences stay unbiased.
    """
    plain = [ratio_of(*pair) for pair in sums]
    if not all(one.usable for one in plain):
        return plain
    errors = [linearised(*pair) for pair in sums]
    centred = [x - x.mean() for x in earlier]
    spread = sum(float(x @ x) for x in centred)
    if spread == 0:
        return plain
    theta = sum(float(psi @ x) for psi, x in zip(errors, centred, strict=True)) / spread
    middle = float(np.concatenate(earlier).mean())
    return [
        Ratio(
            one.value - theta * (float(x.mean()) - middle),
            float((psi - theta * c).var(ddof=1)) / one.users,
            one.users,
        )
        for one, psi, x, c in zip(plain, errors, earlier, centred, strict=True)
    ]
