"""How much each positive counts in training, by its value."""

import numpy as np
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.errors import ConfigError, DataError
from towpath.training.settings import TrainingSettings


def refuse_weighted_showings(settings: TrainingSettings) -> None:
    """Nothing, unless what was shown is to be weighted by a value that only positives have."""
    if settings.weights != "none":
        raise ConfigError(
            "weights=value weighs positives, and pairs=shown learns from what was not clicked too; use "
            "pairs=sampled, or leave weights out."
        )


def event_weights(train: Interactions, settings: TrainingSettings) -> NDArray[np.float32] | None:
    """The weight of every training positive (n,), with a mean of one; None where all count the same.

    w_i = value_i / mean of all values
    """
    if settings.weights == "none":
        return None
    if train.values is None:
        raise DataError(
            "weights=value needs a value for every event, but the data have none; name a column with "
            "--value-col, or weigh kinds of events with --event-weight."
        )
    values = train.values
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        user, item = (
            ids.ids(codes[wrong[:1]])[0]
            for ids, codes in ((train.user_ids, train.users), (train.item_ids, train.items))
        )
        raise DataError(
            f"weights=value needs a value of 0 or more for every event, but {len(wrong):,} of {len(train):,} "
            f"have none or a negative one (first: user {user!r}, item {item!r}); mend those rows."
        )
    mean = float(values.mean(dtype=np.float64))
    if mean == 0:
        raise DataError("weights=value needs values above 0, but all are 0; name another column.")
    return (values / np.float32(mean)).astype(np.float32)
