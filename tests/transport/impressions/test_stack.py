import numpy as np
import pytest

from towpath.transport.impressions.stack import log_loss, stack_heads


def scores_and_clicks(n: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((n, 3)) * [1.0, 5.0, 1.0]
    logits = -1 + scores @ [0.8, -0.1, 0.0]
    return scores, (rng.random(n) < 1 / (1 + np.exp(-logits))).astype(np.float64)


def test_the_weights_of_the_world_are_found_and_signs_are_free() -> None:
    stack = stack_heads(*scores_and_clicks(), ridge=0.01)
    assert stack.weights == pytest.approx([0.8, -0.1, 0.0], abs=0.05)


def test_the_slope_at_the_solution_is_zero() -> None:
    scores, clicks = scores_and_clicks(2_000)
    ridge = 50.0
    stack = stack_heads(scores, clicks, ridge)
    spread = scores.std(axis=0)
    z, v = (scores - scores.mean(axis=0)) / spread, stack.weights * spread
    rarer = min(clicks.sum(), len(clicks) - clicks.sum())
    # The intercept is the one whose chances have the mean of the clicks.
    low, high = -20.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if (1 / (1 + np.exp(-middle - z @ v))).mean() > clicks.mean() else (middle, high)
        )
    slope = z.T @ (1 / (1 + np.exp(-low - z @ v)) - clicks) / len(clicks) + 2 * ridge / rarer * v
    assert slope == pytest.approx(np.zeros(3), abs=1e-4)
    assert stack.log_loss == pytest.approx(log_loss(low + z @ v, clicks), abs=1e-5)


def test_a_large_ridge_leaves_nothing_and_a_constant_head_counts_nothing() -> None:
    scores, clicks = scores_and_clicks(2_000)
    assert np.abs(stack_heads(scores, clicks, 1e9).weights).max() < 1e-4
    scores[:, 1] = 7.0
    assert stack_heads(scores, clicks, 1.0).weights[1] == 0
