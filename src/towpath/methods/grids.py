"""The settings that `towpath tune` searches for each method, with the values worth trying."""

from collections.abc import Mapping, Sequence
from typing import Any

Grid = Mapping[str, Sequence[Any]]  # values of any type

# Of the fit loop, for every method. The paper's rates; its penalties too, with smaller ones added: ours is a
# mean over pairs, where good values are often below its smallest.
FIT: Grid = {
    "learning_rate": (0.001, 0.003, 0.005, 0.01, 0.05, 0.1),
    "l2": (0.0, 1e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.05, 0.1, 0.2, 0.3),
}
# The paper's prices of the distance and moves of w per move of f; the bounds of w, which it does not have.
TRANSPORT: Grid = {
    "penalty": (0.005, 0.05, 0.1, 0.3, 0.5, 1.0, 2.0),
    "floor": (0.1, 0.3, 0.5, 0.7, 0.9),
    "ceiling": (1.2, 1.5, 2.0, 4.0),
    "steps_w": (1, 5, 10),
}
# Floors as in the paper's study of overlap; powers around the published square root.
IPW: Grid = {
    "variant": ("unbiased", "squared", "weighted", "non-negative"),
    "floor": (0.01, 0.05, 0.1, 0.2, 0.5),
    "power": (0.25, 0.5, 1.0),
}
DOUBLY_ROBUST: Grid = {
    "floor": (0.05, 0.1, 0.2, 0.5),
    "learning_rate_imputation": (0.001, 0.005, 0.01),
    "imputation_dim": (8, 32),
}
# Starts as published, whose ridges (1e-5) are far too small for 32 dimensions.
EXPOSURE: Grid = {
    "prior_weight": (0.0, 0.3, 1.0, 10.0),
    "ridge_users": (1e-5, 1.0, 3.0, 10.0, 30.0),
    "ridge_items": (1e-5, 1.0, 3.0, 10.0, 30.0),
    "init_mu": (0.1, 0.05, 0.01, 0.005, 0.001),
    "precision": (0.3, 1.0, 3.0, 10.0),
}
ADVERSARIAL: Grid = {
    "adversary_fit": (0.1, 0.5, 1.0, 2.0),
    "learning_rate_g": (0.003, 0.01, 0.03),
    "learning_rate_link": (0.0001, 0.001, 0.01),
}
# Pulls as recommended, and a smaller one: of a few tens of numbers the sum of distances is large.
CAUSAL_EMBEDDING: Grid = {
    "pull": (0.001, 0.01, 0.1, 1.0),
    "treatment": ("random", "inverse-popularity"),
    "treatment_share": (0.05, 0.1, 0.2),
}
# The published range of the penalty on the spread, and cuts of the weights around it.
BANDIT: Grid = {**FIT, "max_weight": (5.0, 20.0, 100.0, 1000.0)}
POEM: Grid = {**BANDIT, "variance_penalty": (0.01, 0.1, 0.3, 1.0, 3.0)}
