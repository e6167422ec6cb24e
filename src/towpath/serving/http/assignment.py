"""Which arm a user belongs to: the same one after every restart and on every worker and machine."""

from bisect import bisect_right
from collections.abc import Mapping
from hashlib import blake2b
from itertools import accumulate


class Assignment:
    """Arms by a salted hash of the user.

    A share is an interval of [0, 1), so users move only where the ends of the intervals do. Another salt
    assigns all users anew.

    >>> assignment = Assignment("salt", {"control": 0.5, "new": 0.5})
    >>> [assignment.arm_of(user) for user in ("ann", "bob", "eve", "ann")]
    ['new', 'new', 'control', 'new']
    """

    def __init__(self, salt: str, shares: Mapping[str, float]) -> None:
        self.salt = salt
        self.shares = dict(shares)
        # An arm without a share must not get the users that rounding leaves at the end.
        named = [(name, share) for name, share in shares.items() if share > 0]
        self._names = [name for name, _ in named]
        self._ends = list(accumulate(share for _, share in named))[:-1]
        self._key = blake2b(salt.encode()).digest()[:32]

    def arm_of(self, user: str) -> str:
        """The arm of this user."""
        hashed = blake2b(user.encode(), digest_size=8, key=self._key).digest()
        return self._names[bisect_right(self._ends, int.from_bytes(hashed, "big") / 2**64)]
