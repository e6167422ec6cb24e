"""The models and methods that must pass every law of their contracts; a new one adds one line."""

SCORERS: dict[str, dict[str, object]] = {
    "popularity": {},
    "mf": {"embedding_dim": 8},
    "ease": {"ridge": 10.0},
    "gmf": {"embedding_dim": 8},
    "mlp": {"embedding_dim": 8, "hidden": (8, 4)},
    "ncf": {"embedding_dim": 8, "hidden": (8, 4), "pretrain_epochs": 0},
    "sgns": {"embedding_dim": 8, "skip_gram_epochs": 2},
    "attention": {"embedding_dim": 8, "history_length": 6},
    "wide_deep": {"embedding_dim": 8, "side_dim": 4, "hidden": (8, 4)},
}

# The methods that must pass every law of the method contract, with what makes them quick on small data.
METHOD_SETTINGS: dict[str, dict[str, object]] = {
    "plain": {},
    "transport": {"list_length": 5},
    "ipw": {"propensity": "model", "exposure_epochs": 1},
    "expomf": {},
    "adversarial": {"warm_epochs": 1},
    "causal-embedding": {},
    "doubly-robust": {},
    "bandit-ips": {},
    "bandit-snips": {},
    "poem": {},
    "norm-poem": {},
    "bandit-dm": {},
    "bandit-dr": {"reward_epochs": 2},
}
