"""The models that must pass every law of the scorer contract; a new model adds one line."""

SCORERS: dict[str, dict[str, object]] = {
    "popularity": {},
    "mf": {"embedding_dim": 8},
    "ease": {"ridge": 10.0},
}
