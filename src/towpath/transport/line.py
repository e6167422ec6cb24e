"""Optimal transport on the line, where it is a matter of sorting."""

from dataclasses import dataclass

import torch
from torch import Tensor

from towpath.device import in_double
from towpath.kernels.ordering import line_potential, usable


@dataclass(frozen=True)
class LineTransport:
    """The Wasserstein distance between two measures on the line, and the critic that attains it.

    The critic is piecewise linear with slopes in {-1, 0, 1}: `knots` (n,) ascending, `values` (n,) at them,
    `at_points` (n,) the same in the order in which the points came.
    """

    distance: Tensor
    knots: Tensor
    values: Tensor
    at_points: Tensor

    def critic(self, points: Tensor) -> Tensor:
        """The critic at any points, continued flat beyond the outermost knots; same shape."""
        right = torch.searchsorted(self.knots, points.detach().reshape(-1)).clamp(1, len(self.knots) - 1)
        x0, x1 = self.knots[right - 1], self.knots[right]
        share = ((points.reshape(-1) - x0) / (x1 - x0).clamp(min=1e-12)).clamp(0, 1)
        return torch.lerp(self.values[right - 1], self.values[right], share).view(points.shape)


def transport_on_line(points: Tensor, mass_x: Tensor, mass_y: Tensor) -> LineTransport:
    """The solution for two measures on the same points, each summing to one, zero where it has none; (n,).

        W1 = integral of |F_x - F_y|,    g(t) = integral from t to infinity of sign(F_x - F_y)

    g is 1-Lipschitz and E_x[g] - E_y[g] = W1. It is shifted so that E_x[g] = 0, since only differences count.

    >>> transport_on_line(*torch.tensor([[0.0, 1.0, 2.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])).distance
    tensor(1.5000)
    """
    masses = mass_x - mass_y
    solve = line_potential if usable(points, masses) else potential_in_torch
    knots, values, at_points, distance = solve(points, masses)
    mean = at_points @ mass_x
    return LineTransport(
        torch.as_tensor(distance, dtype=knots.dtype, device=knots.device),
        knots,
        values.sub_(mean),
        at_points.sub_(mean),
    )


def potential_in_torch(points: Tensor, masses: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What `kernels.ordering.line_potential` gives, for any type and device."""
    knots, order = points.sort()
    difference = in_double(masses[order]).cumsum(0)[:-1]  # F_x - F_y between neighbouring knots
    widths = knots.diff()
    # Rounding leaves crumbs where the measures agree; they must not turn into slopes of one.
    slopes = torch.where(difference.abs() > 1e-7, difference.sign(), 0.0).to(knots)
    from_right = (slopes * widths).flip(0).cumsum(0).flip(0)
    values = torch.cat([from_right, from_right.new_zeros(1)])
    at_points = torch.empty_like(values)
    at_points[order] = values
    return knots, values, at_points, (difference.abs().to(knots) * widths).sum()
