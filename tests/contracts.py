"""The models that must pass every law of the scorer contract; a new model adds one line."""

SCORERS: dict[str, dict[str, object]] = {
    "popularity": {},
    "mf": {"embedding_dim": 8},
    "ease": {"ridge": 10.0},
    "gmf": {"embedding_dim": 8},
    "mlp": {"embedding_dim": 8, "hidden": (8, 4)},
    "ncf": {"embedding_dim": 8, "hidden": (8, 4), "pretrain_epochs": 0},
    "sgns": {"embedding_dim": 8, "skip_gram_epochs": 2},
    "attention": {"embedding_dim": 8, "history_length": 6},
    "headed": {"tower": "mf", "tower_settings": {"embedding_dim": 8}},
    "wide_deep": {"embedding_dim": 8, "side_dim": 4, "hidden": (8, 4)},
}
