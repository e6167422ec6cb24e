"""Whether the users of a running server are split between its arms as configured."""

from collections.abc import Mapping

from towpath.stats.sample_ratio import e_value

# Users of whom a worker remembers that it has counted them, about 60 bytes each.
_MOST = 1_000_000


class SplitWatch:
    """Counts the users of each arm, each user once, since this worker started."""

    def __init__(self, shares: Mapping[str, float]) -> None:
        self._shares = dict(shares)
        self._known: set[int] = set()
        self.users = dict.fromkeys(shares, 0)

    def note(self, user: str, arm: str) -> None:
        """Somebody was answered by this arm; after the first million users nobody is counted any more."""
        code = hash(user)
        if code not in self._known and len(self._known) < _MOST:
            self._known.add(code)
            self.users[arm] += 1

    @property
    def evidence(self) -> float:
        """The e-value against the configured split: at most one sound server in a hundred ever gets to 100.

        The mean over workers is an e-value too, also if they share users.
        """
        return e_value([*self.users.values()], [*self._shares.values()])
