"""The methods under the names that the paper gives them."""

from typing import Any

from towpath.methods.recipe import Recipe

# The paper learns from clicks; simulated logs also say what was shown, which would choose the library. It
# plays from the start: after one plain epoch, without which no ranking means anything.
GAME: dict[str, Any] = {"solver": "game", "warm_epochs": 1}
# Every column learns from three negatives a positive and by one penalty, whatever a model's own defaults.
ALIKE: dict[str, Any] = {"negatives": 3, "l2": 2e-3}
# f, w and g are the named models of users and items, as in the paper, with the bounds of w that hold such a
# game together; all pairs are weighed, and a pair is shown if it beats a pool of unseen items.
PAIRS: dict[str, Any] = {
    **GAME, **ALIKE, "players": "models", "reweight": "all", "domain": "sampled", "floor": 0.5,
    "ceiling": 2.0, "penalty": 0.5,
}  # fmt: skip
# The paper's length of vectors and loss, and one head; a step learns from its item and three negatives. The
# softmax is not used: it is named here since results are stored by all settings, whatever its later default.
SEQUENCE: dict[str, Any] = {
    "embedding_dim": 32, "heads": 1, "history_length": 50, "relative_positions": False, "pairs": "sampled",
    "loss": "logistic", "softmax_negatives": 512, "learning_rate": 1e-3, "patience": 10,
}  # fmt: skip

# The paper's propensities are estimated, where a simulated log would have the true ones.
BY_POPULARITY = {"propensity": "popularity"}

POP = {"Pop": Recipe("popularity")}
# Not in the paper: what a practitioner would try first, in closed form.
EASE = {"EASE": Recipe("ease")}
DEBIASED = {
    "IPW-MF": Recipe("mf", "ipw", ALIKE | BY_POPULARITY),
    "ExpoMF": Recipe("mf", "expomf"),
    "AC-MF": Recipe("mf", "adversarial", ALIKE),
}
MCF = {"MCF": Recipe("mf", "plain", ALIKE)}
DT_MCF = {"DT-MCF": Recipe("mf", "transport", GAME | ALIKE)}
# Not in the paper: plain training that draws its negatives as transport does, to tell the two apart.
HARD: dict[str, Any] = {"hard_negatives": 1}
MCF_HARD = {"MCF, same hard negatives": Recipe("mf", "plain", ALIKE | HARD)}
NCF_HARD = {"NCF, same hard negatives": Recipe("ncf", "plain", HARD)}
ATTN_HARD = {"Attn, same hard negatives": Recipe("attention", "plain", SEQUENCE | HARD)}
NCF = {"NCF": Recipe("ncf"), "DT-NCF": Recipe("ncf", "transport", GAME)}
ATTENTION = {
    "Attn": Recipe("attention", "plain", SEQUENCE),
    "DT-Attn": Recipe("attention", "transport", SEQUENCE | GAME),
}
# The other reading of DT-X: players that look at users and items, as in the paper; one model for all three.
OF_PAIRS = {
    "DT-MCF, the paper's players": Recipe("mf", "transport", PAIRS),
    "DT-NCF, the paper's players": Recipe("ncf", "transport", PAIRS),
}
# Attention has no penalty in any column.
ATTN_OF_PAIRS = {
    "DT-Attn, the paper's players": Recipe("attention", "transport", PAIRS | SEQUENCE | {"l2": 0.0})
}
# What has no place where clicks have no order.
SEQUENTIAL = {**ATTENTION, **ATTN_HARD, **ATTN_OF_PAIRS}
MAIN = {
    **POP, **EASE, **DEBIASED, **MCF, **MCF_HARD, **DT_MCF, **NCF, **NCF_HARD, **OF_PAIRS, **SEQUENTIAL,
}  # fmt: skip
# What costs most has fewer seeds: attention, networks that the paper does not have, and games of models.
FEWER_SEEDS = {
    **dict.fromkeys(("Attn", "DT-Attn", "Attn, same hard negatives", "NCF, same hard negatives"), 5),
    **dict.fromkeys(("DT-NCF, the paper's players", "DT-Attn, the paper's players"), 3),
}
# DT-(f/w/g), M for MCF and N for NCF.
MIXES = {
    "DT-(M/N/N)": Recipe("mf", "transport", PAIRS | {"w": "ncf", "g": "ncf"}),
    "DT-(M/M/N)": Recipe("mf", "transport", PAIRS | {"w": "mf", "g": "ncf"}),
    "DT-(N/M/M)": Recipe("ncf", "transport", PAIRS | {"w": "mf", "g": "mf"}),
}
MIXED_SEEDS = dict.fromkeys(MIXES, 3)
MORE_DEBIASED = {
    "DR-MF": Recipe("mf", "doubly-robust", ALIKE | BY_POPULARITY),
    "CE-MF": Recipe("mf", "causal-embedding", ALIKE),
}
TRUE_IPW = {"IPW-MF, true propensities": Recipe("mf", "ipw", ALIKE | {"propensity": "given"})}
WIDE_DEEP = {
    "D&W": Recipe("wide_deep"),
    "IPW-D&W": Recipe("wide_deep", "ipw", BY_POPULARITY),
    "DT-D&W": Recipe("wide_deep", "transport", GAME),
}
