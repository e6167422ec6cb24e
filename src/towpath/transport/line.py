"""Optimal transport on the line, where it is a matter of sorting."""

from dataclasses import dataclass

import torch
from torch import Tensor

from towpath.kernels.ordering import line_potential, usable


@dataclass(frozen=True)
class LineTransport:
    """The Wasserstein distance between two measures on the line, and the critic that attains it.

    The critic is piecewise linear with slopes in {-1, 0, 1}: `knots` (m,) ascending, `values` (m,) at them,
    `at_x` (n,) at the points of the first measure, in their own order.
    """

    distance: Tensor
    knots: Tensor
    values: Tensor
    at_x: Tensor

    def critic(self, points: Tensor) -> Tensor:
        """The critic at any points, continued flat beyond the outermost knots; same shape."""
        right = torch.searchsorted(self.knots, points.detach().reshape(-1)).clamp(1, len(self.knots) - 1)
        x0, x1 = self.knots[right - 1], self.knots[right]
        share = ((points.reshape(-1) - x0) / (x1 - x0).clamp(min=1e-12)).clamp(0, 1)
        return torch.lerp(self.values[right - 1], self.values[right], share).view(points.shape)


def transport_on_line(x: Tensor, mass_x: Tensor, y: Tensor, mass_y: Tensor) -> LineTransport:
    """The solution for mass_x on points x and mass_y on points y, each summing to one; all 1-d.

        W1 = integral of |F_x - F_y|,    g(t) = integral from t to infinity of sign(F_x - F_y)

    g is 1-Lipschitz and E_x[g] - E_y[g] = W1. It is shifted so that E_x[g] = 0, since only differences count.

    >>> transport_on_line(*(torch.tensor(v) for v in ([0.0, 1.0], [0.5, 0.5], [2.0], [1.0]))).distance
    tensor(1.5000)
    """
    solve = line_potential if usable(x, mass_x, y, mass_y) else potential_in_torch
    knots, order, values, distance = solve(x, mass_x, y, mass_y)
    unsorted = torch.empty_like(values)
    unsorted[order] = values
    mean = (unsorted[: len(x)] * mass_x).sum()
    return LineTransport(
        torch.as_tensor(distance, dtype=knots.dtype), knots, values - mean, unsorted[: len(x)] - mean
    )


def potential_in_torch(
    x: Tensor, mass_x: Tensor, y: Tensor, mass_y: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What `kernels.ordering.line_potential` gives, for any type and device."""
    knots, order = torch.cat([x, y]).sort()
    jumps = torch.cat([mass_x, -mass_y])[order]
    difference = jumps.double().cumsum(0)[:-1]  # F_x - F_y between neighbouring knots
    widths = knots.diff()
    # Rounding leaves crumbs where the measures agree; they must not turn into slopes of one.
    slopes = torch.where(difference.abs() > 1e-7, difference.sign(), 0.0).to(knots.dtype)
    from_right = (slopes * widths).flip(0).cumsum(0).flip(0)
    values = torch.cat([from_right, from_right.new_zeros(1)])
    return knots, order, values, (difference.abs().to(knots.dtype) * widths).sum()
