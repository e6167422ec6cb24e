"""Theorem 3 of the paper: transport-regularised risk on a bandit log, and when it is the counterfactual risk.

Rows z_i with losses l_i (1 - r), distances d_ij and P_f proportional to f / pi on the logged rows. With free
weights w and the exact Wasserstein distance, the inner minimum has a closed form:

    min_w  sum_i P_w(i) l_i + lam W1(P_w, P_f)  =  sum_i P_f(i) phi(i),   phi(i) = min_j l_j + lam d_ij

For lam >= L_n = max |l_i - l_j| / d_ij no row gains by being moved, so phi = l and the objective *is* the
self-normalised counterfactual risk. For lam = 0 all mass goes to the row of least loss.
"""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def deployment_mass(chances: Values, propensities: Values) -> Values:
    """P_f on the logged rows (n,): f / pi, normalised to sum to one."""
    weights = chances / propensities
    return weights / weights.sum()


def transported_loss(losses: Values, distances: Values, lam: float) -> Values:
    """The loss phi(i) = min_j l_j + lam d_ij, never above l_i: (n,).

    losses: (n,). distances: (n, n), zero on the diagonal.

    >>> z = np.array([0.0, 1.0, 3.0])
    >>> transported_loss(np.array([1.0, 0.2, 0.0]), abs(z[:, None] - z), 0.5)
    array([0.7, 0.2, 0. ])
    """
    return np.asarray((losses[None, :] + lam * distances).min(axis=1))


def transport_objective(losses: Values, mass: Values, distances: Values, lam: float) -> float:
    """What transport minimises over w, in closed form: sum_i P_f(i) phi(i). mass: (n,), sums to one."""
    return float(mass @ transported_loss(losses, distances, lam))


def constrained_objective(losses: Values, mass: Values, distances: Values, rho: float) -> float:
    """The least risk of a P_w within distance rho of P_f: max over lam of -lam rho + the objective.

    Concave in lam and flat beyond L_n, so that the maximum lies within [0, L_n]; found by golden section.
    """
    low, high = 0.0, lipschitz_constant(losses, distances)
    share = (np.sqrt(5) - 1) / 2

    def dual(lam: float) -> float:
        return -lam * rho + transport_objective(losses, mass, distances, lam)

    for _ in range(200):
        left, right = high - share * (high - low), low + share * (high - low)
        low, high = (left, high) if dual(left) < dual(right) else (low, right)
    return dual((low + high) / 2)


def lipschitz_constant(losses: Values, distances: Values) -> float:
    """The largest |l_i - l_j| / d_ij over rows in different places, L_n; infinite if two share a place."""
    gaps = np.abs(losses[:, None] - losses)
    apart = distances > 0
    if gaps[~apart].any():
        return float("inf")
    return float((gaps[apart] / distances[apart]).max(initial=0.0))


def priced_transport_objective(
    losses: Values, weights: Values, distances: Values, lam: float, price: float
) -> float:
    """Transport with the mass that falls off the log charged `price`: mean(w phi) + price (1 - mean w).

    P_f is w / n on the logged rows, not normalised, and has the rest of its mass where nothing was logged.
    For lam >= L_n this is `priced_objective`. weights: (n,), f / pi.
    """
    return priced_objective(transported_loss(losses, distances, lam), weights, price)


def priced_objective(losses: Values, weights: Values, price: float) -> float:
    """Counterfactual risk with the mass that falls off the log charged `price`.

        mean(w l) + price (1 - mean w),   w = f / pi

    The large-lambda limit of transport where P_f is not normalised over the logged rows. With l = 1 - r a
    policy that minimises it maximises IPS on r - (1 - price). Price 1: what the log never showed is worth
    nothing. weights: (n,).
    """
    return float((weights * losses).mean() + price * (1 - weights.mean()))
