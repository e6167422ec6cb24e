"""Counterfactual risks: by hand, and their expansions against autograd."""

import numpy as np
import pytest
import torch

from towpath.bandit.objectives import RiskForm, counterfactual_risk, expand_risk
from towpath.rng import Rng

FORMS = [RiskForm(n, c) for n in (False, True) for c in (0.0, 0.7)]


def case(seed: int = 0, n: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    rng = Rng(seed).numpy("case")
    return torch.tensor(rng.uniform(0.1, 4, n)), torch.tensor(-rng.random(n))


def test_values_by_hand() -> None:
    w, d = torch.tensor([1.0, 3.0]), torch.tensor([-1.0, 0.0])
    assert float(counterfactual_risk(w, d, RiskForm())) == pytest.approx(-0.5)
    # Values -1 and 0: variance 1/2, so sqrt(1/4).
    assert float(counterfactual_risk(w, d, RiskForm(penalty=2.0))) == pytest.approx(-0.5 + 2 * 0.5)
    assert float(counterfactual_risk(w, d, RiskForm(normalised=True))) == pytest.approx(-0.25)
    # (d - R) w = (-.75, .75): sqrt(1.125) / 4.
    norm = counterfactual_risk(w, d, RiskForm(normalised=True, penalty=1.0))
    assert float(norm) == pytest.approx(-0.25 + np.sqrt(1.125) / 4)


@pytest.mark.parametrize("form", FORMS)
def test_the_expansion_has_the_gradient_of_the_risk(form: RiskForm) -> None:
    weights, losses = case()
    weights.requires_grad_()
    (exact,) = torch.autograd.grad(counterfactual_risk(weights, losses, form), weights)
    expansion = expand_risk(weights.detach(), losses, form)
    (found,) = torch.autograd.grad(expansion.surrogate(weights, torch.arange(9)), weights)
    assert found.numpy() == pytest.approx(exact.numpy(), abs=1e-12)


def test_poem_is_majorised() -> None:
    """The expansion, shifted to touch the risk, is never below it."""
    weights, losses = case()
    form, rows = RiskForm(penalty=1.0), torch.arange(9)
    expansion = expand_risk(weights, losses, form)
    shift = counterfactual_risk(weights, losses, form) - expansion.surrogate(weights, rows)
    for seed in range(1, 50):
        other, _ = case(seed)
        assert expansion.surrogate(other, rows) + shift >= counterfactual_risk(other, losses, form) - 1e-12


@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_self_normalised_risks_move_with_the_losses(penalty: float) -> None:
    weights, losses = case()
    form = RiskForm(normalised=True, penalty=penalty)
    moved = counterfactual_risk(weights, losses + 0.4, form)
    assert float(moved) == pytest.approx(float(counterfactual_risk(weights, losses, form)) + 0.4)


def test_weights_without_spread_have_no_penalty_to_expand() -> None:
    ones = torch.ones(4)
    for form in (RiskForm(penalty=1.0), RiskForm(normalised=True, penalty=1.0)):
        expansion = expand_risk(ones, -ones, form)
        assert torch.isfinite(expansion.linear).all()
        assert (expansion.square == 0).all()
