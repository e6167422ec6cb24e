"""What was shown lately rests: by what a model's own log and the server's log have shown a user.

A run's log may have been exported from this server, so showings up to the end of the run's log are taken from
there, and later ones from the server's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from towpath.data.interactions import Interactions
from towpath.data.repeats import estimate_rest, showings_of, times_a_second, times_of
from towpath.data.vocabulary import UNKNOWN
from towpath.ranking.resting import Resting, rested
from towpath.serving.http.settings import RestRules

_MICROSECONDS = 1_000_000
_NOBODY = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)


class ModelRest:
    """The rules with what the log of a run has shown."""

    def __init__(self, log: Interactions, rules: RestRules) -> None:
        to_microseconds = _MICROSECONDS // times_a_second(times_of(log))
        showings = showings_of(log)
        self._showings = replace(showings, last=showings.last * to_microseconds)
        self._until = int(self._showings.last.max(initial=0))
        curve = estimate_rest(log) if rules.discount else None
        if curve is not None:
            curve = replace(curve, edges=curve.edges * to_microseconds)
        self._for_clicks = Resting(rules.filter_shown, rules.max_showings, curve)
        self._for_counts = replace(self._for_clicks, curve=None)

    def apply(
        self,
        scores: NDArray[np.float32],
        user: int,
        later: Mapping[int, Sequence[int]],
        now: int,
        *,
        counts: bool = False,
    ) -> None:
        """Hide or discount, in scores (items,), what this user was shown.

        user: their code in the run's log, or UNKNOWN. later: the times, in order, at which this server has
        shown them each item. counts: the scores count events, so that there are no odds to discount.
        """
        items, often, last = _NOBODY if user == UNKNOWN else self._showings.of_user(user)
        found = {item: (n, time) for item, n, time in zip(items.tolist(), often, last, strict=True)}
        for item, times in later.items():
            new = [time for time in times if time > self._until]
            if new:
                found[item] = found.get(item, (0, 0))[0] + len(new), new[-1]
        if not found:
            return
        places = np.fromiter(found, np.int64, len(found))
        shown, last = np.array(list(found.values()), dtype=np.int64).T
        own = torch.from_numpy(scores[places])[None]
        resting = self._for_counts if counts else self._for_clicks
        scores[places] = rested(own, shown[None], last[None], now, resting)[0].numpy()
