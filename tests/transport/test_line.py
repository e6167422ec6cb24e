import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from towpath.transport.line import LineTransport, transport_on_line


def between(x: torch.Tensor, a: torch.Tensor, y: torch.Tensor, b: torch.Tensor) -> LineTransport:
    """The transport from mass a on x to mass b on y."""
    return transport_on_line(torch.cat([x, y]), torch.cat([a, 0 * b]), torch.cat([0 * a, b]))


measures = st.lists(
    st.tuples(st.floats(-50, 50, allow_subnormal=False), st.floats(0.01, 1)), min_size=1, max_size=20
)


def tensors(measure: list[tuple[float, float]]) -> tuple[torch.Tensor, torch.Tensor]:
    points, weights = torch.tensor(measure, dtype=torch.float64).T
    return points.contiguous(), weights / weights.sum()


@settings(deadline=None)  # the first call loads scipy
@given(measures, measures)
def test_distance_and_critic_agree_with_scipy(first: list, second: list) -> None:
    (x, a), (y, b) = tensors(first), tensors(second)
    solved = between(x, a, y, b)
    exact = wasserstein_distance(x.numpy(), y.numpy(), a.numpy(), b.numpy())
    attained = float((a * solved.critic(x)).sum() - (b * solved.critic(y)).sum())
    np.testing.assert_allclose(float(solved.distance), exact, atol=1e-6)
    np.testing.assert_allclose(attained, exact, atol=1e-5)
    np.testing.assert_allclose(solved.at_points, solved.critic(torch.cat([x, y])), atol=1e-6)


@given(measures, measures)
def test_the_critic_is_lipschitz_and_centred(first: list, second: list) -> None:
    (x, a), (y, b) = tensors(first), tensors(second)
    solved = between(x, a, y, b)
    probes = torch.linspace(-60, 60, 200, dtype=torch.float64)
    slopes = solved.critic(probes).diff() / probes.diff()
    assert slopes.abs().max() <= 1 + 1e-6
    assert abs(float((a * solved.critic(x)).sum())) < 1e-6


def test_equal_measures_have_no_distance() -> None:
    x, a = torch.tensor([0.0, 1.0, 5.0]), torch.tensor([0.2, 0.3, 0.5])
    assert between(x, a, x.clone(), a.clone()).distance < 1e-6
